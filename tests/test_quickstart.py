"""The command of the first minute."""

import json
from pathlib import Path

import pytest

from tests.conftest import Cli


@pytest.mark.long("the real one, on the whole sample")
def test_quickstart_compares_four_schemas_on_the_real_sample(cli: Cli, tmp_path: Path) -> None:
    ended = cli("quickstart", "--no-open", "--out", tmp_path / "quick")
    assert ended.exit_code == 0, ended.err
    summary = json.loads((tmp_path / "quick" / "summary.json").read_text(encoding="utf-8"))
    assert summary["answers_equal"] is True
    assert summary["result"]["dataset"]["name"] == "beijing-air-quality"
    assert summary["result"]["dataset"]["scale"] == 1.0
    assert summary["result"]["dataset"]["generated"] is False
    assert len(summary["variants"]) == 4
    assert {variant["database"] for variant in summary["variants"]} == {"sqlite", "fjall"}
    assert len(summary["result"]["rankings"]) == 4
    assert all(ranking["excluded"] is None for ranking in summary["result"]["rankings"])
    assert "all answers were equal" in ended.out
    assert summary["result"]["metric"] == "median"
    assert "median response time, 95% confidence interval" in ended.out
    loops = summary["result"]["stall"]["loops"]
    assert loops["closed"]["p99_s"] < loops["open"]["p99_s"]
    (line,) = [line for line in ended.out.splitlines() if line.startswith("Coordinated omission: ")]
    assert line.count("p99") == 1
    assert "the open loop one of" in line
    assert (tmp_path / "quick" / "report.html").stat().st_size > 100_000
