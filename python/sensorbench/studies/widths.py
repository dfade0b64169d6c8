"""Widths of rows that a dataset cannot show: those variants are refused, each with the arithmetic, so that the others run."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from datetime import UTC

from sensorbench.dataset import Dataset
from sensorbench.errors import UsageError
from sensorbench.progress import ProgressReporter
from sensorbench.runner import Comparison, Variant, sampling_interval_of
from sensorbench.schemas import RowWidth, Timelines


def timelines_of(dataset: Dataset) -> Timelines | None:
    """The timelines of a dataset; None if it has no times."""
    described = dataset.describe()
    if described.first_time is None or described.last_time is None:
        return None
    with dataset.connect() as workbench:
        sampling = sampling_interval_of(workbench, dataset.scale)
    first_us, last_us = (
        round(time.replace(tzinfo=UTC).timestamp() * 1e6) for time in (described.first_time, described.last_time)
    )
    return Timelines(first_us, (last_us - first_us) // sampling.step_us + 1, sampling)


def refused_widths(variants: Sequence[Variant], timelines: Timelines) -> dict[str, str]:
    """Variants whose rows cannot be as wide as meant, or are as wide as those of another variant, with why: by id."""
    refused: dict[str, str] = {}
    alike: dict[Hashable, tuple[str, RowWidth]] = {}
    for variant in variants:
        width = variant.schema.on(timelines.sampling).row_width()
        if width is None:
            continue
        if why := width.why_not_on(timelines):
            refused[variant.id] = why
            continue
        widest = width.widest(timelines)
        first_id, first = alike.setdefault(_but_for_width(variant, width, widest), (variant.id, width))
        if first.wanted != width.wanted:
            refused[variant.id] = (
                f"at scale {timelines.sampling.scale:g} its rows of {width.wanted} have {widest:,} readings, as many as the rows of "
                f"{first.wanted} of {first_id}; a larger --scale makes them differ"
            )
    return refused


def _but_for_width(variant: Variant, width: RowWidth, widest: int) -> Hashable:
    """What two variants share that store the same in rows of the same width, whatever the schema calls it."""
    others = tuple(sorted((name, value) for name, value in variant.schema.parameters.items() if name not in width.parameters))
    target = variant.target
    return target.server, target.options, target.text, variant.schema.path, others, variant.concurrency, widest


def without_refused(comparison: Comparison, reporter: ProgressReporter) -> Comparison:
    """The comparison without variants whose widths its dataset cannot show; says which. Raises UsageError if none is left."""
    if not any(variant.schema.needs_sampling_interval for variant in comparison.variants):
        return comparison
    timelines = timelines_of(comparison.dataset)
    refused = refused_widths(comparison.variants, timelines) if timelines else {}
    for variant, why in refused.items():
        reporter.say(f"{variant} is refused: {why}")
    kept = [variant for variant in comparison.variants if variant.id not in refused]
    if not kept:
        raise UsageError(
            f"no variant makes sense on {comparison.dataset.name}; {next(iter(refused))}: {next(iter(refused.values()))}"
        )
    return replace(comparison, variants=kept, refused=refused)
