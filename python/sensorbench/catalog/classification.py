"""The claims of the classification on what was measured: registers under load, and one database at several consistency levels."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from sensorbench.analysis.promises import levels_of, replicas_of
from sensorbench.catalog.axes import FOLDER
from sensorbench.claims import Claim, Evidence, Judgement, NotMeasuredError, Quantity, RunValues, judged_by, load_claims
from sensorbench.results import ComparisonResult, VariantManifest
from sensorbench.results.summary.claims import JudgedClaim
from sensorbench.results.summary.comparison import ComparisonSummary

_REPLICAS = 3


class RegisterEvidence(Evidence):
    """What was measured of registers, by what databases say of themselves."""

    def __init__(self, result: ComparisonResult, summary: ComparisonSummary, roles: dict[str, str]) -> None:
        self._found = summary.result.guarantees
        quantities: Mapping[str, Quantity] = {"stale_reads": self._stale_reads}
        super().__init__(result, roles, "mean", own=quantities)

    def scale(self, name: str) -> float | None:
        """The fewest reads that were checked of a variant with a role."""
        if name != "reads":
            return super().scale(name)
        reads = [self._found[variant].counts.answered_reads for variant in self.roles.values() if variant in self._found]
        return float(min(reads)) if reads else None

    def count(self, role: str) -> int:
        """Stale reads of a role.

        Raises:
            NotMeasuredError: if its mix had no registers.

        """
        if self.roles.get(role) not in self._found:
            raise NotMeasuredError("needs registers in the mix (write_register and read_register)")
        return self._found[self.roles[role]].seen["stale_reads"].count

    def _stale_reads(self, _: Evidence, role: str, __: Sequence[str]) -> RunValues:
        return RunValues.exactly(float(self.count(role)))


def _can_be_stale(evidence: RegisterEvidence) -> Judgement:
    """One stale read shows that there can be some; none shows nothing."""
    count = evidence.count("weak")
    return Judgement("reproduced" if count else "inconclusive", f"counted {count:,}; one is enough, and none contradicts nothing")


JUDGES: Mapping[str, Callable[[RegisterEvidence], Judgement]] = {"CLS-2": _can_be_stale}


@cache
def judged_claims() -> tuple[Claim, ...]:
    """The claims of the classification that a result can judge."""
    return load_claims(FOLDER / "judged_claims.toml", JUDGES)


def classification_claims(result: ComparisonResult, summary: ComparisonSummary) -> list[JudgedClaim]:
    """The claims of the classification of which a result has the variants, with their verdicts."""
    roles: dict[str, str] = {}
    for variant in result.manifest.variants:
        for role in _roles_of(result, variant):
            roles.setdefault(role, variant.id)
    found = []
    for claim in judged_claims():
        needed = _roles_in(claim)
        if needed <= roles.keys():
            evidence = RegisterEvidence(result, summary, {role: roles[role] for role in needed})
            found.append(judged_by(claim, evidence, JUDGES))
    return found


def _roles_in(claim: Claim) -> set[str]:
    if claim.judged_in_python:
        return {"weak"}
    return {figure.arguments[0] for rule in claim.rules for expression in rule.expressions for figure in expression.figures}


def _roles_of(result: ComparisonResult, variant: VariantManifest) -> list[str]:
    """What a variant stands for, by what its database says of itself."""
    runs = result.usable_runs(variant.id)
    settings = runs[-1].manifest.description.get("settings", {}) if runs else {}
    if variant.promises == "quorums" and (levels := levels_of(settings)):
        replication = int(settings["replication"])
        meet = sum(replicas_of(level, replication) for level in levels) > replication
        level = levels[0].removeprefix("local_")
        # The claims are about one level for both.
        by_level = {_REPLICAS: [level], 1: [f"alone_{level}"]}.get(replication, []) if levels[0] == levels[1] else []
        return [*by_level, "strong" if meet else "weak"]
    # What a master has acknowledged may not have reached its replicas, which is another claim.
    return [variant.database] if variant.promises and settings.get("replicas", "0") == "0" else []
