"""What a gate's runs say: each operation at each look, and all of them together."""

import math
from collections.abc import Sequence
from typing import cast

import numpy as np

from sensorbench.analysis.gate import (
    GateLook,
    LookLevels,
    Word,
    control_differs,
    decidable_margin,
    decide,
    detectable,
    look_levels,
)
from sensorbench.analysis.intervals import Interval, contrast_interval, ratio_interval
from sensorbench.analysis.sample import Sample
from sensorbench.app.compare import complete_runs
from sensorbench.benchmarks.comparison import sample_of
from sensorbench.report import formatting
from sensorbench.results import ComparisonResult, RunResult
from sensorbench.results.summary.claims import MeasuredFigure
from sensorbench.results.summary.gate import GateOperation

# The labels of the variants of a gate, in the order in which they are planned.
SIDES = ("base", "base again", "head")
# Smaller ratios are shown in percent.
_IN_PERCENT = 2.0
# With fewer repetitions nothing is known of what lies between them.
_MIN_NOISE_RUNS = 3


def gate_operations(result: ComparisonResult, looks: Sequence[int], margin: float) -> list[GateOperation]:
    """What the runs until now say of each operation.

    Args:
        result: the comparison of base, base again and head.
        looks: after how many repetitions is looked, rising; the last is all that may be made.
        margin: share by which head may be slower.

    """
    operations = list(result.manifest.plan.operations)
    levels = look_levels(looks, len(operations))
    return [_operation(result, operation, levels, margin) for operation in operations]


def decided(operations: Sequence[GateOperation]) -> bool:
    """Whether nothing that is measured later changes the answer."""
    verdicts = {operation.verdict for operation in operations}
    return "slower" in verdicts or verdicts == {"not slower"}


def overall(operations: Sequence[GateOperation], margin: float, *, is_over_budget: bool) -> tuple[Word, str]:
    """The verdict of all operations together, and why."""
    by_verdict = {word: [each for each in operations if each.verdict == word] for word in ("slower", "undecided", "not slower")}
    if slower := by_verdict["slower"]:
        return "slower", "; ".join(f"{each.operation} is {_slower(each.ratio.value)}" for each in slower)
    if undecided := by_verdict["undecided"]:
        until = "within the budget" if is_over_budget else "within the repetitions"
        return "undecided", f"not decidable {until}: " + "; ".join(f"{each.operation}: {each.reason}" for each in undecided)
    return "not slower", f"no operation is slower by {formatting.percent(margin)} or more"


def _slower(ratio: float | None) -> str:
    if ratio is not None and ratio < _IN_PERCENT:
        return f"{formatting.percent(ratio - 1.0)} slower"
    return f"{formatting.times(ratio)} as slow"


def _operation(result: ComparisonResult, operation: str, levels: Sequence[LookLevels], margin: float) -> GateOperation:
    runs = [complete_runs(result, variant.id) for variant in result.manifest.variants]
    made = min(map(len, runs))
    metric = result.manifest.plan.metric
    look: GateLook | None = None
    word: Word = "undecided"
    known: LookLevels | None = None
    samples: list[Sample] = []
    for level in levels:
        if level.runs > made:
            break
        found = [sample_of(of_side[: level.runs], operation) for of_side in runs]
        if any(sample is None for sample in found):
            break
        samples, known = cast("list[Sample]", found), level
        look = _look(samples, metric, level)
        word = decide(look, margin)
        if word != "undecided":
            break
    if look is None or known is None:
        return _nothing(operation, made)
    deviation = _control_deviation([of_side[: known.runs] for of_side in runs[:2]], operation, metric)
    base_s, _, head_s = (sample.figure(metric) for sample in samples)
    at_end = None if deviation is None else decidable_margin(deviation, levels[-1])
    return GateOperation(
        operation=operation,
        verdict=word,
        reason=_reason(word, look, margin, at_end),
        runs=known.runs,
        base_s=base_s,
        head_s=head_s,
        ratio=_measured(look.slower if word == "slower" else look.not_slower),
        control=_measured(look.control),
        noise=None if deviation is None else math.expm1(deviation),
        detectable=None if deviation is None else detectable(deviation, known, margin),
        decidable_margin=at_end,
    )


def _look(samples: Sequence[Sample], metric: str, level: LookLevels) -> GateLook:
    base, again, head = samples
    contrast = [(head, 1.0), (base, -0.5), (again, -0.5)]
    return GateLook(
        slower=contrast_interval(contrast, metric, confidence=level.slower),
        not_slower=contrast_interval(contrast, metric, confidence=level.not_slower),
        control=ratio_interval(again, base, metric, confidence=level.not_slower),
    )


def _control_deviation(runs: Sequence[Sequence[RunResult]], operation: str, metric: str) -> float | None:
    """Standard deviation of the logarithm of base again over base, between repetitions; None if too little is known."""
    figures = []
    for of_side in runs:
        samples = [sample_of([run], operation) for run in of_side]
        figures.append([math.nan if sample is None else sample.figure(metric) for sample in samples])
    logs = np.log(np.array(figures[1])) - np.log(np.array(figures[0]))
    return float(logs.std(ddof=1)) if len(logs) >= _MIN_NOISE_RUNS and np.isfinite(logs).all() else None


def _reason(word: Word, look: GateLook, margin: float, at_end: float | None) -> str:
    if word == "slower":
        return f"the interval lies above 1, and the ratio is beyond {formatting.percent(margin)}"
    if word == "not slower":
        return f"the interval ends below {1.0 + margin:.2f}"
    if control_differs(look.control, margin):
        return f"base differs from itself by {formatting.percent(abs(look.control.value - 1.0))} in this session"
    if at_end is not None and at_end > margin:
        return f"the noise of this session allows a decision at a margin of {formatting.percent(at_end)}, and the margin is {formatting.percent(margin)}"
    return f"the interval has both 1 and {1.0 + margin:.2f} in it, or the ratio lies within the margin"


def _measured(found: Interval) -> MeasuredFigure:
    return MeasuredFigure(
        value=found.value,
        low=found.low,
        high=found.high,
        confidence=found.confidence,
        runs=found.runs,
        between_runs=found.between_runs,
    )


def _nothing(operation: str, made: int) -> GateOperation:
    nothing = MeasuredFigure(value=None, low=None, high=None)
    return GateOperation(
        operation=operation,
        verdict="undecided",
        reason="too few repetitions came to their end",
        runs=made,
        base_s=None,
        head_s=None,
        ratio=nothing,
        control=nothing,
        noise=None,
        detectable=None,
        decidable_margin=None,
    )
