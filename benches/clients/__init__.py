"""Our client and loading against the databases' own tools: `make bench-clients`."""
