"""`sensorbench tsbs load` and `run`: what is loaded is asked, answers are DuckDB's, and what is printed is what TSBS prints."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import duckdb
import jsonschema
import pytest

import sensorbench as sb
from sensorbench.compat.tsbs import as_text, summarise_tsbs
from sensorbench.results.described import LoadProgress
from sensorbench.results.json_schemas import json_schemas
from sensorbench.results.tsbs import read_tsbs
from tests.conftest import Cli, run_main
from tests.servers import LabServers

HOSTS, EPOCHS = 5, 60
DATA = ("--use-case", "cpu-only", "--scale", HOSTS, "--timestamp-end", "2016-01-01T01:00:00Z", "--log-interval", "1m")

# As TSBS's own output is read by scripts.
LOADED = re.compile(
    r"^loaded (\d+) (metrics|rows) in ([\d.]+)sec with (\d+) workers \(mean rate ([\d.]+) (metrics|rows)/sec\)$", re.M
)
PERIOD = re.compile(r"^(\d+),([\d.]+),([\d.]+E\+\d\d),([\d.]+),([\d.]+),([\d.]+E\+\d\d),([\d.]+)$", re.M)
COMPLETE = re.compile(r"^Run complete after (\d+) queries with (\d+) workers \(Overall query rate ([\d.]+) queries/sec\):$", re.M)
LATENCIES = re.compile(
    r"^min: +([\d.]+)ms, med: +([\d.]+)ms, mean: +([\d.]+)ms, max: +([\d.]+)ms, stddev: +([\d.]+)ms, sum: +([\d.]+)sec, count: (\d+)$",
    re.M,
)
WALL = re.compile(r"^wall clock time: ([\d.]+)sec$", re.M)


def targets(folder: Path) -> tuple[str, ...]:
    return ("--target", f"duckdb:{folder}/cpu.db", "--target", f"sqlite:{folder}/cpu.db3")


def content(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two databases that have the data."""
    folder = tmp_path_factory.mktemp("tsbs")
    assert run_main(("tsbs", "load", *DATA, *targets(folder), "--batch-size", "100", "--out", folder / "load")) == 0
    return folder


def test_a_load_tells_rows_and_values(loaded: Path) -> None:
    summary, manifest = content(loaded / "load" / "summary.json"), content(loaded / "load" / "manifest.json")
    jsonschema.validate(manifest, json_schemas()["tsbs-manifest"])
    jsonschema.validate(summary, json_schemas()["tsbs-summary"])
    rows = HOSTS * EPOCHS
    assert (manifest["plan"]["rows"], manifest["plan"]["metrics"], manifest["plan"]["phase"]) == (rows, 10 * rows, "load")
    loads = summary["result"]["loads"]
    assert list(loads) == ["duckdb-wide", "sqlite-wide"]
    for load in loads.values():
        assert (load["readings"], load["values_per_reading"], load["rows"]) == (rows, 10, rows + HOSTS)
        # Batches of 100 rows: three of cpu, one of hosts.
        assert [table["batches"] for table in load["tables"]] == [3, 1]
    printed = (loaded / "load" / "tsbs.txt").read_text(encoding="utf-8")
    found = [(int(count), what) for count, what, _, workers, _, _ in LOADED.findall(printed) if workers == "1"]
    assert found == [(10 * rows, "metrics"), (rows, "rows")] * 2
    page = (loaded / "load" / "report.html").read_text(encoding="utf-8")
    assert "values/s until settled" in page
    with duckdb.connect(str(loaded / "cpu.db"), read_only=True) as database:
        assert database.sql("SELECT count(*) FROM cpu").fetchall() == [(rows,)]


