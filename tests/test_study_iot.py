"""The main road: load, ask, check the answers, judge the claims."""

import json
from pathlib import Path
from typing import Any

import pytest

from sensorbench.results.summary.comparison import AnswerChecks
from sensorbench.studies import FACTOR_STUDIES, OTHER_STUDIES, STUDIES
from tests.conftest import EMBEDDED, SMALL, Cli

QUESTIONS = ["get_sensor_data", "get_peak_data", "get_available_data", "get_floor_zone_data"]
VARIANTS = ["sqlite-star", "sqlite-natural", "fjall-by_sensor", "fjall-by_sensor_day"]
SCHEMAS = Path(__file__).parent.parent / "python/sensorbench/schemas/sensors"


def test_four_schemas_in_two_databases_give_equal_answers(summary: dict[str, Any]) -> None:
    assert summary["status"] == "complete"
    assert [variant["id"] for variant in summary["variants"]] == VARIANTS
    assert {variant["target"] for variant in summary["variants"]} == {"fjall", "sqlite"}
    assert summary["answers_equal"] is True
    for question in QUESTIONS:
        answers = summary["result"]["answers"][question]
        assert answers["equal"]
        assert answers["mismatch_count"] == 0
        assert answers["compared_with_reference"] >= 12 * 10


def test_answers_computed_by_hand_are_given(summary: dict[str, Any]) -> None:
    for variant in VARIANTS:
        checks = summary["result"]["known_answers"][variant]
        assert checks["queried"] >= 5
        assert checks["wrong"] == 0


def test_every_operation_is_accounted_for(summary: dict[str, Any]) -> None:
    for variant in VARIANTS:
        facts = summary["result"]["client_health"][variant]
        assert facts["started"] == facts["ok"] + facts["errors"] + facts["timeouts"] + facts["cancelled"] == 360
        assert facts["dropped"] == 0


def test_figures_have_intervals_and_rankings_verdicts(summary: dict[str, Any]) -> None:
    assert len(summary["result"]["figures"]) == len(VARIANTS) * len(QUESTIONS)
    for figure in summary["result"]["figures"]:
        interval = figure["latency_s"]["mean_to_p95"]
        assert interval["low"] < interval["value"] < interval["high"]
    assert [ranking["operation"] for ranking in summary["result"]["rankings"]] == QUESTIONS
    for ranking in summary["result"]["rankings"]:
        assert sorted(place["variant"] for place in ranking["places"]) == sorted(VARIANTS)
        assert ranking["places"][0]["against_best"] is None
        words = {place["against_best"]["word"] for place in ranking["places"][1:]}
        assert words <= {"slower", "equivalent", "no significant difference", "inconclusive"}


def test_rows_loaded_were_counted_and_sizes_told(summary: dict[str, Any]) -> None:
    readings = summary["result"]["dataset"]["relations"]["measurements"]["rows"]
    for variant in VARIANTS:
        load = summary["result"]["load"][variant]
        assert load["readings"] == readings
        assert load["size"]["total_bytes"] > 100_000
        assert load["load_s"] > 0
    assert summary["result"]["load"]["fjall-by_sensor"]["tables"][0]["rows"] == readings


def test_every_claim_has_a_verdict_and_a_reason(summary: dict[str, Any]) -> None:
    claims = {claim["id"]: claim for claim in summary["claims"]}
    assert list(claims) == [f"IOT-{number}" for number in range(1, 23)]
    assert all(claim["reason"] for claim in claims.values())
    # Claims about Cassandra and MySQL are not tested by SQLite and fjall.
    assert {claim["verdict"] for claim in claims.values()} == {"not tested"}
    assert {name for claim in claims.values() for name in claim["substitutes"]} == set()
    assert "cassandra/by_sensor" in claims["IOT-1"]["reason"]


def test_a_report_without_systems_of_the_paper_says_which_command_tests_its_findings(study_folder: Path) -> None:
    page = (study_folder / "report.html").read_text(encoding="utf-8")
    assert "None of them can be tested by what was measured here" in page
    assert "sensorbench study show iot" in page


def test_claims_are_printed(cli: Cli, study_folder: Path) -> None:
    outcome = cli("claims", study_folder, "--json")
    assert outcome.exit_code == 0
    assert len(outcome.json) == 22
    assert "IOT-20" in cli("claims", study_folder).out


def test_studies_are_listed_and_shown(cli: Cli) -> None:
    assert [study["name"] for study in cli("study", "list", "--json").json] == [*STUDIES, *FACTOR_STUDIES, *OTHER_STUDIES]
    assert cli("study", "show", "iot", "--json").json["schemas"]["sqlite"] == ["star", "natural"]
    assert "IOT-1" in cli("study", "show", "iot").out


