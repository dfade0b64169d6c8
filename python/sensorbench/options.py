"""Options as models: what can be chosen, its default, its limits and what is said of it. Flags of the command line, keys of files and
arguments of the API are their fields.
"""

from collections.abc import Callable, Iterable
from typing import Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from sensorbench.errors import UsageError

# Of generated data, and of what is drawn from a dataset, if none is said.
DEFAULT_SEED = 42
# Options of this process that do not stand on its command line, as words of one: results say by which command they are made again.
GIVEN_ELSEWHERE: list[str] = []


class OptionModel(BaseModel):
    """A group of options. What may destroy something is never among them: that is asked of the command line alone."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


def option(default: Any, about: str, *flags: str, several: bool = False, ge: float | None = None, le: float | None = None) -> Any:
    """A field of an OptionModel.

    Args:
        default: what counts if nothing is said; a text, as a user writes it, is parsed. `...` where there is none.
        about: what help says of it.
        flags: the flag, where it is not the field's name.
        several: whether a flag that is parsed may be given several times; that of a tuple may be anyway.
        ge: the least value.
        le: the greatest value.

    """
    return Field(default, description=about, json_schema_extra={"flags": list(flags), "several": several}, ge=ge, le=le)


def parsed(parse: Callable[[Any], Any], of: type = str) -> BeforeValidator:
    """How what a user writes becomes the value: one text, or the list of several. Values that are none are taken as they are."""
    return BeforeValidator(lambda value: parse(value) if isinstance(value, of) else value)


def parse_settings(texts: Iterable[str]) -> dict[str, str]:
    """Settings of a server as --server-setting has them, key=value. Raises UsageError."""
    return dict(map(_setting, texts))


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(f"--server-setting {text}: expected key=value, a setting of the server itself")
    return key.strip(), value.strip()
