"""Rules of judgement, as `claims.toml` states them: what a measurement must show so that a claim counts as reproduced.

Each rule has a null, at which it says "reproduced" or "partly reproduced" in at most 5% of all cases, and a contrary, at which it says "not
reproduced"; `simulation.py` holds it to that. A rule is about figures with an interval (`intervals.py`), and judges the interval: a wide one is
never an agreement.

| rule | what it claims | not reproduced |
|---|---|---|
| greater | the ratio lies above the smallest relevant effect | the interval does not reach above it |
| ratio | the same, and the ratio is about as large as the paper's | as `greater`; a different magnitude is "partly reproduced" |
| equal | the ratio lies within the margin around 1 | the interval lies outside |
| no_less | the ratio lies above 1 less the margin | the interval lies below |
| threshold | a value lies above, below or between limits | the interval lies outside |
| order | each figure is larger than the next | one of them is not |
| trend | a figure grows from level to level | it falls, or does not grow |
| share | a share of operations lies above or below a limit | its exact interval lies outside |
| count | an exact number lies between limits, in each run | in one run it does not |
| extreme | the extreme of a series within a window is none of the series' usual ones | it is a usual one |
"""

import math
from collections.abc import Mapping
from itertools import pairwise, product
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from sensorbench import toml_file
from sensorbench.analysis.verdicts import EQUIVALENCE_MARGIN
from sensorbench.claims.expression import Expression

# A difference that is smaller than this factor is irrelevant, unless a claim says another one.
MIN_EFFECT = 1.0 + EQUIVALENCE_MARGIN
# A published ratio r is met within r × [1/1.5, 1.5], or within r ** [1/1.5, 1.5], whichever is narrower.
TOLERANCE = 1.5
# The words of the papers, each as one number.
WORDS: Mapping[str, float] = {
    # Factors from which on it is so.
    "slightly": 1.05,
    "much": 2.0,
    "several": 3.0,
    "far": 3.0,
    "orders of magnitude": 10.0,
    # Margins within which it is so.
    "near": 0.25,
    "about": 0.25,
    "the same": 0.10,
}


def _parsed(text: str) -> str:
    # A name of `for_each` may stand anywhere in the text; the whole is checked when it is filled in.
    if "{" not in text:
        Expression.parse(text)
    return text


Formula = Annotated[str, AfterValidator(_parsed)]
Factor = Annotated[float | Literal["slightly", "much", "several", "far", "orders of magnitude"], Field()]
Margin = Annotated[float | Literal["near", "about", "the same"], Field()]


def number(word: float | str) -> float:
    """The number of a word of the papers, or a number as it is."""
    return WORDS[word] if isinstance(word, str) else float(word)


class BaseRule(toml_file.FileModel):
    """What all rules have.

    `name` is how the comparison is called in reports. `for_each` has values for names in curly brackets: the rule is judged for each
    combination, and all of them must hold, or at least one where `any`. `unless_missing` says that combinations of which something was not
    measured are left out, where the claim is about whatever was measured.
    """

    name: str = Field(default="", description="What the comparison is called in reports.")
    for_each: dict[str, list[str]] = Field(
        default={}, description="Values of names in curly brackets: the rule is judged for each combination."
    )
    any: bool = Field(default=False, description="Whether one combination is enough; else all must hold.")
    unless_missing: bool = Field(default=False, description="Whether combinations without figures are left out.")

    def expanded(self) -> "list[Any]":
        """The rule for each combination of `for_each`, with the names filled in.

        Raises:
            ValueError: if what comes out is not a formula.

        """
        if not self.for_each:
            return [self]
        content = self.model_dump(exclude={"for_each"})
        combinations = (dict(zip(self.for_each, values, strict=True)) for values in product(*self.for_each.values()))
        return [type(self)(**_filled(content, names)) for names in combinations]

    def formulas(self) -> list[str]:
        """The formulas that have to be measured."""
        raise AssertionError(f"a kind of rule says which formulas it is about: {type(self).__name__}")

    @property
    def expressions(self) -> list[Expression]:
        """The formulas, parsed."""
        return [Expression.parse(formula) for formula in self.formulas()]

    @property
    def title(self) -> str:
        """How the comparison is called in reports."""
        return self.name or ", ".join(self.formulas())


