"""The study of TSBS: its claims are what was published, its parts have operations of their own, and its report has rates and kinds of questions."""

import csv
import json
import re
from pathlib import Path

import pytest

from sensorbench.claims import Claim
from sensorbench.claims.expression import Expression
from sensorbench.claims.rules import Equal, Order, Ratio
from sensorbench.progress import ProgressReporter
from sensorbench.studies import STUDIES, StudyOptions, plan_study
from sensorbench.studies.registry import folder_of
from tests.conftest import Cli
from tests.given_evidence import verdict_on

STUDY = STUDIES["tsbs"]
JUDGED = [claim for claim in STUDY.claims if not claim.blocked_by]
# The operation that a claim's figure is of, as the file of printed values calls it.
_LINES = re.compile(r"\(lines (?P<numbers>[\d, ]+)\)$")


def printed_lines() -> list[dict[str, str]]:
    """The lines of published.csv by their numbers; the first two places hold none."""
    with (folder_of("tsbs") / "published.csv").open(encoding="utf-8", newline="") as file:
        return [{}, {}, *csv.DictReader(file)]


def lines_of(claim: Claim) -> list[dict[str, str]]:
    """The printed values that a claim names."""
    found = _LINES.search(claim.published)
    assert found, claim.id
    return [printed_lines()[int(number)] for number in found["numbers"].split(",")]


def figures_of(claim: Claim) -> dict[str, float]:
    """The figures of a claim with the values that were printed of them, by the lines that it names."""
    expressions = [expression for rule in claim.rules for expression in rule.expressions]
    figures = list(dict.fromkeys(figure for expression in expressions for figure in expression.figures))
    if claim.id == "TSBS-4":
        mean, median = (float(line["value"]) for line in lines_of(claim))
        return {str(figures[0]): mean / median}
    systems = {name: system for system, name in (("TimescaleDB", "timescale"), ("QuestDB", "questdb"))}
    found = {}
    for figure in figures:
        role, *operation = figure.arguments
        wanted = [
            line
            for line in lines_of(claim)
            if (not operation or line["operation"] == operation[0]) and (role == "greptime" or line["system"] == systems[role])
        ]
        assert len(wanted) == 1, (claim.id, figure)
        found[str(figure)] = float(wanted[0]["value"])
    return found


@pytest.mark.parametrize("claim", STUDY.claims, ids=lambda claim: claim.id)
def test_a_claim_is_what_the_lines_that_it_names_say(claim: Claim) -> None:
    assert claim.sentence
    for line in lines_of(claim):
        assert re.search(rf"(?<![\d.]){re.escape(line['value'].rstrip('0').rstrip('.'))}", claim.published), (claim.id, line)
    # What is set side by side is of one source, of one machine and one size of data.
    assert (
        len(
            {(line["figure_or_table"].partition(",")[0], line["configuration"], line["dataset_size"]) for line in lines_of(claim)}
        )
        == 1
    )


@pytest.mark.parametrize("claim", JUDGED, ids=lambda claim: claim.id)
def test_printed_figures_reproduce_their_claim_and_no_difference_does_not(claim: Claim) -> None:
    printed = figures_of(claim)
    assert verdict_on(claim, printed).verdict == "reproduced"
    for rule in claim.rules:
        if isinstance(rule, Ratio):
            (expression,) = rule.expressions
            assert expression.evaluate([printed[str(figure)] for figure in expression.figures]) == pytest.approx(
                rule.published, rel=0.005
            )
    same = verdict_on(claim, dict.fromkeys(printed, 1.0)).verdict
    assert (same == "reproduced") == any(isinstance(rule, Equal) for rule in claim.rules)
    # The other way around; what is near is twice as much.
    inverse = {figure: 1.0 / value for figure, value in printed.items()}
    twice = {figure: 1.0 + place for place, figure in enumerate(printed)}
    contrary = twice if any(isinstance(rule, Equal) for rule in claim.rules) else inverse
    assert verdict_on(claim, contrary).verdict == "not reproduced"


def test_an_order_is_judged_pair_by_pair() -> None:
    (claim,) = [claim for claim in STUDY.claims if any(isinstance(rule, Order) for rule in claim.rules)]
    printed = figures_of(claim)
    slowest, second, *_ = printed
    swapped = {**printed, slowest: printed[second], second: printed[slowest]}
    assert verdict_on(claim, swapped).verdict == "not reproduced"


def test_roles_are_variants_that_the_parts_of_their_claims_have() -> None:
    for claim in JUDGED:
        (part,) = claim.parts
        schemas = STUDY.file.parts[part].schemas
        for role in {
            figure.arguments[0] for rule in claim.rules for of in rule.formulas() for figure in Expression.parse(of).figures
        }:
            for variant in (*STUDY.roles.published[role], *STUDY.roles.substitute.get(role, [])):
                database, schema, *label = variant.split("/")
                choices = [
                    (layout.schema_, *filter(None, [choice.label])) for layout in schemas[database] for choice in layout.choices()
                ]
                assert (schema, *label) in choices, (claim.id, variant)


