"""The parts of the study of elastic databases: in which order, how many of them fit into a budget, and how they are resumed."""

import json
import time
from pathlib import Path

import pytest

from sensorbench.app import elasticity as clusters
from sensorbench.benchmarks.elasticity import ElasticityStudyOptions, spec_of
from sensorbench.dataset import open_dataset
from sensorbench.errors import UsageError
from sensorbench.results.elasticity import ElasticityStudyPlan, parts_left, write_study_plan
from sensorbench.studies.elasticity import ELASTICITY, Deadline, choose, parts_of
from sensorbench.studies.elasticity.budget import ARTICLE_BYTES, SCALES
from tests.conftest import Cli

FILE = ELASTICITY.file


def test_each_repetition_turns_the_systems_around() -> None:
    parts = parts_of(FILE, ElasticityStudyOptions(targets=("cassandra", "hbase"), scenarios=("at-once",), repetitions=2))
    assert [part.name for part in parts] == [
        "cassandra-quorum-at-once-1",
        "cassandra-one-at-once-1",
        "hbase-at-once-1",
        "hbase-at-once-2",
        "cassandra-one-at-once-2",
        "cassandra-quorum-at-once-2",
    ]
    first, hbase = parts[0].options, parts[2].options
    assert (first.nodes, first.changes, first.copies) == (3, ("join:3@once", "stay"), FILE.copies)
    assert (first.server_memory, first.settings) == (3 << 30, ("jvm.heap=384M",))
    assert hbase.targets == ("hbase",)


def test_more_nodes_keep_the_memory_and_the_growth_of_each() -> None:
    (part,) = parts_of(FILE, ElasticityStudyOptions(targets=("hbase",), scenarios=("one-by-one",), repetitions=1, nodes=6))
    assert (part.options.nodes, part.options.changes, part.options.server_memory) == (6, ("join:6", "stay"), 6 << 30)
    # What a user names of his own has the name of its folder.
    (own,) = parts_of(FILE, ElasticityStudyOptions(targets=("cassandra?replication=2",), scenarios=("faults",), repetitions=1))
    assert own.name == "cassandra-faults-1"


def test_an_unknown_scenario_is_refused() -> None:
    with pytest.raises(UsageError, match="--scenario none: expected one of at-once, one-by-one, faults"):
        parts_of(FILE, ElasticityStudyOptions(scenarios=("none",)))


def test_a_budget_chooses_the_largest_scale_that_fits() -> None:
    hbase = ElasticityStudyOptions(targets=("hbase",), scenarios=("at-once",), repetitions=3)
    chosen = {minutes: choose(FILE, hbase, 60.0 * minutes) for minutes in (60, 120, 1200)}
    scales = [chosen[minutes].options.used_scale for minutes in (60, 120, 1200)]
    assert scales == sorted(scales)
    assert scales[0] < scales[2]
    for minutes, of_budget in chosen.items():
        assert of_budget.total_s <= 0.85 * 60.0 * minutes
        assert {part.options.scale for part in of_budget.parts} == {of_budget.options.used_scale}
        assert of_budget.expected_s.keys() == {part.name for part in of_budget.parts}
    # What a user says is not changed.
    given = choose(FILE, hbase.model_copy(update={"scale": 0.2, "operations": 7}), 1200.0)
    assert (given.options.used_scale, given.options.operations) == (0.2, 7)


@pytest.mark.parametrize(("system", "scale"), [("cassandra", SCALES[-1]), ("hbase", SCALES[-2])])
def test_budgets_know_scales_at_which_nodes_hold_more_than_their_memory_has_room_for(system: str, scale: float) -> None:
    part = parts_of(FILE, ElasticityStudyOptions(targets=(system,), scenarios=("at-once",), repetitions=1, scale=scale))[0]
    (target,) = part.options.targets
    articles = open_dataset("wikipedia-generated", scale=scale)
    spec = spec_of(part.options, target, 0, articles)
    replicas = int(spec.target.url_options.get("replication", "1"))
    on_each_node = articles.describe().readings * ARTICLE_BYTES * spec.copies * replicas / spec.nodes
    assert spec.node_memory_bytes is not None
    assert spec.node_idle_bytes is not None
    assert on_each_node > spec.node_memory_bytes - spec.node_idle_bytes


def test_what_does_not_fit_as_a_whole_is_as_small_as_it_can_be() -> None:
    everything = choose(FILE, ElasticityStudyOptions(), 3600.0)
    assert everything.total_s > 3600.0
    assert (everything.options.used_scale, everything.options.operations) == (0.1, 334)
    with pytest.raises(
        UsageError, match=r"--budget 1m: the smallest run of this study, one part of it at scale 0[.]1, takes about"
    ):
        choose(FILE, ElasticityStudyOptions(), 60.0)


