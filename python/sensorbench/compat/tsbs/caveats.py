"""What figures of TSBS's queries do not say: where a query asks nothing at its own limits, and where TSBS asks databases different things.

Read in TSBS at commit 37fced7. What is said of other databases counts for what was published of them with TSBS; here all databases are asked
the same.
"""

from collections.abc import Sequence

# With TSBS's limits, at one row in 10 s.
DEGENERATE = {
    "stationary-trucks": "the answer is always empty at TSBS's limit and interval; stationary-trucks-calibrated asks with one that tells trucks apart",
    "long-driving-sessions": (
        "the answer is always the whole fleet at TSBS's limits and interval; long-driving-sessions-calibrated asks with some that tell trucks apart"
    ),
    "long-daily-sessions": (
        "the answer is always the whole fleet at TSBS's limits and interval; long-daily-sessions-calibrated asks with some that tell trucks apart"
    ),
    "avg-daily-driving-session": (
        "trucks drive almost always at TSBS's limit and interval, so that hardly a session begins; avg-daily-driving-session-calibrated asks with one that has many"
    ),
    "avg-daily-driving-duration": (
        "all trucks drive 24 hours a day at TSBS's limit and interval; avg-daily-driving-duration-calibrated asks with one that tells trucks apart"
    ),
    "breakdown-frequency-as-written": (
        "a truck counts as broken when no status of ten minutes is missing, because TSBS counts results of a comparison that are not null; "
        "breakdown-frequency asks what is meant"
    ),
}

_SINGLE_GROUPBY = "TSBS's README says every 5 minutes; its code, and this, ask for every minute."
_CPU_MAX = "TSBS's README says 1 hour; its code, and this, ask about 8. CrateDB, QuestDB, Akumuli and Timestream have none since TSBS's change 168."
_DOUBLE_GROUPBY = "TSBS's README says 24 hours; its code, and this, ask about 12. CrateDB's lacks the column of the host."
_LAST_LOC = "InfluxDB's in TSBS gives the first row instead of the latest."
_IN_ALL = {
    "cpu-only": (
        "TSBS cuts windows to seconds or ms for some databases, and draws other hosts and windows for each from one seed: rates of different databases "
        "are rates of different questions. It compares no answers, and its runner for ClickHouse does not read them."
    ),
    "iot": (
        "TSBS has these queries for TimescaleDB and InfluxDB alone, with other meanings: InfluxDB's windows leave out their start and have their end. "
        "It compares no answers, and its disorder is counted in rows, so that hardly a row is late where there are many trucks."
    ),
}
_OF_QUERY = {
    **dict.fromkeys(
        [
            f"single-groupby-{metrics}-{hosts}-{hours}"
            for metrics, hosts, hours in ((1, 1, 1), (1, 1, 12), (1, 8, 1), (5, 1, 1), (5, 1, 12), (5, 8, 1))
        ],
        _SINGLE_GROUPBY,
    ),
    **dict.fromkeys(["cpu-max-all-1", "cpu-max-all-8"], _CPU_MAX),
    **dict.fromkeys(["double-groupby-1", "double-groupby-5", "double-groupby-all"], _DOUBLE_GROUPBY),
    "high-cpu-1": "Akumuli's and SiriDB's in TSBS return one field of ten, Timestream's a row for each field.",
    "high-cpu-all": "TSBS cannot generate it for Cassandra and CrateDB. Akumuli's and SiriDB's return one field of ten, Timestream's a row for each field.",
    "lastpoint": "ClickHouse's in TSBS returns all rows where tags have no table of their own; Timestream's returns a row for each field.",
    "groupby-orderby-limit": (
        "InfluxDB's and QuestDB's in TSBS return the first five minutes of the data instead of the last; SiriDB's looks at five minutes alone."
    ),
    "single-last-loc": _LAST_LOC,
    "last-loc": _LAST_LOC,
    "low-fuel": "InfluxDB's in TSBS gives the last row that was ever low, and counts a state that equals the limit.",
    "high-load": (
        "A model's capacity plays no part in its load, so that most loads of a small model are above it. InfluxDB's in TSBS counts a load that equals the limit."
    ),
    "avg-load": "InfluxDB's in TSBS is the mean over rows instead of trucks.",
    "daily-activity": (
        "It counts rows, not stretches of ten minutes: at one row in 10 s about 54 times the active share of the day. InfluxDB's in TSBS puts trucks together."
    ),
    "breakdown-frequency": "This is what is meant; TSBS's own text means something else: breakdown-frequency-as-written.",
    "avg-daily-driving-duration": "Hours are whole ones. InfluxDB's in TSBS counts all stretches of ten minutes, also those without driving.",
}


def caveats_of(use_case: str, queries: Sequence[str]) -> dict[str, list[str]]:
    """What figures of queries do not say, by query, and at last what concerns them all, as `all queries`."""
    known = {
        name: [
            text[0].upper() + text[1:] + "." if source is DEGENERATE else text
            for source in (DEGENERATE, _OF_QUERY)
            if (text := source.get(name))
        ]
        for name in queries
    }
    return {**{name: texts for name, texts in known.items() if texts}, "all queries": [_IN_ALL[use_case]]}
