"""An experiment is fitted to the first half of a trace, compared with the second, and runs as any other experiment."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from sensorbench.errors import UsageError
from sensorbench.results.traffic_fit import TrafficFit
from sensorbench.runner import load_experiment
from sensorbench.traffic import STATEMENTS, import_logs
from sensorbench.traffic.fit import FitOptions, fit_trace, skew
from sensorbench.traffic.fit.halves import halves_of
from sensorbench.traffic.fit.samplers import Parameter, SourceFitter, groups_of
from sensorbench.traffic.fit.schedule import Arrivals, dispersion, drawn_arrivals, expected_counts, fit_schedule
from sensorbench.traffic.fit.statements import reference_statement, schema_statement
from sensorbench.traffic.trace import Template
from tests.conftest import Cli, server_url
from tests.servers import LabServers

# What a PostgreSQL 17.6 of the lab wrote of psql and of pgbench in each of its protocols.
PGBENCH_LOG = Path(__file__).parent / "fixtures" / "traffic" / "postgresql.csv"

# A half is longer than 32 bits have microseconds.
ITEMS, CUSTOMERS, HALF_S, RATE = 2000, 300, 2400.0, 5.0
TEMPLATES = [
    ("SELECT price FROM shop.items WHERE id = $1::integer", "read", ["shop.items"]),
    ("SELECT count(*) FROM shop.items WHERE id >= $1::integer AND id < $2::integer", "read", ["shop.items"]),
    ("UPDATE shop.items SET price = $1::numeric WHERE id = $2::integer", "write", ["shop.items"]),
    ("BEGIN", "begin", []),
    ("SELECT name FROM shop.customers WHERE code = $1", "read", ["shop.customers"]),
]
BY_ID, IN_RANGE, UPDATE, BEGIN, BY_CODE = range(len(TEMPLATES))


@dataclass(frozen=True)
class Traffic:
    """What one half of a trace is made of: shares of the templates, skew of the items, and the rate in each second."""

    shares: tuple[float, ...] = (0.45, 0.2, 0.1, 0.05, 0.2)
    exponent: float = 0.9
    rates: Callable[[NDArray[np.float64]], NDArray[np.float64]] = lambda seconds: np.full(len(seconds), RATE)


def zipf(random: np.random.Generator, exponent: float, values: int, draws: int) -> NDArray[np.int64]:
    """Ranks from 0, of a Zipf distribution."""
    return np.searchsorted(skew.zipf_cumulative(exponent, values), random.random(draws)).astype(np.int64)


def parameters_of(random: np.random.Generator, templates: NDArray[np.int64], exponent: float) -> list[str]:
    draws = len(templates)
    # Which items are popular has nothing to do with their numbers.
    popular = np.random.default_rng(7).permutation(ITEMS) + 1
    hot, even = popular[zipf(random, exponent, ITEMS, draws)], random.integers(1, ITEMS - 9, draws)
    codes, prices = zipf(random, 0.0, CUSTOMERS, draws), random.integers(100, 10_000, draws)
    made = {
        BY_ID: lambda k: [int(hot[k])],
        IN_RANGE: lambda k: [int(even[k]), int(even[k]) + 10],
        UPDATE: lambda k: [float(prices[k]) / 100, int(hot[k])],
        BEGIN: lambda k: [],
        BY_CODE: lambda k: [f"c{codes[k]:04d}"],
    }
    return [json.dumps(made[int(template)](k)) for k, template in enumerate(templates)]


def write_trace(folder: Path, first: Traffic, second: Traffic, seed: int = 1) -> Path:
    """A trace whose halves are made as they say, of independent arrivals."""
    random = np.random.default_rng(seed)
    times, templates, parameters = [], [], []
    for start_s, traffic in ((0.0, first), (HALF_S, second)):
        seconds = np.arange(HALF_S)
        counts = random.poisson(traffic.rates(seconds))
        at = np.sort(np.repeat(seconds, counts) + random.random(int(counts.sum())))
        kinds = random.choice(len(TEMPLATES), len(at), p=traffic.shares)
        times.append(at + start_s)
        templates.append(kinds)
        parameters += parameters_of(random, kinds, traffic.exponent)
    at_us = (np.concatenate(times) * 1e6).astype(np.int64)
    # The halves meet in the middle between the first and the last statement.
    at_us[0], at_us[-1] = 0, round(2 * HALF_S * 1e6)
    numbers = np.arange(len(at_us))
    table = pa.table(
        {
            "at": pa.array(at_us + 1_700_000_000_000_000, pa.timestamp("us", tz="UTC")),
            "session": (numbers % 8).astype(np.int32),
            "sequence": numbers // 8,
            "transaction": pa.nulls(len(numbers), pa.int64()),
            "template": np.concatenate(templates).astype(np.int32),
            "parameters": pa.array(parameters, pa.large_string()),
            "duration": np.full(len(numbers), 0.001),
            "rows": pa.nulls(len(numbers), pa.int64()),
            "error": pa.nulls(len(numbers), pa.string()),
        },
        schema=STATEMENTS,
    )
    folder.mkdir(parents=True)
    pq.write_table(table, folder / "statements.parquet")
    described = [
        {"number": number, "statement": statement, "kind": kind, "tables": tables}
        for number, (statement, kind, tables) in enumerate(TEMPLATES)
    ]
    (folder / "trace.json").write_text(json.dumps({"database": "postgresql", "templates": described}), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    with duckdb.connect() as workbench:
        items = f"SELECT range AS id, range * 0.5::DOUBLE AS price FROM range(1, {ITEMS + 1})"
        workbench.execute(f"COPY ({items}) TO '{folder}/items.parquet'")
        customers = f"SELECT format('c{{:04d}}', range) AS code, 'name ' || range AS name FROM range({CUSTOMERS})"
        workbench.execute(f"COPY ({customers}) TO '{folder}/customers.csv' (HEADER)")
    return folder


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_trace(tmp_path_factory.mktemp("fit") / "trace", Traffic(), Traffic())


@pytest.fixture(scope="module")
def experiment(trace: Path, tables: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TrafficFit]:
    """An experiment that was fitted for the recorded database and for another one."""
    out = tmp_path_factory.mktemp("fitted") / "experiment"
    return out, fit_trace(trace, out, FitOptions(data=tables, targets=("postgresql", "sqlite")))


def verdicts(fit: TrafficFit) -> dict[str, str]:
    return {check.name: check.verdict for check in fit.checks}


def test_what_is_fitted_to_one_half_holds_in_the_other(experiment: tuple[Path, TrafficFit]) -> None:
    _, fit = experiment
    assert verdicts(fit) == dict.fromkeys(("mix", "skew", "burstiness"), "holds"), [check.why for check in fit.checks]
    mix = {operation.name: operation.share for operation in fit.operations}
    assert mix == pytest.approx(
        {"select_items": 0.45, "select_items_2": 0.2, "update_items": 0.1, "select_customers": 0.2}, abs=0.02
    )
    (left_out,) = fit.left_out
    assert left_out.share == pytest.approx(0.05, abs=0.01)
    assert "BEGIN" in left_out.what
    assert fit.schedule.arrival == "poisson"
    assert fit.schedule.concurrency == 8
    assert fit.schedule.operations / fit.schedule.length_s == pytest.approx(RATE * 0.95, rel=0.05)


def test_samplers_are_those_that_the_values_were_drawn_by(experiment: tuple[Path, TrafficFit]) -> None:
    _, fit = experiment
    sources = {operation.name: operation.sources for operation in fit.operations}
    (by_id,) = sources["select_items"]
    assert (by_id.choice, by_id.values, by_id.of) == ("zipfian", ITEMS, "items.id")
    assert by_id.exponent == pytest.approx(0.9, abs=0.05)
    # The end of a range is always this much more than its beginning.
    (in_range,) = sources["select_items_2"]
    assert (in_range.parameters, in_range.choice) == (["p1", "p2"], "uniform")
    (by_code,) = sources["select_customers"]
    assert (by_code.choice, by_code.values, by_code.of) == ("uniform", CUSTOMERS, "customers.code")


@pytest.mark.parametrize(
    ("second", "wrong", "why"),
    [
        (Traffic(shares=(0.2, 0.45, 0.1, 0.05, 0.2)), "mix", "select_items"),
        (Traffic(exponent=0.3), "skew", "select_items (p1)"),
        (Traffic(rates=lambda seconds: np.where(seconds % 10 < 1, 10 * RATE, 0.0)), "burstiness", "index of dispersion"),
    ],
)
def test_a_second_half_that_is_otherwise_is_reported(cli: Cli, tmp_path: Path, second: Traffic, wrong: str, why: str) -> None:
    changed = write_trace(tmp_path / "trace", Traffic(), second)
    ended = cli("traffic", "fit", changed, "--out", tmp_path / "out", "--json", "--no-open")
    assert ended.exit_code == 0, ended.err
    checks = {check["name"]: check for check in ended.json["checks"]}
    assert checks[wrong]["verdict"] == "does not hold"
    failed = [each for each in checks[wrong]["compared"] if each["verdict"] == "does not hold"]
    assert any(why in f"{each['subject']} {each['figure']}" for each in failed)
    assert checks[wrong]["why"].startswith("the largest difference")
    assert {
        name: check["verdict"] for name, check in checks.items() if name != wrong and check["verdict"] == "does not hold"
    } == {}
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "does not hold" in page
    assert why in page


def test_sessions_that_are_not_fitted_are_described(cli: Cli, tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "trace", Traffic(), Traffic())
    file = trace / "statements.parquet"
    table = pq.read_table(file)
    sequence = table["sequence"].to_numpy()
    # Of eight statements of a session, four are in a transaction.
    transaction = pa.array(sequence // 8, mask=sequence % 8 >= 4)
    pq.write_table(table.set_column(3, "transaction", transaction), file)
    fit = fit_trace(trace, tmp_path / "out")
    had = fit.not_fitted
    assert had.sessions == 8
    assert had.in_transactions == pytest.approx(0.5, abs=0.01)
    assert had.transactions == pytest.approx(HALF_S * RATE / 8, rel=0.05)
    # Arrivals are independent, and each session has every eighth of them; each took a millisecond.
    assert had.think_time_s is not None
    assert had.think_time_s.median == pytest.approx(7.67 / RATE - 0.001, rel=0.05)
    ended = cli("traffic", "fit", trace, "--out", tmp_path / "shown", "--no-open")
    assert "not fitted: 8 recorded sessions had" in " ".join(ended.out.split())
    assert "keeps sessions, transactions and think times" in (tmp_path / "shown" / "report.html").read_text(encoding="utf-8")


def test_a_second_half_with_other_statements_is_reported(tmp_path: Path) -> None:
    """What the first half does not have at all counts as left out."""
    first = Traffic(shares=(0.65, 0.2, 0.1, 0.05, 0.0))
    fit = fit_trace(write_trace(tmp_path / "trace", first, Traffic()), tmp_path / "out")
    (mix,) = (check for check in fit.checks if check.name == "mix")
    assert mix.verdict == "does not hold"
    left_out = next(each for each in mix.compared if each.subject == "left out")
    assert (left_out.fitted, left_out.recorded) == pytest.approx((0.05, 0.25), abs=0.02)
    assert fit.files == []


def test_bursts_are_fitted(tmp_path: Path) -> None:
    bursts = Traffic(rates=lambda seconds: np.where(seconds % 10 < 1, 10 * RATE, 0.0))
    fit = fit_trace(write_trace(tmp_path / "trace", bursts, bursts), tmp_path / "out")
    (found,) = (check for check in fit.checks if check.name == "burstiness")
    in_seconds = next(each for each in found.compared if each.subject == "windows of 1 s")
    assert in_seconds.recorded > 30
    assert in_seconds.fitted == pytest.approx(in_seconds.recorded, rel=0.05)
    assert found.verdict == "holds", found.why


def test_what_is_written_is_an_experiment_that_lacks_statements_for_the_other_database(
    cli: Cli, experiment: tuple[Path, TrafficFit]
) -> None:
    out, fit = experiment
    assert sorted(fit.files) == ["data", "experiment.toml", "operations.toml", "postgresql.toml", "sqlite.toml"]
    assert fit.to_write == [f"sqlite: {operation.name}" for operation in fit.operations]
    refused = cli("validate", out / "experiment.toml")
    assert refused.exit_code == 2
    said = " ".join((refused.out + refused.err).split())
    for operation in fit.operations:
        assert f"to_write.{operation.name}: this is still to be written for sqlite" in said
    assert "SELECT price FROM shop.items WHERE id = $1::integer" in said
    assert "sqlite.toml, line" in said
    # With the statements written, it is right, and all answers are equal.
    text = (out / "sqlite.toml").read_text(encoding="utf-8")
    begin = text.index("\n[to_write]")
    end = text.find("\n[", begin + 2)
    end = len(text) if end < 0 else end
    written = """
