"""The summary of a load or of queries."""

import numpy as np

from sensorbench.analysis.equality import Answers, EqualityCheck
from sensorbench.analysis.sample import figures
from sensorbench.compat.figures import damaged_files, latencies_of, measured_phase
from sensorbench.results import RunResult
from sensorbench.results.latencies import of_kind, weighted_latencies
from sensorbench.results.manifest import MEASURE, OUTCOMES
from sensorbench.results.summary.comparison import AnswerComparison
from sensorbench.results.summary.envelope import Caveats, envelope
from sensorbench.results.summary.tsbs import TsbsFigures, TsbsLatencies, TsbsQueries, TsbsSummary
from sensorbench.results.tsbs import TsbsResult
from sensorbench.runner import health_of_client, warn_of_client
from sensorbench.verification import answer_comparison, answers_by_operation


def summarise_tsbs(result: TsbsResult) -> TsbsSummary:
    """The summary of what is on disk."""
    manifest = result.manifest
    caveats = Caveats(caveat for run in result.runs for caveat in damaged_files(run))
    ceilings = manifest.environment.get("driver_ceilings_per_s", {})
    health = {}
    for variant in manifest.variants if result.runs else []:
        runs = [run for run in result.runs if run.manifest.variant.id == variant.id]
        health[variant.id] = health_of_client(runs, variant.embedded, ceilings.get(variant.database))
        warn_of_client(caveats, health[variant.id], variant.id)
    answers = _answers(result)
    is_compared = result.state == "complete" and any(answer.answered for answer in answers.values())
    return TsbsSummary(
        **envelope(manifest),
        answers_equal=all(answer.equal for answer in answers.values()) if is_compared else None,
        warnings=caveats,
        result=TsbsFigures(
            plan=manifest.plan,
            loads=result.loads,
            queries=[_queries(run) for run in result.runs],
            answers=answers,
            client_health=health,
        ),
    )


def _queries(run: RunResult) -> TsbsQueries:
    """How the queries of one kind went at one variant."""
    (query,) = run.manifest.operations
    phase = measured_phase(run)
    totals = phase.operations[query] if phase else None
    return TsbsQueries(
        variant=run.manifest.variant.id,
        query=query,
        **{outcome: totals["counts"][outcome] if totals else 0 for outcome in OUTCOMES},
        rows=totals["rows"] if totals else 0,
        run_s=phase.length_s if phase else None,
        response_s=_latencies(run, query),
    )


def _latencies(run: RunResult, query: str) -> TsbsLatencies | None:
    latencies, counts = weighted_latencies(run, query)
    if not len(latencies):
        return None
    order = np.argsort(latencies)
    ascending, counts = latencies[order], counts[order]
    return TsbsLatencies(
        **latencies_of(ascending, counts).model_dump(),
        sd=float(figures("sd", ascending, counts[None, :])[0]),
        sum=float(ascending @ counts),
    )


def _answers(result: TsbsResult) -> dict[str, AnswerComparison]:
    """How the answers compare, by kind of query."""
    reference = answers_by_operation(result.reference) if result.reference is not None else {}
    compared = {}
    for number, query in enumerate(result.manifest.plan.queries):
        check = EqualityCheck(query, reference.get(number, Answers.of({})))
        for run in result.runs:
            if run.manifest.operations == [query] and (answers := _answers_of(run)) is not None:
                check.add(run.manifest.variant.id, answers)
        compared[query] = answer_comparison(check.result())
    return compared


def _answers_of(run: RunResult) -> Answers | None:
    """The answers of a run of one kind of query; None if it has none."""
    table = run.table("answers")
    if table is None or MEASURE not in run.manifest.phases:
        return None
    return answers_by_operation(of_kind(table, run.manifest.phases.index(MEASURE), 0)).get(0)
