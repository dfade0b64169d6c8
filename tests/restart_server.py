"""Restarts the server that answers at HOST PORT as a service manager would: with the same command, user and environment, and its data.

It knows nothing of the lab, whose servers tests have restarted by it: `python tests/restart_server.py HOST PORT FOLDER [COMMAND…]`. FOLDER
belongs to the server's user. The command is for servers that write something else over their own, and over their environment; else it is
that of the process that listens there, kept in the folder for when none does.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

STOPS_WITHIN_S = 60.0


def main() -> None:
    host, port, folder, *command = sys.argv[1:]
    kept = Path(folder) / "restart.json"
    process = server_at(host, int(port))
    if command:
        kept.write_text(json.dumps([command, dict(os.environ)]), encoding="utf-8")
    elif process is not None:
        kept.write_text(json.dumps([process.cmdline(), process.environ()]), encoding="utf-8")
    if process is not None:
        process.terminate()
        give_up_s = time.monotonic() + STOPS_WITHIN_S
        while has_not_ended(process):
            if time.monotonic() > give_up_s:
                sys.exit(f"process {process.pid} did not end within {STOPS_WITHIN_S:g} s")
            time.sleep(0.05)
    command, environment = json.loads(kept.read_text(encoding="utf-8"))
    owner = Path(folder).stat()
    with (Path(folder) / "server.log").open("ab") as log:
        subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            user=owner.st_uid,
            group=owner.st_gid,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    print(f"started {host}:{port} again")


def has_not_ended(process: psutil.Process) -> bool:
    """Whether it still runs. Who started it may not have asked yet how it ended: it is a zombie then."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def server_at(host: str, port: int) -> psutil.Process | None:
    """The process that listens there."""
    listening = (entry for entry in psutil.net_connections("inet") if entry.status == psutil.CONN_LISTEN)
    return next((psutil.Process(entry.pid) for entry in listening if entry.laddr == (host, port)), None)


if __name__ == "__main__":
    main()
