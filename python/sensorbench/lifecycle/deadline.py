"""When a budget of time is over: nothing is begun that would not end before."""

import time
from dataclasses import dataclass, field

from sensorbench.errors import BudgetOverError


@dataclass
class Deadline:
    """The end of a budget, which counts from when this was made. What comes next is expected to take as long as the longest of its kinds before."""

    budget_s: float
    _begun_s: float = field(default_factory=time.monotonic)
    _longest_s: dict[str, float] = field(default_factory=dict)

    def note(self, took_s: float, kind: str = "") -> None:
        """Puts down how long something of a kind took."""
        self._longest_s[kind] = max(self._longest_s.get(kind, 0.0), took_s)

    def check(self, what: str, *kinds: str) -> None:
        """Raises BudgetOverError if that, which is something of each of these kinds, would not end in time."""
        expected_s = sum(self._longest_s.get(kind, 0.0) for kind in kinds or ("",))
        if time.monotonic() - self._begun_s + expected_s > self.budget_s:
            length = f"{self.budget_s:g} s" if self.budget_s < 120.0 else f"{self.budget_s / 60:.0f} min"
            raise BudgetOverError(f"the budget of {length} is over before {what}; --resume continues")
