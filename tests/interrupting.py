"""Commands that are interrupted at given moments: `python -m tests.interrupting JOBS.json`, which prints how each ended as JSON.

This process imports everything once. Each command runs in a fork of it, so that it starts at once and ends as any process does.
A job has the command's `arguments`, an `output` file, and when SIGINT comes: `after_s` seconds or `after_calls` calls of functions
(in the main thread) after the command began to listen to it; never where both are null.
"""

import importlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

import vl_convert

from sensorbench import interrupts
from sensorbench.cli import start

# What the commands import when they need it, which took half of the CPU time of all of them.
MODULES = (
    "pyarrow.parquet",
    "scipy.special",
    "sensorbench.app.reports",
    "sensorbench.app.run",
    "sensorbench.cli.report",
    "sensorbench.cli.stress",
    "sensorbench.cli.tune",
    "sensorbench.report.charts",
    "sensorbench.report.comparison",
    "sensorbench.report.curves",
)

AT_ONCE = 2
LONGEST_S = 120.0


class Interrupted:
    """A command in a process of its own."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.exit_code: int | None = None
        self._told, telling = os.pipe()
        self._begun_s = time.monotonic()
        self._sent = False
        self._listens_since_s: float | None = None
        self._ended_s = 0.0
        os.set_blocking(self._told, False)
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._told)
            _become(job, telling)
        os.close(telling)

    def is_over(self) -> bool:
        """Whether it has ended; sends the signal when it is time."""
        if self._listens_since_s is None and self._has_told():
            self._listens_since_s = time.monotonic()
        after_s = self.job["after_s"]
        if None not in (self._listens_since_s, after_s) and not self._sent and self._listened_s() >= after_s:
            self._sent = True
            os.kill(self._pid, signal.SIGINT)
        if time.monotonic() - self._begun_s > LONGEST_S:
            os.kill(self._pid, signal.SIGKILL)
        ended, status = os.waitpid(self._pid, os.WNOHANG)
        if not ended:
            return False
        self.exit_code = os.waitstatus_to_exitcode(status)
        self._ended_s = time.monotonic()
        os.close(self._told)
        return True

    def described(self) -> dict[str, Any]:
        """The job with how it ended, and how long (s) it listened."""
        listened_s = self._ended_s - (self._listens_since_s or self._begun_s)
        return {**self.job, "exit_code": self.exit_code, "listened_s": listened_s, "sent": self._sent}

    def _listened_s(self) -> float:
        return time.monotonic() - (self._listens_since_s or time.monotonic())

    def _has_told(self) -> bool:
        try:
            return bool(os.read(self._told, 1))
        except BlockingIOError:
            return False


def _become(job: dict[str, Any], telling: int) -> None:
    """Carries a job out in this process, whose normal end it is."""
    output = os.open(job["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["sensorbench", *job["arguments"]]
    # Pictures are drawn by a JavaScript engine, which takes longer than all the rest. That they are written stays.
    vl_convert.vegalite_to_svg = lambda *_, **__: "<svg/>"
    vl_convert.svg_to_png = lambda *_, **__: b"png"
    install = interrupts.install

    def install_and_tell() -> None:
        install()
        os.write(telling, b".")
        interrupts.install = install
        if job["after_calls"] is not None:
            sys.setprofile(_Counter(job["after_calls"]))

    interrupts.install = install_and_tell
    try:
        start()
    finally:
        counter = sys.getprofile()
        sys.setprofile(None)
        if job.get("calls_file"):
            Path(job["calls_file"]).write_text(str(getattr(counter, "calls", 0)), encoding="utf-8")


class _Counter:
    """Counts calls of functions, and interrupts at the one that is wanted."""

    def __init__(self, wanted: int) -> None:
        self.calls = 0
        self._wanted = wanted

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        self.calls += 1
        if self.calls == self._wanted:
            sys.setprofile(None)
            os.kill(os.getpid(), signal.SIGINT)


def carry_out(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How each job ended, some of them at a time."""
    waiting, running, done = list(jobs), [], []
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            running.append(Interrupted(waiting.pop(0)))
        over = [moment for moment in running if moment.is_over()]
        running = [moment for moment in running if moment not in over]
        done += [moment.described() for moment in over]
        time.sleep(0.002)
    return done


if __name__ == "__main__":
    for module in MODULES:
        importlib.import_module(module)
    print(json.dumps(carry_out(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))))
