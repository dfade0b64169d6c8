"""`make bench-claims`: how often the rules of each claim err on runs that are made up, and from how many repetitions on it is decidable.

Writes `simulated.json` of the package, by which reports say what a claim would need, and the table of that in docs/reference/claims-simulation.md. Claims whose
rules have not changed since they were simulated are left as they are, unless `--all`.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sensorbench.analysis.intervals import CONFIDENCE
from sensorbench.analysis.sequential import confidences
from sensorbench.catalog.classification import judged_claims
from sensorbench.claims import Claim
from sensorbench.claims.simulated import FILE, SimulatedCell, SimulatedClaim, SimulatedClaims, fingerprint, simulated_claims
from sensorbench.claims.simulation import MAX_FALSE, REPETITIONS, VARIATIONS, simulate_all
from sensorbench.studies import FACTOR_STUDIES, all_claims
from sensorbench.studies.factors import FactorStudy

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "docs/reference/claims-simulation.md"

HEAD = """# How often verdicts err: simulation of every claim

Each cell says in percent of {simulations:,} simulations three figures, `null / effect / contrary`. They are how often a claim is (partly) reproduced without a relevant effect,
how often it is reproduced under the published effect, and how often it is not reproduced under the contrary effect. A claim is decidable (**bold**) where that is at most 5, at least 80 and at
least 80, and where the published effect is denied in at most 5%. Columns are the coefficient of variation between runs, and the repetitions. How runs are made up is in
`claims/simulation.py`; the rules are on the [page on claims](../explanation/claims.md). `make bench-claims` writes this page.

- Undecidable at ten repetitions even where runs vary by 5%: {undecidable}.
- Denied under the published effect in more than 5% somewhere in the table, and so not decidable there: {denied}.
- Judged by a function instead of a rule, and so without a row: {in_python}.
- Blocked by something that is missing, and so without a row: {blocked}.

"""
HEAD_OF_LOOKS = """
## Claims that are looked at while runs are made

Study {study} with `--budget` judges its claims after {looks} rounds, and ends measuring for those that are decided. Each look has intervals of {confidences}, so that all looks
together err as often as one of {confidence:.0%}: the error is spent by the function of Pocock's type (Lan and DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 70, 1983).
A fourth figure is how many rounds a claim takes on average under the published effect. Each cell is of {simulations:,} simulations.

"""


@dataclass(frozen=True)
class Task:
    """A claim at one number of repetitions and one variation."""

    claim: Claim
    repetitions: int
    variation: float
    simulations: int
    looks: tuple[int, ...] = ()


def claims_to_simulate() -> list[Claim]:
    """The claims of all studies, and those of the classification that results can judge."""
    return [*all_claims(), *judged_claims()]


def simulated(task: Task) -> SimulatedCell:
    """What the simulation of a task gave."""
    outcomes = simulate_all(
        task.claim.rules,
        repetitions=task.repetitions,
        variation=task.variation,
        simulations=task.simulations,
        looks=task.looks,
    )
    made = SimulatedCell.of_looks if task.looks else SimulatedCell.of
    return made(task.repetitions, task.variation, outcomes)


def looks_of_claims() -> dict[str, tuple[int, ...]]:
    """After how many rounds each claim is looked at, of studies that do that."""
    return {claim.id: tuple(study.file.looks) for study in FACTOR_STUDIES.values() for claim in study.claims if claim.rules}


def with_looks(claims: Sequence[Claim], found: dict[str, SimulatedClaim], options: argparse.Namespace) -> list[SimulatedClaim]:
    """What was found of claims, with what their looks give; those that were simulated before are left as they are."""
    wanted = looks_of_claims()
    stale = [
        (claim, looks)
        for claim in claims
        if (looks := wanted.get(claim.id)) and (options.all or tuple(found[claim.id].looks) != looks)
    ]
    tasks = [
        Task(claim, looks[-1], variation, options.simulations_of_looks, looks)
        for claim, looks in stale
        for variation in VARIATIONS
    ]
    cells = simulated_by_all(tasks, options.processes)
    anew = {
        claim.id: {"looks": list(looks), "at_looks": cells[place * len(VARIATIONS) : (place + 1) * len(VARIATIONS)]}
        for place, (claim, looks) in enumerate(stale)
    }
    return [found[claim.id].model_copy(update=anew.get(claim.id, {})) for claim in claims]


def simulated_by_all(tasks: Sequence[Task], processes: int) -> list[SimulatedCell]:
    """What the simulation of tasks gave, in their order."""
    began_s, cells = time.monotonic(), []
    with ProcessPoolExecutor(processes) as pool:
        for number, cell in enumerate(pool.map(simulated, tasks, chunksize=3), start=1):
            cells.append(cell)
            if number % 10 == 0:
                left_s = (time.monotonic() - began_s) / number * (len(tasks) - number)
                print(f"{number} of {len(tasks)}, about {left_s / 60:.0f} min left", file=sys.stderr, flush=True)
    return cells


def main(arguments: Sequence[str]) -> None:
    """Simulates claims and writes what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=1_000)
    parser.add_argument("--simulations-of-looks", type=int, default=1_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="also those whose rules have not changed")
    options = parser.parse_args(arguments)
    claims, known = claims_to_simulate(), simulated_claims().claims
    ruled = [claim for claim in claims if claim.rules]
    stale = [claim for claim in ruled if options.all or claim.id not in known or known[claim.id].rules != fingerprint(claim)]
    columns = [(variation, repetitions) for variation in VARIATIONS for repetitions in REPETITIONS]
    tasks = [Task(claim, repetitions, variation, options.simulations) for claim in stale for variation, repetitions in columns]
    cells = simulated_by_all(tasks, options.processes)
    anew = {
        claim.id: SimulatedClaim(rules=fingerprint(claim), cells=cells[place * len(columns) : (place + 1) * len(columns)])
        for place, claim in enumerate(stale)
    }
    complete = with_looks(ruled, {claim.id: anew.get(claim.id) or known[claim.id] for claim in ruled}, options)
    by_id = {claim.id: simulated_claim for claim, simulated_claim in zip(ruled, complete, strict=True)}
    found = SimulatedClaims(simulations=options.simulations, simulations_of_looks=options.simulations_of_looks, claims=by_id)
    FILE.write_text(found.model_dump_json(indent=None, exclude_defaults=True) + "\n", encoding="utf-8")
    TABLE.write_text(table(claims, found), encoding="utf-8")
    print(f"simulated {len(stale)} of {len(ruled)} claims; wrote {FILE.relative_to(ROOT)} and {TABLE.relative_to(ROOT)}")


