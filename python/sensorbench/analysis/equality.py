"""Whether databases gave equal answers: no ranking without that.

Answers are compared by columns, since a run has as many of them as operations.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Computed floats may differ by this share: databases add up in different orders.
TOLERANCE = 1e-9
MAX_SHOWN = 5
REFERENCE = "reference"

Numbers = NDArray[np.uint64]
Places = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Answer:
    """What is compared of an answer."""

    rows: int
    hash: int
    in_order: bool | None
    computed: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers to one kind of operation by columns, in ascending order of the operations' numbers.

    Args:
        numbers: the number k of each operation, shape (answers,).
        rows: how many rows each answer has, shape (answers,).
        hashes: the digest of the exact values of each answer, shape (answers,).
        in_order: 1 where the rows came in the declared order, 0 where they did not, -1 where that was not looked at, shape (answers,).
        computed: the computed values of all answers, one answer after the other, shape (values,).
        ends: where the computed values of each answer end, shape (answers,).

    """

    numbers: Numbers
    rows: Numbers
    hashes: Numbers
    in_order: NDArray[np.int8]
    computed: NDArray[np.float64]
    ends: Places

    @classmethod
    def of(cls, answers: Mapping[int, Answer]) -> "Answers":
        """Answers by the number of their operation."""
        in_turn = sorted(answers.items())
        return cls(
            np.array([number for number, _ in in_turn], dtype=np.uint64),
            np.array([answer.rows for _, answer in in_turn], dtype=np.uint64),
            np.array([answer.hash for _, answer in in_turn], dtype=np.uint64),
            np.array([-1 if answer.in_order is None else int(answer.in_order) for _, answer in in_turn], dtype=np.int8),
            np.array([value for _, answer in in_turn for value in answer.computed], dtype=np.float64),
            np.cumsum([len(answer.computed) for _, answer in in_turn], dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.numbers)

    def find(self, number: int) -> Answer | None:
        """The answer to one operation; None if there is none."""
        place = int(np.searchsorted(self.numbers, np.uint64(number)))
        return self.at(place) if place < len(self) and self.numbers[place] == number else None

    def at(self, place: int) -> Answer:
        """The answer at a place from 0."""
        start = int(self.ends[place - 1]) if place else 0
        computed = tuple(self.computed[start : int(self.ends[place])].tolist())
        in_order = int(self.in_order[place])
        return Answer(int(self.rows[place]), int(self.hashes[place]), None if in_order < 0 else bool(in_order), computed)

    @property
    def lengths(self) -> Places:
        """How many computed values each has."""
        return np.diff(self.ends, prepend=0)

    def places_of(self, numbers: Numbers) -> Places:
        """Where the answers to some operations are; -1 where there is none."""
        if not len(self):
            return np.full(len(numbers), -1, dtype=np.int64)
        places = np.minimum(np.searchsorted(self.numbers, numbers), len(self) - 1)
        return np.where(self.numbers[places] == numbers, places, -1)


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


class EqualityCheck:
    """Compares the answers to one kind of operation: those of each variant with the reference where there is one, and with those of the first variant
    that answered the same operation.

    Args:
        operation: its name.
        reference: the answers that are known to be right.

    """

    def __init__(self, operation: str, reference: Answers) -> None:
        self._operation = operation
        self._reference = reference
        self._first: list[tuple[str, Answers]] = []
        self._known = _Known.nothing()
        self._compared = self._with_reference = self._mismatch_count = 0
        self._mismatches: list[Mismatch] = []
        self._is_answered = False

    def add(self, variant: str, answers: Answers) -> None:
        """Compares the answers of one variant with what is known."""
        if not len(answers):
            return
        self._is_answered = True
        at_reference = self._reference.places_of(answers.numbers)
        of_first, at_first = self._known.places_of(answers.numbers)
        has_reference, has_first = at_reference >= 0, of_first >= 0
        differing = [self._compare(variant, answers, np.flatnonzero(has_reference), REFERENCE, self._reference, at_reference)]
        self._with_reference += int(has_reference.sum())
        is_left = has_first & ~has_reference
        self._compared += int(is_left.sum())
        for number, (other, expected) in enumerate(self._first):
            places = np.flatnonzero(is_left & (of_first == number))
            differing.append(self._compare(variant, answers, places, other, expected, at_first))
        self._show(sorted((mismatch for some in differing for mismatch in some), key=lambda mismatch: mismatch.k))
        if not has_first.all():
            self._known = self._known.with_more(answers.numbers, np.flatnonzero(~has_first), len(self._first))
            self._first.append((variant, answers))

    def forget(self) -> None:
        """Lets go of the answers that later ones were to be compared with: what is added from now on answers other operations."""
        self._first, self._known = [], _Known.nothing()

    def result(self) -> Equality:
        """What was found of all that was added."""
        compared = self._compared + self._with_reference
        shown = tuple(self._mismatches)
        return Equality(self._operation, compared, self._with_reference, self._mismatch_count, shown, self._is_answered)

    def _compare(
        self, variant: str, answers: Answers, places: Places, other: str, expected: Answers, at_expected: Places
    ) -> list[Mismatch]:
        """Counts the answers at some places that are not as expected; returns the first of them."""
        differing = places[_differs(answers, places, expected, at_expected[places])]
        self._mismatch_count += len(differing)
        found = []
        for place in differing[:MAX_SHOWN].tolist():
            problem = difference(answers.at(place), expected.at(int(at_expected[place]))) or ""
            found.append(Mismatch(int(answers.numbers[place]), variant, other, problem))
        return found

    def _show(self, mismatches: list[Mismatch]) -> None:
        self._mismatches += mismatches[: MAX_SHOWN - len(self._mismatches)]


@dataclass(frozen=True)
class _Known:
    """Which operations were answered, in ascending order: by which of the variants first, and at which place of its answers."""

    numbers: Numbers
    variants: Places
    places: Places

    @classmethod
    def nothing(cls) -> "_Known":
        return cls(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64))

    def places_of(self, numbers: Numbers) -> tuple[Places, Places]:
        """Of some operations the variant, -1 where none answered, and the place of its answer."""
        if not len(self.numbers):
            return np.full(len(numbers), -1, dtype=np.int64), np.zeros(len(numbers), dtype=np.int64)
        at = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
        return np.where(self.numbers[at] == numbers, self.variants[at], -1), self.places[at]

    def with_more(self, numbers: Numbers, places: Places, variant: int) -> "_Known":
        """These and the operations at some places of another variant's answers."""
        all_numbers = np.concatenate([self.numbers, numbers[places]])
        order = np.argsort(all_numbers, kind="stable")
        variants = np.concatenate([self.variants, np.full(len(places), variant, dtype=np.int64)])
        return _Known(all_numbers[order], variants[order], np.concatenate([self.places, places])[order])


