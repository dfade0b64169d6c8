"""Numbers in sentences."""


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: 1 node, 3 nodes, 1,200 entries.

    Args:
        number: how many there are.
        noun: what one of them is called.
        plural: what several are called, if that is not the noun with an s.

    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
