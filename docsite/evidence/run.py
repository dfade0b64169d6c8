"""Makes one bundle of evidence: `make evidence NAME=…`.

The command of `evidence/evidence.toml` is run or resumed; its results become a bundle, which is verified, and pages are written from it.
What ends the terminal does not end the run: `nohup` is not needed. Only one runs at a time, since two would measure each other. It begins when the
machine is idle, and counts the CPU time that others use meanwhile.
"""

import ctypes
import fcntl
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import psutil

from docsite.evidence.entries import (
    FOLDER,
    MADE_FILE,
    MAX_MB,
    MAX_TOTAL_MB,
    MB,
    ROOT,
    Entry,
    Made,
    bundle_file,
    bundle_files,
    read_made,
    require_entry,
)
from docsite.evidence.pages import write_all
from sensorbench.app.bundle import bundle, summary_at, verify
from sensorbench.errors import FailedError, SensorbenchError, UsageError
from sensorbench.results import has_results
from sensorbench.results.bundle import BUNDLE_SUFFIX
from sensorbench.results.checksums import new_checksum_of
from sensorbench.results.elasticity import parts_left, read_study_plan
from sensorbench.results.files import write_text

WORK = ROOT / "results" / "evidence"
# Publishes what was measured so far, and measures no more.
AS_IS = "--as-is"
# A load average of the last minute below which a machine is idle, and how long to wait for it.
IDLE_LOAD = 0.5
PATIENCE_S = 600.0
_POLL_S = 5.0
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


def is_complete(results: Path, entry: Entry) -> bool:
    """Whether results are there that need no further run. Those of a command with a smaller budget do: it may have left something out."""
    if read_study_plan(results) is not None:
        return not parts_left(results)
    if not has_results(results):
        return False
    summary = summary_at(results)
    return summary.status == "complete" and entry.is_of(summary.command)


def is_begun(results: Path) -> bool:
    """Whether there are results that can be resumed."""
    return has_results(results) or read_study_plan(results) is not None


def measured_by(entry: Entry, results: Path) -> list[str]:
    """The command that makes the results of an entry, or continues with those that were begun."""
    resume = ["--resume"] if is_begun(results) else []
    return [sys.executable, "-m", "sensorbench", *entry.arguments, "--no-open", "--out", str(results), *resume]


def check_priority() -> None:
    """Raises UsageError for a process that gives way to others: what it measures is not evidence."""
    if (niceness := os.nice(0)) > 0:
        raise UsageError(f"this process has niceness {niceness}, so that others slow it down; start it without nice")


@contextmanager
def alone(work: Path) -> Iterator[None]:
    """Keeps others from measuring evidence at the same time. Raises UsageError when somebody does."""
    work.mkdir(parents=True, exist_ok=True)
    with (work / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"{work}: evidence is being measured; wait for it, since two runs would slow each other down"
            ) from None
        yield


def wait_until_idle(idle_load: float = IDLE_LOAD, patience_s: float = PATIENCE_S) -> float:
    """Waits until the machine has nothing else to do.

    Returns:
        The load average of the last minute.

    Raises:
        FailedError: it is not below `idle_load` after `patience_s` seconds.

    """
    deadline_s = time.monotonic() + patience_s
    while (load := os.getloadavg()[0]) >= idle_load:
        if time.monotonic() >= deadline_s:
            raise FailedError(
                f"the machine is not idle: its load average is {load:.2f} after {patience_s:.0f} s, and {idle_load} is wanted; "
                "end what else runs, and run this again"
            )
        print(f"load average {load:.2f}; waiting until it is below {idle_load}", flush=True)
        time.sleep(_POLL_S)
    return load


@dataclass(frozen=True)
class Ended:
    """How a command ended, and the CPU time that others used meanwhile, in seconds."""

    returncode: int
    others_cpu_s: float


