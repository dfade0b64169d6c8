"""What sensorbench did not write is never overwritten or deleted, whatever the options."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.main import get_command

from sensorbench.cli.main import app
from sensorbench.errors import UsageError
from sensorbench.paths import check_page_is_free, check_summary_is_free, remove_results
from sensorbench.results import tune
from sensorbench.results.elasticity import COMPARISON
from sensorbench.runner import pilot_folder
from tests.commands import commands
from tests.conftest import Cli, forget_checksums
from tests.test_replay import reads

MINE = "what a user wrote\n"
EXPERIMENT = """
dataset = "beijing-air-quality"
scale = 0.002
[[target]]
url = "sqlite"
schema = "natural"
[workload]
mix = { get_sensor_data = 1 }
operations = 10
repetitions = 2
"""
PROFILE = Path(__file__).parent / "fixtures" / "cassandra-stress" / "readings.yaml"
NOWHERE = "127.0.0.1:9"
WITH_SPARK = ("--target", "files", "--spark", "local[2]", "--dataset", "wikipedia", "--scale", "0.02")

# Every command with an option that names what is written, and what it needs besides to come so far.
FOLDERS: dict[str, tuple[str, ...]] = {
    "quickstart": (),
    "study run": ("iot", "--target", "sqlite", "--scale", "0.002"),
    "study run, of elasticity": ("elasticity", "--scale", "0.02"),
    "study run, of factors": ("cassandra-tuning", "--scale", "0.001"),
    "study run, of MapReduce": ("mapreduce", *WITH_SPARK),
    "run": ("{experiment}",),
    "run --replace": ("{experiment}", "--replace"),
    "run --resume": ("{experiment}", "--resume"),
    "gate": ("{experiment}", "--head", "star"),
    "doctor": ("{experiment}",),
    "history plot": (),
    "capacity": ("--target", "sqlite", "--objective", "p99=20ms"),
    "stress": ("--target", "sqlite", "--rates", "10"),
    "stress --replace": ("--target", "sqlite", "--rates", "10", "--replace"),
    "tune": ("--target", "sqlite", "--goal", "load"),
    "tune --resume": ("--target", "sqlite", "--goal", "load", "--resume"),
    "ycsb load": ("--target", "sqlite:{folder}/data.db", "-p", "recordcount=10"),
    "ycsb run": ("--target", "sqlite:{folder}/data.db", "-p", "recordcount=10", "-p", "operationcount=10"),
    "cassandra-stress": ("{profile}", "--target", f"cassandra://{NOWHERE}", "--ops", "insert=1", "-n", "9"),
    "tsbs load": ("--target", "sqlite:{folder}/data.db", "--scale", "1", "--timestamp-end", "2016-01-01T00:01:00Z"),
    "tsbs run": ("--target", "sqlite:{folder}/data.db", "--scale", "1", "--timestamp-end", "2016-01-01T00:01:00Z"),
    "elasticity run": ("--target", f"cassandra://{NOWHERE}", "--nodes", "1", "--add-node-command", "true", "--scale", "0.02"),
    "elasticity compare": ("{folder}",),
    "site": ("{folder}/none.sbz",),
    "site --replace": ("{folder}/none.sbz", "--replace"),
    "traffic import": ("{table}",),
    "traffic record": ("lab:none",),
    "traffic anonymise": ("{folder}", "--key", "{table}"),
    "traffic replay": ("{trace}", "null:"),
    "traffic fit": ("{trace}",),
    "data generate": ("cu-bems", "--scale", "0.0001"),
    "data import": ("{table}",),
    "data export": ("beijing-air-quality", "--scale", "0.002"),
}
FILES: dict[str, tuple[str, ...]] = {
    "bundle --out": ("{folder}", "--replace"),
    "data fit --out": ("beijing-air-quality", "--scale", "0.002"),
    "history export --out": (),
    "databases --html": (),
    "choose --html": ("--query", "range", "--write-share", "0.9"),
}


def written(command: str, words: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """The words of a command, without the remark behind its name."""
    table, experiment = folder / "table.csv", folder / "own.toml"
    table.write_text("No,year,month\n1,2013,3\n", encoding="utf-8")
    experiment.write_text(EXPERIMENT, encoding="utf-8")
    trace = reads(1, 1, 0.0).write(folder / "trace") if "{trace}" in words else folder
    filled = (word.format(folder=folder, experiment=experiment, table=table, profile=PROFILE, trace=trace) for word in words)
    name, *options = command.partition(",")[0].split(" --")
    return (*name.split(), *filled, *(f"--{option}" for option in options))


def options_that_write() -> set[str]:
    """All commands with --out or --html, as the command line itself has them."""
    # All studies go through one command each of its kind, whose folder is checked by the lifecycle.
    return {
        f"{' '.join(path[:2] if path[:2] == ('study', 'run') else path)} {option}"
        for path, command in commands(get_command(app))
        for parameter in command.params
        for option in parameter.opts
        if option in {"--out", "--html"}
    }


def test_all_options_that_name_what_is_written_are_looked_at_here() -> None:
    looked_at = {f"{command.partition(',')[0].partition(' --')[0]} --out" for command in FOLDERS}
    # What `init` writes stands beside what is there, and never over it: tests/test_init.py.
    assert looked_at | set(FILES) | {"init --out"} == options_that_write()


@pytest.mark.parametrize("command", FOLDERS)
def test_a_folder_of_a_user_stays_as_it_is(cli: Cli, tmp_path: Path, command: str) -> None:
    out = tmp_path / "mine"
    names = ("notes.txt", "report.html", "summary.json", "data/rows.csv", "segments/a.parquet", "runs/001/thesis.doc")
    for name in names:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(MINE, encoding="utf-8")
    before = sorted(out.rglob("*"))
    ended = cli(*written(command, FOLDERS[command], tmp_path), "--out", out)
    assert ended.exit_code == 2, ended.err
    assert "Usage" not in ended.err, "it came as far as the check"
    assert sorted(out.rglob("*")) == before
    assert all((out / name).read_text(encoding="utf-8") == MINE for name in names)


@pytest.mark.parametrize("command", FOLDERS)
def test_a_file_of_a_user_stays_where_a_folder_was_to_be(cli: Cli, tmp_path: Path, command: str) -> None:
    out = tmp_path / "mine"
    out.write_text(MINE, encoding="utf-8")
    ended = cli(*written(command, FOLDERS[command], tmp_path), "--out", out)
    assert (ended.exit_code, out.read_text(encoding="utf-8")) == (2, MINE), ended.err


@pytest.mark.parametrize("command", FILES)
def test_a_file_of_a_user_stays_as_it_is(cli: Cli, tmp_path: Path, command: str) -> None:
    name, option = command.split(" --")
    path = tmp_path / ("mine.csv" if name == "history export" else "mine.json" if option == "out" else "mine.html")
    path.write_text(MINE, encoding="utf-8")
    ended = cli(*written(name, FILES[command], tmp_path), f"--{option}", path)
    assert (ended.exit_code, path.read_text(encoding="utf-8")) == (2, MINE), ended.err
    assert str(path) in ended.err


@pytest.mark.parametrize("command", ["databases --html", "choose --html"])
def test_a_page_of_ours_is_written_again(cli: Cli, tmp_path: Path, command: str) -> None:
    name, option = command.split(" --")
    path = tmp_path / "page.html"
    mine = plant(tmp_path, "page.html.unfinished")
    for _ in range(2):
        ended = cli(*written(name, FILES[command], tmp_path), f"--{option}", path, "--no-open")
        assert ended.exit_code == 0, ended.err
    assert mine.read_text(encoding="utf-8") == MINE


def test_folders_beside_the_one_that_is_made_stay(cli: Cli, tmp_path: Path) -> None:
    """Data are made beside their place: under a name that nobody else has."""
    mine = tmp_path / ".out.unfinished" / "notes.txt"
    mine.parent.mkdir()
    mine.write_text(MINE, encoding="utf-8")
    assert cli("data", "generate", "cu-bems", "--scale", "0.0001", "--out", tmp_path / "out").exit_code == 0
    assert mine.read_text(encoding="utf-8") == MINE
    assert sorted(file.name for file in tmp_path.iterdir()) == [".out.unfinished", "out"]


def test_a_report_does_not_go_over_a_page_of_a_user(cli: Cli, tmp_path: Path, study_folder: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(study_folder, folder)
    (folder / "report.html").write_text(MINE, encoding="utf-8")
    ended = cli("report", folder, "--no-open")
    assert (ended.exit_code, (folder / "report.html").read_text(encoding="utf-8")) == (2, MINE)
    assert "report.html: sensorbench did not write this file" in ended.err
    (folder / "report.html").unlink()
    assert cli("report", folder, "--no-open").exit_code == 0


def test_resume_does_not_remove_what_a_user_put_beside_results(cli: Cli, tmp_path: Path) -> None:
    """The second run is measured again; it must be removed before, and a user's file lies in it."""
    out, experiment = tmp_path / "out", tmp_path / "own.toml"
    experiment.write_text(EXPERIMENT.replace('"sqlite"', f'"sqlite:{tmp_path / "data.db"}"'), encoding="utf-8")
    assert cli("run", experiment, "--out", out, "--no-open").exit_code == 0
    run = out / "experiments" / "sqlite-natural" / "run-2"
    manifest = run / "manifest.json"
    said = json.loads(manifest.read_text(encoding="utf-8"))
    manifest.write_text(json.dumps({**said, "status": "interrupted"}), encoding="utf-8")
    forget_checksums(out)
    mine = run / "why-it-stopped.txt"
    mine.write_text(MINE, encoding="utf-8")
    ended = cli("run", experiment, "--out", out, "--resume", "--no-open")
    assert (ended.exit_code, mine.read_text(encoding="utf-8")) == (2, MINE), ended.err
    assert str(mine) in ended.err
    assert (run / "intervals.parquet").exists()
    mine.rename(tmp_path / "why-it-stopped.txt")
    assert cli("run", experiment, "--out", out, "--resume", "--no-open").exit_code == 0


