"""The advisor: how layouts are ranked, how nodes, disk and memory follow, and what its reference holds."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy

from sensorbench.advisor import bytes_of, length_s, rate_per_s, shipped
from sensorbench.advisor.reference import parsed, written
from sensorbench.advisor.relational import relational
from sensorbench.analysis.advice import Level, Needs, Ranking, rank
from sensorbench.analysis.candidate import Candidate, Measured, Run
from sensorbench.analysis.sizing import Assumptions, Capacity, Load, size
from sensorbench.analysis.use_cases import USE_CASES, outcome
from sensorbench.benchmarks.comparison.candidates import Gathered
from sensorbench.benchmarks.comparison.measured_rates import Origin, rate
from sensorbench.errors import UsageError
from sensorbench.results.manifest import PhaseFigures
from sensorbench.studies.sensor_schemas import SENSOR_SCHEMAS


def measured(
    operation: str,
    rates: Sequence[float],
    *,
    readings: int = 1,
    comparison: str = "",
    rows: float | None = None,
    is_mixed: bool = False,
) -> Measured:
    runs = tuple(Run(f"run-{number}", number, "2026-01-01", rate) for number, rate in enumerate(rates, 1))
    return Measured(operation, comparison, runs, readings, rows, is_mixed, {})


def layout(
    name: str,
    *,
    writes: Sequence[float] = (100.0, 100.0, 100.0),
    reads: Sequence[float] = (10.0, 10.0, 10.0),
    readings: int = 1,
    bytes_a_reading: float | None = 10.0,
    database: str = "fjall",
    in_memory: bool = False,
) -> Candidate:
    """A layout with these rates in parts of their own, each of three runs."""
    return Candidate(
        name=name,
        target=database,
        database=database,
        version="1",
        schema=name,
        label="",
        parameters={},
        embedded=False,
        in_memory=in_memory,
        nodes=1,
        copies=1,
        writes=(measured("append", writes, readings=readings, comparison="write"),) if writes else (),
        reads=(measured("range", reads, comparison="read", rows=1_000.0),) if reads else (),
        bytes_a_reading=bytes_a_reading,
        memory_bytes=None,
    )


def needs(writes: Level = "high", reads: Level = "high", *, fresh: bool = False, **more: Any) -> Needs:
    return Needs(writes, reads, fresh, **more)


def names(ranking: Ranking) -> list[str]:
    return [place.candidate.name for place in ranking.places]


# How layouts are ranked.


def test_what_is_high_counts_and_what_is_low_does_not() -> None:
    writer = layout("writer", writes=[900.0] * 3, reads=[1.0] * 3)
    reader = layout("reader", writes=[100.0] * 3, reads=[8.0] * 3)
    small = layout("small", writes=[200.0] * 3, reads=[2.0] * 3, bytes_a_reading=1.0)
    layouts = [small, writer, reader]
    assert names(rank(needs("high", "low"), layouts)) == ["writer", "small", "reader"]
    assert names(rank(needs("low", "high"), layouts)) == ["reader", "small", "writer"]
    assert names(rank(needs("low", "low"), layouts))[0] == "small"
    both = rank(needs("high", "high"), layouts)
    assert names(both) == ["writer", "reader", "small"]
    assert [place.score for place in both.places] == pytest.approx(
        [math.sqrt(1.0 * 1 / 8), math.sqrt(1 / 9 * 1.0), math.sqrt(2 / 9 * 2 / 8)]
    )


def test_a_write_counts_with_all_its_readings() -> None:
    batched, typed = layout("batched", writes=[10.0] * 3, readings=150), layout("typed", writes=[1_000.0] * 3)
    ranking = rank(needs("high", "low"), [typed, batched])
    assert names(ranking) == ["batched", "typed"]
    assert ranking.places[0].over_next is not None
    assert ranking.places[0].over_next.value == pytest.approx(1.5)


def test_where_newest_readings_are_needed_batches_do_not_fit() -> None:
    batched, typed = layout("batched", readings=150), layout("typed")
    unwritten = layout("unwritten", writes=())
    ranking = rank(needs("low", "high", fresh=True), [batched, typed, unwritten])
    assert names(ranking) == ["typed"]
    reasons = dict(ranking.left_out)
    assert "150 readings" in reasons["batched"]
    assert "no write of it was measured" in reasons["unwritten"]


def test_what_is_wanted_must_have_been_measured() -> None:
    only_writes, only_reads, both = layout("only_writes", reads=()), layout("only_reads", writes=()), layout("both")
    layouts = [only_writes, only_reads, both]
    assert set(names(rank(needs("high", "low"), layouts))) == {"only_writes", "both"}
    assert set(names(rank(needs("low", "high"), layouts))) == {"only_reads", "both"}
    ranking = rank(needs("high", "high"), layouts)
    assert names(ranking) == ["both"]
    assert dict(ranking.left_out) == {"only_writes": "range was not measured", "only_reads": "no write of it was measured"}
    assert rank(needs("high", "high"), [only_writes]).places == ()


def test_equal_scores_are_ordered_by_size() -> None:
    assert names(rank(needs(), [layout("large", bytes_a_reading=20.0), layout("small", bytes_a_reading=5.0)])) == [
        "small",
        "large",
    ]


def test_how_sure_a_place_is() -> None:
    def sure(sequence: Sequence[float], other: Sequence[float]) -> str:
        ranking = rank(needs("high", "low"), [layout("one", writes=sequence), layout("other", writes=other)])
        return ranking.places[0].confidence

    assert sure([200.0, 202.0, 198.0], [100.0, 101.0, 99.0]) == "significantly better than the next"
    assert sure([300.0, 100.0, 200.0], [150.0, 250.0, 100.0]) == "not distinguished from the next"
    assert sure([100.2, 100.1, 100.3], [100.0, 100.0, 100.0]) == "level with the next, within 5%"
    assert sure([200.0], [100.0]) == "one run: no interval"
    assert sure([200.0, 200.0], [100.0, 100.0]) == "2 runs: no interval"
    assert rank(needs(), [layout("alone")]).places[0].confidence == "the only one"


def test_drift_that_both_share_cancels_when_their_runs_took_turns() -> None:
    """Runs of one comparison are paired; what was measured in different ones is not."""
    drifting = [100.0, 200.0, 400.0]
    candidate, other = layout("one", writes=[rate * 1.5 for rate in drifting]), layout("other", writes=drifting)
    paired = rank(needs("high", "low"), [candidate, other]).places[0]
    assert (paired.confidence, paired.is_beside_next) == ("significantly better than the next", True)
    elsewhere = replace(other, writes=(replace(other.writes[0], comparison="another"),))
    unpaired = rank(needs("high", "low"), [candidate, elsewhere]).places[0]
    assert (unpaired.confidence, unpaired.is_beside_next) == ("not distinguished from the next", False)


def test_the_interval_of_a_ratio_is_students_over_runs() -> None:
    """Writing and reading were measured one after the other: variances add, degrees of freedom are Welch's."""
    candidate = layout("one", writes=[110.0, 120.0, 130.0], reads=[30.0, 33.0, 31.0])
    other = layout("other", writes=[100.0, 101.0, 99.0], reads=[10.0, 10.5, 10.2])
    ratio = rank(needs(), [candidate, other]).places[0].over_next
    written = 0.5 * np.log(np.array([110 / 100, 120 / 101, 130 / 99]))
    read = 0.5 * np.log(np.array([30 / 10, 33 / 10.5, 31 / 10.2]))
    parts = [of_part.var(ddof=1) / 3 for of_part in (written, read)]
    half = scipy.stats.t.ppf(0.975, sum(parts) ** 2 / sum(part**2 / 2 for part in parts)) * math.sqrt(sum(parts))
    middle = written.mean() + read.mean()
    assert ratio is not None
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx(
        (math.exp(middle), math.exp(middle - half), math.exp(middle + half))
    )


