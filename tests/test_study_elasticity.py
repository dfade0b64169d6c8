"""The study of elastic databases: its claims, judged on what the source printed and on the opposite."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from sensorbench.benchmarks.elasticity.summary import NOT_ELASTIC
from sensorbench.claims import Expression, WindowedSeries
from sensorbench.report.build import write_page
from sensorbench.report.elasticity import elasticity_page
from sensorbench.report.elasticity_comparison import elasticity_comparison_page
from sensorbench.results.elasticity import COMPARISON, works_of
from sensorbench.results.json_schemas import json_schemas
from sensorbench.results.manifest import VariantManifest
from sensorbench.results.summary.elasticity import (
    AroundChange,
    ArticleCount,
    BeforeAndAfter,
    ClusterChange,
    DataMoves,
    ElasticityFigures,
    ElasticityScore,
    ElasticitySummary,
    ElasticityWorkload,
    NodeData,
    NodeLoad,
    RequestSets,
    Scalability,
    ScoreDefinitions,
    SetLevel,
    Stabilisation,
    StableAgain,
    Transition,
)
from sensorbench.results.summary.envelope import Caveat, Status
from sensorbench.results.writer import write_typed_summary
from sensorbench.studies.elasticity.evidence import Evidence, evidence_of, role_of
from sensorbench.studies.elasticity.scales import Scale, scales_of
from sensorbench.studies.elasticity.stable import figures_of_stable
from sensorbench.studies.elasticity.study import ELASTICITY, judged, summarise
from sensorbench.studies.elasticity.study_file import Role
from sensorbench.studies.published import published_of


def _printed() -> dict[tuple[str, int, str], float]:
    """What the paper printed, by role, transition (from 0) and figure."""
    published = published_of("elasticity")
    assert published is not None
    found = {}
    for text, value in published.printed.items():
        figures = Expression.parse(text).figures
        if len(figures) == 1 and text == str(figures[0]) and figures[0].arguments[1].isdigit():
            role, place = figures[0].arguments
            found[role, int(place) - 1, figures[0].quantity] = value
    return found


PRINTED = _printed()


def of_printed(change: Callable[[str, float], float] = lambda _, value: value, *, leave_out: tuple[str, ...] = ()) -> Evidence:
    """What the source printed, as if it had been measured three times with nearly no noise."""
    evidence, levels = Evidence(), {}
    for (role, transition, figure), value in PRINTED.items():
        levels[role, transition, figure] = change(figure, value)
    for (role, transition, figure), value in levels.items():
        if role in leave_out:
            continue
        for noise in (0.999, 1.0, 1.001):
            evidence.add(role, transition, {figure: value * noise})
            if figure == "sd_s":
                evidence.add(role, transition, {"sd_over_av": value / levels[role, transition, "av_s"] * noise})
            evidence.add(role, transition, {"nodes": 6.0 * 2**transition})
    of_each = {
        "bytes_per_node_over_memory": 2.0,
        "requests_per_set": 1_667.0,
        "regions_per_server": 20.0,
        "token_ranges_per_node": 16.0,
        "nodes": 6.0,
    }
    for role in {role for role, _, _ in evidence.by_place}:
        evidence.scales |= {(role, name): [Scale(value)] for name, value in of_each.items()}
    return evidence


def verdicts(evidence: Evidence) -> dict[str, str]:
    return {claim.id: judged(claim, evidence).verdict for claim in ELASTICITY.claims}


# What its own tables say of its claims; 9, 10, 24 and half of 11 are of charts.
OWN = {
    **dict.fromkeys(["ELA-9", "ELA-10", "ELA-11", "ELA-13", "ELA-22", "ELA-23", "ELA-24", "ELA-25"], "not tested"),
    "ELA-20": "not reproduced",
}


def test_the_papers_own_figures_reproduce_its_claims() -> None:
    found = verdicts(of_printed())
    assert found == {claim.id: OWN.get(claim.id, "reproduced") for claim in ELASTICITY.claims}


def test_what_is_too_small_to_show_a_finding_judges_none() -> None:
    evidence = of_printed()
    arithmetic = "10.0 MB on the node with the least data, which has 1.00 GB of memory"
    evidence.scales["HB", "bytes_per_node_over_memory"] = [Scale(0.01, arithmetic), Scale(5.0)]
    small = judged(next(claim for claim in ELASTICITY.claims if claim.id == "ELA-1"), evidence)
    assert small.verdict == "below minimum scale"
    assert f"0.01 ({arithmetic}), at least 1" in small.reason
    # What another database holds does not matter to a claim that is not about it.
    assert judged(next(claim for claim in ELASTICITY.claims if claim.id == "ELA-7"), evidence).verdict == "reproduced"
    del evidence.scales["HB", "bytes_per_node_over_memory"]
    unknown = judged(next(claim for claim in ELASTICITY.claims if claim.id == "ELA-1"), evidence)
    assert unknown.verdict == "not tested"
    assert "was not measured" in unknown.reason


def test_sets_of_a_transition_are_compared_with_equally_many_before() -> None:
    claims = {claim.id: claim for claim in ELASTICITY.claims}
    usual = np.random.default_rng(1).normal(1.0, 0.1, (3, 60))

    def with_sets(*windows: float) -> Evidence:
        evidence = of_printed()
        for transition, longest in enumerate(windows):
            evidence.set_times["CA", transition] = [WindowedSeries(of_run, np.array([1.0, longest, 1.0])) for of_run in usual]
        return evidence

    # Nothing happened; nodes disturb the third transition alone; nodes disturb all.
    assert judged(claims["ELA-10"], with_sets(1.05, 1.05, 1.05)).verdict == "not reproduced"
    assert judged(claims["ELA-10"], with_sets(1.05, 1.05, 3.0)).verdict == "reproduced"
    assert judged(claims["ELA-10"], with_sets(3.0, 3.0, 3.0)).verdict == "not reproduced"
    assert judged(claims["ELA-9"], with_sets(1.05, 1.05, 1.05)).verdict == "reproduced"
    assert judged(claims["ELA-9"], with_sets(0.2, 1.05, 1.05)).verdict == "not reproduced"


def test_deviations_of_a_stable_cluster_are_compared_with_those_in_any_order() -> None:
    generator = np.random.default_rng(1)
    steady = figures_of_stable(generator.normal(1.0, 0.1, 200))
    uneven = figures_of_stable(np.concatenate([generator.normal(1.0, spread, 50) for spread in (0.01, 0.3, 0.02, 0.5)]))
    assert steady["deviation_spread_over_chance"] == pytest.approx(1.0, rel=0.5)
    assert (uneven["deviation_spread_over_chance"] or 0.0) > 3.0
    assert figures_of_stable(np.ones(5)) == {}


def test_the_opposite_gives_the_opposite() -> None:
    def inverted(figure: str, value: float) -> float:
        return {"scalability": 0.5 - value, "hottest_share": 0.2}.get(figure, 1.0 / value)

    found = verdicts(of_printed(inverted))
    for name in (
        "ELA-1",
        "ELA-2",
        "ELA-3",
        "ELA-4",
        "ELA-5",
        "ELA-8",
        "ELA-12",
        "ELA-14",
        "ELA-16",
        "ELA-17",
        "ELA-18",
        "ELA-21",
    ):
        assert found[name] == "not reproduced", name


def test_databases_that_were_not_measured_leave_claims_untested() -> None:
    found = {claim.id: judged(claim, of_printed(leave_out=("MO",))) for claim in ELASTICITY.claims}
    assert found["ELA-1"].verdict == "not tested"
    assert [cell.verdict for cell in found["ELA-1"].cells] == ["reproduced", "not tested", "reproduced", "reproduced"]
    untested = ("ELA-3", "ELA-6", "ELA-11", "ELA-15", "ELA-19", "ELA-21")
    assert {found[name].verdict for name in untested} == {"not tested"}
    assert found["ELA-4"].verdict == "reproduced"


def test_one_work_of_each_is_no_repetition() -> None:
    evidence = of_printed()
    evidence.by_place = {place: values[:1] for place, values in evidence.by_place.items()}
    assert {verdicts(evidence)[name] for name in ("ELA-1", "ELA-4", "ELA-7", "ELA-16")} == {"inconclusive"}


def test_an_interval_has_no_values_that_its_figure_cannot_have() -> None:
    """Of three repetitions that differ much, it would begin below 0."""
    evidence = Evidence()
    for value in (1.0, 2.0, 30.0):
        evidence.add("CA", 0, {"total_s": value, "scalability": value})
    time, ratio = evidence.mean("CA", 0, "total_s"), evidence.mean("CA", 0, "scalability")
    assert time is not None
    assert time.low == 0.0
    assert ratio is not None
    assert ratio.low is not None
    assert ratio.low < -10.0
    assert evidence.mean("CA", 1, "total_s") is None


def requests_before(count: float) -> NodeLoad:
    """A node that served this many requests before the change."""
    return NodeLoad(requests=AroundChange(before=count, during=0.0, after=0.0), cpus=None)


def score(elasticity: float) -> ElasticityScore:
    definitions = ScoreDefinitions(above_ramp=1.0, excess_deviation=1.0, above_level=1.0, trapezoid=1.0, minutes=1.0)
    return ElasticityScore(
        elasticity=elasticity, definitions=definitions, area_a=1.0, area_b=1.0, bootstrap_at_s=200.0, stable_at_s=403.0,
        av1_s=4.05, av2_s=3.0, rt1_s=0.1, rt2_s=0.1, sets_between=20,
    )  # fmt: skip


def work(database: str, transfer_s: float, status: Status = "complete") -> ElasticitySummary:
    """The summary of a cluster of one node that another one joined, after one that left and one that failed."""
    times_s = [10.0 * number for number in range(60)]
    durations_s = [
        4.0 + 0.1 * (number % 2) if time_s < 200 else 6.0 + 0.5 * (number % 2) if time_s < 400 else 3.0
        for number, time_s in enumerate(times_s)
    ]
    stable = StableAgain(stable_at_s=403.0, additional_s=40.0, total_s=transfer_s + 40.0, score=score(12.0))
    joined = Transition(
        number=3, status="complete", reason=None, failed=None,
        change=ClusterChange(kind="join", title="a node joined", count=1, away_s=30.0, how=""),
        nodes=1, articles=10, request_threads=1, requests_per_set=100, executions=10,
        sets=RequestSets(time_s=times_s, duration_s=durations_s, sd_s=[0.0] * 60), events=[],
        begun_at_s=203.0, scored_from_s=200.0, transfer_s=transfer_s, noticed_s=None, before=SetLevel(mean_s=4.05, sd_s=0.05, sets=20),
        stability=Stabilisation(by_band=stable, by_rule=stable, in_band=stable), dip=None, counts=None, guarantees=None,
        servers={"a": requests_before(30.0), "b": requests_before(10.0)},
    )  # fmt: skip
    left = joined.model_copy(update={"number": 1, "change": joined.change.model_copy(update={"kind": "leave"})})
    failed = joined.model_copy(update={"number": 2, "failed": "no disk"})
    workload = ElasticityWorkload(
        requests_per_thread=100, threads_per_node=1, executions=10, rate_per_node=None, timeout_s=10.0, warmup_s=2.0, before=20, after=20,
        max_s=60.0, mix={"read_article": 1.0}, grows=True, seed=1,
    )  # fmt: skip
    return ElasticitySummary(
        title=database, status=status, reason=None if status == "complete" else "why", created=datetime(2026, 1, 1, tzinfo=UTC),
        version="1", command=["sensorbench", database], environment={"memory_bytes": 1, "servers": {database: {"database": database, "version": "1", "nodes": 1, "settings": {}}}},
        variants=[variant(database)],
        warnings=[Caveat(kind="few-sets", text="few", action="more")],
        result=ElasticityFigures(
            operations={}, workload=workload, dataset=ArticleCount(title="made", rows=10), changes=[], load=None,
            transitions=[left, failed, joined], scalability=[Scalability(from_nodes=1, to_nodes=2, scalability=0.1)], law=None, errors=[],
        ),
    )  # fmt: skip


def variant(database: str) -> VariantManifest:
    return VariantManifest(
        id=f"{database}-by-id", target=database, database=database, embedded=False, url="", schema_name="by_id", schema_summary="",
        schema_file="",
    )  # fmt: skip


def test_figures_are_those_of_transitions_to_more_nodes() -> None:
    roles = {"CA": Role(title="Cassandra", databases=["cassandra"])}
    evidence = evidence_of([work("cassandra", 160.0), work("redis+cluster", 1.0)], roles)
    assert {role for role, _, _ in evidence.by_place} == {"CA"}
    found = {figure: values for (_, transition, figure), values in evidence.by_place.items() if transition == 0}
    assert evidence.transitions("CA", "total_s") == [0]
    assert found["transfer_s"] == [160.0]
    assert found["scalability"] == [0.1]
    assert found["hottest_share"] == [0.75]
    assert found["peak_over_level"] == pytest.approx([6.5 / 4.05])
    (sets,) = evidence.set_times["CA", 0]
    assert (max(sets.before), len(sets.before)) == (pytest.approx(4.1 / 4.05), 20)
    assert (min(sets.window), max(sets.window)) == (pytest.approx(6.0 / 4.05), pytest.approx(6.5 / 4.05))
    assert evidence.scale("requests_per_set") == 100.0
    assert evidence.scale("bytes_per_node_over_memory") is None


def test_data_are_compared_with_the_memory_that_is_left_for_them() -> None:
    summary = work("cassandra", 160.0)
    workload = summary.result.workload.model_copy(update={"node_memory_bytes": 1_000_000_000, "node_idle_bytes": 600_000_000})
    limited = {
        "servers": {
            "cassandra": {**summary.environment["servers"]["cassandra"], "memory_bytes": 1_000_000_000, "memory_by": "cgroup v2"}
        }
    }
    result = summary.result.model_copy(update={"workload": workload, "load": {"size": {"total_bytes": 500_000_000}}})
    whole = summary.model_copy(update={"environment": limited, "result": result})
    found = scales_of(whole, [], None)["bytes_per_node_over_memory"]
    assert found.value == pytest.approx(500 / 400)
    assert found.arithmetic == "500.0 MB on the node with the least data, which has 400.0 MB for data of 1.00 GB of memory"
    # What results of earlier versions do not say is not taken off.
    earlier = result.model_copy(update={"workload": workload.model_copy(update={"node_idle_bytes": None})})
    assert scales_of(whole.model_copy(update={"result": earlier}), [], None)["bytes_per_node_over_memory"].value == pytest.approx(
        0.5
    )


def test_works_are_summed_up_beside_what_was_printed() -> None:
    summary = summarise([(f"cassandra-{seconds:g}", work("cassandra", seconds)) for seconds in (150.0, 160.0, 170.0)])
    found = {(figure.role, figure.figure): figure for figure in summary.result.figures}
    assert found["CA", "transfer_s"].value == pytest.approx(160.0)
    assert (found["CA", "transfer_s"].low or 0.0) < 150.0
    cells = {(table.title, cell.row, cell.column): cell for table in summary.published for cell in table.cells}
    transfer = cells["Table 6.1: times of stabilisation", "6 to 12 nodes, data-transfer-time", "Cassandra"]
    assert (transfer.value, transfer.measured) == (113 * 60, pytest.approx(160.0))
    assert transfer.ratio == pytest.approx(160.0 / (113 * 60))
    riak = cells["Table 6.1: times of stabilisation", "6 to 12 nodes, data-transfer-time", "Riak"]
    assert (riak.state, riak.measured) == ("not applicable", None)
    busiest = cells[
        "Figure 6.10: requests of the busiest server",
        "HBase, 24 nodes",
        "requests-served-by-hottest-server / requests-served-total",
    ]
    assert (busiest.value, busiest.state, busiest.why) == (pytest.approx(1417 / 1906), "not run", "HBase was not measured")
    assert {claim.id: claim.verdict for claim in summary.claims}["ELA-5"] == "not tested", "the memory of its nodes is not known"
    titles = {"Cassandra", "HBase", "mongoDB", "Redis Cluster", "Cassandra, read and written at one"}
    assert {role.title for role in ELASTICITY.file.roles.values()} == titles


def test_a_comparison_says_what_its_clusters_have_in_common(tmp_path: Path) -> None:
    works = {"a": work("cassandra", 150.0), "b": work("hbase", 160.0, "interrupted"), "c": work("cassandra", 155.0)}
    summary = summarise(list(works.items()))
    assert (summary.kind, summary.status, summary.reason) == (COMPARISON, "interrupted", "why")
    assert [variant_manifest.id for variant_manifest in summary.variants] == ["cassandra-by-id", "hbase-by-id"]
    assert summary.environment == {"memory_bytes": 1}
    assert summary.command == []
    assert [caveat.variant for caveat in summary.warnings] == ["cassandra-by-id", "hbase-by-id", "cassandra-by-id"]
    assert [(cluster.folder, cluster.status) for cluster in summary.result.works] == [
        ("a", "complete"),
        ("b", "interrupted"),
        ("c", "complete"),
    ]
    assert summarise([("a", works["a"]), ("c", works["c"])]).command == ["sensorbench", "cassandra"]
    resumed = works["c"].model_copy(update={"command": [*works["c"].command, "--resume"]})
    assert summarise([("a", works["a"]), ("c", resumed)]).command == ["sensorbench", "cassandra"]
    for name, model in {"elasticity": works["b"], "elasticitycomparison": summary}.items():
        jsonschema.validate(json.loads(model.model_dump_json()), json_schemas()[f"{name}-summary"])
    # The folders are found again in what is written, and the page names them.
    write_typed_summary(tmp_path, summary)
    assert works_of(tmp_path) == [tmp_path / name for name in works]
    page = write_page(elasticity_comparison_page(summary), tmp_path).read_text(encoding="utf-8")
    assert '<a href="b/report.html">b</a> (interrupted)' in page
    assert "3 warnings" in page


def with_transitions(of: ElasticitySummary, *changes: dict[str, Any]) -> ElasticitySummary:
    """A work whose join is changed in these ways, one transition for each."""
    joined = of.result.transitions[-1]
    transitions = [joined.model_copy(update={"number": number, **change}) for number, change in enumerate(changes, start=1)]
    return of.model_copy(update={"result": of.result.model_copy(update={"transitions": transitions})})


STAY = ClusterChange(kind="stay", title="nothing was changed", count=1, away_s=30.0, how="")
NOTHING = BeforeAndAfter(before=None, after=0.0)
NO_DATA = DataMoves(
    nodes={"b": NodeData(parts=NOTHING, bytes=NOTHING)},
    joined=["b"],
    without_data=["b"],
    moved_parts=0,
    moved_bytes=0.0,
    moving_s=None,
)
NOT_STABLE = StableAgain(stable_at_s=None, reason=NOT_ELASTIC)


def test_nodes_that_get_no_data_have_no_scores(tmp_path: Path) -> None:
    stability = Stabilisation(by_band=NOT_STABLE, by_rule=NOT_STABLE, in_band=NOT_STABLE)
    nothing = with_transitions(work("cassandra", 160.0), {"data": NO_DATA, "stability": stability})
    evidence = evidence_of([nothing], ELASTICITY.file.roles)
    assert {figure for _, _, figure in evidence.by_place} == {
        "nodes",
        "av_s",
        "sd_s",
        "sd_over_av",
        "scalability",
        "hottest_share",
    }
    assert evidence.set_times == {}
    page = write_page(elasticity_comparison_page(summarise([("a", nothing)])), tmp_path).read_text(encoding="utf-8")
    assert page.count("not elastic: no data moved") == 1
    of_one = write_page(elasticity_page(nothing), tmp_path).read_text(encoding="utf-8")
    assert of_one.count("not elastic: no data moved") == 3
    assert "none to b" in of_one


def test_a_cluster_that_has_grown_is_the_next_size() -> None:
    grown = with_transitions(
        work("cassandra", 160.0), {}, {"change": STAY, "nodes": 2, "before": SetLevel(mean_s=5.0, sd_s=0.5, sets=20)}
    )
    evidence = evidence_of([grown], ELASTICITY.file.roles)
    assert evidence.of("CA", 1, "av_s").tolist() == [5.0]
    assert evidence.of("CA", 1, "sd_over_av").tolist() == [0.1]
    assert evidence.transitions("CA", "transfer_s") == [0]
    # What is steady is the largest cluster to which nothing is done.
    assert evidence.scale("nodes") == 2.0


def test_clusters_read_at_one_play_a_role_of_their_own() -> None:
    def at(url: str) -> str | None:
        of = work("cassandra", 160.0)
        of = of.model_copy(update={"variants": [of.variants[0].model_copy(update={"url": url})]})
        return role_of(of, ELASTICITY.file.roles)

    assert [at(url) for url in ("cassandra?replication=3&consistency=one", "cassandra?consistency=quorum", "lab:a")] == [
        "C1",
        "CA",
        "CA",
    ]


def test_nodes_that_join_one_by_one_are_no_transition_of_the_paper() -> None:
    def with_change(**change: Any) -> ElasticitySummary:
        of = work("cassandra", 160.0)
        return with_transitions(of, {"change": of.result.transitions[-1].change.model_copy(update=change)})

    assert evidence_of([with_change(count=3, how="")], ELASTICITY.file.roles).by_place == {}
    assert evidence_of([with_change(count=3, how="once")], ELASTICITY.file.roles).by_place


def test_the_comparison_draws_its_clusters_over_one_another(tmp_path: Path) -> None:
    calm = {
        "change": STAY,
        "sets": RequestSets(time_s=[float(k) for k in range(40)], duration_s=[1.0, 1.2, 1.1, 1.3] * 10, sd_s=[0.0] * 40),
    }
    works = {"a": with_transitions(work("cassandra", 150.0), {}, calm), "b": with_transitions(work("hbase", 160.0), {})}
    better = StableAgain(stable_at_s=403.0, additional_s=40.0, total_s=200.0, score=score(6.0))
    of_b = {"stability": Stabilisation(by_band=better, by_rule=better, in_band=better)}
    summary = summarise([("a", works["a"]), ("b", with_transitions(works["b"], of_b))])
    page = elasticity_comparison_page(summary)
    names = [chart.name for chart in page.charts]
    assert names == ["growth-1-set-times", "growth-1-relative", "growth-1-area-a", "growth-1-area-b", "stable-deviations"]
    text = write_page(page, tmp_path).read_text(encoding="utf-8")
    # Both are equal by the other readings, so that each keeps its place there.
    assert "hbase before cassandra: as the paper has it" in text
    assert "cassandra before hbase: nothing below the ramp, excess deviation" in text
    (stable,) = summary.result.stable
    assert (stable.target, len(stable.deviation), stable.window_sets) == ("cassandra", 8, 5)


def test_the_page_of_a_cluster_has_its_scores(tmp_path: Path) -> None:
    page = write_page(elasticity_page(work("cassandra", 160.0)), tmp_path).read_text(encoding="utf-8")
    assert len(re.findall(r"<td[^>]*>12\.0</td>", page)) == 3 * 3
    assert "This run is" not in page
    assert "local-1, local-2" not in page
    placed = work("cassandra", 160.0)
    placed = placed.model_copy(update={"result": placed.result.model_copy(update={"hosts": ["local-1", "local-2"]})})
    jsonschema.validate(json.loads(placed.model_dump_json()), json_schemas()["elasticity-summary"])
    assert "local-1, local-2" in write_page(elasticity_page(placed), tmp_path).read_text(encoding="utf-8")
    interrupted = write_page(elasticity_page(work("cassandra", 160.0, "interrupted")), tmp_path)
    assert "This run is <strong>interrupted</strong>: why" in interrupted.read_text(encoding="utf-8")