def altered(folder: Path, database: str, schema: str, old: str, new: str) -> Path:
    """A copy of a shipped schema with one place changed."""
    text = (SCHEMAS / database / f"{schema}.toml").read_text(encoding="utf-8")
    assert old in text
    path = folder / f"{schema}.toml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def experiment(folder: Path, *targets: tuple[str, str], operations: int = 40) -> Path:
    entries = "".join(f'[[target]]\nurl = "{url}"\nschema = "{schema}"\n' for url, schema in targets)
    mix = ", ".join(f"{question} = 1" for question in QUESTIONS)
    path = folder / "experiment.toml"
    path.write_text(
        f'dataset = "beijing-air-quality"\nscale = 0.02\n{entries}[workload]\nmix = {{ {mix} }}\noperations = {operations}\nrepetitions = 1\n',
        encoding="utf-8",
    )
    return path


@pytest.mark.parametrize(
    ("question", "database", "schema", "old", "new"),
    [
        ("get_sensor_data", "sqlite", "natural", "SELECT time_measured, measurement FROM measurements\nWHERE floor = :site AND zone = :zone "
         "AND sensor = :sensor AND time_measured >= :from AND time_measured < :to",
         "SELECT time_measured, measurement FROM measurements\nWHERE floor = :site AND zone = :zone "
         "AND sensor = :sensor AND time_measured >= :from AND time_measured <= :to"),
        ("get_peak_data", "sqlite", "natural", "SELECT max(measurement)", "SELECT min(measurement)"),
        ("get_available_data", "sqlite", "natural", "SELECT floor, zone FROM locations\"", "SELECT zone, floor FROM locations\""),
        ("get_peak_data", "fjall", "by_sensor", 'reduce = { function = "max"', 'reduce = { function = "min"'),
        # The right rows, but not in the order that the schema promises.
        ("get_sensor_data", "sqlite", "natural", "[operation.get_sensor_data]",
         '[operation.get_sensor_data]\norder = [{ column = "time", direction = "descending" }]'),
    ],
)  # fmt: skip
def test_an_altered_operation_is_seen_and_not_ranked(
    cli: Cli, tmp_path: Path, question: str, database: str, schema: str, old: str, new: str
) -> None:
    altered(tmp_path, database, schema, old, new)
    other = ("fjall", "by_sensor_day") if database == "sqlite" else ("sqlite", "natural")
    out = tmp_path / "out"
    outcome = cli("run", experiment(tmp_path, (database, f"{schema}.toml"), other), "--out", out, "--no-open")
    assert outcome.exit_code == 1
    assert question in outcome.err
    found = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert found["answers_equal"] is False
    rankings = {ranking["operation"]: ranking for ranking in found["result"]["rankings"]}
    assert rankings[question]["excluded"]
    assert rankings[question]["places"] == []
    assert all(rankings[name]["places"] for name in QUESTIONS if name != question)
    assert "did <strong>not give equal answers</strong>" in (out / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "time AS time_measured, value AS measurement FROM measurements",
            "time AS time_measured, value + 1 AS measurement FROM measurements",
        ),
        (
            "time AS time_measured, value AS measurement FROM measurements",
            "time AS time_measured, value AS measurement FROM measurements WHERE zone <> 7",
        ),
        ("time AS time_measured, value", "time + INTERVAL 1 HOUR AS time_measured, value"),
    ],
)
def test_a_wrong_fill_is_caught(cli: Cli, tmp_path: Path, old: str, new: str) -> None:
    altered(tmp_path, "sqlite", "natural", old, new)
    out = tmp_path / "out"
    assert (
        cli("run", experiment(tmp_path, ("sqlite", "natural.toml"), ("fjall", "by_sensor")), "--out", out, "--no-open").exit_code
        == 1
    )
    found = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert found["answers_equal"] is False
    assert found["result"]["known_answers"]["sqlite-natural"]["wrong"] > 0, "the answers computed by hand see it alone"
    assert found["result"]["known_answers"]["fjall-by_sensor"]["wrong"] == 0


def test_a_question_with_a_known_answer_that_fails_is_said_and_does_not_keep_others_from_being_ranked(
    cli: Cli, tmp_path: Path
) -> None:
    """No answer is not a wrong answer: on a busy machine, a scan may meet a time limit of its server."""
    # Where the answer is 24.0, which one computed by hand is, an integer overflows.
    failing = "SELECT max(measurement) + 0 * abs(-9223372036854775807 - (max(measurement) = 24.0))"
    altered(tmp_path, "sqlite", "natural", "SELECT max(measurement)", failing)
    out = tmp_path / "out"
    targets = (("sqlite", "natural.toml"), ("fjall", "by_sensor"))
    assert cli("run", experiment(tmp_path, *targets), "--out", out, "--no-open").exit_code == 0
    found = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert found["answers_equal"] is True
    checks = {variant: (of["wrong"], of["unanswered"]) for variant, of in found["result"]["known_answers"].items()}
    assert checks == {"sqlite-natural": (0, 1), "fjall-by_sensor": (0, 0)}
    assert not any(ranking["excluded"] for ranking in found["result"]["rankings"])
    (caveat,) = (caveat for caveat in found["warnings"] if caveat["kind"] == "known answers")
    assert caveat["variant"] == "sqlite-natural"
    assert "integer overflow" in caveat["text"]
    assert "1 of its questions failed" in (out / "report.html").read_text(encoding="utf-8")


