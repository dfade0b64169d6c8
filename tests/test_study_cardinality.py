"""Cardinality: levels follow one another until a database breaks, which is quoted and leaves the others; a budget ends levels, and changes none."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest

from sensorbench import lab
from sensorbench.app import levels as level_app
from sensorbench.benchmarks.comparison import measure
from sensorbench.errors import FailedError
from sensorbench.progress import ProgressReporter
from sensorbench.results import read_comparison
from sensorbench.results.series import read_series
from sensorbench.studies import STUDIES, StudyOptions
from sensorbench.studies.levels import Break, breaks_of, levels_before
from sensorbench.studies.study import Study
from tests.conftest import Cli, Outcome, made_once

NAME = "cardinality"
SAID = "partial write: max-values-per-tag limit exceeded (100/99)"
SMALL = ("--repetitions", "1", "--operations", "20", "--warmup", "0", "--no-open")
BROKE, TOTAL, CHURN = "Where databases broke", "As many readings in all", "As many readings in all, with churn"


def few_levels(series_and_epochs: Mapping[int, int], family: str = "total") -> Study:
    """The study with levels of this many series, each with this many readings of each."""
    study = STUDIES[NAME]
    shipped = study.file.parts[f"{family}_1000"]
    drawn = study.file.parameter_sources["hosts_1"]
    names = [f"{family}_{series}" for series in series_and_epochs]
    parts = {
        name: shipped.model_copy(
            update={
                "title": f"{series} series",
                "datasets": [f"tsbs-cpu-single:hosts={series},duration={epochs * 10}s"],
                "follows": before,
                "parameter_sources": {
                    "hosts_1": drawn.model_copy(update={"datasets": [f"tsbs-cpu-single:hosts={series},duration={epochs * 10}s"]})
                },
            }
        )
        for name, before, (series, epochs) in zip(names, [None, *names[:-1]], series_and_epochs.items(), strict=True)
    }
    return replace(study, file=study.file.model_copy(update={"parts": parts}))


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The study with 10 and 100 series, and a thousand readings in all."""
    monkeypatch.setitem(STUDIES, NAME, few_levels({10: 100, 100: 10}))


def run(cli: Cli, out: Path, *words: object) -> Outcome:
    return cli("study", "run", NAME, "--target", "sqlite", "--target", "duckdb", "--scale", "1", *SMALL, *words, "--out", out)


def sections_of(out: Path) -> dict[str, dict[str, Any]]:
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    return {section["title"]: section for section in summary["result"]["sections"]}


def refusing(monkeypatch: pytest.MonkeyPatch, variant_id: str, series: int, message: str) -> list[tuple[str, int]]:
    """Has the database of a variant refuse data of this many series and more; what was loaded is in the list."""
    loaded: list[tuple[str, int]] = []
    real = measure.load_variant

    def load(variant: Any, target: Any, schema: Any, tables: Any, *others: Any, **more: Any) -> Any:
        hosts = next(table.rows for table in tables if table.table == "hosts")
        loaded.append((variant.id, hosts))
        if variant.id == variant_id and hosts >= series:
            raise FailedError(message)
        return real(variant, target, schema, tables, *others, **more)

    monkeypatch.setattr(measure, "load_variant", load)
    return loaded


@pytest.fixture
def broken(cli: Cli, tmp_path: Path, tiny: None, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, list[tuple[str, int]]]:
    """Results of two databases, of which one refuses a hundred series, and what was loaded."""
    loaded = refusing(monkeypatch, "sqlite-wide-cpu-single", 100, SAID)
    out = tmp_path / "out"
    ended = run(cli, out)
    assert ended.exit_code == 0, ended.err
    return out, loaded