def table(claims: Sequence[Claim], found: SimulatedClaims) -> str:
    """The page with the table."""
    undecidable = [name for name, claim in found.claims.items() if claim.repetitions_at(VARIATIONS[0]) is None]
    named = {
        "undecidable": undecidable,
        "denied": [name for name, claim in found.claims.items() if any(cell.denied > MAX_FALSE for cell in claim.cells)],
        "in_python": [claim.id for claim in claims if claim.judged_in_python and not claim.blocked_by],
        "blocked": [claim.id for claim in claims if claim.blocked_by],
    }
    head = HEAD.format(simulations=found.simulations, **{key: ", ".join(names) or "none" for key, names in named.items()})
    titles = [f"{cell.variation:.0%}, {cell.repetitions}" for cell in next(iter(found.claims.values())).cells]
    rows = [f"| {name} | {' | '.join(map(shown, claim.cells))} |" for name, claim in found.claims.items()]
    return head + _lines(titles, rows) + "".join(table_of_looks(study, found) for study in FACTOR_STUDIES.values())


def table_of_looks(study: FactorStudy, found: SimulatedClaims) -> str:
    """The table of the claims of a study that is looked at while it runs."""
    looks = tuple(study.file.looks)
    if not looks:
        return ""
    head = HEAD_OF_LOOKS.format(
        study=study.name,
        looks=" and ".join(map(str, looks)),
        confidences=" and ".join(f"{confidence:.1%}" for confidence in confidences(looks, CONFIDENCE)),
        confidence=CONFIDENCE,
        simulations=found.simulations_of_looks,
    )
    rows = [
        f"| {claim.id} | {' | '.join(f'{shown(cell)}, {cell.mean_runs:.1f}' for cell in found.claims[claim.id].at_looks)} |"
        for claim in study.claims
        if claim.rules
    ]
    return head + _lines([f"{variation:.0%}" for variation in VARIATIONS], rows)


def _lines(titles: Sequence[str], rows: Sequence[str]) -> str:
    return "\n".join([f"| claim | {' | '.join(titles)} |", "|---" * (len(titles) + 1) + "|", *rows]) + "\n"


def shown(cell: SimulatedCell) -> str:
    """A cell of the table."""
    text = " / ".join(f"{100 * share:.0f}" for share in (cell.null, cell.effect, cell.contrary))
    return f"**{text}**" if cell.is_decidable else text


if __name__ == "__main__":
    main(sys.argv[1:])
