"""The summary of a comparison: figures with intervals, who wins, whether answers were equal, what the client says of itself.

It is computed from results on disk, so that it can be had again from old results, and from those that were cut short.
"""

import math
from collections.abc import Container, Sequence
from dataclasses import asdict
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from sensorbench.analysis.change_points import change_points
from sensorbench.analysis.equality import Answers, Equality, EqualityCheck, together
from sensorbench.analysis.intervals import Interval, interval
from sensorbench.analysis.sample import METRICS, Sample
from sensorbench.analysis.verdicts import EQUIVALENCE_MARGIN, Verdict, compare
from sensorbench.benchmarks.comparison.classes import class_caveats, consistency_levels, durability_classes
from sensorbench.benchmarks.comparison.prefixes import common_samples, prefix_caveats, prefixes_of
from sensorbench.benchmarks.comparison.samples import sample_of, that_had
from sensorbench.benchmarks.comparison.units import UnitOf, too_few_blocks, unit_of
from sensorbench.results import ComparisonManifest, ComparisonResult, RunResult
from sensorbench.results.engine_report import OperationReport
from sensorbench.results.latencies import of_kind
from sensorbench.results.manifest import MEASURE, OUTCOMES
from sensorbench.results.outdated import why_outdated
from sensorbench.results.stall import read_stall
from sensorbench.results.summary.claims import MeasuredFigure
from sensorbench.results.summary.comparison import (
    ComparisonFigures,
    ComparisonSummary,
    OperationFigures,
    OutcomeCounts,
    RankedVariant,
    Ranking,
    RankingVerdict,
    RateChange,
    ServiceTimes,
    VariantRuns,
)
from sensorbench.results.summary.envelope import Caveat, envelope, fields_of_plan
from sensorbench.runner import check_client_health, generator_figures, is_of_registers
from sensorbench.verification import answer_comparison, answers_by_operation, freshness_of, guaranteed, retention_of

# Operations whose answers are in memory at a time, of two runs.
ANSWERS_AT_ONCE = 500_000
_SERVICE_TIMES: tuple[Literal["p50", "p99", "p999", "max"], ...] = ("p50", "p99", "p999", "max")


def summarise(result: ComparisonResult) -> ComparisonSummary:
    """The summary of what is on disk."""
    manifest = result.manifest
    variants = [variant.id for variant in manifest.variants]
    runs = {variant: result.usable_runs(variant) for variant in variants}
    of_dataset = [name for name in manifest.plan.operations if not is_of_registers(name)]
    reads = [name for name in of_dataset if not manifest.plan.operations[name].writes]
    unit = unit_of(result)
    samples = {(variant, name): sample_of(runs[variant], name, unit) for variant in variants for name in manifest.plan.operations}
    few_blocks = too_few_blocks(result, variants)
    # What is written meanwhile changes what is read: then the contents are compared afterwards, not the answers on the way.
    is_sealed = len(reads) == len(of_dataset) and not manifest.plan.workload.get("freshness")
    compares_answers = manifest.plan.workload.get("answers") == "all" and bool(reads) and is_sealed
    equalities = _equalities(result, runs, reads) if compares_answers else []
    wrong = _wrong(result)
    answers_equal = None
    if result.state == "complete" and (compares_answers or result.contents) and not _unchecked(result):
        answers_equal = not wrong and all(equality.equal for equality in equalities)
        if equalities and not any(equality.answered for equality in equalities):
            answers_equal = None
    outdated = {} if manifest.plan.include_outdated else _outdated(result)
    prefixes = prefixes_of(result, runs)
    levels, durabilities = consistency_levels(result, of_dataset), durability_classes(result)
    writing = {name for name, operation in manifest.plan.operations.items() if operation.writes}
    rankings = [
        _ranking(
            name,
            manifest.plan.metric,
            variants,
            samples,
            prefixes.keys(),
            runs,
            unit,
            _excluded(name, runs, equalities, wrong, compares_answers) or few_blocks,
            outdated,
            levels,
            durabilities if name in writing else {},
        )
        for name in manifest.plan.operations
    ]
    health, caveats = check_client_health(result, runs)
    caveats += prefix_caveats(prefixes)
    caveats += _unanswered(result)
    for variant, why in outdated.items():
        if any(variant in ranking.outdated for ranking in rankings):
            text, action = f"It is not ranked against the others: {why}.", "--include-outdated ranks it."
            caveats.append(Caveat(kind="outdated", text=text, action=action, variant=variant))
    caveats += _unlimited_memory(manifest)
    caveats += class_caveats(levels, durabilities if writing else {})
    caveats += _not_alone(result)
    return ComparisonSummary(
        **envelope(manifest),
        answers_equal=answers_equal,
        warnings=caveats,
        result=ComparisonFigures(
            **fields_of_plan(manifest.plan, ComparisonFigures),
            finished=manifest.finished,
            runs={variant: _runs(result.runs[variant]) for variant in variants},
            load=result.loads,
            rate_changes={variant: _changes(of_variant) for variant, of_variant in runs.items()},
            figures=[_figures(variant, name, runs[variant], sample) for (variant, name), sample in samples.items()],
            rankings=rankings,
            answers={equality.operation: answer_comparison(equality) for equality in equalities},
            query_plans=result.plans,
            failures=result.failures,
            known_answers={variant: checks for variant, checks in result.checks.items() if checks.queried},
            contents=result.contents,
            guarantees=guaranteed(result),
            freshness=freshness_of(result),
            retention=retention_of(result),
            client_health=health,
            load_generators=generator_figures(run for of_variant in runs.values() for run in of_variant),
            blocks=result.blocks,
            stall=stall.figures if (stall := read_stall(result.folder)) else None,
        ),
    )


