"""Runs benchmarks and writes their reports: what stands between the command line or a library call and the benchmarks."""