def test_results_of_before_that_took_no_answer_for_a_wrong_one_are_read() -> None:
    failed = {"operation": "get_peak_data", "parameters": {"site": "7"}, "problem": "no answer came"}
    wrong = {"operation": "get_peak_data", "parameters": {"site": "2"}, "problem": "1 row instead of 2"}
    checks = AnswerChecks.model_validate({"queried": 7, "wrong": 2, "problems": [failed, wrong]})
    assert (checks.queried, checks.wrong, checks.unanswered) == (6, 1, 1)
    assert [problem.answered for problem in checks.problems] == [False, True]
    assert AnswerChecks.model_validate(checks.model_dump(mode="json")) == checks


def test_a_wrong_reference_query_is_caught_by_the_answers_computed_by_hand(cli: Cli, tmp_path: Path) -> None:
    text = (SCHEMAS / "operations.toml").read_text(encoding="utf-8")
    old = 'reference = "SELECT max(value) AS peak FROM measurements'
    assert old in text
    folder = tmp_path / "sensors.toml"
    folder.write_text(text.replace(old, 'reference = "SELECT min(value) AS peak FROM measurements'), encoding="utf-8")
    path = experiment(tmp_path, ("sqlite", str(SCHEMAS / "sqlite/natural.toml")))
    # Known answers belong to the shipped operations; a user's own file brings none, so the reference itself must disagree.
    path.write_text(f'operations = "{folder}"\n' + path.read_text(encoding="utf-8"), encoding="utf-8")
    out = tmp_path / "out"
    assert cli("run", path, "--out", out, "--no-open").exit_code == 1
    assert json.loads((out / "summary.json").read_text(encoding="utf-8"))["answers_equal"] is False


def test_the_generated_building_answers_equally_at_any_scale(cli: Cli, tmp_path: Path) -> None:
    outcome = cli("study", "run", "iot", *EMBEDDED, "--scale", "0.004", "--operations", "60", "--repetitions", "1", "--schema", "by_sensor", "--schema", "natural",
                  "--out", tmp_path / "out", "--no-open", "--json")  # fmt: skip
    assert outcome.exit_code == 0, outcome.err
    assert outcome.json["answers_equal"] is True
    assert outcome.json["result"]["dataset"]["generated"] is True
    assert outcome.json["result"]["dataset"]["scale"] == 0.004
    assert outcome.json["result"]["known_answers"]["sqlite-natural"]["queried"] >= 5
    # One run says nothing of how much runs differ.
    words = {place["against_best"]["word"] for ranking in outcome.json["result"]["rankings"] for place in ranking["places"][1:]}
    assert words == {"inconclusive"}


def test_resume_repeats_nothing_that_is_complete(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    arguments = ("study", "run", "iot", *SMALL, "--schema", "natural", "--target", f"sqlite:{tmp_path / 'data.db'}", "--out", out)
    assert cli(*arguments).exit_code == 0
    before = (out / "experiments/sqlite-natural/run-1/operations.parquet").read_bytes()
    removed = out / "experiments/sqlite-natural/run-3/manifest.json"
    removed.unlink()
    outcome = cli(*arguments, "--resume")
    assert outcome.exit_code == 0, outcome.err
    assert "already loaded" in outcome.err
    assert "run 1: already measured" in outcome.err
    assert "run 3: already measured" not in outcome.err
    assert removed.exists()
    assert (out / "experiments/sqlite-natural/run-1/operations.parquet").read_bytes() == before
    changed = cli(*arguments[:-2], "--seed", "7", "--operations", "50", "--out", out, "--resume")
    assert changed.exit_code == 2
    assert "begun with another workload" in changed.err
    # A path that is written another way is the same file, and another one is named by its variant.
    monkeypatch.chdir(tmp_path)
    relative = [f"sqlite:{Path('data.db')}" if word == f"sqlite:{tmp_path / 'data.db'}" else word for word in arguments]
    resumed = cli(*relative, "--resume")
    assert resumed.exit_code == 0, resumed.err
    elsewhere = ["sqlite:other.db" if str(word).startswith("sqlite:") else word for word in arguments]
    refused = cli(*elsewhere, "--resume")
    assert (refused.exit_code, "begun with another url of sqlite-natural" in refused.err) == (2, True), refused.err
