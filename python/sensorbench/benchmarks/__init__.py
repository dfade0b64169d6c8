"""The kinds of benchmarks, each on the shared lifecycle."""
