"""The cells of a study of factors: a configuration under a load, on fresh servers. What several parts ask for is one cell."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sensorbench.benchmarks.factors.file import FactorsFile
from sensorbench.benchmarks.factors.scaling import Scaled
from sensorbench.results.planned import PlannedCell

# Settings that change how records lie on disk.
Layout = tuple[tuple[str, str], ...]


@dataclass
class Cell:
    """A configuration under a load, and which levels of which parts it is. `apart`: it is not shared with other parts."""

    id: str
    load: str
    settings: dict[str, str]
    apart: bool
    levels: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Turn:
    """The measurement of a cell in a round."""

    cell: Cell
    round: int


def cells_of(file: FactorsFile, parts: Sequence[str], at: Scaled) -> dict[str, Cell]:
    """The cells of some parts by their ids, in order; those of parts that are apart come last."""
    found: dict[str, Cell] = {}
    for name in sorted(parts, key=lambda name: file.parts[name].apart):
        part = file.parts[name]
        for load in part.loads:
            for level in part.levels:
                settings = at.configuration({**file.default, **level.set})
                add(found, load, settings, name, level.name, apart=part.apart)
    return found


def add(found: dict[str, Cell], load: str, settings: Mapping[str, str], part: str, level: str, *, apart: bool) -> Cell:
    """The cell of a level under a load: one that is there already, or a new one."""
    same = (cell for cell in found.values() if (cell.load, cell.settings, cell.apart) == (load, settings, apart))
    cell = next(same, None)
    if cell is None:
        cell = Cell(_new_id(found, f"{load} {part} {level}"), load, dict(settings), apart)
        found[cell.id] = cell
    cell.levels.append((part, level))
    return cell


def described_cells(cells: Mapping[str, Cell]) -> dict[str, PlannedCell]:
    """Cells as manifests have them."""
    return {
        cell.id: PlannedCell(load=cell.load, settings=cell.settings, apart=cell.apart, levels=cell.levels)
        for cell in cells.values()
    }


def layout(cell: Cell, file: FactorsFile) -> Layout:
    """The settings of a cell that change how records lie on disk: cells that have the same can share records."""
    return tuple(sorted((key, value) for key, value in cell.settings.items() if key not in file.not_on_disk))


def _new_id(found: Mapping[str, Cell], words: str) -> str:
    """An id that is a name of a folder, too."""
    base = re.sub(r"[^a-z0-9.]+", "-", words.lower()).strip("-")
    return next(name for name in (base, *(f"{base}-{number}" for number in range(2, len(found) + 3))) if name not in found)
