"""Layouts from production: each answers like DuckDB, before and after something is written; and what the rules of thumb say of made-up figures."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from sensorbench import lab
from sensorbench.claims import Claim
from sensorbench.claims.expression import Expression
from sensorbench.schemas import load_operations, load_schema
from sensorbench.schemas.shipped import SHIPPED_FOLDER
from sensorbench.studies.layouts import LAYOUTS
from tests.conftest import Cli, server_url
from tests.given_evidence import verdict_on

OPERATIONS = load_operations("patterns")
FILES = sorted(SHIPPED_FOLDER.glob("patterns/*/*.toml"))
# The dialect of a server is not always its name in the lab.
SERVERS = {
    "cassandra": "cassandra",
    "clickhouse": "clickhouse",
    "hbase": "hbase",
    "iotdb": "iotdb",
    "mongodb": "ferretdb",
    "mysql": "mariadb",
    "postgresql": "postgresql",
    "questdb": "questdb",
    "redis": "redis",
}
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
repetitions = 1
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


def check_written(summary: dict[str, Any], layouts: list[Chosen], *, is_server: bool) -> None:
    """Every question that a layout knows was asked after the writing, and every write was found again."""
    assert summary["answers_equal"] is True
    assert len(summary["result"]["contents"]) == len(layouts)
    for layout, contents in zip(layouts, summary["result"]["contents"].values(), strict=True):
        assert (contents["wrong"], contents["lost_writes"], contents["unanswered"]) == (0, 0, 0), contents["problems"]
        questions = [
            name for name, operation in layout.operations().items() if not operation.writes and name != "get_written_reading"
        ]
        assert contents["queried"] > 0
        assert contents["queried"] + contents["not_reached"] == 25 * len(questions)
        # A server is asked for some seconds alone, in which one that has little of a busy machine gives fewer answers.
        assert is_server or contents["not_reached"] == 0
        assert contents["read_back"] == contents["acknowledged_writes"] > 0


@pytest.mark.parametrize("dialect", ["fjall", "sqlite"])
def test_a_layout_answers_like_duckdb_after_writing(cli: Cli, tmp_path: Path, dialect: str) -> None:
    check_writing(cli, tmp_path, dialect)


# FerretDB loses updates of one document at the same time, and refuses upserts of one (docs/reference/databases/mongodb.md).
ONE_WRITER = {("fjall", "views"), ("redis", "views"), ("mongodb", "by_sensor_day"), ("mongodb", "rollups")}


def check_writing(cli: Cli, folder: Path, dialect: str) -> None:
    """Appends readings to all layouts of a database, and looks what lies there afterwards. What keeps the last write of a sensor as its newest
    reading gets one write at a time: of several in flight, the newest need not be the last.
    """
    layouts = of(dialect, "append_reading")
    one_writer = [layout for layout in layouts if (dialect, layout.schema) in ONE_WRITER]
    others = [layout for layout in layouts if layout not in one_writer]
    for chosen, concurrency in ((others, 4), (one_writer, 1)):
        if chosen:
            place = folder / str(concurrency)
            place.mkdir()
            # FerretDB reads whole collections for most questions, and each of many questions is asked here.
            scale, operations = (0.000005, 20) if dialect == "mongodb" else (0.0002, 150)
            found = carried_out(cli, place, chosen, "append_reading", scale=scale, operations=operations, concurrency=concurrency)
            check_written(found, chosen, is_server=dialect in SERVERS)


# Their layouts are tested together, with fewer operations.
TOGETHER = ("clickhouse", "iotdb")


@pytest.mark.parametrize("dialect", [dialect for dialect in SERVERS if dialect not in TOGETHER])
def test_a_layout_of_a_server_answers_like_duckdb_after_writing(
    cli: Cli, lab_servers: dict[str, lab.Instance], tmp_path: Path, dialect: str
) -> None:
    check_writing(cli, tmp_path, dialect)


def test_layouts_of_clickhouse_and_iotdb_answer_like_duckdb_after_writing(
    cli: Cli, lab_servers: dict[str, lab.Instance], tmp_path: Path
) -> None:
    layouts = [choice for choice in of("clickhouse", "append_reading") if choice.schema != "keyed"] + of(
        "iotdb", "append_reading"
    )
    assert len(layouts) == 4
    check_written(carried_out(cli, tmp_path, layouts, "append_reading", operations=40), layouts, is_server=True)
    # Totals are sums of doubles, which are compared within a tolerance, and null where there is nothing.
    (tmp_path / "totals").mkdir()
    totals = [choice for dialect in TOGETHER for choice in of(dialect, "get_total")]
    assert {choice.dialect for choice in totals} == set(TOGETHER)
    assert carried_out(cli, tmp_path / "totals", totals, "get_total", operations=20)["answers_equal"] is True


def test_what_was_known_when_in_cassandra_and_others(cli: Cli, lab_servers: dict[str, lab.Instance], tmp_path: Path) -> None:
    layouts = [
        choice for dialect in ("cassandra", "clickhouse", "mysql", "postgresql", "sqlite") for choice in of(dialect, "get_known")
    ]
    assert len(layouts) == 5
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
                for choice in layout.choices():
                    known = Chosen(dialect, layout.schema_, choice.parameters).operations()
                    assert part.workload.mix.keys() <= known.keys(), (name, dialect, layout.schema_)


def test_every_role_is_a_setting_of_some_part() -> None:
    measured = {
        "/".join(filter(None, [system, layout.schema_, choice.label]))
        for part in LAYOUTS.file.parts.values()
        for system, dialect in {**SYSTEMS, "cassandra": "cassandra", "cassandra_3": "cassandra"}.items()
        for layout in part.schemas.get(dialect, [])
        for choice in layout.choices()
    }
    for role, variants in LAYOUTS.file.roles.published.items():
        assert set(variants) <= measured, role


SYSTEMS = {
    "hbase": "hbase",
    "mongodb": "mongodb",
    "postgresql": "postgresql",
    "mariadb": "mysql",
    "sqlite": "sqlite",
    "redis": "redis",
    "fjall": "fjall",
}


CLAIMS = {claim.id: claim for claim in LAYOUTS.claims}
JUDGED = [claim for claim in CLAIMS.values() if not claim.blocked_by]


def figures_of(claim: Claim, ratio: float) -> dict[str, float]:
    """Figures by which each formula of a claim has a value: what stands first in it is this many times the rest."""
    figures: dict[str, float] = {}
    for expression in (of for rule in claim.rules for instance in rule.expanded() for of in instance.expressions):
        above, below = map(str, expression.figures)
        figures |= {above: ratio, below: 1.0}
    return figures


def test_the_rules_of_thumb_and_the_quoted_findings_are_there() -> None:
    quoted = [*(f"HB-{number}" for number in range(1, 6)), "DOC-I1", "DOC-I2"]
    assert list(CLAIMS) == [*(f"RULE-{number}" for number in range(1, 11)), *quoted]
    assert [claim.id for claim in CLAIMS.values() if claim.blocked_by] == quoted[:4]
    for claim in CLAIMS.values():
        assert claim.sentence, claim.id
        assert claim.rules, claim.id
        assert claim.parts, claim.id


@pytest.mark.parametrize("claim", JUDGED, ids=lambda claim: claim.id)
def test_a_claim_speaks_of_roles_and_parts_that_there_are(claim: Claim) -> None:
    assert set(claim.parts) <= LAYOUTS.file.parts.keys()
    for figure in (Expression.parse(text).figures[0] for text in figures_of(claim, 1.0)):
        part, colon, role = figure.arguments[0].rpartition(":")
        assert role.strip() in LAYOUTS.file.roles.published, claim.id
        assert part in claim.parts if colon else len(claim.parts) == 1, claim.id


# These speak of layouts of which the better one is the worse one elsewhere: each has a test of its own.
SEVERAL_ORDERS = {"HB-5", "DOC-I2"}
IN_ONE_ORDER = [claim for claim in JUDGED if claim.id not in SEVERAL_ORDERS]


# Where the better layout costs nothing, these hold, too.
NO_WORSE = {"RULE-1"}


@pytest.mark.parametrize("claim", IN_ONE_ORDER, ids=lambda claim: claim.id)
def test_a_rule_holds_where_the_better_layout_is_better(claim: Claim) -> None:
    assert verdict_on(claim, figures_of(claim, 2.0)).verdict == "reproduced"
    assert verdict_on(claim, figures_of(claim, 0.5)).verdict == "not reproduced"
    assert verdict_on(claim, figures_of(claim, 1.0)).verdict == ("reproduced" if claim.id in NO_WORSE else "not reproduced")
    assert verdict_on(claim, {}).verdict == "not tested"


def test_minutes_as_versions_or_columns() -> None:
    def found(short: tuple[float, float], long: tuple[float, float], of_day: float = 1.0) -> str:
        """Latencies of hour columns and hour versions over few days and over many, beside day versions."""
        roles = ("hour columns", "hour versions", "day versions")
        figures = {
            f"latency({role}, get_total.of_{days}_days)": latency
            for days in (1, 2, 4, 8, 16)
            for role, latency in zip(roles, (*(short if days <= 4 else long), of_day), strict=True)
        }
        return verdict_on(CLAIMS["HB-5"], figures).verdict

    assert found((2.0, 3.0), (3.0, 2.0)) == "reproduced"
    assert found((3.0, 2.0), (3.0, 2.0)) == "not reproduced"
    assert found((2.0, 3.0), (2.0, 3.0)) == "not reproduced"
    assert found((2.0, 3.0), (3.0, 2.0), of_day=5.0) == "not reproduced"


def test_ways_of_building_an_index() -> None:
    def found(integer: tuple[float, float], text: tuple[float, float]) -> str:
        builds = {("integer", "foreground"): integer[0], ("integer", "background"): integer[1]}
        builds |= {("string", "foreground"): text[0], ("string", "background"): text[1]}
        return verdict_on(
            CLAIMS["DOC-I2"], {f"build_s(mongodb {of} {way})": value for (of, way), value in builds.items()}
        ).verdict

    assert found((2.0, 1.0), (1.0, 2.0)) == "reproduced"
    assert found((1.0, 2.0), (1.0, 2.0)) == "not reproduced"
    assert found((2.0, 1.0), (2.0, 1.0)) == "not reproduced"


# Of each rule that is judged on whatever was measured, what one database gives: the first takes longer where the rule holds.
PAIRS = [
    ("RULE-3", "latency(temporal: cassandra pointers, get_range)", "latency(temporal: cassandra views, get_range)"),
    ("RULE-3", "latency(temporal: sqlite star, get_range)", "latency(temporal: sqlite plain, get_range)"),
    ("RULE-3", "latency(spatial: mariadb star, get_group)", "latency(spatial: mariadb by time, get_group)"),
    ("RULE-4", "size_bytes(ranges: redis plain)", "size_bytes(ranges: redis packed)"),
    ("RULE-4", "latency(write: cassandra plain 60, append_reading)", "latency(write: cassandra compacted 60, append_reading)"),
    ("RULE-6", "latency(cassandra rollups, append_reading)", "latency(cassandra plain, append_reading)"),
    ("RULE-6", "latency(postgresql arrays, append_reading)", "latency(postgresql plain, append_reading)"),
    ("RULE-8", "latency(latest: mariadb name, get_latest)", "latency(latest: mariadb integer, get_latest)"),
    ("RULE-8", "latency(write: fjall name, append_reading)", "latency(write: fjall integer, append_reading)"),
    ("RULE-9", "latency(cassandra scanned, get_day_counts)", "latency(cassandra rollups, get_day_counts)"),
    ("RULE-9", "latency(postgresql scanned, get_minute_counts)", "latency(postgresql rollups, get_minute_counts)"),
]


@pytest.mark.parametrize(("claim", "slow", "fast"), PAIRS)
def test_one_database_is_enough_to_judge_a_rule_of_thumb(claim: str, slow: str, fast: str) -> None:
    assert verdict_on(CLAIMS[claim], {slow: 2.0, fast: 1.0}).verdict == "reproduced"
    assert verdict_on(CLAIMS[claim], {slow: 1.0, fast: 2.0}).verdict == "not reproduced"
    assert verdict_on(CLAIMS[claim], {slow: 1.0}).verdict == "not tested"


@pytest.mark.parametrize(("latency_s", "expected"), [(0.5, "reproduced"), (1.1, "reproduced"), (3.0, "not reproduced")])
def test_periods_are_not_slower_than_one_row(latency_s: float, expected: str) -> None:
    month = {"latency(temporal: cassandra 1 month, get_range)": latency_s}
    assert verdict_on(CLAIMS["RULE-1"], {**figures_of(CLAIMS["RULE-1"], 1.0), **month}).verdict == expected


@pytest.mark.parametrize(("claim", "larger", "smaller", "part"), [
    ("RULE-4", "plain", "packed", "ranges"), ("RULE-5", "name", "integer", "temporal"),
])  # fmt: skip
def test_room_and_time_count_together(claim: str, larger: str, smaller: str, part: str) -> None:
    def found(bytes_: tuple[float, float], latencies_s: tuple[float, float]) -> str:
        figures = {
            f"{quantity}({part}: fjall {role}{operation})": value
            for quantity, operation, values in (("size_bytes", "", bytes_), ("latency", ", get_range", latencies_s))
            for role, value in zip((larger, smaller), values, strict=True)
        }
        return verdict_on(CLAIMS[claim], figures).verdict

    assert found((40.0, 20.0), (2.0, 1.0)) == "reproduced"
    assert found((20.0, 40.0), (2.0, 1.0)) == "not reproduced"
    assert found((40.0, 20.0), (1.0, 2.0)) == "not reproduced"


def test_the_table_of_questions_names_the_fastest_layout_of_each_system(cli: Cli, tmp_path: Path) -> None:
    ended = cli(
        "study", "run", "layouts", "--target", "fjall", "--target", "sqlite", "--part", "latest", "--part", "spatial",
        "--scale", 0.0004, "--operations", 60, "--repetitions", 1, "--out", tmp_path / "out", "--no-open",
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
    assert verdicts["RULE-9"] == verdicts["RULE-7"] == verdicts["HB-1"] == "not tested"
    assert "particles" in next(claim["reason"] for claim in summary["claims"] if claim["id"] == "HB-1")
