"""Results survive whatever ends the process, and old ones stay readable."""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from sensorbench import lab
from sensorbench.errors import EngineError, FailedError
from sensorbench.lifecycle.status import record_status
from sensorbench.results import read_comparison, read_run, writer
from sensorbench.results.format_1 import of_format_2
from sensorbench.results.json_schemas import SCHEMAS_FOLDER, json_schemas
from sensorbench.results.writer import ManifestWriter, write_table, write_tables
from sensorbench.runner import Servers
from tests.conftest import Cli

FIXTURES = Path(__file__).parent / "fixtures"

LONG = """
dataset = "beijing-air-quality"
scale = 0.02
[[target]]
url = "sqlite"
schema = "natural"
[workload]
mix = { get_sensor_data = 1, get_peak_data = 1 }
schedule = { rate = 500 }
duration = "60s"
log = "all"
"""


def start_long_run(folder: Path, out: Path) -> "subprocess.Popen[str]":
    """Starts a run of a minute and waits until two segments are closed, and one of the histograms, which come later."""
    path = folder / "long.toml"
    path.write_text(LONG, encoding="utf-8")
    command = [sys.executable, "-m", "sensorbench", "run", str(path), "--out", str(out), "--no-open"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def has_segments() -> bool:
        closed = [
            list(out.glob(f"experiments/*/run-1/segments/{name}")) for name in ("operations-*.parquet", "histograms-*.hlog")
        ]
        return len(closed[0]) >= 2 and bool(closed[1])

    wait_until(has_segments, process)
    return process


def wait_until(condition: Callable[[], bool], process: "subprocess.Popen[str]", limit_s: float = 300.0) -> None:
    end_s = time.monotonic() + limit_s
    while not condition():
        if process.poll() is not None or time.monotonic() > end_s:
            process.kill()
            raise AssertionError(f"it did not come so far: {process.communicate()}")
        time.sleep(0.05)


def check_what_is_left(cli: Cli, out: Path, states: set[str]) -> None:
    run = read_run(out / "experiments/sqlite-natural/run-1")
    assert run.state in states
    operations, histograms = run.table("operations"), run.histograms()
    assert operations is not None
    assert operations.num_rows >= 500
    assert histograms is not None
    outcome = cli("report", out, "--no-open", "--json")
    assert outcome.exit_code == 0, outcome.err
    assert outcome.json["status"] in states
    assert outcome.json["result"]["figures"][0]["counts"]["ok"] >= 100
    page = (out / "report.html").read_text(encoding="utf-8")
    assert f"This work is <strong>{outcome.json['status']}</strong>" in page


def test_a_killed_run_leaves_readable_segments(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start_long_run(tmp_path, out)
    process.kill()
    process.communicate()
    assert read_comparison(out).state == "interrupted"
    check_what_is_left(cli, out, {"interrupted"})


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_with_130(cli: Cli, tmp_path: Path, sent: signal.Signals) -> None:
    out = tmp_path / "out"
    process = start_long_run(tmp_path, out)
    process.send_signal(sent)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "interrupted; what was measured until then is in" in err
    assert json.loads((out / "manifest.json").read_text(encoding="utf-8"))["status"] == "interrupted"
    check_what_is_left(cli, out, {"interrupted"})
    totals = read_run(out / "experiments/sqlite-natural/run-1").manifest.totals
    assert totals is not None
    counts = [operation["counts"] for operation in totals.phases[0].operations.values()]
    assert sum(sum(count.values()) for count in counts) == totals.phases[0].started, "every operation is accounted for"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own that is soon full. This needs root, as the README says of the tests."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1400k", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_ends_with_1_and_keeps_closed_segments(cli: Cli, tmp_path: Path, small_disk: Path) -> None:
    path, out = tmp_path / "long.toml", small_disk / "out"
    path.write_text(LONG.replace('url = "sqlite"', f'url = "sqlite:{tmp_path / "data.db"}"'), encoding="utf-8")
    outcome = cli("run", path, "--out", out, "--no-open", "--set", "workload.schedule.rate=10000")
    assert outcome.exit_code == 1
    assert "no space is left on the disk" in outcome.err
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["status"] == "out of space"
    run = read_run(out / "experiments/sqlite-natural/run-1")
    assert run.state == "out of space"
    operations = run.table("operations")
    assert operations is not None
    assert operations.num_rows > 1000
    # With room elsewhere, what is left is as good as any result.
    moved = tmp_path / "moved"
    shutil.copytree(out, moved)
    report = cli("report", moved, "--no-open", "--json")
    assert report.exit_code == 0, report.err
    assert report.json["status"] == "out of space"


def test_a_database_on_a_full_disk_names_its_folder_and_what_the_system_says(tmp_path: Path, small_disk: Path) -> None:
    path, data = tmp_path / "large.toml", small_disk / "data"
    on_small_disk = LONG.replace('url = "sqlite"', f'url = "fjall:{data}"').replace("natural", "by_sensor")
    path.write_text(on_small_disk.replace("scale = 0.02", "scale = 0.1"), encoding="utf-8")
    command = [sys.executable, "-m", "sensorbench", "run", str(path), "--out", str(tmp_path / "out"), "--no-open"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert f"{data}: No space left on device" in ended.stderr
    assert "Storage(" not in ended.stderr


def test_manifests_keep_to_their_published_schemas(study_folder: Path) -> None:
    for name, schema in json_schemas().items():
        published = json.loads((SCHEMAS_FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))
        assert published == schema, "the classes changed: `make schemas`, and mind old results"
    validate = lambda path, name: jsonschema.validate(json.loads(path.read_text(encoding="utf-8")), json_schemas()[name])  # noqa: E731
    validate(study_folder / "manifest.json", "comparison-manifest")
    manifests = list(study_folder.glob("experiments/*/run-*/manifest.json"))
    assert len(manifests) == 12
    for manifest in manifests:
        validate(manifest, "run-manifest")


def test_a_manifest_takes_no_values_that_it_has_no_place_for(tmp_path: Path, study_folder: Path) -> None:
    written = ManifestWriter(tmp_path / "copy", read_comparison(study_folder).manifest)
    before = (tmp_path / "copy/manifest.json").read_bytes()
    with pytest.raises(AssertionError, match="ComparisonManifest has no rates"):
        written.update(rates=[1.0])
    with pytest.raises(AssertionError, match="has no state"):
        written.update_plan(state="running")
    assert (tmp_path / "copy/manifest.json").read_bytes() == before


def test_results_of_the_first_format_stay_readable(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "format-1"
    shutil.copytree(FIXTURES / "format-1", folder)
    outcome = cli("report", folder, "--no-open", "--json")
    assert outcome.exit_code == 0, outcome.err
    assert outcome.json["status"] == "complete"
    assert outcome.json["answers_equal"] is True
    assert outcome.json["result"]["figures"][0]["latency_s"]["median"]["value"] > 0


def test_an_operation_of_the_first_format_that_is_called_like_a_renamed_key_keeps_its_name() -> None:
    operations = {"unstarted": {"wait_ns": {"p50": 1}}, "variant": {"wait_ns": {"p50": 2}}}
    run = of_format_2({"kind": "run", "state": "complete", "whole": {"phases": [{"unstarted": 3, "operations": operations}]}})
    renamed = {"unstarted": {"schedule_lag_ns": {"p50": 1}}, "variant": {"schedule_lag_ns": {"p50": 2}}}
    assert run["totals"] == {"phases": [{"dropped": 3, "operations": renamed}]}
    comparison = of_format_2({"kind": "experiment", "operations": {"variant": {"variant": "day", "variant_of": "read"}}})
    assert comparison["plan"]["operations"] == {"variant": {"instance": "day", "instance_of": "read"}}


def test_a_newer_format_is_refused(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "format-99"
    shutil.copytree(FIXTURES / "format-1", folder)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    (folder / "manifest.json").write_text(json.dumps({**manifest, "format": 99}), encoding="utf-8")
    outcome = cli("report", folder, "--no-open")
    assert outcome.exit_code == 2
    assert "newer version of sensorbench (format 99)" in outcome.err


def test_results_have_the_files_of_the_design(study_folder: Path) -> None:
    assert {path.name for path in study_folder.iterdir()} == {
        "charts", "checksums.txt", "experiments", "manifest.json", "reference.parquet", "report.html", "summary.json",
    }  # fmt: skip
    run = study_folder / "experiments/sqlite-natural/run-1"
    expected = {
        "manifest.json",
        "operations.parquet",
        "intervals.parquet",
        "resources.parquet",
        "answers.parquet",
        "histograms.hlog",
        "checksums.txt",
    }
    assert {path.name for path in run.iterdir()} == expected
    operations = pq.read_table(run / "operations.parquet")
    assert operations.column_names == [
        *("phase", "operation", "k", "slot", "outcome", "intended_start_ns", "start_ns", "end_ns", "rows")
    ]
    assert sorted(operations["k"].to_pylist()) == list(range(120))
    assert (study_folder / "experiments/sqlite-natural/summary.json").exists()


def test_histograms_are_read_by_hdrhistograms_own_tools(study_folder: Path) -> None:
    run = read_run(study_folder / "experiments/fjall-by_sensor/run-1")
    assert run.manifest.totals is not None
    expected = {
        f"measure.{name}.response": operation["counts"]["ok"]
        for name, operation in run.manifest.totals.phases[0].operations.items()
    }
    total = HdrHistogram(1, 3_600_000_000_000, 3)
    reader = HistogramLogReader(str(run.folder / "histograms.hlog"), total)
    counts: dict[str, int] = {}
    while (interval := reader.get_next_interval_histogram()) is not None:
        counts[interval.get_tag()] = counts.get(interval.get_tag(), 0) + interval.get_total_count()
    assert {tag: count for tag, count in counts.items() if tag.endswith("response")} == expected
    ours = run.histograms()
    assert ours is not None
    assert sum(sum(row) for row in ours["count"].to_pylist()) == sum(counts.values())


def test_segments_are_joined_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows a group of the file has, all are there, in their order, and groups are full; logs have one header."""
    tables = [pa.table({"k": list(range(start, start + 7))}) for start in range(0, 70, 7)]
    for number, table in enumerate(tables):
        write_table(tmp_path / f"operations-{number:06}.parquet", table)
    files = sorted(tmp_path.glob("operations-*.parquet"))
    for rows in (1, 10, 1000):
        monkeypatch.setattr(writer, "ROWS_A_GROUP", rows)
        whole = tmp_path / f"whole-{rows}.parquet"
        write_tables(whole, writer.joined_tables(files))
        assert pq.read_table(whole)["k"].to_pylist() == list(range(70))
        metadata = pq.read_metadata(whole)
        groups = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        assert groups == [rows] * (70 // rows) + [70 % rows] * (70 % rows > 0)
    logs = ["#header\nTag=a,1\n", "#header\nTag=b,2\nTag=c,3\n"]
    assert "".join(writer.joined_logs(logs)) == "#header\nTag=a,1\nTag=b,2\nTag=c,3\n"


class NotedEnd:
    """A writer that notes how it ended."""

    folder = Path("results")

    def __init__(self) -> None:
        self.ends: list[tuple[str, str]] = []

    def finish(self, status: str, reason: str) -> None:
        self.ends.append((status, reason))


def test_a_failure_that_cost_a_server_says_once_how_that_one_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    why = "the server has ended; its log says last: out of memory"
    monkeypatch.setattr(lab, "why_ended", lambda instance: why)
    servers = Servers({"cassandra": cast("lab.Instance", object())})
    for said in ("the connection was closed", f"the connection was closed; {why}"):
        noted = NotedEnd()
        with pytest.raises(FailedError) as failed, record_status(cast("ManifestWriter[Any]", noted), "", servers):
            raise EngineError(said)
        assert noted.ends == [("failed", str(failed.value))]
        assert str(failed.value) == f"the connection was closed; {why}"
