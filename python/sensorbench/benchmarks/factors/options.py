"""What can be chosen of a study of factors."""

from sensorbench.options import option
from sensorbench.runner import RateOptions, Seconds, StudyRunOptions


class FactorOptions(RateOptions, StudyRunOptions):
    """What a user may change; the study decides where nothing is said. `rate` is the highest of each load, instead of what the
    default takes.
    """

    target: str | None = option(None, "The study's database with options behind ?, as in URLs.")
    parts: tuple[str, ...] = option((), "Only this part, of a study with parts. May be given several times.", "--part")
    scale: float = option(1.0, "Share of the study's records, and of the settings that are sizes.")
    duration: Seconds | None = option(None, "How long each rate is held: 30s, 5m.")
