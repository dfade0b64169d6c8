"""A study of several datasets or parts, summed up: each claim over all of them, and how figures grow with the data."""

from dataclasses import asdict
from typing import Any

from sensorbench.dataset.dataset import readings_of
from sensorbench.results import ComparisonResult
from sensorbench.results.series import SeriesManifest
from sensorbench.study.judging import common_verdict, measured
from sensorbench.study.parts import claims_over_parts
from sensorbench.study.registry import STUDIES

FORMAT = 1


def summarise_series(
    manifest: SeriesManifest, results: dict[str, ComparisonResult], summaries: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """The summary of a series, by results and summaries of those of its comparisons that were begun, by dataset or part."""
    equal = [summary["answers_equal"] for summary in summaries.values()]
    is_whole = len(summaries) == len(manifest.parts) and all(one["state"] == "complete" for one in summaries.values())
    return {
        "format": FORMAT,
        "kind": "series",
        "name": manifest.name,
        "title": manifest.title,
        "of": manifest.of,
        "state": "complete" if is_whole else "incomplete",
        "command": next((result.manifest.command for result in results.values()), None),
        "answers_equal": False if False in equal else None if None in equal or not equal else True,
        "parts": {name: _part(manifest, name, summary) for name, summary in summaries.items()},
        **_of_study(manifest, results, summaries),
    }


def _of_study(
    manifest: SeriesManifest, results: dict[str, ComparisonResult], summaries: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """What follows from all comparisons together. Growth is that with the size of the datasets; parts have none."""
    study = STUDIES.get(manifest.name)
    by = measured(study, results, summaries) if study else {}
    evidence = {name: one.with_stand_ins for name, one in by.items()}
    sections = study.series_sections(evidence, summaries) if study and study.series_sections else []
    if manifest.of == "datasets":
        growth = [row for dataset, summary in summaries.items() for row in _growth(dataset, summary)]
        claims = _claims(summaries)
    else:
        growth, claims = [], [claim.model_dump() for claim in claims_over_parts(study, by, summaries)] if study else []
    return {"growth": growth, "claims": claims, "sections": [asdict(section) for section in sections]}


def _part(manifest: SeriesManifest, name: str, summary: dict[str, Any]) -> dict[str, Any]:
    title = summary["title"].removeprefix(f"{manifest.title}: ")
    kept = ("state", "answers_equal", "failures", "settings", "operations", "metric", "version", "created")
    own = {
        "folder": manifest.parts[name],
        "title": title,
        "readings": _readings(summary),
        "warnings": [warning for warning in summary["honesty"]["warnings"] if warning["kind"] != "embedded"],
    }
    return {**own, **{key: summary[key] for key in kept}}


def _readings(summary: dict[str, Any]) -> int:
    relations = summary["dataset"]["relations"]
    return int(relations[readings_of(relations).relation]["rows"])


def _growth(dataset: str, summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Load time, size and latencies of each setting, beside the number of readings."""
    place = {"dataset": dataset, "readings": _readings(summary)}
    loads = [
        {**place, "setting": setting, "what": what, "value": value}
        for setting, load in summary["load"].items()
        for what, value in (("load", load["load_s"] + load["settle_s"]), ("size", load["size"]["total_bytes"]))
        if value is not None
    ]
    latencies = [
        {**place, "setting": figure["setting"], "what": figure["operation"], "value": interval["value"]}
        for figure in summary["figures"]
        if (interval := figure["latency_s"].get(summary["metric"])) and interval["value"]
    ]
    return loads + latencies


def _claims(summaries: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    first = next(iter(summaries.values()), None)
    return [_over_all(claim, summaries) for claim in first["claims"]] if first else []


def _over_all(claim: dict[str, Any], summaries: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """One claim over all datasets: what all that could test it say, else that they differ."""
    of_each = {
        dataset: next(one for one in summary["claims"] if one["id"] == claim["id"]) for dataset, summary in summaries.items()
    }
    kept = ("id", "text", "form", "published")
    return {
        **{key: claim[key] for key in kept},
        "verdict": common_verdict([one["verdict"] for one in of_each.values()], "differs by dataset"),
        "of_each": {
            dataset: {"verdict": one["verdict"], "measured": one["measured"], "reason": one["reason"]}
            for dataset, one in of_each.items()
        },
    }
