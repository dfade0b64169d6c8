from .axes import Axis, Study, studies
from .capability import Capability, capabilities
from .choose import Chosen, Difference, choose_databases, choose_for
from .classification import classification_claims
from .entry import WHEN, Entry, Fact, When, entries, read_entry, require_entry
from .measurements import measured_in
from .needs import YES, Given, Machine, NeedKind, choice_of, data_bytes_of, need_kinds, needs_of
from .profiles import Profile, read_profile, require_profile
from .serialize import serialize_catalog, serialize_entry

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
    "capabilities",
    "choice_of",
    "choose_databases",
    "choose_for",
    "classification_claims",
    "data_bytes_of",
    "entries",
    "measured_in",
    "need_kinds",
    "needs_of",
    "read_entry",
    "read_profile",
    "require_entry",
    "require_profile",
    "serialize_catalog",
    "serialize_entry",
    "studies",
]