def test_the_question_is_the_one_whose_answers_are_as_long_as_the_range() -> None:
    def with_reads(name: str, short: float, long: float) -> Candidate:
        reads = (measured("hour", [short] * 3, rows=60.0), measured("month", [long] * 3, rows=43_200.0))
        return replace(layout(name), reads=reads)

    layouts = [with_reads("for_short", 100.0, 1.0), with_reads("for_long", 10.0, 5.0)]
    assert names(rank(needs("low", "high", range_readings=100.0), layouts)) == ["for_short", "for_long"]
    assert names(rank(needs("low", "high", range_readings=20_000.0), layouts)) == ["for_long", "for_short"]
    assert names(rank(needs("low", "high", questions=("month",)), layouts)) == ["for_long", "for_short"]
    every = rank(needs("low", "high"), layouts)
    assert every.questions == ("hour", "month")
    assert every.places[0].over_next is not None
    assert every.places[0].over_next.value == pytest.approx(math.sqrt(100.0 * 1.0) / math.sqrt(10.0 * 5.0))


def test_reading_alone_stands_for_reading_before_reading_beside_writes() -> None:
    newest = measured("newest", [5.0] * 3, is_mixed=True, comparison="mixed")
    mixed = replace(layout("mixed"), reads=(newest, *layout("x").reads))
    assert rank(needs(), [mixed, replace(mixed, name="other")]).questions == ("range",)


