"""Fits where the parameters of an operation come from, in the words of operation files: what values there are, and how they are chosen."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sensorbench.dataset.dataset import VALUES_PREFIX
from sensorbench.results.traffic_fit import Choice, FittedSource
from sensorbench.schemas.operations import AnyChoice, Number, ParameterSource
from sensorbench.schemas.operations import Choice as SkewedChoice
from sensorbench.schemas.types import ValueType
from sensorbench.traffic.fit import skew
from sensorbench.traffic.fit.halves import Halves

# With fewer executions nothing is fitted: recorded values come again.
_MIN_EXECUTIONS = 50
# Executions whose values are kept, where they follow no law that is known; and values that are chosen from at most.
_MAX_KEPT = 50_000
_MAX_VALUES = 1_000_000
# Executions of each value, or the share of the values that there seem to be, from which on those that were seen are taken for all.
_EXECUTIONS_OF_EACH, _MIN_SEEN = 5, 0.8
_MAX_DECIMALS = 6
# Beginnings, and lengths, of ranges; and how closely an end must follow a beginning.
_MAX_SIDE, _MIN_CORRELATION = 500, 0.3
# How much more often two pairs of values are equal than if they were independent, and of how many equal pairs that is said.
_MIN_DEPENDENCE, _MIN_EQUAL_PAIRS = 0.1, 30
_TOLERANCE = 0.01
_MIN_RISING = 0.9


@dataclass(frozen=True)
class Parameter:
    """A parameter of an operation; `column` is the table's column that its values are of, where data show that."""

    name: str
    type: ValueType
    column: tuple[str, str] | None = None


@dataclass(frozen=True)
class Group:
    """Parameters that are drawn together: those that depend on one another; those that are always this much more than the first; and the
    end of a range that begins with the first, whose length varies.
    """

    parameters: tuple[Parameter, ...]
    followers: tuple[tuple[Parameter, int], ...] = ()
    end: Parameter | None = None

    @property
    def names(self) -> list[str]:
        """Of all parameters."""
        followers = [follower.name for follower, _ in self.followers]
        return [*(parameter.name for parameter in self.parameters), *followers, *([self.end.name] if self.end else [])]


@dataclass(frozen=True)
class Source:
    """A parameter source, what is said of it, and the rows of the relation that it needs besides the tables."""

    name: str
    source: ParameterSource
    fitted: FittedSource
    relation: str | None = None
    rows: pa.Table | None = None


@dataclass(frozen=True)
class _Domain:
    """The values that there are, as SQL with the column v; `words` says what they are."""

    query: str
    size: int
    words: str


