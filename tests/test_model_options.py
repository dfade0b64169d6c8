"""Flags that are made of a model of options, and what is said of those that make no sense."""

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from pydantic import ValidationError
from typer.testing import CliRunner

from sensorbench.benchmarks.elasticity import ElasticityOptions, ElasticityStudyOptions
from sensorbench.benchmarks.factors import FactorOptions
from sensorbench.benchmarks.mapreduce import MapReduceOptions
from sensorbench.benchmarks.stress import CapacityOptions, StressOptions
from sensorbench.benchmarks.tune import TuneOptions
from sensorbench.cli.model_options import flags_of, takes
from sensorbench.errors import UsageError
from sensorbench.options import OptionModel, option, parsed
from sensorbench.runner import ExperimentOptions, Seconds
from sensorbench.studies import StudyOptions


class Options(OptionModel):
    length: Seconds = option("2s", "How long.")
    number: int | None = option(None, "How many.", "--count", "-n", ge=1)
    way: Literal["fast", "slow"] = option("fast", "In which way.")
    files: tuple[Path, ...] = option((), "Which files.", "-f")
    pairs: Annotated[dict[str, str], parsed(lambda texts: dict(text.split("=") for text in texts), of=list)] = option(
        [], "Which pairs.", several=True
    )
    loud: bool = option(False, "Whether it is heard.")


def given(*words: str) -> Options:
    """The options that words of a command line are."""
    found: list[Options] = []
    app = typer.Typer()

    @app.command()
    @takes(Options)
    def command(options: Options, more: Annotated[int, typer.Option("--more")] = 7) -> None:
        assert more == 7
        found.append(options)

    ended = CliRunner().invoke(app, words, catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    return found[0]


def test_what_is_not_said_is_as_the_model_has_it() -> None:
    assert given() == Options() == Options(length=2.0, number=None, way="fast", files=(), pairs={}, loud=False)


def test_what_is_said_is_parsed() -> None:
    words = ["--length", "500ms", "-n", "3", "--way", "slow", "-f", "a", "-f", "b", "--pairs", "k=v", "--pairs", "l=w", "--loud"]
    said = Options(length=0.5, number=3, way="slow", files=(Path("a"), Path("b")), pairs={"k": "v", "l": "w"}, loud=True)
    assert given(*words) == said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--length 5", "--length '5': expected a length of time above zero such as 500ms, 30s, 5m or 8h"),
        ("--way late", "--way late: expected fast or slow"),
    ],
)
def test_what_makes_no_sense_is_said_of_the_flag(words: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        given(*words.split())
    assert str(refused.value) == message


def test_a_number_below_its_limit_is_refused() -> None:
    with pytest.raises(AssertionError, match="--count"):
        given("-n", "0")


MODELS = [
    StressOptions,
    CapacityOptions,
    TuneOptions,
    FactorOptions,
    MapReduceOptions,
    ElasticityOptions,
    ElasticityStudyOptions,
    StudyOptions,
    ExperimentOptions,
]


@pytest.mark.parametrize("model", MODELS)
def test_what_may_destroy_something_is_asked_of_the_command_line_alone(model: type[OptionModel]) -> None:
    flags = {flag for name, field in model.model_fields.items() for flag in flags_of(name, field)}
    assert len(flags) >= 2
    assert not flags & {"--replace", "--yes", "--force", "--drop-after"}
    assert not any(flag.startswith("--allow-") for flag in flags)


@pytest.mark.parametrize("wrong", [{"nonsense": 1}, {"replace": True}, {"records": 0}, {"arrival": "late"}])
def test_a_model_refuses_what_it_does_not_know(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        StressOptions(**wrong)
