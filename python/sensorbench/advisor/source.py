"""Where a recommendation is from: results of one's own, a bundle of evidence, or the small reference in the package."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from sensorbench.benchmarks.comparison import Gathered

FORMAT = 1
EVIDENCE_FILE = Path(__file__).parent / "reference" / "evidence.json"


@dataclass(frozen=True)
class EvidenceBundle:
    """What a result bundle measured, as candidates for a recommendation; `is_own`: it is the user's, not one that is shipped."""

    name: str
    sha256: str
    gathered: Gathered
    is_own: bool = False


@dataclass(frozen=True)
class Source:
    """The measurements that a recommendation is made from. `name` is a folder, the name of a bundle, or `reference`."""

    kind: Literal["results", "evidence", "reference"]
    name: str
    gathered: Gathered

    @property
    def described(self) -> str:
        """What it is, in words."""
        words = {"results": self.name, "evidence": f"the evidence bundle {self.name}", "reference": "the shipped reference"}
        return words[self.kind]


_ADAPTER = TypeAdapter(list[EvidenceBundle])


def shipped_evidence() -> list[EvidenceBundle]:
    """What the bundles of evidence measured that were published with this version."""
    content = json.loads(EVIDENCE_FILE.read_text(encoding="utf-8"))
    if content["format"] != FORMAT:
        raise AssertionError(f"{EVIDENCE_FILE}: written in another format; write it again by `make evidence-pages`")
    return _ADAPTER.validate_python(content["bundles"])


def evidence_text(bundles: Sequence[EvidenceBundle]) -> str:
    """Bundles as the file of those that are shipped has them."""
    content = {"format": FORMAT, "bundles": _ADAPTER.dump_python(list(bundles), mode="json")}
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
