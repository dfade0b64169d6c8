"""Charts of several clusters that went through the same change, drawn over one another, as the paper has them: its figures 3.1 to 3.4 and 4.2."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import altair as alt
import numpy as np

from sensorbench.report import charts
from sensorbench.results.page import ChartSpec
from sensorbench.results.summary.elasticity import ComparedTransition, ElasticityScore, StableCluster

# How many pieces areas are drawn with.
_PIECES = 400
_SINCE = "time since the change began, s"
_HOW_TIMES = (
    "Each line is a repetition, each point of it a set of requests, and how long that took; lower is faster. At 0 nodes are added. A dotted line is where "
    "the data of a cluster are in place, a dashed one where it is stable again."
)
_HOW_RELATIVE = "The same over the mean set time of the cluster before the change, which is 1: how much worse the change makes it, whatever its speed."
_HOW_A = (
    "Area A of the score, of the first repetition: between the set times and the dashed ramp from the level before to the level after, which a perfect "
    "cluster follows. It ends where the cluster is stable again. Smaller is better."
)
_HOW_B = "Area B of the score, of the first repetition: the standard deviations within measurements until the cluster is stable again. Smaller is better."
_HOW_STABLE = (
    "Each point is the standard deviation of the set times of a window, over their mean. Nothing is done to the clusters meanwhile: how far the points of one "
    "lie apart is chance, or what a database does by itself."
)


class _SetRow(NamedTuple):
    target: str
    run: str
    time_s: float
    duration_s: float
    relative: float


class _MomentRow(NamedTuple):
    target: str
    run: str
    time_s: float


class _AreaRow(NamedTuple):
    target: str
    time_s: float
    curve_s: float
    ramp_s: float
    deviation_s: float
    zero: float


class _WindowRow(NamedTuple):
    target: str
    run: str
    time_s: float
    deviation: float


def set_times(transitions: Sequence[ComparedTransition], colours: Mapping[str, str]) -> ChartSpec:
    """How long sets took around a change, of all repetitions (figure 3.1)."""
    return charts.sized(_lines(transitions, colours, "duration_s", "a request set takes, s"), _HOW_TIMES, height=300)


def relative_times(transitions: Sequence[ComparedTransition], colours: Mapping[str, str]) -> ChartSpec:
    """The same over the level before the change (figure 3.2)."""
    return charts.sized(_lines(transitions, colours, "relative", "set time over that before"), _HOW_RELATIVE, height=300)


def area_a(transitions: Sequence[ComparedTransition], colours: Mapping[str, str]) -> ChartSpec | None:
    """Area A of each target (figure 3.3); None if none has a score."""
    base = _areas(transitions, colours)
    if base is None:
        return None
    y = alt.Y("curve_s:Q", title="a request set takes, s", scale=alt.Scale(zero=True))
    area = base.mark_area(opacity=0.3).encode(y=y, y2=alt.Y2("ramp_s:Q"))
    ramp = base.mark_line(strokeDash=[5, 4], strokeWidth=1.2).encode(y=alt.Y("ramp_s:Q"))
    return charts.sized(area + ramp + base.mark_line(strokeWidth=1.6).encode(y=y), _HOW_A, height=300)


def area_b(transitions: Sequence[ComparedTransition], colours: Mapping[str, str]) -> ChartSpec | None:
    """Area B of each target (figure 3.4); None if none has a score."""
    base = _areas(transitions, colours)
    if base is None:
        return None
    y = alt.Y("deviation_s:Q", title="standard deviation, s", scale=alt.Scale(zero=True))
    area = base.mark_area(opacity=0.3, line=True).encode(y=y, y2=alt.Y2("zero:Q"))
    return charts.sized(area, _HOW_B, height=300)


def deviations(stable: Sequence[StableCluster], colours: Mapping[str, str]) -> ChartSpec:
    """Deviations of windows of a cluster to which nothing is done (figure 4.2)."""
    rows = [
        _WindowRow(cluster.target, cluster.folder, time_s, deviation)
        for cluster in stable
        for time_s, deviation in zip(cluster.time_s, cluster.deviation, strict=True)
    ]
    base = charts.data_of(rows).encode(
        x=alt.X("time_s:Q", title="time, s"),
        y=alt.Y("deviation:Q", title="deviation over mean", scale=alt.Scale(zero=True)),
        color=charts.coloured("target", colours),
        detail=alt.Detail("run:N"),
    )
    return charts.sized(
        base.mark_line(strokeWidth=1.2) + base.mark_point(filled=True, size=24, opacity=1), _HOW_STABLE, height=260
    )


def _lines(
    transitions: Sequence[ComparedTransition], colours: Mapping[str, str], field: str, title: str
) -> alt.LayerChart | alt.FacetChart:
    sets = [row for transition in transitions for row in _set_rows(transition)]
    x = alt.X("time_s:Q", title=_SINCE, scale=alt.Scale(nice=False, padding=8))
    colour = charts.coloured("target", colours)
    base = charts.data_of(sets).encode(x=x, color=colour, detail=alt.Detail("run:N"))
    y = alt.Y(f"{field}:Q", title=title, scale=alt.Scale(zero=True))
    shown = [alt.Tooltip("run:N"), alt.Tooltip("time_s:Q", format=".1f"), alt.Tooltip("duration_s:Q", format=".4~f")]
    points = base.mark_point(filled=True, size=18, opacity=1).encode(y=y, tooltip=shown)
    done = [_MomentRow(of.target, of.folder, of.transfer_s) for of in transitions if of.transfer_s is not None]
    stable = [_MomentRow(of.target, of.folder, total_s) for of in transitions if (total_s := _total_s(of)) is not None]
    moments = [
        charts.data_of(rows).mark_rule(strokeDash=dash).encode(x=alt.X("time_s:Q"), color=colour)
        for rows, dash in ((done, [2, 3]), (stable, [6, 4]))
        if rows
    ]
    return alt.layer(*moments, base.mark_line(strokeWidth=1.4).encode(y=y), points)


def _set_rows(transition: ComparedTransition) -> list[_SetRow]:
    if transition.begun_at_s is None or transition.before is None:
        return []
    times = zip(transition.sets.time_s, transition.sets.duration_s, strict=True)
    return [
        _SetRow(transition.target, transition.folder, time_s - transition.begun_at_s, took_s, took_s / transition.before.mean_s)
        for time_s, took_s in times
    ]


def _total_s(transition: ComparedTransition) -> float | None:
    return transition.stability.by_band.total_s if transition.stability else None


def _areas(transitions: Sequence[ComparedTransition], colours: Mapping[str, str]) -> alt.Chart | None:
    """The rows of areas, of the first repetition of each target that has a score."""
    scored: dict[str, tuple[ComparedTransition, ElasticityScore]] = {}
    for transition in transitions:
        score = transition.stability.by_band.score if transition.stability else None
        if score is not None:
            scored.setdefault(transition.target, (transition, score))
    rows = [row for transition, score in scored.values() for row in _area_rows(transition, score)]
    if not rows:
        return None
    x = alt.X("time_s:Q", title=_SINCE, scale=alt.Scale(nice=False, padding=8))
    return charts.data_of(rows).encode(x=x, color=charts.coloured("target", colours))


def _area_rows(transition: ComparedTransition, score: ElasticityScore) -> list[_AreaRow]:
    at_s, sets = np.linspace(score.bootstrap_at_s, score.stable_at_s, _PIECES), transition.sets
    curve_s, deviation_s = (np.interp(at_s, sets.time_s, values) for values in (sets.duration_s, sets.sd_s))
    ramp_s = np.interp(at_s, at_s[[0, -1]], [score.av1_s, score.av2_s])
    return [
        _AreaRow(transition.target, float(at) - score.bootstrap_at_s, float(curve), float(ramp), float(deviation), 0.0)
        for at, curve, ramp, deviation in zip(at_s, curve_s, ramp_s, deviation_s, strict=True)
    ]
