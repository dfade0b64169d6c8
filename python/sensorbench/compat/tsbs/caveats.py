"""What figures of TSBS's queries do not say: where a query means nothing at its own limits, and where TSBS asks databases different things."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from sensorbench import toml_file


class _Caveats(toml_file.FileModel):
    """The file."""

    degenerate: dict[str, str] = Field(description="Queries that mean nothing with TSBS's limits and interval, and why.")
    use_case: dict[str, str] = Field(description="Of all queries of a use case.")
    query: dict[str, str] = Field(description="Of a query.")


_CAVEATS = toml_file.load(Path(__file__).with_suffix(".toml"), _Caveats)
# Queries that mean nothing with TSBS's limits and interval, with why.
DEGENERATE = _CAVEATS.degenerate


def caveats_of(use_case: str, queries: Sequence[str]) -> dict[str, list[str]]:
    """What figures of queries do not say, by query, and at last what concerns them all, as `all queries`."""
    found = {}
    for name in queries:
        texts = [f"{text[0].upper()}{text[1:]}." for text in [DEGENERATE.get(name)] if text]
        texts += [text for text in [_CAVEATS.query.get(name)] if text]
        if texts:
            found[name] = texts
    return {**found, "all queries": [_CAVEATS.use_case[use_case]]}
