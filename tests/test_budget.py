"""Dry runs and budgets: what would be done, what it takes, and what a budget is turned into."""

import json
import math
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from sensorbench.analysis.capacity import Search
from sensorbench.analysis.extrapolation import Growth, Line, common_limit
from sensorbench.benchmarks.comparison import pilot
from sensorbench.benchmarks.comparison.prefixes import common_samples, prefix_caveats, prefixes_of
from sensorbench.benchmarks.stress.pilot import trials_of
from sensorbench.cli.output import notes_of
from sensorbench.errors import FailedError, UsageError
from sensorbench.lab import placement
from sensorbench.progress import ProgressReporter
from sensorbench.results import VariantManifest, read_comparison
from sensorbench.results.estimate import Budget, Estimate
from sensorbench.runner import Servers, Variant, running_servers
from sensorbench.studies import STUDIES, StudyOptions
from sensorbench.studies.budget import choose, pilot_study, with_budget
from tests.conftest import Cli

SMALL = ("--target", "sqlite", "--schema", "natural", "--schema", "star", "--dataset", "beijing-air-quality")


def test_a_line_goes_through_two_points_and_has_no_negative_part() -> None:
    line = Line.through((10.0, 3.0), (30.0, 7.0))
    assert (line.fixed, line.slope, line.at(100.0)) == (1.0, 0.2, 21.0)
    # Noise: the second, larger one was faster, or the fixed cost would be below zero.
    assert Line.through((10.0, 9.0), (30.0, 6.0)) == Line(0.0, 0.2)
    assert Line.through((10.0, 1.0), (30.0, 6.0)) == Line(0.0, 0.2)


def test_a_cost_grows_by_a_power_between_a_look_up_and_a_scan() -> None:
    assert Growth.through((100.0, 2.0), (400.0, 4.0)).at(1600.0) == pytest.approx(8.0)
    assert Growth.through((100.0, 2.0), (400.0, 1.0)).at(1600.0) == 1.0
    assert Growth.through((100.0, 1.0), (400.0, 64.0)).at(800.0) == 128.0


def test_small_needs_are_met_whole_and_large_ones_share_what_is_left() -> None:
    needs = [1.0, 2.0, 50.0, 90.0]
    limit = common_limit(needs, 43.0)
    assert limit == 20.0
    assert sum(min(need, limit) for need in needs) == 43.0
    assert common_limit(needs, 143.0) == math.inf


def test_a_search_is_counted_by_its_own_rule() -> None:
    # 1000 and 2000 meet, 4000 misses twice; their middle, 2828, meets and is near enough, so that it is confirmed once more.
    assert trials_of(Search(1000.0, precision=0.5, confirm=2), 3000.0) == 6


