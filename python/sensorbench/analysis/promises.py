"""What databases promise of concurrent reads and writes, and which promises a history breaks."""

from collections.abc import Mapping
from dataclasses import dataclass

from sensorbench.analysis.guarantees import Finding


@dataclass(frozen=True)
class Promise:
    """Whether a variant promises that a finding does not occur, why, on which condition, and who says so."""

    is_made: bool
    why: str
    source: str


Promises = dict[str, Promise]
GIFFORD = 'Gifford, "Weighted voting for replicated data", SOSP 1979'
CASSANDRA_READ_REPAIR = "Cassandra documentation, Read repair, monotonic quorum reads"
CASSANDRA_DYNAMO = "Cassandra documentation, Dynamo, tunable consistency"
READ_COMMITTED = "PostgreSQL documentation 13.2.1 and MariaDB documentation, READ COMMITTED"
IOTDB_LAST_POINT = "Apache IoTDB documentation 2.0, Data Modeling (a point of the same device and time is overwritten); wal_mode"
CLICKHOUSE_PARTS = "ClickHouse documentation, MergeTree; ReplacingMergeTree; Transactional support"
DUCKDB_CONCURRENCY = "DuckDB documentation, Concurrency; Transaction Management"
SQLITE_ISOLATION = "SQLite documentation, Isolation In SQLite"
REDIS_PERSISTENCE = "Redis documentation, Persistence"
MONGODB_CONCERNS = "MongoDB documentation, Read Isolation, Consistency, and Recency; Write Concern"
MONGODB_JOURNAL = "MongoDB documentation, Journaling"
HBASE_ACID = "Apache HBase (TM) ACID Properties"
QUESTDB_WAL = "QuestDB documentation, Write-Ahead Log; Guarantees of durability, cairo.commit.mode"
VICTORIAMETRICS_STORAGE = (
    "VictoriaMetrics documentation, Storage; FAQ, Why is the data not visible immediately after the ingestion"
)
PROMETHEUS_STORAGE = "Prometheus documentation, Storage > On-disk layout"
OPENTSDB_PUT = "OpenTSDB 2.4 documentation, /api/put, sync; Apache HBase (TM) ACID Properties; Durability"
REDIS_CLUSTER = "Redis Cluster specification, Write safety"
_NEVER_WRITTEN = Promise(
    True, "A read returns what some client wrote, or null.", 'Lamport, "On interprocess communication", 1986'
)
_REFUSED = "Only what the server refused before doing it may be called failed; a time-out is unknown."


def replicas_of(level: str, replication: int) -> int:
    """How many replicas answer at a consistency level, in one data centre. Raises ValueError for what is none."""
    majority = replication // 2 + 1
    replicas = {"any": 0, "one": 1, "local_one": 1, "two": 2, "three": 3, "all": replication}
    replicas |= dict.fromkeys(("quorum", "local_quorum", "each_quorum"), majority)
    if level not in replicas:
        raise ValueError(f"consistency level {level!r}: expected one of {', '.join(replicas)}")
    return replicas[level]


def levels_of(settings: Mapping[str, str]) -> tuple[str, str] | None:
    """The consistency levels of reads and of writes, as a database with quorums describes itself; None of others."""
    if not {"replication", "consistency"} <= settings.keys():
        return None
    of_both = settings["consistency"]
    return settings.get("read_consistency", of_both), settings.get("write_consistency", of_both)


def promises_of_quorums(replication: int, write: str, read: str) -> Promises:
    """Of N replicas that are written and read at two levels, where the newest timestamp wins, as in Cassandra."""
    w, r = replicas_of(write, replication), replicas_of(read, replication)
    sets = f"{w} of {replication} replicas acknowledge a write and {r} answer a read"
    meet = r + w > replication
    shared = f"{sets}: R + W > N, so that one of them has the write" if meet else f"{sets}: R + W ≤ N, so that they may be others"
    majorities = 2 * r > replication
    return {
        "lost_writes": Promise(meet, f"{shared}, as long as clocks agree and no replica loses its disk.", GIFFORD),
        "stale_reads": Promise(meet, f"{shared}, as long as clocks agree.", CASSANDRA_DYNAMO),
        "non_monotonic_reads": Promise(
            majorities,
            f"{sets}: a read repairs the replicas that it read before it answers, and two reads "
            f"{'meet in one of them (2 R > N)' if majorities else 'may read other replicas (2 R ≤ N)'}.",
            CASSANDRA_READ_REPAIR,
        ),
        "never_written": _NEVER_WRITTEN,
        "failed_writes_seen": Promise(True, f"Nothing is rolled back. {_REFUSED}", CASSANDRA_DYNAMO),
    }


