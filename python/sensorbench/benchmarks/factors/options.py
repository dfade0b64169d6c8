"""What can be chosen of a study of factors."""

from sensorbench.options import option
from sensorbench.runner import ClusterOptions, RateOptions, RepetitionOptions, Seconds


class FactorOptions(ClusterOptions, RateOptions, RepetitionOptions):
    """What a user may change; the study decides where nothing is said. `rate` is the highest of each load, instead of what the
    default takes.
    """

    target: str | None = option(None, "The study's database with options behind ?, as in URLs.")
    parts: tuple[str, ...] = option((), "Only this part, of a study with parts. May be given several times.", "--part")
    scale: float | None = option(
        None, "Share of the study's records, and of the settings that are sizes. Without it, --budget chooses, or it is all."
    )
    budget: Seconds | None = option(
        None,
        "Choose the scale by arithmetic, measure first what decides most claims, and begin nothing that would not end in this time: 60m. --resume goes on.",
    )
    duration: Seconds | None = option(None, "How long each rate is held: 30s, 5m.")

    @property
    def used_scale(self) -> float:
        """Share of the records that is used: all of them, if nothing is said."""
        return 1.0 if self.scale is None else self.scale
