"""Which rows there are: a function of the seed, of a partition's number and of the place of a row in it, so that queries find
what insertions wrote, in whatever order.

A partition's key follows from its number. What is in it follows from its key alone: numbers with the same key are one
partition. At each level of the clustering there are as many values as its `cluster` says, drawn from its population; equal ones
are one, as in cassandra-stress.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sensorbench.compat.cassandra_stress.profile import Profile
from sensorbench.compat.cassandra_stress.streams import Ints, Streams, salt_of, scrambled, split, stream_of
from sensorbench.compat.cassandra_stress.table import Column
from sensorbench.compat.cassandra_stress.values import Numbers, fingerprints, numbers_of, values_of


@dataclass(frozen=True)
class Rows:
    """Rows of some partitions, one partition after the other: `firsts` and `counts` say which rows each has. `partition` is the
    place of each row's partition among them, `places` that of the row in it. `keys` are the numbers of the key's values.
    """

    firsts: Ints
    counts: Ints
    partition: Ints
    places: Ints
    keys: dict[str, Numbers]
    partition_streams: Streams
    streams: Streams

    def __len__(self) -> int:
        return len(self.partition)


class Population:
    """The rows of a profile, for a seed."""

    def __init__(self, profile: Profile, seed: int) -> None:
        self.profile = profile
        self._stream = stream_of(seed)

    def rows_of(self, partitions: Ints) -> Rows:
        """All rows of the partitions with these numbers, from 1 on."""
        keys: dict[str, Numbers] = {}
        streams = split(self._stream, partitions.view(np.uint64))
        of_key = np.full(len(partitions), self._stream)
        for column in self.profile.table.partition_key:
            keys[column.name] = self._numbers(column, streams, partitions - 1)
            of_key = self._below(of_key, column, keys[column.name])
        partition, streams = np.arange(len(partitions)), of_key
        for column in self.profile.table.clustering:
            parents, numbers = self._level(column, streams)
            keys = {name: of_parents[parents] for name, of_parents in keys.items()} | {column.name: numbers}
            partition, streams = partition[parents], self._below(streams[parents], column, numbers)
        counts = np.bincount(partition, minlength=len(partitions))
        firsts = np.cumsum(counts) - counts
        return Rows(firsts, counts, partition, np.arange(len(partition)) - firsts[partition], keys, of_key, streams)

    def values(self, rows: Rows, column: Column, picked: Ints) -> pa.Array:
        """The values that some of the rows have in a column."""
        if column.name in rows.keys:
            numbers = rows.keys[column.name][picked]
        elif column.is_static:
            numbers = self._numbers(column, rows.partition_streams[rows.partition[picked]], rows.places[picked] * 0)
        else:
            numbers = self._numbers(column, rows.streams[picked], rows.places[picked])
        return values_of(column, self.profile.columns[column.name], numbers)

    def _numbers(self, column: Column, streams: Streams, ordinals: Ints) -> Numbers:
        return numbers_of(column, self.profile.columns[column.name], streams, ordinals)

    def _below(self, streams: Streams, column: Column, numbers: Numbers) -> Streams:
        """The streams of what lies below values of a column."""
        return scrambled(streams ^ fingerprints(column, self.profile.columns[column.name], numbers))

    def _level(self, column: Column, streams: Streams) -> tuple[Ints, Numbers]:
        """The values of a column below each parent: for each value the place of its parent, and its number."""
        cluster = self.profile.columns[column.name].cluster
        wanted = cluster.whole(split(streams, salt_of(f"values of {column.name}")), np.arange(len(streams)))
        parents = np.repeat(np.arange(len(streams)), wanted)
        ordinals = np.arange(len(parents)) - np.repeat(np.cumsum(wanted) - wanted, wanted)
        numbers = self._numbers(column, split(streams[parents], ordinals.view(np.uint64)), ordinals)
        if int(wanted.max(initial=1)) == 1:
            return parents, numbers
        own = fingerprints(column, self.profile.columns[column.name], numbers)
        # Of equal values below one parent the first is kept; sorting is stable.
        order = np.lexsort((own, parents))
        is_first = np.ones(len(order), bool)
        is_first[1:] = (own[order][1:] != own[order][:-1]) | (parents[order][1:] != parents[order][:-1])
        kept = np.sort(order[is_first])
        return parents[kept], numbers[kept]
