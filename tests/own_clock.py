"""Starts Python in a time namespace whose CLOCK_MONOTONIC is ahead by this many milliseconds: `python own_clock.py 80 -m module`.

The processes that it starts have that clock, too. It takes the right to make namespaces, as root has it.
"""

import ctypes
import os
import sys
from pathlib import Path

CLONE_NEWTIME = 0x80


def main() -> None:
    milliseconds, *arguments = sys.argv[1:]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWTIME):
        raise OSError(ctypes.get_errno(), "no time namespace can be made")
    Path("/proc/self/timens_offsets").write_text(f"monotonic 0 {int(milliseconds) * 1_000_000}\n", encoding="utf-8")
    # Only children are in the namespace.
    child = os.fork()
    if not child:
        os.execv(sys.executable, [sys.executable, *arguments])
    # Its standard input is the child's alone.
    os.close(0)
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
