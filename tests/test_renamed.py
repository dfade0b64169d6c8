"""Spellings of earlier versions say what to write now, and end with 2."""

import json
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import TypeAdapter

from sensorbench.benchmarks.stress import CapacityOptions, StressOptions
from sensorbench.benchmarks.tune import TuneOptions
from sensorbench.cli.renamed import RENAMED, Renamed
from sensorbench.compat.ycsb import YcsbOptions
from sensorbench.options import DEFAULT_SEED
from sensorbench.results.as_written import AsWritten, PresentKeys
from sensorbench.results.described import ComparisonWorkload
from sensorbench.results.planned import ElasticityWorkload
from sensorbench.results.reader import read_run
from sensorbench.results.summary.comparison import RateChange
from sensorbench.runner import Workload
from sensorbench.studies import StudyOptions
from tests.conftest import Cli

# What stands between a command and its options.
WORDS = {"study run": ("iot",), "lab up": ("postgresql",), "study show": ("iot",)}


@pytest.mark.parametrize("renamed", RENAMED, ids=lambda renamed: f"{renamed.command} {renamed.old}".strip())
def test_an_old_spelling_says_the_new_one(cli: Cli, renamed: Renamed) -> None:
    words = WORDS.get(renamed.command, ()) if renamed.old else ()
    ended = cli(*renamed.command.split(), *words, *([renamed.old, "1"] if renamed.old else []))
    assert ended.exit_code == 2
    said = " ".join(ended.err.split())
    assert f"{renamed.old or renamed.command} is an earlier spelling: use `{renamed.new}`" in said
    assert ended.out == ""


@pytest.mark.parametrize("renamed", RENAMED, ids=lambda renamed: f"{renamed.command} {renamed.old}".strip())
def test_the_new_spelling_is_there(cli: Cli, renamed: Renamed) -> None:
    """What the table says exists: the command's help has it."""
    new = renamed.new.split()
    names = [word for word in new if not word.startswith("-") and word.islower() and word != "sensorbench"]
    command = (names if new[0] == "sensorbench" else renamed.command.split()) or renamed.command.split()
    helped = cli(*command, *WORDS.get(" ".join(command), ())[:1] * (command == ["study", "run"]), "--help")
    assert helped.exit_code == 0, helped.err
    for option in (word for word in new if word.startswith("-")):
        assert option in helped.out
    # Where the command is the same, it has lost the old option.
    if renamed.old and command == renamed.command.split():
        assert f"{renamed.old} " not in helped.out


def test_an_option_that_never_was_is_unknown_as_before(cli: Cli) -> None:
    ended = cli("stress", "--find-nothing")
    assert (ended.exit_code, "No such option" in ended.err, "earlier spelling" in ended.err) == (2, True, False)
    ended = cli("nothing")
    assert (ended.exit_code, "No such command" in ended.err) == (2, True)


def test_a_value_is_no_old_command(cli: Cli) -> None:
    """`aa` may be a file or a name where a command takes one."""
    ended = cli("study", "show", "aa")
    assert (ended.exit_code, "earlier spelling" in ended.err) == (2, False)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"warm_up": 0, "repeat": 3}, {"warmup": "0", "repetitions": 3}),
        ({"warm_up": 40}, {"warmup": 40}),
        ({"warm_up": "500ms"}, {"warmup": "500ms"}),
        ({"warm_up_s": 2.5, "seed": 1}, {"warmup_s": 2.5, "seed": 1}),
        ({"warmup": "10s", "repetitions": 2}, {"warmup": "10s", "repetitions": 2}),
    ],
)
def test_workloads_of_earlier_results_have_the_present_words(written: dict[str, Any], read: dict[str, Any]) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(Annotated[ComparisonWorkload, AsWritten, PresentKeys])
    assert adapter.validate_python(written) == read


def test_runs_of_earlier_results_have_the_present_words() -> None:
    earlier = (Path(__file__).parent / "fixtures/format-1-stress/runs/001/manifest.json").read_text(encoding="utf-8")
    assert json.loads(earlier)["repeat"] == 1
    read = read_run(Path(__file__).parent / "fixtures/format-1-stress/runs/001").manifest
    assert read.repetition == 1
    assert json.loads(read.model_dump_json())["repetition"] == 1
    assert "repeat" not in read.model_dump()
    change = RateChange.model_validate({"repeat": 2, "time_s": 1.0, "before_per_s": 5.0, "after_per_s": 6.0})
    assert change.repetition == 2


def test_the_warm_up_of_earlier_elasticity_results_is_in_measurements() -> None:
    numbers = ("requests_per_thread", "threads_per_node", "executions", "timeout_s", "before", "after", "max_s", "seed")
    common = {**dict.fromkeys(numbers, 1), "rate_per_node": None, "mix": {}, "grows": True}
    earlier = ElasticityWorkload.model_validate({**common, "warm_up": 2})
    assert (earlier.warmup_measurements, earlier.warmup_s) == (2, None)
    again = ElasticityWorkload.model_validate_json(earlier.model_dump_json())
    assert again == earlier
    now = ElasticityWorkload.model_validate({**common, "warmup_s": 30.0})
    assert (now.warmup_measurements, now.warmup_s) == (None, 30.0)


@pytest.mark.parametrize("model", [StressOptions, CapacityOptions, TuneOptions, YcsbOptions, StudyOptions, Workload])
def test_one_seed_counts_where_none_is_given(model: Any) -> None:
    assert model.model_fields["seed"].default == DEFAULT_SEED


@pytest.mark.parametrize(("warmup", "length_s"), [("0", None), ("250ms", 0.25), ("2m", 120.0)])
def test_a_comparison_warms_up_by_time(warmup: str, length_s: float | None) -> None:
    phases = Workload(mix={"any": 1}, operations=10, warmup=warmup).phases(0, 1)
    assert [phase["name"] for phase in phases] == (["warm_up", "measure"] if length_s else ["measure"])
    if length_s:
        assert phases[0]["duration_s"] == length_s
        assert "operations" not in phases[0]
