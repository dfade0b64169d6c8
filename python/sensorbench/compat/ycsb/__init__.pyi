from .core_workload import CoreWorkload
from .plan import Phase, asked_in
from .properties import overridden, read_all_properties, read_properties
from .run import Wish, carry_out
from .text import as_text

__all__ = [
    "CoreWorkload",
    "Phase",
    "Wish",
    "as_text",
    "asked_in",
    "carry_out",
    "overridden",
    "read_all_properties",
    "read_properties",
]
