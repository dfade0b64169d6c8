"""`make bench-history`: how often change points of a history and gates are false alarms, and what they find, on figures that are made up and on
figures that vary as those of stored results do.

Writes `simulated.json` of the package, by which `history show` says which step could be seen, and the table in docs/reference/history-simulation.md.
"""

import argparse
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benches.real_variation import Noise, RealNoise, real_noises
from numpy.typing import NDArray

from sensorbench.analysis.gate import LOOKS, GateLook, decide, detectable, look_levels, looks_until
from sensorbench.analysis.intervals import product_over_runs
from sensorbench.analysis.level_shifts import MAX_AFTER, MIN_AFTER, MIN_BEFORE, PERMUTATIONS, SIGNIFICANCE, WINDOW, level_shifts
from sensorbench.history.simulated import (
    FILE,
    POWER,
    WITHIN,
    RealSimulation,
    SimulatedHistories,
    SimulatedPower,
    SimulatedStep,
    detectable_step,
    simulated_histories,
)

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "docs/reference/history-simulation.md"
COMMITS, STEP = 100, 0.05
VARIATIONS = (0.01, 0.02, 0.025, 0.03, 0.05, 0.1)
BEFORE = (10, 20, 30, 50, 100)
SEARCHED = (1.4, 8.0)
# Gates.
RATIOS, DEVIATIONS, MARGIN = (1.0, 1.05, 1.1, 1.2), (0.02, 0.05, 0.1), 0.05
# Variation at which a step of 5% is promised to be found, and after how many values.
STEADY, KNOWN = 0.025, 50
# How far the place of a change may be from where it is.
MAX_OFF = 3

Floats = NDArray[np.float64]


def normal(generator: np.random.Generator, count: int) -> Floats:
    """Independent values of a normal distribution."""
    return generator.standard_normal(count)


def heavy(generator: np.random.Generator, count: int) -> Floats:
    """Independent values of Student's t with 3 degrees of freedom, of standard deviation 1: noisy runners have spikes."""
    return np.asarray(generator.standard_t(3, count) / np.sqrt(3.0))


def skewed(generator: np.random.Generator, count: int) -> Floats:
    """Independent values that are far off upwards alone, of standard deviation 1."""
    return generator.exponential(1.0, count) - 1.0


NOISES: dict[str, Noise] = {"normal": normal, "Student's t, 3 degrees": heavy, "exponential": skewed}


def false_alarms(noise: Noise, histories: int, variation: float = 0.025) -> float:
    """Changes that are found in a hundred values behind the first ones, where there is none."""
    generator = np.random.default_rng(1)
    first = MIN_BEFORE + MIN_AFTER
    found = 0
    for number in range(histories):
        values = np.exp(np.log1p(variation) * noise(generator, COMMITS + first))
        found += len(level_shifts(values, seed=number, from_value=first))
    return found / histories


def found_share(step_log: float, variation: float, before: int, histories: int, noise: Noise = normal) -> float:
    """The share of histories in which a step is found, in its direction, within five values behind it."""
    generator = np.random.default_rng(2)
    hits = 0
    for number in range(histories):
        logs = np.log1p(variation) * noise(generator, before + WITHIN)
        logs[before:] += step_log
        shifts = level_shifts(np.exp(logs), seed=number, from_value=before)
        hits += any(abs(shift.place - before) <= MAX_OFF and (shift.ratio > 1.0) == (step_log > 0.0) for shift in shifts)
    return hits / histories


def smallest_deviations(before: int, histories: int) -> float:
    """The smallest step, in standard deviations, that is found in nine of ten histories of this many values."""
    low, high = SEARCHED
    while high - low > 0.02:
        middle = (low + high) / 2
        low, high = (low, middle) if found_share(middle, np.e - 1.0, before, histories) >= POWER else (middle, high)
    return round(high, 2)


@dataclass(frozen=True)
class GateShares:
    """How gates end: shares of the sessions, and how many repetitions they make on average."""

    slower: float
    not_slower: float
    undecided: float
    repetitions: float


