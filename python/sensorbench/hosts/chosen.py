"""`--hosts`: which hosts a command uses, before any of them is reached."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pydantic import ValidationError

from sensorbench.errors import UsageError, problem_text
from sensorbench.hosts.hosts_file import LOCAL, HostEntry, HostsFile, Scheduler, is_scheduler, load_hosts_file

MAX_LOCAL = 64
INSTALL = "run `make setup` in the checkout, or .uv/bin/uv pip install 'distributed>=2026.1' 'cryptography>=42'"
_EXPECTED = (
    "expected a file (hosts.toml), local:N, ssh://USER@HOST:PORT (several with commas), or tls://HOST:PORT of a dask scheduler"
)


@dataclass(frozen=True)
class ChosenHosts:
    """Hosts as `text` names them."""

    text: str
    file: HostsFile

    @property
    def names(self) -> list[str]:
        """Their names; the text where workers of a cluster are named by nobody."""
        return [entry.name for entry in self.file.host] or [self.text]

    @property
    def are_here(self) -> bool:
        """Whether all of them are this machine: local processes."""
        return self.file.scheduler is None and all(entry.reach == LOCAL for entry in self.file.host)


def choose_hosts(text: str) -> ChosenHosts:
    """The hosts that a text names. Raises UsageError for what names none, and where dask.distributed is not installed."""
    chosen = ChosenHosts(text, _hosts(text))
    if find_spec("distributed") is None or find_spec("cryptography") is None:
        raise UsageError(f"--hosts {text}: dask.distributed is not installed: {INSTALL}")
    return chosen


def _hosts(text: str) -> HostsFile:
    kind, _, rest = text.partition(":")
    if is_scheduler(text):
        return HostsFile(scheduler=Scheduler(url=text))
    if kind == LOCAL:
        if not rest.isdecimal() or not 1 <= int(rest) <= MAX_LOCAL:
            raise UsageError(f"--hosts {text}: expected local:N with N from 1 to {MAX_LOCAL}, such as local:4")
        return HostsFile(host=[HostEntry(name=f"local-{number}", reach=LOCAL) for number in range(1, int(rest) + 1)])
    if text.startswith("ssh://"):
        return _by_ssh(text)
    if "://" in text:
        raise UsageError(f"--hosts {text}: {_EXPECTED}")
    return load_hosts_file(Path(text))


def _by_ssh(text: str) -> HostsFile:
    """Hosts that are named by nothing but how ssh reaches them."""
    entries: list[HostEntry] = []
    for url in text.split(","):
        try:
            entry = HostEntry(name="host", reach=url.strip())
        except ValidationError as error:
            raise UsageError(f"--hosts {text}: {problem_text(error.errors()[0])}") from None
        target, port = entry.ssh_target
        name = target.rpartition("@")[2].replace(":", ".")
        name = f"{name}.{port}" if port and any(name == other.name for other in entries) else name
        if any(name == other.name for other in entries):
            raise UsageError(f"--hosts {text}: {url} is named twice")
        entries.append(entry.model_copy(update={"name": name}))
    return HostsFile(host=entries)
