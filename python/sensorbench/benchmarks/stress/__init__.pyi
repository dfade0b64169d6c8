from .figures import counts_of, latencies, merged
from .objective import parse_objective
from .own import OwnWork
from .records import RecordWork, with_mix
from .run import CapacitySearch, Load, StepsApart, StressBenchmark, StressPlan, stress
from .steering import wish_rate
from .step import Arrival, Step, parse_rates, steps_of
from .summary import summarise_stress
from .work import Work

__all__ = [
    "Arrival",
    "CapacitySearch",
    "Load",
    "OwnWork",
    "RecordWork",
    "Step",
    "StepsApart",
    "StressBenchmark",
    "StressPlan",
    "Work",
    "counts_of",
    "latencies",
    "merged",
    "parse_objective",
    "parse_rates",
    "steps_of",
    "stress",
    "summarise_stress",
    "wish_rate",
    "with_mix",
]
