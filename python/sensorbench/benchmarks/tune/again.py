"""The goal's figure of a measurement, computed again from what its run recorded."""

from pathlib import Path

from sensorbench.analysis.capacity import PERCENTILES
from sensorbench.benchmarks.stress import summarise_stress
from sensorbench.benchmarks.tune.goal import percentile_of_offered
from sensorbench.results.planned import PlannedTune
from sensorbench.results.stress import read_stress


def follows_from_records(plan: PlannedTune) -> bool:
    """Whether the goal's figure follows from histograms and counts; the time to load and the size were measured once."""
    return plan.goal.text not in ("load", "size")


def value_again(plan: PlannedTune, folder: Path) -> float | None:
    """The goal's figure by the records of a measurement.

    Args:
        plan: of the search; its goal must follow from records.
        folder: of the measurement, which is a stress run.

    Returns:
        The figure in the goal's unit; None if there is none.

    """
    result = read_stress(folder)
    if plan.goal.text.startswith("capacity:"):
        found = summarise_stress(result).result.capacity
        return found.met_per_s if found else None
    share = PERCENTILES[plan.goal.text.partition("@")[0]]
    return percentile_of_offered(result.runs[0], share, plan.workload["timeout_s"]) if result.runs else None
