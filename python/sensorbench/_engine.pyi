"""The engine, in Rust. Structures go in and out as JSON; rows as Arrow."""

from collections.abc import Sequence
from typing import TypedDict, final, type_check_only

import pyarrow as pa

class EngineError(Exception):
    """Something that the engine or a database could not do."""

class UsageError(EngineError):
    """A URL, schema or plan that cannot be used: nothing was touched."""

class SchemaError(UsageError):
    """A schema that cannot be used; args are (path of the key, message)."""

class TargetError(EngineError):
    """A database that cannot be reached, or that refused something."""

class NamespaceError(TargetError):
    """Something at the target that sensorbench must not touch."""

class DataError(TargetError):
    """Rows that do not fit, or that the database cannot hold."""

class CancelledError(EngineError):
    """What was asked for was cancelled on the way."""

@type_check_only
class Segment(TypedDict):
    """What was recorded since the segment before."""

    operations: pa.RecordBatch
    answers: pa.RecordBatch
    intervals: pa.RecordBatch
    histograms: str
    events: list[tuple[int, str]]

@final
class Target:
    """A database at an address. Raises UsageError for a URL that cannot be used."""

    def __new__(cls, url: str) -> Target: ...
    @property
    def url(self) -> str:
        """The URL without user info and secrets."""

    def describe(self) -> str:
        """What answers there: database, version, settings (JSON)."""

    def check(self, *, intent: str, owner: str) -> None:
        """Raises NamespaceError when the intent (create, attach, resume, replace) is refused to this results folder (JSON: id, folder), and
        TargetError when nobody answers. Nothing is changed.
        """

    def create(self, schema: str, fingerprint: str, *, intent: str, owner: str) -> None:
        """Creates the namespace with the schema's empty tables, and notes what will lie there. `intent` is create, resume or replace; `owner`
        the results folder (JSON: id, folder). Raises NamespaceError when that may not be done; nothing is changed then.
        """

    def attach(self, schema: str, *, intent: str, owner: str) -> None:
        """Uses tables that were created before: those of any results folder (attach), or of this one (resume). Raises NamespaceError."""

    def admission(self) -> tuple[str, str]:
        """What another process needs to take part in what this one has created or attached: the URL, with its secrets, and the schema (JSON).
        Raises UsageError if there is nothing yet.
        """

    def take_part(self, schema: str) -> None:
        """Uses tables by the admission of a process that was allowed to create or attach them."""

    def fingerprint(self) -> str | None:
        """What was noted of what lies there, or None when there is nothing of sensorbench's."""

    def set_fingerprint(self, fingerprint: str) -> None:
        """Notes what lies there. Raises NamespaceError when there is nothing of sensorbench's."""

    def marker(self) -> str | None:
        """The ownership marker: owner (or null), created_s (or null), fingerprint (JSON); None when there is nothing of sensorbench's."""

    def namespaces(self) -> list[str]:
        """Names of all namespaces at the target with a marker of ours."""

    def load(
        self, table: str, rows: pa.RecordBatchReader, *, with_targets: Sequence[Target] = ..., batch_rows: int | None = None
    ) -> Load:
        """Starts loading rows of canonical Arrow types (Boolean, Int64, Float64, Timestamp(µs), Utf8, Binary).

        Args:
            table: the table.
            rows: its rows.
            with_targets: other handles of the same target that load with this one: each takes the next batch when it has sent one.
            batch_rows: rows of a batch, at most; as `rows` has them if None.

        """

    def write_load_file(self, table: str, rows: pa.RecordBatchReader, file: str) -> Load:
        """Starts writing rows to a file that the database's own tool loads, where only the driver knows what such a file looks like."""

    def settle(self) -> None:
        """Does what comes after loading: flushes, compactions, indexes."""

    def show(self) -> None:
        """Makes visible what was written, where the server acknowledges before that."""

    def count(self, table: str, missing: dict[str, int] = ...) -> int:
        """Counts the rows of a table by looking at them. `missing` says of how many rows a column has no value, for servers that keep values each
        by itself.
        """

    def size(self) -> str:
        """Bytes on disk: total_bytes, and parts by name (JSON)."""

    def status(self) -> str:
        """Counters and gauges that the server keeps of itself, by its own names (JSON)."""

    def execute_once(self, operation: str, parameters: pa.RecordBatchReader) -> str:
        """Asks an operation (JSON) once, unmeasured, with the first row of `parameters`; the statement's rows as lists (JSON)."""

    def remove(self, *, owner: str) -> None:
        """Removes the namespace if this results folder (JSON: id, folder) created it; does nothing otherwise."""

    def clean(self) -> None:
        """Removes the namespace, whichever results folder created it. Raises NamespaceError when there is nothing of sensorbench's."""

    def replay(self, plan: str, lengths: Sequence[Sequence[tuple[int, int]]], readers: Sequence[pa.RecordBatchReader]) -> Run:
        """Starts the replay of a trace: `plan` as JSON; `lengths` has for each copy its sessions with how many statements of them are replayed,
        `readers` the rows of the trace: at, session, transaction, template, parameters.
        """

    def check_writes(self, templates: str, writes: Sequence[int], reads: Sequence[int], *, read_only: bool) -> str:
        """Whether statement templates (JSON) write to tables of the namespace alone, or nowhere where they are executed `read_only`: template, problem or
        null (JSON). Nothing is executed. `writes` and `reads` are numbers of those that write, and of those that seem to read.
        """

    def prepare(self, plan: str, tables: Sequence[pa.RecordBatchReader]) -> Prepared:
        """Connects all sessions of a run; `tables` are those that the plan's draws name."""

    def watch_freshness(self, plan: str, tables: Sequence[pa.RecordBatchReader]) -> Freshness:
        """Connects, and starts writing and watching markers; `tables` are those that the plan's draws name."""

    def run(self, plan: str, tables: Sequence[pa.RecordBatchReader]) -> Run:
        """Connects all sessions and starts a run; `tables` are those that the plan's draws name."""

