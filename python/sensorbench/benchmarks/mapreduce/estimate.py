"""What the MapReduce study would do. Spark and its databases are too dear to be started for a pilot."""

from pathlib import Path

from sensorbench.benchmarks.mapreduce.spec import MapReduceSpec
from sensorbench.results.estimate import Estimate, PartEstimate, VariantEstimate
from sensorbench.runner import arithmetic_estimate, place_of


def estimate_mapreduce(title: str, spec: MapReduceSpec, scale: float, out: Path) -> Estimate:
    """The executions of the job, by arithmetic. Nothing is started, and no server of a user's is touched."""
    articles = spec.dataset.describe()
    executions = spec.executions * len(spec.workers)
    variants = [
        VariantEstimate(
            variant=target.label,
            place=place_of(target),
            rows=articles.readings,
            operations=None,
            repetitions=executions,
            load_s=None,
            run_s=None,
            disk_bytes=None,
            memory_bytes=None,
        )
        for target in spec.targets
    ]
    part = PartEstimate(
        name="",
        data=articles.title,
        readings=articles.readings,
        variants=variants,
        order=[],
        prepare_s=None,
        reference_s=None,
        time_s=None,
    )
    files = ["the same over files"] if spec.with_files else []
    steps = [
        "load the articles into each database",
        *(
            f"with {workers} worker{'s' if workers > 1 else ''}: {spec.executions} executions over each database"
            for workers in spec.workers
        ),
        *files,
        "the same job by each database itself, where it can",
    ]
    notes = ["neither Spark nor servers are started by a dry run, so that time, disk and memory are not known"]
    return arithmetic_estimate(title, "mapreduce", [part], out, steps=steps, scale=scale, notes=notes)