def test_figures_are_drawn_over_the_number_of_series_and_a_variant_that_breaks_is_quoted(
    broken: tuple[Path, list[tuple[str, int]]], cli: Cli
) -> None:
    out, loaded = broken
    manifest = read_series(out)
    assert (manifest.status, list(manifest.plan.parts), manifest.plan.left_out) == ("complete", ["total_10", "total_100"], {})
    assert loaded == [
        ("sqlite-wide-cpu-single", 10), ("duckdb-wide-cpu-single", 10), ("sqlite-wide-cpu-single", 100),
        ("duckdb-wide-cpu-single", 100),
    ]  # fmt: skip
    sections = sections_of(out)
    assert list(sections) == [BROKE, TOTAL]
    broke = {row[0]: row[2:] for row in sections[BROKE]["rows"]}
    assert broke == {
        "sqlite-wide-cpu-single": [10, "broke at 100 series", "loading", SAID],
        "duckdb-wide-cpu-single": [100, "did not break", None, None],
    }
    assert [(row[0], *row[1:4]) for row in sections[TOTAL]["rows"]] == [
        (f"{database}-wide-cpu-single", series, series, 1000)
        for database, series in (("sqlite", 10), ("duckdb", 10), ("duckdb", 100))
    ]
    for _, _, _, readings, loading, settled, peak, end, size, per_reading, of_one, of_all in sections[TOTAL]["rows"]:
        assert loading >= settled > 0.0
        # Of this process, which has the databases.
        assert peak >= end > 1e7
        assert per_reading == pytest.approx(size / readings)
        assert of_one > 0.0
        assert of_all > 0.0
    memory, loads, latency = sections[TOTAL]["curves"]
    for curves, figures in (
        (memory, {"at its peak", "when loaded"}),
        (loads, {"loading", "until settled"}),
        (latency, {"of one series", "of all series"}),
    ):
        assert {point["figure"] for point in curves["points"]} == figures
        assert {(point["line"], point["x"]) for point in curves["points"]} == {
            ("sqlite/wide/cpu-single", 10.0), ("duckdb/wide/cpu-single", 10.0), ("duckdb/wide/cpu-single", 100.0),
        }  # fmt: skip
    page = (out / "report.html").read_text(encoding="utf-8")
    assert f"Memory, {TOTAL.lower()}" in page
    assert SAID in page
    of_level = read_comparison(out / "total_10").manifest.plan
    assert of_level.one_at_a_time is not None
    assert of_level.max_load_s == 600.0
    assert not (out / "total_100" / "data").exists()
    # Levels that are complete are not measured again, and what broke is not tried again.
    resumed = run(cli, out, "--resume")
    assert resumed.exit_code == 0, resumed.err
    assert resumed.err.count("measured before, not repeated") == 2
    assert len(loaded) == 4
    assert [row[2:] for row in sections_of(out)[BROKE]["rows"]] == list(broke.values())


def test_levels_end_where_no_variant_is_left(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STUDIES, NAME, few_levels({10: 1, 100: 1, 1000: 1}))
    refusing(monkeypatch, "duckdb-wide-cpu-single", 10, "it does not want to")
    out = tmp_path / "out"
    ended = cli("study", "run", NAME, "--target", "duckdb", "--scale", "1", *SMALL, "--out", out)
    assert ended.exit_code == 0, ended.err
    manifest = read_series(out)
    assert manifest.status == "complete"
    assert manifest.plan.left_out == {
        "total_100": "none of the variants is left: duckdb-wide-cpu-single broke at total_10",
        "total_1000": "total_100, which it follows, was left out",
    }
    assert [row[2:] for row in sections_of(out)[BROKE]["rows"]] == [
        [None, "broke at 10 series", "loading", "it does not want to"]
    ]
    assert "total_100</" in (out / "report.html").read_text(encoding="utf-8")


def test_a_load_that_takes_too_long_breaks(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STUDIES, NAME, few_levels({10: 1, 100: 1}, "each"))
    out = tmp_path / "out"
    ended = cli(
        "study", "run", NAME, "--target", "sqlite", "--scale", "1", "--max-load-time", "0.001ms", *SMALL, "--out", out
    )  # fmt: skip
    assert ended.exit_code == 0, ended.err
    ((_, _, held, then, step, message),) = sections_of(out)[BROKE]["rows"]
    assert (held, then, step) == (None, "broke at 10 series", "loading")
    assert re.search(r"its time limit of 1e-06 s with \d+ of \d+ rows in; give more time with --max-load-time", message)


def test_an_operation_that_never_succeeds_breaks_a_level() -> None:
    def figure(variant: str, operation: str, ok: int) -> SimpleNamespace:
        return SimpleNamespace(variant=variant, operation=operation, runs=1, counts=SimpleNamespace(ok=ok, ended=20))

    refused = SimpleNamespace(operation="all", first_message="too many series")
    result = SimpleNamespace(
        figures=[figure("a", "one", 20), figure("a", "all", 0), figure("b", "one", 1), figure("c", "all", 0)],
        client_health={"a": SimpleNamespace(error_kinds=[refused]), "c": SimpleNamespace(error_kinds=[])},
        workload={"timeout": "60s"},
        failures={"d": SimpleNamespace(step="loading", cause="it ended")},
    )
    assert breaks_of(cast("Any", SimpleNamespace(result=result))) == {
        "a": Break("answering all", "too many series"),
        "c": Break("answering all", "no answer within 60s"),
        "d": Break("loading", "it ended"),
    }


