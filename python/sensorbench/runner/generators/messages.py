"""What the controller and a load generator say to each other: a line of JSON for each message, followed by its parts in bytes."""

from collections.abc import Sequence
from typing import IO, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from sensorbench.runner.generators.load_part import LoadPart


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True)


class Prepare(_Message):
    """Connect, as an admission permits; the parts are the tables of parameters. Answered by `Ready`."""

    kind: Literal["prepare"] = "prepare"
    url: str = Field(repr=False)
    driver_schema: str
    plan: str


class Start(_Message):
    """Begin at a time on the clock that all share. Answered by `Taken`, with how late that was."""

    kind: Literal["start"] = "start"
    at_ns: int


class Poll(_Message):
    """Wait until the share is over, but not longer; say how far it is. Answered by `Progress`."""

    kind: Literal["poll"] = "poll"
    wait_s: float


class Take(_Message):
    """Hand over what was recorded. Answered by `Progress` with the parts of a segment."""

    kind: Literal["take"] = "take"


class SetRate(_Message):
    """Change the rate at a time on the common clock. Answered by `Taken`, with how late that was."""

    kind: Literal["set rate"] = "set rate"
    per_s: float
    at_ns: int


class Join(_Message):
    """Connect for loading, as an admission permits. Answered by `Ready`."""

    kind: Literal["join"] = "join"
    url: str = Field(repr=False)
    driver_schema: str


class Put(_Message):
    """Keep bytes of a part that is loaded next, after those that were sent before. Answered by `Taken`."""

    kind: Literal["put"] = "put"


class OpenPart(_Message):
    """Get ready to load a part of a table. Answered by `Ready`."""

    kind: Literal["open part"] = "open part"
    part: LoadPart
    batch_rows: int | None


class StartLoad(_Message):
    """Begin to load the part at a time on the common clock. Answered by `Taken`, with how late that was."""

    kind: Literal["start load"] = "start load"
    at_ns: int


class PollLoad(_Message):
    """Wait until the part is loaded, but not longer; say how far it is. Answered by `LoadState`."""

    kind: Literal["poll load"] = "poll load"
    wait_s: float


class StopLoad(_Message):
    """Load no more. Answered by `Taken`."""

    kind: Literal["stop load"] = "stop load"


class Stop(_Message):
    """Start no more; with `cancels`, end what is in flight, too. Answered by `Taken`."""

    kind: Literal["stop"] = "stop"
    cancels: bool


class End(_Message):
    """Wait for the end and hand over the rest. Answered by `Ended` with the parts of a segment."""

    kind: Literal["end"] = "end"


class Ready(_Message):
    """It is connected."""

    kind: Literal["ready"] = "ready"


class Taken(_Message):
    """It was done; `late_ns` after its time, where it had one."""

    kind: Literal["taken"] = "taken"
    late_ns: int = 0


class Progress(_Message):
    """How far a share is: a snapshot of the engine (JSON)."""

    kind: Literal["progress"] = "progress"
    is_over: bool
    snapshot: str


class Ended(_Message):
    """A share as a whole (JSON of the engine), and how late it was (an interval log)."""

    kind: Literal["ended"] = "ended"
    snapshot: str
    whole: str
    timer_lag: str


class LoadState(_Message):
    """How far a part is: rows that the database has acknowledged; when its load began, on the clock there; the engine's result (JSON) when it is over."""

    kind: Literal["load state"] = "load state"
    rows: int
    start_ns: int
    result: str | None


class Refused(_Message):
    """What the engine or the database refused: the name of the error, and what it says."""

    kind: Literal["refused"] = "refused"
    error: str
    texts: tuple[str, ...]


Message = Annotated[
    Prepare
    | Start
    | Poll
    | Take
    | SetRate
    | Stop
    | End
    | Join
    | Put
    | OpenPart
    | StartLoad
    | PollLoad
    | StopLoad
    | Ready
    | Taken
    | Progress
    | Ended
    | LoadState
    | Refused,
    Field(discriminator="kind"),
]


class _Envelope(_Message):
    message: Message
    sizes: tuple[int, ...]


def send(stream: IO[bytes], message: Message, parts: Sequence[bytes] = ()) -> None:
    """Sends a message with its parts. Raises OSError if nobody reads any more."""
    envelope = _Envelope(message=message, sizes=tuple(map(len, parts)))
    stream.write(envelope.model_dump_json().encode() + b"\n")
    for part in parts:
        stream.write(part)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[Message, list[bytes]] | None:
    """The next message with its parts; None if the other side is gone, also in the middle of one."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        return None
    envelope = _Envelope.model_validate_json(line)
    parts = [stream.read(size) for size in envelope.sizes]
    if [len(part) for part in parts] != list(envelope.sizes):
        return None
    return envelope.message, parts
