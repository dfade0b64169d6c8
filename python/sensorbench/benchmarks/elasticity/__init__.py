"""Clusters that grow, shrink and lose nodes under load: what it costs, and when they are stable again."""