def test_a_budget_begins_only_levels_that_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = few_levels({10: 1, 100: 1, 1000: 1})
    monkeypatch.setattr(level_app, "has_results", lambda folder: True)
    monkeypatch.setattr(level_app.time, "monotonic", lambda: 30.0)

    def why_not(budget_s: float | None, took_s: dict[str, float], name: str) -> str:
        names = list(study.file.parts)
        going = level_app._Levels(
            study, StudyOptions(), tmp_path, ProgressReporter(quiet=True), lambda *_: None, names, budget_s, replace=False,
            drop_after=False, took_s=took_s, begun_s=0.0,
        )  # fmt: skip
        return going._why_not(list(levels_before(study, name, names)))

    # Twice as long as the one before, which took 20 s.
    took_s = {"total_10": 10.0, "total_100": 20.0}
    assert why_not(69.0, took_s, "total_1000") == "it would take about 40 s, and 39 s of the budget are left"
    assert why_not(70.0, took_s, "total_1000") == ""
    assert why_not(None, took_s, "total_1000") == ""
    assert why_not(39.0, {"total_10": 10.0}, "total_100") == "it would take about 10 s, and 9 s of the budget are left"
    assert why_not(1.0, {}, "total_10") == ""
    assert why_not(30.0, {"churn_10": 1.0}, "total_10") == "the budget is used up"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--dataset", "cu-bems"), "--dataset cu-bems: the levels of study cardinality are its datasets"),
        (("--part", "total_2"), "--part total_2: study cardinality has the parts total_1000"),
        (("--target", "postgresql://127.0.0.1:1/data"), "give --drop-after"),
        (("--dry-run",), "name one: --part total_1000"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_written(
    cli: Cli, tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    ended = cli("study", "run", NAME, *words, "--scale", "0.001", "--out", tmp_path / "out")
    assert ended.exit_code == 2, ended.err
    assert says in ended.err
    assert not (tmp_path / "out").exists()


def test_one_level_has_an_estimate(cli: Cli, tmp_path: Path) -> None:
    words = ("--part", "total_1000", "--target", "duckdb", "--dry-run", "--no-pilot", "--json")
    ended = cli("study", "run", NAME, *words, "--out", tmp_path / "out")
    assert ended.exit_code == 0, ended.err
    assert [part["name"] for part in json.loads(ended.out)["parts"]] == ["total_1000"]


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the study as it is, on a thousandth of its readings."""
    levels = [word for name in ("total_10000", "total_100000", "churn_1000") for word in ("--part", name)]
    return made_once(tmp_path_factory, NAME, "study", "run", NAME, "--target", "duckdb", *levels, "--scale", "0.001", *SMALL)


def test_the_study_as_it_is_leaves_out_levels_with_less_than_a_reading_of_each_series(shipped: Path) -> None:
    (left_out,) = read_series(shipped).plan.left_out.items()
    assert left_out[0] == "total_100000"
    assert "leaves none of 100 intervals" in left_out[1]
    sections = sections_of(shipped)
    assert [(row[1], row[2], row[3]) for row in sections[TOTAL]["rows"]] == [(10_000, 10_000, 10_000)]
    # In 90 s, of which 1,000 s are a period, a tenth of a tenth is replaced.
    ((series, seen, readings),) = [(row[1], row[2], row[3]) for row in sections[CHURN]["rows"]]
    assert (series, readings) == (1000, 10_000)
    assert seen == pytest.approx(1009, abs=1)
    assert json.loads((shipped / "summary.json").read_text(encoding="utf-8"))["answers_equal"] is True


def test_memory_is_that_of_the_server_and_its_end_is_quoted(
    cli: Cli, tmp_path: Path, lab_home: Path, tiny: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = measure.load_variant
    loaded: list[str] = []

    def load(variant: Any, target: Any, *others: Any, **more: Any) -> Any:
        if loaded:
            instance = lab.instance_at(target.url)
            assert instance is not None
            for watched in lab.server_processes(instance).values():
                process = psutil.Process(watched.process.pid)
                process.kill()
                process.wait()
        loaded.append(variant.id)
        return real(variant, target, *others, **more)

    monkeypatch.setattr(measure, "load_variant", load)
    before = {instance.name for instance in lab.read_instances()}
    out = tmp_path / "out"
    ended = cli("study", "run", NAME, "--target", "influxdb", "--scale", "1", *SMALL, "--out", out)
    assert ended.exit_code == 0, ended.err
    memory = read_comparison(out / "total_10").loads["influxdb-wide-cpu-single"].memory
    assert memory is not None
    assert memory["of"] == "server"
    assert memory["peak_bytes"] >= memory["end_bytes"] > 5e6
    ((_, _, held, then, step, message),) = sections_of(out)[BROKE]["rows"]
    assert (held, then, step) == (10, "broke at 100 series", "loading")
    assert "; the server has ended; its log says last: " in message
    assert {instance.name for instance in lab.read_instances()} == before
