"""Options that benchmarks of several kinds have, where a study says what they do."""

from typing import Annotated

from pydantic import AfterValidator

from sensorbench.options import DEFAULT_SEED, OptionModel, option, parsed
from sensorbench.runner.sweep import parse_sweeps


def _above_zero(rate: float) -> float:
    if not rate > 0.0:
        raise ValueError(f"{rate:g}: expected a number of operations a second, above 0")
    return rate


# Operations a second, which come however many are in flight.
Rate = Annotated[float, AfterValidator(_above_zero)]


class StudyRunOptions(OptionModel):
    """What can be chosen of each study. `repetitions` is as the study has it if it is None."""

    scale: float = option(1.0, "Share of the dataset that is used.")
    seed: int = option(DEFAULT_SEED, "Seed of generated data and of operations.")
    repetitions: int | None = option(None, "Runs of each variant.", ge=1)


class RateOptions(OptionModel):
    """How requests of a study come: as the study has it where nothing is said."""

    concurrency: int | None = option(None, "Requests in flight; with --rate, at most.", ge=1)
    rate: Rate | None = option(None, "Requests per second that come whether or not others are answered (an open loop).")


class SweepOptions(OptionModel):
    """Which values are compared with one another, by the name of the factor."""

    sweeps: Annotated[dict[str, list[str]], parsed(parse_sweeps, of=list)] = option(
        [],
        "Compare values of a target's option or of a schema's parameter: consistency=one,quorum. May be given several times; all choices are compared.",
        "--sweep",
        several=True,
    )


class RankingOptions(OptionModel):
    """What is ranked."""

    include_outdated: bool = option(
        False, "Rank outdated versions of databases against current ones; else they are ranked only among themselves."
    )


class ChangeOptions(OptionModel):
    """What of an experiment file is changed."""

    changes: tuple[str, ...] = option(
        (), "Change a key of the file: workload.operations=500. May be given several times.", "--set"
    )


class ExperimentOptions(SweepOptions, RankingOptions, ChangeOptions):
    """What can be chosen of an experiment file."""
