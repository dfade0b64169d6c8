"""Ctrl-C at any moment: exit code 130, no traceback, readable results, nothing unfinished left."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sensorbench import interrupts
from sensorbench.interrupts import check, held_back, let_through
from sensorbench.report import build
from sensorbench.results import files, read_run, writer
from sensorbench.results.writer import RunWriter
from sensorbench.runner import run as experiment_run
from sensorbench.runner.monitor import Watcher
from tests.conftest import Cli

ROOT = Path(__file__).parent.parent
SHORT = (
    "--target",
    "null:",
    "--records",
    "20",
    "--warmup",
    "0",
    "--rates",
    "50",
    "--step-duration",
    "300ms",
    "--ramp",
    "0",
    "--no-open",
)
MOMENTS = 50
SEED = 26
EXPERIMENT = """
dataset = "beijing-air-quality"
scale = 0.002
[[target]]
url = "sqlite"
schema = "natural"
[workload]
mix = { get_sensor_data = 1, get_peak_data = 1 }
schedule = { rate = 300 }
duration = "300ms"
warmup = "50ms"
repetitions = 2
log = "all"
"""
STRESS = ("--step-duration", "200ms", "--ramp", "50ms", "--no-open")
COMMANDS = {
    "stress": ("stress", "--target", "sqlite", "--records", "300", "--warmup", "150ms", "--rates", "200", *STRESS),
    "run": ("run", "{experiment}", "--no-open"),
    "tune": (
        "tune",
        "--target",
        "sqlite",
        "--goal",
        "p50@200",
        "--records",
        "50",
        "--warmup",
        "0",
        "--budget-runs",
        "3",
        *STRESS,
    ),
}


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM)}
    unraisable = sys.unraisablehook
    interrupts.install()
    yield
    for key, handler in before.items():
        signal.signal(key, handler)
    sys.unraisablehook = unraisable


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_waits_for_the_end_of_what_holds_it_back(sent: signal.Signals) -> None:
    done = []

    def work() -> None:
        with held_back():
            with held_back():
                signal.raise_signal(sent)
                done.append("inner")
            done.append("outer")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["inner", "outer"]
    check()


def test_one_that_is_held_back_is_known_and_can_be_taken() -> None:
    before = interrupts.count()
    with held_back():
        assert not interrupts.has_come_since(before)
        interrupt()
        assert interrupts.has_come_since(before)
        assert interrupts.take_pending()
        assert not interrupts.take_pending()
    # It did not come at the end.
    assert interrupts.count() == before + 1


def test_it_comes_at_once_where_it_is_let_through_and_then_not_again() -> None:
    with held_back():
        with pytest.raises(KeyboardInterrupt), let_through():
            interrupt()
        # What is done now must be done as a whole.
        before = interrupts.count()
        interrupt()
        assert interrupts.count() == before
        with pytest.raises(KeyboardInterrupt):
            check()


def test_what_is_written_within_what_is_let_through_is_written_first(tmp_path: Path) -> None:
    def lines() -> Iterator[str]:
        yield "first\n"
        interrupt()
        yield "second\n"

    with held_back(), pytest.raises(KeyboardInterrupt), let_through():
        files.write_lines(tmp_path / "file", lines())
    assert (tmp_path / "file").read_text(encoding="utf-8") == "first\nsecond\n"


def test_a_file_whose_writing_fails_leaves_nothing(tmp_path: Path) -> None:
    def lines() -> Iterator[str]:
        yield "first\n"
        raise ValueError("planted")

    with pytest.raises(ValueError, match="planted"):
        files.write_lines(tmp_path / "file", lines())
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_is_no_matter_of_other_threads() -> None:
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with held_back():
            held.set()
            over.wait(10.0)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10.0)
    with pytest.raises(KeyboardInterrupt):
        interrupt()
    over.set()
    thread.join()


class Dying:
    """No error leaves its destructor, in which a signal comes."""

    def __init__(self, sent: signal.Signals) -> None:
        self._sent = sent

    def __del__(self) -> None:
        signal.raise_signal(self._sent)


@pytest.mark.parametrize(("sent", "ignored"), [(signal.SIGINT, None), (signal.SIGTERM, signal.SIGINT)])
def test_an_interruption_that_python_ignores_comes_again(
    capfd: pytest.CaptureFixture[str], sent: signal.Signals, ignored: signal.Signals | None
) -> None:
    """Once, a command whose Ctrl-C came at the end of an import continued to its end, with a traceback on its output."""
    if ignored:
        signal.signal(ignored, signal.SIG_IGN)

    def work() -> None:
        Dying(sent)
        for _ in range(1000):
            time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert "Exception ignored" not in capfd.readouterr().err


def test_an_interruption_that_comes_again_too_early_comes_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine it came again while Python was still at ignoring it, and was lost."""

    class Slow(threading.Thread):
        def start(self) -> None:
            super().start()
            # Until it has come again.
            time.sleep(20 * interrupts.AGAIN_AFTER_S)

    def work() -> None:
        monkeypatch.setattr(interrupts.threading, "Thread", Slow)
        Dying(signal.SIGINT)
        for _ in range(1000):
            time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        work()


