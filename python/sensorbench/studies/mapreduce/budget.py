"""What a budget of time is turned into: by arithmetic, since Spark and its databases are too dear to be started for a pilot."""

from dataclasses import dataclass

from sensorbench.benchmarks.mapreduce import EXECUTION_S, MapReduceOptions
from sensorbench.errors import UsageError
from sensorbench.studies.mapreduce.study import StudyFile

# What is planned for: the rest is for what arithmetic cannot know.
PLANNED_SHARE = 0.85
# No claim is judged at a smaller scale: what does not fit is rather left for later.
SCALES = (1.0, 0.5, 0.2, 0.1)
# A verdict needs three executions, and the first counts for none.
MIN_EXECUTIONS = 4
# Assumed of a machine with two cores: to start a database with its Spark, and to add a node to each; to load, and then read, all articles of the dataset once.
START_S, JOIN_S, LOAD_ALL_S, READ_ALL_S = 20.0, 35.0, 60.0, 60.0
# Words that are looked for where none is named: a rare, a medium and a very frequent one.
CHOSEN_WORDS = 3


@dataclass(frozen=True)
class ChosenBudget:
    """The options that a budget was turned into, and how long that takes by arithmetic (s)."""

    options: MapReduceOptions
    total_s: float


def choose(file: StudyFile, options: MapReduceOptions, budget_s: float) -> ChosenBudget:
    """The largest scale, then the most executions, with which all fits; the least of both where it does not, and the rest is left for --resume.

    Raises:
        UsageError: if not even one size fits.

    """
    scales = SCALES if options.scale is None else (options.scale,)
    max_executions = options.repetitions or file.executions
    executions = (
        range(max_executions, min(MIN_EXECUTIONS, max_executions) - 1, -1) if options.repetitions is None else [max_executions]
    )
    smallest = None
    for scale in scales:
        for count in executions:
            smallest = ChosenBudget(options.model_copy(update={"scale": scale, "repetitions": count}), 0.0)
            smallest = ChosenBudget(smallest.options, expected_s(file, smallest.options))
            if smallest.total_s <= PLANNED_SHARE * budget_s:
                return smallest
    if smallest is None:
        raise AssertionError("there are scales and numbers of executions")
    sizes = len(options.nodes or options.workers or file.nodes)
    if smallest.total_s / sizes > budget_s:
        raise UsageError(
            f"--budget {budget_s / 60:,.0f}m: the smallest run of this study, one size at scale {smallest.options.scale:g}, takes about "
            f"{smallest.total_s / sizes / 60:,.0f} minutes; give more time, or name fewer systems by --target"
        )
    return smallest


def expected_s(file: StudyFile, options: MapReduceOptions) -> float:
    """How long the study takes with these options by arithmetic (s)."""
    sizes, systems = options.nodes or options.workers or tuple(file.nodes), len(options.targets or file.targets)
    scale, executions = options.scale or 1.0, options.repetitions or file.executions
    applications = len(sizes) * systems * executions * (len(options.words) or CHOSEN_WORDS)
    of_servers = systems * (START_S + LOAD_ALL_S * scale + JOIN_S * (len(sizes) - 1 if not options.workers else 0))
    return of_servers + applications * (EXECUTION_S + READ_ALL_S * scale)
