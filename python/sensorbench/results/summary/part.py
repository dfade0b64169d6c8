"""What all parts of summaries have in common."""

from pydantic import BaseModel, ConfigDict


class SummaryPart(BaseModel):
    """A part of a summary. Times are in s, sizes in bytes, rates per second."""

    model_config = ConfigDict(extra="forbid", frozen=True)
