"""How a rule is decided: what the measurements say of each comparison that it is made of."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sensorbench.analysis.intervals import CONFIDENCE, MIN_RUNS, Interval, mean_over_runs
from sensorbench.analysis.trends import jonckheere_p, page_p
from sensorbench.claims import rules
from sensorbench.claims.expression import Expression, Floats
from sensorbench.claims.figures import FigureEvidence, NotMeasuredError, RunValues, WindowedSeries
from sensorbench.claims.judgement import NOT_MEASURED, Band, Cell, Judgement, all_of, any_of, weakest

# With fewer arrangements of a window, no extreme can be distinguished from the usual ones at that level.
MIN_ARRANGEMENTS = 20


def decide(all_rules: Sequence[rules.Rule], evidence: FigureEvidence, confidence: float = CONFIDENCE) -> Judgement:
    """What the measurements say of all rules of a claim, which gets the weakest verdict of them, by intervals of this confidence."""
    judgements = [judgement for rule in all_rules if (judgement := _of_rule(rule, evidence, confidence)) is not None]
    if len(judgements) == 1:
        return judgements[0]
    joined = all_of([cell for judgement in judgements for cell in judgement.cells])
    # A rule of which one comparison is enough is one part of the claim, whatever its other comparisons say.
    return replace(joined, verdict=weakest([judgement.verdict for judgement in judgements]))


def _significance(confidence: float) -> float:
    """A trend or an extreme by chance must be rarer than this: as rare as an interval that lies wholly on the wrong side."""
    return round((1.0 - confidence) / 2, 12)


def _of_rule(rule: rules.Rule, evidence: FigureEvidence, base: float) -> Judgement | None:
    """What they say of one rule; None if it is about what was measured, and nothing was."""
    instances = rule.expanded()
    # Of several comparisons one is right by chance more often: Bonferroni.
    confidence = 1.0 - (1.0 - base) / len(instances) if rule.any else base
    cells = [cell for instance in instances for cell in _cells(instance, evidence, confidence)]
    if rule.unless_missing:
        cells = [cell for cell in cells if cell.verdict != "not tested"]
        if not cells:
            return None
    return any_of(cells) if rule.any else all_of(cells)


def _cells(rule: rules.Rule, evidence: FigureEvidence, confidence: float) -> list[Cell]:
    if isinstance(rule, rules.Order):
        return [_cell(pair, evidence, confidence) for pair in rule.pairs()]
    return [_cell(rule, evidence, confidence)]


def _cell(rule: Any, evidence: FigureEvidence, confidence: float) -> Cell:
    """The verdict on one comparison."""
    try:
        return _measured_cell(rule, evidence, confidence)
    except NotMeasuredError as error:
        return Cell(rule.title, "not tested", str(error))


def _measured_cell(rule: Any, evidence: FigureEvidence, confidence: float) -> Cell:
    match rule:
        case rules.Share():
            return _share(rule, evidence, confidence)
        case rules.Count():
            return _count(rule, evidence)
        case rules.Trend():
            return _trend(rule, evidence, confidence)
        case rules.Extreme():
            return _extreme(rule, evidence, confidence)
        case rules.Greater() | rules.Ratio() | rules.Equal() | rules.NoLess() | rules.Threshold():
            (expression,) = rule.expressions
            is_ratio = not isinstance(rule, rules.Threshold)
            interval = evidence.interval(expression, confidence, is_ratio=is_ratio)
            return replace(_by_interval(rule, interval), name=rule.title, is_ratio=is_ratio)
    raise AssertionError(f"no decision for {rule!r}")


def _by_interval(rule: Any, interval: Interval | None) -> Cell:
    """The verdict of an interval."""
    if interval is None or not math.isfinite(interval.value):
        return Cell("", "not tested", NOT_MEASURED)
    published = getattr(rule, "published", None)
    band = band_of(rule)
    if interval.low is None or interval.high is None:
        reason = f"{interval.runs} runs give no interval; at least {MIN_RUNS} are needed (--repetitions {MIN_RUNS})"
        return Cell("", "inconclusive", reason, interval, published, band)
    match rule:
        case rules.Ratio():
            return _ratio(rule, interval, band)
        case rules.Greater():
            at_least = rules.number(rule.at_least)
            said = f"above {at_least:g}, the smallest relevant effect"
        case rules.Equal():
            said = f"within {rules.number(rule.margin):.0%} of equal"
        case rules.NoLess():
            said = f"not below equal by more than {rules.number(rule.margin):.0%}"
        case _:
            said = _limits(rule.above, rule.below)
    return _against(interval, band, said, published)


def _limits(above: float | None, below: float | None) -> str:
    words = [f"above {_plain(above)}" if above is not None else "", f"below {_plain(below)}" if below is not None else ""]
    return " and ".join(filter(None, words))


def _plain(value: float) -> str:
    """A number without an exponent: three digits, or all before the point."""
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"


def band_of(rule: Any) -> Band:
    """What counts as agreement with a rule: where its interval must lie."""
    match rule:
        case rules.Ratio():
            return Band(*rule.band())
        case rules.Greater():
            return Band(rules.number(rule.at_least), None)
        case rules.Equal():
            return Band(1.0 / (1.0 + rules.number(rule.margin)), 1.0 + rules.number(rule.margin))
        case rules.NoLess():
            return Band(1.0 / (1.0 + rules.number(rule.margin)), None)
        case rules.Threshold() | rules.Share():
            return Band(rule.above, rule.below)
    raise AssertionError(f"{rule!r} has no band")


def _against(interval: Interval, band: Band, said: str, published: float | None = None) -> Cell:
    """Inside the band: reproduced; disjoint: not; else inconclusive."""
    low, high = _ends(interval)
    bottom, top = _open(band)
    if bottom < low and high < top:
        return Cell("", "reproduced", f"the interval lies {said}", interval, published, band)
    if high <= bottom or low >= top:
        return Cell("", "not reproduced", f"the interval does not lie {said}", interval, published, band)
    return Cell("", "inconclusive", f"only part of the interval lies {said}", interval, published, band)


def _ends(interval: Interval) -> tuple[float, float]:
    assert interval.low is not None
    assert interval.high is not None
    return interval.low, interval.high


def _open(band: Band) -> tuple[float, float]:
    return -math.inf if band.low is None else band.low, math.inf if band.high is None else band.high


def _ratio(rule: rules.Ratio, interval: Interval, band: Band) -> Cell:
    """Direction and magnitude, judged apart."""
    at_least = rules.number(rule.at_least)
    side = Band(at_least, None) if rule.published > 1.0 else Band(None, 1.0 / at_least)
    towards = "above" if rule.published > 1.0 else "below"
    direction = _against(interval, side, f"{towards} {(side.low or side.high):.4g}, the smallest relevant effect")
    if direction.verdict != "reproduced":
        return replace(direction, published=rule.published, band=band)
    magnitude = _against(interval, band, "")
    low, high = rule.band()
    about = f"{_plain(rule.published)}, which means {_plain(low)} to {_plain(high)}"
    if magnitude.verdict == "reproduced":
        return replace(magnitude, reason=f"direction and magnitude are as published: {about}", published=rule.published)
    if magnitude.verdict == "not reproduced":
        size = "larger" if interval.value > rule.published else "smaller"
        reason = f"the direction is as published, the ratio is {size} than {about}"
    else:
        reason = f"the direction is as published; magnitude undecided: only part of the interval lies about {about}"
    return Cell("", "partly reproduced", reason, interval, rule.published, band)


def _share(rule: rules.Share, evidence: FigureEvidence, confidence: float) -> Cell:
    """By the exact interval of the pooled counts (Clopper and Pearson, Biometrika 26, 1934), or that between runs where it is wider."""
    (expression,) = rule.expressions
    shares = evidence.shares(expression.figures[0])
    if not shares or not sum(total for _, total in shares):
        return Cell(rule.title, "not tested", NOT_MEASURED)
    from scipy.special import betaincinv

    hits, total = (sum(column) for column in zip(*shares, strict=True))
    tail = (1.0 - confidence) / 2
    low = float(betaincinv(hits, total - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, total - hits, 1.0 - tail)) if hits < total else 1.0
    by_run = np.array([count / of for count, of in shares if of])
    if len(by_run) >= MIN_RUNS:
        between_low, between_high = _ends(mean_over_runs(by_run, confidence))
        low, high = min(low, max(0.0, between_low)), max(high, min(1.0, between_high))
    found = Interval(hits / total, low, high, confidence, len(by_run), between_runs=len(by_run) >= MIN_RUNS)
    limits = _limits(rule.above, rule.below)
    return replace(_against(found, band_of(rule), limits), name=rule.title, is_ratio=False)


def _count(rule: rules.Count, evidence: FigureEvidence) -> Cell:
    """An exact number: each run must agree."""
    (expression,) = rule.expressions
    values = [evidence.values(figure) for figure in expression.figures]
    if any(value is None for value in values):
        return Cell(rule.title, "not tested", NOT_MEASURED)
    runs = sorted(set.intersection(*(set(value.by_run) for value in values if value is not None)))
    numbers = [float(expression.evaluate([value.by_run[run] for value in values if value is not None])) for run in runs]
    if not numbers:
        return Cell(rule.title, "not tested", NOT_MEASURED)
    low, high = (-math.inf if rule.min is None else rule.min), (math.inf if rule.max is None else rule.max)
    limits = [f"at least {rule.min:,g}" if rule.min is not None else "", f"at most {rule.max:,g}" if rule.max is not None else ""]
    counted = ", ".join(f"{value:,g}" for value in dict.fromkeys(numbers))
    is_so = all(low <= value <= high for value in numbers)
    reason = f"counted {counted}; claimed: {' and '.join(filter(None, limits))}"
    return Cell(rule.title, "reproduced" if is_so else "not reproduced", reason)


def _trend(rule: rules.Trend, evidence: FigureEvidence, confidence: float) -> Cell:
    """By a test for an ordered alternative, and by the ratio of the last level to the first.

    Levels that were measured side by side are ranked run by run (Page, JASA 58, 1963), others all together (Jonckheere, Biometrika 41, 1954).
    """
    expressions = rule.expressions
    levels = evidence.levels(expressions)
    if levels is None:
        return Cell(rule.title, "not tested", NOT_MEASURED)
    ratio = Expression.parse(f"({expressions[-1]}) / ({expressions[0]})")
    interval = evidence.interval(ratio, confidence)
    if interval is None:
        return Cell(rule.title, "not tested", NOT_MEASURED)
    at_least, band = rules.number(rule.at_least), Band(rules.number(rule.at_least), None)
    if min(len(level.by_run) for level in levels) < MIN_RUNS:
        reason = f"{interval.runs} runs show no trend; at least {MIN_RUNS} are needed (--repetitions {MIN_RUNS})"
        return Cell(rule.title, "inconclusive", reason, interval, band=band)
    rises, falls = (_p_of_trend(of, paired=len({level.group for level in levels}) == 1) for of in (levels, levels[::-1]))
    shown = f"the last level over the first, in a trend over {len(levels)} levels (p = {min(rises, 1.0):.2g})"
    if rises <= _significance(confidence) and interval.value >= at_least:
        return Cell(rule.title, "reproduced", shown, interval, band=band)
    if falls <= _significance(confidence) or (interval.high is not None and interval.high <= at_least):
        return Cell(rule.title, "not reproduced", shown, interval, band=band)
    return Cell(rule.title, "inconclusive", shown, interval, band=band)


def _p_of_trend(levels: Sequence[RunValues], *, paired: bool) -> float:
    if paired:
        runs = sorted(set.intersection(*(set(level.by_run) for level in levels)))
        if len(runs) >= MIN_RUNS:
            return page_p(np.array([[level.by_run[run] for level in levels] for run in runs]))
    return jonckheere_p([np.array(list(level.by_run.values())) for level in levels])


def _extreme(rule: rules.Extreme, evidence: FigureEvidence, confidence: float) -> Cell:
    """The extreme within the window against those of all windows of equal length before it, run by run; each run is one vote, and its
    p-values are combined by Fisher's method.
    """
    (expression,) = rule.expressions
    series = evidence.series(expression.figures[0])
    if not series:
        return Cell(rule.title, "not tested", NOT_MEASURED)
    of = np.max if rule.side == "max" else np.min
    sign = 1.0 if rule.side == "max" else -1.0
    before = [_extremes_before(of_run, of) for of_run in series]
    if min(map(len, before)) < MIN_ARRANGEMENTS:
        reason = f"the time before the change has {min(map(len, before))} windows of that length; at least {MIN_ARRANGEMENTS} are needed"
        return Cell(rule.title, "inconclusive", reason)
    p_values = [
        (1 + int(np.sum(sign * extremes >= sign * of(of_run.window)))) / (1 + len(extremes))
        for of_run, extremes in zip(series, before, strict=True)
    ]
    from scipy import stats

    p = float(stats.combine_pvalues(p_values, method="fisher").pvalue)
    values = np.array([of(of_run.window) for of_run in series])
    typical = np.array([float(np.median(extremes)) for extremes in before])
    factor = float(np.exp(np.mean(np.log(values / typical)))) ** sign
    at_least = rules.number(rule.at_least)
    reason = f"× {factor:.3g} of what such windows usually have (p = {p:.2g})"
    is_rare = p <= _significance(confidence)
    is_there = is_rare and factor >= at_least
    is_absent = not is_rare and factor < at_least
    agrees, contradicts = (is_absent, is_there) if rule.absent else (is_there, is_absent)
    verdict = "reproduced" if agrees else "not reproduced" if contradicts else "inconclusive"
    return Cell(rule.title, verdict, reason, published=rule.published)  # type: ignore[arg-type]


def _extremes_before(series: WindowedSeries, of: Callable[..., Any]) -> Floats:
    """The extremes of all windows of the window's length in the series before it, in a circle."""
    length = len(series.window)
    before = series.before
    if not length or len(before) < length:
        return np.array([])
    circle = np.concatenate([before, before[: length - 1]])
    return np.asarray(of(np.lib.stride_tricks.sliding_window_view(circle, length), axis=1))