def after(function: Callable[..., Any], slow_s: float = 0.0) -> Callable[..., Any]:
    """The function, once followed by Ctrl-C. A slow one is interrupted by another thread, in the middle."""
    is_sent = False

    def followed(*arguments: Any, **named: Any) -> Any:
        nonlocal is_sent
        if is_sent:
            return function(*arguments, **named)
        is_sent = True
        if slow_s:
            # It continues when the other thread has sent it, however late that is.
            sent = threading.Event()

            def send() -> None:
                os.kill(os.getpid(), signal.SIGINT)
                sent.set()

            threading.Timer(slow_s, send).start()
            sent.wait()
            return function(*arguments, **named)
        result = function(*arguments, **named)
        interrupt()
        return result

    return followed


# What is interrupted, and how the resumed run has ended then: once its end is being written, it is complete.
ENDINGS: dict[str, tuple[object, str, float, str]] = {
    "the loop continues": (experiment_run.LostServerDetector, "is_lost", 0.0, "interrupted"),
    "the loop is over": (experiment_run, "_follow", 0.0, "interrupted"),
    "threads are waited for": (Watcher, "_stop", 0.1, "interrupted"),
    "the last segment is written": (RunWriter, "write", 0.0, "interrupted"),
    "the last segment is written slowly": (RunWriter, "write", 0.1, "interrupted"),
    "a table is written slowly": (writer, "write_tables", 0.1, "interrupted"),
    "segments are joined slowly": (RunWriter, "_compact", 0.1, "complete"),
    "segments are joined": (RunWriter, "_compact", 0.0, "complete"),
    "the run is said to be over": (RunWriter, "finish", 0.0, "complete"),
    "the page is written": (build, "write_text", 0.0, "complete"),
}


