"""The envelope that the summaries of all kinds share."""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, Field

from sensorbench.results.as_written import AsWritten
from sensorbench.results.described import Environment
from sensorbench.results.manifest import BaseManifest, RunManifest, Status, VariantManifest
from sensorbench.results.summary.claims import JudgedClaim
from sensorbench.results.summary.part import SummaryPart
from sensorbench.results.summary.published import PublishedTable

SUMMARY_FORMAT: Literal[2] = 2

Result = TypeVar("Result", bound=SummaryPart)


class Caveat(SummaryPart):
    """Something that readers of the figures must know, and what to do about it."""

    kind: str
    text: str
    action: str
    variant: str = Field(default="", description="The variant that it is about; empty for the whole.")


class Caveats(list[Caveat]):
    """Caveats as they are found."""

    def add(self, kind: str, text: str, action: str, variant: str = "") -> None:
        """Adds one."""
        self.append(Caveat(kind=kind, text=text, action=action, variant=variant))


class OperationErrors(SummaryPart):
    """Operations of one kind that failed alike."""

    phase: str
    operation: str
    kind: str
    count: int
    first_message: str


def errors_of(runs: Iterable[RunManifest]) -> list[OperationErrors]:
    """How operations of some runs failed."""
    return [OperationErrors.model_validate(error) for run in runs for error in run.errors]


class Summary(SummaryPart, Generic[Result]):
    """`summary.json`: what a benchmark found. All kinds have these keys; `result` has what is the kind's own."""

    format: Literal[2] = SUMMARY_FORMAT
    kind: str
    title: str
    status: Status
    reason: str | None = Field(description="Why it is not complete; null if it is.")
    created: datetime
    version: str = Field(description="The version of sensorbench that measured.")
    command: list[str]
    environment: Annotated[Environment, AsWritten] = Field(description="The machine, versions and servers, as in manifest.json.")
    variants: list[VariantManifest]
    answers_equal: bool | None = Field(
        default=None, description="Whether all variants gave the same answers; null if answers were not validated."
    )
    warnings: list[Caveat]
    claims: list[JudgedClaim] = []
    published: list[PublishedTable] = Field(
        default=[], description="What the paper of a study printed, and what was measured in its place."
    )
    result: Result


def fields_of_plan(plan: BaseModel, figures: type[SummaryPart], *, but_not: Collection[str] = ()) -> dict[str, Any]:
    """What a kind's figures say of its plan in the same words; fields of `but_not` mean something else there."""
    shared = [name for name in figures.model_fields if name in type(plan).model_fields and name not in but_not]
    return {name: getattr(plan, name) for name in shared}


def envelope(manifest: BaseManifest[Any]) -> dict[str, Any]:
    """The keys of an envelope that a manifest has."""
    return {
        "title": manifest.title,
        "status": manifest.state,
        "reason": manifest.reason,
        "created": manifest.created,
        "version": manifest.version,
        "command": manifest.command,
        "environment": manifest.environment,
        "variants": manifest.variants,
    }