# Use cases.


def test_the_six_use_cases_are_those_of_the_claims() -> None:
    claims = {claim.id: claim for claim in SENSOR_SCHEMAS.claims if claim.id.startswith("SCH-U")}
    assert [use_case.id for use_case in USE_CASES] == list(claims)
    for use_case in USE_CASES:
        claim = claims[use_case.id]
        assert claim.published == use_case.advice
        assert claim.text.startswith(f"Writes {use_case.needs.writes}, reads {use_case.needs.reads}, ")
        assert ("at once" in claim.text) == use_case.needs.fresh


def test_a_use_case_says_where_the_advised_layout_stands() -> None:
    parameters: dict[str, str | int | float | bool] = {"metadata": "same_table", "width": "5MB"}
    advised = replace(layout("advised", writes=[50.0] * 3), schema="typed", parameters=parameters)
    others = [
        layout("better", writes=[200.0] * 3),
        replace(advised, name="wider", parameters={"metadata": "same_table", "width": "7MB"}),
    ]
    found = outcome(USE_CASES[2], [advised, *others])
    assert found.best is not None
    assert (found.best.candidate.name, found.advised_place) == ("better", 2)
    assert found.over_advised is not None
    assert found.over_advised.value == pytest.approx(4.0)
    assert found.at_target is not None
    assert found.at_target.ranking == found.ranking, "they are at one target"
    elsewhere = outcome(USE_CASES[2], [advised, layout("better", writes=[200.0] * 3, database="sqlite"), others[1]])
    assert elsewhere.advised_place == 2
    assert elsewhere.at_target is not None
    assert (elsewhere.at_target.advised_place, len(elsewhere.at_target.ranking.places)) == (1, 2)
    assert outcome(USE_CASES[2], others).advised is None


# Sizing, against numbers that were computed by hand.

CAPACITY = Capacity(written_per_s=40_000.0, read_per_s=500.0, bytes_a_reading=12.5, memory_bytes=2e9, in_memory=False)
LOAD = Load(readings_per_s=10_000.0, reads_per_s=800.0, retention_s=100 * 86_400.0)


