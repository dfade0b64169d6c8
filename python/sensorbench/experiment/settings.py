"""Settings: a target and a schema, which together make one side of a comparison."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from sensorbench import _engine
from sensorbench.errors import EngineUsageError, UsageError
from sensorbench.results import SettingManifest
from sensorbench.schemas import Schema


@dataclass(frozen=True)
class Database:
    """A database that is built in."""

    name: str
    summary: str
    embedded: bool


@dataclass(frozen=True)
class TargetSpec:
    """A target as the user named it: a database's bare name, or a URL."""

    text: str
    database: Database
    is_url: bool

    @property
    def label(self) -> str:
        """A short name, without address and options."""
        return self.database.name


@dataclass(frozen=True)
class Setting:
    """One side of a comparison."""

    id: str
    target: TargetSpec
    schema: Schema
    url: str
    temporary: Path | None

    def manifest(self, statements: dict[str, object]) -> SettingManifest:
        """What results say of it. The URL is shown without secrets."""
        return SettingManifest(
            id=self.id,
            target=self.target.label,
            database=self.target.database.name,
            embedded=self.target.database.embedded,
            url=_engine.Target(self.url).url,
            schema_name=self.schema.name,
            schema_summary=self.schema.summary,
            schema_file=str(self.schema.path),
            schema_parameters=dict(self.schema.parameters),
            statements=statements,
        )


def databases() -> dict[str, Database]:
    """The databases that are built in, by name."""
    return {one["name"]: Database(one["name"], one["summary"], one["embedded"]) for one in json.loads(_engine.databases())}


_SCHEME = re.compile(r"(?P<scheme>[A-Za-z0-9+]+):")


def parse_target(text: str) -> TargetSpec:
    """A target by a database's bare name or by URL. Raises UsageError, showing no user info."""
    known = databases()
    scheme = _SCHEME.match(text)
    name = scheme["scheme"] if scheme else text
    if name not in known:
        shown = f"{name}:…" if scheme else name
        raise UsageError(
            f"--target {shown}: expected the name of a database ({', '.join(known)}) or its URL, for example sqlite:data.db"
        )
    if scheme:
        try:
            _engine.Target(text)
        except EngineUsageError as error:
            raise UsageError(str(error)) from None
    return TargetSpec(text, known[name], is_url=scheme is not None)


def make_settings(pairs: list[tuple[TargetSpec, Schema]], data_folder: Path) -> list[Setting]:
    """Settings with ids of their own. A bare name gets a place below `data_folder`, which goes when the work is done; a path
    that is shared by several schemas gets the schema's name behind it, because a schema needs a database to itself.
    """
    settings: list[Setting] = []
    for target, schema in pairs:
        shares_target = sum(other.text == target.text for other, _ in pairs) > 1
        setting_id = _free_id(f"{target.label}-{schema.name}", [setting.id for setting in settings])
        if not target.is_url:
            path = data_folder / setting_id
            settings.append(Setting(setting_id, target, schema, f"{target.database.name}:{path}", path))
        else:
            url = _with_suffix(target.text, schema.name) if shares_target and target.database.embedded else target.text
            settings.append(Setting(setting_id, target, schema, url, None))
    return settings


def _free_id(wanted: str, taken: list[str]) -> str:
    candidates = [wanted, *(f"{wanted}-{number}" for number in range(2, len(taken) + 3))]
    return next(candidate for candidate in candidates if candidate not in taken)


def _with_suffix(url: str, schema: str) -> str:
    address, question_mark, options = url.partition("?")
    path = Path(address.partition(":")[2])
    scheme = address.partition(":")[0]
    return f"{scheme}:{path.with_name(f'{path.stem}-{schema}{path.suffix}')}{question_mark}{options}"
