"""What the doctor says: checks, the noise of an A/A run, and the verdict that follows from them."""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from sensorbench.benchmarks.doctor.ceilings import Figure

State = Literal["ok", "warning", "problem", "unknown"]

# A latency is trusted where what the client adds to it is at most this share of it.
MAX_CLIENT_SHARE = 0.1


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Check(_Part):
    """One thing that was looked at."""

    name: str
    state: State
    measured: str = Field(description="What was found, with its unit.")
    action: str = Field(default="", description="What to do about it; empty if nothing is to be done.")


class OperationNoise(_Part):
    """How the two sides of an A/A run compare in one operation; without a difference the ratio is 1."""

    operation: str
    a_s: float
    b_s: float
    ratio: float
    low: float | None
    high: float | None
    verdict: str


class Noise(_Part):
    """An A/A run: one variant measured against itself."""

    experiment: str
    operations: list[OperationNoise]
    different: list[str] = Field(description="Operations in which a difference was seen where there is none.")
    detectable: float | None = Field(description="The smallest relative difference that such a run can see in all operations.")
    report: str


class Diagnosis(_Part):
    """Whether a machine is fit to measure."""

    quick: bool
    checks: list[Check]
    trusted_above_s: float | None = Field(description="From which latency on figures can be trusted; null if none can.")
    timer_lag_s: float | None = Field(
        default=None,
        description="How late the client's timer is, at the 99th percentile; null in what earlier versions printed.",
    )
    verdict: str
    ceilings: dict[str, Figure | None] = Field(description="What the client can do at most on this machine.")
    noise: Noise | None = None


def diagnosis_of(
    checks: Sequence[Check],
    lag_s: float,
    resolution_s: float,
    ceilings: dict[str, Figure | None],
    noise: Noise | None,
    *,
    quick: bool,
) -> Diagnosis:
    """The diagnosis that follows from checks and figures.

    Args:
        checks: all checks, with that of the noise where there is an A/A run.
        lag_s: the 99th percentile of what the client adds to a response time.
        resolution_s: the smallest step of the clock.
        ceilings: what the client can do at most.
        noise: the A/A run, if there was one.
        quick: whether measurements were short.

    """
    problems = [check.name for check in checks if check.state == "problem"]
    trusted_above_s = None if problems else max(lag_s, resolution_s) / MAX_CLIENT_SHARE
    return Diagnosis(
        quick=quick,
        checks=list(checks),
        trusted_above_s=trusted_above_s,
        timer_lag_s=lag_s,
        verdict=_verdict(checks, problems, trusted_above_s, noise),
        ceilings=ceilings,
        noise=noise,
    )


def _verdict(checks: Sequence[Check], problems: Sequence[str], trusted_above_s: float | None, noise: Noise | None) -> str:
    if trusted_above_s is None:
        return f"No latency can be trusted on this machine as it is. Solve first: {', '.join(problems)}."
    sentences = [f"Latencies above {_milliseconds(trusted_above_s)} ms can be trusted on this machine."]
    if noise is not None and noise.detectable is not None:
        sentences.append(f"Of {noise.experiment}, differences above {noise.detectable:.1%} can be seen.")
    if warned := [check.name for check in checks if check.state == "warning"]:
        sentences.append(f"Expect more noise: {', '.join(warned)}.")
    return " ".join(sentences)


def _milliseconds(seconds: float) -> str:
    """Two significant digits, rounded up: a verdict must not promise more than was measured."""
    milliseconds, step = seconds * 1e3, 1.0
    while milliseconds / step < 10.0:
        step /= 10.0
    while milliseconds / step >= 100.0:
        step *= 10.0
    rounded = -(-milliseconds // step) * step
    return f"{rounded:.6f}".rstrip("0").rstrip(".")
