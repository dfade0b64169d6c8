"""The catalogue of databases, and what is chosen from it."""

from sensorbench.catalog.axes import Axis, Study, axes, studies
from sensorbench.catalog.capability import Capability, capabilities
from sensorbench.catalog.entry import WHEN, Entry, Fact, When, entries, read_entry, require_entry
from sensorbench.catalog.told import told_catalogue, told_entry

__all__ = [
    "WHEN",
    "Axis",
    "Capability",
    "Entry",
    "Fact",
    "Study",
    "When",
    "axes",
    "capabilities",
    "entries",
    "read_entry",
    "require_entry",
    "studies",
    "told_catalogue",
    "told_entry",
]
