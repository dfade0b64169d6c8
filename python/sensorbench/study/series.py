"""A study of several datasets, summed up: each claim over all of them, and how figures grow with the data."""

from typing import Any

from sensorbench.dataset.dataset import readings_of
from sensorbench.results.series import SeriesManifest

FORMAT = 1
_TESTED = {"holds", "does not hold", "no difference seen", "inconclusive"}


def summarise_series(manifest: SeriesManifest, summaries: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The summary of a series, by the summaries of those of its parts that have results, by dataset."""
    equal = [summary["answers_equal"] for summary in summaries.values()]
    is_whole = len(summaries) == len(manifest.parts) and all(one["state"] == "complete" for one in summaries.values())
    return {
        "format": FORMAT,
        "kind": "series",
        "name": manifest.name,
        "title": manifest.title,
        "state": "complete" if is_whole else "incomplete",
        "answers_equal": False if False in equal else None if None in equal or not equal else True,
        "parts": {dataset: _part(manifest.parts[dataset], summary) for dataset, summary in summaries.items()},
        "growth": [row for dataset, summary in summaries.items() for row in _growth(dataset, summary)],
        "claims": _claims(summaries),
    }


def _part(folder: str, summary: dict[str, Any]) -> dict[str, Any]:
    kept = ("state", "answers_equal", "failures", "settings", "operations", "metric", "version", "created")
    return {"folder": folder, "readings": _readings(summary), **{key: summary[key] for key in kept}}


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
    words = {one["verdict"] for one in of_each.values() if one["verdict"] in _TESTED} or {claim["verdict"]}
    kept = ("id", "text", "form", "published")
    return {
        **{key: claim[key] for key in kept},
        "verdict": words.pop() if len(words) == 1 else "differs by dataset",
        "of_each": {
            dataset: {"verdict": one["verdict"], "measured": one["measured"], "reason": one["reason"]}
            for dataset, one in of_each.items()
        },
    }
