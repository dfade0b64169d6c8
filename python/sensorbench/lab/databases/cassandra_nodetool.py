"""Cassandra's nodetool: how it is called, and what it reports.

It runs within the node (`NodetoolDoor.java`). The program of an instance is a few lines that send the call there: a Java of its own for each call takes
most of a second of a processor.
"""

import re
from pathlib import Path

from sensorbench.errors import FailedError
from sensorbench.lab.instance import Instance, Node
from sensorbench.lab.processes import TOOL_TIMEOUT_S, call
from sensorbench.lab.state_dirs import ServerUser

JMX_PORT, DOOR_PORT = 7199, 7197
# Called as nodetool is: -h HOST, perhaps -p PORT, and the command with its words.
_PROGRAM = """\
#!/bin/bash
host=$2
shift 2
[ "$1" = -p ] && shift 2
exec 3<>"/dev/tcp/$host/{port}" || exit 1
printf '%s\\n' "$@" '' >&3
while IFS= read -r line <&3; do
    case $line in
        o*) printf '%s\\n' "${{line:1}}" ;;
        e*) printf '%s\\n' "${{line:1}}" >&2 ;;
        x*) exit "${{line:1}}" ;;
    esac
done
echo "the node ended before it had answered" >&2
exit 1
"""
_NODE = re.compile(
    r"^(?P<state>[UD][NLJM])\s+(?P<host>[\d.]+)\s+(?P<load>\?|[\d.]+ \w+)\s+\d+\s+(?P<owns>\?|[\d.]+%)\s+(?P<id>[\w-]{36})\s",
    flags=re.MULTILINE,
)
_KEYSPACE = re.compile(r"^\s+(?P<name>\w+) -> Replication class: \w+ \{(?P<copies>.*)\}", flags=re.MULTILINE)
_MODE = re.compile(r"^Mode: (?P<mode>\w+)", flags=re.MULTILINE)
_STREAM = re.compile(r"(?P<direction>Receiving|Sending) .*?, (?P<bytes>\d+) bytes total\. .*?, (?P<done>\d+) bytes total")


def launcher(instance: Instance) -> Path:
    """The program."""
    return instance.folder / "nodetool"


def write_launcher(instance: Instance) -> None:
    """Writes the program."""
    file = launcher(instance)
    file.write_text(_PROGRAM.format(port=DOOR_PORT), encoding="utf-8")
    file.chmod(0o755)


def ask(instance: Instance, node: Node, user: ServerUser, *words: str, timeout_s: float = TOOL_TIMEOUT_S) -> str:
    """What nodetool answers about a node. Raises FailedError with what it says when it fails."""
    ended = call(
        [launcher(instance), "-h", node.host, "-p", str(JMX_PORT), *words],
        folder=Path("/"),
        user=user,
        environment={},
        timeout_s=timeout_s,
    )
    if ended.returncode != 0:
        said = " ".join((ended.stderr.strip() or ended.stdout.strip()).splitlines())
        raise FailedError(f"nodetool {words[0]} of node {node.number} of {instance.name} failed: {said[:300]}")
    return ended.stdout


def ring(text: str) -> dict[str, dict[str, str]]:
    """What `nodetool status` says of each node, by its address: state (UN, DN, UJ, UL …), load, share of the ring, and id."""
    return {
        found["host"]: {"state": found["state"], "load": found["load"], "owns": found["owns"], "id": found["id"]}
        for found in _NODE.finditer(text)
    }


def copies_of_users(text: str) -> dict[str, int]:
    """Of each keyspace that is not the server's own, how many copies of a row there are, from `nodetool describecluster`."""
    return {
        found["name"]: sum(int(number) for number in re.findall(r"=(\d+)", found["copies"]))
        for found in _KEYSPACE.finditer(text)
        if not found["name"].startswith("system")
    }


def streaming(text: str) -> str:
    """How far a node is, in words, from `nodetool netstats`."""
    mode = _MODE.search(text)
    streams = list(_STREAM.finditer(text))
    done, total = (sum(int(stream[what]) for stream in streams) for what in ("done", "bytes"))
    streamed = f", {done / 1e6:.1f} of {total / 1e6:.1f} MB streamed" if streams else ""
    return f"{mode['mode'].lower()}{streamed}" if mode else ""
