"""What must be there when readings expire and are rolled up: in tables of the accounts, before anything is looked at."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from time import time_ns

import duckdb
import pyarrow as pa

from sensorbench.results.retention import CLOCK, EXPIRE, ROLLUP, RetentionEvent
from sensorbench.results.summary.accounting import RollupAccounting, Rule
from sensorbench.results.summary.comparison import AnswerProblem
from sensorbench.schemas import Operation
from sensorbench.verification.accounting_queries import LOADED_NS
from sensorbench.verification.answers import shown


@dataclass(frozen=True)
class TimeToLive:
    """Readings expire by themselves, this long after their write, by the wall clock.

    Attributes:
        ttl_s: how long after, in s. Databases count whole seconds.
        offset_ns: the time on the clock of the run, less that on the wall clock.

    """

    ttl_s: int
    offset_ns: int

    def written_ns(self, later_s: float) -> int:
        """When readings were written that expire this long from now, on the clock of the run.

        Args:
            later_s: how long, in s; less than 0 for those that expired this long ago.

        """
        return time_ns() + self.offset_ns + round((later_s - self.ttl_s) * 1e9)


def time_to_live(actions: list[RetentionEvent], ttl_s: int | None) -> TimeToLive | None:
    """When readings expire that do so by themselves; None if they do not, or where the run did not come to its end.

    Args:
        actions: of the run; one of them says what time it was.
        ttl_s: how long after their write, in s; None if their own time counts.

    """
    known = [action.end_ns - action.time_us * 1000 for action in actions if action.kind == CLOCK and action.time_us is not None]
    return TimeToLive(ttl_s, known[-1]) if ttl_s is not None and known else None


@dataclass(frozen=True)
class Retained:
    """What was done with the readings of a stream.

    Attributes:
        before: readings that are older must be gone; None if nothing was to expire.
        actions: what was rolled up when, and what expired.
        rollup: the rows of the rollup that were found: columns of the series, start, count, min, max, sum; None if none is kept.
        origin_us: the first time that is rolled up, in µs since 1970.
        width_us: length of its time buckets, in µs.
        grace_us: readings that are older than `before` by no more than this may still be there.
        life: how long after their write readings expire; None if their own time counts.

    """

    before: datetime | None
    actions: list[RetentionEvent]
    rollup: pa.Table | None
    origin_us: int
    width_us: int
    grace_us: int = 0
    life: TimeToLive | None = None


def expired_before(actions: list[RetentionEvent]) -> datetime | None:
    """What is older must be gone after all actions, whether they did what they should or not; None if nothing was to expire."""
    times = [action.before_us for action in actions if action.kind == EXPIRE and action.before_us is not None]
    return datetime(1970, 1, 1) + timedelta(microseconds=max(times)) if times else None


# What is older than what is kept must not be there: no rows, with no hash. What is a little older may be there, like what was never acknowledged.
_EXPIRE = """
CREATE OR REPLACE TEMP TABLE expected AS
SELECT * REPLACE (
    CASE WHEN is_expired OR may_be_gone THEN 0 ELSE acknowledged END AS acknowledged, CASE WHEN is_expired THEN 0 ELSE rows END AS rows,
    CASE WHEN is_expired THEN [CAST(0 AS UBIGINT)] ELSE choices END AS choices,
    CASE WHEN is_expired THEN CAST([] AS UBIGINT[]) ELSE maybe END AS maybe,
    is_expired OR (is_sure AND NOT may_be_gone) AS is_sure)
FROM ({aging})
"""
_BY_TIME = "SELECT *, {time} < $gone AS is_expired, {time} >= $gone AND {time} < $before AS may_be_gone FROM admitted"
# The delivery that counts is among those that came last. One of unknown outcome may have come after all of them.
_BY_WRITE = """
SELECT admitted.*, last_start_ns, of_run AND admitted.acknowledged = admitted.deliveries AND last_end_ns < $gone AS is_expired,
    of_run AND NOT is_expired AND last_start_ns < $before AS may_be_gone
