"""What the claims of the study (claims.toml) speak of, besides the figures of levels."""

from collections.abc import Mapping

from sensorbench.claims import NotMeasuredError, RunValues
from sensorbench.results.factors import FactorsResult
from sensorbench.studies.factors import FactorQuantity

# Fewer pairs of figures have no rank correlation that says anything.
MIN_STEPS = 10


def _load_disk_correlation(result: FactorsResult) -> RunValues:
    """Spearman's rank correlation of CPU load and disk throughput over all steps, round by round.

    Steps of one measurement have the same servers and follow one another, so that they are not independent observations. The levels and
    loads are the same in each round, and a round gives one number: what is repeated is the round.
    """
    from scipy.stats import spearmanr

    pairs: dict[int, list[tuple[float, float]]] = {}
    measured = (
        measurement for of_cell in result.measurements.values() for measurement in of_cell if measurement.outcome == "measured"
    )
    for measurement in measured:
        for step in measurement.steps:
            if step.server_cpu is not None and step.disk_read_per_s is not None and step.disk_written_per_s is not None:
                disk_per_s = step.disk_read_per_s + step.disk_written_per_s
                pairs.setdefault(measurement.round, []).append((step.server_cpu, disk_per_s))
    by_round = {
        number: float(spearmanr(*zip(*of_round, strict=True)).statistic)
        for number, of_round in sorted(pairs.items())
        if len(of_round) >= MIN_STEPS and all(len(set(column)) > 1 for column in zip(*of_round, strict=True))
    }
    if not by_round:
        raise NotMeasuredError(f"no round has {MIN_STEPS} steps with figures of both that differ")
    return RunValues(by_round, "rounds")


QUANTITIES: Mapping[str, FactorQuantity] = {"load_disk_correlation": _load_disk_correlation}