@final
class Load:
    """A load in progress."""

    def wait(self, timeout_s: float) -> bool:
        """Waits until it is over, but not longer; True when it is over."""

    @property
    def rows(self) -> int:
        """Rows that the database has taken in so far."""

    def stop(self) -> None:
        """Asks it to stop."""

    def result(self) -> str:
        """Rows, duration_s, batches, batch_s, retries (JSON); raises the load's error."""

@final
class Run:
    """A run in progress: a handle to look at it, steer it and stop it."""

    def wait(self, timeout_s: float) -> bool:
        """Waits until it is over, but not longer; True when it is over."""

    def failure(self) -> str | None:
        """What kept a replay from reading its trace to the end."""

    def now_ns(self) -> int:
        """Time on the run's clock, which all its results are on."""

    def snapshot(self) -> str:
        """How far it is: now_ns, current_phase, phases with figures (JSON)."""

    def take(self) -> Segment:
        """What was recorded since the last time, without intervals that are still open."""

    def annotate(self, name: str) -> None:
        """Puts down that something happened now."""

    def set_rate(self, per_s: float) -> None:
        """From now on operations come at this rate; raises UsageError in a closed loop."""

    def set_rate_at(self, per_s: float, at_ns: int) -> None:
        """From a time on the run's clock on, which lies ahead, operations come at this rate; raises UsageError in a closed loop."""

    def timer_lag(self) -> str:
        """How late it was where it waited for an intended start: an HdrHistogram interval log with one line, or none."""

    def stop(self) -> None:
        """Starts no more operations."""

    def cancel(self) -> None:
        """Ends the operations in flight, too."""

    def end(self) -> tuple[Segment, str]:
        """Waits until it is over; the last segment, and the run as a whole (JSON)."""

@final
class Prepared:
    """A run whose sessions are connected. Without a start, they disconnect when it is gone."""

    def start_at(self, at_ns: int) -> Run:
        """Has it begin at a time on its clock, and returns at once. Raises UsageError if it has started."""

@final
class Freshness:
    """Markers that are written and watched beside whatever else continues."""

    def now_ns(self) -> int:
        """Time on the clock of the markers. Raises UsageError when they are over."""

    def stop(self) -> None:
        """Writes no more markers. Those that are not visible yet are read on. Raises UsageError when they are over."""

    def end(self) -> pa.RecordBatch:
        """Stops, and waits until the last marker is seen or given up: marker, intended_start_ns, start_ns, end_ns, outcome of each write,
        missed_ns (start of the last read that missed it, or null), found_ns (end of the first that returned it, or null), reads, failed_reads.
        Raises UsageError when they are over.
        """

@final
class Merge:
    """Adds up what load generators that share a run have recorded, without loss."""

    def __new__(cls, phases: Sequence[str], operations: Sequence[str], interval_ns: int) -> Merge: ...
    def add(self, intervals: pa.RecordBatch, histograms: str) -> None:
        """Adds a segment of a load generator. Raises DataError for one of another run."""

    def add_timer_lag(self, log: str) -> None:
        """Adds what `Run.timer_lag` told. Raises DataError."""

    def take(self, before_ns: int | None = None) -> tuple[pa.RecordBatch, str]:
        """Takes out the sums of intervals that begin before a time, or of all: rows as a segment has them, and their interval log."""

    def figures(self) -> str:
        """Figures of all that was added, by phase and operation (JSON)."""

    def timer_lag(self) -> str:
        """How late all of them were (JSON); null if none waited."""