def test_what_a_schema_cannot_express_is_left_out(tmp_path: Path) -> None:
    targets = ("duckdb", "cassandra", "influxdb", "victoriametrics")
    options = StudyOptions(
        targets=targets, parts=("cpu-only",), datasets=("tsbs-cpu-only:hosts=2,duration=10m",), schemas=("wide",), scale=1.0
    )
    (part,) = plan_study(STUDY, options, tmp_path, ProgressReporter(quiet=True))
    variants = {variant.id: variant for variant in part.comparison.variants}
    asked = {name: variant.operations and len(variant.operations) for name, variant in variants.items()}
    assert asked == {"duckdb-wide": None, "cassandra-wide": 7, "influxdb-wide": 12, "victoriametrics-wide": ()}
    assert [name for name, variant in variants.items() if variant.only_loads] == ["victoriametrics-wide"]


def test_a_part_has_an_operation_set_of_its_own(tmp_path: Path) -> None:
    options = StudyOptions(targets=("duckdb",), scale=0.001)
    parts = plan_study(STUDY, options, tmp_path, ProgressReporter(quiet=True))
    found = {part.name: (part.comparison.operations_name, part.comparison.dataset.name) for part in parts}
    assert {name: operations for name, (operations, _) in found.items()} == {
        "cpu-only": "tsbs_cpu", "eight-workers": "tsbs_cpu", "devops": "tsbs_cpu", "iot": "tsbs_iot",
    }  # fmt: skip
    assert found["eight-workers"][1] == "tsbs-devops:hosts=200,duration=1d"


def test_a_report_has_rates_and_kinds_of_questions_beside_published_ones(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sizes = ("--dataset", "tsbs-devops:hosts=5,duration=2h", "--operations", "30", "--repetitions", "3", "--scale", "1")
    targets = ("--target", "duckdb", "--target", "sqlite", "--schema", "wide")
    ended = cli("study", "run", "tsbs", "--part", "devops", *targets, *sizes, "--out", out, "--no-open")
    assert ended.exit_code == 0, ended.err
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert summary["answers_equal"] is True
    sections = {section["title"]: section for section in summary["result"]["sections"]}
    rates = [row for row in sections["Rates of loading"]["rows"] if row[0] == "here"]
    assert [(variant, rows) for _, variant, rows, *_ in rates] == [
        ("duckdb-wide-devops", 5 * 720 * 9), ("sqlite-wide-devops", 5 * 720 * 9)
    ]  # fmt: skip
    for _, _, _, rows_per_s, values_per_s, *_ in rates:
        assert values_per_s == pytest.approx(rows_per_s * 101 / 9)
    published = {(row[1], row[4]) for row in sections["Rates of loading"]["rows"] if row[0] != "here"}
    assert {("QuestDB", 9577373.06), ("VictoriaMetrics", 6996606.42)} <= published
    kinds = sections["Kinds of questions"]
    assert [column["title"] for column in kinds["columns"]] == [
        "questions", "more work", "GreptimeDB v0.12.0", "duckdb-wide-devops", "sqlite-wide-devops",
    ]  # fmt: skip
    of_questions = {row[0]: row[2:] for row in kinds["rows"]}
    assert of_questions["lastpoint / single-groupby-1-1-1"][0] == pytest.approx(591.02 / 4.06)
    assert all(ratio > 0 for row in of_questions.values() for ratio in row)
    assert len(of_questions) == 9


def test_claims_about_what_was_not_measured_are_not_tested(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sizes = ("--dataset", "tsbs-devops:hosts=2,duration=30m", "--operations", "3", "--repetitions", "3", "--scale", "1")
    ended = cli("study", "run", "tsbs", "--part", "eight-workers", "--target", "duckdb", *sizes, "--out", out, "--no-open")
    assert ended.exit_code == 0, ended.err
    claims = {claim["id"]: claim for claim in json.loads((out / "summary.json").read_text(encoding="utf-8"))["claims"]}
    assert {claim["verdict"] for claim in claims.values()} == {"not tested"}
    # Those about this part, and the one that names none, say what is missing.
    own = [name for name, claim in claims.items() if "this is part eight-workers" not in claim["reason"]]
    assert own == ["TSBS-1", "TSBS-2", "TSBS-3", "TSBS-12"]


def test_postgresql_judges_for_timescaledb_and_is_named(cli: Cli, tmp_path: Path, lab_servers: dict[str, object]) -> None:
    for name in ("postgresql", "questdb"):
        assert lab_servers[name]
    out = tmp_path / "out"
    sizes = ("--dataset", "tsbs-devops:hosts=2,duration=30m", "--operations", "12", "--repetitions", "3", "--scale", "1")
    targets = [
        word for name in ("postgresql", "questdb") for word in ("--target", f"lab:{name}?namespace=sensorbench_tsbs_study")
    ]
    ended = cli("study", "run", "tsbs", "--part", "eight-workers", *targets, *sizes, "--replace", "--out", out, "--no-open")
    assert ended.exit_code == 0, ended.err
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert summary["answers_equal"] is True
    claims = {claim["id"]: claim for claim in summary["claims"]}
    for name in ("TSBS-1", "TSBS-2", "TSBS-3"):
        # There are 360 rows of cpu; the published data have 1,728,000.
        assert (claims[name]["verdict"], claims[name]["substitutes"]) == ("below minimum scale", {}), claims[name]
    cells = [cell for table in summary["published"] for cell in table["cells"]]
    measured = {(cell["row"], cell["column"]): cell for cell in cells if cell["state"] == "measured"}
    assert measured["latency-mean", "TimescaleDB"]["is_substitute"] is True
    assert measured["metric-rate", "QuestDB"]["is_substitute"] is False