def _filled(content: Any, names: Mapping[str, str]) -> Any:
    """A value of a rule, with the names in its texts filled in."""
    if isinstance(content, str):
        for name, value in names.items():
            content = content.replace(f"{{{name}}}", value)
        return content
    if isinstance(content, dict):
        return {key: _filled(value, names) for key, value in content.items()}
    return [_filled(value, names) for value in content] if isinstance(content, list) else content


class OneFigure(BaseRule):
    """A rule about one formula."""

    of: Formula = Field(description="The formula of the figure.")

    def formulas(self) -> list[str]:
        """The formula."""
        return [self.of]


class Greater(OneFigure):
    """That a ratio lies above the smallest relevant effect. `expected` is the effect that the paper suggests, for simulations."""

    kind: Literal["greater"] = Field(default="greater", description="Kind of the rule.")
    at_least: Factor = Field(default=MIN_EFFECT, description="The smallest relevant effect, a factor or a word for one.")
    expected: float | None = Field(default=None, gt=1.0, description="The effect that the paper suggests, for simulations.")


class Ratio(OneFigure):
    """That a ratio lies on the published side of 1, and is about as large as published."""

    kind: Literal["ratio"] = Field(default="ratio", description="Kind of the rule.")
    published: float = Field(gt=0.0, description="The ratio that the paper printed.")
    at_least: Factor = Field(default=MIN_EFFECT, description="The smallest relevant effect, a factor or a word for one.")
    tolerance: float = Field(
        default=TOLERANCE, gt=1.0, description="The factor by which a ratio may differ from the published one."
    )

    @model_validator(mode="after")
    def _has_a_direction(self) -> "Ratio":
        if math.isclose(self.published, 1.0):
            raise ValueError("published = 1 has no direction; use kind = 'equal'")
        return self

    def band(self) -> tuple[float, float]:
        """What counts as the published magnitude; it never includes 1."""
        ends = [self.published / self.tolerance, self.published * self.tolerance]
        powers = sorted([self.published ** (1.0 / self.tolerance), self.published**self.tolerance])
        return max(ends[0], powers[0]), min(ends[1], powers[1])


class Equal(OneFigure):
    """That a ratio is 1, but for the margin: it lies between 1 / (1 + margin) and 1 + margin."""

    kind: Literal["equal"] = Field(default="equal", description="Kind of the rule.")
    margin: Margin = Field(default="near", description="The equivalence margin, a share or a word for one.")


class NoLess(OneFigure):
    """That a ratio is not below 1 by more than the margin."""

    kind: Literal["no_less"] = Field(default="no_less", description="Kind of the rule.")
    margin: Margin = Field(default="near", description="The equivalence margin, a share or a word for one.")
    expected: float | None = Field(default=None, gt=0.0, description="The effect that the paper suggests, for simulations.")


class Threshold(OneFigure):
    """That a value lies above a limit, below one, or between two. `expected` and `contrary` are values for simulations; so is `size`: how
    large the figures are of which the formula is a sum, because they vary by a share of that, not of their difference.
    """

    kind: Literal["threshold"] = Field(default="threshold", description="Kind of the rule.")
    above: float | None = Field(default=None, description="The limit that the value is above.")
    below: float | None = Field(default=None, description="The limit that the value is below.")
    expected: float = Field(description="The value that the paper suggests, for simulations.")
    contrary: float = Field(description="A value that contradicts the claim, for simulations.")
    size: float | None = Field(default=None, gt=0.0, description="The size of what the value is part of, for simulations.")

    @model_validator(mode="after")
    def _has_a_limit(self) -> "Threshold":
        if self.above is None and self.below is None:
            raise ValueError("a threshold has 'above', 'below' or both")
        if not self.holds(self.expected) or self.holds(self.contrary):
            raise ValueError("'expected' must lie within the limits and 'contrary' outside")
        return self

    def holds(self, value: float) -> bool:
        """Whether a value lies within the limits."""
        return (self.above is None or value > self.above) and (self.below is None or value < self.below)