def gate_shares(
    ratio: float, deviation: float, sessions: int, *, seed: int, margin: float = MARGIN, noise: Noise = normal
) -> GateShares:
    """How gates end whose head is this many times as slow as base, and whose repetitions vary by this much on a logarithmic scale."""
    generator = np.random.default_rng(seed)
    levels = look_levels(looks_until(LOOKS[-1]), 1)
    ends: list[tuple[str, int]] = []
    for _ in range(sessions):
        base, again, head = np.exp(deviation * noise(generator, 3 * LOOKS[-1]).reshape(3, -1))
        word, runs = "undecided", 0
        for level in levels:
            runs = level.runs
            contrast = ratio * head[:runs] / np.sqrt(base[:runs] * again[:runs])
            look = GateLook(
                product_over_runs([contrast], level.slower),
                product_over_runs([contrast], level.not_slower),
                product_over_runs([again[:runs] / base[:runs]], level.not_slower),
            )
            word = decide(look, margin)
            if word != "undecided":
                break
        ends.append((word, runs))
    slower, not_slower, undecided = (
        sum(word == wanted for word, _ in ends) / sessions for wanted in ("slower", "not slower", "undecided")
    )
    return GateShares(slower, not_slower, undecided, sum(runs for _, runs in ends) / sessions)


