"""What a budget of time makes of a study of factors: what is measured, in which order, what is left out, and how it continues."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sensorbench.benchmarks.factors import Expected, FactorOptions, FactorsPlan, run
from sensorbench.benchmarks.factors.cells import Cell
from sensorbench.benchmarks.factors.measure import CellBench
from sensorbench.benchmarks.factors.run import FactorsBenchmark
from sensorbench.claims import Claim
from sensorbench.claims.claim import ClaimsFile
from sensorbench.errors import UsageError
from sensorbench.lifecycle import Deadline
from sensorbench.lifecycle.benchmark import run as run_benchmark
from sensorbench.progress import ProgressReporter
from sensorbench.results.factors import CellMeasurement, FactorsResult, StepFigures, read_factors
from sensorbench.studies import FACTOR_STUDIES
from sensorbench.studies.factors import FactorStudy
from sensorbench.studies.factors_budget import expected_s, expected_to_look_s, left_s, plan_factors
from sensorbench.toml_file import parse
from tests.conftest import Cli
from tests.test_factors import null_file

TUNING = FACTOR_STUDIES["cassandra-tuning"]
HOUR_S = 3600.0
CLAIMS = """
[[claim]]
id = "DEL-1"
text = "A delay of 5 ms is shorter."
form = "p99(100) > p99(5)"
published = "100 / 5"
parts = ["delay"]
rules = [{ kind = "greater", of = "p99_of_offered_s(read, delay, 100, last) / p99_of_offered_s(read, delay, 5, last)" }]
scale_free = "the delay does not depend on the data"

[[claim]]
id = "DEL-2"
text = "The draft is faster."
form = "p99(default) > p99(draft)"
published = "100 / 5"
parts = ["draft"]
rules = [{ kind = "greater", of = "p99_of_offered_s(read, draft, default, last) / p99_of_offered_s(read, draft, draft, last)" }]
scale_free = "the delay does not depend on the data"
"""


def chosen(budget_s: float, **options: Any) -> FactorsPlan:
    """What a budget makes of the study of Cassandra's settings."""
    return plan_factors(TUNING, FactorOptions(budget=budget_s, **options), Path("new"), resume=False)


def cells_of(plan: FactorsPlan) -> list[list[Cell]]:
    return plan.groups()


def test_an_hour_takes_the_smallest_scale_at_which_claims_can_be_judged() -> None:
    plan = chosen(HOUR_S)
    needed = max(claim.min_scale.get("scale", 0.0) for claim in TUNING.claims)
    assert plan.options.scale == needed == 0.016
    assert HOUR_S < expected_to_look_s(plan) < 6 * HOUR_S < expected_s(plan) < 10 * HOUR_S
    # With days, the data grow.
    assert (chosen(40 * 24 * HOUR_S).options.scale or 0.0) >= 0.1
    assert chosen(HOUR_S, scale=0.03).options.scale == 0.03


def test_what_waits_for_hours_and_what_no_claim_needs_is_left_out_by_name() -> None:
    plan = chosen(HOUR_S)
    assert "each measurement waits 24 min before servers are restarted" in plan.left_out["key-cache-save-period"]
    assert {plan.left_out[name] for name in ("compaction", "compression", "draft-without")} == {"no claim needs it"}
    assert plan.left_out["key-cache-size: 300 MB"] == "no claim needs it"
    assert "key-cache-size" not in plan.left_out
    # Whoever has the time gets the periods, too.
    assert "key-cache-save-period" not in chosen(24 * HOUR_S).left_out


def test_every_claim_of_the_parts_that_stay_has_its_cells_in_one_group() -> None:
    """Levels that are compared alternate, so that drift is nobody's gain."""
    plan = chosen(HOUR_S)
    levels = [{(cell.load, *level) for cell in group for level in cell.levels} for group in cells_of(plan)]
    claims = [claim for claim in TUNING.claims if set(claim.parts) <= set(plan.parts) and claim.parts]
    assert len(claims) > 20
    for claim in claims:
        wanted = wanted_by(claim)
        assert sum(1 for of_group in levels if wanted <= of_group) == 1, claim.id


def wanted_by(claim: Claim) -> set[tuple[str, ...]]:
    """Load, part and level of the figures of a claim."""
    expressions = [expression for rule in claim.rules for instance in rule.expanded() for expression in instance.expressions]
    return {tuple(figure.arguments[:3]) for expression in expressions for figure in expression.figures}


