"""The reference results that are shipped: what a run of the sensor-schema study measured, for those who have no study of
their own.

The file is written by `python -m sensorbench.advisor.write_reference DIR`. It has what ranking and showing need: the figure
of each run, which run it was, and where and when; one layout a line.
"""

import json
from pathlib import Path

from pydantic import TypeAdapter

from sensorbench.benchmarks.comparison import Gathered

FORMAT = 1
REFERENCE_FILE = Path(__file__).parent / "reference" / "sensor-schemas.json"

_ADAPTER = TypeAdapter(Gathered)


def shipped() -> Gathered:
    """The candidates that come with sensorbench."""
    return parsed(REFERENCE_FILE.read_text(encoding="utf-8"))


def parsed(text: str) -> Gathered:
    """Candidates as `written` wrote them."""
    content = json.loads(text)
    if content.pop("format") != FORMAT:
        raise AssertionError(f"{REFERENCE_FILE}: written in another format; write it again")
    return _ADAPTER.validate_python(content)


def written(gathered: Gathered) -> str:
    """Candidates as text, one a line."""
    content = _ADAPTER.dump_python(gathered, mode="json")
    layouts = ",\n".join(json.dumps(item, ensure_ascii=False, allow_nan=False) for item in content.pop("candidates"))
    others = json.dumps({"format": FORMAT, **content}, indent=1, ensure_ascii=False, allow_nan=False)
    return f'{others.removesuffix("}").rstrip()},\n "candidates": [\n{layouts}\n]\n}}\n'
