from .fitting import DEFAULT_COVERAGE, FitOptions, fit_trace

__all__ = ["DEFAULT_COVERAGE", "FitOptions", "fit_trace"]
