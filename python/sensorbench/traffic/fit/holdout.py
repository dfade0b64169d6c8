"""Compares what a fitted experiment sends with the second half of the trace, which it was not fitted to: mix, skew and burstiness."""

from collections.abc import Iterator, Sequence

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sensorbench import _engine
from sensorbench.results.traffic_fit import Check, CheckName, Compared, FittedSchedule, RatePoint, Verdict, overall
from sensorbench.runner import Workload, as_json, build_plan, parameters_of
from sensorbench.schemas import Operations, Schema
from sensorbench.schemas.operations import Number, ParameterSource
from sensorbench.traffic.fit import skew
from sensorbench.traffic.fit.halves import Halves
from sensorbench.traffic.fit.operations import MadeOperation, MadeOperations
from sensorbench.traffic.fit.samplers import Source
from sensorbench.traffic.fit.schedule import WINDOWS_S, dispersion, drawn_arrivals, expected_counts

# A difference that is still equal.
EQUAL = 0.05
# Operations that the engine is asked for, at most.
_MAX_SENT = 200_000
# Of fewer executions nothing is said; of fewer windows neither.
_MIN_EXECUTIONS, _MIN_WINDOWS = 100, 20
_OUTSIDE_99 = 2.576
_MAX_WINDOWS = 1_000_000
# Runs of the schedule, whose dispersion is averaged.
_RUNS = 20
_RATE_POINTS = 120
_COUNTED = "counted"


def _verdict(difference: float, chance: float) -> Verdict:
    """Whether two figures are equal: a difference that is larger, and that chance alone explains, says nothing."""
    if difference <= EQUAL:
        return "holds"
    return "undecided" if difference <= EQUAL + chance else "does not hold"


class SentOperations:
    """What an experiment sends: the engine makes the parameters of its first operations, as it does in a run.

    Args:
        operations: of the experiment.
        schema: with their statements.
        workbench: that has what their parameter sources read.
        workload: the mix.
        count: how many operations.

    """

    def __init__(
        self, operations: Operations, schema: Schema, workbench: duckdb.DuckDBPyConnection, workload: Workload, count: int
    ) -> None:
        counted = _with_parameters(operations)
        self._parameters = parameters_of(counted, list(counted.operation), workbench, "operations")
        self._plan = as_json(build_plan(counted, schema, self._parameters, workload, 0))
        self.count = min(count, _MAX_SENT)

    def of(self, number: int) -> pa.Table:
        """The parameters of all operations of a kind."""
        batch = _engine.parameters(self._plan, self._parameters.readers(), 0, number, None, self.count)
        return pa.Table.from_batches([batch])


def _with_parameters(operations: Operations) -> Operations:
    """The same, each with a parameter, by which the engine counts it. The source comes last, so that the others choose as without it."""
    source = ParameterSource(numbers={_COUNTED: Number(start="SELECT 0", step="SELECT 1")})
    counted = {
        name: operation
        if operation.parameters
        else operation.model_copy(update={"parameters": {_COUNTED: "integer"}, "parameter_sources": [_COUNTED]})
        for name, operation in operations.operation.items()
    }
    sources = {**operations.parameter_source, _COUNTED: source}
    return operations.model_copy(update={"operation": counted, "parameter_source": sources})


def check_fit(halves: Halves, made: MadeOperations, sent: SentOperations, schedule: FittedSchedule) -> list[Check]:
    """All checks of a fit.

    Args:
        halves: of the trace.
        made: the operations of the experiment.
        sent: what it sends.
        schedule: when it sends that, before it is scaled.

    """
    of_operations = {operation.name: sent.of(number) for number, operation in enumerate(made.operations)}
    return [
        _check_mix(halves, made, {name: table.num_rows for name, table in of_operations.items()}),
        _check_skew(halves, made, of_operations),
        _check_burstiness(halves, made, schedule),
    ]


def _check_mix(halves: Halves, made: MadeOperations, sent: dict[str, int]) -> Check:
    """Shares of all statements: of the operations, and of what is left out."""
    first, second = sum(halves.first.values()), sum(halves.second.values())
    kept_share = sum(operation.fitted.share for operation in made.operations)
    all_sent = max(1, sum(sent.values()))
    compared = []
    for operation in made.operations:
        fitted = sent[operation.name] / all_sent * kept_share
        compared.append(_share(operation.name, fitted, halves.second[operation.template.number] / second, all_sent, second))
    kept = sum(halves.second[number] for number in made.templates)
    compared.append(_share("left out", 1 - kept_share, 1 - kept / second, first, second))
    worst = _worst(compared)
    why = (
        f"the largest difference of shares is {worst.difference:.1%}: {worst.subject} has {worst.fitted:.1%} of what is sent "
        f"and {worst.recorded:.1%} of the second half"
    )
    return _check("mix", compared, worst, why)


def _share(subject: str, fitted: float, recorded: float, sent: int, statements: int) -> Compared:
    spread = (fitted * (1 - fitted) / sent + recorded * (1 - recorded) / statements) ** 0.5
    difference, chance = abs(fitted - recorded), _OUTSIDE_99 * spread
    return Compared(
        subject=subject,
        figure="share of statements",
        fitted=fitted,
        recorded=recorded,
        difference=difference,
        chance=chance,
        verdict=_verdict(difference, chance),
    )


