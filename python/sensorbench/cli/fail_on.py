"""`--fail-on`: conditions on results that end a command with exit code 1, for scripts. The results are written and printed all the same."""

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from sensorbench.errors import FailedError, UsageError
from sensorbench.report import formatting
from sensorbench.results.summary.stress import StressFigures, StressStep
from sensorbench.runner import seconds

LATENCIES = {
    "mean": "mean",
    "median": "median",
    "p50": "median",
    "p90": "p90",
    "p95": "p95",
    "p99": "p99",
    "p99.9": "p999",
    "p999": "p999",
    "max": "max",
}
COUNTS = ("errors", "dropped")
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_CONDITION = re.compile(r"\s*(?P<what>[a-z][a-z0-9.]*)\s*(?P<compare>>=|<=|>|<)\s*(?P<limit>\S.*?)\s*")
_EXAMPLES = "'p99>20ms', 'mean>2ms', 'errors>0', 'dropped>1%' or 'capacity<5000'"

FailOnLoad = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        help="End with exit code 1 if this holds at a rate: p99>20ms, errors>0, dropped>1%; or capacity<5000. May be given several times.",
        show_default=False,
    ),
]
FailOnFindings = Annotated[
    str | None,
    typer.Option("--fail-on", help="End with exit code 1 if any of these is found: lost,stale.", show_default=False),
]
FailOnSlower = Annotated[
    str | None,
    typer.Option(
        "--fail-on",
        help="slower: end with exit code 1 if A is significantly slower than B at an operation, and by more than the margin.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class LoadCondition:
    """A figure of a step of load, and the limit that it is compared with: in s for latencies, a count or a share for counts."""

    text: str
    what: str
    holds: Callable[[float, float], bool]
    limit: float
    is_share: bool = False

    def at(self, step: StressStep) -> str | None:
        """What the step has instead, if the condition holds there. A latency that no operation has is beyond every limit."""
        if self.what in COUNTS:
            counts = step.counts
            found = float(counts.dropped if self.what == "dropped" else counts.error + counts.timeout)
            if self.is_share:
                found = found / counts.offered if counts.offered else 0.0
            shown = formatting.percent(found) if self.is_share else f"{found:,.0f}"
        elif step.response_s is None:
            return "no operation ended"
        else:
            found = float(getattr(step.response_s, LATENCIES[self.what]))
            shown = formatting.duration(found)
        return f"{self.what} was {shown}" if self.holds(found, self.limit) else None


def parse_load_conditions(texts: Sequence[str] | None) -> list[LoadCondition]:
    """Conditions as --fail-on has them; one text may have several with commas between. Raises UsageError."""
    return [_condition(part) for text in texts or () for part in text.split(",")]


def _condition(text: str) -> LoadCondition:
    found = _CONDITION.fullmatch(text)
    if not found or found["what"] not in (*LATENCIES, *COUNTS, "capacity"):
        raise UsageError(
            f"--fail-on {text}: expected one of {', '.join((*LATENCIES, *COUNTS, 'capacity'))}, then >, >=, < or <=, then a limit: {_EXAMPLES}"
        )
    what, limit = found["what"], found["limit"]
    holds = _COMPARE[found["compare"]]
    if what in LATENCIES:
        try:
            return LoadCondition(text.strip(), what, holds, seconds(limit))
        except ValueError as error:
            raise UsageError(f"--fail-on {text}: {error}") from None
    is_share = limit.endswith("%") and what in COUNTS
    try:
        number = float(limit.removesuffix("%") if is_share else limit)
    except ValueError:
        number = -1.0
    if not 0.0 <= number < float("inf"):
        expected = "operations per second: 5000" if what == "capacity" else "a count or a share of the arrivals: 0 or 1%"
        raise UsageError(f"--fail-on {text}: expected {expected}")
    return LoadCondition(text.strip(), what, holds, number / 100.0 if is_share else number, is_share)


def check_load_conditions(conditions: Sequence[LoadCondition], *, has_capacity: bool) -> None:
    """Raises UsageError for a condition on what a run does not have."""
    for condition in conditions:
        if condition.what == "capacity" and not has_capacity:
            raise UsageError(
                f"--fail-on {condition.text}: this run does not search the capacity; expected a condition on latencies, errors or dropped"
            )


def fail_on_load(conditions: Sequence[LoadCondition], result: StressFigures) -> None:
    """Raises FailedError that says which conditions hold, and where: at which of the rates that were held, or at the capacity."""
    held = [_held(condition, result) for condition in conditions]
    _fail(line for line in held if line)


def _held(condition: LoadCondition, result: StressFigures) -> str | None:
    capacity = result.capacity
    if condition.what == "capacity":
        # Where no rate met the objective, there is none that could be kept.
        met = (capacity.met_per_s if capacity else None) or 0.0
        shown = f"the capacity was {formatting.count(met)}/s"
        return f"{condition.text} holds: {shown}" if condition.holds(met, condition.limit) else None
    steps = result.steps
    if capacity is not None and capacity.met_per_s is not None:
        # A search goes beyond the capacity on purpose.
        steps = [step for step in steps if step.rate_per_s == capacity.met_per_s] or steps
    at = [(step.rate_per_s, found) for step in steps if (found := condition.at(step))]
    if not at:
        return None
    more = f" (and at {len(at) - 1} more)" if len(at) > 1 else ""
    return f"{condition.text} holds: {at[0][1]} at {formatting.count(at[0][0])}/s{more}"


# What --fail-on calls a finding.
_FINDINGS = {
    "lost": "lost_writes",
    "stale": "stale_reads",
    "non-monotonic": "non_monotonic_reads",
    "never-written": "never_written",
    "failed-seen": "failed_writes_seen",
    "possibly-stale": "possibly_stale_reads",
}


def parse_findings(text: str | None) -> dict[str, str]:
    """The findings that --fail-on names, by these names. Raises UsageError."""
    names = [name.strip() for name in text.split(",")] if text is not None else []
    for name in names:
        if name not in _FINDINGS:
            raise UsageError(
                f"--fail-on {text}: there is no {name!r}; expected some of {', '.join(_FINDINGS)}, with commas between"
            )
    return {name: _FINDINGS[name] for name in names}


def fail_on_findings(names: dict[str, str], counts: Callable[[str], int]) -> None:
    """Raises FailedError that says which of the findings there are; `counts` has the number of each."""
    _fail(f"{name}: {counts(finding):,} found" for name, finding in names.items() if counts(finding))


def check_slower(text: str | None) -> bool:
    """Whether --fail-on slower was given. Raises UsageError for anything else."""
    if text not in {None, "slower"}:
        raise UsageError(f"--fail-on {text}: expected slower")
    return text is not None


def fail_on_slower(slower: Sequence[str]) -> None:
    """Raises FailedError that names what is slower."""
    _fail([f"slower: {', '.join(slower)}"] if slower else [])


def _fail(lines: Iterable[str]) -> None:
    if said := "; ".join(lines):
        raise FailedError(f"--fail-on {said}")
