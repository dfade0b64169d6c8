"""A benchmark whose plan is a list of child plans: each has a folder of its own in that of the series."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sensorbench.errors import DiskFullError, FailedError, UsageError
from sensorbench.lifecycle.benchmark import Benchmark, Description, RunContext
from sensorbench.results import has_results
from sensorbench.results.estimate import Budget
from sensorbench.results.planned import PlannedSeries, SeriesManifest
from sensorbench.results.writer import ManifestWriter
from sensorbench.runner import Servers


@dataclass(frozen=True)
class ChildPlan:
    """A benchmark of a series. `run` plans and runs it, and is called with whether it continues with what is in its folder: plans hold
    datasets and servers, which those of all children together should not. It returns why the benchmark was left out, None if it was not.
    """

    name: str
    folder: str
    run: Callable[[bool], str | None]


@dataclass(frozen=True)
class SeriesPlan:
    """The children of a series, in order, and whether one that fails does not end the others."""

    name: str
    title: str
    of: Literal["datasets", "parts"]
    children: Sequence[ChildPlan]
    continue_on_error: bool = False
    budget: Budget | None = None


class SeriesBenchmark(Benchmark[SeriesPlan, SeriesManifest, ManifestWriter[SeriesManifest]]):
    """Runs children one after the other. Those that were not begun before begin now."""

    manifest = SeriesManifest
    writer = ManifestWriter
    can_resume = True

    def describe(self, plan: SeriesPlan, servers: Servers) -> Description[PlannedSeries]:
        """The children."""
        del servers
        folders = {child.name: child.folder for child in plan.children}
        return Description(plan.title, PlannedSeries(name=plan.name, of=plan.of, parts=folders, budget=plan.budget))

    def check_same(self, before: SeriesManifest, after: SeriesManifest, folder: Path) -> SeriesManifest:
        """The manifest of what is done now, which may be of other parts of the study. Raises UsageError for another study."""
        for key in ("name", "of"):
            if getattr(before.plan, key) != getattr(after.plan, key):
                raise UsageError(
                    f"--resume: {folder} was begun with another {key}; give the same arguments, or another folder with --out"
                )
        return after

    def execute(self, plan: SeriesPlan, context: RunContext[ManifestWriter[SeriesManifest]]) -> None:
        """Runs the children. Raises FailedError if one has failed; when none was begun by then, nothing is left."""
        try:
            _run_children(plan, context)
        except FailedError:
            context.writer.withdraw_if_bare()
            raise


def _run_children(plan: SeriesPlan, context: RunContext[ManifestWriter[SeriesManifest]]) -> None:
    failed: list[str] = []
    left_out: dict[str, str] = {}
    for child in plan.children:
        try:
            why = child.run(has_results(context.folder / child.folder))
            if why is not None:
                left_out[child.name] = why
                context.writer.update_plan(left_out=left_out)
                context.progress.say(f"{child.name} is left out: {why}")
        except DiskFullError:
            raise
        except FailedError as error:
            if not plan.continue_on_error:
                raise
            failed.append(child.name)
            context.progress.warn(f"{child.name} failed: {error}")
    if failed:
        raise FailedError(f"{', '.join(failed)} failed; the causes are above. Continue with --resume --out {context.folder}")
