"""Hosts that end while others begin, in the data of TSBS: in each period a share of them is replaced by as many new ones, as where containers are
restarted. TSBS itself has none; prometheus-benchmark calls it churn.

As many hosts have readings at any time, and more and more have had some. A host that takes another one's place has a number, and so tags, of its
own, and continues with its values.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sensorbench._engine import generate_hosts, generate_walks

# The fractional parts of its multiples are evenly spread, so that as many hosts end in each interval.
_GOLDEN_RATIO = 0.618033988749895


@dataclass(frozen=True)
class Renewal:
    """When hosts take the place of others.

    Args:
        hosts: how many there are at any time.
        share: of them that is replaced in a period.
        period_us: the period, in µs.
        start_us: when it begins, in µs since 1970.

    """

    hosts: int
    share: float
    period_us: int
    start_us: int

    def hosts_at(self, places: NDArray[np.int64], times_us: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of the hosts that have some places (0 to hosts − 1) at some times, of equal length."""
        return places + self.hosts * self._generations(places, times_us)

    def are_seen(self, hosts: NDArray[np.int64], last_us: int) -> NDArray[np.bool_]:
        """Whether hosts have begun until a time."""
        places = hosts % self.hosts
        return np.asarray(hosts // self.hosts <= self._generations(places, np.full_like(places, last_us)))

    def numbers_until(self, last_us: int) -> int:
        """A number that no host has that begins until a time, nor any larger one."""
        elapsed = (last_us - self.start_us) / self.period_us
        return self.hosts * (math.ceil(elapsed * self.share) + 1)

    def _generations(self, places: NDArray[np.int64], times_us: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many hosts have had each place before: each is had for 1 / share periods, and begins somewhere within them."""
        elapsed = np.maximum(times_us - self.start_us, 0) / self.period_us
        return np.floor(elapsed * self.share + places * _GOLDEN_RATIO % 1.0).astype(np.int64)


@dataclass(frozen=True)
class RenewedReadings:
    """Readings of hosts, whose numbers change. Parts are those of the readings without churn.

    Args:
        plan: of `generate_walks` (JSON).
        seed: from which all rows follow.
        renewal: who takes whose place.
        last_us: the time of the last reading, in µs since 1970.

    """

    plan: str
    seed: int
    renewal: Renewal
    last_us: int

    @cached_property
    def parts(self) -> int:
        """How many parts there are."""
        return generate_walks(self.plan, self.seed).parts

    def rows(self, threads: int, first: int = 0, end: int | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of the parts from `first` until before `end`, of all if not given, a batch a part."""
        sites = self._sites()
        for batch in generate_walks(self.plan, self.seed).rows(threads, first, end):
            places = batch["zone"].to_numpy().astype(np.int64)
            hosts = self.renewal.hosts_at(places, batch["time"].cast(pa.int64()).to_numpy())
            keys = [pa.array(sites[hosts]), pa.array(hosts.astype(np.int32))]
            yield pa.RecordBatch.from_arrays([*keys, *batch.columns[2:]], schema=batch.schema)

    def _sites(self) -> NDArray[np.int32]:
        """The site of each host, by its number."""
        batches = generate_hosts(self.renewal.numbers_until(self.last_us), self.seed, of_measurements=False).rows(1)
        return np.concatenate([batch["site"].to_numpy() for batch in batches])


@dataclass(frozen=True)
class SeenHosts:
    """The hosts that have any reading, with their tags, in the order of their numbers."""

    renewal: Renewal
    seed: int
    last_us: int

    @cached_property
    def parts(self) -> int:
        """How many parts there are."""
        return generate_hosts(self.renewal.numbers_until(self.last_us), self.seed, of_measurements=False).parts

    def rows(self, threads: int, first: int = 0, end: int | None = None) -> Iterator[pa.RecordBatch]:
        """The hosts of the parts from `first` until before `end`, of all if not given, a batch a part."""
        numbers = self.renewal.numbers_until(self.last_us)
        for batch in generate_hosts(numbers, self.seed, of_measurements=False).rows(threads, first, end):
            seen = self.renewal.are_seen(batch["zone"].to_numpy().astype(np.int64), self.last_us)
            yield batch.filter(pa.array(seen))
