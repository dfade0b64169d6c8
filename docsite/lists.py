"""Lists in the reference that are made of the code: exit codes, environment variables, datasets, metrics, JSON Schemas, what is supported."""

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any, cast

from docker.official_images import images, tried

from docsite.markdown import code, table
from sensorbench import _engine
from sensorbench.catalog import capabilities, entries
from sensorbench.catalog.capability import Capability
from sensorbench.cli.main import INTERRUPTED
from sensorbench.dataset import GENERATED, SHIPPED
from sensorbench.dataset.dataset import Dataset
from sensorbench.dataset.registry import IMPORTERS
from sensorbench.errors import FailedError, SensorbenchError, UndecidedError, UsageError
from sensorbench.results.engine_report import Snapshot
from sensorbench.results.json_schemas import json_schemas as all_json_schemas
from sensorbench.results.quantities import QUANTITIES
from sensorbench.results.sources import FOLDER, Sources
from sensorbench.runner.openmetrics import LoadMetrics
from sensorbench.schemas import load_operations, load_schema, shipped_operations, shipped_schemas
from sensorbench.schemas.recommended_batches import RecommendedBatches
from sensorbench.schemas.recommended_batches import recommended_batches as all_recommended_batches
from sensorbench.toml_file import load

# What the summary of a schema says that no server of this project has answered.
NOT_RUN = "Not run by this project"
# The variables that users set. What the tests and the lab's own processes use is not among them.
ENVIRONMENT = {
    "SENSORBENCH_CACHE": "The folder of generated, imported and prepared data. Default: `sensorbench` in `XDG_CACHE_HOME` or `~/.cache`.",
    "SENSORBENCH_LAB": "The folder of the lab's servers and their data. Default: `/var/lib/sensorbench-lab` for root, else `sensorbench-lab` in `XDG_STATE_HOME` or `~/.local/state`.",
    "SENSORBENCH_LAB_SOFTWARE": "The folder of unpacked server software. Default: `/var/cache/sensorbench-lab` for root, else `sensorbench/lab` in `XDG_CACHE_HOME` or `~/.cache`.",
    "SENSORBENCH_ODBC_MANAGER": "unixODBC's driver manager. Default: the system's `libodbc.so.2`.",
    "SENSORBENCH_TRACE": "If it is set, the lab's helper for SSTables prints stack traces and Cassandra's own messages.",
}


def exit_codes() -> str:
    """Which exit code says what."""
    of_errors = {code: " ".join((error.__doc__ or "").split()) for error in _errors() for code in [error.exit_code]}
    rows = {
        0: "Done.",
        FailedError.exit_code: "A run failed, or a condition that you gave with `--fail-on` holds.",
        UsageError.exit_code: of_errors[UsageError.exit_code],
        UndecidedError.exit_code: of_errors[UndecidedError.exit_code],
        INTERRUPTED: of_errors[INTERRUPTED],
    }
    undescribed = of_errors.keys() - rows.keys()
    assert not undescribed, f"exit codes without a meaning: {undescribed}"
    return table(("exit code", "meaning"), ((code(number), meaning) for number, meaning in rows.items()))


def _errors(of: type[SensorbenchError] = SensorbenchError) -> Iterator[type[SensorbenchError]]:
    for below in of.__subclasses__():
        yield below
        yield from _errors(below)


def login_variables() -> list[str]:
    """The variables of user and password, for each database that is a server."""
    servers = [entry["name"] for entry in _databases() if not entry["embedded"]]
    return [f"SENSORBENCH_{name.upper().replace('+', '_')}_{what}" for name in servers for what in ("USER", "PASSWORD")]


def environment_variables() -> str:
    """The variables that commands read."""
    logins = ", ".join(map(code, login_variables()))
    return (
        table(("variable", "meaning"), ((code(name), about) for name, about in ENVIRONMENT.items()))
        + f"\n## User and password\n\nThey count where neither the URL nor a file of credentials has them: {logins}.\n\n"
        + "For PostgreSQL, TimescaleDB and QuestDB, PostgreSQL's password file comes last: the one that `PGPASSFILE` names, else `~/.pgpass`. "
        + "Only you may read it ([Use your own server](../how-to/your-server.md)).\n"
    )