def _unanswered(result: ComparisonResult) -> list[Caveat]:
    """Of variants that failed at questions with a known answer, which those were."""
    return [
        Caveat(
            kind="known answers",
            text=(
                f"{problem.operation} with {', '.join(f'{name} {value}' for name, value in (problem.parameters or {}).items())} "
                f"has an answer computed by hand, and the question failed: {problem.problem}."
            ),
            action="What it answered while it was measured was compared all the same. Repeat it where nothing else runs.",
            variant=variant,
        )
        for variant, checks in result.checks.items()
        for problem in checks.problems
        if not problem.answered
    ]


def _not_alone(result: ComparisonResult) -> list[Caveat]:
    """Of variants that were to be measured one at a time, the servers that were up while others were measured."""
    caveats = [
        Caveat(
            kind="one at a time",
            text="Its server ran before and was not stopped: it was up while the other variants were measured.",
            action="Name a database that is started for the comparison, or measure that server in a run of its own.",
            variant=variant,
        )
        for variant in dict.fromkeys(block.variant for block in result.blocks if block.server == "kept up")
    ]
    kept_up = {block.instance for block in result.blocks if block.server == "kept up"}
    for block in result.blocks:
        others = block.processes.keys() - {block.instance, *kept_up}
        if others:
            text = f"In block {block.number} another server was in the process table, too: {', '.join(sorted(others))}."
            action = "Its figures are not those of a server alone. Measure again."
            caveats.append(Caveat(kind="one at a time", text=text, action=action, variant=block.variant))
    return caveats


def _unlimited_memory(manifest: ComparisonManifest) -> list[Caveat]:
    """Of each server that was to be kept to its memory, and only had its caches sized to it."""
    if manifest.plan.resources.memory_bytes is None:
        return []
    return [
        Caveat(
            kind="resources",
            text=f"The memory of {name} was not limited here: {server['memory_by']}.",
            action="Its caches and heap are sized to the limit, but the system's cache of its files is not. Use a machine with cgroups.",
        )
        for name, server in manifest.environment.get("servers", {}).items()
        if not (server["memory_by"] or "").startswith("cgroup")
    ]


def _unchecked(result: ComparisonResult) -> list[str]:
    """Variants whose contents could not be checked after runs that wrote."""
    return [variant for variant, checks in result.contents.items() if checks.not_checked]


def _wrong(result: ComparisonResult) -> dict[str, str]:
    """Operations that gave a wrong answer to a question with a known one, and why that is known."""
    by_hand = [problem.operation for checks in result.checks.values() for problem in checks.problems if problem.answered]
    after_writing = [problem.operation for checks in result.contents.values() for problem in checks.problems]
    return {
        **dict.fromkeys(after_writing, "what was written was not found again as it should be"),
        **dict.fromkeys(by_hand, "an answer computed by hand was not given"),
    }


def _runs(runs: list[RunResult]) -> VariantRuns:
    temperature = runs[0].manifest.temperature if runs else None
    return VariantRuns(runs=len(runs), statuses=[run.state for run in runs], temperature=temperature)


def _figures(variant: str, operation: str, runs: list[RunResult], sample: Sample | None) -> OperationFigures:
    runs = that_had(runs, operation)
    measured = [_measured(run, operation) for run in runs]
    counts = OutcomeCounts(**{outcome: sum(figures["counts"][outcome] for figures in measured) for outcome in OUTCOMES})
    rows = sum(figures["rows"] for figures in measured)
    return OperationFigures(
        variant=variant,
        operation=operation,
        runs=len(runs),
        counts=counts,
        late=sum(figures["late"] for figures in measured),
        rows=rows,
        rows_per_operation=rows / counts.ok if counts.ok else None,
        latency_s={} if sample is None else {metric: _shown(interval(sample, metric)) for metric in METRICS},
        service_s=_service(measured),
        throughput_per_s=_throughput(runs, operation),
    )