def _check_skew(halves: Halves, made: MadeOperations, sent: dict[str, pa.Table]) -> Check:
    compared = [found for operation in made.operations for found in _skew_of(halves, operation, sent[operation.name])]
    if not compared:
        why = f"no parameter has {_MIN_EXECUTIONS} executions or more in what is sent and in the second half"
        has_parameters = any(operation.sources for operation in made.operations)
        return Check(
            name="skew",
            verdict="undecided" if has_parameters else "holds",
            difference=None,
            why=why if has_parameters else "no operation has a parameter",
            compared=[],
        )
    worst = _worst(compared)
    why = (
        f"the largest difference that counts is {worst.difference:.1%}: {worst.figure} of {worst.subject} is {worst.fitted:.1%} of what "
        f"is sent and {worst.recorded:.1%} of the second half"
    )
    return _check("skew", compared, worst, why)


def _skew_of(halves: Halves, operation: MadeOperation, sent: pa.Table) -> Iterator[Compared]:
    """For each parameter source: how often the most frequent values come, and how often those that are frequent in what is sent."""
    table = f"{operation.name}_sent"
    # Not all databases keep the order of rows; a number does.
    halves.register(table, sent.append_column("k", pa.array(np.arange(sent.num_rows))))
    for source in operation.sources:
        executions = min(sent.num_rows, _recorded(halves, operation.name))
        if executions < _MIN_EXECUTIONS:
            continue
        subject = f"{operation.name} ({', '.join(source.fitted.parameters)})"
        ours, theirs = (_value_counts(halves, each, source, executions) for each in (table, operation.name))
        chance = skew.KOLMOGOROV_1 * (2 / executions) ** 0.5
        if source.fitted.choice in {"numbers", "sequential"}:
            repeats = [1 - len(counts) / executions for counts in (ours, theirs)]
            yield _compared(subject, "share of values that came before", repeats[0], repeats[1], chance)
            continue
        yield _curves(subject, ours, theirs, chance)
        hot = _hot_shares(halves, table, operation.name, source)
        if hot is not None:
            yield _compared(subject, "share of the hot half of the values", *hot, chance)


def _recorded(halves: Halves, table: str) -> int:
    return int(halves.workbench.execute(f'SELECT count(*) FROM "{table}" WHERE is_second').fetchall()[0][0])


def _compared(subject: str, figure: str, fitted: float, recorded: float, chance: float) -> Compared:
    difference = abs(fitted - recorded)
    return Compared(
        subject=subject,
        figure=figure,
        fitted=fitted,
        recorded=recorded,
        difference=difference,
        chance=chance,
        verdict=_verdict(difference, chance),
    )


def _value_counts(halves: Halves, table: str, source: Source, executions: int) -> NDArray[np.float64]:
    """How often each value came in this many executions, which are spread over all."""
    listed = ", ".join(source.fitted.parameters)
    is_ours = table.endswith("_sent")
    where, order = ("", "hash(k)") if is_ours else ("WHERE is_second", "hash(us), us")
    query = f'SELECT count(*) AS n FROM (SELECT {listed} FROM "{table}" {where} ORDER BY {order} LIMIT {executions}) GROUP BY {listed}'
    return np.asarray(halves.workbench.execute(query).fetchnumpy()["n"], dtype=np.float64)


def _curves(subject: str, ours: NDArray[np.float64], theirs: NDArray[np.float64], chance: float) -> Compared:
    """Where the curves of the most frequent values are farthest apart."""
    length = max(len(ours), len(theirs))
    curves = [np.pad(skew.rank_curve(each), (0, length - len(each)), constant_values=1.0) for each in (ours, theirs)]
    rank = int(np.abs(curves[0] - curves[1]).argmax())
    return _compared(
        subject, f"share of the {rank + 1:,} most frequent values", float(curves[0][rank]), float(curves[1][rank]), chance
    )


def _hot_shares(halves: Halves, sent: str, recorded: str, source: Source) -> tuple[float, float] | None:
    """The share of executions that have one of the values which make up half of those that are sent; None if all values are alike.

    Which values are hot is seen in every other operation, and how often they are sent in the others, so that what is hot by chance is
    not taken for hot.
    """
    names = source.fitted.parameters
    listed = ", ".join(names)
    # A null is a value as any other.
    same = " AND ".join(f"hot.{name} IS NOT DISTINCT FROM executed.{name}" for name in names)
    halves.workbench.execute(
        f"CREATE OR REPLACE TEMP TABLE hot AS SELECT true AS is_hot, {listed} FROM (SELECT {listed}, n, sum(n) OVER (ORDER BY n DESC, {listed} "
        "ROWS UNBOUNDED PRECEDING) - n AS before, sum(n) OVER () AS whole FROM "
        f'(SELECT {listed}, count(*) AS n FROM "{sent}" WHERE k % 2 = 0 GROUP BY {listed})) WHERE before < whole / 2'
    )
    shares = []
    for table, where in ((sent, "k % 2 = 1"), (recorded, "is_second")):
        found = halves.workbench.execute(
            f'SELECT count(is_hot), count(*) FROM "{table}" AS executed LEFT JOIN hot ON {same} WHERE {where}'
        ).fetchall()[0]
        shares.append(found[0] / max(1, found[1]))
    values = halves.workbench.execute(f'SELECT count(*) FROM (SELECT DISTINCT {listed} FROM "{sent}")').fetchall()[0][0]
    return (shares[0], shares[1]) if values > 1 else None