def test_a_study_of_several_datasets_does_not_go_on_over_a_summary_of_a_user(cli: Cli, tmp_path: Path) -> None:
    plant(tmp_path, "beijing-air-quality/manifest.json")
    mine = plant(tmp_path, "summary.json")
    datasets = ("--dataset", "beijing-air-quality", "--dataset", "cu-bems", "--scale", "0.0001")
    ended = cli("study", "run", "iot", "--target", "sqlite", *datasets, "--resume", "--no-open", "--out", tmp_path)
    assert (ended.exit_code, mine.read_text(encoding="utf-8")) == (2, MINE)
    assert str(mine) in ended.err


def plant(folder: Path, name: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(MINE, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "name", ["notes.txt", "charts/mine.txt", "segments/notes/a.parquet", "data/other.db", "runs/001/x.py", "mine/summary.json"]
)
def test_one_file_of_a_user_keeps_a_whole_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "001"
    plant(folder, "manifest.json").write_text(json.dumps({"variants": [{"id": "sqlite-usertable"}]}), encoding="utf-8")
    ours = [
        plant(folder, name) for name in ("runs/001/intervals.parquet", "data/sqlite-usertable-wal", "charts/rate.svg", ".reserve")
    ]
    mine = plant(folder, name)
    with pytest.raises(UsageError, match="sensorbench did not write it"):
        remove_results(folder)
    assert all(path.exists() for path in ours)
    shutil.rmtree(mine.parent) if mine.parent.name in {"notes", "mine"} else mine.unlink()
    remove_results(folder)
    assert not folder.exists()


def test_a_search_that_goes_on_removes_its_own_measurements_only(tmp_path: Path) -> None:
    writer = tune.TuneWriter.__new__(tune.TuneWriter)
    writer.folder = tmp_path
    mine = plant(tmp_path, "trials/002/notes.txt")
    with pytest.raises(UsageError):
        writer.new_folder("trials", 2)
    with pytest.raises(UsageError):
        writer.forget("trials")
    assert mine.exists()
    mine.rename(mine.with_name("measurement.json"))
    writer.forget("trials")
    assert not (tmp_path / "trials").exists()


def test_what_a_page_and_a_summary_of_ours_are(tmp_path: Path) -> None:
    page, summary = tmp_path / "report.html", tmp_path / "summary.json"
    page.write_text("<html><title>Thesis</title> sensorbench", encoding="utf-8")
    with pytest.raises(UsageError):
        check_page_is_free(page)
    page.write_text("<html><title>A study – sensorbench</title>", encoding="utf-8")
    check_page_is_free(page)
    for text in (MINE, "[1]", '{"kind": "mine"}'):
        summary.write_text(text, encoding="utf-8")
        with pytest.raises(UsageError):
            check_summary_is_free(tmp_path, COMPARISON)
    summary.write_text(json.dumps({"kind": COMPARISON}), encoding="utf-8")
    check_summary_is_free(tmp_path, COMPARISON)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SENSORBENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Has somebody sit at a terminal and answer."""

    def answer(text: str) -> None:
        monkeypatch.setattr("sys.stdin", _Terminal(f"{text}\n"))

    return answer


class _Terminal:
    """Standard input of a terminal at which this is typed."""

    def __init__(self, typed: str) -> None:
        self._typed = typed

    def isatty(self) -> bool:
        return True

    def readline(self, *_: int) -> str:
        return self._typed


def test_cleaning_the_cache_asks_and_leaves_what_is_not_ours(cli: Cli, cache: Path, terminal: Callable[[str], None]) -> None:
    assert cli("data", "describe", "cu-bems", "--scale", "0.0001").exit_code == 0
    (dataset,) = (cache / "datasets").iterdir()
    mine = [plant(cache, name) for name in ("datasets/thesis/rows.csv", "prepared/notes.txt", "datasets/my-rows.parquet")]
    ours = [plant(cache, name) for name in ("prepared/x-0123456789abcdef.arrows", "prepared/x-0123456789abcdef.json")]

    refused = cli("data", "clean")
    assert refused.exit_code == 2
    assert "--yes" in refused.err
    assert all(str(path) in refused.err for path in [dataset, *ours, *mine[1:]])
    terminal("n")
    assert cli("data", "clean").exit_code == 1
    assert dataset.exists()
    assert all(path.exists() for path in ours)
    terminal("y")
    assert cli("data", "clean").exit_code == 0
    assert not dataset.exists()
    assert not any(path.exists() for path in ours)
    assert all(path.read_text(encoding="utf-8") == MINE for path in mine)
    assert cli("data", "clean").out == "the cache has no data\n"


def test_what_a_killed_pilot_left_is_removed_from_the_cache(cli: Cli, cache: Path) -> None:
    """A process that only its owner file names is gone; that of this test still runs."""
    killed = subprocess.run(
        [
            sys.executable,
            "-c",
            "import os; from sensorbench.runner import pilot_folder\nwith pilot_folder(): os.kill(os.getpid(), 9)",
        ],
        env={**os.environ, "SENSORBENCH_CACHE": str(cache)},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    left = list((cache / "pilots").iterdir())
    assert len(left) == 2
    mine = plant(cache, "pilots/notes.txt")
    with pilot_folder() as folder:
        assert cli("data", "clean", "--yes").exit_code == 0
        assert folder.is_dir()
    assert list((cache / "pilots").iterdir()) == [mine]


def test_a_dataset_of_the_cache_with_a_file_of_a_user_in_it_stays(cli: Cli, cache: Path) -> None:
    assert cli("data", "describe", "cu-bems", "--scale", "0.0001").exit_code == 0
    (dataset,) = (cache / "datasets").iterdir()
    mine = plant(dataset, "notes.txt")
    assert cli("data", "clean", "--yes").exit_code == 0
    assert mine.exists()


def test_a_folder_of_a_user_in_the_cache_is_not_taken_for_a_dataset(cli: Cli, cache: Path) -> None:
    assert cli("data", "describe", "cu-bems", "--scale", "0.0001").exit_code == 0
    (dataset,) = (cache / "datasets").iterdir()
    shutil.rmtree(dataset)
    mine = plant(dataset, "notes.txt")
    ended = cli("data", "describe", "cu-bems", "--scale", "0.0001")
    assert (ended.exit_code, mine.read_text(encoding="utf-8")) == (2, MINE)


def test_ending_all_instances_asks_and_leaves_what_is_not_the_labs(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: Callable[[str], None]
) -> None:
    monkeypatch.setenv("SENSORBENCH_LAB", str(tmp_path))
    assert cli("lab", "down", "--all").out == "nothing ran\n"
    mine, broken = plant(tmp_path, "instances/thesis/notes.txt"), plant(tmp_path, "instances/pg/instance.json")

    refused = cli("lab", "down", "--all")
    assert refused.exit_code == 2
    assert "pg (18.0 B)" in refused.err
    assert f"{mine.parent} stays" in refused.err
    terminal("n")
    assert cli("lab", "down", "--all").exit_code == 1
    assert broken.exists()
    terminal("y")
    assert cli("lab", "down", "--all").out == "ended: pg\n"
    assert not broken.parent.exists()
    assert mine.read_text(encoding="utf-8") == MINE
