"""What the operations of a run are about: which rows insertions write, and what queries ask for. All of it is drawn before the
run, each as often as the population and the profile say, so that the engine goes through tables.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sensorbench.compat.cassandra_stress.distributions import Distribution, parse_bounds, parse_distribution
from sensorbench.compat.cassandra_stress.population import Population, Rows
from sensorbench.compat.cassandra_stress.profile import Profile
from sensorbench.compat.cassandra_stress.queries import Query
from sensorbench.compat.cassandra_stress.streams import Ints, Streams, below, salt_of, split, stream_of, units
from sensorbench.compat.cassandra_stress.table import Column

# Rows that are made at a time, and in all: those of whole partitions, of which only some may be wanted.
CHUNK_ROWS = 500_000
MAX_ROWS_MADE = 100_000_000
# What tables hold: the engine keeps them in memory.
MAX_BYTES_HELD = 2**30
_BYTES_OF_A_VALUE = 32


@dataclass(frozen=True)
class Partitions:
    """Which partitions operations are about: each in turn from the first number to the last, or by a distribution of their
    numbers.
    """

    distribution: Distribution

    @property
    def in_turn(self) -> bool:
        """Whether they come one after the other."""
        return self.distribution.kind == "seq"

    @property
    def first(self) -> int:
        """The lowest number."""
        return self.distribution.min

    @property
    def last(self) -> int:
        """The highest number."""
        return self.distribution.max

    def numbers(self, places: Ints, stream: np.uint64) -> Ints:
        """The partition's number at each place of the order in which they come."""
        return self.distribution.whole(split(stream, places.view(np.uint64)), places)


def parse_partitions(text: str) -> Partitions:
    """A population as options have it: 1..N, seq=1..N, gaussian(1..N), dist=gaussian(1..N). Raises ValueError."""
    text = text.strip()
    form, sign, rest = text.partition("=")
    if form.lower() == "dist" and sign:
        found = parse_distribution(rest)
    elif (form.lower() == "seq" and sign) or "(" not in text:
        found = Distribution("seq", *parse_bounds(rest if sign else text))
    else:
        found = parse_distribution(text)
    if found.min < 1:
        raise ValueError(f"{text!r}: partitions are numbered from 1 on")
    return Partitions(found)


@dataclass(frozen=True)
class Visits:
    """Insertions, one after the other: how many rows each writes, of how many partitions, and all these rows."""

    sizes: Ints
    partitions: Ints
    rows: pa.Table

    def of_size(self, size: int) -> tuple[pa.Table, float]:
        """Those that write this many rows, each as one row of a table with the values of all; and of how many partitions they are
        on average. Columns follow one another row by row, each with the columns of the profile's table.
        """
        wanted = np.flatnonzero(self.sizes == size)
        starts = (np.cumsum(self.sizes) - self.sizes)[wanted]
        parts = [self.rows.take(pa.array(starts + place)) for place in range(size)]
        columns = [column.combine_chunks() for part in parts for column in part.columns]
        names = [str(number) for number in range(len(columns))]
        return pa.table(columns, names=names), float(self.partitions[wanted].mean())


def insertions(population: Population, partitions: Partitions, count: int, seed: int) -> Visits:
    """The insertions of a run: fewer if more would not be held."""
    insert, table = population.profile.insert, population.profile.table
    stream = _stream("insertions", seed)
    wanted = insert.partitions.whole(split(split(stream, 0), np.arange(count, dtype=np.uint64)), np.arange(count))
    sizes, of_visits, chunks = [], [], []
    places = np.concatenate([[0], np.cumsum(wanted)])
    for start, end in _chunks(wanted * rows_of_a_partition(population.profile)):
        visit = np.repeat(np.arange(end - start), wanted[start:end])
        place = np.arange(places[start], places[end])
        numbers = partitions.numbers(place, split(stream, 1)[0])
        if not partitions.in_turn:
            visit, place, numbers = (of_each[_first_of_equal(visit, numbers)] for of_each in (visit, place, numbers))
        rows = population.rows_of(numbers)
        picked = _selected(population, rows, split(split(stream, 2), place.view(np.uint64)))
        sizes.append(np.bincount(visit[rows.partition[picked]], minlength=end - start))
        of_visits.append(np.bincount(visit, minlength=end - start))
        chunks.append(pa.table({column.name: population.values(rows, column, picked) for column in table.columns}))
    return Visits(np.concatenate(sizes), np.concatenate(of_visits), pa.concat_tables(chunks).combine_chunks())


