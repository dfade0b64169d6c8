"""What this project can do with a database: asked of the parts of the project that do it, so that nothing looks supported that is not."""

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from sensorbench import lab
from sensorbench.benchmarks.elasticity import KINDS, OF_ANY_CLUSTER
from sensorbench.catalog.entry import Entry
from sensorbench.results.sources import own_sources_of, sources_of
from sensorbench.runner import Database, databases
from sensorbench.schemas import shipped_operations, shipped_schemas

# A change of a cluster is measured by requests of articles, with registers beside them.
_OF_ELASTICITY = {"articles", "registers"}
# How the summary of a schema ends that no test has run.
_NOT_RUN = "Not run by this project."
# What Spark reads databases by: files that name the targets, as part `spark` has them.
_CONNECTORS = Path(__file__).parents[1] / "spark" / "connectors"


@dataclass(frozen=True)
class Capability:
    """Something that this project does with databases: for which names of a target, and what there is; nothing if it does not.
    `only` is what it takes where it can be done in a part of the cases alone.
    """

    title: str
    described: dict[str, str]
    only: str = ""

    @property
    def can(self) -> bool:
        """Whether it does it with this database at all."""
        return bool(self.described)

    @property
    def short(self) -> str:
        """Yes, no, or what it takes, in a word or two."""
        return (self.only or "yes") if self.can else "no"


def capabilities(entry: Entry) -> dict[str, Capability]:
    """What can be done with a database, by name."""
    drivers = [driver for driver in databases().values() if driver.name in entry.targets]

    def of(describe: Callable[[Database], str]) -> dict[str, str]:
        return {driver.name: text for driver in drivers if (text := describe(driver))}

    is_changed_by_lab = any(driver.name in lab.clusters() for driver in drivers)
    return {
        "driver": Capability("Driver", of(lambda driver: driver.summary)),
        "lab": Capability("Lab", of(_versions)),
        "schemas": Capability("Schemas", of(lambda driver: ", ".join(_with_schemas(driver)))),
        "duplicates": Capability("Rules for duplicates", of(_duplicate_rules)),
        "bulk_load": Capability("Bulk load", of(lambda driver: driver.bulk_load or "")),
        "metrics": Capability("Metrics", of(lambda driver: ", ".join(_quantities(driver.name)))),
        "elasticity": Capability("Elasticity", of(_changes), only="" if is_changed_by_lab else "your own cluster"),
        "mapreduce": Capability("MapReduce", of(lambda driver: _connector(driver.name))),
    }


def measurable(entry: Entry) -> Literal["here", "by-url", "no"]:
    """Whether a database can be measured on this machine as it is, only where somebody else starts it, or not at all."""
    drivers = [driver for driver in databases().values() if driver.name in entry.targets]
    if any(driver.embedded or driver.name in lab.LAB_DATABASES for driver in drivers):
        return "here"
    return "by-url" if drivers else "no"


def _versions(driver: Database) -> str:
    """The versions that the lab starts; empty if it starts none."""
    started = lab.LAB_DATABASES.get(driver.name)
    return ", ".join(source.version for source in started.sources) if started else ""


def _quantities(database: str) -> Sequence[str]:
    """What can be known of a server; what the lab adds, of those that it starts."""
    sources = sources_of(database) if database in lab.LAB_DATABASES else own_sources_of(database)
    return [*(f"hit rate ({cache})" for cache in sources.cache), *sources.quantity]


def _with_schemas(driver: Database) -> Sequence[str]:
    """The sets of operations for which there are schemas."""
    return [name for name in shipped_operations() if shipped_schemas(name, driver.dialect)]


def _duplicate_rules(driver: Database) -> str:
    """Which of several writes of one reading is there afterwards, by the schemas that say so; empty if none does."""
    files = {
        f"{name}/{schema}": file
        for name in shipped_operations()
        for schema, file in shipped_schemas(name, driver.dialect).items()
    }
    rules = {schema: rule for schema, file in files.items() if (rule := _rule_in(file))}
    shown = {schema: f"{schema} (not run)" if _is_not_run(files[schema]) else schema for schema in rules}
    return "; ".join(
        f"{rule}: {', '.join(shown[schema] for schema in rules if rules[schema] == rule)}"
        for rule in dict.fromkeys(rules.values())
    )


@cache
def _content(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _rule_in(file: Path) -> str:
    """The rule of a schema file, or one for each value of a parameter; empty if it has none."""
    content = _content(file)
    rules = content.get("duplicates", "")
    if isinstance(rules, str):
        others = [
            f"{other['rule']} where the server has {name}" for name, other in content.get("duplicates_by_setting", {}).items()
        ]
        return ", ".join([rules, *others])
    return ", ".join(f"{rule} with {name}={value}" for name, of_values in rules.items() for value, rule in of_values.items())


def _is_not_run(file: Path) -> bool:
    """Whether a schema file says that no test has run it, so that its rule is what the database's documentation says."""
    return str(_content(file).get("summary", "")).endswith(_NOT_RUN)


def _changes(driver: Database) -> str:
    """What can be done to a cluster under load; empty if nothing can."""
    if driver.name in lab.clusters():
        return ", ".join(KINDS)
    if driver.embedded or not _OF_ELASTICITY.issubset(_with_schemas(driver)):
        return ""
    return f"a cluster of your own by your commands: {', '.join(OF_ANY_CLUSTER)}"


def _connector(target: str) -> str:
    """What Spark reads a target by; empty if there is nothing."""
    found = map(_connector_in, sorted(_CONNECTORS.glob("*.toml")))
    return next((title for title, names in found if target in names), "")


@cache
def _connector_in(file: Path) -> tuple[str, list[str]]:
    """What a file has Spark read databases by, and which ones."""
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    return content["title"], content["databases"]
