"""One file for each kind of database that the lab can start."""
