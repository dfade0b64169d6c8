"""`make bench-claims`: how often the rules of each claim err on runs that are made up, and from how many repetitions on it is decidable.

Writes the table in docs/claims-simulation.md, and `decidability.json`, by which reports say what a claim would need.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sensorbench.claims import Claim
from sensorbench.claims.simulation import REPETITIONS, VARIATIONS, Outcome, Scenario, is_decidable, simulate_all
from sensorbench.studies import FACTOR_STUDIES, OTHER_STUDIES, STUDIES

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "docs/claims-simulation.md"
DECIDABILITY = ROOT / "python/sensorbench/claims/decidability.json"

HEAD = """# How often verdicts err: simulation of every claim

Each cell says, in percent of {simulations:,} simulations, how often a claim is (partly) reproduced where nothing relevant is to be seen, how often it is reproduced under
the published effect, and how often it is not reproduced under the contrary: `null / effect / contrary`. A claim is decidable (**bold**) where that is at most 5, at least 80 and at
least 80, and where the published effect is denied in at most 5 %. Columns are the coefficient of variation between runs, and the repetitions. How runs are made up is in
`claims/simulation.py`; the rules are on the [page on claims](claims.md). `make bench-claims` writes this page; {undecidable} claims are undecidable at ten repetitions even
where runs vary by 5 %: {undecided}.

Claims that a function judges instead of a rule have no row: {in_python}. Nor have those that something blocks.

"""


@dataclass(frozen=True)
class Task:
    """A claim at one number of repetitions and one variation."""

    claim: Claim
    repetitions: int
    variation: float
    simulations: int


def simulated(task: Task) -> dict[Scenario, Outcome]:
    """What the simulation of a task gave."""
    return simulate_all(task.claim.rules, repetitions=task.repetitions, variation=task.variation, simulations=task.simulations)


def claims_of_all_studies() -> list[Claim]:
    """The claims of all studies, in order."""
    studies = [*STUDIES.values(), *FACTOR_STUDIES.values(), *OTHER_STUDIES.values()]
    return [claim for study in studies for claim in study.claims]


def cell(outcomes: dict[Scenario, Outcome]) -> str:
    """A cell of the table."""
    figures = (
        outcomes["null"].of("reproduced", "partly reproduced"),
        outcomes["effect"].of("reproduced"),
        outcomes["contrary"].of("not reproduced"),
    )
    text = " / ".join(f"{100 * figure:.0f}" for figure in figures)
    return f"**{text}**" if is_decidable(outcomes) else text


def main(arguments: Sequence[str]) -> None:
    """Simulates all claims and writes what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=1_000)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    claims = claims_of_all_studies()
    ruled = [claim for claim in claims if claim.rules]
    columns = [(variation, repetitions) for variation in VARIATIONS for repetitions in REPETITIONS]
    tasks = [Task(claim, repetitions, variation, options.simulations) for claim in ruled for variation, repetitions in columns]
    began_s, found = time.monotonic(), []
    with ProcessPoolExecutor(options.processes) as pool:
        for number, outcomes in enumerate(pool.map(simulated, tasks, chunksize=3), start=1):
            found.append(outcomes)
            if number % 50 == 0:
                left_s = (time.monotonic() - began_s) / number * (len(tasks) - number)
                print(f"{number} of {len(tasks)}, about {left_s / 60:.0f} min left", file=sys.stderr)
    by_claim = {claim.id: found[place * len(columns) : (place + 1) * len(columns)] for place, claim in enumerate(ruled)}
    write(claims, by_claim, columns, options.simulations)


def write(
    claims: Sequence[Claim],
    by_claim: dict[str, list[dict[Scenario, Outcome]]],
    columns: Sequence[tuple[float, int]],
    simulations: int,
) -> None:
    """Writes the table and the repetitions that claims need."""
    needed = {
        name: {
            f"{variation:.0%}": min(
                (
                    repetitions
                    for (of, repetitions), one in zip(columns, outcomes, strict=True)
                    if of == variation and is_decidable(one)
                ),
                default=None,
            )
            for variation in VARIATIONS
        }
        for name, outcomes in by_claim.items()
    }
    undecided = [name for name, of in needed.items() if of[f"{VARIATIONS[0]:.0%}"] is None]
    in_python = [claim.id for claim in claims if claim.judged_in_python and not claim.blocked_by]
    text = HEAD.format(
        simulations=simulations,
        undecidable=len(undecided),
        undecided=", ".join(undecided) or "none",
        in_python=", ".join(in_python) or "none",
    )
    titles = [f"{variation:.0%}, {repetitions}" for variation, repetitions in columns]
    rows = [f"| {name} | {' | '.join(map(cell, outcomes))} |" for name, outcomes in by_claim.items()]
    table = [f"| claim | {' | '.join(titles)} |", "|---" * (len(titles) + 1) + "|", *rows]
    TABLE.write_text(text + "\n".join(table) + "\n", encoding="utf-8")
    DECIDABILITY.write_text(json.dumps({"simulations": simulations, "repetitions": needed}, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {TABLE.relative_to(ROOT)} and {DECIDABILITY.relative_to(ROOT)}")


if __name__ == "__main__":
    main(sys.argv[1:])
