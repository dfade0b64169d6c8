"""Runs of other tools' workloads are benchmarks as all others: manifest, status, summary, page, and what is refused leaves nothing."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sensorbench.compat.ycsb.run import YcsbBenchmark
from sensorbench.errors import UsageError
from sensorbench.results.json_schemas import json_schemas
from tests.conftest import Cli, commands_on

RECORDS = ("-p", "recordcount=200", "-p", "fieldlength=10")
READS = ("-p", "readproportion=0.8", "-p", "updateproportion=0.2", "-p", "operationcount=300")


def words(phase: str, folder: Path, *more: str) -> tuple[str, ...]:
    return ("ycsb", phase, "--target", f"sqlite:{folder / 'y.db'}?synchronous=off", *RECORDS, *more)


def content(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8"))


@pytest.fixture
def loaded(cli: Cli, tmp_path: Path) -> Path:
    """A folder with a database that has the records."""
    assert cli(*words("load", tmp_path), "--out", tmp_path / "load").exit_code == 0
    return tmp_path


def test_a_phase_leaves_what_every_benchmark_leaves(cli: Cli, loaded: Path) -> None:
    out = loaded / "run"
    ended = cli(*words("run", loaded, *READS), "--out", out)
    assert ended.exit_code == 0, ended.err
    manifest, summary = content(out / "manifest.json"), content(out / "summary.json")
    jsonschema.validate(manifest, json_schemas()["ycsb-manifest"])
    jsonschema.validate(summary, json_schemas()["ycsb-summary"])
    assert (manifest["kind"], manifest["status"], summary["kind"], summary["status"]) == ("ycsb", "complete", "ycsb", "complete")
    assert manifest["plan"]["phase"] == "run"
    assert manifest["plan"]["properties"]["recordcount"] == 200
    assert manifest["plan"]["operations"]["update_field3"]["kind"] == "UPDATE"
    kinds = summary["result"]["kinds"]
    assert list(kinds) == ["READ", "UPDATE"]
    assert kinds["READ"]["ok"] + kinds["UPDATE"]["ok"] == summary["result"]["total"]["ok"] == 300
    assert f"[READ], Operations, {kinds['READ']['ok']}\n" in ended.out
    assert f"[READ], AverageLatency(us), {kinds['READ']['response_s']['mean'] * 1e6}\n" in ended.out
    assert summary["result"]["client_health"]["driver_ceiling_per_s"] > 0
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "requestdistribution=uniform" in page
    assert "[READ], Operations" in page
    assert 'data-chart="latency"' in page
    assert "readallfields=true" in page
    assert manifest["command"] in commands_on(out / "report.html")


def test_its_report_can_be_written_again(cli: Cli, loaded: Path) -> None:
    out = loaded / "load"
    before = {name: (out / name).read_text(encoding="utf-8") for name in ("report.html", "summary.json", "ycsb.txt")}
    for name in before:
        (out / name).unlink()
    (out / "checksums.txt").unlink()
    reported = cli("report", out, "--no-open")
    assert reported.exit_code == 0, reported.err
    assert reported.out.startswith(before["ycsb.txt"])
    assert {name: (out / name).read_text(encoding="utf-8") for name in before} == before
    assert cli("report", out, "--no-open", "--json").json == json.loads(before["summary.json"])


def test_an_interrupted_phase_says_so_and_has_a_page_of_what_was_measured(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    slowly = (*words("load", tmp_path, "-p", "target=20"), "--out", str(out))
    process = subprocess.Popen([sys.executable, "-m", "sensorbench", *slowly], stderr=subprocess.PIPE, text=True)
    while not list(out.glob("runs/001/segments/histograms-*.hlog")):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130, said
    assert f"interrupted; what was measured until then is in {out}" in said
    assert content(out / "manifest.json")["status"] == content(out / "summary.json")["status"] == "interrupted"
    assert 0 < content(out / "summary.json")["result"]["kinds"]["INSERT"]["ok"] < 200
    assert "is <strong>interrupted</strong>" in (out / "report.html").read_text(encoding="utf-8")
    refused = cli(*words("run", tmp_path, *READS), "--out", tmp_path / "run")
    assert (refused.exit_code, "loading there was cut short" in refused.err) == (2, True), refused.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("is_there", [True, False])
def test_what_is_refused_after_the_manifest_was_written_leaves_nothing(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    out, seen = tmp_path / "out", []
    if is_there:
        out.mkdir()

    def refuse(_: YcsbBenchmark, __: object, context: Any) -> None:
        seen.append(content(context.folder / "manifest.json")["status"])
        raise UsageError("the server does not take this")

    monkeypatch.setattr(YcsbBenchmark, "execute", refuse)
    ended = cli(*words("load", tmp_path), "--out", out)
    assert (ended.exit_code, "the server does not take this" in ended.err, seen) == (2, True, ["running"])
    assert out.exists() == is_there
    assert not is_there or not list(out.iterdir())


def test_what_is_refused_later_stays_with_its_reason(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: YcsbBenchmark, __: object, context: Any) -> None:
        (context.folder / "runs").mkdir()
        raise UsageError("the server does not take this")

    monkeypatch.setattr(YcsbBenchmark, "execute", refuse)
    assert cli(*words("load", tmp_path), "--out", tmp_path / "out").exit_code == 2
    manifest = content(tmp_path / "out/manifest.json")
    assert (manifest["status"], manifest["reason"]) == ("failed", "the server does not take this")
