"""A study of several datasets or parts, summed up: each claim over all of them, and how figures grow with the data."""

from sensorbench.claims import Claim, Measured, common_verdict, judged, measured, not_tested
from sensorbench.dataset.dataset import readings_of
from sensorbench.results import ComparisonResult
from sensorbench.results.manifest import Status
from sensorbench.results.planned import SeriesManifest
from sensorbench.results.summary.claims import JudgedClaim, VerdictOf
from sensorbench.results.summary.comparison import ComparisonSummary, StudySection
from sensorbench.results.summary.envelope import envelope
from sensorbench.results.summary.published import PublishedTable
from sensorbench.results.summary.series import GrowthPoint, SeriesFigures, SeriesPart, SeriesSummary
from sensorbench.studies.published_comparison import published_tables, tables_of_datasets
from sensorbench.studies.registry import STUDIES
from sensorbench.studies.study import Study


def claims_over_parts(study: Study, by: dict[str, Measured], summaries: dict[str, ComparisonSummary]) -> list[JudgedClaim]:
    """Each claim with its verdict, by what was measured in the parts that were run, and by the summary of each."""
    return [_over_parts(claim, study, by, summaries) for claim in study.claims] if by else []


def _over_parts(claim: Claim, study: Study, by: dict[str, Measured], summaries: dict[str, ComparisonSummary]) -> JudgedClaim:
    absent = [part for part in claim.parts if part not in by]
    if absent:
        return not_tested(claim, study, claim.blocked_by or _why_not(claim, absent))
    if len(claim.parts) > 1:
        return judged(claim, study, [by[part] for part in claim.parts])
    if claim.parts:
        return _in_part(claim, summaries[claim.parts[0]])
    return _in_each({part: _in_part(claim, summary) for part, summary in summaries.items()})


def _why_not(claim: Claim, absent: list[str]) -> str:
    if len(claim.parts) == 1:
        return f"part {absent[0]} was not run"
    return f"needs {' and '.join(f'part {part}' for part in absent)}"


def _in_part(claim: Claim, summary: ComparisonSummary) -> JudgedClaim:
    return next(judged_claim for judged_claim in summary.claims if judged_claim.id == claim.id)


def _in_each(of_parts: dict[str, JudgedClaim]) -> JudgedClaim:
    """A claim that names no part, by what each says of it."""
    reasons = "; ".join(f"{part}: {of_part.verdict} ({of_part.reason})" for part, of_part in of_parts.items())
    verdict = common_verdict([of_part.verdict for of_part in of_parts.values()], "differs by part")
    first = next(iter(of_parts.values()))
    return first.model_copy(update={"verdict": verdict, "reason": reasons, "measured": None, "cells": []})


def summarise_series(
    manifest: SeriesManifest, results: dict[str, ComparisonResult], summaries: dict[str, ComparisonSummary]
) -> SeriesSummary:
    """The summary of a series, by results and summaries of those of its comparisons that were begun, by dataset or part."""
    equal = [summary.answers_equal for summary in summaries.values()]
    growth, claims, sections = _of_study(manifest, results, summaries)
    return SeriesSummary(
        **{**envelope(manifest), **_status(manifest, summaries)},
        answers_equal=False if False in equal else None if None in equal or not equal else True,
        warnings=[],
        claims=claims,
        published=_published(manifest, results, summaries),
        result=SeriesFigures(
            name=manifest.plan.name,
            of=manifest.plan.of,
            parts={name: _part(manifest, name, summary) for name, summary in summaries.items()},
            growth=growth,
            sections=sections,
            left_out=manifest.plan.left_out,
        ),
    )


def _status(manifest: SeriesManifest, summaries: dict[str, ComparisonSummary]) -> dict[str, Status | str | None]:
    """Complete when all parts are but those that were left out, also where one was completed by itself later on; else why and how the work ended."""
    unfinished = next((summary for summary in summaries.values() if summary.status != "complete"), None)
    if unfinished is None and summaries and summaries.keys() | manifest.plan.left_out.keys() == manifest.plan.parts.keys():
        return {"status": "complete", "reason": None}
    if manifest.state != "complete":
        return {"status": manifest.state, "reason": manifest.reason}
    return {"status": unfinished.status, "reason": unfinished.reason} if unfinished else {"status": "interrupted", "reason": None}