def datasets() -> str:
    """The datasets that there are."""
    rows = []
    for name in sorted({*SHIPPED, *GENERATED, *IMPORTERS}):
        described = Dataset.at(SHIPPED[name], 1.0).describe() if name in SHIPPED else None
        ways = [
            way
            for way, where in (("in the package", SHIPPED), ("generated", GENERATED), ("importer", IMPORTERS))
            if name in where
        ]
        rows.append((code(name), described.title if described else "", ", ".join(ways), described.license if described else ""))
    return table(("dataset", "title", "how you get it", "license"), rows)


def support_matrix() -> str:
    """What sensorbench can do with each database."""
    abilities = {entry.title: capabilities(entry) for entry in entries().values()}
    titles = [ability.title for ability in next(iter(abilities.values())).values()]
    rows = ((title, *map(_shown, can.values())) for title, can in abilities.items() if can["driver"].can)
    missing = [title for title, can in abilities.items() if not can["driver"].can]
    return (
        f"{table(('database', *titles[1:]), (_without_driver(row) for row in rows))}\nWithout a driver: {', '.join(missing)}.\n"
    )


def _without_driver(row: tuple[str, ...]) -> tuple[str, ...]:
    return (row[0], *row[2:])


def _shown(capability: Capability) -> str:
    return {"yes": "✓", "no": "–"}.get(capability.short, capability.short)


def official_images() -> str:
    """Vendors' images: what was tried with them, and what with another server in their place."""
    found, rows = tried(), []
    for name, image in images().items():
        of_image = found.get(name)
        words = "by workflow, not yet run"
        here = "–"
        if of_image is not None:
            steps = f"reached {of_image.reached}, contract {of_image.contract}, study {of_image.study} ({of_image.date})"
            if of_image.place == "image":
                words = steps
            else:
                here = f"{of_image.server}: {steps}"
        rows.append((code(image.image), words, here))
    return table(("image", "tested", "tested here, with another server in its place"), rows)


def schemas() -> str:
    """The schemas of each operation set, by database."""
    parts = []
    for name in shipped_operations():
        rows = []
        for dialect, group in groupby(
            sorted(_databases(), key=lambda entry: cast("str", entry["dialect"])), lambda entry: entry["dialect"]
        ):
            found = shipped_schemas(name, dialect)
            if found and dialect != "null":
                rows.append((", ".join(code(entry["name"]) for entry in group), ", ".join(map(code, found))))
        parts.append(f"### {code(name)}\n\n{table(('databases', 'schemas'), rows)}")
    return "\n".join(parts)


def recommended_batches() -> str:
    """What vendors say of the batches that their databases are written to in, with the source, and what the driver makes of a batch."""
    rows = (
        (
            code(name),
            "no number" if known.rows is None else f"{known.rows:,}",
            _recommended_writers(known),
            f"[{known.origin}]({known.source}): {known.says}",
            known.sent_as,
        )
        for name, known in all_recommended_batches().items()
    )
    return table(("database", "rows", "writers", "source", "a batch of sensorbench is"), rows)


def _recommended_writers(known: RecommendedBatches) -> str:
    if known.writers_per_cpu is not None:
        return f"{known.writers_per_cpu} per CPU"
    return "no number" if known.writers is None else str(known.writers)


def duplicate_rules() -> str:
    """Which of several writes of one reading is there afterwards, by the schemas that say so."""
    rows = []
    for entry in entries().values():
        described = capabilities(entry)["duplicates"].described
        rows += [(code(target), about.replace("; ", "<br>")) for target, about in described.items()]
    return table(("target", "rule: schemas"), rows)


def tsbs_queries(operations: str) -> str:
    """Queries of an operation set such as TSBS's by name, and which schemas of which databases express them; below, why others do not."""
    queries = list(load_operations(operations).operation)
    cells: dict[str, dict[str, list[str]]] = {}
    reasons: dict[str, list[str]] = {}
    for entry in sorted(_databases(), key=lambda entry: cast("str", entry["name"])):
        for name in shipped_schemas(operations, cast("str", entry["dialect"])):
            file = load_schema(name, operations=operations, database=cast("str", entry["dialect"])).file
            of_database = cells.setdefault(cast("str", entry["name"]), {query: [] for query in queries})
            shown = f"{name} (not run)" if NOT_RUN in file.summary else name
            for query in queries:
                if query in file.operation:
                    of_database[query].append(shown)
                else:
                    reasons.setdefault(f"{entry['name']}, {name}: {file.cannot[query]}", []).append(code(query))
    rows = ((code(query), *(", ".join(of[query]) or "–" for of in cells.values())) for query in queries)
    why = "".join(f"- {reason} ({', '.join(names)}).\n" for reason, names in reasons.items())
    others = sorted({cast("str", entry["name"]) for entry in _databases()} - cells.keys() - {"null"})
    return (
        f"{table(('query', *map(code, cells)), rows)}\nA schema that a cell names gives DuckDB's answer; a dash is a query that no schema expresses. "
        f"What a schema cannot express, it says:\n\n{why}\nThere are no schemas yet for {', '.join(map(code, others))}.\n"
    )