def _check_burstiness(halves: Halves, made: MadeOperations, schedule: FittedSchedule) -> Check:
    compared = list(_dispersions(halves, made, schedule))
    if not compared:
        why = f"a half of {halves.half_s:.1f} s has too few windows to say how bursty it is"
        return Check(name="burstiness", verdict="undecided", difference=None, why=why, compared=[])
    rate = _rate(halves, made, schedule)
    worst = _worst(compared)
    # A rate is known more exactly than how bursty it is; both count.
    if rate.verdict != "holds" and (worst.verdict == "holds" or rate.verdict == "does not hold"):
        worst = rate
    why = (
        f"the largest difference that counts is {worst.difference:.1%}: {worst.figure} in {worst.subject} is {worst.fitted:.2f} in what "
        f"is sent and {worst.recorded:.2f} in the second half"
    )
    verdict = overall([_decided(compared), rate.verdict])
    return Check(name="burstiness", verdict=verdict, difference=worst.difference, why=why, compared=[*compared, rate])


def _dispersions(halves: Halves, made: MadeOperations, schedule: FittedSchedule) -> Iterator[Compared]:
    """The index of dispersion for windows of each length. Indices are compared relative to the larger of them and 1, which is that of
    independent arrivals.
    """
    for window_s in WINDOWS_S:
        if halves.half_s / window_s > _MAX_WINDOWS:
            continue
        recorded = halves.arrivals(made.templates, window_s, second=True)
        if len(recorded) < _MIN_WINDOWS or recorded.sum() < _MIN_WINDOWS:
            break
        index = dispersion(recorded)
        drawn = [dispersion(drawn_arrivals(schedule, window_s, seed)) for seed in range(_RUNS)]
        fitted = float(np.mean(drawn))
        scale = max(index, fitted, 1.0)
        difference = abs(fitted - index) / scale
        chance = _OUTSIDE_99 * (2 * 2 / (len(recorded) - 1)) ** 0.5 * min(1.0, index / scale)
        yield Compared(
            subject=f"windows of {window_s:g} s",
            figure="the index of dispersion",
            fitted=fitted,
            recorded=index,
            difference=difference,
            chance=chance,
            verdict=_verdict(difference, chance),
        )


def _rate(halves: Halves, made: MadeOperations, schedule: FittedSchedule) -> Compared:
    """The rate of the second half as a whole; by chance it varies as its counts of short windows do."""
    statements = max(1, sum(halves.second[number] for number in made.templates))
    rate, fitted = statements / halves.half_s, schedule.operations / schedule.length_s
    difference = abs(fitted - rate) / rate
    counts = halves.arrivals(made.templates, max(0.1, halves.half_s / _RATE_POINTS), second=True)
    chance = _OUTSIDE_99 * (2 * max(1.0, dispersion(counts)) / statements) ** 0.5
    return Compared(
        subject="the whole half",
        figure="the rate per second",
        fitted=fitted,
        recorded=rate,
        difference=difference,
        chance=chance,
        verdict=_verdict(difference, chance),
    )


def _worst(compared: Sequence[Compared]) -> Compared:
    """The one that a check is decided by: the largest difference of those with its verdict."""
    verdict = _decided(compared)
    return max((each for each in compared if each.verdict == verdict), key=lambda each: each.difference)


def _decided(compared: Sequence[Compared]) -> Verdict:
    """The verdict of a check. Figures that chance alone moves by more than what is still equal can say that the fit does not hold, and
    otherwise count only where there are no others.
    """
    if any(each.verdict == "does not hold" for each in compared):
        return "does not hold"
    exact = min(each.chance for each in compared)
    return overall([each.verdict for each in compared if each.chance <= max(EQUAL, exact)])


def _check(name: CheckName, compared: Sequence[Compared], worst: Compared, why: str) -> Check:
    verdict = _decided(compared)
    return Check(name=name, verdict=verdict, difference=worst.difference, why=why, compared=list(compared))


def rates_of(halves: Halves, made: MadeOperations, schedule: FittedSchedule) -> list[RatePoint]:
    """The rate of the second half, and that of the schedule at the same time of the first, for a chart."""
    window_s = max(0.1, round(halves.half_s / _RATE_POINTS, 1))
    recorded = halves.arrivals(made.templates, window_s, second=True)
    fitted = expected_counts(schedule, window_s)
    return [
        RatePoint(start_s=number * window_s, fitted_per_s=float(ours) / window_s, recorded_per_s=float(theirs) / window_s)
        for number, (ours, theirs) in enumerate(zip(fitted, recorded, strict=False))
    ]
