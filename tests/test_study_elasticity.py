"""The study of elastic databases: its claims, judged on what the source printed and on the opposite."""

from collections.abc import Callable
from typing import Any

import pytest

from sensorbench.study.elasticity.evidence import Evidence, evidence_of
from sensorbench.study.elasticity.study import ELASTICITY, judged, printed, summarise


def of_printed(change: Callable[[str, float], float] = lambda _, value: value, *, leave_out: tuple[str, ...] = ()) -> Evidence:
    """What the source printed, as if it had been measured three times with nearly no noise."""
    evidence, levels = Evidence(), {}
    for one in printed():
        role, transition, figure = one["role"], one["transition"], one["figure"]
        levels[role, transition, figure] = change(figure, one["value"])
    for (role, transition, figure), value in levels.items():
        if role in leave_out:
            continue
        for noise in (0.999, 1.0, 1.001):
            evidence.add(role, transition, {figure: value * noise})
            if figure == "sd_s":
                evidence.add(role, transition, {"sd_over_av": value / levels[role, transition, "av_s"] * noise})
    return evidence


def verdicts(evidence: Evidence) -> dict[str, str]:
    return {claim.id: judged(claim, evidence).verdict for claim in ELASTICITY.claims}


# What its own tables say of its claims; 9, 10 are of charts.
OWN = {
    **dict.fromkeys(["ELA-9", "ELA-10", "ELA-13", "ELA-22", "ELA-23"], "not tested here"),
    "ELA-20": "does not hold",
}


def test_the_sources_own_figures_give_its_claims() -> None:
    found = verdicts(of_printed())
    assert found == {claim.id: OWN.get(claim.id, "holds") for claim in ELASTICITY.claims}


def test_the_opposite_gives_the_opposite() -> None:
    def inverted(figure: str, value: float) -> float:
        return {"scalability": 0.5 - value, "hottest_share": 0.2}.get(figure, 1.0 / value)

    found = verdicts(of_printed(inverted))
    for one in ("ELA-1", "ELA-2", "ELA-3", "ELA-4", "ELA-5", "ELA-8", "ELA-12", "ELA-14", "ELA-16", "ELA-17", "ELA-18", "ELA-21"):
        assert found[one] == "does not hold", one


def test_databases_that_were_not_measured_leave_claims_open() -> None:
    found = {claim.id: judged(claim, of_printed(leave_out=("MO",))) for claim in ELASTICITY.claims}
    assert found["ELA-1"].verdict == "inconclusive"
    assert "not measured: MO" in found["ELA-1"].reason
    assert {found[one].verdict for one in ("ELA-3", "ELA-6", "ELA-11", "ELA-15", "ELA-19", "ELA-21")} == {"not tested here"}
    assert found["ELA-4"].verdict == "holds"


def test_one_work_of_each_is_no_repetition() -> None:
    evidence = Evidence()
    for one in printed():
        evidence.add(one["role"], one["transition"], {one["figure"]: one["value"]})
    assert {verdicts(evidence)[one] for one in ("ELA-1", "ELA-4", "ELA-7", "ELA-16")} == {"inconclusive"}


def work(database: str, transfer_s: float) -> dict[str, Any]:
    """The summary of a work with one node that joined one, as far as it is looked at."""
    times_s = [10.0 * number for number in range(60)]
    durations_s = [
        4.0 + 0.1 * (number % 2) if time_s < 200 else 6.0 + 0.5 * (number % 2) if time_s < 400 else 3.0
        for number, time_s in enumerate(times_s)
    ]
    score = {"elasticity": 12.0, "additional_s": 40.0, "total_s": transfer_s + 40.0}
    transition = {
        "change": {"kind": "join"}, "failed": None, "nodes": 1, "begun_at_s": 203.0, "scored_from_s": 200.0, "transfer_s": transfer_s,
        "sets": {"time_s": times_s, "duration_s": durations_s}, "scores": {"by_band": score},
        "before": {"mean_s": 4.05, "sd_s": 0.05}, "servers": {"a": {"before": 30.0}, "b": {"before": 10.0}},
    }  # fmt: skip
    left = {**transition, "change": {"kind": "leave"}}
    failed = {**transition, "failed": "no disk"}
    return {
        "title": database, "command": [], "state": "complete", "setting": {"database": database, "target": database},
        "transitions": [left, failed, transition], "scalability": [{"from_nodes": 1, "to_nodes": 2, "scalability": 0.1}],
    }  # fmt: skip


def test_figures_are_those_of_transitions_to_more_nodes() -> None:
    evidence = evidence_of([work("cassandra", 160.0), work("redis+cluster", 1.0)], {"CA": ["cassandra"]})
    assert {role for role, _, _ in evidence.values} == {"CA"}
    found = {figure: values for (_, transition, figure), values in evidence.values.items() if transition == 0}
    assert evidence.transitions("CA", "total_s") == [0]
    assert found["transfer_s"] == [160.0]
    assert found["scalability"] == [0.1]
    assert found["hottest_share"] == [0.75]
    assert found["peak_over_level"] == pytest.approx([6.5 / 4.05])
    assert found["peak_over_peak"] == pytest.approx([6.5 / 4.1])
    assert found["lowest_over_level"] == pytest.approx([6.0 / 4.05])


def test_works_are_summed_up_beside_what_was_printed() -> None:
    summary = summarise([work("cassandra", seconds) for seconds in (150.0, 160.0, 170.0)])
    found = {(one["role"], one["figure"]): one for one in summary["figures"]}
    assert found["CA", "transfer_s"]["value"] == pytest.approx(160.0)
    assert found["CA", "transfer_s"]["low"] < 150.0
    assert {one["id"]: one["verdict"] for one in summary["claims"]}["ELA-5"] == "inconclusive"
    assert {role.title for role in ELASTICITY.file.roles.values()} == {"Cassandra", "HBase", "mongoDB", "Redis Cluster"}
