"""Holds the write lock of a SQLite file for a while, as a backup or a nightly job does. It runs as a process of its own, by its path.

Two copies of SQLite in one process would share the locks of that process, and so hold nothing against one another.
"""

import sqlite3
import sys
import time


def hold(path: str, seconds: float) -> None:
    """Waits for a line, holds the lock, and prints for how many seconds it did."""
    connection = sqlite3.connect(path, timeout=10.0, isolation_level=None)
    print("ready", flush=True)
    sys.stdin.readline()
    connection.execute("BEGIN IMMEDIATE")
    start_s = time.monotonic()
    time.sleep(seconds)
    connection.execute("ROLLBACK")
    print(time.monotonic() - start_s, flush=True)


if __name__ == "__main__":
    hold(sys.argv[1], float(sys.argv[2]))
