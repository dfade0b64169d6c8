"""Comparisons: variants that are loaded, warmed up and run in turn under one workload."""