def quantities() -> str:
    """What servers say of themselves, with where each figure comes from."""
    sources = {file.stem: load(file, Sources) for file in sorted(FOLDER.glob("*.toml"))}
    titles = {name: entry.title.removeprefix("Apache ") for entry in entries().values() for name in entry.targets}
    rows, caches = [], []
    for quantity in QUANTITIES.values():
        places = [
            f"{_databases_of(source, titles)}: {', else '.join(code(way.documented) for way in source.quantity[quantity.name])}"
            for source in sources.values()
            if quantity.name in source.quantity
        ]
        rows.append((code(quantity.name), quantity.title, quantity.unit, quantity.kind, "; ".join(places)))
    for source in sources.values():
        caches += [(name, _databases_of(source, titles), code(cache.documented)) for name, cache in source.cache.items()]
    return (
        table(("quantity", "what", "unit", "kind", "from"), rows)
        + "\n"
        + table(("cache", "of", "hits and requests from"), caches)
    )


def _databases_of(sources: Sources, titles: dict[str, str]) -> str:
    return ", ".join(dict.fromkeys(titles.get(name, name) for name in sources.databases)) or "servers of the lab"


def openmetrics() -> str:
    """The metrics of a running load, by asking the endpoint's own collector."""
    metrics = LoadMetrics()
    metrics.on_snapshot(cast("Any", None), _example_snapshot())
    rows = []
    for metric in metrics.collect():
        labels = {label: "" for sample in metric.samples for label in sample.labels}
        name = f"{metric.name}_total" if metric.type == "counter" else metric.name
        shown = f"{name}{{{','.join(labels)}}}" if labels else name
        rows.append((code(shown), metric.type, metric.unit or "–", metric.documentation))
    return table(("metric", "type", "unit", "meaning"), rows)


def _example_snapshot() -> Snapshot:
    """A snapshot of one operation, for what metrics are called."""
    latencies = {"count": 1, "mean": 1.0, "p50": 1, "p95": 1, "p99": 1, "p999": 1}
    counts = {"ok": 1, "error": 0, "timeout": 0, "cancelled": 0}
    operation = {"counts": counts, "late": 0, "response_ns": latencies, "service_ns": latencies}
    phase = {"started": 1, "dropped": 0, "operations": {"read": operation}}
    return cast("Snapshot", {"phases": [phase], "current_phase": 0, "now_ns": 0})


def json_schemas() -> str:
    """The JSON Schemas of result files: their keys at the top, and where the whole schema is."""
    parts = []
    for name, schema in all_json_schemas().items():
        file = f"{name}.schema.json"
        required = set(schema.get("required", ()))
        rows = [
            (code(key), _json_type(about, schema), "yes" if key in required else "", about.get("description", ""))
            for key, about in schema["properties"].items()
        ]
        about = " ".join(schema.get("description", "").split("\n\n")[0].split())
        parts.append(f"## {name}\n\n{about} The whole schema: [{file}](schemas/{file}).\n\n"
                     + table(("key", "type", "required", "meaning"), rows))  # fmt: skip
    return "\n".join(parts)


def _json_type(about: dict[str, Any], schema: dict[str, Any]) -> str:
    if "$ref" in about:
        return _json_type(schema["$defs"][about["$ref"].rpartition("/")[2]], schema)
    if "const" in about:
        return code(json.dumps(about["const"]))
    if "enum" in about:
        return " or ".join(code(json.dumps(value)) for value in about["enum"])
    if "anyOf" in about:
        return " or ".join(dict.fromkeys(_json_type(each, schema) for each in about["anyOf"]))
    kind = about.get("type", "any value")
    return f"array of {_json_type(about['items'], schema)}" if kind == "array" and "items" in about else str(kind)


def _databases() -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", json.loads(_engine.databases()))
