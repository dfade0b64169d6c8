"""Blocks of a comparison whose variants are measured one at a time: what was planned of them, and where data lay between them."""

import math
from itertools import pairwise
from typing import Literal

from pydantic import Field

from sensorbench.results.summary.part import SummaryPart


class PlannedBlocks(SummaryPart):
    """How a comparison is cut into blocks, during each of which the server of one variant is up."""

    repetitions_per_block: int = Field(description="Repetitions from a start of a server until it is stopped, at most.")
    disk_reserve_bytes: int = Field(description="Bytes that stay free on the disk.")

    def rounds(self, repetitions: int) -> list[tuple[int, ...]]:
        """The numbers of repetitions, from 1, that each round of blocks has: at most this many, and as evenly as can be."""
        count = math.ceil(repetitions / self.repetitions_per_block)
        ends = [round(repetitions * number / count) for number in range(count + 1)]
        return [tuple(range(first + 1, last + 1)) for first, last in pairwise(ends)]


class DataBetweenBlocks(SummaryPart):
    """Where the data of variants are that are not measured, and the arithmetic by which that was decided."""

    choice: Literal["on disk", "loaded again"] = Field(
        description="`on disk`: the data of all variants are there at once. `loaded again`: each block loads, so that only the data of one variant are there."
    )
    needed_bytes: int = Field(description="What the data of all variants take on disk at once, by `sizes_by`.")
    free_bytes: int = Field(description="What was free before anything was loaded.")
    reserve_bytes: int = Field(description="What is to stay free.")
    sizes_by: Literal["pilot", "prepared rows", "loads"] = Field(
        description="What the sizes of variants are known by: by what was prepared for loading until some were loaded."
    )
