"""Clusters of users: a file says how nodes are reached, set and restarted; what was set is put back."""
