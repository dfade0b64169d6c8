"""What a kind of benchmark is, and how one is run."""

import logging
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from sensorbench import __version__, lab
from sensorbench.errors import UsageError
from sensorbench.hosts.pool import HostPool
from sensorbench.lifecycle.status import record_status
from sensorbench.options import GIVEN_ELSEWHERE
from sensorbench.paths import check_is_free
from sensorbench.progress import ProgressReporter
from sensorbench.results.described import Environment
from sensorbench.results.environment import environment
from sensorbench.results.manifest import BaseManifest, Planned, Process, VariantManifest, now
from sensorbench.results.ownership import Owner, new_id
from sensorbench.results.reader import has_results, read_manifest
from sensorbench.results.writer import ManifestWriter
from sensorbench.runner import Servers, client_figures

# How options end that are followed by a command of the user's.
_COMMANDS = "-command"
_log = logging.getLogger(__name__)


# What began a benchmark where it was not a command line of ours.
_CALL: ContextVar[list[str] | None] = ContextVar("call", default=None)


@contextmanager
def recorded_as(command: Sequence[str]) -> Iterator[None]:
    """Has manifests that are begun in this context name a command of its own: the process's is that of a notebook or of a user's program."""
    token = _CALL.set([_shown(word) for word in command])
    try:
        yield
    finally:
        _CALL.reset(token)


def command_line() -> list[str]:
    """The command line, with the options that environment and sensorbench.toml give, without what could be a secret: targets are shown in
    the variants, and commands of users are not shown.
    """
    if (call := _CALL.get()) is not None:
        return call
    given = sys.argv[1:]
    end = given.index("--") if "--" in given else len(given)
    words = [*given[:end], *GIVEN_ELSEWHERE, *given[end:]]
    pairs = zip(["", *words], words, strict=False)
    return ["sensorbench", *("…" if before.endswith(_COMMANDS) else _shown(word) for before, word in pairs)]


def _shown(word: str) -> str:
    option, equals, _ = word.partition("=")
    if equals and option.startswith("--") and option.endswith(_COMMANDS):
        return f"{option}=…"
    return word.partition(":")[0] + ":…" if "//" in word and ":" in word else word


Plan = TypeVar("Plan")
Manifest = TypeVar("Manifest", bound=BaseManifest[Any])
Writer = TypeVar("Writer", bound=ManifestWriter[Any])


@dataclass(frozen=True)
class RunContext(Generic[Writer]):
    """What a benchmark works with: its folder, in whose name it creates namespaces, servers that are up, its results, and the user."""

    folder: Path
    owner: Owner
    servers: Servers
    writer: Writer
    progress: ProgressReporter


@dataclass(frozen=True)
class Description(Generic[Planned]):
    """What a manifest says of a plan. `environment` is added to what all kinds say of the machine."""

    title: str
    plan: Planned
    variants: Sequence[VariantManifest] = ()
    environment: Environment = field(default_factory=lambda: Environment())


class Benchmark(ABC, Generic[Plan, Manifest, Writer]):
    """A kind of benchmark. Each method does what is the kind's own; `run` does what all kinds share."""

    # Which manifest it writes, and by what.
    manifest: ClassVar[type[Any]]
    writer: ClassVar[type[Any]]
    can_resume: ClassVar[bool] = False

    def hosts(self, plan: Plan) -> HostPool | None:
        """The hosts that it uses: they are reached before its servers are up, and left when these are down."""
        del plan
        return None

    def servers(self, plan: Plan, progress: ProgressReporter) -> AbstractContextManager[Servers]:
        """The servers that are up while it is carried out; none if a kind starts them one by one."""
        del plan, progress
        return nullcontext(Servers({}))

    def check(self, plan: Plan, servers: Servers, owner: Owner) -> None:
        """Raises UsageError for what the targets refuse, before anything is written."""

    @abstractmethod
    def describe(self, plan: Plan, servers: Servers) -> Description[Any]:
        """What the manifest says of the plan."""

    def check_same(self, before: Manifest, after: Manifest, folder: Path) -> Manifest:
        """The manifest with which results are resumed. Raises UsageError if they were begun with another plan."""
        raise AssertionError(f"a kind that can resume says what must be the same: {type(self).__name__}")

    @abstractmethod
    def execute(self, plan: Plan, context: RunContext[Writer]) -> None:
        """Carries out the plan. Raises FailedError, EngineError, DiskFullError and KeyboardInterrupt."""

    def clean_up(self, plan: Plan, context: RunContext[Writer]) -> None:
        """Removes what a complete benchmark has no use for any more."""


def run(
    benchmark: Benchmark[Plan, Manifest, Writer], plan: Plan, folder: Path, progress: ProgressReporter, *, resume: bool = False
) -> None:
    """Runs a benchmark into a folder, which is new unless it continues with results there.

    Raises:
        UsageError: before anything is written.
        InterruptedRunError, FailedError, DiskFullError: after what was done until then is on disk.

    """
    check_folder(folder, resume=resume, can_resume=benchmark.can_resume)
    before = read_manifest(folder, benchmark.manifest) if resume else None
    if before is not None and before.state == "running" and before.process != Process.this():
        raise UsageError(f"--resume: another process is writing into {folder}; wait until it has ended")
    owner = Owner.of(before.id if before else new_id(), folder)
    with benchmark.hosts(plan) or nullcontext() as hosts, lab.lent(hosts), benchmark.servers(plan, progress) as servers:
        _log.info("check the plan at its targets")
        benchmark.check(plan, servers, owner)
        manifest = _manifest(benchmark, benchmark.describe(plan, servers), owner, folder)
        if before is not None:
            manifest = benchmark.check_same(before, manifest, folder)
        writer = benchmark.writer(folder, manifest)
        context = RunContext(folder, owner, servers, writer, progress)
        with record_status(writer, "; --resume continues" if benchmark.can_resume else "", servers):
            _log.info("execute into %s", folder)
            benchmark.execute(plan, context)
        if writer.manifest.status == "complete":
            benchmark.clean_up(plan, context)


def check_folder(folder: Path, *, resume: bool, can_resume: bool = True) -> None:
    """Raises UsageError when results cannot go into a folder."""
    if not resume:
        check_is_free(folder, ", or continue with --resume" if can_resume else "")
    elif not has_results(folder):
        raise UsageError(
            f"--resume: {folder} holds no results to continue; leave out --resume to begin, or name another folder with --out"
        )


def _manifest(benchmark: Benchmark[Plan, Manifest, Writer], described: Description[Any], owner: Owner, folder: Path) -> Manifest:
    """The manifest of a benchmark that begins now."""
    manifest: Manifest = benchmark.manifest(
        id=owner.id,
        title=described.title,
        process=Process.this(),
        created=now(),
        version=__version__,
        command=command_line(),
        environment={**environment(folder), "client": client_figures(), **described.environment},
        variants=list(described.variants),
        plan=described.plan,
    )
    return manifest
