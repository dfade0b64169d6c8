"""Work at a server with a configuration: settings of a server that the lab starts, or options of an embedded database's URL."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

import pyarrow as pa

from sensorbench import lab
from sensorbench._engine import Target
from sensorbench.benchmarks.stress import Means, Work
from sensorbench.errors import EngineError, EngineUsageError, UsageError
from sensorbench.interrupts import held_back
from sensorbench.results.engine_plan import OperationsPlan
from sensorbench.results.ownership import Intent
from sensorbench.runner import TargetSpec, Variant, known_size


@dataclass(frozen=True)
class LoadedData:
    """How long it took until the data were there and settled (s), and what they take (bytes), if the database reports it."""

    load_s: float
    size_bytes: float | None


class ConfiguredWork(Work):
    """The same work with another configuration of the server."""

    def __init__(self, work: Work, configuration: Mapping[str, str]) -> None:
        self.variant = _configured(work.variant, configuration)
        self.operations = work.operations
        self.described = work.described
        self.loaded: LoadedData | None = None
        self._work = work
        # Where servers stay: the namespace that goes with this work, and in whose name it was created.
        self._created: tuple[Target, str] | None = None

    @property
    def seed(self) -> int:
        """Seed of all operations."""
        return self._work.seed

    def plan(self) -> OperationsPlan:
        """The plan of the work."""
        return self._work.plan()

    def tables(self) -> list[pa.Table]:
        """The tables of the work."""
        return self._work.tables()

    def intent(self, target: Target) -> Intent:
        """What the work wants of the target's namespace."""
        return self._work.intent(target)

    def make_ready(self, at: Variant, target: Target, means: Means) -> None:
        """Puts the data there, and looks how long that took and how large they are."""
        start_s = time.monotonic()
        if (cluster := self.variant.target.cluster) is not None:
            cluster.note_owner(means.owner.to_json())
            self._created = (target, means.owner.to_json())
        self._work.make_ready(at, target, means)
        load_s = time.monotonic() - start_s
        self.loaded = LoadedData(load_s, known_size(target)["total_bytes"])

    @contextmanager
    def cleared(self) -> Iterator[None]:
        """Has what was created at servers of the user's be gone at the end, so that the next configuration finds none of it. What cannot be
        removed just now is removed when the servers are put back.
        """
        try:
            yield
        finally:
            cluster = self.variant.target.cluster
            if cluster is not None and self._created is not None:
                target, owner = self._created
                with held_back(), suppress(EngineError):
                    target.remove(owner=owner)
                    cluster.forget_owner(owner)


def check_settings(target: TargetSpec, configuration: Mapping[str, str], place: str) -> None:
    """Raises UsageError for a setting that the target does not know; `place`: where it comes from, with {key}. What servers of the user's know
    is for them to say: their file must say how each is set.
    """
    if target.cluster is not None:
        target.cluster.check_settable(configuration)
        return
    for key, why in unknown_settings(target, configuration).items():
        raise UsageError(f"{place.replace('{key}', key)}: {target.database.name} does not know it: {why}")


def unknown_settings(target: TargetSpec, configuration: Mapping[str, str]) -> dict[str, str]:
    """Variants that the target does not know, each with what is said about them."""
    if not target.database.embedded:
        return lab.unknown_settings(lab.ServerSpec(target.database.name, settings=dict(configuration)))
    problems = {}
    for key, value in configuration.items():
        try:
            Target(f"{target.database.name}:tuned?{key}={value}")
        except EngineUsageError as error:
            problems[key] = str(error)
    return problems


def _configured(variant: Variant, configuration: Mapping[str, str]) -> Variant:
    if not variant.target.database.embedded:
        return replace(variant, target=replace(variant.target, server_settings=tuple(configuration.items())))
    for key, value in configuration.items():
        variant = variant.with_option(key, value)
    return variant
