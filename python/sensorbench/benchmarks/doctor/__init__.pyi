from .ceilings import TARGETS
from .checks import check_noise
from .diagnosis import Diagnosis, Noise, OperationNoise, diagnosis_of
from .examination import examine
from .machine import read_machine

__all__ = ["TARGETS", "Diagnosis", "Noise", "OperationNoise", "check_noise", "diagnosis_of", "examine", "read_machine"]