class Several(BaseRule):
    """A rule about several formulas."""

    of: list[Formula] = Field(min_length=2, description="The formulas of the figures, in their order.")

    def formulas(self) -> list[str]:
        """The formulas."""
        return list(self.of)


class Order(Several):
    """That each figure is larger than the next, by the smallest relevant effect."""

    kind: Literal["order"] = Field(default="order", description="Kind of the rule.")
    at_least: Factor = Field(default=MIN_EFFECT, description="The smallest relevant effect, a factor or a word for one.")
    expected: float | None = Field(default=None, gt=1.0, description="The effect that the paper suggests, for simulations.")

    def pairs(self) -> list[Greater]:
        """The rules of which it is made: each over the next."""
        return [
            Greater(
                name=f"{larger} over {smaller}", of=f"({larger}) / ({smaller})", at_least=self.at_least, expected=self.expected
            )
            for larger, smaller in pairwise(self.of)
        ]


class Trend(Several):
    """That a figure grows from level to level, and by the smallest relevant effect from the first to the last."""

    kind: Literal["trend"] = Field(default="trend", description="Kind of the rule.")
    of: list[Formula] = Field(min_length=3, description="The formulas of the figures, from level to level.")
    at_least: Factor = Field(default=MIN_EFFECT, description="The smallest relevant effect, a factor or a word for one.")
    # Last over first.
    expected: float | None = Field(default=None, gt=1.0, description="The effect that the paper suggests, for simulations.")


class Share(OneFigure):
    """That a share of operations lies above a limit, or below one."""

    kind: Literal["share"] = Field(default="share", description="Kind of the rule.")
    above: float | None = Field(default=None, gt=0.0, lt=1.0, description="The limit that the share is above.")
    below: float | None = Field(default=None, gt=0.0, lt=1.0, description="The limit that the share is below.")

    @model_validator(mode="after")
    def _has_one_limit(self) -> "Share":
        if (self.above is None) == (self.below is None):
            raise ValueError("a share has either 'above' or 'below'")
        return self


class Count(OneFigure):
    """That a number, which is exact, lies between limits (both included) in each run."""

    kind: Literal["count"] = Field(default="count", description="Kind of the rule.")
    min: float | None = Field(default=None, description="The smallest number that agrees.")
    max: float | None = Field(default=None, description="The largest number that agrees.")

    @model_validator(mode="after")
    def _has_a_limit(self) -> "Count":
        if self.min is None and self.max is None:
            raise ValueError("a count has 'min', 'max' or both")
        return self


class Extreme(OneFigure):
    """That the extreme of a series within a window is beyond those that such windows have elsewhere, by the smallest relevant effect.

    `of` names a series; `side` is whether its largest or smallest value counts.
    """

    kind: Literal["extreme"] = Field(default="extreme", description="Kind of the rule.")
    side: Literal["max", "min"] = Field(default="max", description="Which extreme.")
    at_least: Factor = Field(default=MIN_EFFECT, description="The smallest relevant effect, a factor or a word for one.")
    published: float | None = Field(default=None, description="The extreme that the paper printed, as a factor.")
    # That there is no such extreme.
    absent: bool = Field(default=False, description="Whether the claim is that there is no such extreme.")


Rule = Annotated[
    Greater | Ratio | Equal | NoLess | Threshold | Order | Trend | Share | Count | Extreme, Field(discriminator="kind")
]
