"""The lifecycle that all benchmarks share: from a validated plan to results on disk, however the work ends."""