def test_a_dry_run_says_what_would_be_done_and_does_nothing(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = cli("study", "run", "iot", *SMALL, "--scale", "0.05", "--dry-run", "--json", "--out", out)
    assert ended.exit_code == 0, ended.err
    estimate = Estimate.model_validate_json(ended.out)
    (part,) = estimate.parts
    assert not out.exists()
    assert [variant.variant for variant in part.variants] == ["sqlite-star", "sqlite-natural"]
    assert part.order == [["sqlite-star", "sqlite-natural"], ["sqlite-natural", "sqlite-star"], ["sqlite-star", "sqlite-natural"]]
    assert all(variant.place == "embedded" and variant.load_s and variant.run_s for variant in part.variants)
    assert all(variant.operations == 500 and variant.repetitions == 3 for variant in part.variants)
    # The dataset says how many readings that scale really has.
    described = cli("data", "describe", "beijing-air-quality", "--json")
    whole = json.loads(described.out)["relations"]["measurements"]["rows"]
    assert part.readings == pytest.approx(0.05 * whole, rel=0.1)
    assert estimate.time_s is not None
    assert estimate.disk.needed is not None
    assert estimate.disk.needed < estimate.disk.free


def test_a_server_that_does_not_start_is_left_out_and_the_rest_goes_on(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def starting(variants: list[Variant], *arguments: object, **options: Any) -> AbstractContextManager[Servers]:
        if variants[0].target.database.name == "redis":
            raise FailedError("redis did not answer within 180 s")
        return running_servers(variants, *arguments, **options)

    monkeypatch.setattr(pilot, "running_servers", starting)
    ended = cli("study", "run", "iot", *SMALL, "--target", "redis", "--schema", "by_sensor", "--scale", "0.01", "--dry-run", "--json",
                "--out", tmp_path / "out")  # fmt: skip
    assert ended.exit_code == 0, ended.err
    assert "redis is left out: redis did not answer within 180 s" in ended.err
    (part,) = Estimate.model_validate_json(ended.out).parts
    refused = {variant.variant: variant.refused for variant in part.variants}
    assert {variant for variant, why in refused.items() if why is None} == {"sqlite-star", "sqlite-natural"}
    assert {why for variant, why in refused.items() if variant.startswith("redis")} == {"redis did not answer within 180 s"}


def test_a_dry_run_never_asks_a_server_of_the_users(cli: Cli, tmp_path: Path) -> None:
    """Nobody listens at this address: who asked there would fail."""
    target = ("--target", "postgresql://nobody@127.0.0.1:1/x", "--schema", "natural")
    ended = cli("study", "run", "iot", *SMALL, *target, "--scale", "0.01", "--dry-run", "--json", "--out", tmp_path / "out")
    assert ended.exit_code == 0, ended.err
    estimate = Estimate.model_validate_json(ended.out)
    yours = {variant.variant: variant for variant in estimate.parts[0].variants}["postgresql-natural"]
    assert (yours.place, yours.load_s, yours.run_s, yours.disk_bytes) == ("yours", None, None, None)
    assert any("not touched by a dry run" in note for note in estimate.notes)
    alone = cli("study", "run", "iot", *target, "--dry-run", "--out", tmp_path / "out")
    assert (alone.exit_code, "to choose a scale by; give --scale" in alone.err) == (2, True)


def test_a_budget_becomes_a_scale_and_a_command_that_makes_the_same_choice(cli: Cli, tmp_path: Path) -> None:
    ended = cli("study", "run", "iot", *SMALL, "--budget", "10m", "--dry-run", "--json", "--out", tmp_path / "out")
    assert ended.exit_code == 0, ended.err
    budget = Budget.model_validate_json(ended.out)
    assert (budget.budget_s, budget.is_default, budget.repetitions) == (600.0, False, 3)
    assert budget.estimate.time_s is not None
    assert budget.estimate.time_s + (budget.estimate.pilot_s or 0.0) < 600.0
    assert budget.command[:4] == ["sensorbench", "study", "run", "iot"]
    assert {"--scale", "--operations", "--max-variant-time"} <= set(budget.command)


def test_a_budget_leaves_out_the_last_parts_of_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pilot measures once; then the budget shrinks until not all parts fit, and on until none does."""
    study, options = STUDIES["sensor-schemas"], StudyOptions(targets=("fjall",), schemas=("batched",))
    monkeypatch.setattr(placement, "_connected", {"local:2": placement.Reached([])})
    piloted = pilot_study(study, options, tmp_path, 30.0, ProgressReporter(quiet=True))
    # Hosts of its servers are left: those of what follows are other processes.
    assert placement._connected == {}
    whole: list[str] = list(piloted.pilot.parts)
    chosen: list[Budget] = []
    with pytest.raises(UsageError, match="the smallest run of this study, part write alone, scale"):
        chosen.extend(choose(piloted, 3600.0 * 0.8**number) for number in range(1000))
    assert whole[0] == "write"
    assert chosen[0].left_out == []
    assert with_budget(options, chosen[0]).parts == ()
    cut = [budget for budget in chosen if budget.left_out]
    assert cut
    for budget in cut:
        assert [*budget.parts, *budget.left_out] == whole
        assert with_budget(options, budget).parts == tuple(budget.parts)
        assert budget.command.count("--part") == len(budget.parts)
        assert [part.name for part in budget.estimate.parts] == budget.parts
    # Asked with the least of these budgets, the pilot does not measure what has no time anyway.
    least = cut[-1]
    shorter = pilot_study(study, options, tmp_path, 30.0, ProgressReporter(quiet=True), budget_s=least.budget_s)
    assert shorter.pilot.skipped
    assert [*shorter.pilot.parts, *shorter.pilot.skipped] == whole
    assert choose(shorter, least.budget_s).left_out[-len(shorter.pilot.skipped) :] == shorter.pilot.skipped


def test_a_budget_in_which_nothing_can_be_done_says_how_much_is_needed(cli: Cli, tmp_path: Path) -> None:
    ended = cli("study", "run", "iot", *SMALL, "--budget", "2s", "--out", tmp_path / "out")
    assert ended.exit_code == 2
    assert "takes about" in ended.err
    assert not (tmp_path / "out").exists()


def test_a_variant_that_is_cut_by_time_is_compared_on_common_operations(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    short = ("--scale", "0.05", "--operations", "2000", "--max-variant-time", "1s")
    ended = cli("study", "run", "iot", *SMALL, *short, "--out", out, "--no-open")
    assert ended.exit_code == 0, ended.err
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    caveats = {caveat["variant"]: caveat["text"] for caveat in summary["warnings"] if caveat["kind"] == "prefix"}
    assert "of 2,000 operations" in caveats["sqlite-star"]
    result = read_comparison(out)
    star, natural = (result.usable_runs(f"sqlite-{schema}") for schema in ("star", "natural"))
    both = common_samples(star, natural, "get_sensor_data")
    assert both is not None
    assert both[0].count == both[1].count
    assert (
        np.bincount(both[0].run_of_block[both[0].blocks]).tolist() == np.bincount(both[1].run_of_block[both[1].blocks]).tolist()
    )


@pytest.mark.parametrize(("started", "prefixes"), [(20, {}), (19, {"part": (19, 20)})])
def test_a_variant_that_can_answer_some_questions_is_cut_short_of_its_own_alone(
    started: int, prefixes: dict[str, tuple[int, int]]
) -> None:
    """Of 34 operations it gets the 20 that it can answer."""
    variant = VariantManifest.model_construct(id="part", operations=["look_up"], operations_share=1.0)
    workload = {"operations": 34, "duration": "17s", "mix": {"look_up": 20, "range.r1": 7, "range.r2": 7}}
    result = SimpleNamespace(manifest=SimpleNamespace(plan=SimpleNamespace(workload=workload), variants=[variant]))
    run = SimpleNamespace(manifest=SimpleNamespace(measured=[SimpleNamespace(started=started)]))
    assert prefixes_of(cast("Any", result), {"part": [cast("Any", run)]}) == prefixes


@pytest.mark.parametrize("study", ["iot", "log-analytics", "sensor-schemas", "layouts", "tsbs", "tsm"])
def test_each_study_is_planned_with_the_targets_that_it_has_itself(cli: Cli, tmp_path: Path, study: str) -> None:
    ended = cli("study", "run", study, "--dry-run", "--no-pilot", "--scale", "0.01", "--json", "--out", tmp_path / "out")
    assert ended.exit_code == 0, ended.err
    estimate = Estimate.model_validate_json(ended.out)
    assert {part.name for part in estimate.parts} >= STUDIES[study].file.parts.keys()
    assert all(part.variants for part in estimate.parts)


def test_many_variants_that_are_cut_by_time_are_one_line_on_the_screen() -> None:
    cut = {"a": (3, 10), "b": (9, 10), "c": (10, 5_000), "d": (4_000, 5_000)}
    (line,) = notes_of(prefix_caveats(cut))
    assert line.startswith("4 variants: runs that ended by time; the report has the details. Give more time by --budget")
    few = notes_of(prefix_caveats(dict(list(cut.items())[:3])))
    assert [note.partition(" it did the first ")[2][:7] for note in few] == ["3 of 10", "9 of 10", "10 of 5"]


@pytest.mark.parametrize(
    "command",
    [
        ("stress", "--target", "sqlite", "--rates", "500:1000:500", "--step-duration", "1s", "--records", "1000"),
        ("tune", "--target", "sqlite", "--goal", "p99@500", "--budget-runs", "3", "--step-duration", "1s"),
        ("ycsb", "load", "--target", "sqlite:ycsb.db", "-p", "recordcount=1000"),
        ("cassandra-stress", "tests/fixtures/cassandra-stress/readings.yaml", "--target", "cassandra://127.0.0.1:1",
         "--ops", "insert=1", "--operations", "10"),
        ("quickstart",),
        ("capacity", "--target", "sqlite", "--objective", "p99=20ms", "--step-duration", "1s", "--records", "1000"),
        ("elasticity", "run", "--target", "redis+cluster", "--nodes", "3", "--scale", "0.02"),
        ("study", "run", "elasticity", "--scale", "0.02"),
        ("study", "run", "cassandra-tuning", "--scale", "0.001"),
        ("study", "run", "mapreduce", "--scale", "0.02"),
    ],
    ids=lambda command: " ".join(command[: 3 if command[0] == "study" else 1]),
)  # fmt: skip
def test_each_kind_has_a_dry_run_that_writes_nothing(cli: Cli, tmp_path: Path, command: tuple[str, ...]) -> None:
    out = tmp_path / "out"
    ended = cli(*command, "--dry-run", "--json", "--out", out)
    assert ended.exit_code == 0, ended.err
    estimate = Estimate.model_validate_json(ended.out)
    assert estimate.parts
    # How long a closed loop of another tool takes is not known without its target.
    assert (estimate.time_s is None) == (command[0] in {"ycsb", "cassandra-stress"})
    assert not out.exists()
    assert not Path("ycsb.db").exists()


def test_the_time_of_a_change_of_a_cluster_follows_from_its_options(cli: Cli, tmp_path: Path) -> None:
    options = (
        "--nodes",
        "3",
        "--requests",
        "100",
        "--executions",
        "10",
        "--rate",
        "50",
        "--warmup",
        "30s",
        "--change",
        "kill:40s",
    )
    ended = cli(
        "elasticity", "run", "--target", "redis+cluster", *options, "--scale", "0.02", "--repetitions", "2", "--dry-run", "--json",
        "--out", tmp_path / "out",
    )  # fmt: skip
    assert ended.exit_code == 0, ended.err
    estimate = Estimate.model_validate_json(ended.out)
    # A measurement is 1,000 requests of a thread at 50 per second; 20 come before the change and 20 after it.
    assert estimate.time_s == 2 * (30 + 40 * 20 + 40)
    assert any("20 s each at the rate" in note and "at most 60 min more" in note for note in estimate.notes)