def test_a_part_is_begun_while_it_fits() -> None:
    deadline = Deadline(100.0, {"a": 40.0, "b": 40.0, "c": 1.0}, _begun_s=time.monotonic() - 90.0)
    # The first is, whatever it takes.
    assert deadline.has_room("b")
    # The others by how long those before took, beside what was expected.
    deadline.note("a", 90.0)
    assert not deadline.has_room("b")
    assert deadline.has_room("c")


BEGUN = ElasticityStudyPlan(
    targets=["redis-cluster"], scenarios=["at-once"], nodes=None, dataset="wikipedia", copies=1, server_memory=600 << 20, scale=1.0, operations=20,
    executions=2, measurements=10, warmup=1.0, rate=None, repetitions=1, seed=42, parts=["redis-cluster-at-once-1"],
)  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "places"),
    [
        (["local-1", "local-2"], [], "with nodes on local-1, local-2, not on this machine alone"),
        (["local-1", "local-2"], ["--hosts", "local:3"], "with nodes on local-1, local-2, not on local-1, local-2, local-3"),
        ([], ["--hosts", "local:2"], "with nodes on this machine alone, not on local-1, local-2"),
    ],
)
def test_no_other_hosts_go_on_with_the_parts(cli: Cli, tmp_path: Path, before: list[str], after: list[str], places: str) -> None:
    out = tmp_path / "out"
    write_study_plan(out, BEGUN.model_copy(update={"hosts": before}))
    ended = cli("study", "run", "elasticity", *after, "--resume", "--out", out, "--no-open")
    assert ended.exit_code == 2
    assert f"was begun {places}; give the same --hosts" in " ".join(ended.err.split())


def test_the_same_hosts_go_on_with_the_parts(tmp_path: Path) -> None:
    options = ElasticityStudyOptions(targets=("redis+cluster",), scenarios=("at-once",), repetitions=1, hosts="local:2")
    plan = clusters._plan_of(options, parts_of(FILE, options))
    assert plan.hosts == ["local-1", "local-2"]
    clusters._check_same(plan, plan, tmp_path)
    write_study_plan(tmp_path, plan)
    # How they are reached is not known from their names.
    assert clusters.as_planned(ElasticityStudyOptions(), tmp_path).hosts is None
    assert (
        clusters._plan_of(clusters.as_planned(ElasticityStudyOptions(hosts="local:2"), tmp_path), parts_of(FILE, options)) == plan
    )


@pytest.mark.cluster
def test_the_study_goes_on_where_it_was_cut_short(cli: Cli, lab_home: Path, tmp_path: Path) -> None:
    out, part = tmp_path / "out", tmp_path / "out" / "redis-cluster-at-once-1"
    write_study_plan(out, BEGUN)
    # What was begun there and not ended is done again.
    part.mkdir()
    (part / "load.json").write_text("{}", encoding="utf-8")
    assert parts_left(out) == BEGUN.parts
    other = cli("study", "run", "elasticity", "--scale", "0.5", "--resume", "--out", out, "--no-open")
    assert other.exit_code == 2
    assert "was begun with other scale; leave them out to continue" in " ".join(other.err.split())

    done = cli("study", "run", "elasticity", "--resume", "--out", out, "--no-open", "--json")
    assert done.exit_code == 0, done.err
    (work,) = done.json["result"]["works"]
    assert (work["folder"], done.json["result"]["parts_left"]) == (part.name, [])
    joined, stayed = done.json["result"]["transitions"]
    assert (joined["nodes"], joined["change"]["how"], stayed["nodes"]) == (3, "once", 6)
    assert joined["stability"]["by_band"]["stable_at_s"] is not None
    verdicts = {claim["verdict"] for claim in done.json["claims"]}
    assert verdicts <= {"not tested", "below minimum scale"}

    # Nothing is left to do.
    again = cli("study", "run", "elasticity", "--resume", "--out", out, "--no-open", "--json")
    assert again.json["created"] == done.json["created"]
    # The study as a whole is one bundle.
    assert cli("bundle", out, "--out", tmp_path / "study.sbz").exit_code == 0
    verified = cli("verify", tmp_path / "study.sbz", "--json")
    assert verified.exit_code == 0, verified.err
    # What was cut short is none of what is compared.
    told = json.loads((part / "manifest.json").read_text(encoding="utf-8"))
    (part / "checksums.txt").unlink()
    (part / "manifest.json").write_text(json.dumps({**told, "status": "interrupted"}), encoding="utf-8")
    assert parts_left(out) == BEGUN.parts


def test_what_was_not_begun_is_not_gone_on_with(cli: Cli, tmp_path: Path) -> None:
    ended = cli("study", "run", "elasticity", "--resume", "--out", tmp_path / "none", "--no-open")
    assert ended.exit_code == 2
    assert "holds no parts of this study to continue" in " ".join(ended.err.split())