def test_periods_of_a_load_are_lines_of_numbers(loaded: Path) -> None:
    summary = summarise_tsbs(read_tsbs(loaded / "load"))
    (first, *_) = summary.result.loads.values()
    progress: list[LoadProgress] = [
        {"time_s": 1_000_000_010.0, "elapsed_s": 10.0, "rows": 61},
        {"time_s": 1_000_000_020.0, "elapsed_s": 20.0, "rows": 305},
    ]
    figures = summary.result.model_copy(update={"loads": {"duckdb-wide": first.model_copy(update={"progress": progress})}})
    text = as_text(summary.model_copy(update={"result": figures}))
    assert PERIOD.findall(text) == [
        ("1000000010", "60.00", "6.000000E+02", "60.00", "6.00", "6.000000E+01", "6.00"),
        ("1000000020", "240.00", "3.000000E+03", "150.00", "24.00", "3.000000E+02", "15.00"),
    ]


def test_queries_are_answered_and_printed_as_tsbs_does(cli: Cli, loaded: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    chosen = ("--queries", "lastpoint,double-groupby-all", "--max-queries", "6", "--workers", "2")
    ended = cli("tsbs", "run", *DATA, *targets(loaded), *chosen, "--out", out)
    assert ended.exit_code == 0, ended.err
    summary = content(out / "summary.json")
    jsonschema.validate(summary, json_schemas()["tsbs-summary"])
    assert summary["answers_equal"] is True
    assert summary["result"]["plan"]["queries"] == ["double-groupby-all", "lastpoint"]
    order = [(of["query"], of["variant"], of["ok"], of["rows"]) for of in summary["result"]["queries"]]
    assert order == [
        ("double-groupby-all", "duckdb-wide", 6, 6 * HOSTS),
        ("double-groupby-all", "sqlite-wide", 6, 6 * HOSTS),
        ("lastpoint", "sqlite-wide", 6, 6 * HOSTS),
        ("lastpoint", "duckdb-wide", 6, 6 * HOSTS),
    ]
    for answer in summary["result"]["answers"].values():
        assert (answer["compared"], answer["compared_with_reference"], answer["equal"]) == (12, 12, True)
    assert [found[:2] for found in COMPLETE.findall(ended.out)] == [("6", "2")] * 4
    assert len(WALL.findall(ended.out)) == 4
    printed = [float(values[1]) / 1e3 for values in LATENCIES.findall(ended.out)]
    medians = [of["response_s"]["median"] for of in summary["result"]["queries"] for _ in range(2)]
    assert printed == pytest.approx(medians, abs=1e-5)
    results = sb.read(out)
    assert isinstance(results, sb.MeasuredResults)
    assert sum(batch.num_rows for batch in results.operation_batches(operations=["lastpoint"])) == 12
    again = cli("report", out, "--no-open")
    assert "Run complete after 6 queries" in again.out


def test_trucks_are_loaded_and_the_report_says_what_means_nothing(cli: Cli, tmp_path: Path) -> None:
    data = ("--use-case", "iot", "--scale", "20", "--timestamp-end", "2016-01-01T08:00:00Z", "--log-interval", "10s")
    target = ("--target", f"duckdb:{tmp_path}/trucks.db")
    ended = cli("tsbs", "load", *data, *target, "--out", tmp_path / "load")
    assert ended.exit_code == 0, ended.err
    plan = content(tmp_path / "load" / "manifest.json")["plan"]
    found = {what: int(count) for count, what, *_ in LOADED.findall(ended.out)}
    assert found == {"metrics": plan["metrics"], "rows": plan["rows"]}
    # A tenth of the rows is lost; those of readings have seven values, those of diagnostics three.
    assert plan["rows"] == pytest.approx(0.9 * 2 * 20 * 2880, rel=0.01)
    assert plan["metrics"] == pytest.approx(5 * plan["rows"], rel=0.01)
    chosen = ("--queries", "stationary-trucks,high-load,long-driving-sessions,daily-activity", "--max-queries", "4")
    ended = cli("tsbs", "run", *data, *target, *chosen, "--out", tmp_path / "run")
    assert ended.exit_code == 0, ended.err
    assert "stationary-trucks: the answer is always empty at TSBS's limit and interval" in " ".join(ended.err.split())
    summary = content(tmp_path / "run" / "summary.json")
    jsonschema.validate(summary, json_schemas()["tsbs-summary"])
    assert summary["answers_equal"] is True
    assert [of["query"] for of in summary["result"]["queries"]] == [
        "high-load",
        "stationary-trucks",
        "long-driving-sessions",
        "daily-activity",
    ]
    queries = {of["query"] for of in summary["result"]["queries"]}
    assert set(summary["result"]["plan"]["caveats"]) == {*queries, "all queries"}
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert (page.count("every answer was empty"), page.count("every answer was everything")) == (1, 1)


def test_servers_are_loaded_in_rows_and_values_and_asked(cli: Cli, tmp_path: Path) -> None:
    data = ("--scale", "4", "--timestamp-end", "2016-01-01T01:00:00Z", "--log-interval", "1m")
    for use_case, rows, values, queries in (("devops", 9 * 4 * 60, 101 * 4 * 60, 15), ("cpu-single", 4 * 60, 4 * 60, 5)):
        target = ("--use-case", use_case, *data, "--target", f"duckdb:{tmp_path}/{use_case}.db")
        ended = cli("tsbs", "load", *target, "--out", tmp_path / f"{use_case}-load")
        assert ended.exit_code == 0, ended.err
        assert {what: int(count) for count, what, *_ in LOADED.findall(ended.out)} == {"metrics": values, "rows": rows}
        ended = cli("tsbs", "run", *target, "--max-queries", "2", "--out", tmp_path / f"{use_case}-run")
        assert ended.exit_code == 0, ended.err
        summary = content(tmp_path / f"{use_case}-run" / "summary.json")
        assert (summary["answers_equal"], len(summary["result"]["queries"])) == (True, queries)
        assert summary["result"]["plan"]["caveats"]["all queries"]
    with duckdb.connect(str(tmp_path / "devops.db"), read_only=True) as database:
        tables = {name for (name,) in database.sql("SELECT table_name FROM duckdb_tables()").fetchall()}
        assert tables >= {"cpu", "diskio", "disk", "kernel", "mem", "net", "nginx", "postgresl", "redis", "hosts"}
    ended = cli("tsbs", "run", *target, "--queries", "lastpoint", "--out", tmp_path / "none")
    assert ended.exit_code == 2
    assert "use case cpu-single has no such query; expected some of single-groupby-1-1-1" in " ".join(ended.err.split())


def test_a_server_that_is_asked_nothing_is_loaded(cli: Cli, tmp_path: Path, lab_servers: LabServers) -> None:
    lab_servers.start("victoriametrics")
    # More series than the server lists by default.
    data = ("--use-case", "devops", "--scale", "300", "--timestamp-end", "2016-01-01T00:00:10Z")
    target = ("--target", "lab:victoriametrics?namespace=sensorbench_tsbs_loaded")
    ended = cli("tsbs", "load", *data, *target, "--replace", "--out", tmp_path / "load")
    assert ended.exit_code == 0, ended.err
    assert {what: int(count) for count, what, *_ in LOADED.findall(ended.out)} == {"metrics": 101 * 300, "rows": 9 * 300}
    ended = cli("tsbs", "run", *data, *target, "--out", tmp_path / "run")
    assert ended.exit_code == 2
    assert "no target can express it" in " ".join(ended.err.split())


def test_a_wrong_answer_is_found(cli: Cli, loaded: Path, tmp_path: Path) -> None:
    for name in ("cpu.db", "cpu.db3"):
        shutil.copy(loaded / name, tmp_path / name)
    with duckdb.connect(str(tmp_path / "cpu.db")) as database:
        database.execute("UPDATE cpu SET usage_idle = usage_idle + 1 WHERE host = 3 AND time = (SELECT max(time) FROM cpu)")
    out = tmp_path / "run"
    ended = cli("tsbs", "run", *DATA, *targets(tmp_path), "--queries", "lastpoint", "--max-queries", "2", "--out", out)
    assert (ended.exit_code, "answers differ" in ended.err) == (1, True)
    (answer,) = content(out / "summary.json")["result"]["answers"].values()
    assert {mismatch["variant"] for mismatch in answer["mismatches"]} == {"duckdb-wide"}


@pytest.mark.parametrize(
    ("phase", "options", "message"),
    [
        ("run", ("--scale", "4"), r"expected tsbs-cpu-only:hosts=4"),
        ("run", ("--seed", "7"), r"seed 42, schema wide .* expected .* seed 7"),
        ("run", ("--queries", "lastpoints"), r"--queries lastpoints: .* no such query; expected some of single-groupby-1-1-1"),
        ("load", (), r"--replace"),
        ("load", ("--workers", "2", "--replace"), r"embedded and is loaded by one worker"),
        ("load", ("--timestamp-start", "2016-01-01T01:00:00Z"), r"--timestamp-end: it is not after"),
        ("load", ("--timestamp-start", "yesterday"), r"--timestamp-start yesterday: expected a time such as 2016"),
        ("load", ("--log-interval", "2h"), r"--log-interval: it is longer than the data"),
        ("load", ("--log-interval", "1500ms"), r"--log-interval 1.5s: expected whole seconds"),
    ],
)
def test_what_makes_no_sense_is_refused(cli: Cli, loaded: Path, phase: str, options: tuple[str, ...], message: str) -> None:
    given = dict(zip(DATA[::2], DATA[1::2], strict=True)) | dict(zip(options[::2], options[1::2], strict=False))
    flags = [word for pair in given.items() for word in pair if word is not None]
    if options and options[-1] == "--replace":
        flags = [*flags, "--replace"]
    out = loaded / "refused"
    ended = cli("tsbs", phase, *flags, "--target", f"duckdb:{loaded}/cpu.db", "--out", out)
    assert ended.exit_code == 2, ended.err
    assert re.search(message, " ".join(ended.err.split()))
    assert not out.exists()


def test_nothing_is_asked_where_nothing_was_loaded(cli: Cli, tmp_path: Path) -> None:
    ended = cli("tsbs", "run", *DATA, "--target", f"duckdb:{tmp_path}/none.db", "--out", tmp_path / "run")
    assert ended.exit_code == 2
    assert "load it first: sensorbench tsbs load" in " ".join(ended.err.split())


def test_a_dry_run_is_arithmetic(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENSORBENCH_CACHE", str(tmp_path / "cache"))
    ended = cli("tsbs", "load", "--scale", "4000", "--target", f"duckdb:{tmp_path}/cpu.db", "--dry-run", "--json")
    assert ended.exit_code == 0, ended.err
    # TSBS's own example: 4,000 hosts, 3 days, 10 s.
    assert json.loads(ended.out)["parts"][0]["readings"] == 103_680_000
    ended = cli("tsbs", "load", "--use-case", "iot", "--target", f"duckdb:{tmp_path}/cpu.db", "--dry-run", "--json")
    (part,) = json.loads(ended.out)["parts"]
    assert "5,184,000 rows of 7 or 3 values: 100 trucks, 51,840 rows each, of which about 4,665,600 arrive" in part["data"]
    assert not (tmp_path / "cpu.db").exists()
    assert not list((tmp_path / "cache").glob("datasets/*"))


def test_workers_load_a_server_together(cli: Cli, tmp_path: Path, lab_servers: LabServers) -> None:
    lab_servers.start("postgresql")
    target = ("--target", "lab:postgresql?namespace=sensorbench_tsbs_workers")
    ended = cli("tsbs", "load", *DATA, *target, "--workers", "3", "--batch-size", "20", "--replace", "--out", tmp_path / "load")
    assert ended.exit_code == 0, ended.err
    assert "with 3 workers" in ended.out
    ended = cli("tsbs", "run", *DATA, *target, "--max-queries", "2", "--out", tmp_path / "run")
    assert ended.exit_code == 0, ended.err
    summary = content(tmp_path / "run" / "summary.json")
    assert (summary["answers_equal"], len(summary["result"]["queries"])) == (True, 15)
