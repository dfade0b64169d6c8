"""`sensorbench tune` on databases."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

from sensorbench.results.json_schemas import json_schemas
from sensorbench.results.tune import read_tune
from tests.conftest import Cli, commands_on

SHORT = ("--step-duration", "600ms", "--ramp", "0", "--warmup", "0", "--no-open", "--json")
NULL_SPACE = """database = "null"
file = "the URL"
line = "{key}={value}"
[settings.delay_ms]
about = "How long each operation takes."
low = 1
high = 20
[settings.session]
about = "How the client waits."
values = ["blocking"]
"""
NULL = (
    "tune",
    "--target",
    "null",
    "--records",
    "1",
    "--server-setting",
    "delay_ms=20",
    "--server-setting",
    "session=blocking",
    *SHORT,
)


def null_space(tmp_path: Path) -> Path:
    file = tmp_path / "null.toml"
    file.write_text(NULL_SPACE, encoding="utf-8")
    return file


def test_a_gain_on_a_database_of_known_speed(cli: Cli, tmp_path: Path) -> None:
    """Operations take what the option says, 20 ms to begin with."""
    out = tmp_path / "out"
    ended = cli(*NULL, "--goal", "p50@50", "--space", null_space(tmp_path), "--budget-runs", "6", "--out", out)
    assert ended.exit_code == 0, ended.err
    summary = ended.json
    result = summary["result"]
    assert (summary["status"], result["verdict"]) == ("complete", "gain")
    assert result["ratio"]["high"] < 1
    assert int(result["best"]["delay_ms"]) < 12
    assert result["snippet"] == f"delay_ms={result['best']['delay_ms']}"
    measured_trials = [trial for trial in result["trials"] if trial["outcome"] == "measured"]
    # What is far worse than the best is given up: not the default, and not the best itself.
    assert len(measured_trials) >= 3
    for measured_trial in measured_trials:
        assert measured_trial["value"] >= int(measured_trial["configuration"]["delay_ms"]) / 1000
    jsonschema.validate(json.loads((out / "manifest.json").read_text(encoding="utf-8")), json_schemas()["tune-manifest"])
    jsonschema.validate(summary, json_schemas()["tune-summary"])
    assert (summary["format"], summary["kind"]) == (2, "tune")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert all(f'data-chart="{name}"' in page for name in ("history", "parallel"))
    assert (out / "charts" / "history.svg").exists()
    assert commands_on(out / "report.html") == [summary["command"]]
    assert summary["command"][:2] == ["sensorbench", "tune"]
    (out / "summary.json").unlink()
    assert "\ndelay_ms=" in cli("report", out, "--no-open").out
    assert json.loads((out / "summary.json").read_text(encoding="utf-8")) == summary
    trial = cli("report", out / "trials" / "001", "--no-open", "--json").json
    assert (trial["kind"], trial["result"]["steps"][0]["rate_per_s"]) == ("stress", 50)


def test_identical_settings_of_a_database_are_no_gain(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "identical.toml"
    file.write_text(
        'database = "null"\nfile = "f"\n[settings.delay_ms]\nabout = "a"\nvalues = [1, 1]\n[settings.session]\nabout = "b"\n'
        'values = ["blocking", "blocking"]\n',
        encoding="utf-8",
    )
    start = ("--server-setting", "delay_ms=1", "--server-setting", "session=blocking", "--records", "1", "--space", file)
    ended = cli("tune", "--target", "null", "--goal", "load", *start, *SHORT, "--budget-runs", "3", "--out", tmp_path / "out")
    assert ended.exit_code == 0, ended.err
    result = ended.json["result"]
    assert (result["verdict"], result["ratio"], result["snippet"]) == ("no gain", None, "")
    assert "No gain: the best configuration that was found is the default." in cli("report", tmp_path / "out", "--no-open").out


def test_ctrl_c_leaves_what_was_measured_and_resume_goes_on(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = (*NULL, "--goal", "p50@50", "--space", null_space(tmp_path), "--budget-runs", "3", "--out", out)
    command = (sys.executable, "-m", "sensorbench", *map(str, arguments))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (out / "trials" / "002" / "manifest.json").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate()
    assert process.returncode == 130, told
    assert "--resume continues" in told
    assert cli("report", out, "--no-open", "--json").json["status"] == "interrupted"
    first = read_tune(out).trials[0]
    ended = cli(*arguments, "--resume")
    assert ended.exit_code == 0, ended.err
    assert read_tune(out).trials[0] == first
    assert (ended.json["status"], len(ended.json["result"]["trials"])) == ("complete", 3)


def test_options_of_an_embedded_database_are_searched(cli: Cli, tmp_path: Path) -> None:
    """Waiting for the disk with each record takes several times as long."""
    start = ("--server-setting", "synchronous=extra", "--server-setting", "journal_mode=delete")
    arguments = ("--goal", "load", "--records", "300", *start, "--allow-durability", "--budget-runs", "6", *SHORT)
    ended = cli("tune", "--target", "sqlite", *arguments, "--out", tmp_path / "out")
    assert ended.exit_code == 0, ended.err
    result = ended.json["result"]
    assert ended.json["status"] == "complete"
    assert result["best"]["synchronous"] == "off"
    assert result["ratio"]["value"] < 0.8
    warned = "durability" in [warning["kind"] for warning in ended.json["warnings"]]
    assert warned == (result["verdict"] == "gain")
    assert not list((tmp_path / "out").glob("**/data"))


def test_a_bad_configuration_of_postgresql_is_mended(cli: Cli, lab_home: Path, tmp_path: Path) -> None:
    """Each commit waits 100 ms for others, of which there may be none."""
    del lab_home
    space = tmp_path / "space.toml"
    space.write_text(
        'database = "postgresql"\nfile = "postgresql.conf"\nline = "{key} = \'{value}\'"\n[settings.commit_delay]\nabout = "a"\n'
        'values = [0, 100000]\n[settings.shared_buffers]\nabout = "b"\nvalues = ["1MB", "32MB"]\n',
        encoding="utf-8",
    )
    start = (
        "--server-setting",
        "commit_delay=100000",
        "--server-setting",
        "commit_siblings=0",
        "--server-setting",
        "shared_buffers=1MB",
    )
    load = ("--goal", "p50@40", "--mix", "write=1", "--records", "100", "--budget-runs", "5", *SHORT)
    ended = cli("tune", "--target", "postgresql", *load, *start, "--space", space, "--out", tmp_path / "out")
    assert ended.exit_code == 0, ended.err
    summary = ended.json
    result = summary["result"]
    assert (result["verdict"], result["best"]["commit_delay"]) == ("gain", "0")
    assert result["ratio"]["high"] < 1
    assert "commit_delay = '0'" in result["snippet"]
    servers = json.loads((tmp_path / "out" / "trials" / "001" / "manifest.json").read_text(encoding="utf-8"))["environment"][
        "servers"
    ]
    assert next(iter(servers.values()))["settings"]["commit_delay"] == "100000"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--target", "sqlite", "--goal", "p42@5"), "--goal p42@5: expected a percentile at a rate"),
        (("--goal", "load"), "--target: expected"),
        (("--target", "sqlite:x.db", "--goal", "load"), "tune starts servers with the settings that it tries"),
        (("--target", "fjall", "--goal", "load"), "no search space for fjall comes with sensorbench"),
        (
            ("--target", "sqlite", "--goal", "load", "--server-setting", "speed=9"),
            "--server-setting speed: sqlite does not know it",
        ),
        (
            ("--target", "sqlite", "--goal", "load", "--server-setting", "speed"),
            "--server-setting speed: expected a setting and its value",
        ),
        (("--target", "sqlite", "--goal", "load", "--space", "none.toml"), "none.toml: no such file"),
        (("--target", "sqlite", "--goal", "load", "--budget", "5"), "--budget '5': expected a length of time"),
        (("--target", "sqlite", "--goal", "load", "--resume"), "holds no results to continue"),
    ],
)
def test_wrong_usage_says_what_was_expected(cli: Cli, tmp_path: Path, arguments: tuple[str, ...], expected: str) -> None:
    ended = cli("tune", *arguments, "--out", tmp_path / "out", "--no-open")
    assert (ended.exit_code, expected in ended.err) == (2, True), ended.err
    assert not (tmp_path / "out").exists()


def test_a_space_for_another_database_or_with_unknown_settings_is_refused(cli: Cli, tmp_path: Path) -> None:
    file = null_space(tmp_path)
    common = ("tune", "--goal", "load", "--space", file, "--out", tmp_path / "out")
    assert "it is for null, and the target is sqlite" in cli(*common, "--target", "sqlite").err
    file.write_text(NULL_SPACE.replace("delay_ms", "delai"), encoding="utf-8")
    ended = cli(*common, "--target", "null")
    assert (ended.exit_code, "settings.delai: null does not know it" in ended.err) == (2, True), ended.err


def test_without_optuna_it_says_what_to_install(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    ended = cli("tune", "--target", "sqlite", "--goal", "load")
    assert (ended.exit_code, "uv pip install 'optuna>=4'" in ended.err) == (2, True), ended.err
