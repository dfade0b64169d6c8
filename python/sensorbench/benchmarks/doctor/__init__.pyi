from .ceilings import TARGETS, Figure
from .checks import Timers, check_machine, check_noise
from .diagnosis import Check, Diagnosis, Noise, OperationNoise, diagnosis_of
from .examine import examine

__all__ = [
    "TARGETS",
    "Check",
    "Diagnosis",
    "Figure",
    "Noise",
    "OperationNoise",
    "Timers",
    "check_machine",
    "check_noise",
    "diagnosis_of",
    "examine",
]
