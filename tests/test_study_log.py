"""The persistent-log study: instances of an operation, query plans, failures that leave the rest standing, several datasets."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest

from sensorbench.dataset import open_dataset
from sensorbench.errors import UsageError
from sensorbench.schemas import load_operations
from sensorbench.schemas.instances import mix_of_instances, with_instances
from sensorbench.schemas.operations import Operations, ParameterSource
from tests.conftest import Cli, run_main
from tests.servers import LabServers

SHARES = [0.0012, 0.01, 0.12, 0.29, 0.36, 0.81, 0.9]
RANGES = [f"r{number}" for number in range(1, 8)]
QUESTIONS = ["look_up", *(f"fetch_range.{name}" for name in RANGES), *(f"count_range.{name}" for name in RANGES)]
TINY = ("--dataset", "machine-log-1gb", "--scale", "0.0005", "--no-open")


def summary_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "summary.json").read_text(encoding="utf-8"))


def test_ranges_of_any_log_have_the_shares_of_the_study_and_say_so() -> None:
    with open_dataset("azure-vm-noise").connect() as workbench:
        operations = with_instances(load_operations("logs"), {"fetch_range"}, workbench, "test")
        instances = [operation.instance for operation in operations.operation.values() if operation.instance]
        assert [instance.of for instance in instances] == ["fetch_range"] * 7
        assert [instance.share for instance in instances] == pytest.approx(SHARES, rel=0.03)
        for instance in instances:
            low, high = workbench.sql(operations.parameter_source[f"ranges.{instance.name}"].query or "").fetchall()[0]
            counted = workbench.execute(
                "SELECT count(*) FILTER (value > ? AND value < ?) / count(*) FROM log", [low, high]
            ).fetchall()
            assert counted[0][0] == instance.share, "the share reported is the one that is there"
    assert operations.operation["count_range"].instances == "ranges", "what is not asked is not taken apart"
    assert mix_of_instances({"look_up": 20, "fetch_range": 2}, operations) == {
        "look_up": 20,
        **{f"fetch_range.{name}": 2 for name in RANGES},
    }


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("SELECT 1.0::DOUBLE AS low, 2.0::DOUBLE AS high", "expected rows with a column 'instance'"),
        ("SELECT 'a' AS instance, 2.5 AS low, 3.0 AS high", "column low is a DECIMAL"),
        ("SELECT * FROM nowhere", "Table with name nowhere does not exist"),
    ],
)
def test_a_draw_that_gives_no_variants_is_refused(query: str, problem: str) -> None:
    operations: Operations = load_operations("logs").with_parameter_source("ranges", ParameterSource(query=query))
    with pytest.raises(UsageError, match=r"here, parameter_source\.ranges: ") as error:
        with_instances(operations, {"fetch_range"}, duckdb.connect(), "here")
    assert problem in str(error.value)


def test_values_of_instances_keep_their_types_bits_and_order() -> None:
    rows = """
        SELECT 'a' AS instance, number, 1 / number AS third, 'o''clock "' || number || chr(10) AS text,
            TIMESTAMP '1969-12-31 23:59:59.999999' + to_days(CAST(number AS INTEGER)) AS time, DATE '2024-02-29' AS day,
            number % 2 = 0 AS even, CAST('inf' AS DOUBLE) AS high, CAST(0.1 AS FLOAT) AS short, CAST(NULL AS BIGINT) AS nothing
        FROM range(3, 2003) AS numbers(number) ORDER BY hash(number)
    """
    operations = load_operations("logs").with_parameter_source("ranges", ParameterSource(query=rows))
    with duckdb.connect() as workbench:
        (query,) = (
            source.query or ""
            for name, source in with_instances(operations, {"fetch_range"}, workbench, "here").parameter_source.items()
            if name == "ranges.a"
        )
        expected = workbench.sql(f"SELECT * EXCLUDE instance FROM ({rows})")
        found = workbench.sql(query)
        assert (found.columns, found.types, found.fetchall()) == (expected.columns, expected.types, expected.fetchall())
        blob = operations.with_parameter_source("ranges", ParameterSource(query="SELECT 'a' AS instance, 'x'::BLOB AS low"))
        with pytest.raises(UsageError, match="parameters of instances cannot be bytes"):
            with_instances(blob, {"fetch_range"}, workbench, "here")


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Real data in an embedded database, without and with indexes."""
    out = tmp_path_factory.mktemp("log") / "azure"
    dataset = ("--dataset", "azure-vm-noise", "--no-open")
    assert run_main(("study", "run", "log-analytics", "--target", "sqlite", *dataset, "--out", out)) == 0
    return summary_of(out)


