"""What the MapReduce study would do. Spark and its databases are too dear to be started for a pilot."""

from pathlib import Path

from sensorbench.benchmarks.mapreduce.spec import MapReduceSpec
from sensorbench.results.estimate import Estimate, PartEstimate, VariantEstimate
from sensorbench.runner import arithmetic_estimate, place_of
from sensorbench.wording import counted

# What an execution takes over few articles, with one to three nodes on a machine with two CPUs (bundle `mapreduce`): half of it is starting an
# application and its executors.
EXECUTION_S = 10.0
# Words that are looked for where none is named.
CHOSEN_WORDS = 3


def estimate_mapreduce(title: str, spec: MapReduceSpec, scale: float, out: Path) -> Estimate:
    """The executions of the job, by arithmetic. Nothing is started, and no server of a user's is touched."""
    articles = spec.dataset.describe()
    executions = spec.executions * len(spec.workers) * (len(spec.words) or CHOSEN_WORDS)
    variants = [
        VariantEstimate(
            variant=target.label, place=place_of(target), rows=articles.readings, repetitions=executions, run_s=EXECUTION_S
        )
        for target in spec.targets
    ]
    time_s = EXECUTION_S * executions * (len(spec.targets) + spec.with_files)
    part = PartEstimate(data=articles.title, readings=articles.readings, variants=variants, time_s=time_s)
    files = ["the same over files"] if spec.with_files else []
    steps = [
        "load the articles into each database",
        *(f"{_size(spec, workers)}: {spec.executions} executions over each database for each word" for workers in spec.workers),
        *files,
        "the same job by each database itself, where it can",
    ]
    notes = [
        f"the time is that of {executions * (len(spec.targets) + spec.with_files)} executions of {EXECUTION_S:g} s, which an execution over "
        "few articles took on a machine with two CPUs. Starting servers, loading and the databases' own jobs come on top",
        "neither Spark nor servers are started by a dry run, so that disk and memory are not known",
    ]
    return arithmetic_estimate(title, "mapreduce", [part], out, steps=steps, scale=scale, time_s=time_s, notes=notes)


def _size(spec: MapReduceSpec, workers: int) -> str:
    if spec.grows:
        return f"with {counted(workers, 'node')} of each database that can grow, and as many workers of Spark"
    return f"with {counted(workers, 'worker')}"