def simulated_real(noise: RealNoise, count: int) -> RealSimulation:
    """Histories and gates whose values differ as repetitions do in stored results."""
    low, middle, high = np.quantile(noise.variations, (0.25, 0.5, 0.75))
    deviation, near = float(np.log1p(middle)), noise.near(middle)
    of_gate = detectable(deviation * np.sqrt(2.0), look_levels(looks_until(LOOKS[-1]), 1)[-1], MARGIN)
    return RealSimulation(
        source=noise.source,
        sha256=noise.sha256,
        metric=noise.metric,
        machine=noise.machine,
        cells=len(noise.cells),
        repetitions=sum(map(len, noise.cells)),
        steady=int((noise.variations <= STEADY).sum()),
        false_alarms_per_100=round(false_alarms(noise.of_all(), count // 4, middle), 3),
        found=round(found_share(np.log1p(STEP), STEADY, KNOWN, count, noise.near(STEADY)), 3),
        steps=[_real_step(noise, variation, count) for variation in (low, middle, high)],
        gate_slower=round(gate_shares(1.0, deviation, count, seed=3, noise=near).slower, 3),
        gate_detectable=round(of_gate, 3),
        gate_found=round(gate_shares(1.0 + of_gate, deviation, count, seed=3, noise=near).slower, 3),
    )


def _real_step(noise: RealNoise, variation: float, count: int) -> SimulatedStep:
    step = detectable_step(variation, KNOWN)
    if step is None:
        raise AssertionError("histories of this length were simulated")
    found = found_share(np.log1p(step), variation, KNOWN, count, noise.near(variation))
    return SimulatedStep(variation=round(variation, 4), detectable=round(step, 4), found=round(found, 3))


def gates_table(sessions: int) -> str:
    """The rows of the table of gates."""
    rows = []
    for ratio in RATIOS:
        for deviation in DEVIATIONS:
            shares = gate_shares(ratio, deviation, sessions, seed=3)
            cells = f"{shares.slower:.1%} | {shares.not_slower:.1%} | {shares.undecided:.1%} | {shares.repetitions:.1f}"
            rows.append(f"| {ratio - 1.0:.0%} | {np.expm1(deviation):.1%} | {cells} |")
    return "\n".join(rows)


def real_table(found: Iterable[RealSimulation]) -> str:
    """The rows of the table of real results."""
    rows = []
    for each in found:
        steps = " | ".join(f"{step.variation:.1%}: {step.detectable:.1%} ({step.found:.1%})" for step in each.steps)
        cells = f"{each.cells} ({each.steady}) | {each.false_alarms_per_100:.2f} | {each.found:.1%} | {steps}"
        rows.append(f"| `{each.source}` {each.sha256[:8]}, {each.metric}, {each.machine} | {cells} |")
    return "\n".join(rows)


def real_gates_table(found: Iterable[RealSimulation]) -> str:
    """The rows of the table of gates with the variation of real results."""
    return "\n".join(
        f"| `{each.source}`, {each.metric} | {each.steps[1].variation:.1%} | {each.gate_slower:.1%} | {each.gate_detectable:.1%} | {each.gate_found:.1%} |"
        for each in found
    )


def page(found: SimulatedHistories) -> str:
    """The page of the documentation."""
    alarms = "\n".join(f"| {name} | {value:.2f} |" for name, value in found.false_alarms_per_100.items())
    steps = "\n".join(f"| {float(variation):.1%} | {share:.1%} |" for variation, share in found.found.items())
    rows = []
    for power in found.smallest:
        cells = " | ".join(f"{np.expm1(power.deviations * np.log1p(variation)):.1%}" for variation in VARIATIONS)
        rows.append(f"| {power.before} | {power.deviations:.2f} | {cells} |")
    head = " | ".join(f"{variation:.1%}" for variation in VARIATIONS)
    lines = "\n".join(rows)
    return f"""# How often change points err: simulation

`history show` looks at each result when it comes. It tries the last {MIN_AFTER} to {MAX_AFTER} places against at most {WINDOW} results before them, by {PERMUTATIONS}
permutations at a significance of {SIGNIFICANCE:.1%}. A level needs {MIN_BEFORE} results before a change of it can be seen. `make bench-history` writes this page, from
{found.simulations:,} simulated histories per cell (a quarter of that for false alarms).

## False alarms

Changes found in {COMMITS} results of one level (coefficient of variation 2.5%), in either direction:

| noise | false alarms in {COMMITS} results |
|---|--:|
{alarms}

## Steps that are found

Share of steps of {STEP:.0%}, after 50 results, that are found within {found.within} results, by the coefficient of variation between results:

| between results | found |
|---|--:|
{steps}

The smallest step that is found within {found.within} results in {found.power:.0%} of cases, by the number of results before it and the coefficient of variation
between results. `history show` prints this as *detectable*:

| before | in standard deviations | {head} |
|--:|--:|{"--:|" * len(VARIATIONS)}
{lines}

## With the variation of real results

The noise of these histories is drawn from results that this project keeps: the bundles in `evidence/` of the repository. Of each operation of each
variant, repetitions are divided by their geometric mean. Here each repetition counts as a result; a result of several repetitions varies less.
`make bench-history ARGS="--real-only"` simulates this part alone.

- *false alarms*: the noise is that of all operations, of which a few vary much more than most.
- *operations*: how many were repeated three times or more, and how many of them vary by 2.5% or less.
- *5% found*: steps of {STEP:.0%} within {found.within} results; the noise is that of the operations whose variation is nearest to {STEADY:.1%}, scaled to it.
- *quartiles* of the operations' variations: the step that `history show` calls detectable there, and the share of such steps that is found; the noise is
  that of the operations that vary nearly as much.

| results | operations | false alarms in {COMMITS} | 5% found | lower quartile | median | upper quartile |
|---|--:|--:|--:|--:|--:|--:|
{real_table(found.real)}

## Gates

How gates with a margin of {MARGIN:.0%} end, by the true slowdown of head and the variation between repetitions: at most {LOOKS[-1]} repetitions, looks after
{", ".join(map(str, LOOKS[:-1]))}, one operation.

| slower by | repetitions vary by | *slower* | *not slower* | *undecided* | repetitions made |
|--:|--:|--:|--:|--:|--:|
{gates_table(found.simulations)}

The same with the variation of real results: gates that are wrong where head is as fast as base, and those that find the slowdown that is
called *detectable* after {LOOKS[-1]} repetitions.

| results | repetitions vary by | wrongly *slower* | detectable | found |
|---|--:|--:|--:|--:|
{real_gates_table(found.real)}
"""


def main() -> None:
    """Simulates, and writes file and page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=2000, help="of each cell")
    parser.add_argument("--page-only", action="store_true", help="simulate gates alone, and take the rest from the package")
    parser.add_argument(
        "--real-only", action="store_true", help="simulate real results and gates alone, and take the rest from the package"
    )
    arguments = parser.parse_args()
    if arguments.page_only:
        TABLE.write_text(page(simulated_histories()), encoding="utf-8")
        return
    count, start_s = arguments.simulations, time.monotonic()
    found = simulated_histories() if arguments.real_only else _simulated(count)
    found = found.model_copy(update={"real": [simulated_real(noise, count) for noise in real_noises()]})
    (ROOT / "python/sensorbench/history" / FILE).write_text(found.model_dump_json(indent=1) + "\n", encoding="utf-8")
    TABLE.write_text(page(found), encoding="utf-8")
    print(f"{TABLE}: {time.monotonic() - start_s:.0f} s")


def _simulated(count: int) -> SimulatedHistories:
    """What histories of made-up noise give."""
    return SimulatedHistories(
        simulations=count,
        within=WITHIN,
        power=POWER,
        false_alarms_per_100={name: round(false_alarms(noise, count // 4), 3) for name, noise in NOISES.items()},
        found={f"{variation}": round(found_share(np.log1p(STEP), variation, KNOWN, count), 3) for variation in VARIATIONS},
        smallest=[SimulatedPower(before=before, deviations=smallest_deviations(before, count)) for before in BEFORE],
    )


if __name__ == "__main__":
    main()