def promises_of_read_committed(*, durable: bool = True) -> Promises:
    """Of one server that reads what is committed, as PostgreSQL and MariaDB do, each statement a transaction. Durable:
    what was acknowledged outlives every crash that there was; so it is when there was none.
    """
    return _promises_of_one_server(
        "A statement sees all that was committed before it began, and nothing else", durable, READ_COMMITTED
    )


def promises_of_one_writer(*, durable: bool = True) -> Promises:
    """Of one file with one writer at a time, as SQLite has it. Durable: as for `promises_of_read_committed`."""
    return _promises_of_one_server(
        "One writes at a time, and a statement sees all that was committed before it began", durable, SQLITE_ISOLATION
    )


def promises_of_snapshots(*, durable: bool = True) -> Promises:
    """Of one process whose transactions each see a snapshot and never wait, as DuckDB has it. Durable: as for `promises_of_read_committed`."""
    return _promises_of_one_server(
        "A statement sees all that was committed before it began, and of two writes of one row the later is refused",
        durable,
        DUCKDB_CONCURRENCY,
    )


def promises_of_parts(*, durable: bool = True) -> Promises:
    """Of one server in which an insert becomes a part, as ClickHouse has it. Durable: as for `promises_of_read_committed`."""
    return _promises_of_one_server(
        "An insert is acknowledged when it is a part, and a query with FINAL sees the last row of a key in all parts that were there when it began",
        durable,
        CLICKHOUSE_PARTS,
    )


def promises_of_a_log(*, durable: bool = True) -> Promises:
    """Of one server that has a sample in its log and its memory before it answers, as Prometheus does. Durable: as for `promises_of_read_committed`."""
    return _promises_of_one_server(
        "A sample is acknowledged when it is in the log and in memory, where queries find it", durable, PROMETHEUS_STORAGE
    )


def promises_of_last_point(*, durable: bool = True) -> Promises:
    """Of one server that keeps the last point of a time, as IoTDB does. Durable: as for `promises_of_read_committed`."""
    return _promises_of_one_server(
        "A point takes the place of the one before, and a read sees all that was acknowledged before it began",
        durable,
        IOTDB_LAST_POINT,
    )


def promises_of_put_points(*, synced: bool, logged: bool) -> Promises:
    """Of one daemon over one HBase, as OpenTSDB.

    Args:
        synced: whether a write is answered when HBase has it; else when the daemon has it in memory.
        logged: whether HBase has it in its log then.

    """
    if synced:
        return _promises_of_one_server(
            "A point is acknowledged when HBase has it, and a read sees all that HBase had before it began", logged, OPENTSDB_PUT
        )
    acknowledged = "A point is acknowledged when the daemon has it in memory, and written some milliseconds later"
    return {
        "lost_writes": Promise(False, f"{acknowledged}: what came last before a crash is lost.", OPENTSDB_PUT),
        "stale_reads": Promise(False, f"{acknowledged}; queries see it then.", OPENTSDB_PUT),
        "non_monotonic_reads": Promise(
            logged, "HBase keeps what a read has seen, unless it lost it with its memory.", OPENTSDB_PUT
        ),
        "never_written": _NEVER_WRITTEN,
        "failed_writes_seen": Promise(True, f"A refused point is not written. {_REFUSED}", OPENTSDB_PUT),
    }


def promises_of_one_thread(*, durable: bool = True) -> Promises:
    """Of one server that does a command after the other, as Redis does. Durable: as for `promises_of_read_committed`."""
    return _promises_of_one_server(
        "One thread does a command after the other, and answers after that", durable, REDIS_PERSISTENCE
    )


def promises_of_one_server_a_row(*, durable: bool = True) -> Promises:
    """Of region servers, each of which has rows that no other has, as in HBase. Durable: as for `promises_of_read_committed`."""
    return _promises_of_one_server(
        "A row is served by one server at a time, and a read sees all that was acknowledged before it began, as long as the servers' "
        "clocks agree",
        durable,
        HBASE_ACID,
    )


