"""Layouts from production: each answers like DuckDB, before and after something is written; and what the rules of thumb say of made-up figures."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, cast

import pytest

from sensorbench import lab
from sensorbench.claims.claim import Judgement
from sensorbench.claims.evidence import Evidence
from sensorbench.schemas import load_operations, load_schema
from sensorbench.schemas.shipped import SHIPPED_FOLDER
from sensorbench.studies.layouts import LAYOUTS
from sensorbench.studies.layouts.claims import GROUP, JUDGES, LATEST, RANGE, RECENT, WRITE
from tests.conftest import Cli, server_url
from tests.fake_evidence import FakeEvidence, Figures

OPERATIONS = load_operations("patterns")
FILES = sorted(SHIPPED_FOLDER.glob("patterns/*/*.toml"))
# The dialect of a server is not always its name in the lab.
SERVERS = {"cassandra": "cassandra", "mysql": "mariadb", "postgresql": "postgresql", "questdb": "questdb", "redis": "redis"}
OWN = "sensorbench_layouts"

EXPERIMENT = """
dataset = "{dataset}"
scale = {scale}
operations = "patterns"
{targets}
[workload]
mix = {{ {operation} = 1 }}
schedule = {{ concurrency = {concurrency} }}
operations = {operations}
repeat = 1
"""
TARGET = """
[[target]]
url = "{url}"
schema = "{schema}"
parameters = {parameters}
"""


@dataclass(frozen=True)
class Chosen:
    """A schema of a database with parameters chosen; the others have their defaults."""

    dialect: str
    schema: str
    parameters: Mapping[str, Any]

    def operations(self) -> dict[str, Any]:
        schema = load_schema(self.schema, operations="patterns", database=self.dialect, parameters=dict(self.parameters))
        return {name: operation for name, operation in OPERATIONS.operation.items() if name in schema.file.operation}

    def table(self) -> str:
        url = server_url(SERVERS[self.dialect], OWN) if self.dialect in SERVERS else self.dialect
        parameters = ", ".join(f"{name} = {json.dumps(value)}" for name, value in self.parameters.items())
        return TARGET.format(url=url, schema=self.schema, parameters=f"{{ {parameters} }}")


def every_value(file: Path) -> list[Chosen]:
    """A schema with its defaults, and with each other value of each parameter."""
    dialect, name = file.parent.name, file.stem
    declared = load_schema(name, operations="patterns", database=dialect).file.parameters
    others = [{key: value} for key, choice in declared.items() for value in choice.values if value != choice.default]
    return [Chosen(dialect, name, parameters) for parameters in [{}, *others]]


def of(dialect: str, operation: str) -> list[Chosen]:
    """What has an operation, of a database."""
    chosen = [choice for file in FILES if file.parent.name == dialect for choice in every_value(file)]
    return [choice for choice in chosen if operation in choice.operations()]


def carried_out(
    cli: Cli,
    folder: Path,
    layouts: list[Chosen],
    operation: str,
    *,
    dataset: str = "cu-bems",
    scale: float = 0.0004,
    operations: int,
    concurrency: int = 4,
) -> dict[str, Any]:
    """The summary of an experiment in which nothing failed."""
    file = folder / "experiment.toml"
    targets = "".join(layout.table() for layout in layouts)
    text = EXPERIMENT.format(
        dataset=dataset, scale=scale, operation=operation, operations=operations, targets=targets, concurrency=concurrency
    )
    file.write_text(text, encoding="utf-8")
    ended = cli("run", file, "--out", folder / "out", "--no-open", "--replace")
    assert ended.exit_code == 0, ended.err
    summary: dict[str, Any] = json.loads((folder / "out" / "summary.json").read_text(encoding="utf-8"))
    assert len(summary["result"]["client_health"]) == len(layouts)
    for facts in summary["result"]["client_health"].values():
        assert facts["started"] == facts["ok"] == operations, facts
    return summary


def check_written(summary: dict[str, Any], layouts: list[Chosen]) -> None:
    """Every question that a layout knows was asked after the writing, and every write was found again."""
    assert summary["answers_equal"] is True
    assert len(summary["result"]["contents"]) == len(layouts)
    for layout, contents in zip(layouts, summary["result"]["contents"].values(), strict=True):
        assert (contents["wrong"], contents["lost_writes"], contents["unanswered"]) == (0, 0, 0), contents["problems"]
        questions = [
            name for name, operation in layout.operations().items() if not operation.writes and name != "get_written_reading"
        ]
        assert contents["queried"] == 25 * len(questions) > 0
        assert contents["read_back"] == contents["acknowledged_writes"] > 0


@pytest.mark.parametrize("dialect", ["fjall", "sqlite"])
def test_a_layout_answers_like_duckdb_after_writing(cli: Cli, tmp_path: Path, dialect: str) -> None:
    check_writing(cli, tmp_path, dialect)


def check_writing(cli: Cli, folder: Path, dialect: str) -> None:
    """Appends readings to all layouts of a database, and looks what lies there afterwards. What keeps the last write of a sensor as its newest
    reading gets one write at a time: of several in flight, the newest need not be the last.
    """
    layouts = of(dialect, "append_reading")
    one_writer = [layout for layout in layouts if layout.schema == "views" and dialect in {"fjall", "redis"}]
    others = [layout for layout in layouts if layout not in one_writer]
    for chosen, concurrency in ((others, 4), (one_writer, 1)):
        if chosen:
            place = folder / str(concurrency)
            place.mkdir()
            found = carried_out(cli, place, chosen, "append_reading", operations=300, concurrency=concurrency)
            check_written(found, chosen)


@pytest.mark.parametrize("dialect", list(SERVERS))
def test_a_layout_of_a_server_answers_like_duckdb_after_writing(
    cli: Cli, lab_servers: dict[str, lab.Instance], tmp_path: Path, dialect: str
) -> None:
    check_writing(cli, tmp_path, dialect)


def test_what_was_known_when_in_cassandra_and_others(cli: Cli, lab_servers: dict[str, lab.Instance], tmp_path: Path) -> None:
    layouts = [choice for dialect in ("cassandra", "mysql", "postgresql", "sqlite") for choice in of(dialect, "get_known")]
    assert len(layouts) == 4
    # Some questions are about a moment before or after a correction became known.
    summary = carried_out(cli, tmp_path, layouts, "get_known", scale=0.01, operations=40)
    assert summary["answers_equal"] is True
    assert summary["result"]["answers"]["get_known"]["compared_with_reference"] > 0


def test_periods_and_batches_of_cassandra_over_the_borders_of_months(
    cli: Cli, lab_servers: dict[str, lab.Instance], tmp_path: Path
) -> None:
    """Hourly readings: stretches of 60 of them begin and end within months, days and rows."""
    months = [
        Chosen("cassandra", "by_period", {"period": "1 month"}),
        Chosen("cassandra", "by_period", {"period": "7 days", "order": "DESC"}),
        Chosen("cassandra", "compacted", {}),
        Chosen("fjall", "compacted", {"encoding": "gorilla"}),
    ]
    summary = carried_out(cli, tmp_path, months, "get_range", dataset="beijing-air-quality", scale=0.08, operations=60)
    assert summary["answers_equal"] is True


def test_every_schema_can_be_had_and_is_asked_by_the_study() -> None:
    for choice in (chosen for file in FILES for chosen in every_value(file)):
        assert choice.operations(), choice
    asked = {
        (dialect, layout.schema_)
        for part in LAYOUTS.file.parts.values()
        for dialect, layouts in part.schemas.items()
        for layout in layouts
    }
    assert asked == {(file.parent.name, file.stem) for file in FILES}


def test_every_layout_of_a_part_has_its_operations() -> None:
    for name, part in LAYOUTS.file.parts.items():
        for dialect, layouts in part.schemas.items():
            for layout in layouts:
                for parameters, _ in layout.labelled_parameters():
                    known = Chosen(dialect, layout.schema_, parameters).operations()
                    assert part.workload.mix.keys() <= known.keys(), (name, dialect, layout.schema_)


def test_every_role_is_a_setting_of_some_part() -> None:
    measured = {
        "/".join(filter(None, [system, layout.schema_, label]))
        for part in LAYOUTS.file.parts.values()
        for system, dialect in {**SYSTEMS, "cassandra": "cassandra", "cassandra_3": "cassandra"}.items()
        for layout in part.schemas.get(dialect, [])
        for _, label in layout.labelled_parameters()
    }
    for role, variants in LAYOUTS.file.roles.published.items():
        assert set(variants) <= measured, role


SYSTEMS = {"postgresql": "postgresql", "mariadb": "mysql", "sqlite": "sqlite", "redis": "redis", "fjall": "fjall"}


class MadeUp(FakeEvidence):
    """Also with bytes by part and role."""

    def __init__(self, part: str, figures: Figures, sizes: Mapping[tuple[str, str], float]) -> None:
        super().__init__(part, figures, {}, {})
        self.sizes = sizes

    def part(self, name: str) -> "MadeUp":
        return MadeUp(name, self.figures, self.sizes)

    def size_bytes(self, role: str) -> float | None:
        return self.sizes.get((self.name, role))


def judged(claim: str, figures: Figures, sizes: Mapping[tuple[str, str], float] | None = None) -> Judgement:
    """What a rule says of mean latencies by part, role and operation."""
    part = next(candidate for candidate in LAYOUTS.claims if candidate.id == claim).parts[0]
    return JUDGES[claim](cast("Evidence", MadeUp(part, figures, sizes or {})))


def test_the_ten_rules_are_there() -> None:
    assert [claim.id for claim in LAYOUTS.claims] == [f"RULE-{number}" for number in range(1, 11)]
    assert all(claim.parts for claim in LAYOUTS.claims)


# Of each rule, two roles of a part: the first takes longer where the rule holds.
PAIRS = {
    "RULE-2": [("widths", "cassandra plain", "cassandra 7 days", RANGE)],
    "RULE-3": [
        ("temporal", "cassandra pointers", "cassandra views", RANGE),
        ("temporal", "sqlite star", "sqlite plain", RANGE),
        ("spatial", "mariadb star", "mariadb by time", GROUP),
    ],
    "RULE-6": [
        ("write", "cassandra rollups", "cassandra plain", WRITE),
        ("write", "postgresql arrays", "postgresql plain", WRITE),
    ],
    "RULE-7": [("spread", "hot", "spread", WRITE)],
    "RULE-8": [("latest", "mariadb name", "mariadb integer", LATEST), ("write", "fjall name", "fjall integer", WRITE)],
    "RULE-9": [
        ("dashboard", "cassandra scanned", "cassandra rollups", "get_day_counts"),
        ("dashboard", "postgresql scanned", "postgresql rollups", "get_minute_counts"),
    ],
    "RULE-10": [
        ("latest", "cassandra plain", "cassandra newest first", LATEST),
        ("temporal", "cassandra 1 day", "cassandra day newest first", RECENT),
    ],
}


@pytest.mark.parametrize(("claim", "number"), [(claim, number) for claim, pairs in PAIRS.items() for number in range(len(pairs))])
def test_a_rule_holds_where_the_better_layout_is_faster(claim: str, number: int) -> None:
    part, slow, fast, operation = PAIRS[claim][number]
    assert judged(claim, {(part, slow, operation): 2.0, (part, fast, operation): 1.0}).word == "holds"
    assert judged(claim, {(part, slow, operation): 1.0, (part, fast, operation): 2.0}).word == "does not hold"
    assert judged(claim, {(part, slow, operation): 1.0}).word == "not tested here"


def test_periods_are_not_slower_than_one_row() -> None:
    whole, month = ("temporal", "cassandra plain", RANGE), ("temporal", "cassandra 1 month", RANGE)
    for latency, word in [(0.5, "holds"), (1.1, "holds"), (3.0, "does not hold")]:
        assert judged("RULE-1", {whole: 1.0, month: latency}).word == word


@pytest.mark.parametrize(("claim", "roles", "parts"), [
    ("RULE-4", ("fjall plain", "fjall packed"), ("ranges", "write")),
    ("RULE-5", ("fjall name", "fjall integer"), ("temporal", "write")),
])  # fmt: skip
def test_room_and_time_count_together(claim: str, roles: tuple[str, str], parts: tuple[str, str]) -> None:
    large, small = roles
    first, _ = parts
    figures = {(first, large, RANGE): 2.0, (first, small, RANGE): 1.0}
    assert judged(claim, figures, {(first, large): 40.0, (first, small): 20.0}).word == "holds"
    assert judged(claim, figures, {(first, large): 20.0, (first, small): 40.0}).word == "does not hold"
    slow = {(first, large, RANGE): 1.0, (first, small, RANGE): 2.0}
    assert judged(claim, slow, {(first, large): 40.0, (first, small): 20.0}).word == "does not hold"


def test_the_table_of_questions_names_the_fastest_layout_of_each_system(cli: Cli, tmp_path: Path) -> None:
    ended = cli(
        "study", "run", "layouts", "--target", "fjall", "--target", "sqlite", "--part", "latest", "--part", "spatial",
        "--scale", 0.0004, "--operations", 60, "--repeat", 1, "--out", tmp_path / "out", "--no-open",
    )  # fmt: skip
    assert ended.exit_code == 0, ended.err
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary["answers_equal"] is True
    table = next(section for section in summary["result"]["sections"] if section["title"] == "Which layout for which question")
    rows = {(row[0], row[2]): row for row in table["rows"]}
    assert rows.keys() == set(product(("latest", "spatial"), ("sqlite", "fjall")))
    part = json.loads((tmp_path / "out" / "latest" / "summary.json").read_text(encoding="utf-8"))
    means = {
        figure["variant"]: figure["latency_s"]["mean"]["value"]
        for figure in part["result"]["figures"]
        if figure["variant"].startswith("sqlite")
    }
    row = rows["latest", "sqlite"]
    assert row[3] == min(means, key=lambda variant: means[variant])
    assert row[8] == pytest.approx(max(means.values()) / min(means.values()))
    assert row[9] == len(means) > 1
    verdicts = {claim["id"]: claim["verdict"] for claim in summary["claims"]}
    assert verdicts["RULE-9"] == verdicts["RULE-7"] == "not tested here"
