"""Datasets that Spark generates: the files of the local generator, whoever wrote them, however often and in how many partitions."""

import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from sensorbench._engine import generate_building
from sensorbench.dataset import Dataset, generate
from sensorbench.dataset import generated as generated_rows
from sensorbench.dataset.dataset import MEASUREMENT_SCHEMA
from sensorbench.dataset.generated import Generated, PartsFile, WriteFiles, WrittenFile, in_this_process, write_files
from sensorbench.dataset.registry import make_in
from sensorbench.errors import FailedError, UsageError
from sensorbench.progress import ProgressReporter
from sensorbench.spark import Application, driver, find_master, write_on
from sensorbench.spark import generate as spark_generate
from sensorbench.verification.checksum import checksum_of_all, checksums
from tests.conftest import Cli

QUIET = ProgressReporter(quiet=True)
# One of each kind of generator: its scale, and how many parts make a file, so that there are seven files and more.
KINDS = {
    "cu-bems": (0.0005, 16),
    "machine-log": (0.01, 2),
    "sensor-timelines-100": (0.009, 16),
    "wikipedia-generated": (0.05, 1),
}


@pytest.fixture(scope="module")
def application() -> Iterator[Application]:
    """Two threads, on which a task that fails is tried again, as on a cluster."""
    threads = replace(find_master("local[2]"), url="local[2,4]")
    with driver(threads) as own, own.application("test", executors=None) as application:
        yield application


def made(name: str, out: Path, write: WriteFiles, seed: int = 7) -> Dataset:
    return make_in(out, lambda folder: generate(name, folder, scale=KINDS[name][0], seed=seed, write=write))


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def checksum(dataset: Dataset) -> str:
    return checksum_of_all(checksums(dataset, QUIET))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.cluster
def test_any_number_of_partitions_gives_the_bytes_of_the_local_generator(
    name: str, application: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generated_rows, "PARTS_A_FILE", KINDS[name][1])
    local = made(name, tmp_path / "local", in_this_process(QUIET))
    assert len(list((tmp_path / "local").glob("*/*.parquet"))) >= 7
    for partitions in (1, 3, 7):
        out = tmp_path / str(partitions)
        assert checksum(made(name, out, write_on(application, partitions, QUIET))) == checksum(local)
        assert bytes_of(out) == bytes_of(tmp_path / "local")
    monkeypatch.setattr(generated_rows, "PARTS_A_FILE", 1000)
    assert checksum(made(name, tmp_path / "one file", in_this_process(QUIET))) == checksum(local)
    other = made(name, tmp_path / "other", in_this_process(QUIET), seed=8)
    assert checksum(other) != checksum(local)
    assert other.fingerprint != local.fingerprint


def test_files_that_are_written_at_the_same_time_have_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generated_rows, "PARTS_A_FILE", KINDS["cu-bems"][1])
    for threads in (1, 3):
        made("cu-bems", tmp_path / str(threads), in_this_process(QUIET, threads))
    assert len(bytes_of(tmp_path / "1")) >= 7
    assert bytes_of(tmp_path / "3") == bytes_of(tmp_path / "1")


def test_an_error_ends_the_files_that_are_written_meanwhile(tmp_path: Path) -> None:
    class Endless:
        parts = 20

        def rows(self, threads: int, first: int = 0, end: int | None = None) -> Iterator[pa.RecordBatch]:
            if first == 10:
                raise OSError("the disk is gone")
            while True:
                time.sleep(0.01)
                yield pa.RecordBatch.from_pylist([], schema=MEASUREMENT_SCHEMA)

    files = [PartsFile(f"{first}.parquet", first, first + 1) for first in range(20)]
    with pytest.raises(OSError, match="gone"):
        in_this_process(QUIET, 2)(Generated("measurements", Endless, MEASUREMENT_SCHEMA, "time"), tmp_path, files)
    assert list(tmp_path.iterdir()) == []


def test_a_file_has_its_name_when_it_is_whole(tmp_path: Path) -> None:
    generator = partial(generate_building, json.dumps([{"site": 1, "zone": 1, "sensor": "a", "kind": "plug"}] * 3), 1, 0, 60)
    rows, file = Generated("measurements", generator, MEASUREMENT_SCHEMA, "time"), PartsFile("some.parquet", 1, 3)

    def look(parts: int, rows: int) -> None:
        assert [file.name.endswith(".unfinished") for file in tmp_path.iterdir()] == [True]
        if parts == dies_after:
            raise OSError("the disk is gone")

    dies_after = 1
    with pytest.raises(OSError, match="gone"):
        write_files(rows, tmp_path, [file], 1, lambda _: look)
    assert list(tmp_path.iterdir()) == []
    dies_after = 3
    (written,) = write_files(rows, tmp_path, [file], 1, lambda _: look)
    assert written.rows == 120
    assert [file.name for file in tmp_path.iterdir()] == ["some.parquet"]


