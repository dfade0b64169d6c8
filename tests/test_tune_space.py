"""Search spaces and goals of `sensorbench tune`."""

from pathlib import Path

import pytest

from sensorbench.benchmarks.tune.configured import unknown_settings
from sensorbench.benchmarks.tune.goal import CapacityGoal, PercentileGoal
from sensorbench.benchmarks.tune.options import parse_start
from sensorbench.benchmarks.tune.space import SPACES, load_space
from sensorbench.errors import UsageError
from sensorbench.runner.variants import parse_target
from tests.tuning import goal_of, space_of

SHIPPED = sorted(path.stem for path in SPACES.glob("*.toml"))


# Search spaces


def test_spaces_come_for_these_databases() -> None:
    assert SHIPPED == ["cassandra", "mariadb", "postgresql", "questdb", "redis", "sqlite"]


@pytest.mark.parametrize("name", SHIPPED)
def test_the_settings_of_shipped_spaces_are_known_to_their_databases(name: str) -> None:
    space, _ = load_space(name, None)
    assert space.weaker
    assert len(space.with_durability().settings) >= 3
    for place in (0, -1):
        choices = {key: setting.choices[place] for key, setting in space.settings.items()}
        assert unknown_settings(parse_target(name), space.written(choices)) == {}


def test_values_are_written_as_in_the_servers_file(tmp_path: Path) -> None:
    space = space_of(
        'database = "null"\nfile = "f"\nline = "{key} = \'{value}\'"\n[settings.size]\nabout = "a"\nlow = 1\nhigh = 9\nunit = "MB"\n'
        '[settings.cost]\nabout = "b"\nlow = 1.0\nhigh = 2.0\n[settings.way]\nabout = "c"\nvalues = ["on", "off"]\n',
        tmp_path,
    )
    written = space.written({"size": 4, "cost": 1.23456789, "way": "on"})
    assert written == {"size": "4MB", "cost": "1.23457", "way": "on"}
    assert space.snippet(written) == "size = '4MB'\ncost = '1.23457'\nway = 'on'"


def test_what_is_no_line_of_the_servers_file_is_written_as_its_own_line_says() -> None:
    space, _ = load_space("cassandra", None)
    changed = {"default_compaction": "{class_name: X, parameters: {}}", "jvm.sstable_compression": "false"}
    assert space.snippet(changed).splitlines() == [
        "default_compaction: {class_name: X, parameters: {}}",
        "# in jvm-server.options: -Dcassandra.sstable_compression_default=false",
    ]
    assert space.described().settings["jvm.sstable_compression"].line == space.settings["jvm.sstable_compression"].line


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("values = [1]\nlow = 1", "line 4, settings.x: expected either values, or low and high"),
        ("low = 1", "expected values, or low and high"),
        ("values = []", "settings.x.values"),
        ("low = 2\nhigh = 2", "low must be below high"),
        ("low = 0\nhigh = 2\nlog = true", "log needs numbers above zero"),
        ("low = 1\nhigh = 2\nstep = 5", "step must be above zero and not above high - low"),
        ("values = [1]\nline = 'x'", "line must have {value}"),
        ("values = [1]\ncolour = 1", "line 7, settings.x.colour: unknown key"),
        ("values = [true]", "settings.x.values"),
        ("low = 1\nhigh = 2\ndurability = true", "durability needs values, the safest first"),
    ],
)
def test_a_wrong_space_is_refused_with_file_line_and_key(tmp_path: Path, setting: str, expected: str) -> None:
    with pytest.raises(UsageError) as error:
        space_of(f'database = "null"\nfile = "f"\n\n[settings.x]\nabout = "a"\n{setting}\n', tmp_path)
    assert expected in str(error.value)
    assert str(tmp_path / "space.toml") in str(error.value)


def test_what_trades_durability_is_left_out_and_nothing_else(tmp_path: Path) -> None:
    text = 'database = "null"\nfile = "f"\n[settings.a]\nabout = "a"\nvalues = [1]\ndurability = true\n'
    with pytest.raises(UsageError, match="--allow-durability"):
        space_of(text, tmp_path).with_durability()
    both = space_of(f'{text}[settings.b]\nabout = "b"\nvalues = [1]\n', tmp_path)
    assert (both.weaker, list(both.with_durability().settings)) == (["a"], ["b"])


@pytest.mark.parametrize("texts", [["a"], ["=1"], ["a=1", "a=2"]])
def test_a_start_that_is_none_is_refused(texts: list[str]) -> None:
    with pytest.raises(UsageError, match="--server-setting"):
        parse_start(texts)


# Goals


def test_goals_know_which_way_is_better() -> None:
    assert [goal_of(text).smaller_is_better for text in ("p99@2000", "capacity:p99=20ms", "load", "size")] == [
        True,
        False,
        True,
        True,
    ]
    percentile, capacity = goal_of("p999@2000"), goal_of("capacity:p99=20ms")
    assert isinstance(percentile, PercentileGoal)
    assert (percentile.percentile, percentile.step.rate_per_s) == ("p999", 2000.0)
    assert isinstance(capacity, CapacityGoal)
    assert capacity.search.objective.limit_s == 0.02


@pytest.mark.parametrize(
    "text", ["", "p99", "p42@5", "p99@0", "p99@fast", "p99@inf", "capacity", "capacity:p99", "capacity:p99=20s", "loads"]
)
def test_wrong_goals_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--goal"):
        goal_of(text)
