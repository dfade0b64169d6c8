"""What a recommendation stands on: scale, nodes and machine of the measurements, which say how far it reaches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from sensorbench.advisor.source import Source

T = TypeVar("T")


@dataclass(frozen=True)
class Basis:
    """The measurements behind a recommendation. Of several comparisons or targets with different ones, each is there once. `nodes` are those
    of each target that has a server; an embedded database has none. `versions` are those of sensorbench and of the databases.
    """

    source: Source
    scales: tuple[float, ...]
    readings: tuple[int, ...]
    nodes: dict[str, tuple[int, ...]]
    machines: tuple[str, ...]
    dates: tuple[str, ...]
    versions: tuple[str, ...]

    @property
    def is_reference(self) -> bool:
        """Whether it is the small reference in the package."""
        return self.source.kind == "reference"

    @property
    def lines(self) -> list[str]:
        """The same in words: what was measured, then on what."""
        whose = "the reference results in the package" if self.is_reference else self.source.described
        scales = " and ".join(f"{scale:g}" for scale in self.scales)
        readings = " and ".join(f"{count:,}" for count in self.readings)
        servers = ", ".join(f"{target} {_nodes(counts)}" for target, counts in self.nodes.items())
        warning = "" if self.source.kind == "results" else "; not your data"
        return [
            f"by {whose}: scale {scales} ({readings} readings), {' and '.join(self.dates)}{warning}",
            f"measured on {' and '.join(self.machines)}; {servers or 'embedded databases only'}",
            f"versions: {', '.join(self.versions)}",
        ]


def basis_of(source: Source) -> Basis:
    """What the candidates of a source were measured on."""
    gathered = source.gathered
    origins = list(gathered.origins.values())
    servers = [candidate for candidate in gathered.candidates if not candidate.embedded]
    databases = sorted({candidate.version for candidate in gathered.candidates if candidate.version})
    return Basis(
        source=source,
        scales=_once([origin.scale for origin in origins]),
        readings=_once([origin.readings for origin in origins]),
        nodes={
            target: _once([candidate.nodes for candidate in servers if candidate.target == target])
            for target in dict.fromkeys(candidate.target for candidate in servers)
        },
        machines=_once([origin.machine for origin in origins]),
        dates=_once([origin.date for origin in origins]),
        versions=(*_once([f"sensorbench {origin.version}" for origin in origins]), *databases),
    )


def _once(values: Sequence[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(values))


def _nodes(counts: Sequence[int]) -> str:
    text = " or ".join(map(str, counts))
    return f"{text} node" if text == "1" else f"{text} nodes"