class SourceFitter:
    """Fits the parameter sources of one operation, whose executions are in a table of the workbench with a column for each parameter."""

    def __init__(self, halves: Halves, table: str, operation: str, *, writes: bool) -> None:
        self._halves, self._table, self._operation, self._writes = halves, table, operation, writes

    def fit(self, group: Group) -> Source:
        """The source of the parameters of a group."""
        name = f"{self._operation}_{group.parameters[0].name}"
        counts = self._counts(group)
        executions = int(counts.sum())
        is_single = len(group.parameters) == 1
        if group.end is not None:
            return self._ranges(name, group, group.end)
        found: Source | None = None
        if len(counts) > 1 and executions >= _MIN_EXECUTIONS:
            if is_single and group.parameters[0].type in {"integer", "timestamp"}:
                found = self._new_each_time(name, group, counts)
            if found is None and is_single:
                found = self._of_domain(name, group, counts)
            if found is None:
                found = self._of_seen(name, group, counts)
        return found or self._recorded(name, group, executions, len(counts))

    def _rows(self, query: str) -> dict[str, NDArray[np.float64]]:
        return self._halves.workbench.execute(query).fetchnumpy()

    def _counts(self, group: Group) -> NDArray[np.float64]:
        listed = ", ".join(parameter.name for parameter in group.parameters)
        return self._rows(f'SELECT count(*) AS n FROM "{self._table}" WHERE NOT is_second GROUP BY {listed}')["n"].astype(
            np.float64
        )

    def _in_order(self, parameter: Parameter, decimals: int = 0) -> NDArray[np.int64]:
        """The values of a parameter in the order in which they came: times in µs, numbers in units of their last decimal."""
        value = f"round({parameter.name} * {10**decimals})" if parameter.type == "double" else parameter.name
        value = f"epoch_us({value})" if parameter.type == "timestamp" else value
        query = f'SELECT {value} AS v FROM "{self._table}" WHERE NOT is_second AND {parameter.name} IS NOT NULL ORDER BY us'
        return np.asarray(self._rows(query)["v"]).astype(np.int64)

    def _new_each_time(self, name: str, group: Group, counts: NDArray[np.float64]) -> Source | None:
        """Keys that rise: each comes once, and is greater than the one before."""
        (parameter,) = group.parameters
        if counts.max() > 1:
            return None
        steps = np.diff(self._in_order(parameter))
        if (steps > 0).mean() < _MIN_RISING:
            return None
        if not self._writes or group.followers:
            rows = self._select(group, "ORDER BY us", _MAX_KEPT)
            return self._from_rows(name, group, rows, "sequential", None, "values that rise, in their order")
        step = int(np.gcd.reduce(np.abs(steps)))
        last = f'SELECT max({parameter.name}) AS v FROM "{self._table}" WHERE NOT is_second'
        value = self._halves.workbench.execute(last).fetchall()[0][0]
        is_time = parameter.type == "timestamp"
        start = f"TIMESTAMP '{value}' + to_microseconds({step})" if is_time else str(int(value) + step)
        if parameter.column and not is_time:
            table, column = parameter.column
            start = f'greatest({start}, (SELECT max("{column}") + {step} FROM "{table}"))'
        numbers = {parameter.name: Number(start=f"SELECT {start}", step=f"SELECT {step}")}
        fitted = FittedSource(parameters=group.names, choice="numbers", values=0, of=f"a new value each time, {step} apart")
        return Source(name, ParameterSource(numbers=numbers), fitted)

    def _of_domain(self, name: str, group: Group, counts: NDArray[np.float64]) -> Source | None:
        """Values of a column of the data, or of a range of numbers, uniformly or with a skew."""
        (parameter,) = group.parameters
        domain = self._column_domain(parameter) or self._range_domain(parameter)
        if domain is None or not 2 <= domain.size <= _MAX_VALUES:
            return None
        executions = int(counts.sum())
        limit = _TOLERANCE + skew.KOLMOGOROV_5 / executions**0.5
        even = skew.zipf_cumulative(0.0, domain.size)
        repeats = skew.collisions(counts)
        pairs = executions * (executions - 1) / 2 / domain.size
        is_even = abs(repeats * domain.size - 1) <= 0.05 + 3 / max(pairs, 1.0) ** 0.5
        positions = self._positions(parameter, domain)
        if is_even and skew.curve_difference(counts, skew.drawn_counts(even, executions)) <= limit:
            fits_places = positions is None or skew.positions_difference(*positions, even) <= limit
            if fits_places:
                return self._from_query(name, group, "uniform", None, domain)
        exponent = skew.zipf_exponent(repeats, domain.size)
        if exponent is None:
            return None
        cumulative = skew.zipf_cumulative(exponent, domain.size)
        if positions is not None and skew.positions_difference(*positions, cumulative) <= limit:
            return self._from_query(name, group, "latest", exponent, domain)
        if skew.curve_difference(counts, skew.drawn_counts(cumulative, executions)) > limit:
            return None
        return self._ranked(name, group, exponent, domain)

    def _column_domain(self, parameter: Parameter) -> _Domain | None:
        if parameter.column is None:
            return None
        table, column = parameter.column
        query = f'SELECT DISTINCT "{column}" AS v FROM "{table}" WHERE "{column}" IS NOT NULL'
        size = self._halves.workbench.execute(f"SELECT count(*) FROM ({query})").fetchall()[0][0]
        return _Domain(query, int(size), f"{table}.{column}")

    def _range_domain(self, parameter: Parameter) -> _Domain | None:
        """All numbers between the smallest and the largest that came, at the distance that all of them have."""
        decimals = self._decimals(parameter) if parameter.type == "double" else 0
        if parameter.type not in {"integer", "timestamp", "double"} or decimals is None:
            return None
        values = np.unique(self._in_order(parameter, decimals))
        if len(values) < 2:
            return None
        low, high, step = int(values[0]), int(values[-1]), int(np.gcd.reduce(np.diff(values)))
        size, unit = (high - low) // step + 1, 10**decimals
        numbers = f"FROM range({low}, {high} + 1, {step})"
        if parameter.type == "timestamp":
            return _Domain(f"SELECT make_timestamp(range) AS v {numbers}", size, f"times {step / 1e6:g} s apart")
        value = f"range / {unit}::DOUBLE" if parameter.type == "double" else "range"
        return _Domain(f"SELECT {value} AS v {numbers}", size, f"{low / unit:g} to {high / unit:g}, {step / unit:g} apart")

    def _decimals(self, parameter: Parameter) -> int | None:
        """How many decimals numbers have; None if they have too many."""
        for decimals in range(_MAX_DECIMALS + 1):
            scaled = f"{parameter.name} * {10**decimals}"
            query = f'SELECT bool_and(abs({scaled} - round({scaled})) < 1e-5 AND abs({scaled}) < 1e15) FROM "{self._table}" WHERE NOT is_second'
            if self._halves.workbench.execute(query).fetchall()[0][0]:
                return decimals
        return None

    def _positions(self, parameter: Parameter, domain: _Domain) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Where the values that came stand among all that there are, the largest first, and how often each came; None if that says nothing."""
        if parameter.type == "text":
            return None
        found = self._rows(
            f"WITH numbered AS (SELECT v, row_number() OVER (ORDER BY v DESC) AS number FROM ({domain.query})), "
            f'counted AS (SELECT {parameter.name} AS v, count(*) AS n FROM "{self._table}" WHERE NOT is_second GROUP BY ALL) '
            "SELECT number, n FROM counted JOIN numbered USING (v)"
        )
        numbers, counts = found["number"].astype(np.float64), found["n"].astype(np.float64)
        return (numbers, counts) if len(numbers) else None

    def _of_seen(self, name: str, group: Group, counts: NDArray[np.float64]) -> Source | None:
        """Values that came often enough to be all that there are."""
        executions, values = int(counts.sum()), len(counts)
        limit, repeats = _TOLERANCE + skew.KOLMOGOROV_5 / executions**0.5, skew.collisions(counts)
        # This many there are where all come equally often.
        known = max(values, round(1 / repeats)) if repeats else _MAX_VALUES
        even = values >= _MIN_SEEN * known and (
            skew.curve_difference(counts, skew.drawn_counts(skew.zipf_cumulative(0.0, known), executions)) <= limit
        )
        exponent = None if even else skew.zipf_exponent(repeats, values)
        if not even:
            if exponent is None or executions < _EXECUTIONS_OF_EACH * values:
                return None
            drawn = skew.drawn_counts(skew.zipf_cumulative(exponent, values), executions)
            if skew.curve_difference(counts, drawn) > limit:
                return None
        return self._from_rows(
            name, group, self._seen(group), "uniform" if even else "zipfian", exponent, "values that were recorded"
        )

    def _seen(self, group: Group) -> pa.Table:
        """The values that came, the most frequent first."""
        listed = ", ".join(parameter.name for parameter in group.parameters)
        return self._halves.workbench.sql(
            f'SELECT {self._with_followers(group)} FROM (SELECT {listed}, count(*) AS n FROM "{self._table}" '
            f"WHERE NOT is_second GROUP BY {listed}) ORDER BY n DESC, {listed}"
        ).to_arrow_table()

    def _ranges(self, name: str, group: Group, end: Parameter) -> Source:
        """Ranges whose beginnings and lengths do not depend on one another: each beginning with each length, as often as they came."""
        (parameter,) = group.parameters
        is_time = parameter.type == "timestamp"
        length = f"epoch_us({end.name}) - epoch_us({parameter.name})" if is_time else f"{end.name} - {parameter.name}"
        counts = self._counts(Group(group.parameters))
        domain = self._of_domain(name, Group(group.parameters), counts)
        starts = self._weighted(parameter.name)
        if domain is not None and domain.fitted.choice == "uniform" and domain.fitted.values <= _MAX_SIDE:
            starts = f"SELECT {parameter.name} AS v FROM ({domain.source.query})"
        then = "a.v + to_microseconds(CAST(b.v AS BIGINT))" if is_time else "a.v + b.v"
        rows = self._halves.workbench.sql(
            f"SELECT a.v AS {parameter.name}, {then} AS {end.name} FROM ({starts}) a, ({self._weighted(length)}) b "
            f"ORDER BY {parameter.name}, {end.name}"
        ).to_arrow_table()
        return self._from_rows(name, group, rows, "recorded", None, "beginnings and lengths of ranges, each as often as it came")

    def _weighted(self, value: str) -> str:
        """SQL of the values of an expression, each this many times as its share of some hundred rows is."""
        return (
            f"SELECT v FROM (SELECT v, greatest(1, round({_MAX_SIDE} * n / sum(n) OVER ())) AS times FROM "
            f'(SELECT {value} AS v, count(*) AS n FROM "{self._table}" WHERE NOT is_second GROUP BY ALL ORDER BY n DESC, v LIMIT {_MAX_SIDE})), '
            f"range({_MAX_SIDE}) WHERE range < times"
        )

    def _recorded(self, name: str, group: Group, executions: int, values: int) -> Source:
        """Executions that were recorded come again, each as often as any other: hot sets and all."""
        if values == 1:
            return self._from_rows(name, group, self._seen(group), "uniform", None, "the only value")
        rows = self._select(group, "ORDER BY hash(us), us", _MAX_KEPT)
        words = f"values of {min(executions, _MAX_KEPT):,} executions, each as often as it came"
        return self._from_rows(name, group, rows, "recorded", None, words)

    def _select(self, group: Group, order: str, limit: int) -> pa.Table:
        return self._halves.workbench.sql(
            f'SELECT {self._with_followers(group)} FROM "{self._table}" WHERE NOT is_second {order} LIMIT {limit}'
        ).to_arrow_table()

    def _with_followers(self, group: Group) -> str:
        first = group.parameters[0]
        return ", ".join([parameter.name for parameter in group.parameters] + _followers(group, first.name))

    def _from_rows(self, name: str, group: Group, rows: pa.Table, choice: Choice, exponent: float | None, words: str) -> Source:
        relation = f"{VALUES_PREFIX}{name}"
        numbered = rows.append_column("number", pa.array(np.arange(rows.num_rows)))
        query = f"SELECT {', '.join(group.names)} FROM {relation} ORDER BY number"
        self._halves.register(relation, numbered)
        fitted = FittedSource(parameters=group.names, choice=choice, exponent=exponent, values=rows.num_rows, of=words)
        return Source(name, ParameterSource(query=query, choice=_choice(choice, exponent)), fitted, relation, numbered)

    def _from_query(self, name: str, group: Group, choice: Choice, exponent: float | None, domain: _Domain) -> Source:
        (parameter,) = group.parameters
        listed = ", ".join([f"v AS {parameter.name}", *_followers(group, "v")])
        source = ParameterSource(query=f"SELECT {listed} FROM ({domain.query}) ORDER BY v", choice=_choice(choice, exponent))
        fitted = FittedSource(parameters=group.names, choice=choice, exponent=exponent, values=domain.size, of=domain.words)
        return Source(name, source, fitted)

    def _ranked(self, name: str, group: Group, exponent: float, domain: _Domain) -> Source:
        """Values of a column, those that were recorded first, the most frequent of them at the top."""
        (parameter,) = group.parameters
        relation = f"{VALUES_PREFIX}{name}"
        seen = self._seen(Group(group.parameters))
        numbered = seen.append_column("number", pa.array(np.arange(seen.num_rows)))
        self._halves.register(relation, numbered)
        query = (
            f"SELECT number, {parameter.name} AS v FROM {relation} UNION ALL "
            f"SELECT {seen.num_rows} + row_number() OVER (ORDER BY v) AS number, v FROM ({domain.query}) "
            f"WHERE v NOT IN (SELECT {parameter.name} FROM {relation} WHERE {parameter.name} IS NOT NULL)"
        )
        listed = ", ".join([f"v AS {parameter.name}", *_followers(group, "v")])
        source = ParameterSource(query=f"SELECT {listed} FROM ({query}) ORDER BY number", choice=_choice("zipfian", exponent))
        fitted = FittedSource(parameters=group.names, choice="zipfian", exponent=exponent, values=domain.size, of=domain.words)
        return Source(name, source, fitted, relation, numbered)


def _followers(group: Group, first: str) -> list[str]:
    is_time = group.parameters[0].type == "timestamp"
    return [
        f"{first} AS {follower.name}"
        if not offset
        else f"{first} + {f'to_microseconds({offset})' if is_time else offset} AS {follower.name}"
        for follower, offset in group.followers
    ]


def _choice(choice: Choice, exponent: float | None) -> AnyChoice:
    if choice == "zipfian":
        return SkewedChoice(zipfian=exponent)
    if choice == "latest":
        return SkewedChoice(latest=exponent)
    return "sequential" if choice == "sequential" else "uniform"


def groups_of(halves: Halves, table: str, parameters: Sequence[Parameter]) -> list[Group]:
    """Which parameters of an operation are drawn together.

    Args:
        halves: of the trace.
        table: with the executions of the operation.
        parameters: of the operation.

    Returns:
        Each parameter in one group. Parameters depend on one another where pairs of their values come again more often than values that
        are independent; one follows another where their difference is always the same, or has few values.

    """
    groups: list[Group] = []
    for parameter in parameters:
        for number, group in enumerate(groups):
            offset = _offset(halves, table, group.parameters[0], parameter)
            if offset is not None:
                groups[number] = Group(group.parameters, (*group.followers, (parameter, offset)))
                break
            is_alone = len(group.parameters) == 1 and not group.followers and group.end is None
            if is_alone and _is_range(halves, table, group.parameters[0], parameter):
                groups[number] = Group(group.parameters, end=parameter)
                break
            if (
                not group.followers
                and group.end is None
                and any(_depend(halves, table, each, parameter) for each in group.parameters)
            ):
                groups[number] = Group((*group.parameters, parameter))
                break
        else:
            groups.append(Group((parameter,)))
    return groups


def _offset(halves: Halves, table: str, first: Parameter, other: Parameter) -> int | None:
    """How much more a parameter always is than another, in µs if they are times; None if that varies, or neither varies."""
    if first.type != other.type:
        return None
    one_of = f'FROM "{table}" WHERE NOT is_second'
    if first.type in {"integer", "timestamp"}:
        values = [f"epoch_us({each.name})" if each.type == "timestamp" else each.name for each in (first, other)]
        query = f"SELECT min({values[1]} - {values[0]}), max({values[1]} - {values[0]}), count(DISTINCT {first.name}), "
        query += f"count(*) - count({values[1]} - {values[0]}) {one_of}"
        low, high, distinct, missing = halves.workbench.execute(query).fetchall()[0]
        return int(low) if low is not None and low == high and distinct > 1 and not missing else None
    query = f"SELECT count(*) FILTER ({first.name} IS DISTINCT FROM {other.name}), count(DISTINCT {first.name}) {one_of}"
    different, distinct = halves.workbench.execute(query).fetchall()[0]
    return 0 if not different and distinct > 1 else None


def _is_range(halves: Halves, table: str, first: Parameter, other: Parameter) -> bool:
    """Whether a parameter is the end of a range that begins with another: it lies never before it, near it, at few different distances."""
    if first.type != other.type or first.type not in {"integer", "timestamp"}:
        return False
    begin, end = (f"epoch_us({each.name})" if each.type == "timestamp" else each.name for each in (first, other))
    lowest, correlation, lengths, executions = halves.workbench.execute(
        f"SELECT min({end} - {begin}), corr({end}::DOUBLE, {begin}::DOUBLE), count(DISTINCT {end} - {begin}), count(*) "
        f'FROM "{table}" WHERE NOT is_second'
    ).fetchall()[0]
    if lowest is None or correlation is None or not correlation > _MIN_CORRELATION:
        return False
    return bool(lowest >= 0 and 2 <= lengths <= min(_MAX_SIDE, executions / _EXECUTIONS_OF_EACH))


def _depend(halves: Halves, table: str, first: Parameter, other: Parameter) -> bool:
    """Whether pairs of values of two parameters come again more often than they would if the values were independent of one another."""

    def repeats(listed: str) -> tuple[float, float]:
        query = f'SELECT count(*) AS n FROM "{table}" WHERE NOT is_second GROUP BY {listed}'
        counts = np.asarray(halves.workbench.execute(query).fetchnumpy()["n"], dtype=np.float64)
        return skew.collisions(counts), float(counts.sum())

    of_first, _ = repeats(first.name)
    of_other, _ = repeats(other.name)
    of_both, executions = repeats(f"{first.name}, {other.name}")
    if max(of_first, of_other) >= 1.0:
        return False
    equal_pairs = of_both * executions * (executions - 1) / 2
    if equal_pairs < _MIN_EQUAL_PAIRS:
        return False
    by_chance = of_first * of_other * (1 + _MIN_DEPENDENCE + 3 / float(equal_pairs**0.5))
    return bool(of_both > by_chance)