@pytest.mark.parametrize("moment", ENDINGS)
def test_an_ending_is_not_cut_short(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """Once, the last segment was written a second time, into a folder that was compacted already: exit code 1."""
    owner, name, slow_s, state = ENDINGS[moment]
    monkeypatch.setattr(owner, name, after(getattr(owner, name), slow_s))
    out = tmp_path / "out"
    ended = cli("stress", *SHORT, "--out", out)
    assert ended.exit_code == 130, ended.err
    last = max(out.rglob("intervals*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    assert read_run(last.parent.parent if last.parent.name == "segments" else last.parent).state == state
    assert list(out.rglob("*.unfinished")) == []
    assert cli("report", out, "--no-open").exit_code == 0


def test_without_holding_back_an_ending_is_cut_short(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_back, "__enter__", lambda self: None)
    monkeypatch.setattr(RunWriter, "_compact", after(RunWriter._compact))
    ended = cli("stress", *SHORT, "--out", tmp_path / "out")
    assert (ended.exit_code, read_run(tmp_path / "out" / "populate").state) == (130, "interrupted")


def test_what_a_library_makes_of_an_interruption_is_one(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB says RuntimeError: Query interrupted."""

    def query(*_: object) -> None:
        try:
            interrupt()
        except KeyboardInterrupt:
            raise RuntimeError("Query interrupted") from None

    monkeypatch.setattr("sensorbench.benchmarks.stress.run._hold_all", query)
    ended = cli("stress", *SHORT, "--out", tmp_path / "out")
    assert (ended.exit_code, "Traceback" in ended.err) == (130, False)
    assert json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))["status"] == "interrupted"


def carried_out(jobs: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """How commands ended that `tests.interrupting` has interrupted."""
    file = folder / "jobs.json"
    file.write_text(json.dumps(jobs), encoding="utf-8")
    command = (sys.executable, "-m", "tests.interrupting", str(file))
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    done: list[dict[str, Any]] = json.loads(ended.stdout)
    return done


@pytest.mark.long("moments of every kind are met only where there are many")
def test_fifty_moments(tmp_path: Path) -> None:
    """Moments are chosen over the whole of a command: they are as far apart as it takes when nothing interrupts it."""
    experiment = tmp_path / "short.toml"
    experiment.write_text(EXPERIMENT, encoding="utf-8")

    def job(name: str, arguments: Sequence[object], after_s: float | None = None) -> dict[str, Any]:
        output = str(tmp_path / f"{name}.txt")
        return {"name": name, "arguments": [*map(str, arguments)], "output": output, "after_s": after_s, "after_calls": None}

    def command(kind: str, name: object, after_s: float | None = None) -> dict[str, Any]:
        out = tmp_path / f"{kind}-{name}"
        words = [word.format(experiment=experiment) for word in COMMANDS[kind]]
        return {**job(out.name, [*words, "--out", out], after_s), "kind": kind, "out": str(out)}

    # The first ones fill the cache, the second ones show how long a command takes.
    whole = [carried_out([command(kind, name) for kind in COMMANDS], tmp_path) for name in ("first", "second")]
    assert [entry["exit_code"] for ended in whole for entry in ended] == [0] * 2 * len(COMMANDS)
    lengths_s = {entry["kind"]: entry["listened_s"] for entry in whole[1]}

    moments = random.Random(SEED)
    kinds = [kind for _ in range(MOMENTS) for kind in COMMANDS][:MOMENTS]
    done = carried_out(
        [command(kind, number, moments.uniform(0.0, lengths_s[kind])) for number, kind in enumerate(kinds)], tmp_path
    )
    for ended in done:
        told = Path(ended["output"]).read_text(encoding="utf-8")
        about = (
            f"{ended['kind']} after {ended['after_s']:.3f} s of {lengths_s[ended['kind']]:.1f} s: {ended['exit_code']}\n{told}"
        )
        # What had ended already was not interrupted any more.
        assert ended["exit_code"] == (130 if ended["sent"] else 0) or (ended["exit_code"] == 0 and "report:" in told), about
        assert "Traceback" not in told, about
        assert "Exception ignored" not in told, about
    assert list(tmp_path.rglob("*.unfinished")) == []
    stages = Counter(stage_of(Path(ended["out"])) for ended in done)
    assert len(stages) >= 4, stages
    # On a machine that is less busy than when lengths were measured, some have ended already.
    assert sum(entry["exit_code"] == 130 for entry in done) > MOMENTS / 4, "many of them were still at work"

    reports = [job(f"report-{ended['name']}", ["report", ended["out"], "--no-open"]) for ended in done]
    for ended in carried_out(reports, tmp_path):
        told = Path(ended["output"]).read_text(encoding="utf-8")
        assert ended["exit_code"] == 0 or (ended["exit_code"] == 2 and "no results are there" in told), told


def stage_of(out: Path) -> str:
    """How far a command came."""
    if not out.exists():
        return "planning"
    runs = [path.name for path in out.rglob("manifest.json") if path.parent != out]
    state = (
        json.loads((out / "manifest.json").read_text(encoding="utf-8"))["status"]
        if (out / "manifest.json").exists()
        else "no manifest"
    )
    return f"{len(runs)} runs begun, {state}"


def test_an_interruption_while_a_dataclass_is_made_ends_with_130_too(tmp_path: Path) -> None:
    """CPython ends `python -m` by the signal then, which shells take for a crash."""
    (tmp_path / "planted.py").write_text(
        "import sys\n"
        "from sensorbench import interrupts\n"
        "interrupts.install()\n"
        "try:\n"
        "    exec('import os, signal; os.kill(os.getpid(), signal.SIGINT)')\n"
        "except KeyboardInterrupt:\n"
        "    interrupts.end() if sys.argv[1:] else None\n"
        "    sys.exit(130)\n",
        encoding="utf-8",
    )

    def ended(*words: str) -> int:
        return subprocess.run([sys.executable, "-m", "planted", *words], cwd=tmp_path, check=False).returncode

    assert ended() == -signal.SIGINT
    assert ended("end") == 130