def _changes(runs: list[RunResult]) -> list[RateChange]:
    """Where the throughput of a run changed: a database that slows down, or a machine that was disturbed."""
    changes = []
    for run in runs:
        table = run.table("intervals")
        if table is None or MEASURE not in run.manifest.phases:
            continue
        of_phase = table.filter(pc.equal(table["phase"], run.manifest.phases.index(MEASURE)))
        by_start = of_phase.group_by("start_ns").aggregate([("ok", "sum"), ("length_ns", "max")]).sort_by("start_ns")
        starts_s = by_start["start_ns"].to_numpy() / 1e9
        rates = by_start["ok_sum"].to_numpy() / (by_start["length_ns_max"].to_numpy() / 1e9)
        # The first and the last interval are rarely whole.
        for change in change_points(rates[1:-1]):
            changes.append(
                RateChange(
                    repetition=run.manifest.repetition,
                    time_s=float(starts_s[change.place + 1]),
                    before_per_s=change.before,
                    after_per_s=change.after,
                )
            )
    return changes


def _measured(run: RunResult, operation: str) -> OperationReport:
    """Counts of one kind of operation as the engine reported them at the end, or, where it could not, as its intervals have them."""
    if run.manifest.totals is not None:
        return run.manifest.measured[0].operations[operation]
    sums = dict.fromkeys((*OUTCOMES, "late", "rows"), 0)
    table = run.table("intervals")
    if table is not None and MEASURE in run.manifest.phases:
        phase, number = run.manifest.phases.index(MEASURE), run.manifest.operations.index(operation)
        rows = of_kind(table, phase, number)
        sums = {name: pc.sum(rows[name]).as_py() or 0 for name in sums}
    return {
        "counts": {name: sums[name] for name in OUTCOMES},
        "late": sums["late"],
        "rows": sums["rows"],
        "response_ns": None,
        "service_ns": None,
        "schedule_lag_ns": None,
        "failed_ns": None,
    }


def _service(measured: list[OperationReport]) -> ServiceTimes:
    """Service times beside the response times; of several runs, the greatest quantiles."""
    known = [figures["service_ns"] for figures in measured if figures["service_ns"]]
    if not known:
        return ServiceTimes(p50=None, p99=None, p999=None, max=None)
    return ServiceTimes(**{key: max(item[key] for item in known) / 1e9 for key in _SERVICE_TIMES})


def _throughput(runs: list[RunResult], operation: str) -> float | None:
    """Operations of this kind that ended well, a second of measuring."""
    done = done_in_s(runs, operation)
    elapsed_s = sum(elapsed_s for _, elapsed_s in done)
    return sum(ok for ok, _ in done) / elapsed_s if elapsed_s > 0 else None


def done_in_s(runs: list[RunResult], operation: str) -> list[tuple[int, float]]:
    """Of each run that measured to its end, how many operations of one kind ended well, in how many seconds."""
    having = that_had(runs, operation)
    phases = [phase for run in having if run.manifest.totals for phase in run.manifest.totals.phases if phase.name == MEASURE]
    return [
        (phase.operations[operation]["counts"]["ok"], (phase.end_ns - phase.start_ns) / 1e9)
        for phase in phases
        if phase.start_ns is not None and phase.end_ns is not None
    ]


def _shown(of: Interval) -> MeasuredFigure:
    finite = {key: value if not isinstance(value, float) or math.isfinite(value) else None for key, value in asdict(of).items()}
    return MeasuredFigure(**finite)


def _equalities(result: ComparisonResult, runs: dict[str, list[RunResult]], reads: list[str]) -> list[Equality]:
    """How the answers to each kind of operation compare. Every run asks the same questions; each run's answers are compared."""
    known = {} if result.reference is None else answers_by_operation(result.reference)
    numbers = {name: number for number, name in enumerate(result.manifest.plan.operations)}
    checks: dict[tuple[str, Sequence[str]], EqualityCheck] = {}
    recorded = [
        (variant if len(of_variant) == 1 else f"{variant}, run {run.manifest.repetition}", run, run.numbered("answers"))
        for variant, of_variant in runs.items()
        for run in of_variant
        if MEASURE in run.manifest.phases
    ]
    for first in range(0, max((rows.end for _, _, rows in recorded), default=0), ANSWERS_AT_ONCE):
        for label, run, rows in recorded:
            answers = rows.between(first, first + ANSWERS_AT_ONCE)
            if answers is None:
                continue
            is_measured = pc.equal(answers["phase"], pa.scalar(run.manifest.phases.index(MEASURE), answers["phase"].type))
            for number, given in answers_by_operation(answers.filter(is_measured)).items():
                name = run.manifest.operations[number]
                if name not in reads:
                    continue
                key = (name, rounds_of(result.manifest, run.manifest.operations))
                if key not in checks:
                    checks[key] = EqualityCheck(name, known.get(numbers[name], Answers.of({})))
                checks[key].add(label, given)
        for check in checks.values():
            check.forget()
    return [together(name, [check.result() for (of, _), check in checks.items() if of == name]) for name in reads]