def together(operation: str, parts: Sequence[Equality]) -> Equality:
    """What was found of one kind of operation by several checks, each of which compared answers to questions of its own."""
    return Equality(
        operation,
        sum(part.compared for part in parts),
        sum(part.compared_with_reference for part in parts),
        sum(part.mismatch_count for part in parts),
        tuple(mismatch for part in parts for mismatch in part.mismatches)[:MAX_SHOWN],
        any(part.answered for part in parts),
    )


def compare_answers(operation: str, answers: Mapping[str, Answers], reference: Answers) -> Equality:
    """How the answers of variants compare with one another and with the reference.

    Args:
        operation: the name of the kind of operation.
        answers: the answers of each variant.
        reference: the answers that are known to be right.

    """
    check = EqualityCheck(operation, reference)
    for variant, of_variant in answers.items():
        check.add(variant, of_variant)
    return check.result()


def _differs(answers: Answers, places: Places, expected: Answers, at_expected: Places) -> Flags:
    """Of the answers at some places, which are not those expected; `difference` says it of one, in words."""
    differs: Flags = (answers.in_order[places] == 0) | (answers.rows[places] != expected.rows[at_expected])
    differs |= answers.hashes[places] != expected.hashes[at_expected]
    if len(answers.computed) or len(expected.computed):
        lengths = answers.lengths[places]
        differs |= lengths != expected.lengths[at_expected]
        comparable = np.flatnonzero(~differs & (lengths > 0))
        if len(comparable):
            of_each = lengths[comparable]
            computed = _values_at(answers, places[comparable], of_each)
            wanted = _values_at(expected, at_expected[comparable], of_each)
            is_close = np.isclose(computed, wanted, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
            differs[comparable] = ~np.logical_and.reduceat(is_close, np.cumsum(of_each) - of_each)
    return differs


def _values_at(answers: Answers, places: Places, lengths: Places) -> NDArray[np.float64]:
    """The computed values of the answers at some places, which have this many of them."""
    starts = answers.ends[places] - lengths
    before = np.cumsum(lengths) - lengths
    values: NDArray[np.float64] = answers.computed[np.repeat(starts - before, lengths) + np.arange(lengths.sum())]
    return values


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
