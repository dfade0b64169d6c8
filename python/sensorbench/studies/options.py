"""What can be chosen of a study that compares databases and schemas."""

from typing import Annotated, get_args

from pydantic import AfterValidator, model_validator

from sensorbench.errors import UsageError
from sensorbench.options import option
from sensorbench.runner import (
    FILE_URL,
    SERVER_URL,
    BlockOptions,
    GeneratorOptions,
    Length,
    LengthOrNone,
    RankingOptions,
    RateOptions,
    RepetitionOptions,
    Schedule,
    Seconds,
    ServerOptions,
    SweepOptions,
)


def _arrival(text: str) -> str:
    arrivals = get_args(Schedule.model_fields["arrival"].annotation)
    if text not in arrivals:
        raise ValueError(f"{text}: expected one of {', '.join(arrivals)}")
    return text


# Of a study, if neither a budget nor a scale is given.
DEFAULT_BUDGET_S = 1200.0


class StudyOptions(GeneratorOptions, SweepOptions, RankingOptions, ServerOptions, BlockOptions, RateOptions, RepetitionOptions):
    """What a user may change; the study decides where nothing is said."""

    scale: float | None = option(None, "Share of the dataset to use. If not given, --budget chooses it.")
    budget: Seconds | None = option(
        None,
        "Choose scale, operations and repetitions with a pilot run so that the study ends in this time: 20m, 2h. 20m if neither this nor --scale is given.",
    )
    max_variant_time: Length | None = option(
        None,
        "Time limit of each run of a variant; a slow variant executes only the first of the operations.",
    )
    max_load_time: Length | None = option(
        None, "Time limit for loading a variant, after which it has failed: 10m. The study's own if not given."
    )
    targets: tuple[str, ...] = option(
        (),
        f"A system of the study, a database's name, or a URL ({FILE_URL}, {SERVER_URL}). May be given several times.",
        "--target",
    )
    nodes: int | None = option(None, "Nodes of each cluster that the lab starts; the study's number if not given.", ge=1)
    schemas: tuple[str, ...] = option((), "Only schemas of this name. May be given several times.", "--schema")
    datasets: tuple[str, ...] = option(
        (),
        "Name of a dataset, folder of an imported one, or a mapping file. May be given several times; each is compared separately.",
        "--dataset",
    )
    parts: tuple[str, ...] = option((), "Run only this part of a study. May be given several times.", "--part")
    operations: int | None = option(None, "Requests per run; the study's number if not given, fewer at scales below 0.1.", ge=1)
    duration: Length | None = option(None, "Length of a run instead of a number of requests: 30s, 5m, 8h.")
    warmup: LengthOrNone | None = option(None, "Warm-up before each run; 0 for none, the study's own if not given.")
    arrival: Annotated[str, AfterValidator(_arrival)] | None = option(None, "Arrivals at a rate: constant or poisson.")
    registers: int | None = option(
        None,
        "Also write and read registers, each with this weight among the study's operations, and check the databases' consistency guarantees.",
        ge=1,
    )

    @model_validator(mode="after")
    def _check(self) -> "StudyOptions":
        """Raises UsageError for options that contradict one another."""
        if self.operations is not None and self.duration is not None:
            raise UsageError("--operations and --duration both say when a run ends; give one of them")
        if self.duration is not None and self.max_variant_time is not None:
            raise UsageError("--duration and --max-variant-time both say after which time a run ends; give one of them")
        if self.arrival is not None and self.rate is None:
            raise UsageError(f"--arrival {self.arrival}: give the rate of arrivals with --rate")
        return self

    @property
    def used_scale(self) -> float:
        """Share of the dataset that is used: all of it, if nothing is said."""
        return 1.0 if self.scale is None else self.scale
