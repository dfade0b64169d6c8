"""What a load or queries would do, by arithmetic: nothing is generated, and no target is touched."""

from collections.abc import Sequence
from pathlib import Path

from sensorbench.compat.tsbs.options import TsbsLoadOptions, TsbsRunOptions
from sensorbench.compat.tsbs.plan import USE_CASES, data_parameters, inexpressible, variants_of
from sensorbench.compat.tsbs.run import queries_of
from sensorbench.results.estimate import Estimate, PartEstimate, VariantEstimate
from sensorbench.runner import Variant, arithmetic_estimate, place_of
from sensorbench.wording import counted


def estimate_tsbs(options: TsbsLoadOptions | TsbsRunOptions, out: Path) -> Estimate:
    """What a load or queries would do. Raises UsageError for options that make no sense."""
    parameters, variants = data_parameters(options), variants_of(options, out)
    use_case = USE_CASES[options.use_case]
    widths, generated = use_case.values, parameters.devices * parameters.epochs * len(use_case.values)
    rows = round(generated * use_case.arriving)
    data = (
        f"{generated:,} rows of {_alternatives(widths)} values: {parameters.devices:,} {use_case.devices}, "
        f"{parameters.epochs * len(widths):,} rows each"
    )
    if rows < generated:
        data += f", of which about {rows:,} arrive"
    if isinstance(options, TsbsLoadOptions):
        steps = [f"load by {counted(options.workers, 'worker')}, batches of {counted(options.batch_size, 'row')}"]
        estimates = [_estimate(variant, rows, None) for variant in variants]
    else:
        queries = queries_of(options)
        steps = [f"{name}: {options.max_queries:,} queries, {options.workers} at the same time" for name in queries]
        estimates = [
            _estimate(variant, rows, options.max_queries * (len(queries) - len(inexpressible(variant.schema, queries))))
            for variant in variants
        ]
    what = "loading" if isinstance(options, TsbsLoadOptions) else "queries"
    return arithmetic_estimate(
        f"TSBS {options.use_case}, {what}",
        "tsbs",
        [PartEstimate(data=data, readings=rows, variants=estimates)],
        out,
        steps=steps,
        notes=["nothing was generated, and no target was touched: how long it takes is not known without them"],
    )


def _alternatives(widths: Sequence[int]) -> str:
    """Each width once, in words: 7 or 3; 10, 7, 6 or 9."""
    *others, last = dict.fromkeys(map(str, widths))
    return f"{', '.join(others)} or {last}" if others else last


def _estimate(variant: Variant, rows: int, operations: int | None) -> VariantEstimate:
    return VariantEstimate(variant=variant.id, place=place_of(variant.target), rows=rows, operations=operations, repetitions=1)
