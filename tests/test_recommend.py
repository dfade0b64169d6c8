"""What `recommend` says of results on disk and of the shipped reference."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sensorbench.analysis.use_cases import USE_CASES
from sensorbench.benchmarks.comparison.candidates import gather, has_several_datasets
from sensorbench.errors import UsageError
from tests.conftest import Cli, forget_checksums, run_main

EXAMPLE = Path(__file__).parent.parent / "docs" / "example"

OWN = f"""
title = "Which table for my water meter?"
dataset = "{EXAMPLE}/water.toml"
operations = "{EXAMPLE}/operations.toml"
[[target]]
url = "sqlite"
schema = "{EXAMPLE}/by-time.toml"
[[target]]
url = "sqlite"
schema = "{EXAMPLE}/heap.toml"
[workload]
mix = {{ mean_of_hour = 1, readings_of_hour = 1, new_flow = 1 }}
schedule = {{ concurrency = 2 }}
operations = 240
repetitions = 3
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the user's own data: three days of a water meter, in two tables."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "experiment.toml").write_text(OWN, encoding="utf-8")
    assert run_main(("run", folder / "experiment.toml", "--no-open", "--out", folder / "out")) == 0
    return folder / "out"


@pytest.fixture
def copy(own: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    folder = Path(shutil.copytree(own, tmp_path / "copy"))
    forget_checksums(folder)
    return folder


def _pass_off(variant: Path) -> None:
    """Has the runs in a variant's folder say that they are of this variant."""
    for manifest in variant.glob("run-*/manifest.json"):
        _change(manifest, lambda said: said["variant"].update(id=variant.name))


@pytest.fixture(scope="session")
def study(sensor_schemas_folder: Path) -> Path:
    """The parts of the sensor-schema study on the embedded database."""
    return sensor_schemas_folder


BOTH_HIGH = ("--writes", "high", "--reads", "high", "--fresh", "no")
AT_ONCE = ("--writes", "high", "--reads", "high", "--fresh", "yes")


def ranked(cli: Cli, folder: Path, *options: object) -> list[dict[str, Any]]:
    outcome = cli("recommend", *(options or AT_ONCE), folder, "--json")
    assert outcome.exit_code == 0, outcome.err
    places: list[dict[str, Any]] = outcome.json["ranked"]
    return places


def test_own_results_name_the_schemas_that_were_measured_there(cli: Cli, own: Path) -> None:
    outcome = cli("recommend", *AT_ONCE, own, "--json")
    assert {entry["schema"] for entry in outcome.json["ranked"]} == {"by-time", "heap"}
    assert {entry["target"] for entry in outcome.json["ranked"]} == {"sqlite"}
    assert outcome.json["is_reference"] is False
    assert not any("reference results" in note for note in outcome.json["notes"])
    shown = cli("recommend", *AT_ONCE, own, "--explain")
    assert "sqlite · by · time" in shown.out
    assert "A household's water meter" in shown.out
    assert "typed" not in shown.out
    assert "reference results" not in shown.out


def test_the_runs_behind_an_entry_are_on_disk(cli: Cli, own: Path, study: Path) -> None:
    for folder, options, count in ((own, AT_ONCE, 2), (study, BOTH_HIGH, 9)):
        entries = ranked(cli, folder, *options)
        assert len(entries) == count
        for entry in entries:
            assert {figure["comparison"] for figure in entry["runs"]} == ({"write", "read"} if folder == study else {""})
            for figure in entry["runs"]:
                assert len(figure["runs"]) == 3
                assert figure["machine"]
                for run in figure["runs"]:
                    manifest = json.loads((folder / run["id"] / "manifest.json").read_text(encoding="utf-8"))
                    assert run["date"].removesuffix("+00:00") == manifest["created"].removesuffix("Z")
                    assert manifest["variant"]["id"] == entry["variant"]
    counted = ranked(cli, study, "--writes", "high", "--reads", "low", "--fresh", "yes")[0]
    run = counted["runs"][0]["runs"][0]
    phase = json.loads((study / run["id"] / "manifest.json").read_text(encoding="utf-8"))["totals"]["phases"][-1]
    assert run["operations_per_s"] == pytest.approx(40 / ((phase["end_ns"] - phase["start_ns"]) / 1e9))


def test_when_the_measured_figures_of_two_schemas_are_swapped_so_is_their_ranking(cli: Cli, copy: Path) -> None:
    before = ranked(cli, copy)
    first, second = (copy / "experiments" / entry["variant"] for entry in before)
    aside = copy / "aside"
    first.rename(aside)
    second.rename(first)
    aside.rename(second)
    _pass_off(first)
    _pass_off(second)
    (copy / "summary.json").unlink()
    after = ranked(cli, copy)
    assert [entry["schema"] for entry in after] == [entry["schema"] for entry in reversed(before)]
    for was, now in zip(before, after, strict=True):
        for figure in ("score", "readings_written_per_s", "reads_per_s", "bytes_per_reading", "over_next"):
            assert now[figure] == was[figure], figure


def test_a_study_of_parts_is_one_set_of_layouts(cli: Cli, study: Path) -> None:
    entries = ranked(cli, study, *BOTH_HIGH)
    assert len(entries) == 9
    by_variant = {entry["variant"]: entry for entry in entries}
    assert by_variant["fjall-batched-300-at_once"]["runs"][0]["readings_per_operation"] == 300
    assert {figure["comparison"] for figure in entries[0]["runs"]} == {"write", "read"}
    assert [entry["variant"] for entry in ranked(cli, study, *AT_ONCE)] == ["fjall-typed"]
    assert all(entry["paired_with_next"] for entry in entries)
    scores = [entry["score"] for entry in entries]
    assert scores == sorted(scores, reverse=True)


def test_what_only_another_part_measured_under_the_same_load_is_taken_from_there(cli: Cli, study: Path, tmp_path: Path) -> None:
    folder, name, other_name = Path(shutil.copytree(study, tmp_path / "out")), "fjall-batched-gorilla", "fjall-batched-else"
    read, more = folder / "read" / "manifest.json", folder / "more" / "manifest.json"
    forget_checksums(folder)
    shutil.copytree(folder / "read", folder / "more")
    _pass_off((folder / "more" / "experiments" / name).rename(folder / "more" / "experiments" / other_name))
    for summary in ("read", "more"):
        (folder / summary / "summary.json").unlink()
    _change(folder / "manifest.json", lambda series: series["plan"]["parts"].update(more="more"))
    _change(
        read, lambda manifest: manifest.update(variants=[variant for variant in manifest["variants"] if variant["id"] != name])
    )
    _change(
        more,
        lambda manifest: manifest.update(
            variants=[{**variant, "id": other_name} for variant in manifest["variants"] if variant["id"] == name]
        ),
    )
    entries = {entry["variant"]: entry for entry in ranked(cli, folder, *BOTH_HIGH)}
    assert len(entries) == 9
    assert [figure["comparison"] for figure in entries[name]["runs"]] == ["write", "more"]
    assert not entries[name]["paired_with_next"] or entries[name]["rank"] == 9
    _change(more, lambda manifest: manifest["plan"]["workload"]["schedule"].update(concurrency=99))
    assert name not in {entry["variant"] for entry in ranked(cli, folder, *BOTH_HIGH)}


def _change(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads(file.read_text(encoding="utf-8"))
    change(content)
    file.write_text(json.dumps(content), encoding="utf-8")


def test_the_page_of_the_study_has_the_use_cases_and_a_front_for_each(study: Path) -> None:
    sections = {
        section["title"]: section
        for section in json.loads((study / "summary.json").read_text(encoding="utf-8"))["result"]["sections"]
    }
    rows = sections["Which layout for which use"]["rows"]
    assert [row[1] for row in rows] == [use_case.advice for use_case in USE_CASES]
    assert {row[3] for row in rows if "at once" in row[0]} == {"fjall-typed"}
    fronts = {title: section["front"]["points"] for title, section in sections.items() if title.startswith("SCH-U")}
    assert [len(points) for points in fronts.values()] == [1, 9, 1, 9, 1, 9]
    assert all(any(point["is_on_front"] for point in points) for points in fronts.values())


def test_settings_that_went_wrong_are_left_out_and_told(cli: Cli, copy: Path) -> None:
    file = copy / "experiments" / "sqlite-heap" / "contents.json"
    contents = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(
        json.dumps({**contents, "problems": [{"operation": "mean_of_hour", "problem": "another answer"}]}), encoding="utf-8"
    )
    outcome = cli("recommend", *AT_ONCE, copy, "--json")
    assert [entry["schema"] for entry in outcome.json["ranked"]] == ["by-time"]
    assert [(entry["variant"], "answers were wrong" in entry["why"]) for entry in outcome.json["left_out"]] == [
        ("sqlite-heap", True)
    ]
    (copy / "experiments" / "sqlite-by-time" / "failure.json").write_text(
        '{"step": "loading", "cause": "no room"}', encoding="utf-8"
    )
    refused = cli("recommend", *AT_ONCE, copy)
    assert refused.exit_code == 2
    assert "it failed at loading: no room" in refused.err


def test_a_question_that_was_answered_differently_does_not_count(cli: Cli, copy: Path) -> None:
    summary = json.loads((copy / "summary.json").read_text(encoding="utf-8"))
    compared = {
        "compared": 9,
        "compared_with_reference": 9,
        "mismatch_count": 1,
        "mismatches": [],
        "answered": True,
        "equal": False,
    }
    summary["result"]["answers"] = {"mean_of_hour": compared}
    (copy / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    outcome = cli("recommend", *AT_ONCE, copy, "--json")
    assert outcome.json["questions"] == ["readings_of_hour"]


def test_work_that_was_cut_short_is_told(cli: Cli, copy: Path, tmp_path: Path, study: Path) -> None:
    file = copy / "manifest.json"
    file.write_text(file.read_text(encoding="utf-8").replace('"status": "complete"', '"status": "interrupted"'), encoding="utf-8")
    assert any(
        "interrupted: runs that were completed count" in note for note in cli("recommend", *AT_ONCE, copy, "--json").json["notes"]
    )
    for variant in (copy / "experiments").iterdir():
        for run in variant.glob("run-*/manifest.json"):
            run.write_text(
                run.read_text(encoding="utf-8").replace('"status": "complete"', '"status": "interrupted"'), encoding="utf-8"
            )
    refused = cli("recommend", *AT_ONCE, copy)
    assert refused.exit_code == 2
    assert "no run of it was completed" in refused.err
    half = Path(shutil.copytree(study, tmp_path / "half"))
    for part in ("read", "mixed"):
        shutil.rmtree(half / part)
    assert any(
        "part read has no results yet" in note
        for note in cli("recommend", "--writes", "high", "--reads", "low", "--fresh", "no", half, "--json").json["notes"]
    )
    refused = cli("recommend", *BOTH_HIGH, half)
    assert refused.exit_code == 2
    assert "get_range was not measured" in refused.err


def test_sizing_and_the_relational_database_come_with_a_load(cli: Cli, own: Path) -> None:
    load = (
        "--extrapolate",
        "--sensors",
        "1000",
        "--rate",
        "1/min",
        "--retention",
        "90d",
        "--replicas",
        "1",
        "--node-price",
        "100",
        "--disk-price",
        "0.1",
    )
    outcome = cli("recommend", *AT_ONCE, *load, own, "--json")
    entry = outcome.json["ranked"][0]
    disk = entry["bytes_per_reading"] * 1000 / 60 * 90 * 86_400 / 0.5
    assert entry["sizing"]["disk_bytes"] == pytest.approx(disk)
    assert entry["sizing"]["nodes"] == 1
    assert entry["cost"] == pytest.approx(100 + disk / 1e9 * 0.1)
    assert outcome.json["relational"]["would_do"] is True
    # Three days of three columns were measured.
    assert {distance["what"]: round(distance["factor"]) for distance in outcome.json["extrapolated"]} == {
        "sensors": 333,
        "days of readings": 30,
    }
    refused = cli("recommend", *AT_ONCE, *load[1:], own)
    assert (refused.exit_code, "--extrapolate" in refused.err) == (2, True)
    assert any("--headroom" in assumption for assumption in outcome.json["assumptions"])
    shown = cli("recommend", *AT_ONCE, *load, own)
    assert "nodes by writes" in shown.out
    assert "a relational database would do" in shown.out


def test_a_range_of_time_becomes_readings_by_the_rate_of_a_sensor(cli: Cli, own: Path) -> None:
    outcome = cli("recommend", *AT_ONCE, "--range", "1h", "--sensors", "3", "--rate", "1/min", own, "--json")
    assert outcome.json["needs"]["range_readings"] == pytest.approx(60.0)
    assert outcome.json["questions"] == ["readings_of_hour"]


# The shipped reference.


def test_reference_results_are_marked(cli: Cli) -> None:
    outcome = cli("recommend", *BOTH_HIGH)
    assert outcome.exit_code == 0, outcome.err
    assert "reference results shipped with sensorbench, measured on" in outcome.out
    assert "not your data" in outcome.out
    as_json = cli("recommend", *BOTH_HIGH, "--json").json
    assert as_json["is_reference"] is True
    scale = min(comparison["scale"] for comparison in as_json["comparisons"].values())
    assert any(f"measured at scale {scale:g}" in note for note in as_json["notes"]) == (scale < 1.0)
    assert set(as_json["ranked"][0]) >= {
        "schema",
        "readings_written_per_s",
        "reads_per_s",
        "latency_s",
        "bytes_per_reading",
        "confidence",
        "runs",
    }


def test_the_use_cases_are_listed_with_the_advice_of_the_source(cli: Cli) -> None:
    for options in ((), ("--use-cases",)):
        shown = cli("recommend", *options)
        assert shown.exit_code == 0, shown.err
        for advice in ("typed, M1, 15 MB", "batched, M2, 10 MB", "typed, M1, 5 MB", "batched, M2, 20 MB", "batched, M2, 13 MB"):
            assert advice in shown.out
    listed = cli("recommend", "--json").json["use_cases"]
    assert [(entry["writes"], entry["reads"], entry["fresh"]) for entry in listed] == [
        ("high", "high", True),
        ("high", "high", False),
        ("high", "low", True),
        ("high", "low", False),
        ("low", "high", True),
        ("low", "high", False),
    ]
    assert all(entry["best"]["schema"] for entry in listed)


# Wrong usage.


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--writes", "medium", "--reads", "low", "--fresh", "no"), "'high', 'low'"),
        (("--writes", "high", "--reads", "low", "--fresh", "perhaps"), "'yes', 'no'"),
        (("--writes", "high"), "expected --reads high|low and --fresh yes|no"),
        ((*BOTH_HIGH, "--range", "soon"), "--range soon: expected a number of readings, or a length of time"),
        ((*BOTH_HIGH, "--range", "0"), "--range 0: expected at least one reading"),
        ((*BOTH_HIGH, "--sensors", "10"), "give the readings of each sensor with --rate"),
        ((*BOTH_HIGH, "--sensors", "0", "--rate", "1"), "--sensors"),
        ((*BOTH_HIGH, "--rate", "1/min"), "--rate: give the number of sensors"),
        ((*BOTH_HIGH, "--sensors", "10", "--rate", "often"), "--rate often: expected a rate per second"),
        ((*BOTH_HIGH, "--retention", "90d"), "give --sensors and --rate"),
        ((*BOTH_HIGH, "--sensors", "10", "--rate", "1", "--retention", "long"), "--retention long: expected a length of time"),
        ((*BOTH_HIGH, "--node-price", "3"), "give --sensors and --rate"),
        ((*BOTH_HIGH, "--node-price", "0", "--sensors", "1", "--rate", "1"), "--node-price 0: expected a price above 0"),
        ((*BOTH_HIGH, "--disk-price", "3", "--sensors", "1", "--rate", "1"), "give --node-price as well"),
        ((*BOTH_HIGH, "--target", "nowhere"), "--target nowhere: the shipped reference has"),
        ((*BOTH_HIGH, "--question", "why"), "--question why: expected one of get_range"),
        ((*BOTH_HIGH, "/nowhere"), "/nowhere: no results are there"),
    ],
)
def test_wrong_usage_says_what_was_expected(cli: Cli, options: tuple[str, ...], expected: str) -> None:
    outcome = cli("recommend", *options)
    assert outcome.exit_code == 2
    assert expected in " ".join(outcome.err.replace("│", " ").split())


def test_results_without_what_is_wanted_are_refused(cli: Cli, study_folder: Path) -> None:
    """The quickstart and the study `iot` write nothing."""
    refused = cli("recommend", *AT_ONCE, study_folder)
    assert refused.exit_code == 2
    assert "no write of it was measured" in refused.err
    read = cli("recommend", "--writes", "low", "--reads", "high", "--fresh", "no", study_folder, "--json")
    assert {entry["target"] for entry in read.json["ranked"]} == {"sqlite", "fjall"}
    assert len(read.json["questions"]) == 4


def test_who_falls_behind_the_rate_of_arrivals_is_not_recommended(tmp_path: Path) -> None:
    """One that does has no rate of its own: its operations wait for one another."""
    given = "schedule = { concurrency = 2 }\noperations = 240\nrepetitions = 3"
    for rate, limit, falls_behind in (
        (20, 'duration = "1s"', None),
        (20, "operations = 20", None),
        (1_000_000, 'duration = "1s"', r"more than 5% of them never began"),
        (1_000_000, "operations = 240", r"half of them began late by more than 2.5% of the run"),
    ):
        folder = tmp_path / f"{rate} {limit.split()[0]}"
        folder.mkdir()
        text = OWN.replace(given, f"schedule = {{ rate = {rate} }}\n{limit}\nrepetitions = 1")
        (folder / "experiment.toml").write_text(text, encoding="utf-8")
        assert run_main(("run", folder / "experiment.toml", "--no-open", "--out", folder / "out")) == 0
        if falls_behind:
            with pytest.raises(UsageError, match=f"fell behind the rate of arrivals: {falls_behind}"):
                gather(folder / "out")
        else:
            assert len(gather(folder / "out").candidates) == 2


def test_several_datasets_are_not_ranked_together(tmp_path: Path) -> None:
    parts = {"a": "a", "b": "b"}
    (tmp_path / "series.json").write_text(
        json.dumps({"name": "x", "title": "X", "of": "datasets", "parts": parts}), encoding="utf-8"
    )
    assert has_several_datasets(tmp_path)
    with pytest.raises(UsageError, match=r"results of several datasets.*name one of"):
        gather(tmp_path)


def test_the_first_lines_say_what_the_answer_stands_on(cli: Cli, own: Path) -> None:
    """Scale, nodes and machine come before any place, so that a reference of one small machine is taken for no more than that."""
    for options in ((), AT_ONCE):
        first, second, *_ = cli("recommend", *options).out.splitlines()
        assert "reference results in the package: scale 0.01 (68,400 readings)" in first
        assert "not your data" in first
        assert "virtual machine, 2 ×" in second
        assert "cassandra 1 node" in second
        answer = cli("recommend", *options, "--json").json
        assert next(iter(answer)) == "basis"
        assert (answer["basis"]["scales"], answer["basis"]["nodes"]["cassandra"]) == ([0.01], [1])
        assert answer["basis"]["machines"] == [entry["machine"] for entry in answer["comparisons"].values()][:1]
    first, second, *_ = cli("recommend", *AT_ONCE, own).out.splitlines()
    assert str(own) in first
    assert "not your data" not in first
    assert "embedded databases only" in second