FROM admitted JOIN (SELECT *, coalesce(last_start_ns > {loaded}, false) AS of_run FROM grouped) AS grouped USING ({key})
"""
# Whole seconds are counted from some moment within them, and the database's clock is another one.
_MARGIN_S = 2.0
# What expires within this share of the time to live is not sure to be there when it is read.
_MAY_EXPIRE = 0.25


def aged(retained: Retained | None) -> str:
    """By which condition a reading that was expected, and not found, may have expired meanwhile: it was not there because of its age."""
    if retained is None or retained.life is None:
        return "false"
    return f"found_rows = 0 AND last_start_ns > {LOADED_NS} AND last_start_ns < {retained.life.written_ns(_MARGIN_S)}"


def expire(accounts: duckdb.DuckDBPyConnection, key: str, time: str, retained: Retained | None) -> None:
    """Makes `expected` of `admitted`, with whether each reading `is_expired`, or `may_be_gone`.

    Args:
        accounts: has the tables `grouped` and `admitted`, of a part of the readings.
        key: the columns that identify a reading.
        time: the column of times, quoted.
        retained: what expired; None if nothing does.

    """
    if retained is not None and retained.life is not None:
        life = retained.life
        aging = _BY_WRITE.format(key=key, loaded=LOADED_NS)
        may_expire_s = _MARGIN_S + _MAY_EXPIRE * life.ttl_s
        ages = {"before": life.written_ns(may_expire_s), "gone": life.written_ns(-_MARGIN_S)}
        accounts.execute(_EXPIRE.format(aging=aging), ages)
    elif retained is None or retained.before is None:
        accounts.execute(
            "CREATE OR REPLACE TEMP VIEW expected AS SELECT *, false AS is_expired, false AS may_be_gone FROM admitted"
        )
    else:
        gone = retained.before - timedelta(microseconds=retained.grace_us)
        accounts.execute(_EXPIRE.format(aging=_BY_TIME.format(time=time)), {"before": retained.before, "gone": gone})


# The value of each reading that counts, or the values where all are kept; only those that were written to the time that is rolled up.
_COUNTED = """
SELECT {series} {bucket} AS start, {time}, any_value(ranked) AS value
FROM admitted JOIN delivered USING ({key})
WHERE NOT adds AND acknowledged > 0 AND is_sure AND hash = choices[1] AND epoch_us({time}) >= {origin}
GROUP BY {key}
UNION ALL
SELECT {distinct} {series} {bucket}, {time}, ranked
FROM admitted JOIN delivered USING ({key}) WHERE adds AND is_ok AND epoch_us({time}) >= {origin}
"""
_DOUBTFUL = "SELECT DISTINCT {series} {bucket} AS start FROM admitted WHERE NOT is_sure AND epoch_us({time}) >= {origin}"
_COMPARE = """
CREATE TABLE rollup_rows AS
WITH wanted AS (
    SELECT {series} start, count(*) AS count, min(value) AS min, max(value) AS max, sum(value) AS sum FROM counted GROUP BY ALL),
of_database AS (
    SELECT {series} start, count(*) AS times, any_value(count) AS count, any_value(min) AS min, any_value(max) AS max, any_value(sum) AS sum
    FROM found_rollup WHERE epoch_us(start) >= {origin} GROUP BY ALL),
in_doubt AS (SELECT DISTINCT * FROM doubtful)
SELECT {series} start, of_database.count AS found_count, of_database.min AS found_min, of_database.max AS found_max,
    of_database.sum AS found_sum, wanted.count AS count,
    CASE
        WHEN in_doubt.start IS NOT NULL THEN 'undecided'
        WHEN of_database.count IS NULL THEN 'missing'
        WHEN wanted.count IS NULL THEN 'extra'
        WHEN times = 1 AND of_database.count = wanted.count AND of_database.min = wanted.min AND of_database.max = wanted.max
            AND {close} THEN 'right'
        ELSE 'differs' END AS verdict
