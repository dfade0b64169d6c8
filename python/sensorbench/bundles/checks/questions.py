"""Whether all variants had the same questions: those that the seed makes."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sensorbench.bundles.checks.generator import kinds
from sensorbench.bundles.checks.problem import Problem, run_name
from sensorbench.results import ComparisonResult, RunResult
from sensorbench.results.manifest import MEASURE

QUESTIONS, VARIANTS = "questions", "variants"


def check_questions(result: ComparisonResult) -> Iterator[Problem]:
    """Runs have the seed of the workload, and the k-th operation of each is of the kind that the seed makes."""
    workload = result.manifest.plan.workload
    for runs in result.runs.values():
        for run in runs:
            if run.manifest.seed != workload["seed"]:
                yield Problem(
                    QUESTIONS, run_name(run), f"its seed is {run.manifest.seed}, that of the workload {workload['seed']}"
                )
            elif run.manifest.operations and all(name in workload["mix"] for name in run.manifest.operations):
                yield from _kinds(
                    run, [workload["mix"][name] for name in run.manifest.operations], str(workload.get("order", "random"))
                )
    yield from _equal_kinds(result)


def check_variants(result: ComparisonResult) -> Iterator[Problem]:
    """Runs and loads are of the database and the variant that they are filed under."""
    for variant in result.manifest.variants:
        load = result.loads.get(variant.id)
        described = load.description if load else None
        for run in result.runs[variant.id]:
            said, of_run = variant.model_dump(), run.manifest.variant.model_dump()
            odd = [key for key in said if key not in {"statements", "url"} and said[key] != of_run[key]]
            if odd:
                yield Problem(
                    VARIANTS, run_name(run), f"its {odd[0]} is {of_run[odd[0]]!r}, that of the variant {said[odd[0]]!r}"
                )
            found = run.manifest.description
            if described and found and (found.get("database"), found.get("version")) != (described.database, described.version):
                yield Problem(
                    VARIANTS,
                    run_name(run),
                    f"it was measured at {found.get('database')} {found.get('version')}, but loaded into {described.database} {described.version}: variants are swapped",
                )


def _kinds(run: RunResult, weights: list[float], order: str) -> Iterator[Problem]:
    for name in ("answers", "operations"):
        table = run.table("answers") if name == "answers" else run.sampled_operations()
        for number, phase in enumerate(run.manifest.phases):
            own = None if table is None else table.filter(pc.equal(table["phase"], pa.scalar(number, table["phase"].type)))
            if own is None or not own.num_rows:
                continue
            expected = kinds(weights, order, run.manifest.seed, number, own["k"].to_numpy().astype(np.uint64))
            odd = int((expected != own["operation"].to_numpy().astype(np.int64)).sum())
            if odd:
                text = f"{odd:,} of {own.num_rows:,} {name} are of another kind than seed {run.manifest.seed} makes"
                yield Problem(QUESTIONS, f"{run_name(run)}, {phase}", text)
                return


def _equal_kinds(result: ComparisonResult) -> Iterator[Problem]:
    """The k-th operation is of the same kind in all variants that have all operations."""
    whole = {variant.id for variant in result.manifest.variants if variant.is_whole}
    first: tuple[str, np.ndarray] | None = None
    for variant in sorted(whole):
        for run in result.runs[variant][:1]:
            answers = run.table("answers")
            if answers is None or MEASURE not in run.manifest.phases:
                continue
            is_measured = pc.equal(answers["phase"], pa.scalar(run.manifest.phases.index(MEASURE), answers["phase"].type))
            own = answers.filter(is_measured)
            known = np.full(int(pc.max(own["k"]).as_py() or 0) + 1, -1, dtype=np.int64)
            known[own["k"].to_numpy().astype(np.int64)] = own["operation"].to_numpy().astype(np.int64)
            if first is None:
                first = variant, known
                continue
            length = min(len(known), len(first[1]))
            left, right = known[:length], first[1][:length]
            if odd := int(((left != right) & (left >= 0) & (right >= 0)).sum()):
                yield Problem(
                    QUESTIONS,
                    variant,
                    f"{odd:,} of its operations are of another kind than those of {first[0]} with the same number",
                )
