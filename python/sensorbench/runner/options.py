"""Options that benchmarks of several kinds have, where a study says what they do."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from sensorbench import lab
from sensorbench.errors import UsageError
from sensorbench.options import DEFAULT_SEED, OptionModel, option, parsed
from sensorbench.results import PlannedBlocks, ServerResources
from sensorbench.runner.generators.options import GeneratorOptions
from sensorbench.runner.sweep import parse_sweeps


def _above_zero(rate: float) -> float:
    if not rate > 0.0:
        raise ValueError(f"{rate:g}: expected a number of operations per second, above 0")
    return rate


# Operations per second, which come however many are in flight.
Rate = Annotated[float, AfterValidator(_above_zero)]


class RepetitionOptions(OptionModel):
    """From what random choices follow, and how often runs are repeated; `repetitions` is as the study has it if it is None."""

    seed: int = option(DEFAULT_SEED, "Seed of generated data and of operations.")
    repetitions: int | None = option(None, "Runs of each variant.", ge=1)


class RateOptions(OptionModel):
    """How requests of a study come: as the study has it where nothing is said."""

    concurrency: int | None = option(None, "Requests in flight; with --rate, the maximum.", ge=1)
    rate: Rate | None = option(None, "Open loop at this rate: requests per second, whether or not earlier ones are answered.")


class SweepOptions(OptionModel):
    """Which values are compared with one another, by the name of the factor."""

    sweeps: Annotated[dict[str, list[str]], parsed(parse_sweeps, of=list)] = option(
        [],
        "Compare values of a target option or a schema parameter: consistency=one,quorum. May be given several times; all combinations are compared. "
        "batch_rows, writers and write_rate load rows in batches: batch_rows=1000,recommended; batch_rows or writers without values use default levels.",
        "--sweep",
        several=True,
    )


def _size(text: str) -> int:
    return lab.parse_memory(text, "--server-memory")


class HostOptions(OptionModel):
    """Where the nodes of servers that are started are."""

    hosts: str | None = option(
        None,
        "Hosts for the nodes of each server that the lab starts, round robin: hosts.toml, ssh://a,ssh://b or local:3. Without it, they run on this machine.",
    )


class ServerMemoryOptions(OptionModel):
    """The memory that each server may use: the same for all of them. Only servers that the lab starts can be given it."""

    server_memory: Annotated[int | None, parsed(_size)] = option(
        None,
        "Memory of each server that the lab starts, all its nodes together: 2G. Caches and heap are sized to it, and the limit is enforced "
        "if this machine permits that. A node that joins gets as much as each of the others.",
    )


class ServerOptions(ServerMemoryOptions):
    """What each server of a comparison may use."""

    server_cpus: int | None = option(
        None, "CPUs for each server that the lab starts; the client uses the others. Half of them if not given.", ge=1
    )

    @property
    def resources(self) -> ServerResources:
        """What was chosen."""
        return ServerResources(memory_bytes=self.server_memory, cpus=self.server_cpus)


def _reserve(text: str) -> int:
    return lab.parse_memory(text, "--disk-reserve")


# This much of the disk stays free where variants are measured one at a time, if nothing else is said.
DISK_RESERVE_BYTES = 2 << 30


class BlockOptions(OptionModel):
    """Whether variants are measured one at a time, in blocks: each begins with a start of the variant's server."""

    one_at_a_time: bool = option(
        False,
        "Run the server of one variant at a time: each is started for a block of repetitions, and then stopped. Blocks are interleaved.",
    )
    repetitions_per_block: int | None = option(
        None,
        "With --one-at-a-time: repetitions per start of a server; 1 if not given. Verdicts need three blocks.",
        ge=1,
    )
    disk_reserve: Annotated[int | None, parsed(_reserve)] = option(
        None,
        "With --one-at-a-time: disk space to keep free; 2G if not given. If the data of all variants leave less, each block loads again.",
    )

    @property
    def blocks(self) -> PlannedBlocks | None:
        """What was chosen; None if all servers are up. Raises UsageError for options that have no meaning then."""
        return self.over(one_at_a_time=False, repetitions_per_block=None, disk_reserve=None)

    def over(self, *, one_at_a_time: bool, repetitions_per_block: int | None, disk_reserve: int | None) -> PlannedBlocks | None:
        """The same, where an experiment file says what is not said here."""
        per_block = self.repetitions_per_block or repetitions_per_block
        reserve = disk_reserve if self.disk_reserve is None else self.disk_reserve
        if self.one_at_a_time or one_at_a_time:
            return PlannedBlocks(
                repetitions_per_block=per_block or 1,
                disk_reserve_bytes=DISK_RESERVE_BYTES if reserve is None else reserve,
            )
        for flag, value in (("--repetitions-per-block", per_block), ("--disk-reserve", reserve)):
            if value is not None:
                raise UsageError(f"{flag} says how variants are measured one at a time: give --one-at-a-time, too")
        return None


class RankingOptions(OptionModel):
    """What is ranked."""

    include_outdated: bool = option(
        False,
        "Rank outdated versions of databases against current ones. Without it, they are ranked only if no version is current.",
    )


class ChangeOptions(OptionModel):
    """What of an experiment file is changed."""

    changes: tuple[str, ...] = option(
        (), "Change a key of the file: workload.operations=500. May be given several times.", "--set"
    )


class ExperimentOptions(GeneratorOptions, SweepOptions, RankingOptions, ServerOptions, BlockOptions, ChangeOptions):
    """What can be chosen of an experiment file."""


class ClusterOptions(OptionModel):
    """Servers of users that may be set and restarted."""

    cluster: Path | None = option(
        None,
        "Your own cluster instead of one of the lab's: a file that says how to configure and restart its nodes (docs/how-to/cluster.md).",
    )