FROM wanted FULL JOIN of_database USING ({series} start) LEFT JOIN in_doubt USING ({series} start)
"""
# Databases add up in different orders.
_CLOSE = "abs({a} - {b}) <= 1e-9 * greatest(abs({a}), abs({b}), 1.0)"
# A bucket is computed by each action that covers it. What had been acknowledged before that action began is in it, what was sent after its end is
# not, and what was on its way may be. A row is so by late readings where it is as one of these actions made it, and some came after that.
_AS_COMPUTED = """
CREATE TABLE as_computed AS
WITH computed AS (
    SELECT {series} start, began_ns, ended_ns
    FROM (FROM rollup_rows WHERE verdict IN ('missing', 'differs'))
    JOIN actions ON epoch_us(start) >= from_us AND epoch_us(start) < to_us),
sent AS (
    SELECT {of_deliveries} {bucket} AS start, {time}, ranked, start_ns, end_ns, began_ns, ended_ns, {one} AS one
    FROM deliveries JOIN computed ON {same} {bucket} = computed.start
    WHERE is_ok),
readings_then AS (
    SELECT {series} start, began_ns, {winner} AS value, min(ranked) AS lowest, max(ranked) AS highest, bool_or(end_ns > began_ns) AS is_late,
        bool_or(end_ns > began_ns AND start_ns < ended_ns) AS is_open
    FROM sent GROUP BY {series} start, began_ns, {time}, one)
SELECT {series} start, began_ns, count(value) AS count, min(value) AS min, max(value) AS max, coalesce(sum(value), 0) AS sum,
    min(lowest) AS lowest, max(highest) AS highest, bool_or(is_late) AS has_late, count(*) FILTER (WHERE is_open) AS open
FROM readings_then GROUP BY {series} start, began_ns
"""
_BY_LATE = """
SELECT count(*) FROM (
    SELECT DISTINCT {series} start
    FROM (FROM rollup_rows WHERE verdict IN ('missing', 'differs')) AS found JOIN as_computed USING ({series} start)
    WHERE has_late AND CASE
        WHEN open > 0 THEN coalesce(found_count, 0) BETWEEN as_computed.count - open AND as_computed.count + open
            AND coalesce(found_min >= lowest AND found_max <= highest, true)
        WHEN as_computed.count = 0 THEN found_count IS NULL
        ELSE found_count = as_computed.count AND found_min = as_computed.min AND found_max = as_computed.max AND {close} END)
