"""`summary.json` of a stress run: its steps, what the servers reported during each, the capacity that was found, and caveats."""

from dataclasses import asdict

from sensorbench.analysis.capacity import Search, Trial, capacity
from sensorbench.benchmarks.stress.figures import step_figures
from sensorbench.results.planned import StressSearch
from sensorbench.results.stress import StressResult
from sensorbench.results.summary.envelope import Caveat, Caveats, envelope, errors_of, fields_of_plan
from sensorbench.results.summary.stress import (
    StressCapacity,
    StressFigures,
    StressStep,
    StressSummary,
)
from sensorbench.runner import generator_figures, warn_of_generators
from sensorbench.wording import counted


def summarise_stress(result: StressResult) -> StressSummary:
    """The summary of a stress run on disk."""
    manifest, steps = result.manifest, step_figures(result)
    search = manifest.plan.search
    found = _capacity(steps, search) if search else None
    return StressSummary(
        **envelope(manifest),
        warnings=_damaged(result) + _warnings(manifest.variants[0].embedded, steps, found) + _late(result),
        result=StressFigures(
            **fields_of_plan(manifest.plan, StressFigures),
            steps=steps,
            capacity=found,
            errors=errors_of(run.manifest for run in result.runs),
            load_generators=generator_figures(result.runs),
        ),
    )


def _capacity(steps: list[StressStep], searched: StressSearch) -> StressCapacity:
    """What a search found; trials that were cut short do not count."""
    trials = [Trial(step.rate_per_s, step.met) for step in steps if step.met is not None]
    search = Search(
        searched.first_per_s, searched.precision, searched.confirm, min_per_s=searched.min_per_s, max_per_s=searched.max_per_s
    )
    found = capacity(trials, search)
    at_top = (step.client_bound for step in steps if step.met is False and step.rate_per_s == found.missed_per_s)
    return StressCapacity(**asdict(found), trials=len(trials), client_bound=next(filter(None, at_top), None))


def _damaged(result: StressResult) -> list[Caveat]:
    """Files of the results that are damaged, and without which all else can be shown."""
    action = "Restore the file from a copy."
    return [Caveat(kind="damaged", text=f"A file of the results is damaged: {text}.", action=action) for text in result.damage]


def _warnings(embedded: bool, steps: list[StressStep], found: StressCapacity | None) -> list[Caveat]:
    """What to mind, each with what to do."""
    caveats = Caveats()
    bound = [step for step in steps if step.client_bound]
    if bound:
        caveats.add(
            "client-bound",
            f"At {_rates(bound)} the client was the limit; at the first of them, {bound[0].client_bound}.",
            "Read what these steps reached as a lower bound; use more --threads, or another machine for the client.",
        )
    full = [step for step in steps if step.at_concurrency_limit and not step.client_bound]
    if full:
        caveats.add(
            "concurrency-limit",
            f"At {_rates(full)} the concurrency limit was reached nearly all the time.",
            "The server is beyond its capacity, or would take more at once: raise --concurrency and see whether more is completed.",
        )
    steered = [step for step in steps if step.steered]
    if steered:
        caveats.add(
            "steered", f"At {_rates(steered)} the rate was changed by hand.", "Figures of these steps are of several rates."
        )
    failed = sum(step.counts.error for step in steps)
    if failed:
        caveats.add(
            "errors",
            f"{counted(failed, 'operation')} failed.",
            "Fix the cause: an operation that fails at once makes room for others.",
        )
    if found and not found.is_confirmed:
        caveats.add(
            "unconfirmed",
            "The search ended before both ends of the interval were confirmed.",
            "Search again with a longer --step-duration.",
        )
    if embedded:
        caveats.add(
            "embedded",
            "The database runs inside the client's process and shares its CPUs.",
            "Compare it with embedded databases only.",
        )
    return caveats


def _late(result: StressResult) -> list[Caveat]:
    """Load generators that were late."""
    caveats = Caveats()
    warn_of_generators(caveats, [run.manifest.totals for run in result.runs if run.manifest.totals])
    return list(caveats)


def _rates(steps: list[StressStep]) -> str:
    rates = [f"{step.rate_per_s:,.0f}" if step.rate_per_s >= 10 else f"{step.rate_per_s:g}" for step in steps]
    different = list(dict.fromkeys(rates))
    more = f" and {len(different) - 4} more rates" if len(different) > 4 else ""
    return f"{', '.join(different[:4])} operations/s{more}"