def test_groups_that_decide_most_claims_for_their_time_come_first() -> None:
    first, *_, last = cells_of(chosen(HOUR_S))
    decided = [
        sum(1 for claim in TUNING.claims if claim.parts and wanted_by(claim) <= levels)
        for levels in ({(cell.load, *level) for cell in group for level in cell.levels} for group in (first, last))
    ]
    assert decided[0] > decided[1]
    # Those that write share their default: they are one group.
    assert {"memtable-allocation", "flush-writers", "cleanup-threshold"} <= {
        part for group in cells_of(chosen(HOUR_S)) for cell in group if cell.load == "write" for part, _ in cell.levels
    }


def test_a_budget_without_room_for_one_measurement_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--budget 2m: the smallest run of this study, one measurement at scale 0\.016"):
        chosen(120.0)
    with pytest.raises(UsageError, match=r"--budget 60m: nothing is left of these parts \(compaction: no claim needs it"):
        chosen(HOUR_S, parts=("compaction",))


# On the null database


def null_study() -> FactorStudy:
    claims = parse(CLAIMS, ClaimsFile, Path("claims.toml")).claim
    return FactorStudy("delays", null_file(), tuple(claims))


def carried_out(plan: FactorsPlan, folder: Path, *, resume: bool = False) -> FactorsResult:
    run_benchmark(FactorsBenchmark(), plan, folder, ProgressReporter(quiet=True), resume=resume)
    return read_factors(folder)


OPTIONS = FactorOptions(scale=0.02, duration=0.4, repetitions=3, seed=1, concurrency=16, rate=40.0, budget=HOUR_S)


def test_a_budget_that_is_over_leaves_the_rest_for_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study, out = null_study(), tmp_path / "out"
    plan = plan_factors(study, OPTIONS, out, resume=False)
    assert [[cell.id for cell in group] for group in plan.groups()] == [
        ["read-delay-100", "read-delay-5"],
        ["read-draft-default", "read-draft-draft"],
    ]
    checked: list[str] = []
    check = Deadline.check

    def over_at_the_third(deadline: Deadline, what: str, *kinds: str) -> None:
        checked.append(what)
        check(Deadline(-1.0) if len(checked) == 3 else deadline, what, *kinds)

    monkeypatch.setattr(Deadline, "check", over_at_the_third)
    begun = carried_out(plan, out)
    monkeypatch.undo()
    assert begun.manifest.status == "interrupted"
    assert "is over before round 2 of read-delay-5; --resume continues" in str(begun.manifest.reason)
    assert {name: len(found) for name, found in begun.measurements.items()} == {
        "read-delay-100": 1,
        "read-delay-5": 1,
        "read-draft-default": 0,
        "read-draft-draft": 0,
    }
    verdicts = {claim.id: claim.verdict for claim in study.summarise(begun).claims}
    assert verdicts["DEL-2"] == "not tested"
    # What was said at first is known from the results.
    assert len(begun.manifest.plan.took_s["read"]) == 2
    later = plan_factors(study, FactorOptions(seed=1, concurrency=16, rate=40.0, budget=HOUR_S), out, resume=True)
    assert left_s(later, begun) < 60.0 < expected_s(later)
    ended = carried_out(later, out, resume=True)
    assert ended.manifest.status == "complete"
    assert {len(found) for found in ended.measurements.values()} == {3}
    assert ended.manifest.plan.left_out == {"delay: 1": "no claim needs it"}
    assert [claim.id for claim in study.summarise(ended).claims if claim.verdict == "not tested"] == []
    # Without a budget, what it left out is measured, too.
    all_of_it = plan_factors(study, FactorOptions(seed=1, concurrency=16, rate=40.0), out, resume=True)
    assert len(carried_out(all_of_it, out, resume=True).measurements["read-delay-1"]) == 3


SAME = """
[[claim]]
id = "DEL-3"
text = "A delay of 5 ms is as long as itself, to a millionth."
form = "p99(draft) over itself"
published = "1"
parts = ["draft"]
rules = [{ kind = "equal", of = "p99_of_offered_s(read, draft, default, 0) / p99_of_offered_s(read, draft, default, last)", margin = 1e-6 }]
scale_free = "the delay does not depend on the data"
"""