def promises_of_a_log_applied_later(*, waits: bool) -> Promises:
    """Of one server that acknowledges a write when it is in a log, and lets it be read when the log was applied, as QuestDB does. With `waits`
    clients take a write for done when it was applied.
    """
    acknowledged = (
        "A write is acknowledged when the system has it for the write-ahead log, which outlives the process, but not the machine"
    )
    applied = "is applied in order, some milliseconds later"
    read = f"clients wait until the log, which {applied}, has their write in the table" if waits else f"the log {applied}"
    return {
        "lost_writes": Promise(True, f"{acknowledged}.", QUESTDB_WAL),
        "stale_reads": Promise(waits, f"{acknowledged}; {read}.", QUESTDB_WAL),
        "non_monotonic_reads": Promise(True, f"One server applies the log in order; it {applied}.", QUESTDB_WAL),
        "never_written": _NEVER_WRITTEN,
        "failed_writes_seen": Promise(True, f"A refused statement does nothing. {_REFUSED}", QUESTDB_WAL),
    }


def promises_of_memory_shown_later() -> Promises:
    """Of one server that acknowledges a write when it has it in memory, and shows and stores it some seconds later, as VictoriaMetrics does."""
    acknowledged = "A write is acknowledged when it is in memory, without a log"
    return {
        "lost_writes": Promise(
            False, f"{acknowledged}: what came in the last seconds before a crash is lost.", VICTORIAMETRICS_STORAGE
        ),
        "stale_reads": Promise(False, f"{acknowledged}; queries see it some seconds later.", VICTORIAMETRICS_STORAGE),
        "non_monotonic_reads": Promise(
            False,
            f"{acknowledged}, in parts that are shown one by one; a crash takes back what was shown.",
            VICTORIAMETRICS_STORAGE,
        ),
        "never_written": _NEVER_WRITTEN,
        "failed_writes_seen": Promise(True, f"A refused request does nothing. {_REFUSED}", VICTORIAMETRICS_STORAGE),
    }


def promises_of_asynchronous_replicas() -> Promises:
    """Of masters that acknowledge before their replicas have the write, as in Redis Cluster."""
    why = "A master acknowledges before its replicas have the write: at a fail-over acknowledged writes may be lost"
    return {
        "lost_writes": Promise(False, f"{why}.", REDIS_CLUSTER),
        "stale_reads": Promise(False, f"{why}, and then older values are read.", REDIS_CLUSTER),
        "non_monotonic_reads": Promise(False, f"{why} that a client has read.", REDIS_CLUSTER),
        "never_written": _NEVER_WRITTEN,
        "failed_writes_seen": Promise(True, f"A refused command does nothing. {_REFUSED}", REDIS_CLUSTER),
    }


def promises_of_members(*, alone: bool, by_majority: bool, linearizable: bool) -> Promises:
    """Of documents on one server, or on members of a replica set (also of each shard): whether a majority of them acknowledges a
    write, and whether the primary makes sure with a majority, before it answers a read, that it still is the primary.
    """
    if alone:
        return _promises_of_one_server("One server writes a document as a whole and reads what is written", True, MONGODB_JOURNAL)
    lost = (
        "A majority of the members acknowledges a write, and who has not all of them is not elected"
        if by_majority
        else "A write concern below majority: what only a primary has that fails is rolled back"
    )
    fresh = by_majority and linearizable
    read = (
        f"{lost}; a linearizable read waits until a majority has confirmed what it saw"
        if fresh
        else "A read that is not linearizable, or a write that a majority need not have, may be of a member that is behind, or of a primary "
        "that has been replaced"
    )
    return {
        "lost_writes": Promise(by_majority, f"{lost}.", MONGODB_CONCERNS),
        "stale_reads": Promise(fresh, f"{read}.", MONGODB_CONCERNS),
        "non_monotonic_reads": Promise(fresh, f"{read}.", MONGODB_CONCERNS),
        "never_written": _NEVER_WRITTEN,
        "failed_writes_seen": Promise(True, f"A refused command does nothing. {_REFUSED}", MONGODB_CONCERNS),
    }


def broken(promises: Promises, findings: Mapping[str, Finding]) -> tuple[str, ...]:
    """The findings that a variant promises not to occur, and that did."""
    return tuple(name for name, promise in promises.items() if promise.is_made and findings[name].count)


def _promises_of_one_server(why: str, durable: bool, source: str) -> Promises:
    kept = Promise(durable, f"{why}; {'what was acknowledged stays' if durable else 'a crash loses the last writes'}.", source)
    return {
        "lost_writes": kept,
        "stale_reads": kept,
        "non_monotonic_reads": kept,
        "never_written": _NEVER_WRITTEN,
        "failed_writes_seen": Promise(True, f"{why}. {_REFUSED}", source),
    }