def rounds_of(manifest: ComparisonManifest, operations: Sequence[str]) -> tuple[str, ...]:
    """The kinds of a round of a variant, where kinds come in turn; else none. In runs with equal rounds, the k-th operation is the same question: a
    variant that cannot answer all kinds has shorter rounds, and comes to the same kind with another question.
    """
    return tuple(operations) if manifest.plan.workload.get("order") == "in turn" else ()


def ordinal(manifest: ComparisonManifest, operations: Sequence[str], name: str, k: int) -> int | None:
    """How many operations called `name` precede the k-th operation of a variant with these `operations` and `order = "in turn"`; None if the k-th
    has another name. With random order, k. The parameters of the operation follow from this number and k.
    """
    if not rounds_of(manifest, operations):
        return k
    if name not in operations:
        return None
    weights = [int(manifest.plan.workload["mix"][kind]) for kind in operations]
    of_round, place = sum(weights), operations.index(name)
    of_kind = k % of_round - sum(weights[:place])
    return k // of_round * weights[place] + of_kind if 0 <= of_kind < weights[place] else None


def _excluded(
    name: str, runs: dict[str, list[RunResult]], equalities: list[Equality], wrong: dict[str, str], compares_answers: bool
) -> str | None:
    """Why an operation may not be ranked, if it may not."""
    of_all = [run for of_variant in runs.values() for run in of_variant]
    if of_all and not any(ok for ok, _ in done_in_s(of_all, name)) and (error := _first_error(of_all, name)):
        return f"no operation succeeded: {error}"
    equality = next((equality for equality in equalities if equality.operation == name), None)
    if equality is not None and equality.mismatch_count:
        return "the databases gave different answers"
    if compares_answers and equality is not None and not equality.compared_with_reference:
        return "no answer was compared with the reference"
    return wrong.get(name)


def _first_error(runs: list[RunResult], name: str) -> str | None:
    """What the first failed operation of one kind was told, if one failed."""
    errors = (error for run in runs for error in run.manifest.errors if error["operation"] == name)
    return next((error["first_message"] for error in errors), None)


def _ranking(
    name: str,
    metric: str,
    variants: list[str],
    samples: dict[tuple[str, str], Sample | None],
    prefixes: Container[str],
    runs: dict[str, list[RunResult]],
    unit: UnitOf,
    excluded: str | None,
    outdated: dict[str, str],
    levels: dict[str, str],
    durabilities: dict[str, str],
) -> Ranking:
    """Variants from the fastest to the slowest, each compared with the fastest of its consistency level and durability class; where one did a prefix of the
    operations, on those that both have done. Outdated ones are ranked where there are no others.
    """
    known = {variant: sample for variant in variants if (sample := samples[variant, name]) is not None}
    if excluded or not known:
        return Ranking(operation=name, metric=metric, excluded=excluded or "nothing was measured", places=[])
    left_out = {variant: why for variant, why in outdated.items() if variant in known}
    if len(left_out) == len(known):
        left_out = {}
    order = sorted(known.keys() - left_out.keys(), key=lambda variant: known[variant].figure(metric))
    best_of: dict[tuple[str, str], str] = {}
    places = []
    for variant in order:
        level, durability = levels.get(variant, ""), durabilities.get(variant, "")
        best = best_of.setdefault((level, durability), variant)
        compared = (known[variant], known[best])
        if variant in prefixes or best in prefixes:
            compared = common_samples(runs[variant], runs[best], name, unit) or compared
        verdict = None if variant == best else _verdict(compare(*compared, metric))
        value_s = known[variant].figure(metric)
        places.append(
            RankedVariant(variant=variant, value_s=value_s, against_best=verdict, consistency=level, durability=durability)
        )
    return Ranking(operation=name, metric=metric, excluded=None, places=places, outdated=left_out, margin=EQUIVALENCE_MARGIN)


def _outdated(result: ComparisonResult) -> dict[str, str]:
    """The variants whose database is of an outdated version, with why it is."""
    described = {variant: load.description for variant, load in result.loads.items()}
    found = {variant: why_outdated(server.database, server.version) for variant, server in described.items()}
    return {variant: why for variant, why in found.items() if why}


def _verdict(verdict: Verdict) -> RankingVerdict:
    return RankingVerdict(word=verdict.word, reason=verdict.reason, ratio=_shown(verdict.ratio))
