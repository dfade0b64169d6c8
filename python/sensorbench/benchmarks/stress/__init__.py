"""Stress: load that is driven at rates, without a study around it."""