@final
class Generator:
    """Rows in parts, each a function of what the generator was made with and of its number alone."""

    @property
    def parts(self) -> int:
        """How many parts there are."""

    def rows(self, threads: int, first: int = 0, end: int | None = None) -> pa.RecordBatchReader:
        """The rows of the parts from `first` until before `end`, of all if not given, a batch a part; this many are made at a time."""

def databases() -> str:
    """The databases that are built in: name, dialect, summary, embedded, in_memory, many_processes, relational, bulk_load, replays (JSON)."""

def check_schema(name: str, schema: str) -> None:
    """Raises SchemaError when a database cannot use a schema."""

def no_op_schema(name: str) -> str | None:
    """A schema with an operation that does as little as this database can, or None when only a server knows."""

def generate_building(series: str, seed: int, start_us: int, minutes: int) -> Generator:
    """Measurements of a building's sensors, minute by minute: site, zone, sensor, time, value."""

def generate_fitted(series: str, seed: int, start_us: int, end_us: int, copies: int) -> Generator:
    """Measurements of sensors like fitted ones, each this many times."""

def generate_machine_log(plan: str, seed: int) -> Generator:
    """The log of machines, in the order of its records: machine, sensor, begin_time, end_time, value."""

def generate_articles(plan: str, seed: int, first_id: int, end_id: int) -> Generator:
    """Articles from one id until before another: id, title, text. Each is a function of the seed and its id alone."""

def generate_walks(plan: str, seed: int) -> Generator:
    """Measurements of hosts, epoch by epoch and host by host: site, zone, time and the columns of the plan (JSON)."""

def generate_hosts(hosts: int, seed: int, of_measurements: bool) -> Generator:
    """Hosts with their tags: site, zone, name, region and so on, and if `of_measurements` those that single measurements have. Each is a function
    of the seed and its number alone.
    """

def generate_telemetry(plan: str, seed: int) -> Generator:
    """A measurement of trucks as it is delivered, late, with gaps and nulls: site, zone, time, arrival and the fields of the plan (JSON)."""

def generate_stations(plan: str, seed: int) -> Generator:
    """Readings of stations, epoch by epoch and station by station: site, time and the fields of the plan (JSON), some of which may be null."""

def generate_devices(plan: str, seed: int) -> Generator:
    """Readings of devices in groups, series by series in the order of time: site, zone, sensor, time, value. Each is a function of its number."""

def generate_trucks(trucks: int, seed: int) -> Generator:
    """Trucks with their tags: site, zone, name, fleet and so on. Each is a function of the seed and its number alone."""

def batch_rows(rows: pa.RecordBatchReader, batching: str) -> pa.RecordBatchReader:
    """Rows as byte-array batches, one for rows of one group and stretch of time that follow one another."""

def batch_cost(rows: pa.RecordBatchReader, encoding: str, batch: int) -> str:
    """What readings (time, value) in batches of this many cost: readings, bytes, encode_ns and decode_ns a reading (JSON)."""

def digest(rows: pa.RecordBatchReader, operation: str) -> tuple[int, int, bool | None, list[float]]:
    """Of an answer: number of rows, hash, whether they are in order, values of computed columns."""

def row_hashes(rows: pa.RecordBatchReader, columns: Sequence[str]) -> pa.RecordBatch:
    """The hash of each row over some columns (column `hash`): the hash of an answer is the sum of them modulo 2^64."""

def statement_operations(operation: str, work: str) -> str:
    """The statements of an operation, its own first, each as an operation without the client's work (JSON)."""

def parameters(
    plan: str,
    tables: Sequence[pa.RecordBatchReader],
    phase: int,
    operation: int,
    numbers: Sequence[int] | None = None,
    count: int = 0,
    every: int = 1,
) -> pa.RecordBatch:
    """The parameters of operations of one kind, of each of their readings: of those with these numbers k, or of all of this kind
    among the first `count`; of those, of every n-th.
    """

def read_interval_log(text: str) -> pa.RecordBatch:
    """An HdrHistogram interval log: tag, start_ns, length_ns, value_ns (list), count (list)."""

def summed_interval_log(text: str) -> str:
    """The same log with one line for each tag, which has all its intervals."""

def toml_lines(text: str) -> dict[str, int]:
    """The line of every key by its path; raises UsageError(line, message) for a text that is not TOML."""
