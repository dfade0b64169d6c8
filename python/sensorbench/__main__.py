"""`python -m sensorbench`."""

from sensorbench.cli import main

main()
