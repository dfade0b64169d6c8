"""Which studies there are: those that compare databases and schemas; those of factors, whose levels are settings of a server; and those with ways of
their own, of clusters that grow and of MapReduce. Each is imported when it is asked for.
"""

import tomllib
from collections.abc import Iterator, MutableMapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, Field

from sensorbench.errors import UsageError

if TYPE_CHECKING:
    from sensorbench.claims import Claim
    from sensorbench.studies.elasticity import ElasticityStudy
    from sensorbench.studies.factors import FactorStudy
    from sensorbench.studies.mapreduce import MapReduceStudy
    from sensorbench.studies.study import Study

FOLDER = Path(__file__).parent

AnyStudy = TypeVar("AnyStudy")


def _content(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text(encoding="utf-8"))


_BY_KIND: dict[str, list[str]] = _content(FOLDER / "studies.toml")


class _Imported(MutableMapping[str, AnyStudy]):
    """Studies by name: the folder of this package with the study is imported when the study is asked for."""

    def __init__(self, *kinds: str) -> None:
        self._found: dict[str, AnyStudy | None] = {name: None for kind in kinds for name in _BY_KIND[kind]}

    def __getitem__(self, name: str) -> AnyStudy:
        study = self._found[name]
        if study is None:
            folder = folder_of(name).name
            study = self._found[name] = getattr(import_module(f"sensorbench.studies.{folder}"), folder.upper())
        return study

    def __setitem__(self, name: str, study: AnyStudy) -> None:
        self._found[name] = study

    def __delitem__(self, name: str) -> None:
        del self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


STUDIES: "MutableMapping[str, Study]" = _Imported("comparison")
FACTOR_STUDIES: "MutableMapping[str, FactorStudy]" = _Imported("factors")
OTHER_STUDIES: "MutableMapping[str, ElasticityStudy | MapReduceStudy]" = _Imported("elasticity", "mapreduce")


class ListedStudy(BaseModel):
    """What lists of studies say of one."""

    name: str
    kind: str
    title: str
    claims: int = Field(description="How many published findings it has.")
    targets: list[str] = Field(description="Its systems where it names some, else its databases.")
    databases: list[str]


def listed_studies() -> list[ListedStudy]:
    """All studies, as their files say, without what they need to be run."""
    return [_listed(name, kind) for kind, names in _BY_KIND.items() for name in names]


def kinds_of_studies() -> dict[str, str]:
    """The kind of each study that can be run, by name."""
    own = {name: kind for kind in ("elasticity", "mapreduce") for name in _BY_KIND[kind]}
    return {**dict.fromkeys(STUDIES, "comparison"), **dict.fromkeys(FACTOR_STUDIES, "factors"), **own}


def folder_of(name: str) -> Path:
    """The folder of a study in this package."""
    return FOLDER / name.replace("-", "_")


def _listed(name: str, kind: str) -> ListedStudy:
    file, claims = (_content(folder_of(name) / f"{of}.toml") for of in ("study", "claims"))
    databases = list(file.get("schemas", ())) or ([file["database"]] if "database" in file else file["targets"])
    return ListedStudy(
        name=name,
        kind=kind,
        title=file["title"],
        claims=len(claims["claim"]),
        targets=list(file.get("systems", ())) or databases,
        databases=databases,
    )


def all_claims() -> "list[Claim]":
    """The claims of all studies, in order."""
    studies: list[Study | FactorStudy | ElasticityStudy | MapReduceStudy] = [
        *STUDIES.values(), *FACTOR_STUDIES.values(), *OTHER_STUDIES.values()
    ]  # fmt: skip
    return [claim for study in studies for claim in study.claims]


def require_study(name: str) -> "Study":
    """A study that compares databases and schemas, by its name."""
    if name not in STUDIES:
        known = [*STUDIES, *FACTOR_STUDIES, *OTHER_STUDIES]
        raise UsageError(f"there is no study {name!r}; expected one of {', '.join(known)}")
    return STUDIES[name]


def require_factor_study(name: str) -> "FactorStudy":
    """A study of factors by its name."""
    if name not in FACTOR_STUDIES:
        raise UsageError(f"there is no study of factors {name!r}; expected one of {', '.join(FACTOR_STUDIES)}")
    return FACTOR_STUDIES[name]
