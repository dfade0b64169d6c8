"""Whether caches were as results say: cold, warmed up, and without a cache of results."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.stats import binomtest

from sensorbench.bundles.checks.problem import Problem, run_name
from sensorbench.results import ComparisonResult, RunResult
from sensorbench.results.latencies import of_kind
from sensorbench.results.latency_blocks import SERVED
from sensorbench.results.manifest import MEASURE, PhaseFigures

WARMUP, RESULT_CACHE = "warm-up", "result cache"
# A warm-up that was cut shorter than this share of its time was none.
_WHOLE = 0.9
# A question that is repeated costs this share of the first time at most where its result lay in a cache: caches of pages save less,
# because the database does its work again.
_CACHED = 0.5
_MIN_REPEATED = 16
_SIGNIFICANCE = 1e-4


def check_warmup(result: ComparisonResult) -> Iterator[Problem]:
    """Runs are as warm as they say: cold ones at a server that was started for them, hot ones after a warm-up."""
    firsts = {(block.variant, min(block.repeats)): block for block in result.blocks if block.repeats}
    for runs in result.runs.values():
        for run in runs:
            warmups = [phase for phase in run.manifest.phase_figures if phase.name != MEASURE]
            temperature = run.manifest.temperature
            if temperature == "cold":
                block = firsts.get((run.manifest.variant.id, run.manifest.repetition))
                if warmups:
                    yield Problem(WARMUP, run_name(run), f"it says cold, but {warmups[0].started:,} operations warmed it up")
                elif block is None or block.server != "started" or block.loaded:
                    yield Problem(WARMUP, run_name(run), "it says cold, but no server was started for it on data that lay there")
            elif temperature == "hot" and run.manifest.status == "complete":
                yield from _hot(run, warmups)
    yield from _planned(result)


def check_result_caches(result: ComparisonResult) -> Iterator[Problem]:
    """Questions that were repeated in a warmed-up run took about as long as the first time."""
    for runs in result.runs.values():
        for run in runs:
            if run.manifest.temperature == "hot" and MEASURE in run.manifest.phases:
                for name in run.manifest.operations:
                    yield from _repeated(run, name)


def _hot(run: RunResult, warmups: list[PhaseFigures]) -> Iterator[Problem]:
    if not warmups or not sum(phase.started for phase in warmups):
        yield Problem(WARMUP, run_name(run), "it says hot, but nothing warmed it up")
        return
    for phase, planned in zip(run.manifest.phase_figures, run.manifest.plan["phases"], strict=True):
        wanted_s = planned.get("duration_s")
        if phase.name != MEASURE and wanted_s and (phase.length_s or 0.0) < _WHOLE * wanted_s:
            yield Problem(WARMUP, run_name(run), f"its warm-up took {phase.length_s or 0.0:.3g} s of {wanted_s:g} s")


def _planned(result: ComparisonResult) -> Iterator[Problem]:
    """All runs have the warm-up of the workload."""
    has = str(result.manifest.plan.workload["warmup"]).lstrip("0.") not in {"", "s", "ms"}
    for runs in result.runs.values():
        for run in runs:
            if has != (len(run.manifest.phases) > 1):
                yield Problem(
                    WARMUP, run_name(run), f"the workload has {'a' if has else 'no'} warm-up, the run {'none' if has else 'one'}"
                )


def _repeated(run: RunResult, name: str) -> Iterator[Problem]:
    """What equal answers took for the first time and later, pair by pair, so that large answers do not stand against small ones."""
    answers, table = run.table("answers"), run.sampled_operations()
    if answers is None or table is None:
        return
    phase, kind = run.manifest.phases.index(MEASURE), run.manifest.operations.index(name)
    given = of_kind(answers, phase, kind).sort_by("k")
    rows = of_kind(table, phase, kind)
    served = rows.filter(pc.is_in(rows["outcome"], SERVED))
    if not given.num_rows or not served.num_rows:
        return
    _, question = np.unique(given["hash"].to_numpy(), return_inverse=True)
    numbers = given["k"].to_numpy().astype(np.int64)
    came_before = _seen_before(run, given, kind)
    took = dict(zip(served["k"].to_pylist(), _service_ns(served), strict=True))
    first: dict[int, float] = {}
    ratios: dict[int, list[float]] = {}
    for place, (number, which) in enumerate(zip(numbers.tolist(), question.tolist(), strict=True)):
        if number not in took:
            continue
        if which not in first:
            first[which] = np.nan if came_before[place] else took[number]
        else:
            ratios.setdefault(which, []).append(took[number] / first[which])
    medians = [float(np.median(found)) for found in ratios.values() if np.isfinite(found).all()]
    if len(medians) < _MIN_REPEATED:
        return
    quicker = sum(ratio < _CACHED for ratio in medians)
    if np.median(medians) < _CACHED and binomtest(quicker, len(medians), 0.5, alternative="greater").pvalue < _SIGNIFICANCE:
        text = (
            f"{len(medians)} questions that were repeated took {np.median(medians):.2g} times as long as the first time (median): "
            "a cache of results, or a warm-up too short to call the run hot; switch the cache off, or warm up longer, and measure again"
        )
        yield Problem(RESULT_CACHE, f"{run_name(run)}, {name}", text)


def _seen_before(run: RunResult, given: pa.Table, kind: int) -> list[bool]:
    """Of each answer, whether an equal one came in the warm-up."""
    answers = run.table("answers")
    phase = run.manifest.phases.index(MEASURE)
    if answers is None or not phase:
        return [False] * given.num_rows
    of_warmup = answers.filter(pc.less(answers["phase"], pa.scalar(phase, answers["phase"].type)))
    hashes = of_warmup.filter(pc.equal(of_warmup["operation"], pa.scalar(kind, of_warmup["operation"].type)))["hash"]
    seen: list[bool] = pc.is_in(given["hash"], hashes.combine_chunks()).to_pylist()
    return seen


def _service_ns(served: pa.Table) -> list[float]:
    took: list[float] = (
        np.maximum(served["end_ns"].to_numpy().astype(np.int64) - served["start_ns"].to_numpy().astype(np.int64), 1)
        .astype(float)
        .tolist()
    )
    return took
