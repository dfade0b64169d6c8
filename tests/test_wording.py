"""Numbers in sentences."""

import pytest

from sensorbench.wording import counted


@pytest.mark.parametrize(
    ("number", "noun", "shown"),
    [
        (0, ("row",), "0 rows"),
        (1, ("row",), "1 row"),
        (1200, ("row",), "1,200 rows"),
        (1, ("other entry", "other entries"), "1 other entry"),
        (2, ("other entry", "other entries"), "2 other entries"),
    ],
)
def test_a_noun_agrees_with_its_number(number: int, noun: tuple[str, ...], shown: str) -> None:
    assert counted(number, *noun) == shown
