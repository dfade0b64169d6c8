"""Load generators: processes that share a run, and what makes one run of them."""
