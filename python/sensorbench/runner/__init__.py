"""Runs one workload on targets: variants, servers, loading, plans, runs and what they are watched by."""
