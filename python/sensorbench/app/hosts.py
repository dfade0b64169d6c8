"""Whether hosts are fit to measure: reached, of this build, with clocks, connections, disk and memory that will do."""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from sensorbench.benchmarks.doctor import Diagnosis, diagnosis_of, examine, read_machine
from sensorbench.hosts.chosen import ChosenHosts
from sensorbench.hosts.dask_host import DaskHost
from sensorbench.hosts.links import LinkEnd, LinkPlace, measured_link
from sensorbench.hosts.pool import HostPool
from sensorbench.progress import ProgressReporter

CONTROLLER = "controller"
# A common start is agreed on 250 ms before: clocks that are known no better cannot keep it.
MAX_BOUND_S = 0.1


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CheckedLink(_Part):
    """A connection from a host, or from the controller, to another one."""

    source: str
    to: str
    round_trip_s: float | None = Field(description="The median; null if there is no connection.")
    bytes_per_s: float | None
    problem: str | None = None


class CheckedHost(_Part):
    """A host: what was found there, and what is wrong."""

    name: str
    address: str | None = Field(default=None, description="Where servers on it listen; null if it was not reached.")
    roles: list[str]
    labels: dict[str, str]
    version: str | None = None
    wall_offset_s: float | None = Field(default=None, description="How far its time of day is ahead of the controller's.")
    corrected_by_s: float | None = Field(
        default=None, description="CLOCK_MONOTONIC there minus that of the controller: times in results are corrected by it."
    )
    bound_s: float | None = Field(default=None, description="Neither is wrong by more.")
    free_disk_bytes: int | None = None
    free_memory_bytes: int | None = None
    diagnosis: Diagnosis | None = Field(default=None, description="What the doctor says of it.")
    problems: list[str] = Field(description="What is wrong; nothing if the host is fit to measure.")


class CheckedHosts(_Part):
    """All hosts and the connections between them."""

    hosts: list[CheckedHost]
    links: list[CheckedLink]

    @property
    def problems(self) -> list[str]:
        """What is wrong, each with the host that it is about."""
        of_links = [f"{link.source} to {link.to}: {link.problem}" for link in self.links if link.problem]
        return [f"host {host.name}: {problem}" for host in self.hosts for problem in host.problems] + of_links


@dataclass(frozen=True)
class _Examined:
    """What a host says of itself; sizes in bytes."""

    diagnosis: Diagnosis
    free_disk: int | None
    free_memory: int | None


def check_hosts(chosen: ChosenHosts, reporter: ProgressReporter) -> CheckedHosts:
    """Reaches hosts and examines them one after the other, those on this machine once.

    Raises:
        FailedError: if the scheduler of a cluster that is already running cannot be reached.
        LostHostError: if a host is lost while it is examined.

    """
    with HostPool(chosen, reporter, demands_all=False) as pool:
        found: dict[str, CheckedHost] = {}
        of_this_machine: _Examined | None = None
        for host in pool.hosts:
            with reporter.task(f"examining host {host.name}") as task:
                examined = of_this_machine if chosen.are_here and of_this_machine else host.call(_examined)
                of_this_machine = examined
                found[host.name] = _checked(host, examined)
                task.end(examined.diagnosis.verdict)
        links = _links(pool.hosts, reporter)
        for entry in chosen.file.host:
            if entry.name in pool.failures:
                found[entry.name] = CheckedHost(
                    name=entry.name,
                    roles=list(entry.roles),
                    labels=entry.labels,
                    problems=[_without_name(pool.failures[entry.name], entry.name)],
                )
        names = [entry.name for entry in chosen.file.host] or list(found)
        return CheckedHosts(hosts=[found[name] for name in names], links=links)


def _examined() -> _Examined:
    """Examines the machine that this is called on."""
    folder = Path.home()
    checks, timers, figures = examine(folder, ProgressReporter(quiet=True), quick=True)
    reading = read_machine(folder)
    return _Examined(
        diagnosis_of(checks, timers.lag_s, timers.resolution_s, figures, None, quick=True), reading.free_disk, reading.free_memory
    )


def _checked(host: DaskHost, examined: _Examined) -> CheckedHost:
    clock = host.sample_clock()
    problems = [
        f"{check.name}: {check.measured}; {check.action}" for check in examined.diagnosis.checks if check.state == "problem"
    ]
    if clock.bound_ns > MAX_BOUND_S * 1e9:
        problems.append(
            f"its clock is known to ± {clock.bound_ns / 1e6:.0f} ms alone, half of a round trip; expected at most {MAX_BOUND_S * 1e3:.0f} ms: look at the network"
        )
    return CheckedHost(
        name=host.name,
        address=host.address,
        roles=list(host.entry.roles),
        labels=host.entry.labels,
        version=host.about.build.version,
        wall_offset_s=clock.wall_offset_ns / 1e9,
        corrected_by_s=clock.offset_ns / 1e9,
        bound_s=clock.bound_ns / 1e9,
        free_disk_bytes=examined.free_disk,
        free_memory_bytes=examined.free_memory,
        diagnosis=examined.diagnosis,
        problems=problems,
    )


def _links(hosts: Sequence[DaskHost], reporter: ProgressReporter) -> list[CheckedLink]:
    """The connections from the controller to each host, and from each host to each other one."""
    with ExitStack() as stack, reporter.task("connections between hosts") as task:
        ends = {host.name: stack.enter_context(closing(host.keep(LinkEnd, host.address))) for host in hosts}
        places = {name: end.place() for name, end in ends.items()}
        links = [_link(None, name, place) for name, place in places.items()]
        links += [_link(host, name, place) for host in hosts for name, place in places.items() if name != host.name]
        task.end(f"{len(links)} measured")
    return links


def _link(host: DaskHost | None, to: str, place: LinkPlace) -> CheckedLink:
    source = CONTROLLER if host is None else host.name
    try:
        link = measured_link(place) if host is None else host.call(measured_link, place)
    except OSError as error:
        return CheckedLink(
            source=source,
            to=to,
            round_trip_s=None,
            bytes_per_s=None,
            problem=f"no connection to {place.address}: {error.strerror or error}; let these hosts reach each other",
        )
    return CheckedLink(source=source, to=to, round_trip_s=link.round_trip_s, bytes_per_s=link.bytes_per_s)


def _without_name(problem: str, name: str) -> str:
    """A problem that begins with its host, without that."""
    return problem.removeprefix(f"host {name}: ")