"""
# The value that a reading had when its bucket was computed, by the rule for duplicates; and which deliveries of a reading are one.
_WINNERS: dict[Rule, str] = {
    "last": "arg_max(ranked, start_ns) FILTER (WHERE end_ns <= began_ns)",
    "first": "arg_min(ranked, start_ns) FILTER (WHERE end_ns <= began_ns)",
    "highest": "max(ranked) FILTER (WHERE end_ns <= began_ns)",
    "both": "any_value(ranked) FILTER (WHERE end_ns <= began_ns)",
    "distinct": "any_value(ranked) FILTER (WHERE end_ns <= began_ns)",
    "any": "any_value(ranked) FILTER (WHERE end_ns <= began_ns)",
}
_ONE: dict[Rule, str] = {"both": "arrival", "distinct": "hash"}
# Wrong rows that late readings do not explain.
_MAX_EXAMPLES = 10
_EXAMPLES = """
SELECT {series} start, verdict, found_count, count FROM rollup_rows WHERE verdict IN ('missing', 'differs', 'extra') ORDER BY ALL LIMIT {max}
"""
_SAYS = {"missing": "is not there", "differs": "has other values", "extra": "should not be there"}
_COUNTS = "SELECT verdict, count(*) FROM rollup_rows GROUP BY verdict"


def enter_counted(accounts: duckdb.DuckDBPyConnection, operation: Operation, rule: Rule, retained: Retained) -> None:
    """Adds to the tables `counted` and `doubtful` what a part of the readings adds to the rollup.

    Args:
        accounts: has the tables `delivered`, and `admitted`, the readings that count before any expires, of that part.
        operation: the write.
        rule: which of several deliveries of a reading counts.
        retained: what is rolled up.

    """
    words = _words(operation, rule, retained)
    for table, query in (("counted", _COUNTED.format(**words)), ("doubtful", _DOUBTFUL.format(**words))):
        accounts.execute(f"CREATE TABLE IF NOT EXISTS {table} AS FROM ({query}) LIMIT 0; INSERT INTO {table} {query}")


def _words(operation: Operation, rule: Rule, retained: Retained) -> dict[str, object]:
    """What stands in the queries for names and rules."""
    series = "".join(f'"{name}", ' for name in operation.series)
    time = f'"{operation.time}"'
    return {
        "series": series,
        "of_deliveries": "".join(f'deliveries."{name}", ' for name in operation.series),
        "time": time,
        "key": f"{series}{time}",
        "origin": retained.origin_us,
        "bucket": f"make_timestamp(epoch_us({time}) // {retained.width_us} * {retained.width_us})",
        "same": "".join(f'deliveries."{name}" = computed."{name}" AND ' for name in operation.series),
        "winner": _WINNERS[rule],
        "one": _ONE.get(rule, "0"),
        "distinct": "DISTINCT" if rule == "distinct" else "",
    }


def rolled_up(
    accounts: duckdb.DuckDBPyConnection, write: str, operation: Operation, rule: Rule, retained: Retained
) -> tuple[RollupAccounting | None, list[AnswerProblem]]:
    """Compares a rollup with what DuckDB computes from the acknowledged readings. Returns what was found, None if there is no rollup; and examples
    of rows that are wrong, where late readings do not explain all of them.

    Args:
        accounts: has the table `deliveries`, and what :func:`enter_counted` made of each part of them.
        write: its name.
        operation: the write.
        rule: which of several deliveries of a reading counts.
        retained: has the rollup.

    """
    if retained.rollup is None:
        return None, []
    words = _words(operation, rule, retained)
    accounts.register("found_rollup", retained.rollup)
    accounts.register("actions", _rollups(retained.actions))
    accounts.execute(_COMPARE.format(**words, close=_CLOSE.format(a="of_database.sum", b="wanted.sum")))
    accounts.execute(_AS_COMPUTED.format(**words))
    by_late = accounts.execute(_BY_LATE.format(**words, close=_CLOSE.format(a="found_sum", b="as_computed.sum"))).fetchall()[0][0]
    counts: dict[str, int] = dict(accounts.execute(_COUNTS).fetchall())
    found = RollupAccounting(
        rows=sum(count for verdict, count in counts.items() if verdict != "extra"),
        right=counts.get("right", 0),
        missing=counts.get("missing", 0),
        differ=counts.get("differs", 0),
        extra=counts.get("extra", 0),
        by_late=by_late,
        undecided=counts.get("undecided", 0),
    )
    if found.wrong == found.by_late:
        return found, []
    rows: list[dict[str, object]] = accounts.sql(_EXAMPLES.format(**words, max=_MAX_EXAMPLES)).to_arrow_table().to_pylist()
    return found, [_problem(row, write, found) for row in rows]


def _problem(row: dict[str, object], write: str, found: RollupAccounting) -> AnswerProblem:
    verdict, found_count, count = (row.pop(name) for name in ("verdict", "found_count", "count"))
    detail = f"{count or 0} readings expected, {found_count or 0} found; {found.wrong:,} such rows, {found.by_late:,} of them by late readings"
    return AnswerProblem(
        operation=write, parameters=shown(row), problem=f"the row of the rollup {_SAYS[str(verdict)]} ({detail})"
    )


def _rollups(actions: list[RetentionEvent]) -> pa.Table:
    """Which buckets were computed, and when: by the actions that did not fail."""
    done = [action for action in actions if action.kind == ROLLUP and action.error is None]
    columns = {
        "from_us": [action.from_us for action in done],
        "to_us": [action.to_us for action in done],
        "began_ns": [action.start_ns for action in done],
        "ended_ns": [action.end_ns for action in done],
    }
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
