"""What a recommendation stands on: scale, nodes and machine of the measurements, which say how far it reaches."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sensorbench.benchmarks.comparison import Gathered

T = TypeVar("T")


@dataclass(frozen=True)
class Basis:
    """The measurements behind a recommendation. Of several comparisons or targets with different ones, each is there once. `nodes` are those
    of each target that has a server; an embedded database has none.
    """

    is_reference: bool
    source: str
    scales: tuple[float, ...]
    readings: tuple[int, ...]
    nodes: dict[str, tuple[int, ...]]
    machines: tuple[str, ...]
    dates: tuple[str, ...]

    @property
    def lines(self) -> list[str]:
        """The same in words: what was measured, then on what."""
        whose = "the reference results in the package" if self.is_reference else self.source
        scales = " and ".join(f"{scale:g}" for scale in self.scales)
        readings = " and ".join(f"{count:,}" for count in self.readings)
        servers = ", ".join(f"{target} {_nodes(counts)}" for target, counts in self.nodes.items())
        warning = "; not your data" if self.is_reference else ""
        return [
            f"by {whose}: scale {scales} ({readings} readings), {' and '.join(self.dates)}{warning}",
            f"measured on {' and '.join(self.machines)}; {servers or 'embedded databases only'}",
        ]


def basis_of(folder: Path | None, gathered: Gathered) -> Basis:
    """What the candidates were measured on.

    Args:
        folder: of the results; None for those that are shipped.
        gathered: the candidates, and the comparisons that they are from.

    """
    origins = list(gathered.origins.values())
    servers = [candidate for candidate in gathered.candidates if not candidate.embedded]
    return Basis(
        is_reference=folder is None,
        source="reference" if folder is None else str(folder),
        scales=_once([origin.scale for origin in origins]),
        readings=_once([origin.readings for origin in origins]),
        nodes={
            target: _once([candidate.nodes for candidate in servers if candidate.target == target])
            for target in dict.fromkeys(candidate.target for candidate in servers)
        },
        machines=_once([origin.machine for origin in origins]),
        dates=_once([origin.date for origin in origins]),
    )


def _once(values: Sequence[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(values))


def _nodes(counts: Sequence[int]) -> str:
    text = " or ".join(map(str, counts))
    return f"{text} node" if text == "1" else f"{text} nodes"
