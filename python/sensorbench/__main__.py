"""`python -m sensorbench`."""

from sensorbench.cli import start

start()
