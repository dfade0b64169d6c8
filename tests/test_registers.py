"""Registers beside a load: what clients wrote and read is put down, checked, and shown beside what is promised."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sensorbench import _engine, lab
from sensorbench.benchmarks.comparison import measure
from sensorbench.errors import UsageError
from sensorbench.results import RunResult, read_comparison
from sensorbench.results.history import read_history
from sensorbench.runner.comparison import ConnectedComparison
from sensorbench.runner.registers import operations_with_registers, schema_with_registers
from sensorbench.runner.variants import Variant
from sensorbench.schemas import load_operations, load_schema
from sensorbench.verification import history
from sensorbench.verification.guarantees import promised
from tests.conftest import Cli
from tests.servers import TOO_LONG_TO_BUILD, LabServers

VIOLATIONS = ["lost_writes", "stale_reads", "non_monotonic_reads", "never_written", "failed_writes_seen"]


# What is loaded into a server of the lab stays there: other tests have the namespace that is usual.
OWN = "namespace=sensorbench_registers"


def experiment(target: str, schema: str, mix: str, **more: str) -> str:
    keys = {"schedule": "{ concurrency = 4 }", "operations": "2000", "warmup": "'100ms'", "repetitions": "2", **more}
    workload = "\n".join(f"{key} = {value}" for key, value in keys.items())
    operations = "registers" if schema == "registers" else "sensors"
    return (
        f'dataset = "beijing-air-quality"\nscale = 0.002\noperations = "{operations}"\n'
        f'[[target]]\nurl = "{target}"\nschema = "{schema}"\n[workload]\nmix = {mix}\n{workload}\n'
    )


def conducted(cli: Cli, folder: Path, text: str) -> dict[str, Any]:
    file = folder / "experiment.toml"
    file.write_text(text, encoding="utf-8")
    ended = cli("run", file, "--out", folder / "out", "--no-open", "--replace")
    assert ended.exit_code == 0, ended.err
    return json.loads((folder / "out" / "summary.json").read_text(encoding="utf-8"))


def runs_of(folder: Path) -> list[RunResult]:
    return [run for runs in read_comparison(folder / "out").runs.values() for run in runs]


def history_of(run: RunResult) -> pa.Table:
    return read_history(run.folder / "history.jsonl")


REGISTERS = "{ write_register = 1, read_register = 1 }"
BESIDE_READS = "{ get_sensor_data = 1, write_register = 1, read_register = 1 }"
BESIDE_WRITES = "{ insert_reading = 1, write_register = 1, read_register = 1 }"


# FerretDB over SQLite reads all registers for one, which takes a minute; documents are read and written over PostgreSQL. VictoriaMetrics shows what
# was written seconds later: tests/test_time_series.py.
WITH_REGISTERS = [name for name in lab.LAB_DATABASES if name not in {"ferretdb", "victoriametrics", *TOO_LONG_TO_BUILD}]
# What a server with its own settings does not promise: with an asynchronous log acknowledged writes may be lost, and what was read before with them.
NOT_PROMISED = {"iotdb": {"lost_writes", "stale_reads", "non_monotonic_reads"}}
# What a client of a server must ask for to read what it wrote.
READS_ITS_WRITES = {"questdb": "&wait=applied"}


@pytest.mark.parametrize("name", ["sqlite", "duckdb", *WITH_REGISTERS])
def test_a_healthy_database_has_no_findings(cli: Cli, lab_servers: LabServers, tmp_path: Path, name: str) -> None:
    target = name
    if (instance := name.replace("+", "-")) in lab_servers:
        lab_servers.start(instance)
        target = f"lab:{instance}?{OWN}{READS_ITS_WRITES.get(name, '')}"
    summary = conducted(cli, tmp_path, experiment(target, "registers", REGISTERS))
    (guaranteed,) = summary["result"]["guarantees"].values()
    assert {finding["count"] for finding in guaranteed["seen"].values()} == {0}, guaranteed["seen"]
    assert guaranteed["broken"] == []
    made = {finding for finding in VIOLATIONS if guaranteed["promised"][finding]["is_made"]}
    assert made == set(VIOLATIONS) - NOT_PROMISED.get(name, set())
    assert guaranteed["seen"]["lost_writes"]["of"] > 700, "registers of both runs were read at the end"
    assert "What was guaranteed" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("mix", "other"), [(BESIDE_READS, "get_sensor_data"), (BESIDE_WRITES, "insert_reading")])
def test_every_operation_is_in_the_history_and_the_load_is_checked_as_ever(
    cli: Cli, tmp_path: Path, mix: str, other: str
) -> None:
    summary = conducted(cli, tmp_path, experiment("sqlite", "natural", mix))
    assert summary["answers_equal"] is True
    assert list(summary["result"]["operations"]) == [other, "write_register", "read_register"]
    assert bool(summary["result"]["contents"]) == (other == "insert_reading")
    keys: list[int] = []
    runs = runs_of(tmp_path)
    assert len(runs) == 2
    for run in runs:
        history, totals = history_of(run), run.manifest.totals
        assert totals is not None
        counts = {
            name: sum(phase.operations[name]["counts"]["ok"] for phase in totals.phases)
            for name in summary["result"]["operations"]
        }
        # And those of the warm-up, as many as it had time for.
        assert sum(counts.values()) > 2000
        is_write = pc.equal(history["f"].cast(pa.string()), "write")
        written = set(history.filter(is_write)["key"].to_pylist())
        assert pc.sum(is_write).as_py() == counts["write_register"]
        # At the end each register is read three times.
        assert pc.sum(pc.invert(is_write)).as_py() == counts["read_register"] + 3 * len(written)
        keys += written
    assert len(keys) == len(set(keys)), "each run has registers of its own"


def test_what_is_lost_and_rolled_back_behind_the_clients_back_is_found(
    cli: Cli, lab_servers: LabServers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab_servers.start("postgresql")
    done: dict[str, Any] = {}

    def meddle(so_far: pa.Table, run: _engine.Run, connected: ConnectedComparison, variant: Variant) -> pa.Table:
        writes = so_far.filter(pc.equal(so_far["f"].cast(pa.string()), "write")).group_by("key").aggregate([("value", "list")])
        deleted, rolled_back = (row for row in writes.to_pylist()[100:102])
        done.update(deleted=deleted["key"], rolled_back=rolled_back["key"], values=rolled_back["value_list"])
        other_client = variant.engine_target()
        change(other_client, f"DELETE FROM registers WHERE key = {deleted['key']}")
        change(other_client, f"UPDATE registers SET value = {rolled_back['value_list'][0]} WHERE key = {rolled_back['key']}")
        done["time_ns"] = run.now_ns()
        return original(so_far, run, connected, variant)

    original = history.with_final_reads
    monkeypatch.setattr(history, "with_final_reads", meddle)
    summary = conducted(cli, tmp_path, experiment(f"lab:postgresql?{OWN}", "registers", REGISTERS, repetitions="1"))
    (guaranteed,) = summary["result"]["guarantees"].values()
    seen = guaranteed["seen"]
    assert seen["lost_writes"]["count"] == 2
    assert seen["stale_reads"]["count"] == 6, "each of both was read three times at the end"
    assert seen["never_written"]["count"] == 0
    assert guaranteed["broken"] == ["lost_writes", "stale_reads"]

    lost = {example["key"]: example for example in seen["lost_writes"]["examples"]}
    assert set(lost) == {done["deleted"], done["rolled_back"]}
    assert lost[done["deleted"]]["last_stale_read"]["value"] is None
    assert lost[done["rolled_back"]]["last_stale_read"]["value"] == done["values"][0]
    assert lost[done["rolled_back"]]["write"]["value"] == done["values"][-1]
    for example in lost.values():
        assert example["write"]["outcome"] == "ok"
        assert example["time_ns"] == example["write"]["ended_ns"] < done["time_ns"] < example["first_stale_read"]["invoked_ns"]
        assert example["stale_reads_at_end"] == 3
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert f"key {done['deleted']}: process" in page
    assert "promised not to occur: broken" in page


def change(target: _engine.Target, statement: str) -> None:
    """Says something to a database outside of any run."""
    operation = {"name": "meddle", "parameters": [], "columns": [], "order": [], "statement": {"statement": statement}}
    target.execute_once(json.dumps(operation), pa.table({}).to_reader())


def test_registers_need_their_records_their_answers_and_a_schema(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "experiment.toml"
    for text, said in [
        (experiment("sqlite", "natural", REGISTERS, log='"none"'), "set log and answers to all"),
        (experiment("sqlite", "natural", REGISTERS, answers='"none"'), "set log and answers to all"),
        (experiment("fjall", "by_sensor", REGISTERS), "no schema of registers is shipped for fjall"),
    ]:
        file.write_text(text, encoding="utf-8")
        ended = cli("run", file, "--out", tmp_path / "out", "--no-open")
        assert ended.exit_code == 2
        assert said in ended.err


def test_operations_of_a_users_own_need_the_same_parameters(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        '[operation.write_register]\ntitle = "w"\nquestion = "w"\nparameters = { key = "text" }\nwrites = "registers"\n',
        encoding="utf-8",
    )
    text = experiment("sqlite", "natural", "{ write_register = 1 }").replace('"sensors"', '"own.toml"')
    text = text.replace('"natural"', '"natural.toml"')
    schema = load_schema("natural", operations="sensors", database="sqlite").path
    (tmp_path / "natural.toml").write_text(schema.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "experiment.toml").write_text(text, encoding="utf-8")
    ended = cli("run", tmp_path / "experiment.toml", "--out", tmp_path / "out", "--no-open")
    assert ended.exit_code == 2
    assert "operation.write_register.parameters: expected key and value, integers" in ended.err


def test_a_run_that_was_broken_off_has_a_history_and_is_no_part_of_the_next(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "experiment.toml").write_text(
        experiment("sqlite", "registers", REGISTERS, schedule="{ rate = 400 }", repetitions="1"), encoding="utf-8"
    )

    # Of five, so that a busy machine comes by in time.
    def interrupt_after_two_seconds(now: dict[str, Any], plan: dict[str, Any]) -> tuple[float, str]:
        if now["now_ns"] > 2e9:
            raise KeyboardInterrupt
        return 0.0, ""

    command = ("run", tmp_path / "experiment.toml", "--out", tmp_path / "out", "--no-open")
    with monkeypatch.context() as patch:
        patch.setattr(measure, "_progress", interrupt_after_two_seconds)
        assert cli(*command).exit_code == 130
    (broken_off,) = runs_of(tmp_path)
    operations = broken_off.table("operations")
    assert operations is not None
    history = history_of(broken_off)
    assert 500 < len(history) == len(operations) < 2100
    assert cli(*command, "--resume").exit_code == 0
    (run,) = runs_of(tmp_path)
    assert not set(history["key"].to_pylist()) & set(history_of(run)["key"].to_pylist())
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    (guaranteed,) = summary["result"]["guarantees"].values()
    assert {finding["count"] for finding in guaranteed["seen"].values()} == {0}


def test_names_that_registers_have_too_are_refused() -> None:
    operations = operations_with_registers(load_operations("sensors"), {"write_register"})
    schema = schema_with_registers(load_schema("natural", operations="sensors", database="sqlite"))
    assert operations_with_registers(operations, {"write_register"}) is operations
    with pytest.raises(UsageError, match=r"natural\.toml, operation\.write_register: .*rename it"):
        schema_with_registers(schema)
    clashing = operations.model_copy(update={"operation": load_operations("sensors").operation})
    with pytest.raises(UsageError, match=r"parameter_source\.register_keys.*rename it"):
        operations_with_registers(clashing, {"write_register"})


# What every promise of members needs.
CONCERNS = {
    "write concern": '{ "w": "majority", "j": true }',
    "read concern": '{ "level": "linearizable" }',
    "read preference": "primary",
}


@pytest.mark.parametrize(
    ("kind", "settings", "no_stale_reads"),
    [
        ("quorums", {"replication": "3", "consistency": "quorum"}, True),
        ("quorums", {"replication": "3", "consistency": "one"}, False),
        ("quorums", {"replication": "1", "consistency": "local_quorum"}, True),
        ("one_thread", {"masters": "3", "replicas": "0"}, True),
        ("one_thread", {"masters": "3", "replicas": "3"}, False),
        ("one_thread", {}, True),
        ("read_committed", {}, True),
        ("one_server_a_row", {}, True),
        ("shown_later", {}, False),
        ("one_writer", {}, True),
        ("members", {"topology": "one server", **CONCERNS, "read concern": "the server's own"}, True),
        ("members", {"topology": "replica set rs0 of 3 members", **CONCERNS}, True),
        ("members", {"topology": "sharded cluster", **CONCERNS, "write concern": '{ "w": 1 }'}, False),
        ("members", {"topology": "sharded cluster", **CONCERNS, "read concern": '{ "level": "majority" }'}, False),
        ("members", {"topology": "replica set rs0 of 3 members", **CONCERNS, "read preference": "nearest"}, False),
    ],
)
def test_what_is_promised_follows_from_what_the_database_says_of_itself(
    kind: str, settings: dict[str, str], no_stale_reads: bool
) -> None:
    promises = promised(kind, settings)
    assert promises is not None
    assert promises["stale_reads"].is_made == no_stale_reads


def test_nothing_known_is_promised_where_nothing_is_known() -> None:
    assert promised(None, {}) is None
    assert promised("quorums", {}) is None
    assert promised("members", {}) is None


@pytest.mark.parametrize(
    ("study", "dataset", "asked"), [("log-analytics", "azure-vm-noise", 34), ("iot", "beijing-air-quality", 200)]
)
def test_a_study_asks_its_own_questions_as_often_beside_registers(
    cli: Cli, tmp_path: Path, study: str, dataset: str, asked: int
) -> None:
    data = ("--dataset", dataset, "--scale", "0.02", "--repetitions", "1", "--registers", "3")
    ended = cli("study", "run", study, "--target", "sqlite", *data, "--out", tmp_path / "out", "--no-open")
    assert ended.exit_code == 0, ended.err
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary["answers_equal"] is True
    first = summary["variants"][0]["id"]
    counts = {
        figure["operation"]: figure["counts"]["ok"] for figure in summary["result"]["figures"] if figure["variant"] == first
    }
    of_registers = counts.pop("write_register") + counts.pop("read_register")
    assert of_registers > 0
    assert sum(counts.values()) == pytest.approx(asked, rel=0 if study == "log-analytics" else 0.2)
    assert all(counts.values())
    assert summary["result"]["guarantees"].keys() == {variant["id"] for variant in summary["variants"]}
    for of_variant in summary["result"]["guarantees"].values():
        assert [of_variant["seen"][name]["count"] for name in VIOLATIONS] == [0] * len(VIOLATIONS)
