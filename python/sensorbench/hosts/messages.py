"""What the controller and the processes that it starts say to each other: a line of JSON each, on standard streams."""

from typing import IO, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True)


class Hello(_Message):
    """A process is there. `controller` and `here` are the addresses of both ends of its SSH connection, if it was started by one."""

    kind: Literal["hello"] = "hello"
    version: str
    engine: str
    pid: int
    controller: str | None = None
    here: str | None = None


class Credentials(_Message):
    """By which all processes of one command know one another: a certificate and its key (PEM), made for this command alone."""

    certificate: str = Field(repr=False)
    key: str = Field(repr=False)


class BeScheduler(_Message):
    """Be the scheduler, and listen at an address. `folder` has what the command has here, and goes with it. Answered by Listening or Refused."""

    kind: Literal["scheduler"] = "scheduler"
    folder: str
    address: str
    port: int
    credentials: Credentials


class BeHost(_Message):
    """Be a host of a scheduler's, and listen at an address. `environment` is added to its own; its files go below `folder`, or where temporary files
    go. Answered by Listening or Refused.
    """

    kind: Literal["host"] = "host"
    folder: str | None
    scheduler: str
    name: str
    address: str
    port: int
    cpus: tuple[int, ...] | None
    environment: dict[str, str]
    credentials: Credentials


class Listening(_Message):
    """It listens there."""

    kind: Literal["listening"] = "listening"
    address: str


class Refused(_Message):
    """It could not be done."""

    kind: Literal["refused"] = "refused"
    why: str


Message = Annotated[Hello | BeScheduler | BeHost | Listening | Refused, Field(discriminator="kind")]
_MESSAGE: TypeAdapter[Message] = TypeAdapter(Message)


def send(stream: IO[bytes], message: Message) -> None:
    """Sends a message. Raises OSError if nobody reads any more."""
    stream.write(message.model_dump_json().encode() + b"\n")
    stream.flush()


def receive(stream: IO[bytes]) -> Message | None:
    """The next message; None if the other side is gone. Raises ValueError for what is none."""
    line = stream.readline()
    return _MESSAGE.validate_json(line) if line.endswith(b"\n") else None
