"""Studies whose parts are levels of one thing that grows: level after level, until databases fail or the budget is over."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_fields
from functools import partial
from pathlib import Path

from sensorbench.app.comparison import fail_if_wrong, run_comparison_and_report
from sensorbench.app.reports import COMPARISON, SERIES
from sensorbench.app.run import Show, run_and_report
from sensorbench.errors import UsageError
from sensorbench.lifecycle import ChildPlan, SeriesBenchmark, SeriesPlan, check_folder
from sensorbench.progress import ProgressReporter
from sensorbench.results import has_results
from sensorbench.results.planned import ComparisonManifest
from sensorbench.results.reader import read_manifest, stored_summary
from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.results.summary.series import SeriesSummary
from sensorbench.runner import Comparison, server_kind
from sensorbench.studies import Study, StudyOptions, plan_study
from sensorbench.studies.budget import budget_of
from sensorbench.studies.levels import breaks_of, levels_before
from sensorbench.studies.run import chosen_parts
from sensorbench.studies.study import Levels


def run_levels(
    study: Study,
    levels: Levels,
    options: StudyOptions,
    folder: Path,
    progress: ProgressReporter,
    show: Show[SeriesSummary],
    show_level: Show[ComparisonSummary],
    *,
    resume: bool,
    replace: bool,
    drop_after: bool,
) -> None:
    """Runs the levels of a study, and writes their reports. A variant that fails at a level is left out of those that follow it.

    Args:
        study: whose parts they are.
        levels: what the study says of all of them.
        options: what the user has chosen. A budget leaves out levels, and changes nothing of those that are measured.
        folder: where each level has a folder.
        progress: reports which level is measured, and which are left out.
        show: given the summary of all levels, and its page.
        show_level: given those of each.
        resume: whether it continues with what is in the folder. Levels that are complete are not measured again.
        replace: whether what sensorbench has at servers of users is replaced.
        drop_after: whether it is removed from there afterwards.

    Raises:
        UsageError: before anything is written.
        InterruptedRunError, FailedError, DiskFullError: after results and reports are on disk.

    """
    budget_s = options.budget if resume else budget_of(options)
    options = at_scale(options, levels)
    check_folder(folder, resume=resume)
    if options.datasets:
        raise UsageError(
            f"--dataset {options.datasets[0]}: the levels of study {study.name} are its datasets; choose some of them by --part"
        )
    names = list(chosen_parts(study, options))
    going = _Levels(study, options, folder, progress, show_level, names, budget_s, replace=replace, drop_after=drop_after)
    if not has_results(folder / names[0]):
        # What is wrong with the options is said before anything is written.
        first = going.plan(names[0])
        staying = next((variant.target.label for variant in first.variants if variant.target.is_url), None)
        if staying is not None and len(names) > 1 and not drop_after:
            raise UsageError(
                f"--target {staying}: each level is loaded where the one before lay; give --drop-after, which removes what sensorbench has loaded there "
                "when a level is over, or name one level by --part"
            )

    def write(folder: Path, _: object) -> tuple[SeriesSummary, Path]:
        # What was cut short is shown, too.
        return SERIES.write(folder, show)

    children = [ChildPlan(name, name, partial(going.run, name)) for name in names]
    plan = SeriesPlan(study.name, study.file.title, "parts", children, study.file.continue_on_error)
    _, page = run_and_report(SeriesBenchmark(), plan, folder, progress, write, resume=resume)
    progress.say(f"all levels: {page}")


def at_scale(options: StudyOptions, levels: Levels) -> StudyOptions:
    """The options with the scale that a study with levels has if nothing else is said; a budget has no part in that."""
    scale = levels.default_scale if options.scale is None else options.scale
    return options.model_copy(update={"scale": scale, "budget": None})


def one_level(study: Study, levels: Levels, options: StudyOptions) -> StudyOptions:
    """The options of a dry run of one level. Raises UsageError if more than one is chosen."""
    if len(names := list(chosen_parts(study, options))) > 1:
        raise UsageError(
            f"--dry-run: study {study.name} begins each of its {len(names)} levels when it knows how long the one before took; name one: --part {names[0]}"
        )
    return at_scale(options, levels)


@dataclass
class _Levels:
    """Levels that are measured one after the other."""

    study: Study
    options: StudyOptions
    folder: Path
    progress: ProgressReporter
    show_level: Show[ComparisonSummary]
    names: Sequence[str]
    budget_s: float | None
    replace: bool
    drop_after: bool
    planned: dict[str, Comparison] = field(default_factory=dict)
    took_s: dict[str, float] = field(default_factory=dict)
    broken: dict[str, set[str]] = field(default_factory=dict)
    begun_s: float = field(default_factory=time.monotonic)

    def plan(self, name: str) -> Comparison:
        """A level with all its variants, one of which is up at a time. Raises UsageError for what makes no sense."""
        if name not in self.planned:
            options = self.options.model_copy(update={"parts": (name,)})
            (part,) = plan_study(self.study, options, self.folder / name, self.progress)
            self.planned[name] = self._one_at_a_time(part.comparison)
        return self.planned[name]

    def run(self, name: str, is_begun: bool) -> str | None:
        """Measures a level. Returns why it was left out; None if it was not."""
        folder = self.folder / name
        if is_begun and read_manifest(folder, ComparisonManifest).status == "complete":
            self.progress.say(f"{name}: measured before, not repeated")
            return None
        before = list(levels_before(self.study, name, self.names))
        if why := self._why_not(before):
            return why
        try:
            comparison = self.plan(name)
        except UsageError as error:
            if not self.took_s and not is_begun:
                raise
            return str(error)
        broken = self._broken_at(before)
        wanted = {variant.id for variant in read_manifest(folder, ComparisonManifest).variants} if is_begun else None
        variants = [
            variant for variant in comparison.variants if (variant.id not in broken if wanted is None else variant.id in wanted)
        ]
        if not variants:
            return (
                f"none of the variants is left: {', '.join(f'{variant} broke at {level}' for variant, level in broken.items())}"
            )
        self._measure(name, with_fields(comparison, variants=variants), is_begun=is_begun)
        return None

    def _measure(self, name: str, comparison: Comparison, *, is_begun: bool) -> None:
        folder, readings, begun_s = self.folder / name, comparison.dataset.describe().readings, time.monotonic()
        self.progress.say(
            f"{comparison.title}: {readings:,} readings; variants: {len(comparison.variants)}, results go to {folder}"
        )
        summary, _ = run_comparison_and_report(
            comparison, folder, self.progress, self.show_level, resume=is_begun, replace=self.replace, drop_after=self.drop_after
        )
        self.took_s[name], self.broken[name] = time.monotonic() - begun_s, set(breaks_of(summary))
        # A dataset of many rows, and its workbench, are of no use any more.
        self.planned.pop(name, None)
        if summary.answers_equal is False:
            fail_if_wrong(summary)

    def _why_not(self, before: Sequence[str]) -> str:
        """Why a level is not begun: the one before was not, or it would not end within the budget. Empty where it is."""
        if not before:
            over = self.budget_s is not None and self.took_s and self._left_s() <= 0.0
            return "the budget is used up" if over else ""
        if not has_results(self.folder / before[0]):
            return f"{before[0]}, which it follows, was left out"
        expected_s = self._expected_s(before)
        if self.budget_s is None or expected_s <= self._left_s():
            return ""
        return f"it would take about {expected_s:,.0f} s, and {max(0.0, self._left_s()):,.0f} s of the budget are left"

    def _expected_s(self, before: Sequence[str]) -> float:
        """What a level takes: as many times as long as the one before as that took of the one before it, and at least as long."""
        known = [self.took_s[name] for name in before[:2] if name in self.took_s]
        growth = max(1.0, known[0] / known[1]) if len(known) > 1 else 1.0
        return known[0] * growth if known else 0.0

    def _left_s(self) -> float:
        return (self.budget_s or 0.0) - (time.monotonic() - self.begun_s)

    def _broken_at(self, before: Sequence[str]) -> dict[str, str]:
        """The variants that failed at a level before, and at which."""
        return {variant: name for name in before for variant in self._broken_in(name)}

    def _broken_in(self, name: str) -> set[str]:
        """The variants that failed at one level, which may have been measured by an earlier process."""
        folder = self.folder / name
        if name not in self.broken and has_results(folder):
            self.broken[name] = set(breaks_of(stored_summary(folder, ComparisonSummary) or COMPARISON.summary(folder)))
        return self.broken.get(name, set())

    def _one_at_a_time(self, comparison: Comparison) -> Comparison:
        """The comparison with one server up at a time, unless all of them are servers that stay."""
        if all(server_kind(variant) == "kept up" for variant in comparison.variants):
            return comparison
        # The levels are compared, not how much a server differs from one start to the next.
        repetitions = comparison.workload.repetitions
        blocks = self.options.over(one_at_a_time=True, repetitions_per_block=repetitions, disk_reserve=None)
        return with_fields(comparison, blocks=blocks)
