"""`hosts.toml`: the hosts of a user, and how each is reached."""

import re
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from sensorbench.toml_file import FileModel, error_at, load

Role = Literal["load generator", "node"]
ROLES: tuple[Role, ...] = ("load generator", "node")
LOCAL = "local"
# What ssh could read as an option is not a target of it.
_SSH = re.compile(
    r"ssh://(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9_.-]*)@)?(?P<host>[A-Za-z0-9_][A-Za-z0-9_.-]*|\[[0-9a-fA-F:]+\])(?::(?P<port>\d{1,5}))?/?"
)
_SCHEDULER = re.compile(r"(?:tcp|tls)://[^\s/@]+:\d{1,5}")
# Names stand in names of figures and in messages.
_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"


class Controller(FileModel):
    """The machine of the command itself, as hosts reach it."""

    address: str | None = Field(
        default=None,
        description="The address at which the scheduler listens. [default: the one from which the first host was reached by SSH]",
    )
    port: int = Field(default=0, ge=0, le=65_535, description="Its port; 0 for a free one.")


class Scheduler(FileModel):
    """A dask cluster that is already running, on SSH, Kubernetes or Slurm. Its workers are the hosts."""

    url: str = Field(description="tls://HOST:PORT or tcp://HOST:PORT.")
    ca_file: Path | None = Field(default=None, description="The certificate of who signed those of the cluster, for tls://.")
    cert_file: Path | None = Field(default=None, description="The certificate of this client.")
    key_file: Path | None = Field(default=None, description="Its key.")

    @model_validator(mode="after")
    def _check(self) -> "Scheduler":
        if not is_scheduler(self.url):
            raise ValueError(f"url {self.url!r}: expected tls://HOST:PORT or tcp://HOST:PORT")
        files = (self.ca_file, self.cert_file, self.key_file)
        if any(files) and not all(files):
            raise ValueError("ca_file, cert_file and key_file: give all three, or none")
        return self


class HostEntry(FileModel):
    """A host."""

    name: str = Field(pattern=_NAME, description="Its name; with [scheduler], that of the worker.")
    reach: str | None = Field(
        default=None,
        description="local, or ssh://USER@HOST:PORT as ssh takes it. Not with [scheduler], whose workers are already running.",
    )
    address: str | None = Field(
        default=None,
        description="Where it listens, and its servers. [default: the address at which ssh reached it; a loopback address if local]",
    )
    port: int = Field(
        default=0,
        ge=0,
        le=65_535,
        description="The port at which it listens for the controller and other hosts; 0 for a free one.",
    )
    roles: tuple[Role, ...] = Field(default=ROLES, min_length=1, description="What it may be: load generator, node, or both.")
    labels: dict[str, str] = Field(default={}, description="What else is to be known of it, such as its rack.")
    cpus: tuple[int, ...] | None = Field(
        default=None, min_length=1, description="The numbers of the CPUs that it may use. [default: all]"
    )
    lab_folder: str | None = Field(default=None, description="Where servers on it have their data. [default: as on any machine]")
    identity_file: Path | None = Field(default=None, description="The private key for ssh. [default: as ssh is configured]")
    ssh_options: tuple[str, ...] = Field(default=(), description='Options of ssh, KEY=VALUE each: ["ProxyJump=gate"].')
    python: str | None = Field(
        default=None, description="The Python there that has sensorbench. [default: python3; the one of the command if local]"
    )

    @model_validator(mode="after")
    def _check(self) -> "HostEntry":
        if self.reach is not None and self.reach != LOCAL and not _SSH.fullmatch(self.reach):
            raise ValueError(f"reach {self.reach!r}: expected local or ssh://USER@HOST:PORT")
        if not self.is_ssh and (self.identity_file or self.ssh_options):
            raise ValueError('identity_file and ssh_options are for reach = "ssh://…"')
        for option in self.ssh_options:
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*=.+", option):
                raise ValueError(f"ssh_options {option!r}: expected KEY=VALUE")
        return self

    @property
    def is_ssh(self) -> bool:
        """Whether it is reached by SSH."""
        return self.reach is not None and self.reach != LOCAL

    @property
    def ssh_target(self) -> tuple[str, str | None]:
        """USER@HOST as ssh takes it, and its port."""
        found = _SSH.fullmatch(self.reach or "")
        if found is None:
            raise AssertionError("checked when it was read")
        host = found["host"].strip("[]")
        return (f"{found['user']}@{host}" if found["user"] else host), found["port"]


class HostsFile(FileModel):
    """Hosts for load generators and for nodes of the lab: `--hosts hosts.toml`."""

    controller: Controller = Field(default=Controller(), description="This machine, as hosts reach it.")
    scheduler: Scheduler | None = Field(default=None, description="A dask cluster that is already running.")
    host: list[HostEntry] = Field(
        default=[], description="The hosts; with [scheduler], those of its workers that are used, all if there is none."
    )


def is_scheduler(text: str) -> bool:
    """Whether a text is the address of a scheduler."""
    return _SCHEDULER.fullmatch(text) is not None


def load_hosts_file(path: Path) -> HostsFile:
    """Reads a file of hosts. Raises UsageError naming file, line and key."""
    file = load(path, HostsFile)
    if not file.host and file.scheduler is None:
        raise error_at(path, "host", "there is no host; expected [[host]] with a name, or [scheduler] with a url")
    names: list[str] = []
    for number, entry in enumerate(file.host):
        key = f"host[{number}]"
        if entry.name in names:
            raise error_at(path, f"{key}.name", f"there are two hosts of the name {entry.name}; each needs one of its own")
        names.append(entry.name)
        if file.scheduler is None and entry.reach is None:
            raise error_at(
                path, key, "reach is missing: expected local, or ssh://USER@HOST:PORT; workers of a cluster need [scheduler]"
            )
        if file.scheduler is not None and entry.reach is not None:
            raise error_at(path, f"{key}.reach", "workers of [scheduler] are already running; leave out reach")
    return file
