"""The catalogue of databases, and what is chosen from it."""

from sensorbench.catalog.axes import Axis, Study, axes, studies
from sensorbench.catalog.capability import Capability, capabilities
from sensorbench.catalog.choose import Chosen, Difference, choose_databases, choose_for
from sensorbench.catalog.entry import WHEN, Entry, Fact, When, entries, read_entry, require_entry
from sensorbench.catalog.measurements import measured_in
from sensorbench.catalog.needs import YES, Given, Machine, NeedKind, choice_of, need_kinds, needs_of
from sensorbench.catalog.profiles import Profile, profiles, read_profile, require_profile
from sensorbench.catalog.told import told_catalogue, told_choice, told_entry

__all__ = [
    "WHEN",
    "YES",
    "Axis",
    "Capability",
    "Chosen",
    "Difference",
    "Entry",
    "Fact",
    "Given",
    "Machine",
    "NeedKind",
    "Profile",
    "Study",
    "When",
    "axes",
    "capabilities",
    "choice_of",
    "choose_databases",
    "choose_for",
    "entries",
    "measured_in",
    "need_kinds",
    "needs_of",
    "profiles",
    "read_entry",
    "read_profile",
    "require_entry",
    "require_profile",
    "studies",
    "told_catalogue",
    "told_choice",
    "told_entry",
]