def test_real_logs_are_answered_equally(azure: dict[str, Any]) -> None:
    assert azure["answers_equal"] is True
    assert list(azure["result"]["operations"]) == QUESTIONS
    levels = [variant["id"] for variant in azure["variants"]]
    assert levels == [f"sqlite-relational-{level}" for level in ("none", "key", "key_value")]
    assert len(azure["result"]["figures"]) == len(levels) * len(QUESTIONS)
    for figure in azure["result"]["figures"]:
        executions = 20 if figure["operation"] == "look_up" else 1
        assert figure["counts"]["ok"] == 3 * executions, "each question is executed so often in each of three runs"
    readings = azure["result"]["dataset"]["relations"]["log"]["rows"]
    rows = {figure["operation"]: figure["rows_per_operation"] for figure in azure["result"]["figures"]}
    for name in RANGES:
        share = azure["result"]["operations"][f"fetch_range.{name}"]["share"]
        assert rows[f"fetch_range.{name}"] == pytest.approx(share * readings), "every row was fetched"
        assert rows[f"count_range.{name}"] == 1


def test_plans_tell_where_the_index_is_left(azure: dict[str, Any]) -> None:
    def access(level: str, operation: str) -> str:
        return str(azure["result"]["query_plans"][f"sqlite-relational-{level}"][operation]["access"])

    assert {access("none", question) for question in QUESTIONS} == {"scan"}
    assert access("key", "look_up").startswith("index ")
    assert access("key", "fetch_range.r1") == "scan"
    assert access("key_value", "fetch_range.r1") == "index log_value"
    assert access("key_value", "count_range.r1") == "index log_value"


def test_readings_of_sensors_are_no_log(cli: Cli, tmp_path: Path) -> None:
    dataset = ("--dataset", "beijing-air-quality", "--out", tmp_path / "none")
    outcome = cli("study", "run", "log-analytics", "--target", "sqlite", *dataset)
    assert outcome.exit_code == 2
    assert "operations logs need the relation log, which dataset beijing-air-quality does not have; it has " in outcome.err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (("--target", "mariadb_relax"), "study log-analytics has the systems mariadb, mariadb_relaxed, postgresql"),
        (("--target", "sqlite", "--sweep", "index=none,key"), "study log-analytics compares the values of index already"),
    ],
)
def test_what_the_study_does_not_know_is_refused_with_what_it_has(
    cli: Cli, tmp_path: Path, wrong: tuple[str, ...], problem: str
) -> None:
    outcome = cli("study", "run", "log-analytics", *wrong, *TINY, "--out", tmp_path / "none")
    assert outcome.exit_code == 2
    assert problem in outcome.err
    assert not (tmp_path / "none").exists()


