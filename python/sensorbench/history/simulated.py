"""Which steps of a history are found, by simulation: `make bench-history` writes `simulated.json`."""

import math
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, Field

FILE = "simulated.json"
# Within this many values a step must be found, in this share of cases.
WITHIN = 5
POWER = 0.9


class SimulatedPower(BaseModel):
    """The smallest step that is found by histories of some length."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    before: int = Field(description="Values before the step.")
    deviations: float = Field(description="The step, as a logarithm, in standard deviations of the logarithms between values.")


class SimulatedStep(BaseModel):
    """The step that `history show` calls detectable at some variation after 50 values, and in which share of histories it is found."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    variation: float
    detectable: float
    found: float


class RealSimulation(BaseModel):
    """What histories gave whose values differ as repetitions of one variant do in results that this project keeps."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str = Field(description="The bundle of evidence.")
    sha256: str = Field(description="Of its file.")
    metric: str
    machine: str
    cells: int = Field(description="Operations of variants that were repeated three times or more.")
    repetitions: int = Field(description="Of all cells.")
    steady: int = Field(description="Cells that vary by 2.5% or less.")
    false_alarms_per_100: float
    found: float = Field(description="Share of 5% steps found within five values where such noise is scaled to 2.5%.")
    steps: list[SimulatedStep] = Field(description="At the quartiles of the cells' variations.")
    gate_slower: float = Field(description="Share of gates that find a slowdown at the median variation where there is none.")
    gate_detectable: float = Field(description="The slowdown that a gate calls detectable at the median variation.")
    gate_found: float = Field(description="Share of gates that find it.")


class SimulatedHistories(BaseModel):
    """What simulated histories gave."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    simulations: int
    within: int
    power: float
    false_alarms_per_100: dict[str, float] = Field(description="By how the noise is distributed.")
    found: dict[str, float] = Field(description="Share of 5% steps found within five values, by the coefficient of variation.")
    smallest: list[SimulatedPower]
    real: list[RealSimulation] = Field(default=[], description="With the variation of stored results.")


@cache
def simulated_histories() -> SimulatedHistories:
    """What the simulation gave that is stored with the package."""
    return SimulatedHistories.model_validate_json(files("sensorbench.history").joinpath(FILE).read_text(encoding="utf-8"))


def detectable_step(variation: float, before: int) -> float | None:
    """The smallest step that is found within five values in nine of ten cases.

    Args:
        variation: coefficient of variation between values of one level.
        before: how many values the level has.

    Returns:
        As a share: 0.05 for 5%. None if the level is shorter than those that were simulated.

    """
    known = [power for power in simulated_histories().smallest if power.before <= before]
    return math.expm1(known[-1].deviations * math.log1p(variation)) if known else None
