"""Claims: published findings in checkable form, and what is said of one."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from sensorbench import toml_file
from sensorbench.claims.expression import Expression
from sensorbench.claims.rules import Rule

# What a finding may depend on, so that it can be judged only from some value of it on; evidence says which value it has.
SCALES = {
    "scale": "the size of the dataset as a share of the paper's",
    "rows": "rows loaded",
    "bytes_over_memory": "bytes loaded over the memory that the server has for data",
    "rows_per_partition": "rows of the largest partition",
    "partition_bytes": "bytes of the largest partition",
    "tables": "tables of the schema",
    "regions_per_server": "regions on each server before the change",
    "token_ranges_per_node": "token ranges of each node before the change",
    "requests_per_set": "requests in each set",
    "bytes_per_node_over_memory": "bytes on each node over the memory that it has for data",
    "nodes": "nodes of the cluster",
    "nodes_per_worker": "nodes of each database per worker",
    "node_growth": "the most nodes over the fewest",
    "cpus_per_node": "CPUs of this machine for each node of the largest cluster",
    "duration_s": "seconds that a step lasts",
    "reads": "reads of registers that were checked",
}

Positive = Annotated[float, Field(gt=0.0)]


class Claim(toml_file.FileModel):
    """A published finding in checkable form. Its rules are its parts: the claim gets the weakest verdict of them."""

    id: str = Field(description="Identifier, such as `IOT-8`.")
    text: str = Field(description="The claim in a sentence.")
    # The paper's own words that the rules formalise.
    sentence: str = Field(default="", description="The paper's own words.")
    form: str = Field(description="The claim in checkable form.")
    published: str = Field(description="The figures that the paper printed.")
    # Variants that must have been measured, by the names of the study's roles.
    requires: list[str] = Field(default=[], description="Roles without which the claim is not tested.")
    # The parts of the study that it needs, in each of which those variants must have been measured. A claim that names none is
    # about each comparison by itself.
    parts: list[str] = Field(default=[], description="Parts of the study that the claim needs.")
    # What else it needs and is not here, in words; such a claim is not tested.
    blocked_by: str | None = Field(default=None, description="What is missing to test the claim at all.")
    rules: list[Rule] = Field(default=[], description="The rules that judge it; the weakest verdict counts.")
    # Why no rule fits; then a function of the study judges it.
    judged_in_python: str | None = Field(default=None, description="The function that judges it, where no rule fits.")
    # The smallest scale at which it can be judged, by what the finding depends on (SCALES, or a formula over figures), and why.
    min_scale: dict[str, Positive] = Field(
        default={}, description="The smallest scale at which the claim can be judged, by what it depends on."
    )
    scale_matters: str = Field(default="", description="Why the scale matters.")
    # Why it can be judged at any scale.
    scale_free: str = Field(default="", description="Why the scale does not matter.")
    # The datasets that it is about, where it speaks of their own values or sizes; on others it is not tested.
    datasets: list[str] = Field(default=[], description="Datasets on which the claim can be judged; any if none is named.")
    # Why no substitute can judge it: it is about a product, not about a kind of system.
    own_systems_only: str = Field(default="", description="Why a substitute cannot judge the claim.")
    # Why it can be judged only where every server had the same resources; empty if it does not matter.
    equal_resources: str = Field(default="", description="Why the claim is judged only where every server had the same memory.")
    # Where the paper's own figures contradict its sentence, and what else a reader should know of the verdict.
    note: str = Field(default="", description="What readers of the verdict should know.")

    @model_validator(mode="after")
    def _is_judged_in_one_way(self) -> "Claim":
        ways = [bool(self.blocked_by), bool(self.rules), bool(self.judged_in_python)]
        if not self.blocked_by and sum(ways) != 1:
            raise ValueError("a claim has 'rules', or 'judged_in_python' with the reason, or is 'blocked_by' something")
        if not self.blocked_by and bool(self.min_scale) == bool(self.scale_free):
            raise ValueError("a claim states either 'min_scale', with 'scale_matters', or why it is 'scale_free'")
        if bool(self.min_scale) != bool(self.scale_matters):
            raise ValueError("'min_scale' and 'scale_matters' stand together: from which scale on, and why")
        for name in self.min_scale.keys() - SCALES.keys():
            try:
                Expression.parse(name)
            except ValueError as error:
                raise ValueError(f"min_scale: {name} is none of {', '.join(SCALES)}, and {error}") from None
        return self


class ClaimsFile(toml_file.FileModel):
    """`claims.toml`."""

    claim: list[Claim] = Field(description="The claims of a study.")


def claims_in(file: Path) -> tuple[Claim, ...]:
    """The claims of a file. Raises UsageError, naming file, line and key, for what is wrong with it."""
    found = toml_file.load(file, ClaimsFile).claim
    ids = [claim.id for claim in found]
    for number, claim_id in enumerate(ids):
        if claim_id in ids[:number]:
            raise toml_file.error_at(file, f"claim[{number}].id", f"two claims have the same id {claim_id}")
    return tuple(found)


def load_claims(file: Path, judges: Iterable[str] = ()) -> tuple[Claim, ...]:
    """The claims of a file. `judges` are the ids of those that a function of the study judges.

    Raises:
        UsageError: for what is wrong with the file.
        AssertionError: if claims and functions do not fit.

    """
    found = claims_in(file)
    in_python = {claim.id for claim in found if claim.judged_in_python and not claim.blocked_by}
    if in_python != set(judges):
        raise AssertionError(f"{file}: claims and judges do not fit: {sorted(in_python ^ set(judges))}")
    return found