def run_counted(command: Sequence[str], output: BinaryIO) -> Ended:
    """Runs a command, whose output goes into a file, and counts the CPU time of all processes that do not come from it.

    Servers that the command starts leave its process tree. They become children of this process instead of init's, and their CPU time is the
    command's: this process reaps them. The kernel's own threads count as others.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")
    busy_s, own_s = _machine_cpu_s(), _reaped_cpu_s()
    process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=ROOT)
    reaped = 0
    while reaped != process.pid:
        reaped, status = os.waitpid(-1, 0)
    # What ended at the same time is the command's, too.
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    # `Popen` must not wait for a process that is gone.
    process.returncode = os.waitstatus_to_exitcode(status)
    others_s = (_machine_cpu_s() - busy_s) - (_reaped_cpu_s() - own_s)
    # The two clocks have different resolutions.
    return Ended(process.returncode, max(0.0, others_s))


def _machine_cpu_s() -> float:
    """CPU time that the machine used since it started. Guests are part of user and nice, steal is none of ours."""
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq)


def _reaped_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(name: str, entry: Entry, work: Path = WORK) -> Made | None:
    """Runs the command of an entry, or continues with it; what it prints goes into a file next to the results.

    Returns:
        How it was made, all runs together, which a file beside the results keeps until they are published; None if they were complete before, and
        there is none.

    Raises:
        FailedError: the command failed, or the machine does not become idle.

    """
    results, log = work / name, work / f"{name}.log"
    if is_complete(results, entry):
        return how_made(name, work)
    command = measured_by(entry, results)
    earlier = how_made(name, work) if is_begun(results) else None
    before, start_s = wait_until_idle(), time.monotonic()
    print(f"{shlex.join(command[1:])}\noutput: {log}; load average before: {before:.2f} on {os.cpu_count()} CPUs", flush=True)
    with log.open("ab") as output:
        ended = run_counted(command, output)
    made = Made(
        sha256="",
        took_s=time.monotonic() - start_s,
        load_before=before,
        load_after=os.getloadavg()[0],
        cpus=os.cpu_count() or 1,
        others_cpu_s=ended.others_cpu_s,
    )
    if earlier is not None:
        made = made.after(earlier)
    write_text(_made_file(name, work), made.model_dump_json(indent=1) + "\n")
    if ended.returncode:
        last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:]
        raise FailedError(f"the command ended with exit code {ended.returncode}; the last lines of {log}: {' / '.join(last)}")
    return made


def how_made(name: str, work: Path = WORK) -> Made | None:
    """How results were made, all runs together, as the file next to them says; None if there is none."""
    kept = _made_file(name, work)
    return Made.model_validate_json(kept.read_bytes()) if kept.exists() else None


def _made_file(name: str, work: Path) -> Path:
    return work / f"{name}.made.json"


def publish(name: str, results: Path, folder: Path = FOLDER) -> Path:
    """Makes the bundle of results, verifies it, and puts it where evidence lies.

    Raises:
        FailedError: answers differ, the bundle is too large, all bundles together are, or it is rejected; nothing is changed.

    """
    if read_study_plan(results) is None and summary_at(results).answers_equal is False:
        raise FailedError(
            f"{results}: the answers differ, so this is not evidence; fix the cause, remove the folder, and run again"
        )
    unfinished = results.parent / f"{name}{BUNDLE_SUFFIX}"
    bundle(results, unfinished, replace=unfinished.exists())
    check_size(name, unfinished, folder)
    found = verify(unfinished)
    if not found.is_sound:
        raise FailedError(f"{unfinished} is rejected: {found.problems[0]}")
    return unfinished.replace(bundle_file(name, folder))


def check_size(name: str, file: Path, folder: Path) -> None:
    """Raises FailedError for a bundle that is too large by itself, or with the others."""
    size = file.stat().st_size
    if size > MAX_MB * MB:
        raise FailedError(f"{file}: {size / MB:.2f} MB; at most {MAX_MB:g} MB are published. Run at a smaller scale")
    others = sum(other.stat().st_size for other_name, other in bundle_files(folder).items() if other_name != name)
    if size + others > MAX_TOTAL_MB * MB:
        raise FailedError(
            f"{file}: all bundles would have {(size + others) / MB:.1f} MB; at most {MAX_TOTAL_MB:g} MB are published"
        )


def make_evidence(name: str, *, as_is: bool = False) -> None:
    """Measures an entry, makes its bundle, and writes pages and tables; `as_is`: of what was measured so far. Raises UsageError, FailedError."""
    entry = require_entry(name)
    check_priority()
    with alone(WORK):
        if as_is and not is_begun(WORK / name):
            raise UsageError(f"{AS_IS}: {WORK / name} has no results; leave it out to measure them")
        made, all_made = how_made(name) if as_is else measure(name, entry), read_made()
        file = publish(name, WORK / name)
        if made is not None:
            all_made.bundles[name] = made
        elif name not in all_made.bundles:
            raise FailedError(f"{WORK / name}: these results were not made by `make evidence`; remove the folder, and run again")
        kept = all_made.bundles[name].model_copy(update={"sha256": new_checksum_of(file)})
        all_made.bundles[name] = kept
        write_text(MADE_FILE, all_made.model_dump_json(indent=1) + "\n")
        changed = write_all()
    print(f"{file}: {file.stat().st_size / MB:.2f} MB of {entry.expected_mb:g} MB expected, verified; {kept.took_s:.0f} s")
    for path in changed:
        print(f"written: {path.relative_to(ROOT)}")


def main(arguments: list[str]) -> int:
    """The command. Returns the exit code."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    options, names = (
        [argument for argument in arguments if argument.startswith("-") == is_option] for is_option in (True, False)
    )
    if len(names) != 1 or set(options) - {AS_IS}:
        print(
            f"expected the name of one entry of evidence/evidence.toml, and {AS_IS} at most, not {shlex.join(arguments)!r}: "
            f"make evidence NAME=… [ARGS={AS_IS}]",
            file=sys.stderr,
        )
        return UsageError.exit_code
    try:
        make_evidence(names[0], as_is=AS_IS in options)
    except SensorbenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
