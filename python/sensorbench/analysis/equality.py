"""Whether databases gave equal answers: no ranking without that."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

# Computed floats may differ by this share: databases add up in different orders.
TOLERANCE = 1e-9
MAX_SHOWN = 5
REFERENCE = "reference"


@dataclass(frozen=True)
class Answer:
    """What is compared of an answer."""

    rows: int
    hash: int
    in_order: bool | None
    computed: tuple[float, ...] = ()


@dataclass(frozen=True)
class Mismatch:
    """Two answers to the same operation that differ."""

    k: int
    variant: str
    other: str
    problem: str


@dataclass(frozen=True)
class Equality:
    """How the answers to one kind of operation compare."""

    operation: str
    compared: int
    compared_with_reference: int
    mismatch_count: int
    mismatches: tuple[Mismatch, ...]
    answered: bool = True

    @property
    def equal(self) -> bool:
        """Whether all answers that should be equal are; some must have been compared with the reference, unless there were none at
        all.
        """
        return self.mismatch_count == 0 and (self.compared_with_reference > 0 or not self.answered)


def compare_answers(operation: str, answers: Mapping[str, Mapping[int, Answer]], reference: Mapping[int, Answer]) -> Equality:
    """Compares, operation by operation, the answers of each variant with the reference where there is one, and with those of
    the first variant that answered the same operation.
    """
    mismatches: list[Mismatch] = []
    compared = with_reference = 0
    expected: dict[int, tuple[str, Answer]] = {}
    for variant, of_variant in answers.items():
        for k, answer in sorted(of_variant.items()):
            if k in reference:
                with_reference += 1
                _add_mismatch(mismatches, k, variant, answer, REFERENCE, reference[k])
            elif k in expected:
                compared += 1
                _add_mismatch(mismatches, k, variant, answer, *expected[k])
            expected.setdefault(k, (variant, answer))
    return Equality(
        operation, compared + with_reference, with_reference, len(mismatches), tuple(mismatches[:MAX_SHOWN]), bool(expected)
    )


def _add_mismatch(mismatches: list[Mismatch], k: int, variant: str, answer: Answer, other: str, expected: Answer) -> None:
    problem = difference(answer, expected)
    if problem:
        mismatches.append(Mismatch(k, variant, other, problem))


def difference(answer: Answer, expected: Answer) -> str | None:
    """What is different, or None."""
    if answer.in_order is False:
        return "the rows do not come in the declared order"
    if answer.rows != expected.rows:
        return f"{answer.rows} rows instead of {expected.rows}"
    if answer.hash != expected.hash:
        return f"{answer.rows} rows, as expected, but with other values"
    computed, wanted = np.array(answer.computed), np.array(expected.computed)
    if computed.shape != wanted.shape:
        return f"{len(computed)} computed values instead of {len(wanted)}"
    if not np.allclose(computed, wanted, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
        return "computed values differ by more than the tolerance"
    return None
