"""What the report of the layouts study has to itself: which layout serves which access pattern best on each system, and what it takes."""

from itertools import groupby
from typing import Any

from sensorbench.study.study import Column, Evidence, Section

Figure = dict[str, Any]


def series_sections(parts: dict[str, Evidence], summaries: dict[str, dict[str, Any]]) -> list[Section]:
    """The sections of the page of all parts."""
    del parts
    return [_patterns(summaries), _sizes(summaries)]


def _patterns(summaries: dict[str, dict[str, Any]]) -> Section:
    rows = [[part, *row] for part, summary in summaries.items() for row in _of_part(summary)]
    return Section(
        "Which layout for which question",
        "For each access pattern and system the fastest of its layouts that were measured, and how many times as long the slowest takes. Verdicts, "
        "with intervals, are on the page of each part: where a layout is not known to be slower than the fastest, that is said there.",
        [
            Column("part"),
            Column("question"),
            Column("system"),
            Column("fastest layout", "setting"),
            Column("mean", "duration_s"),
            Column("from", "duration_s"),
            Column("to", "duration_s"),
            Column("slowest layout", "setting"),
            Column("times as long", "ratio"),
            Column("layouts"),
        ],
        rows,
    )


def _of_part(summary: dict[str, Any]) -> list[list[Any]]:
    """One row for each operation and system of a part, in the order of both. What gave wrong answers has no place."""
    systems = {setting["id"]: setting["system"] or setting["database"] for setting in summary["settings"]}
    excluded = {ranking["operation"] for ranking in summary["rankings"] if ranking["excluded"]}
    known = [
        figure
        for figure in summary["figures"]
        if figure["operation"] not in excluded and _mean(figure) is not None and not _writes_several(figure, summary)
    ]
    order = list(dict.fromkeys(systems.values()))
    known.sort(
        key=lambda figure: (list(summary["operations"]).index(figure["operation"]), order.index(systems[figure["setting"]]))
    )
    found = []
    for (operation, system), group in groupby(known, key=lambda figure: (figure["operation"], systems[figure["setting"]])):
        figures = sorted(group, key=_value)
        found.append([summary["operations"][operation]["title"], system, *_ends(figures)])
    return found


def _ends(figures: list[Figure]) -> list[Any]:
    """The fastest with its interval, and the slowest if there is another."""
    first, last = figures[0], figures[-1]
    mean = first["latency_s"]["mean"]
    slowest = [last["setting"], _value(last) / _value(first)] if last is not first else [None, None]
    return [first["setting"], mean["value"], mean["low"], mean["high"], *slowest, len(figures)]


def _writes_several(figure: Figure, summary: dict[str, Any]) -> bool:
    """Whether an operation writes more readings in this setting than in others, so that its latency is that of more."""
    setting = next(setting for setting in summary["settings"] if setting["id"] == figure["setting"])
    return int(setting["statements"][figure["operation"]].get("readings", 1)) > 1


def _mean(figure: Figure) -> float | None:
    value: float | None = (figure["latency_s"].get("mean") or {}).get("value")
    return value


def _value(figure: Figure) -> float:
    return _mean(figure) or 0.0


def _sizes(summaries: dict[str, dict[str, Any]]) -> Section:
    """Each layout once, by its first part. Parts on other data than the first one say something else."""
    dataset = next(iter(summaries.values()))["dataset"]["name"]
    rows: dict[str, list[Any]] = {}
    for summary in (one for one in summaries.values() if one["dataset"]["name"] == dataset):
        for setting, load in summary["load"].items():
            rows.setdefault(setting, _size(setting, load))
    return Section(
        "What a reading takes",
        "Bytes after loading and settling for all that a layout keeps, its repetitions and counters too, divided by the readings (in memory, for Redis); "
        "the largest row (partition), where the server tells it; and readings a second until everything was loaded and settled.",
        [
            Column("layout", "setting"),
            Column("bytes a reading", "bytes"),
            Column("largest row", "bytes"),
            Column("loaded a second", "count"),
        ],
        list(rows.values()),
    )


def _size(setting: str, load: dict[str, Any]) -> list[Any]:
    size, readings, seconds = load["size"]["total_bytes"], load["readings"], load["load_s"] + load["settle_s"]
    largest = max((load["size"].get("largest_partitions") or {}).values(), default=None)
    return [setting, size / readings if size and readings else None, largest, readings / seconds if seconds else None]
