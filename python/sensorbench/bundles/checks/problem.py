"""What a check finds."""

from dataclasses import dataclass

from sensorbench.results import RunResult


@dataclass(frozen=True)
class Problem:
    """Something that is wrong in results: which check found it, where, and what."""

    check: str
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.check}: {self.where}: {self.text}"


def run_name(run: RunResult) -> str:
    """A run in a few words."""
    return f"{run.manifest.variant.id}, run {run.manifest.repetition}"
