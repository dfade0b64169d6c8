"""A damaged file of results never ends a command with a traceback, and never passes for a sound one."""

import json
import shutil
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sensorbench.errors import UsageError
from sensorbench.results import checksums, read_comparison, stored
from sensorbench.results.elasticity import read_elasticity, works_of
from sensorbench.results.factors import read_measurements as read_cell
from sensorbench.results.files import write_result
from sensorbench.results.mapreduce import read_mapreduce
from sensorbench.results.planned import FactorsManifest
from sensorbench.results.series import read_series
from sensorbench.results.stored import DamagedResultsError
from sensorbench.results.tune import Measurement, read_measurements
from sensorbench.results.writer import write_table
from tests.conftest import Cli, Outcome, forget_checksums, run_main

# A damage: what becomes of a file, given its content and that of the same file of another run, or nothing: it is deleted.
Damage = Callable[[bytes, bytes], bytes | None]


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 0x04]) + content[place + 1 :]


def flipped_somewhere(content: bytes) -> bytes:
    """With one bit changed, somewhere that follows from the content."""
    return flipped(content, zlib.crc32(content) % len(content))


DAMAGES: dict[str, Damage] = {
    "truncated": lambda content, other: content[: len(content) // 2],
    "flipped": lambda content, other: flipped_somewhere(content),
    "empty": lambda content, other: b"",
    "deleted": lambda content, other: None,
    "of another run": lambda content, other: other,
}

# What is printed of an error that nobody foresaw.
UNFORESEEN = ("Traceback", "defect of sensorbench")

# What nobody reads again: pages, pictures, the space that is kept for the end.
WRITTEN_ONLY = {"report.html", ".reserve"}

STUDY = ("study", "run", "iot", "--dataset", "beijing-air-quality", "--scale", "0.005", "--operations", "24", "--repetitions", "2",
         "--schema", "natural", "--no-open")  # fmt: skip

# Ends itself as nothing can be prepared for, when the second run is over and its segments are to be joined.
KILLED = """
import os, signal, sys
from sensorbench.cli import main
from sensorbench.results.writer import RunWriter
compact = RunWriter._compact
def kill(self):
    if self.folder.name == "run-2":
        os.kill(os.getpid(), signal.SIGKILL)
    compact(self)
RunWriter._compact = kill
main()
"""


@pytest.fixture(scope="module", autouse=True)
def _no_pictures() -> Iterator[None]:
    """Drawing pictures takes most of a report's time, and needs nothing but what the page has, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sensorbench.report.build.write_chart_files", lambda *_: None)
        yield


def study_at(folder: Path, *more: str) -> tuple[object, ...]:
    """The command whose results are in a folder, or in a copy of it: at one and the same database, so that it can continue."""
    return (*STUDY, "--target", f"sqlite:{folder.parent / 'data.db'}", *more)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("finished") / "out"
    assert run_main((*study_at(out), "--out", out)) == 0
    return out


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of another workload, so that each file has another content."""
    out = tmp_path_factory.mktemp("other") / "out"
    assert run_main((*study_at(out, "--seed", "9"), "--out", out)) == 0
    return out


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of work that was killed in its second run, and summed up afterwards."""
    out = tmp_path_factory.mktemp("interrupted") / "out"
    command = [sys.executable, "-c", KILLED, *map(str, study_at(out)), "--out", str(out)]
    killed = subprocess.run(command, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert list(out.glob("experiments/sqlite-natural/run-2/segments/operations-*.parquet"))
    assert run_main(("report", out, "--no-open")) == 0
    assert read_comparison(out).state == "interrupted"
    return out


@pytest.fixture(scope="module")
def stress(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("stress") / "out"
    short = ("--step-duration", "500ms", "--ramp", "200ms", "--warmup", "200ms", "--records", "200", "--no-open")
    assert run_main(("stress", "--target", "sqlite", "--rates", "100:200:100", *short, "--out", out)) == 0
    return out


def files_of(folder: Path) -> list[Path]:
    """The files of results, relative to their folder; of several runs that ended alike, those of one."""
    found = (file.relative_to(folder) for file in sorted(folder.rglob("*")) if file.is_file())
    read = [file for file in found if file.name not in WRITTEN_ONLY and file.parts[0] != "charts"]
    runs = {bool(list(run.glob("segments"))): run.name for run in sorted(folder.rglob("run-*"))}
    kept = set(runs.values()) if True not in runs else {runs[True]}
    return [file for file in read if all(part in kept for part in file.parts if part.startswith("run-"))]


def content_of_another(file: Path, other: Path) -> bytes:
    """What another run has in the place of a file, or some other file of its kind."""
    candidates = [other / file, *sorted(other.rglob(f"{file.stem.partition('-')[0]}*{file.suffix}"))]
    return next(candidate.read_bytes() for candidate in candidates if candidate.is_file())


@pytest.fixture
def damaged_copy(tmp_path: Path, other: Path) -> Callable[[Path, Path, Damage], Path]:
    def damage(folder: Path, file: Path, how: Damage) -> Path:
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("charts"))
        content = how((copy / file).read_bytes(), content_of_another(file, other))
        if content is None:
            (copy / file).unlink()
        else:
            (copy / file).write_bytes(content)
        return copy

    return damage


def problems_of(outcome: Outcome, sound: Outcome, file: Path) -> list[str]:
    """What is wrong with how a command ended. One that ends with 0 says the same as without damage, or names the file."""
    problems = [word for word in UNFORESEEN if word in outcome.err + outcome.out]
    if outcome.exit_code not in {0, 1, 2}:
        problems.append(f"exit code {outcome.exit_code}")
    if outcome.exit_code != 0:
        lines = outcome.err.splitlines()
        is_one_line = len(lines) == 1 and lines[0].startswith("error: ")
        return problems + ([] if is_one_line else [f"not one line: {outcome.err}"])
    if file.name not in outcome.err + outcome.out and (sound.exit_code != 0 or outcome.json != sound.json):
        problems.append("another result, without a word of the damage")
    return problems


def commands_on(folder: Path) -> dict[str, tuple[object, ...]]:
    return {
        "report": ("report", folder, "--no-open", "--json"),
        "compare": ("compare", folder, folder, "--json"),
        "claims": ("claims", folder, "--json"),
        "recommend": ("recommend", "--writes", "low", "--reads", "high", "--fresh", "no", folder, "--json"),
    }


def sound_outcomes(cli: Cli, folder: Path, tmp_path: Path) -> dict[str, Outcome]:
    """What each command says of undamaged results, lying where the damaged ones will."""
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("charts"))
    return {name: cli(*command) for name, command in commands_on(copy).items()}


@pytest.mark.long("each file of results meets each damage")
@pytest.mark.parametrize("state", ["finished", "interrupted"])
def test_each_damaged_file_of_a_comparison_is_named_or_not_needed(
    cli: Cli,
    tmp_path: Path,
    damaged_copy: Callable[[Path, Path, Damage], Path],
    request: pytest.FixtureRequest,
    state: str,
) -> None:
    folder: Path = request.getfixturevalue(state)
    sound, found = sound_outcomes(cli, folder, tmp_path), {}
    assert [name for name, outcome in sound.items() if outcome.exit_code] == ([] if state == "finished" else ["recommend"])
    for number, file in enumerate(files_of(folder)):
        for turn, (name, how) in enumerate(DAMAGES.items()):
            copy = damaged_copy(folder, file, how)
            # All of them would take minutes: each file meets each damage and each command, in pairs that change from file to file.
            command, arguments = list(commands_on(copy).items())[(number + turn) % len(sound)]
            if problems := problems_of(cli(*arguments), sound[command], file):
                found[str(file), name, command] = problems
    assert found == {}


@pytest.mark.long("a run is resumed once for each file of results")
@pytest.mark.parametrize("state", ["finished", "interrupted"])
def test_work_that_goes_on_with_a_damaged_file_ends_soundly_or_names_it(
    cli: Cli, damaged_copy: Callable[[Path, Path, Damage], Path], request: pytest.FixtureRequest, state: str
) -> None:
    folder: Path = request.getfixturevalue(state)
    found = {}
    for number, file in enumerate(files_of(folder)):
        # The damage that may leave a file readable, or the one that leaves nothing.
        name = ("flipped", "deleted")[(number + (state == "finished")) % 2]
        copy = damaged_copy(folder, file, DAMAGES[name])
        outcome = cli(*study_at(folder), "--resume", "--out", copy, "--json")
        problems = [word for word in UNFORESEEN if word in outcome.err]
        if outcome.exit_code not in {0, 1, 2}:
            problems.append(f"exit code {outcome.exit_code}")
        elif outcome.exit_code and not outcome.err.splitlines()[-1].startswith("error: "):
            problems.append(f"no message: {outcome.err}")
        elif outcome.exit_code and name == "flipped" and file.name not in outcome.err:
            problems.append(f"does not name the file: {outcome.err}")
        elif outcome.exit_code == 0 and (outcome.json["status"], outcome.json["answers_equal"]) != ("complete", True):
            problems.append("ended with 0, and is not complete")
        if problems:
            found[str(file), name] = problems
    assert found == {}


def test_each_damaged_file_of_a_stress_run_is_named_or_not_needed(
    cli: Cli, tmp_path: Path, damaged_copy: Callable[[Path, Path, Damage], Path], stress: Path
) -> None:
    shutil.copytree(stress, tmp_path / "copy", ignore=shutil.ignore_patterns("charts"))
    sound = cli("report", tmp_path / "copy", "--no-open", "--json")
    assert sound.exit_code == 0, sound.err
    found = {}
    for file in files_of(stress):
        for name, how in DAMAGES.items():
            outcome = cli("report", damaged_copy(stress, file, how), "--no-open", "--json")
            if problems := problems_of(outcome, sound, file):
                found[str(file), name] = problems
    assert found == {}
    for command in ("claims", "compare", "recommend"):
        refused = cli(*commands_on(stress)[command])
        assert refused.exit_code == 2
        assert "these are results of kind 'stress'; expected 'comparison'" in refused.err


@pytest.mark.parametrize("damage", ["truncated", "of another run"])
def test_results_without_checksums_end_without_a_traceback(
    cli: Cli, tmp_path: Path, damaged_copy: Callable[[Path, Path, Damage], Path], finished: Path, damage: str
) -> None:
    """Of earlier versions, whose results have none, what cannot be read is named."""
    old = Path(shutil.copytree(finished, tmp_path / "old"))
    forget_checksums(old)
    found = {}
    for file in files_of(old):
        copy = damaged_copy(old, file, DAMAGES[damage])
        outcome = cli("report", copy, "--no-open", "--json")
        is_foreseen = outcome.exit_code in {0, 1, 2} and not any(word in outcome.err for word in UNFORESEEN)
        if not is_foreseen or (outcome.exit_code and file.name not in outcome.err):
            found[str(file)] = (outcome.exit_code, outcome.err)
    assert found == {}


def test_a_truncated_table_is_named_with_what_can_still_be_done(cli: Cli, finished: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(finished, tmp_path / "copy"))
    run = copy / "experiments/sqlite-natural/run-2"
    content = (run / "operations.parquet").read_bytes()
    (run / "operations.parquet").write_bytes(content[: len(content) // 2])
    outcome = cli("report", copy, "--no-open")
    assert outcome.exit_code == 1
    assert outcome.err == (
        f"error: {run}/operations.parquet: damaged: its content is not what was written (checksums.txt has another SHA-256). "
        f"Restore it from a copy; or remove the folder {run}: the rest can be shown then, and --resume measures this run again\n"
    )
    shutil.rmtree(run)
    rest = cli("report", copy, "--no-open", "--json")
    assert rest.exit_code == 0
    assert {figure["runs"] for figure in rest.json["result"]["figures"]} == {1}
    again = cli(*study_at(finished), "--resume", "--out", copy, "--json")
    assert again.exit_code == 0, again.err
    assert {figure["runs"] for figure in again.json["result"]["figures"]} == {2}


def test_what_the_rest_does_not_need_is_left_out_with_a_warning(cli: Cli, finished: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(finished, tmp_path / "copy"))
    file = copy / "experiments/sqlite-natural/run-1/intervals.parquet"
    sound = cli("report", copy, "--no-open", "--json").json
    file.write_bytes(flipped(file.read_bytes(), 100))
    outcome = cli("report", copy, "--no-open", "--json")
    assert outcome.exit_code == 0
    (warning,) = [warning for warning in outcome.json["warnings"] if warning["kind"] == "damaged"]
    assert str(file) in warning["text"]
    assert warning["variant"] == "sqlite-natural"
    assert str(file) in (copy / "report.html").read_text(encoding="utf-8")
    assert [figure["latency_s"] for figure in outcome.json["result"]["figures"]] == [
        figure["latency_s"] for figure in sound["result"]["figures"]
    ]
    assert str(file) in cli("report", copy, "--no-open").out.replace("\n", "")
    assert str(file) in cli("claims", copy).err.replace("\n", "")


def test_the_manifest_of_another_run_is_refused(cli: Cli, finished: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(finished, tmp_path / "copy"))
    forget_checksums(copy)
    runs = copy / "experiments/sqlite-natural"
    shutil.copyfile(runs / "run-1/manifest.json", runs / "run-2/manifest.json")
    outcome = cli("report", copy, "--no-open")
    assert outcome.exit_code == 2
    assert "run-2/manifest.json: belongs to another run, run 1 of sqlite-natural" in outcome.err


# Readers of the other kinds, whose folders take long to get.

HEAD = {"title": "t", "process": {"pid": 1, "started": 0.0}, "created": "2026-01-01T00:00:00Z", "version": "1", "command": [],
        "workload": {}, "environment": {}}  # fmt: skip
VARIANT = {"id": "a", "target": "a", "database": "sqlite", "embedded": True, "url": "sqlite", "schema_name": "s",
           "schema_summary": "", "schema_file": ""}  # fmt: skip


def write_json(path: Path, content: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_result(path, json.dumps(content))
    return path


def a_tune_measurement(folder: Path) -> tuple[Path, Callable[[], object]]:
    measurement = Measurement(role="search", configuration={}, outcome="measured", value=1.0, seed=1, took_s=1.0)
    file = write_json(folder / "trials/001/measurement.json", measurement.model_dump())
    return file, lambda: read_measurements(folder, "trials")


def a_cell(folder: Path) -> tuple[Path, Callable[[], object]]:
    cell = {"cell": "c", "round": 1, "outcome": "measured", "seed": 1, "took_s": 1.0}
    return write_json(folder / "cells/c/round-1/measurement.json", cell), lambda: read_cell(folder, "c")


def an_execution(folder: Path) -> tuple[Path, Callable[[], object]]:
    workload = {"cores_a_worker": 1, "memory_a_worker": "1g", "splits": 2, "articles_a_part": 100}
    dataset = {"name": "d", "title": "d", "articles": 1, "scale": 1.0, "generated": True}
    own = {"workload": workload, "dataset": dataset, "systems": {}, "words": [], "workers": [1], "executions": 1}
    manifest = {**HEAD, "kind": "mapreduce", **own}
    write_json(folder / "manifest.json", manifest)
    return write_json(
        folder / "executions/0001.json", {"execution": 1, "system": "x", "workers": 1, "failed": "y"}
    ), lambda: read_mapreduce(folder)


def a_load(folder: Path) -> tuple[Path, Callable[[], object]]:
    numbers = (
        "requests_per_thread",
        "threads_per_node",
        "executions",
        "timeout_s",
        "warm_up",
        "before",
        "after",
        "most_s",
        "seed",
    )
    workload = {**dict.fromkeys(numbers, 1), "rate_per_node": None, "mix": {}, "grows": True}
    own = {"operations": {}, "workload": workload, "dataset": {"title": "d", "rows": 1}, "changes": []}
    manifest = {**HEAD, "kind": "elasticity", "setting": VARIANT, **own}
    write_json(folder / "manifest.json", manifest)
    return write_json(folder / "load.json", {"load_s": 1.0}), lambda: read_elasticity(folder)


def a_comparison_of_clusters(folder: Path) -> tuple[Path, Callable[[], object]]:
    return write_json(folder / "summary.json", {"kind": "elasticity comparison", "folders": ["a"]}), lambda: works_of(folder)


def a_series(folder: Path) -> tuple[Path, Callable[[], object]]:
    head = {key: value for key, value in HEAD.items() if key != "workload"}
    own = {"format": 2, "kind": "series", "variants": [], "plan": {"name": "n", "of": "parts", "parts": {"a": "a"}}}
    return write_json(folder / "manifest.json", {**head, **own}), lambda: read_series(folder)


def a_series_of_format_1(folder: Path) -> tuple[Path, Callable[[], object]]:
    series = {"format": 1, "name": "n", "title": "t", "parts": {"a": "a"}}
    return write_json(folder / "series.json", series), lambda: read_series(folder)


@pytest.mark.parametrize("damage", [name for name in DAMAGES if name != "of another run"])
@pytest.mark.parametrize(
    "make", [a_tune_measurement, a_cell, an_execution, a_load, a_comparison_of_clusters, a_series, a_series_of_format_1]
)
def test_readers_of_every_kind_name_a_damaged_file(
    tmp_path: Path, make: Callable[[Path], tuple[Path, Callable[[], object]]], damage: str
) -> None:
    file, read = make(tmp_path)
    assert read(), "undamaged, it is read"
    content = DAMAGES[damage](file.read_bytes(), b"")
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    with pytest.raises(DamagedResultsError, match=str(file)) as caught:
        read()
    assert "\n" not in str(caught.value)


def test_a_newer_or_another_manifest_is_wrong_usage(tmp_path: Path) -> None:
    write_json(tmp_path / "manifest.json", {**HEAD, "kind": "tune", "format": 1})
    with pytest.raises(UsageError, match="these are results of kind 'tune'; expected 'factors'"):
        stored_manifest(tmp_path)
    write_json(tmp_path / "manifest.json", {**HEAD, "kind": "factors", "format": 99})
    with pytest.raises(UsageError, match="newer version"):
        stored_manifest(tmp_path)
    write_json(tmp_path / "manifest.json", {**HEAD, "kind": "factors", "format": 1})
    with pytest.raises(DamagedResultsError, match="name: Field required"):
        stored_manifest(tmp_path)


def stored_manifest(folder: Path) -> object:
    from sensorbench.results.reader import read_manifest

    return read_manifest(folder, FactorsManifest)


# Checksums themselves.


def test_a_file_that_is_written_again_is_sound_before_and_after(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    write_result(path, "{}")
    first = path.read_bytes()
    write_result(path, '{"a": 1}')
    assert stored.read_json(path) == {"a": 1}
    # Killed between the line and the renaming, the earlier content is what lies there.
    path.write_bytes(first)
    assert stored.read_json(path) == {}
    path.write_text('{"a": 2}', encoding="utf-8")
    with pytest.raises(DamagedResultsError, match="not what was written"):
        stored.read_json(path)


def test_a_line_that_a_full_disk_cut_short_spoils_no_other(tmp_path: Path) -> None:
    write_result(tmp_path / "a.json", "{}")
    with (tmp_path / checksums.CHECKSUMS_FILE).open("a", encoding="utf-8") as file:
        file.write("0123")
    write_result(tmp_path / "b.json", "{}")
    assert set(checksums.checksums_in(tmp_path)) == {"a.json", "b.json"}
    assert stored.read_json(tmp_path / "b.json") == {}


def test_a_missing_segment_is_named(tmp_path: Path) -> None:
    import pyarrow as pa

    for number in (1, 2, 3):
        write_table(tmp_path / f"operations-{number}.parquet", pa.table({"k": [number]}))
    assert len(stored.stored_in(tmp_path, "operations-*.parquet")) == 3
    (tmp_path / "operations-2.parquet").unlink()
    with pytest.raises(DamagedResultsError, match=r"operations-2.parquet: damaged: the file is missing"):
        stored.stored_in(tmp_path, "operations-*.parquet")


def test_contents_written_within_one_tick_of_the_clock_have_checksums_of_their_own(tmp_path: Path) -> None:
    """Of equal length, at one path, and with inodes that are used again."""
    path = tmp_path / "manifest.json"
    for number in range(1000, 1300):
        write_result(path, json.dumps({"number": number}))
        assert stored.read_json(path) == {"number": number}
    assert len(checksums.checksums_in(tmp_path)["manifest.json"]) == 300
