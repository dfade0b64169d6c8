"""What of a trace a replay has to know beforehand: its sessions, how they overlap, and how long they are."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sensorbench.errors import UsageError
from sensorbench.traffic import STATEMENTS, read_statements, workbench_on_disk


@dataclass(frozen=True)
class Sessions:
    """The sessions of a trace that have something to replay: number, statements, and when the first and the last of these arrived (s since
    the first of the trace); all of shape (sessions,). `rows` and `length_s` are of the whole trace.
    """

    numbers: NDArray[np.int64]
    statements: NDArray[np.int64]
    first_s: NDArray[np.float64]
    last_s: NDArray[np.float64]
    rows: int
    length_s: float

    def chosen(self, share: float) -> "NDArray[np.bool_]":
        """Which sessions are replayed of a share of them, shape (sessions,): spread evenly over the order in which they begin."""
        before = np.floor(np.arange(len(self.numbers) + 1) * share)
        chosen: NDArray[np.bool_] = np.diff(before) > 0
        return chosen

    def lengths(self, share: float) -> list[tuple[int, int]]:
        """Each session of a share of them with its statements, as the engine takes them."""
        chosen = self.chosen(share)
        return list(zip(self.numbers[chosen].tolist(), self.statements[chosen].tolist(), strict=True))


def sessions_of(statements: Path, left_out: Collection[int]) -> Sessions:
    """The sessions of a file of statements, without statements of the templates of some numbers. Raises UsageError."""
    with workbench_on_disk(ordered=False) as workbench:
        try:
            whole = workbench.execute(
                'SELECT count(*), coalesce(min(epoch_us("at")), 0), coalesce(max(epoch_us("at")), 0) FROM read_parquet(?)',
                [str(statements)],
            ).fetchone()
            found = workbench.execute(
                'SELECT session, count(*) AS statements, min(epoch_us("at")) AS first_us, max(epoch_us("at")) AS last_us FROM read_parquet(?) '
                "WHERE NOT list_contains(?::INTEGER[], template) GROUP BY session ORDER BY first_us, session",
                [str(statements), sorted(left_out)],
            ).fetchnumpy()
        except duckdb.Error as error:
            raise UsageError(f"{statements}: {error}") from None
    rows, start_us, end_us = whole or (0, 0, 0)
    return Sessions(
        np.asarray(found["session"], dtype=np.int64),
        np.asarray(found["statements"], dtype=np.int64),
        (np.asarray(found["first_us"], dtype=np.float64) - start_us) / 1e6,
        (np.asarray(found["last_us"], dtype=np.float64) - start_us) / 1e6,
        rows,
        (end_us - start_us) / 1e6,
    )


def counts_of_templates(statements: Path) -> dict[int, int]:
    """How many statements of a file each template has, by its number. Raises UsageError."""
    with workbench_on_disk(ordered=False) as workbench:
        try:
            counted = "SELECT template, count(*) FROM read_parquet(?) GROUP BY template"
            return dict(workbench.execute(counted, [str(statements)]).fetchall())
        except duckdb.Error as error:
            raise UsageError(f"{statements}: {error}") from None


@dataclass(frozen=True)
class TraceCopy:
    """A copy of the trace: how much later than the first it comes (s of the replay), and the share of its sessions that are replayed."""

    delay_s: float
    share: float


def copies_of(scale_rate: float, delay_s: float = 1.0) -> list[TraceCopy]:
    """The copies that make this many times the recorded sessions, each this much later than the one before (s)."""
    whole = int(scale_rate)
    shares = [1.0] * whole + ([scale_rate - whole] if scale_rate > whole else [])
    return [TraceCopy(number * delay_s, share) for number, share in enumerate(shares)]


def overlap(sessions: Sessions, copies: Sequence[TraceCopy], speed: float) -> int:
    """How many sessions are open at a time, at most, if each is open from its first statement to its last."""
    starts = np.sort(np.concatenate([sessions.first_s / speed + copy.delay_s for copy in copies]))
    ends = np.sort(np.concatenate([sessions.last_s / speed + copy.delay_s for copy in copies]))
    open_at = np.arange(1, len(starts) + 1) - np.searchsorted(ends, starts, side="left")
    return int(open_at.max(initial=0))


def open_reader(folder: Path) -> pa.RecordBatchReader:
    """The rows of a trace in their order, some of them at a time."""
    return pa.RecordBatchReader.from_batches(STATEMENTS, read_statements(folder))
