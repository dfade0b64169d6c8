from .benchmark import Benchmark, Description, Plan, RunContext, check_folder, run

__all__ = ["Benchmark", "Description", "Plan", "RunContext", "check_folder", "run"]
