"""Tuning: which settings of a server are better for a goal, searched under a budget and confirmed by runs of their own."""