def test_nodes_follow_from_rates_copies_and_headroom() -> None:
    # 10,000 × 3 ÷ (40,000 × 0.5) = 1.5; 800 ÷ (500 × 0.5) = 3.2; 12.5 × 10,000 × 8,640,000 × 3 ÷ 0.5 = 6.48 TB, disks of 10 TB.
    sizing = size(LOAD, CAPACITY, Assumptions(node_disk_bytes=1e13))
    nodes = {step.what: step.value for step in sizing.steps if step.unit == "nodes"}
    assert nodes == {"nodes by writes": 2, "nodes by reads": 4, "nodes by disk": 1, "nodes by copies": 3}
    assert (sizing.nodes, sizing.nodes_by) == (4, "reads")
    assert size(LOAD, replace(CAPACITY, read_per_s=5_000.0), Assumptions(node_disk_bytes=1e13)).nodes_by == "copies"


def test_disk_and_memory_follow_from_bytes_a_reading() -> None:
    sizing = size(LOAD, CAPACITY, Assumptions(copies=2, fill=0.75, hot_s=3_600.0))
    # 12.5 bytes × 10,000/s × 8,640,000 s × 2 ÷ 0.75 = 2.88 TB, which three disks of 1 TB hold.
    assert sizing.disk_bytes == pytest.approx(2.88e12)
    assert {step.what: step.value for step in sizing.steps}["nodes by disk"] == 3
    assert sizing.nodes == 4
    # 2 GB of the server + 12.5 × 10,000 × 3,600 × 2 ÷ 4 nodes = 225 MB.
    assert sizing.memory_a_node_bytes == pytest.approx(2.225e9)


def test_data_that_lie_in_memory_need_it() -> None:
    sizing = size(LOAD, replace(CAPACITY, in_memory=True), Assumptions(copies=1, fill=0.5, node_memory_bytes=64e9))
    # 12.5 × 10,000 × 8,640,000 ÷ 0.5 = 2.16 TB: 33.75 nodes of 64 GB.
    assert (sizing.nodes, sizing.nodes_by, sizing.disk_bytes) == (34, "memory", None)
    assert sizing.memory_a_node_bytes == pytest.approx(2.16e12 / 34)


def test_what_was_measured_on_several_nodes_counts_for_one() -> None:
    # Three nodes with three copies write 40,000 readings/s, each of them 40,000 copies.
    on_three = replace(CAPACITY, nodes=3, copies=3, read_per_s=None)
    assert size(Load(100_000.0), on_three, Assumptions(copies=3)).nodes == math.ceil(100_000 * 3 / (40_000 * 0.5))
    assert size(Load(100_000.0), replace(on_three, copies=1), Assumptions(copies=3)).nodes == math.ceil(
        100_000 * 3 / (40_000 / 3 * 0.5)
    )


def test_disk_of_measured_copies_is_that_of_all_of_them() -> None:
    disk_bytes, three = (size(LOAD, replace(CAPACITY, copies=copies), Assumptions()).disk_bytes for copies in (1, 3))
    assert disk_bytes is not None
    assert three == pytest.approx(disk_bytes / 3)


def test_what_is_not_known_is_told() -> None:
    sizing = size(Load(10.0), replace(CAPACITY, memory_bytes=None), Assumptions())
    assert (sizing.disk_bytes, sizing.memory_a_node_bytes) == (None, None)
    assert [reason.partition(":")[0] for reason in sizing.not_known] == ["nodes by reads", "disk", "memory of a node"]


# A relational database.


def test_a_relational_database_would_do_where_one_node_carries_the_load() -> None:
    layouts = [layout("wide", writes=[90_000.0] * 3), layout("tables", writes=[4_000.0] * 3, database="postgresql")]
    ranking = rank(needs("high", "low"), layouts)

    def found(readings_per_s: float, days: float) -> bool | None:
        return relational(ranking, layouts, Load(readings_per_s, None, days * 86_400.0), Assumptions()).would_do

    assert found(2_000.0, 100.0) is True
    assert found(2_001.0, 100.0) is False, "half of 4,000 readings/s stays free"
    assert found(2_000.0, 1_000.0) is False, "1.7 TB do not fit half a disk of 1 TB"