def failing(attempts: int) -> Callable[[Generated, Path, Iterable[PartsFile]], list[WrittenFile]]:
    """What a task does, whose first attempts die in the middle of a file."""

    def write(generated: Generated, folder: Path, files: Iterable[PartsFile]) -> list[WrittenFile]:
        from pyspark import TaskContext

        from sensorbench.dataset.generated import write_files

        def die(file: PartsFile, parts: int, rows: int) -> None:
            context = TaskContext.get()
            if parts == 2 and context is not None and context.attemptNumber() < attempts:
                (folder / file.place).with_name(f".killed-{context.taskAttemptId()}.unfinished").touch()
                raise OSError("the disk is gone")

        return write_files(generated, folder, files, 1, lambda file: partial(die, file))

    return write


@pytest.mark.cluster
def test_tasks_that_fail_and_are_tried_again_leave_the_same_bytes(
    application: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made("cu-bems", tmp_path / "local", in_this_process(QUIET))
    monkeypatch.setattr(spark_generate, "_write_partition", failing(attempts=2))
    made("cu-bems", tmp_path / "spark", write_on(application, 3, QUIET))
    assert bytes_of(tmp_path / "spark") == bytes_of(tmp_path / "local")


@pytest.mark.cluster
def test_a_task_that_always_fails_leaves_no_dataset(
    application: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_generate, "_write_partition", failing(attempts=99))
    with pytest.raises(FailedError, match="OSError: the disk is gone"):
        made("cu-bems", tmp_path / "out", write_on(application, 3, QUIET))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.cluster
def test_workers_without_the_packages_are_told_before_anything_is_generated(application: Application, tmp_path: Path) -> None:
    context = application.session.sparkContext
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -S "$@"\n', encoding="utf-8")
    bare.chmod(0o755)
    usual, context.pythonExec = context.pythonExec, str(bare)
    try:
        with pytest.raises(UsageError, match=r"No module named '\w+' in its Python .* install sensorbench there"):
            made("cu-bems", tmp_path / "out", write_on(application, 3, QUIET))
    finally:
        context.pythonExec = usual
    assert list(tmp_path.iterdir()) == [bare]


def test_workers_that_would_write_elsewhere_or_other_bytes_are_told(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.touch()
    assert spark_generate._inspect(str(token), spark_generate._versions())(0) == ""
    assert "expected sensorbench 0 with pyarrow 1, as here" in spark_generate._inspect(
        str(token), "sensorbench 0 with pyarrow 1"
    )(0)
    missing = spark_generate._inspect(str(tmp_path / "out" / "token"), spark_generate._versions())(0)
    assert f"does not see {tmp_path} of this machine; expected --out on storage that all workers share" in missing


@pytest.mark.cluster
def test_files_that_are_not_here_afterwards_make_no_dataset(
    application: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(generated: Generated, folder: Path, files: Iterable[PartsFile]) -> list[WrittenFile]:
        return [WrittenFile(1, None, None, b"") for _ in files]

    monkeypatch.setattr(spark_generate, "_write_partition", elsewhere)
    with pytest.raises(FailedError, match=r"11 of 11 files were written but are not in"):
        made("cu-bems", tmp_path / "out", write_on(application, None, QUIET))
    assert list(tmp_path.iterdir()) == []


def test_what_makes_no_sense_is_refused_before_anything_is_written(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*more: str) -> str:
        ended = cli("data", "generate", "cu-bems", "--scale", "0.001", "--out", tmp_path / "out", *more)
        assert ended.exit_code == 2, ended
        assert not list(tmp_path.iterdir())
        return ended.err

    assert "--partitions applies to Spark alone; give --spark as well" in refused("--partitions", "3")
    assert "expected spark://HOST:PORT, lab:NAME, or local[N]" in refused("--spark", "yarn")
    assert "no master answers there" in refused("--spark", "spark://127.0.0.1:1")
    assert "'--partitions'" in refused("--spark", "local[2]", "--partitions", "0")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "uv pip install 'pyspark>=3.5,<3.6'" in refused("--spark", "local[2]")


@pytest.mark.cluster
def test_an_interrupted_one_leaves_nothing(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "sensorbench",
        "data",
        "generate",
        "cu-bems",
        "--spark",
        "local[2]",
        "--out",
        tmp_path / "out",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        while not list(tmp_path.glob(".out.*.unfinished/measurements/*.parquet")):
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130, process.communicate()[1]
    assert list(tmp_path.iterdir()) == []