def _of_study(
    manifest: SeriesManifest, results: dict[str, ComparisonResult], summaries: dict[str, ComparisonSummary]
) -> tuple[list[GrowthPoint], list[JudgedClaim], list[StudySection]]:
    """What follows from all comparisons together. Growth is that with the size of the datasets; parts have none."""
    study = STUDIES.get(manifest.plan.name)
    by = measured(study, results, summaries) if study else {}
    evidence = {name: measurement.evidence for name, measurement in by.items()}
    sections = study.series_sections(evidence, summaries) if study and study.series_sections else []
    if manifest.plan.of == "datasets":
        growth = [row for dataset, summary in summaries.items() for row in _growth(dataset, summary)]
        claims = _claims(summaries)
    else:
        growth, claims = [], claims_over_parts(study, by, summaries) if study else []
    return growth, claims, [section.described() for section in sections]


def _published(
    manifest: SeriesManifest, results: dict[str, ComparisonResult], summaries: dict[str, ComparisonSummary]
) -> list[PublishedTable]:
    """The paper's tables with what all parts measured; of datasets, with what each measured of its size."""
    study = STUDIES.get(manifest.plan.name)
    if study is None:
        return []
    if manifest.plan.of == "datasets":
        return tables_of_datasets([summary.published for summary in summaries.values()])
    return published_tables(study, results, summaries)


def _part(manifest: SeriesManifest, name: str, summary: ComparisonSummary) -> SeriesPart:
    return SeriesPart(
        folder=manifest.plan.parts[name],
        title=summary.title.removeprefix(f"{manifest.title}: "),
        readings=_readings(summary),
        status=summary.status,
        answers_equal=summary.answers_equal,
        failures=summary.result.failures,
        variants=[variant.id for variant in summary.variants],
        operations=summary.result.operations,
        warnings=[caveat.kind for caveat in summary.warnings if caveat.kind != "embedded"],
    )


def _readings(summary: ComparisonSummary) -> int:
    relations = summary.result.dataset["relations"]
    return int(relations[readings_of(relations).relation]["rows"])


def _growth(dataset: str, summary: ComparisonSummary) -> list[GrowthPoint]:
    """Load time, size and latencies of each variant, beside the number of readings."""
    readings, result = _readings(summary), summary.result
    loads = [
        GrowthPoint(dataset=dataset, readings=readings, variant=variant, what=what, value=value)
        for variant, load in result.load.items()
        for what, value in (("load", load.load_s + load.settle_s), ("size", load.size.total_bytes))
        if value is not None
    ]
    latencies = [
        GrowthPoint(dataset=dataset, readings=readings, variant=figure.variant, what=figure.operation, value=interval.value)
        for figure in result.figures
        if (interval := figure.latency_s.get(result.metric)) and interval.value
    ]
    return loads + latencies


def _claims(summaries: dict[str, ComparisonSummary]) -> list[JudgedClaim]:
    first = next(iter(summaries.values()), None)
    return [_over_all(claim, summaries) for claim in first.claims] if first else []


def _over_all(claim: JudgedClaim, summaries: dict[str, ComparisonSummary]) -> JudgedClaim:
    """One claim over all datasets: what all that could test it say, else that they differ."""
    of_each = {
        dataset: next(judged_claim for judged_claim in summary.claims if judged_claim.id == claim.id)
        for dataset, summary in summaries.items()
    }
    found = {
        dataset: VerdictOf(verdict=judged_claim.verdict, reason=judged_claim.reason, measured=judged_claim.measured)
        for dataset, judged_claim in of_each.items()
    }
    together = common_verdict([judged_claim.verdict for judged_claim in of_each.values()], "differs by dataset")
    return claim.model_copy(update={"verdict": together, "reason": "", "measured": None, "cells": [], "of_each": found})
