"""Hosts: machines, or what stands for them, on which load generators and nodes of a lab run."""
