"""Namespaces at a target that carry our ownership marker: what they are, and removing them."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from sensorbench import _engine, lab
from sensorbench.errors import UsageError
from sensorbench.runner.variants import TargetSpec, parse_target


@dataclass(frozen=True)
class OwnedNamespace:
    """A namespace that sensorbench created. `name`: as in the URL's option, or the path of an embedded database; `created` and `folder` are
    None if an earlier version created it, which noted neither; `bytes` is None if the database does not say.
    """

    name: str
    url: str
    created: datetime | None
    folder: str | None
    bytes: int | None

    def remove(self) -> None:
        """Removes it. Raises NamespaceError when it carries no marker any more."""
        _engine.Target(self.url).clean()


def owned_namespaces(text: str) -> list[OwnedNamespace]:
    """The namespaces with our marker at a target, a URL or lab:NAME. Raises UsageError for another one, EngineError when nobody answers."""
    spec = _at_its_url(parse_target(text))
    names = _engine.Target(spec.text).namespaces()
    return [_described(name, spec if spec.database.embedded else spec.with_option("namespace", name)) for name in names]


def _at_its_url(spec: TargetSpec) -> TargetSpec:
    if spec.place == "lab":
        return parse_target(lab.url_of(lab.find_instance(spec.label)))
    if spec.place != "url":
        raise UsageError(
            f"{spec.text}: expected the URL of a server, {spec.database.name}:PATH, or lab:NAME (`sensorbench lab list`)"
        )
    return spec


def _described(name: str, spec: TargetSpec) -> OwnedNamespace:
    target = _engine.Target(spec.text)
    marker = json.loads(target.marker() or "{}")
    size = json.loads(target.size())
    created_s, owner = marker.get("created_s"), marker.get("owner")
    return OwnedNamespace(
        name,
        spec.text,
        datetime.fromtimestamp(created_s, UTC) if created_s else None,
        owner["folder"] if owner else None,
        None if size.get("unknown") else int(size["total_bytes"]),
    )
