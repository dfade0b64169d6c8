"""Files sent to servers by curl, as their documentation does where they have no loader of their own."""

import base64
import contextlib
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

from benches.clients import tools
from benches.clients.loading import rate_of_a_tool

from sensorbench import lab
from sensorbench.lab.instance import USER


def rate(instance: lab.Instance, port: int, path: str, options: tools.Words, rows: int, folder: Path) -> float:
    """Rows per second of a request, from when curl is started until it has ended. Its password is in a file, not on its command line."""
    login = folder / "curl.conf"
    login.touch(mode=0o600)
    login.write_text(f'user = "{USER}:{instance.password()}"\n' if instance.credentials.exists() else "", encoding="utf-8")
    url = f"http://{instance.nodes[0].host}:{port}{path}"
    return rate_of_a_tool(["curl", "--config", login, "--silent", "--show-error", "--fail-with-body", *options, url], rows)


def text_of(instance: lab.Instance, port: int, path: str, form: Mapping[str, str] | None = None) -> str:
    """What the server answers to a GET, or to a POST of a form."""
    data = None if form is None else urllib.parse.urlencode(form).encode()
    request = urllib.request.Request(f"http://{instance.nodes[0].host}:{port}{path}", data)
    if instance.credentials.exists():
        login = base64.b64encode(f"{USER}:{instance.password()}".encode()).decode()
        request.add_header("Authorization", f"Basic {login}")
    with contextlib.closing(urllib.request.urlopen(request, timeout=60.0)) as answer:
        return str(answer.read().decode())


def require(found: int, rows: int, tool: str) -> None:
    """Raises RuntimeError if a tool has not loaded all rows."""
    if found != rows:
        raise RuntimeError(f"{tool}: {found} rows are there, {rows} were loaded")


def write_lines(file: Path, lines: Iterator[str], head: str = "") -> None:
    """A file of lines."""
    with file.open("w", encoding="utf-8") as out:
        out.write(head)
        out.writelines(lines)
