"""COPY … FROM of cqlsh: what Cassandra's shell has for loading a CSV file, through the nodes as ordinary writes."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from sensorbench.lab.instance import Instance
from sensorbench.lab.load_tools import LoadFile, LoadTool, ToolCall, last_words
from sensorbench.lab.software import PythonPackages

_IMPORTED = re.compile(r"\d+ rows imported from ")
_PROCESSED = re.compile(r"Processed: (\d+) rows")
# Lines about rows that stayed out; what it tries again may still go in.
_LOST = re.compile(r"given up|^Failed to process|^Exceeded maximum", re.MULTILINE)
# Lines of a script begin with its name and the number of a line.
_PLACE = re.compile(r"^\S*copy\.cql:\d+:", re.MULTILINE)
# A reply may take as long as one to an operation of ours.
_TIMEOUT_S = 1200


class Copy(LoadTool):
    """Worker processes of cqlsh read the file and write its rows in small batches. All options of COPY have their defaults."""

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
        shell = [sys.executable, "-m", "cqlshlib"]
        # It reads and writes nothing of the user's own shell.
        environment = {"PYTHONPATH": str(software / "site"), "HOME": str(folder), "CQL_HISTORY": str(folder / "history")}
        return ToolCall([*shell, node.host, str(node.port), *words], environment)

    def rows_done(self, output: str) -> int | None:
        """The last count that it has shown."""
        counts = _PROCESSED.findall(output)
        return int(counts[-1]) if counts else None

    def problem(self, exit_code: int, output: str) -> str | None:
        """It ends with another code than 0 also when it has tried a write again that then went in: what counts is what it says of rows."""
        said = _PLACE.sub("", output)
        lost = [line.strip() for line in said.split("\n") if _LOST.search(line)]
        if not lost and _IMPORTED.search(said):
            return None
        return " | ".join(lost[:2]) if lost else last_words(said)


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