def test_without_a_load_a_relational_database_would_do_when_it_is_not_surely_worse() -> None:
    def found(rates: Sequence[float], database: str = "sqlite") -> bool | None:
        layouts = [layout("wide", writes=[90.0, 100.0, 110.0]), layout("tables", writes=rates, database=database)]
        return relational(rank(needs("high", "low"), layouts), layouts, None, Assumptions()).would_do

    assert found([60.0, 130.0, 80.0]) is True
    assert found([9.0, 10.0, 11.0]) is False
    assert found([900.0, 1_000.0, 1_100.0]) is True
    assert found([50.0]) is None, "one run has no interval"
    assert found([50.0, 50.0, 50.0], "fjall") is None, "none was measured"


# Rates.


def of_kind(ok: int, seconds_each: float) -> dict[str, Any]:
    times = {"count": ok, "mean": seconds_each * 1e9}
    return {"counts": {"ok": ok, "error": 0, "timeout": 0, "cancelled": 0}, "response_ns": times, "service_ns": times}


def test_the_rate_of_one_kind_is_what_it_would_be_alone() -> None:
    """Two requests in flight for 10 s: half of the time for 10 reads of a second, half for 100 writes of a tenth of one."""
    phase = PhaseFigures(
        name="measure", start_ns=0, end_ns=10 * 10**9, started=110, dropped=0,
        operations={"read": of_kind(10, 1.0), "write": of_kind(100, 0.1), "none": {**of_kind(0, 1.0), "service_ns": None}},
    )  # fmt: skip
    assert rate(phase, "read", is_open=False) == pytest.approx(2.0)
    assert rate(phase, "write", is_open=False) == pytest.approx(20.0)
    assert rate(phase, "none", is_open=False) is None
    alone = phase.model_copy(update={"operations": {"read": phase.operations["read"]}})
    assert rate(alone, "read", is_open=False) == pytest.approx(1.0), "as counted"
    assert rate(phase, "write", is_open=True) == pytest.approx(10.0), "one client that waits for each answer"


# Amounts.


@pytest.mark.parametrize(
    ("text", "seconds"), [("90d", 90 * 86_400.0), ("12h", 43_200.0), ("1.5 h", 5_400.0), ("2w", 1_209_600.0)]
)
def test_lengths(text: str, seconds: float) -> None:
    assert length_s(text, "--retention") == seconds


@pytest.mark.parametrize(("text", "per_s"), [("10", 10.0), ("10/s", 10.0), ("1/min", 1 / 60), ("4/h", 4 / 3_600), ("0.5", 0.5)])
def test_rates(text: str, per_s: float) -> None:
    assert rate_per_s(text, "--rate") == pytest.approx(per_s)


@pytest.mark.parametrize("text", ["", "-1", "0", "1/fortnight", "fast", "1/"])
def test_rates_that_make_no_sense(text: str) -> None:
    with pytest.raises(UsageError, match=r"--rate .*: expected a rate per second"):
        rate_per_s(text, "--rate")


def test_sizes() -> None:
    assert bytes_of("2TB", "--node-disk") == 2e12
    with pytest.raises(UsageError, match="--node-disk 2: expected a size"):
        bytes_of("2", "--node-disk")


# The reference.


def test_the_reference_is_whole() -> None:
    reference = shipped()
    assert parsed(written(reference)) == reference
    assert any(candidate.writes and candidate.reads for candidate in reference.candidates)
    for candidate in reference.candidates:
        for measurement in (*candidate.writes, *candidate.reads):
            assert reference.origins[measurement.comparison].machine
            assert all(run.id and run.date and run.per_s > 0.0 for run in measurement.runs)


def test_candidates_survive_being_written() -> None:
    origin = Origin("title", "data", 10, None, 1.0, "machine", "2026-01-01", "0.1", "8 requests in flight")
    gathered = Gathered(
        {"write": origin, "read": origin}, (layout("one"), layout("other", writes=())), (("x", "why"),), ("note",)
    )
    assert parsed(written(gathered)) == gathered