[operation.select_items]
statement = "SELECT price FROM items WHERE id = :p1"
[operation.select_items_2]
statement = "SELECT count(*) FROM items WHERE id >= :p1 AND id < :p2"
[operation.update_items]
statement = "UPDATE items SET price = :p1 WHERE id = :p2"
[operation.select_customers]
statement = "SELECT name FROM customers WHERE code = :p1"
"""
    (out / "sqlite.toml").write_text(text[:begin] + text[end:] + written, encoding="utf-8")
    assert cli("validate", out / "experiment.toml").exit_code == 0
    both = (out / "experiment.toml").read_text(encoding="utf-8")
    only = both.replace('[[target]]\nurl = "postgresql"\nschema = "postgresql.toml"\n', "")
    assert only != both
    (out / "only.toml").write_text(only, encoding="utf-8")
    ended = cli("validate", out / "only.toml", "--answers")
    assert ended.exit_code == 0, ended.err
    assert "equal answers to 3 reads" in ended.out
    # A statement that was written wrongly is found by its answers.
    (out / "sqlite.toml").write_text(text[:begin] + text[end:] + written.replace("SELECT name", "SELECT code"), encoding="utf-8")
    wrong = cli("validate", out / "only.toml", "--answers")
    assert wrong.exit_code == 2
    assert "did not give equal answers; not ranked: select_customers" in " ".join(wrong.out.split())


def test_traffic_of_pgbench_becomes_an_experiment_that_runs(cli: Cli, lab_servers: LabServers, tmp_path: Path) -> None:
    lab_servers.start("postgresql")
    tables = tmp_path / "tables"
    tables.mkdir()
    queries = {
        "pgbench_accounts": "SELECT range AS aid, 1 AS bid, 0 AS abalance FROM range(1, 100001)",
        "pgbench_tellers": "SELECT range AS tid, 1 AS bid, 0 AS tbalance FROM range(1, 11)",
        "pgbench_branches": "SELECT 1 AS bid, 0 AS bbalance",
        "pgbench_history": "SELECT 1 AS tid, 1 AS bid, 1 AS aid, 1 AS delta, now()::TIMESTAMP AS mtime LIMIT 0",
    }
    with duckdb.connect() as workbench:
        for name, query in queries.items():
            workbench.execute(f"COPY ({query}) TO '{tables}/{name}.parquet'")
    import_logs([PGBENCH_LOG], tmp_path / "trace")
    url, out = server_url("postgresql", "sensorbench_fit"), tmp_path / "experiment"
    ended = cli("traffic", "fit", tmp_path / "trace", "--data", tables, "--target", url, "--out", out, "--no-open")
    assert ended.exit_code == 0, ended.err
    assert "UPDATE pgbench_accounts" in (out / "postgresql.toml").read_text(encoding="utf-8")
    changes = ("--set", "workload.duration=1s", "--set", "workload.schedule={ rate = 200, concurrency = 4 }", "--drop-after")
    run = cli("run", out / "experiment.toml", *changes, "--out", tmp_path / "results", "--no-open", "--json")
    assert run.exit_code == 0, run.err
    summary = json.loads((tmp_path / "results" / "summary.json").read_text(encoding="utf-8"))
    assert summary["status"] == "complete"
    log = pq.read_table(next((tmp_path / "results").rglob("operations.parquet")))
    assert set(log["outcome"].to_pylist()) == {"ok"}
    page = (tmp_path / "results" / "report.html").read_text(encoding="utf-8")
    assert re.search(r"Tables of the traffic trace: [^<:]*rows in 4 tables, for \d+ operations of recorded traffic", page)
    assert summary["result"]["load"][summary["variants"][0]["id"]]["readings"] == 100_011


def test_a_schedule_follows_steps_and_no_chance() -> None:
    random = np.random.default_rng(3)
    steady = fit_schedule(Arrivals(random.poisson(5.0, 3000).astype(float), 0.1, 300.0), 4)
    assert [step.length_s for step in steady.steps] == [pytest.approx(300.0)]
    assert steady.steps[0].rate_per_s == pytest.approx(50.0, rel=0.05)
    stepped = np.repeat([20.0, 200.0, 20.0], 1000) / 10
    schedule = fit_schedule(Arrivals(random.poisson(stepped).astype(float), 0.1, 300.0), 4)
    expected = expected_counts(schedule, 10.0)
    assert expected[:9] == pytest.approx(200, rel=0.25)
    assert expected[11:19] == pytest.approx(2000, rel=0.1)
    even = fit_schedule(Arrivals(np.full(3000, 5.0), 0.1, 300.0), 4)
    assert (even.arrival, len(even.steps)) == ("constant", 1)
    assert dispersion(drawn_arrivals(even, 0.1, 0)) == pytest.approx(0.0, abs=0.1)


def test_a_schedule_is_as_bursty_as_what_it_was_fitted_to() -> None:
    random = np.random.default_rng(5)
    # A rate that changes every second: its variance over its mean is 30, and chance adds 1.
    rates = np.repeat(random.gamma(100 / 30, 30, 300), 10) / 10
    counts = random.poisson(rates).astype(float)
    schedule = fit_schedule(Arrivals(counts, 0.1, 300.0), 4)
    per_second = counts.reshape(-1, 10).sum(axis=1)
    drawn = np.mean([dispersion(drawn_arrivals(schedule, 1.0, seed)) for seed in range(20)])
    assert drawn == pytest.approx(dispersion(per_second), rel=0.05)


def test_scaled_rates_are_so_many_times_as_high(trace: Path, tables: Path, tmp_path: Path) -> None:
    fit = fit_trace(trace, tmp_path / "out", FitOptions(data=tables, scale_rate=3.0))
    schedule = load_experiment(tmp_path / "out" / "experiment.toml", []).workload.schedule
    rates = [schedule.rate] if schedule.rate else [segment.from_ for segment in schedule.segments]
    assert rates == pytest.approx([3 * step.rate_per_s for step in fit.schedule.steps])
    assert schedule.concurrency == 3 * fit.schedule.concurrency


def test_parameters_that_depend_on_one_another_are_drawn_together(trace: Path) -> None:
    """A place and its sensor, of which some pairs are popular; a time until another; and a number of its own."""
    random = np.random.default_rng(11)
    pairs, begins, lengths = zipf(random, 1.0, 60, 8000), random.integers(0, 100, 8000), random.integers(1, 6, 8000)
    columns = {
        "is_second": np.zeros(8000, dtype=bool),
        "us": np.arange(8000),
        "p1": pairs // 10,
        "p2": pa.array([f"s{pair % 10}" for pair in pairs]),
        "p3": begins,
        "p4": begins + lengths,
        "p5": random.integers(0, 50, 8000),
    }
    parameters = [Parameter(f"p{place}", "text" if place == 2 else "integer") for place in range(1, 6)]
    with halves_of(trace) as halves:
        halves.register("made", pa.table(columns))
        groups = groups_of(halves, "made", parameters)
        assert [group.names for group in groups] == [["p1", "p2"], ["p3", "p4"], ["p5"]]
        place, ranges, alone = (SourceFitter(halves, "made", "made", writes=False).fit(group) for group in groups)
        assert place.fitted.choice == "zipfian"
        assert place.fitted.exponent == pytest.approx(1.0, abs=0.1)
        assert alone.fitted.choice == "uniform"
        assert ranges.rows is not None
        found = ranges.rows.column("p4").to_numpy() - ranges.rows.column("p3").to_numpy()
        assert set(found) == {1, 2, 3, 4, 5}
        assert len(np.unique(ranges.rows.column("p3").to_numpy())) == 100


def test_zipf_exponents_come_back() -> None:
    for exponent in (0.3, 0.8, 1.2):
        counts = skew.drawn_counts(skew.zipf_cumulative(exponent, 50_000), 20_000)
        assert skew.zipf_exponent(skew.collisions(counts), 50_000) == pytest.approx(exponent, abs=0.05)


def test_statements_lose_the_namespace_that_they_were_recorded_in() -> None:
    template = Template(
        number=0,
        statement="UPDATE shop.items SET price = $1::numeric, until = CAST($2 AS date) WHERE shop.items.id = $3 AND note = '$9'",
        kind="write",
        tables=["shop.items"],
    )
    types = {"p1": "double", "p2": "text", "p3": "integer"}
    assert schema_statement(template, types, "postgresql") == (
        "UPDATE items SET price = :p1::double precision::numeric, until = CAST(:p2::text AS date) WHERE items.id = :p3 AND note = '$9'"
    )
    assert reference_statement(template) == (
        "UPDATE items SET price = $p1::double, until = CAST($p2 AS date) WHERE items.id = $p3 AND note = '$9'"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (FitOptions(scale_rate=0.0), "--scale-rate 0: expected a factor above 0"),
        (FitOptions(coverage=1.5), "--coverage 1.5: expected a share"),
        (FitOptions(targets=("sqlite",)), "--target: expected --data as well"),
        (FitOptions(data=Path("x"), targets=("postgresql://me:secret@db/x",)), "--target: the URL has a password"),
        (FitOptions(data=Path("nowhere")), "--data nowhere: no such folder"),
    ],
)
def test_what_cannot_be_is_refused(trace: Path, tmp_path: Path, options: FitOptions, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        fit_trace(trace, tmp_path / "out", options)
    assert not (tmp_path / "out").exists()


def test_a_write_to_a_table_without_data_is_left_out(trace: Path, tables: Path, tmp_path: Path) -> None:
    only = tmp_path / "tables"
    only.mkdir()
    (only / "customers.csv").write_bytes((tables / "customers.csv").read_bytes())
    fit = fit_trace(trace, tmp_path / "out", FitOptions(data=only))
    assert [operation.name for operation in fit.operations] == ["select_customers"]
    assert sum("--data has no table items" in part.reason for part in fit.left_out) == 3
    assert fit.share_left_out == pytest.approx(0.8, abs=0.02)
