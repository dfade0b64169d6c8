from .benchmark import Benchmark, Plan, RunContext, check_folder, run

__all__ = ["Benchmark", "Plan", "RunContext", "check_folder", "run"]