def as_slow_as_its_delay(
    bench: CellBench, cell: Cell, rates: Sequence[float], folder: Path, *, round_: int, seed: int, **_: Any
) -> CellMeasurement:
    """A measurement without servers: its delay, which differs by a thousandth from step to step, now up and now down."""
    delay_s = float(cell.settings["delay_ms"]) / 1000.0
    counts = dict.fromkeys(["offered", "ok", "error", "timeout", "dropped"], 0)
    steps = [
        StepFigures(
            rate_per_s=rate,
            completed_per_s=rate,
            client_bound=None,
            p99_of_offered_s=delay_s * (1.0 + (-1) ** round_ * number / 1000),
            **counts,
        )
        for number, rate in enumerate(rates)
    ]
    return CellMeasurement(cell=cell.id, round=round_, outcome="measured", seed=seed, took_s=1.0, steps=steps)


def test_what_a_look_has_decided_is_measured_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A delay of 100 ms against 5 is decided by three rounds; that two rates take the same time to a millionth is not."""
    monkeypatch.setattr(run, "measure", as_slow_as_its_delay)
    whole = null_study()
    same = parse(SAME, ClaimsFile, Path("claims.toml")).claim
    study = replace(whole, file=null_file(looks=[3, 5]), claims=(whole.claims[0], *same))
    options, out = OPTIONS.model_copy(update={"repetitions": None}), tmp_path / "out"
    plan = plan_factors(study, options, out, resume=False)
    assert (plan.looks, plan.rounds) == ((3, 5), 5)
    result = carried_out(plan, out)
    assert {name: len(found) for name, found in result.measurements.items()} == {
        "read-delay-100": 3,
        "read-delay-5": 3,
        "read-draft-default": 5,
    }
    claims = {claim.id: claim for claim in study.summarise(result).claims}
    assert claims["DEL-1"].verdict == "reproduced"
    assert claims["DEL-1"].reason.endswith("; by the look after 3 of 5 rounds, with intervals of 96.5%")
    assert claims["DEL-3"].verdict != "reproduced"
    # It continues as it began, and there is nothing left.
    later = plan_factors(study, options.model_copy(update={"budget": None}), out, resume=True)
    assert later.looks == (3, 5)
    with pytest.raises(UsageError, match=r"--repetitions 4: the study in .* is judged after 3 and 5 rounds"):
        plan_factors(study, options.model_copy(update={"repetitions": 4}), out, resume=True)


def test_times_follow_what_was_measured() -> None:
    """What was measured takes as long again; what was not, as many times its arithmetic as what was."""
    plan = chosen(HOUR_S)
    cells = {cell.load: cell for cell in plan.cells().values()}
    arithmetic = Expected(plan)
    twice = Expected(plan, {"read": [2.0 * arithmetic.cell_s(cells["read"])] * 3})
    assert twice.cell_s(cells["read"]) == pytest.approx(2.0 * arithmetic.cell_s(cells["read"]))
    assert twice.cell_s(cells["write"]) == pytest.approx(2.0 * arithmetic.cell_s(cells["write"]))
    assert twice.finding_s() == pytest.approx(2.0 * arithmetic.finding_s())


def test_claims_about_what_a_budget_left_out_are_not_tested(tmp_path: Path) -> None:
    study, out = null_study(), tmp_path / "out"
    plan = plan_factors(study, OPTIONS.model_copy(update={"parts": ("draft",), "repetitions": 1}), out, resume=False)
    result = carried_out(plan, out)
    kept = result.manifest.plan.model_copy(update={"left_out": {"delay": "it waits"}})
    left = FactorsResult(out, result.manifest.model_copy(update={"plan": kept}), result.measurements)
    found = {claim.id: claim for claim in study.summarise(left).claims}
    assert (found["DEL-1"].verdict, found["DEL-1"].reason) == ("not tested", "left out by budget: it waits")
    warnings = [caveat.text for caveat in study.summarise(left).warnings if caveat.kind == "left out"]
    assert warnings == ["Left out by the budget, because it waits: delay."]


def test_the_command_says_what_a_budget_was_turned_into(cli: Cli) -> None:
    said = " ".join(cli("study", "run", "cassandra-tuning", "--budget", "60m", "--dry-run").err.split())
    assert (
        "budget 60 min: scale 0.016, the 21 configurations that claims need in 3 rounds, up to 5 while claims are undecided; left out"
        in said
    )
    assert "left out: key-cache-save-period; compaction" in said
    assert "--resume continues with it" in said
