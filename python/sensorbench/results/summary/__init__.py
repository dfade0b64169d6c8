"""Summaries as typed models: one envelope for all kinds, and what each kind of benchmark found. Format 2 of `summary.json`."""