def arguments(population: Population, partitions: Partitions, query: Query, name: str, count: int, seed: int) -> pa.Table:
    """What this many calls of a query ask for. All arguments are of one row of a partition, each as likely as the others, or each
    of a row of its own.
    """
    stream = _stream(f"arguments of {name}", seed)
    places = np.arange(count)
    numbers, partition = np.unique(partitions.numbers(places, split(stream, 0)[0]), return_inverse=True)
    order = np.argsort(partition, kind="stable")
    ends = np.searchsorted(partition[order], np.arange(len(numbers) + 1))
    chunks = []
    for start, end in _chunks(np.full(len(numbers), rows_of_a_partition(population.profile))):
        rows = population.rows_of(numbers[start:end])
        calls = order[ends[start] : ends[end]]
        chunks.append(_arguments_of(population, rows, query, partition[calls] - start, split(stream, 1), calls))
    return pa.concat_tables(chunks).take(pa.array(np.argsort(order, kind="stable"))).combine_chunks()


def _arguments_of(population: Population, rows: Rows, query: Query, partition: Ints, stream: Streams, calls: Ints) -> pa.Table:
    def row(number: int) -> Ints:
        own = split(split(stream, number), calls.view(np.uint64))
        return rows.firsts[partition] + below(own, rows.counts[partition])

    columns = {
        name: population.values(rows, column, row(number if query.fields == "multirow" else 0))
        for number, (name, column) in enumerate(query.arguments.items())
    }
    # A table needs a column to have rows.
    return pa.table(columns or {"call": calls})


def _selected(population: Population, rows: Rows, streams: Streams) -> Ints:
    """The rows that are written, each with the probability that its partition's share is; of every partition at least one."""
    select = population.profile.insert.select
    if select.is_all:
        return np.arange(len(rows))
    shares = select.shares(split(streams, 0))
    is_wanted = units(split(split(streams, 1)[rows.partition], rows.places.view(np.uint64))) < shares[rows.partition]
    are_without = np.bincount(rows.partition[is_wanted], minlength=len(rows.counts)) == 0
    by_force = rows.firsts + below(split(streams, 2), rows.counts)
    is_wanted[by_force[are_without]] = True
    return np.flatnonzero(is_wanted)


def rows_of_a_partition(profile: Profile) -> float:
    """How many rows a partition has on average, where no values are equal."""
    return float(np.prod([profile.columns[column.name].cluster.average() for column in profile.table.clustering]))


def bytes_of_a_row(profile: Profile, columns: tuple[Column, ...]) -> float:
    """What the engine keeps of a row with these columns."""
    sizes = [profile.columns[column.name].size.average() for column in columns if column.has_size]
    return sum(sizes) + _BYTES_OF_A_VALUE * len(columns)


def max_insertions(profile: Profile) -> int:
    """How many insertions can be made and held."""
    made = profile.insert.partitions.average() * rows_of_a_partition(profile)
    select = profile.insert.select
    share = min(1.0, select.distribution.average() / select.divisor)
    held = max(profile.insert.partitions.average(), made * share) * bytes_of_a_row(profile, profile.table.columns)
    return int(min(MAX_ROWS_MADE / made, MAX_BYTES_HELD / held))


def max_calls(profile: Profile, partitions: Partitions, query: Query) -> int:
    """How many calls of a query can be drawn and held."""
    there = partitions.last - partitions.first + 1
    made = rows_of_a_partition(profile)
    max_made = MAX_ROWS_MADE / made
    held = bytes_of_a_row(profile, tuple(query.arguments.values())) or _BYTES_OF_A_VALUE
    return int(min(MAX_BYTES_HELD / held, np.inf if there <= max_made else max_made))


def _stream(purpose: str, seed: int) -> np.uint64:
    return np.uint64(split(stream_of(seed), salt_of(purpose))[0])


def _first_of_equal(visit: Ints, numbers: Ints) -> Ints:
    """Where each pair stands first: a partition is not written twice at once."""
    _, places = np.unique(np.stack([visit, numbers]), axis=1, return_index=True)
    return np.sort(places)


def _chunks(rows: np.ndarray) -> Iterator[tuple[int, int]]:
    """Stretches of members that have together some `CHUNK_ROWS` rows, or one that has more."""
    chunk = (np.cumsum(rows) / CHUNK_ROWS).astype(np.int64)
    bounds = np.flatnonzero(np.diff(chunk)) + 1
    return zip([0, *bounds.tolist()], [*bounds.tolist(), len(rows)], strict=True)
