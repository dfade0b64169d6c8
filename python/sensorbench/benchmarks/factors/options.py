"""What can be chosen of a study of factors."""

from sensorbench.options import option
from sensorbench.runner import ClusterOptions, RateOptions, RepetitionOptions, Seconds


class FactorOptions(ClusterOptions, RateOptions, RepetitionOptions):
    """What a user may change; the study decides where nothing is said. `rate` is the highest of each load, instead of what the
    default takes.
    """

    target: str | None = option(None, "The study's database, with options after ? as in URLs.")
    parts: tuple[str, ...] = option((), "Run only this part of a study. May be given several times.", "--part")
    scale: float | None = option(
        None, "Share of the study's records and of its size settings. If not given, --budget chooses it, else it is 1."
    )
    budget: Seconds | None = option(
        None,
        "Choose the scale, measure first what decides most claims, and start nothing that would not end in this time: 60m. --resume continues.",
    )
    duration: Seconds | None = option(None, "Duration of each rate: 30s, 5m.")

    @property
    def used_scale(self) -> float:
        """Share of the records that is used: all of them, if nothing is said."""
        return 1.0 if self.scale is None else self.scale