def test_several_datasets_have_a_page_of_their_own(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "series"
    sizes = ("--dataset", "machine-log-1gb", "--dataset", "machine-log-2gb", "--scale", "0.0002")
    arguments = ("study", "run", "log-analytics", "--target", "sqlite", *sizes, "--out", out, "--no-open")
    assert cli(*arguments).exit_code == 0
    whole = summary_of(out)
    assert whole["status"] == "complete"
    assert whole["answers_equal"] is True
    assert {name: part["readings"] for name, part in whole["result"]["parts"].items()} == {
        "machine-log-1gb": 3906,
        "machine-log-2gb": 7560,
    }
    looked_up = [
        row for row in whole["result"]["growth"] if row["what"] == "look_up" and row["variant"] == "sqlite-relational-key"
    ]
    assert [row["readings"] for row in looked_up] == [3906, 7560]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert 'href="machine-log-2gb/report.html"' in page
    assert "fetch_range.r7" in page
    assert cli("claims", out, "--json").exit_code == 0
    assert cli("report", out, "--no-open").exit_code == 0
    again = cli(*arguments, "--resume")
    assert again.exit_code == 0
    assert again.err.count("finished before, not repeated") == 6
    assert cli(*arguments).exit_code == 2


STUDY = [sys.executable, "-m", "sensorbench", "study", "run", "log-analytics", "--target", "sqlite", *TINY]


def test_a_killed_study_goes_on_and_repeats_nothing_that_was_finished(tmp_path: Path) -> None:
    out = tmp_path / "killed"
    process = subprocess.Popen([*STUDY, "--out", out], stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stderr is not None
    for line in process.stderr:
        if "sqlite-relational-none, run 3 of 3: " in line:
            process.send_signal(signal.SIGKILL)
            break
    process.wait()
    before = _measured(out)
    assert before
    ended = subprocess.run([*STUDY, "--out", out, "--resume"], capture_output=True, text=True, check=True)
    assert "sqlite-relational-none: finished before, not repeated" in ended.stderr
    assert {name: _measured(out)[name] for name in before} == before, "no finished run was touched"
    whole = summary_of(out)
    assert whole["status"] == "complete"
    assert whole["answers_equal"] is True
    assert [figure["runs"] for figure in whole["result"]["figures"]] == [3] * (3 * len(QUESTIONS))


def _measured(out: Path) -> dict[str, int]:
    """When each complete run was written."""
    manifests = out.glob("experiments/*/run-*/manifest.json")
    return {
        str(path.relative_to(out)): path.stat().st_mtime_ns
        for path in manifests
        if json.loads(path.read_text(encoding="utf-8"))["status"] == "complete"
    }


class Memory(NamedTuple):
    """What psutil reports about the memory."""

    total: int
    available: int


def test_rows_that_do_not_fit_into_memory_are_stopped_and_the_rest_goes_on(
    cli: Cli, tmp_path: Path, lab_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine on which each look finds 300 MB less: Redis would need more than there is."""
    looks = iter(range(1_000_000))

    def shrinking() -> Memory:
        return Memory(4_000_000_000, max(900_000_000, 3_000_000_000 - 300_000_000 * next(looks)))

    out = tmp_path / "small"
    with monkeypatch.context() as patch:
        patch.setattr("sensorbench.runner.memory.psutil.virtual_memory", shrinking)
        patch.setattr("sensorbench.runner.waiting.SLICE_S", 0.001)
        patch.setattr("sensorbench.runner.memory.WARNING_SHARE", 1e-9)
        outcome = cli(
            "study", "run", "log-analytics", "--target", "redis", "--target", "sqlite", "--schema", "range_only",
            "--schema", "relational", "--dataset", "machine-log-1gb", "--scale", "0.01", "--out", out, "--no-open",
        )  # fmt: skip
    assert outcome.exit_code == 0, outcome.err
    assert "redis-range_only failed at loading and is left out" in outcome.err
    failure = summary_of(out)["result"]["failures"]["redis-range_only"]
    assert "do not fit into memory" in failure["cause"]
    assert "Use a smaller --scale" in failure["cause"]
    assert len([figure for figure in summary_of(out)["result"]["figures"] if figure["runs"] == 3]) == 3 * len(QUESTIONS)


def test_a_study_of_which_everything_fails_has_failed(cli: Cli, tmp_path: Path) -> None:
    out, nowhere = tmp_path / "failed", f"sqlite:{tmp_path / 'no-such-folder' / 'data.db'}"
    outcome = cli("study", "run", "log-analytics", "--target", nowhere, *TINY, "--out", out)
    assert outcome.exit_code == 1
    assert "sqlite-relational-none failed at loading and is left out" in outcome.err
    assert "every variant failed" in outcome.err
    assert summary_of(out)["status"] == "failed"


def test_all_servers_but_the_slow_ones_give_equal_answers(cli: Cli, tmp_path: Path, lab_servers: LabServers) -> None:
    out = tmp_path / "servers"
    # Documents and HBase are queried less, because they are slow: tests/test_documents.py, tests/test_hbase_driver.py. InfluxDB, VictoriaMetrics, Prometheus and OpenTSDB have no schema of a log.
    names = [
        name
        for name in lab_servers
        if not name.startswith(("ferretdb", "hbase", "influxdb", "victoriametrics", "prometheus", "opentsdb"))
    ]
    lab_servers.start(*names)
    targets = [word for name in names for word in ("--target", f"lab:{name}")]
    # Other tests have been there.
    outcome = cli("study", "run", "log-analytics", *targets, *TINY, "--replace", "--out", out)
    assert outcome.exit_code == 0, outcome.err
    summary = summary_of(out)
    assert summary["answers_equal"] is True
    assert summary["result"]["failures"] == {}
    measured = {variant["id"] for variant in summary["variants"]}
    assert {"postgresql-relational-key_value", "cassandra-source-key", "cassandra-by_day-key_value", "redis-spread"} <= measured
    loads = summary["result"]["load"]
    for variant, tool in (("cassandra-source-key-by_copy", "copy"), ("redis-source-by_pipe", "pipe")):
        assert loads[variant]["loader"]["name"] == tool
        assert loads[variant]["loader"]["file_bytes"] > loads[variant]["rows"] * 20
        assert loads[variant.rpartition("-")[0]].get("loader") is None
    # One structure of Redis answers a part of the questions.
    executed = {(figure["variant"], figure["operation"]): figure["counts"]["ok"] for figure in summary["result"]["figures"]}
    assert [executed["redis-hash_only", question] for question in QUESTIONS] == [60, *([0] * 14)]
    assert [executed["redis-range_only", question] for question in QUESTIONS] == [0, *([3] * 14)]
    plans = summary["result"]["query_plans"]
    assert plans["mariadb-relational-key_value"]["count_range.r1"]["access"] == "index log_value"
    assert plans["postgresql-relational-none"]["look_up"]["access"] == "scan"
    assert "redis-source" not in plans


@pytest.mark.cluster
def test_the_pipe_feeds_one_node_of_a_cluster_and_what_it_loses_is_counted(cli: Cli, tmp_path: Path, lab_home: Path) -> None:
    out = tmp_path / "pipe"
    arguments = ("--target", "redis_cluster", "--schema", "hash_only", "--operations", "34", "--repetitions", "1", *TINY)
    outcome = cli("study", "run", "log-analytics", *arguments, "--out", out)
    assert outcome.exit_code == 0, outcome.err
    loads = summary_of(out)["result"]["load"]
    own, pipe = loads["redis_cluster-hash_only"], loads["redis_cluster-hash_only-by_pipe"]
    assert own["rows"] == pipe["rows_sent"] == 9765
    assert 0.05 < pipe["rows"] / pipe["rows_sent"] < 0.35, "one of six masters has a sixth of the keys"
    assert f"errors: {pipe['rows_sent'] - pipe['rows']}, replies: {pipe['rows_sent']}" in pipe["loader"]["problems"][0]
    assert own["snapshot"]["total_bytes"] > own["rows"] * 50
    page = (out / "report.html").read_text(encoding="utf-8")
    assert f"lost {pipe['rows_sent'] - pipe['rows']:,} of 9,765 rows" in page
