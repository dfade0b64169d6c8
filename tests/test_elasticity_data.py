"""What of the data lies on which node: how many parts there are at the start, what moved, and what a node may use."""

from pathlib import Path

import numpy as np
import pytest

from sensorbench.benchmarks.elasticity import ElasticityBenchmark, ElasticityOptions, ElasticitySpec, planned, spec_of
from sensorbench.benchmarks.elasticity.moves import data_moves
from sensorbench.dataset import open_dataset
from sensorbench.errors import FailedError, UsageError
from sensorbench.lab.limits import Limits, of_more_nodes
from sensorbench.results.insight import Insight, Series
from sensorbench.runner import Servers
from sensorbench.schemas import load_operations, load_schema


def spec(*changes: str, nodes: int, copies: int = 1, no_growth: bool = False) -> ElasticitySpec:
    options = ElasticityOptions(targets=("hbase",), nodes=nodes, changes=changes, copies=copies, no_growth=no_growth)
    return spec_of(options, "hbase", 0, open_dataset("wikipedia"))


@pytest.mark.parametrize(
    ("asked", "copies", "parts_of_a_copy"),
    [
        # Six nodes are to have eight parts each of the first copy, which is all that there is when they join.
        (spec("join:3@once", nodes=3), 1, 48),
        # Twelve nodes have two copies then, and four times as many nodes as at the start four.
        (spec("join:3", "join:6", nodes=3), 2, 48),
        (spec("join:3", "stay", nodes=3, copies=4), 8, 12),
        (spec("join", "join", nodes=1, no_growth=True), 1, 24),
        (spec("leave", nodes=3), 1, 24),
    ],
)
def test_each_node_has_eight_parts_of_the_articles_that_there_are(
    asked: ElasticitySpec, copies: int, parts_of_a_copy: int
) -> None:
    rows = asked.dataset.describe().readings
    assert rows == 126
    assert len(asked.borders) == copies * parts_of_a_copy - 1
    of_copies = np.bincount((np.array([1, *asked.borders]) - 1) // rows)
    assert of_copies.tolist() == [parts_of_a_copy] * copies


def test_tables_are_made_of_their_parts_where_a_benchmark_says_so(tmp_path: Path) -> None:
    of_run = planned(spec("join", nodes=1), tmp_path).bench.created
    assert len(of_run["table"]["articles"]["splits"]) == 15
    schema, operations = load_schema("by_id", operations="articles", database="hbase"), load_operations("articles")
    assert "splits" not in str(schema.driver_schema(operations, [], {})["create"])
    wrong = schema.with_file(schema.file.model_copy(update={"split": ["texts"]})).split_at([5])
    with pytest.raises(UsageError, match=r"split: there is no create\.table\.texts"):
        wrong.driver_schema(operations, [], {})


def told(**series: tuple[list[float], list[float]]) -> Insight:
    """What a node said: of each quantity the moments, and the values."""
    return Insight({name: Series(np.array(times_s), np.array(values)) for name, (times_s, values) in series.items()}, {})


BEFORE = told(data_parts=([1.0, 5.0, 9.0], [16.0, 16.0, 8.0]), table_bytes=([1.0, 9.0], [900.0, 500.0]))


def test_what_moved_is_what_nodes_have_more_than_before() -> None:
    joined = told(data_parts=([6.0, 7.0, 8.0, 9.0], [0.0, 3.0, 8.0, 8.0]), table_bytes=([6.0, 9.0], [0.0, 400.0]))
    found = data_moves({"a": BEFORE, "b": joined, "coordinator": told(disk_bytes=([1.0], [7.0]))}, 4.0, joins=True)
    assert found is not None
    assert found.nodes.keys() == {"a", "b"}
    assert (found.nodes["a"].parts.before, found.nodes["a"].parts.after) == (16.0, 8.0)
    assert (found.nodes["b"].parts.before, found.nodes["b"].bytes.after) == (None, 400.0)
    assert (found.joined, found.without_data) == (["b"], [])
    assert (found.moved_parts, found.moved_bytes) == (8, 400.0)
    # The first came between 6 and 7 s, and the last went between 8 and 9 s.
    assert found.moving_s == 2.0


@pytest.mark.parametrize(
    ("joined", "is_empty"),
    [
        # Empty regions are not data; nor is a ring's place without any.
        (told(data_parts=([6.0], [8.0]), table_bytes=([6.0], [0.0])), True),
        (told(data_parts=([6.0], [0.0])), True),
        (told(data_parts=([6.0], [1.0])), False),
        # Of those that report neither, the requests count.
        (told(requests=([6.0, 9.0], [0.0, 0.0])), True),
        (told(requests=([6.0, 9.0], [0.0, 7.0])), False),
        (told(disk_bytes=([6.0], [7.0])), False),
    ],
)
def test_a_node_that_joins_and_holds_nothing_is_named(joined: Insight, is_empty: bool) -> None:
    found = data_moves({"a": BEFORE, "b": joined}, 4.0, joins=True)
    assert found is not None
    assert found.without_data == (["b"] if is_empty else [])
    killed = data_moves({"a": BEFORE, "b": joined}, 4.0, joins=False)
    assert killed is not None
    assert killed.without_data == []


def test_of_nodes_that_do_not_tell_nothing_is_said() -> None:
    assert data_moves({"a": told(memory_bytes=([1.0], [7.0]))}, 4.0, joins=True) is None
    assert data_moves({"a": BEFORE}, None, joins=True) is None


def test_the_memory_of_a_cluster_grows_with_its_nodes(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    of_three = Limits(memory_bytes=3 << 30, memory_by="cgroup v2", group=str(tmp_path))
    assert of_more_nodes(of_three, 3, 6).memory_bytes == 6 << 30
    assert limit.read_text() == str(6 << 30)
    assert of_more_nodes(of_three, 3, 2).memory_bytes == 2 << 30
    assert of_more_nodes(Limits(), 3, 6) == Limits()
    # What nobody limits here is not written anywhere.
    noted = Limits(memory_bytes=3 << 30, memory_by="not available here (no cgroup)")
    assert of_more_nodes(noted, 3, 6).memory_bytes == 6 << 30
    with pytest.raises(FailedError, match="cannot become"):
        of_more_nodes(of_three.model_copy(update={"group": str(tmp_path / "gone")}), 3, 6)


def test_the_memory_of_a_node_is_known_of_the_lab_and_told_by_users() -> None:
    options = ElasticityOptions(targets=("hbase",), nodes=3, server_memory="3G")
    assert spec_of(options, "hbase", 0, open_dataset("wikipedia")).node_memory_bytes == 1 << 30
    assert spec("join", nodes=3).node_memory_bytes is None
    own = ElasticityOptions(targets=("cassandra://db",), nodes=2, add_node_command="true", node_memory="2G")
    assert spec_of(own, "cassandra://db", 0, open_dataset("wikipedia")).node_memory_bytes == 2 << 30
    ring = ElasticityOptions(targets=("cassandra",), nodes=3, server_memory="3G", settings=("jvm.heap=256M",))
    # The heap, and what idle nodes were seen to take beside it.
    assert spec_of(ring, "cassandra", 0, open_dataset("wikipedia")).node_idle_bytes == (256 << 20) + 450_000_000
    # Half of a node's memory, an eighth for its gateway, and what both take beside their heaps.
    assert spec_of(options, "hbase", 0, open_dataset("wikipedia")).node_idle_bytes == (640 << 20) + 200_000_000
    heaps = options.model_copy(update={"settings": ("jvm.heap=384M", "jvm.gateway_heap=128M")})
    assert spec_of(heaps, "hbase", 0, open_dataset("wikipedia")).node_idle_bytes == (512 << 20) + 200_000_000
    assert spec_of(own, "cassandra://db", 0, open_dataset("wikipedia")).node_idle_bytes is None
    with pytest.raises(UsageError, match="--node-memory: hbase is a cluster of the lab; give --server-memory"):
        spec_of(options.model_copy(update={"node_memory": 1}), "hbase", 0, open_dataset("wikipedia"))


def test_the_manifest_names_the_hosts_that_may_have_nodes(tmp_path: Path) -> None:
    for text, names in ((None, []), ("local:4", [f"local-{number}" for number in range(1, 5)])):
        options = ElasticityOptions(targets=("redis+cluster",), hosts=text)
        plan = planned(spec_of(options, "redis+cluster", 0, open_dataset("wikipedia")), tmp_path)
        described = ElasticityBenchmark().describe(plan, Servers({})).plan
        # All requests come from this process.
        assert (described.hosts, described.workload.hosts) == (names, [])
