"""COPY … FROM of cqlsh: what Cassandra's shell has for loading a CSV file, through the nodes as ordinary writes."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from sensorbench.lab.instance import Instance
from sensorbench.lab.load_tools import LoadFile, LoadTool, ToolCall, last_words
from sensorbench.lab.software import PythonPackages

_PROCESSED = re.compile(r"Processed: (\d+) rows")
_FAILURES = re.compile(
    r"^(?:.*\r)?\s*((?:Failed to (?:import|process|make)|Exceeded maximum|<stdin>|Traceback|\w*Error\b).*)$", re.MULTILINE
)
# A reply may take as long as one to an operation of ours.
_TIMEOUT_S = 1200


class Copy(LoadTool):
    """Worker processes of cqlsh read the file and write its rows in small batches. All that COPY can be told is left as it is by default."""

    name = "copy"
    program = "cqlsh COPY"
    summary = "a CSV file, written through the nodes by COPY of cqlsh with its default options"
    sources = (PythonPackages("cqlsh", "6.2.2", Path(__file__).with_name("cqlsh_requirements.txt"), "cqlshlib"),)

    def call(self, instance: Instance, software: Path, folder: Path, file: LoadFile, options: Mapping[str, str]) -> ToolCall:
        """Name and password are in a file of its own; consistency is that of the target."""
        node = instance.nodes[0]
        consistency = options.get("consistency", "local_quorum").upper()
        names = ", ".join(f'"{name}"' for name in file.columns)
        script = folder / "copy.cql"
        script.write_text(
            f"CONSISTENCY {consistency};\n"
            f'COPY "{file.namespace}"."{file.table}" ({names}) FROM \'{file.path}\' WITH HEADER = false;\n',
            encoding="utf-8",
        )
        words: list[str | Path] = ["--request-timeout", str(_TIMEOUT_S), "-f", script, *_credentials(instance, folder)]
        shell = [sys.executable, "-m", "cqlshlib.cqlshmain"]
        # It reads and writes nothing of the user's own shell.
        environment = {"PYTHONPATH": str(software / "site"), "HOME": str(folder), "CQL_HISTORY": str(folder / "history")}
        return ToolCall([*shell, node.host, str(node.port), *words], environment)

    def rows_done(self, output: str) -> int | None:
        """The last count that it has shown."""
        counts = _PROCESSED.findall(output)
        return int(counts[-1]) if counts else None

    def problem(self, exit_code: int, output: str) -> str | None:
        """It may end with 0 although rows failed, and says so in lines of its own."""
        failures = _FAILURES.findall(output)
        if exit_code == 0 and not failures:
            return None
        return " | ".join(dict.fromkeys(failures[:2])) if failures else last_words(output)


def _credentials(instance: Instance, folder: Path) -> list[str | Path]:
    """The file with name and password in cqlsh's own form; none where the server asks for no password."""
    if not instance.credentials.exists():
        return []
    text = instance.credentials.read_text(encoding="utf-8")
    user, password = (text.split(f'{key} = "')[1].split('"')[0] for key in ("user", "password"))
    file = folder / "credentials"
    file.touch(mode=0o600)
    file.write_text(f"[plain_text_auth]\nusername = {user}\npassword = {password}\n", encoding="utf-8")
    return ["--credentials", file]
