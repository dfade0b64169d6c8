"""Studies of several parts: each a comparison with layouts and a workload of its own, claims over several, one page of all."""

import json
import re
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import numpy as np
import pytest

from sensorbench.analysis.sample import Sample
from sensorbench.app import study as study_app
from sensorbench.claims import Evidence, Judge, Judgement, Quantity, RunValues, measured
from sensorbench.claims.expression import Expression
from sensorbench.errors import FailedError, UsageError
from sensorbench.progress import ProgressReporter
from sensorbench.results import ComparisonResult, read_comparison
from sensorbench.results.json_schemas import json_schemas
from sensorbench.results.planned import PlannedSeries
from sensorbench.results.series import is_series, read_series
from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.studies import STUDIES, Part, StudyOptions, plan_study
from sensorbench.studies.pictures import Effect, Front, Point, with_fronts
from sensorbench.studies.study import Column, Section, Study
from tests.conftest import Cli, commands_on, run_main

STUDY = """\
title = "Small parts"
question = "Do parts work?"
source = "made up"
datasets = ["cu-bems"]
operations = "sensors"
metric = "median"
targets = ["sqlite", "fjall"]

[schemas]
sqlite = ["natural"]
fjall = ["by_sensor"]

[parameter_sources.values]
datasets = ["cu-bems"]
query = "SELECT 1.5::DOUBLE AS value"

[roles.published]
natural = ["sqlite/natural"]
star = ["sqlite/star"]
days = ["fjall/by_sensor_day"]
wide = ["cassandra/by_sensor"]

[roles.substitute]
wide = ["fjall/by_sensor"]
star = ["fjall/by_sensor"]

[workload]
mix = { get_peak_data = 1 }
operations = 40
repetitions = 1

[parts.read]
title = "Reading"
workload = { mix = { get_peak_data = 1, get_available_data = 1 } }
[parts.read.schemas]
sqlite = ["natural", { schema = "star" }]
fjall = ["by_sensor"]

[parts.write]
title = "Writing"
workload = { mix = { insert_reading = 1 }, operations = 30, schedule = { concurrency = 2 } }

[parts.days]
title = "Days at a time"
targets = ["fjall"]
schemas = { fjall = ["by_sensor_day"] }
workload = { duration = "300ms" }
"""

CLAIMS = """\
[[claim]]
id = "P-1"
text = "About reading."
form = "f"
published = "p"
requires = ["natural", "star"]
parts = ["read"]
judged_in_python = "it says where it was judged"
scale_free = "it is made up"

[[claim]]
id = "P-2"
text = "About reading and writing."
form = "f"
published = "p"
requires = ["natural"]
parts = ["read", "write"]
scale_free = "it is made up"
rules = [
    { kind = "count", name = "peaks", of = "done(read: natural, get_peak_data)", min = 1, max = 39 },
    { kind = "count", name = "readings", of = "done(write: natural, insert_reading)", min = 30, max = 30 },
]

[[claim]]
id = "P-3"
text = "About something that one of its parts does not have."
form = "f"
published = "p"
requires = ["star"]
parts = ["read", "write"]
judged_in_python = "it says where it was judged"
scale_free = "it is made up"

[[claim]]
id = "P-4"
text = "About each part."
form = "f"
published = "p"
judged_in_python = "it says where it was judged"
scale_free = "it is made up"

[[claim]]
id = "P-5"
text = "About days."
form = "f"
published = "p"
requires = ["days"]
parts = ["days"]
judged_in_python = "it says where it was judged"
scale_free = "it is made up"

[[claim]]
id = "P-6"
text = "About days and writing."
form = "f"
published = "p"
parts = ["write", "days"]
judged_in_python = "it says where it was judged"
scale_free = "it is made up"

[[claim]]
id = "P-7"
text = "About more data."
form = "f"
published = "p"
parts = ["read", "write"]
judged_in_python = "it says where it was judged"
min_scale = { scale = 0.5 }
scale_matters = "rows grow with time"

[[claim]]
id = "P-8"
text = "About another database."
form = "f"
published = "p"
requires = ["wide"]
parts = ["read", "write"]
judged_in_python = "it says where it was judged"
scale_free = "it is made up"

[[claim]]
id = "P-9"
text = "About what cannot be had."
form = "f"
published = "p"
parts = ["days"]
blocked_by = "a machine room"
"""

TINY = ("--scale", "0.0005", "--no-open")


def told(evidence: Evidence) -> Judgement:
    """A judge that says which part it is asked about."""
    return Judgement("reproduced", f"judged by {evidence.result.manifest.plan.part}")


def done(evidence: Evidence, role: str, others: Sequence[str]) -> RunValues | None:
    """How many operations of one kind succeeded, by run."""
    (operation,) = others
    return evidence.by_run([counts["ok"] for counts in evidence.counts_by_run(role, operation)])


def of_substitutes(evidence: Evidence) -> Judgement:
    return Judgement("reproduced", f"by {evidence.part('read').roles['wide']} and {evidence.part('write').roles['wide']}")


JUDGES: dict[str, Judge] = {
    "P-1": told,
    "P-3": told,
    "P-4": lambda evidence: Judgement(
        "reproduced" if evidence.result.manifest.plan.part == "read" else "not reproduced", "it depends"
    ),
    "P-5": told,
    "P-6": told,
    "P-7": told,
    "P-8": of_substitutes,
}
QUANTITIES: dict[str, Quantity] = {"done": done}


def section_of(title: str, group: str) -> Section:
    points = [Point(f"layout {n}", group, 100.0 + n, None, None, 50.0 - n, 49.0 - n, 51.0 - n) for n in range(3)]
    found = [Effect("metadata", "none → own table", "write", 0.5, 0.4, 0.6, 3)]
    picture = Front("writes a second", "reads a second", with_fronts(points))
    return Section(title, "Both.", [Column("Layout")], [["one"]], front=picture, effects=found)


def sections(evidence: Evidence, summary: ComparisonSummary) -> list[Section]:
    return [
        Section("Nothing but a table", "One.", [Column("a")], [["x"]]),
        section_of("Of this part", min(variant.target for variant in summary.variants)),
    ]


def series_sections(evidence: dict[str, Evidence], summaries: dict[str, ComparisonSummary]) -> list[Section]:
    assert evidence.keys() == summaries.keys()
    return [section_of(f"Over {' and '.join(summaries)}", "sqlite")]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("studies") / "small_parts"
    folder.mkdir()
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    (folder / "claims.toml").write_text(CLAIMS, encoding="utf-8")
    return Study.load(folder, judges=JUDGES, quantities=QUANTITIES, sections=sections, series_sections=series_sections)


@pytest.fixture(scope="module", autouse=True)
def _known(study: Study) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(STUDIES, study.name, study)
        yield


def summary_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "summary.json").read_text(encoding="utf-8"))


def specifications(folder: Path) -> dict[str, Any]:
    text = (folder / "report.html").read_text(encoding="utf-8")
    start = text.index("const specifications = ") + len("const specifications = ")
    return json.JSONDecoder().raw_decode(text[start:])[0]


@pytest.fixture(scope="module")
def whole(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of all parts."""
    out = tmp_path_factory.mktemp("parts") / "whole"
    assert run_main(("study", "run", "small-parts", *TINY, "--out", out)) == 0
    return out


# The file.


def test_what_a_part_does_not_say_is_as_the_study_says(study: Study) -> None:
    read, write, days = study.file.parts.values()
    assert [layout.schema_ for layout in read.schemas["sqlite"]] == ["natural", "star"]
    assert write.schemas == study.file.schemas
    assert (read.targets, days.targets) == (["sqlite", "fjall"], ["fjall"])
    assert read.datasets == study.file.datasets
    assert read.parameter_sources == study.file.parameter_sources
    assert read.workload.mix == {"get_peak_data": 1, "get_available_data": 1}
    assert (read.workload.operations, write.workload.operations) == (40, 30)
    assert (write.workload.repetitions, write.workload.schedule.concurrency) == (1, 2)
    assert (days.workload.operations, days.workload.duration) == (None, "300ms"), "a part says by itself when its runs end"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('title = "Writing"\n', "", "parts.write.title: this key is missing"),
        ("[parts.write]\n", "[parts.write]\nspeed = 1\n", "parts.write.speed: unknown key"),
        ("operations = 30", "operations = 0", "parts.write.workload.operations: Input should be greater than or equal to 1"),
        ("[parts.write]\n", '[parts.write]\ndatasets = ["a", "b"]\n', "parts.write.datasets: List should have at most 1 item"),
    ],
)
def test_a_part_that_makes_no_sense_is_refused(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert old in STUDY
    (tmp_path / "study.toml").write_text(STUDY.replace(old, new), encoding="utf-8")
    (tmp_path / "claims.toml").write_text(CLAIMS, encoding="utf-8")
    with pytest.raises(UsageError, match=r"study\.toml") as error:
        Study.load(tmp_path, judges=JUDGES)
    assert problem in str(error.value)


def test_claims_name_parts_that_there_are(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    (tmp_path / "claims.toml").write_text(CLAIMS.replace('parts = ["read"]', 'parts = ["reed"]'), encoding="utf-8")
    with pytest.raises(AssertionError, match="parts that the study does not have: \\['P-1'\\]"):
        Study.load(tmp_path, judges=JUDGES)


# Running.


def test_each_part_is_a_comparison_of_its_own(whole: Path) -> None:
    manifest = read_series(whole)
    parts = {name: name for name in ("read", "write", "days")}
    assert manifest.plan == PlannedSeries(name="small-parts", of="parts", parts=parts)
    assert (manifest.title, manifest.status, manifest.command[:4]) == (
        "Small parts", "complete", ["sensorbench", "study", "run", "small-parts"],
    )  # fmt: skip
    jsonschema.validate(json.loads((whole / "manifest.json").read_text(encoding="utf-8")), json_schemas()["series-manifest"])
    results = {name: read_comparison(whole / name) for name in ("read", "write", "days")}
    assert {name: result.manifest.plan.part for name, result in results.items()} == {name: name for name in results}
    assert results["write"].manifest.title == "Small parts: Writing"
    variants = {name: [variant.id for variant in result.manifest.variants] for name, result in results.items()}
    assert variants == {
        "read": ["sqlite-natural", "sqlite-star", "fjall-by_sensor"],
        "write": ["sqlite-natural", "fjall-by_sensor"],
        "days": ["fjall-by_sensor_day"],
    }
    assert list(results["write"].manifest.plan.operations) == ["insert_reading"]
    assert results["days"].manifest.plan.workload["operations"] is None
    summary = summary_of(whole)
    assert (summary["result"]["of"], summary["status"], summary["answers_equal"]) == ("parts", "complete", True)
    assert {name: part["title"] for name, part in summary["result"]["parts"].items()} == {
        "read": "Reading", "write": "Writing", "days": "Days at a time",
    }  # fmt: skip
    assert summary["result"]["growth"] == []


def test_claims_are_judged_where_they_belong(whole: Path) -> None:
    claims = {claim["id"]: claim for claim in summary_of(whole)["claims"]}
    verdicts = {name: (claim["verdict"], claim["reason"]) for name, claim in claims.items()}
    assert verdicts == {
        "P-1": ("reproduced", "judged by read"),
        "P-2": ("reproduced", "of 2 comparisons: 2 reproduced"),
        "P-3": ("reproduced", "judged by read; measured with substitutes: fjall-by_sensor for sqlite/star in part write"),
        "P-4": (
            "differs by part",
            "read: reproduced (it depends); write: not reproduced (it depends); days: not reproduced (it depends)",
        ),
        "P-5": ("reproduced", "judged by days"),
        "P-6": ("reproduced", "judged by write"),
        "P-7": (
            "below minimum scale",
            "the size of the dataset as a share of the paper's: 0.0005, at least 0.5: rows grow with time",
        ),
        "P-8": (
            "reproduced",
            "by fjall-by_sensor and fjall-by_sensor; measured with substitutes: "
            "fjall-by_sensor for cassandra/by_sensor in part read, fjall-by_sensor for cassandra/by_sensor in part write",
        ),
        "P-9": ("not tested", "a machine room"),
    }
    assert {name: claim["substitutes"] for name, claim in claims.items() if claim["substitutes"]} == {
        "P-3": {"star in part write": "fjall-by_sensor"},
        "P-8": {"wide in part read": "fjall-by_sensor", "wide in part write": "fjall-by_sensor"},
    }
    assert [cell["name"] for cell in claims["P-2"]["cells"]] == ["peaks", "readings"]
    of_parts = {
        name: {claim["id"]: claim["reason"] for claim in summary_of(whole / name)["claims"]} for name in ("read", "write", "days")
    }
    assert all(reasons.keys() == claims.keys() for reasons in of_parts.values())
    # A part judges what is about it alone, or about none; it says what the others are about.
    own = {
        name: [claim for claim, reason in reasons.items() if "this is part" not in reason] for name, reasons in of_parts.items()
    }
    assert own == {"read": ["P-1", "P-4", "P-9"], "write": ["P-4", "P-9"], "days": ["P-4", "P-5", "P-9"]}
    assert of_parts["days"]["P-1"] == "it is about part read; this is part days"


def summary_in(result: ComparisonResult) -> ComparisonSummary:
    assert result.summary is not None
    return result.summary


def test_a_claim_over_parts_is_open_when_answers_differ_in_one(study: Study, whole: Path) -> None:
    from sensorbench.studies.series import summarise_series

    results = {name: read_comparison(whole / name) for name in ("read", "write", "days")}
    summaries = {
        name: summary_in(result).model_copy(update={"answers_equal": name != "write"}) for name, result in results.items()
    }
    summed = {claim.id: claim.verdict for claim in summarise_series(read_series(whole), results, summaries).claims}
    assert (summed["P-1"], summed["P-2"], summed["P-6"]) == ("reproduced", "inconclusive", "inconclusive")


def test_figures_of_two_parts_are_compared_as_measured_one_after_the_other(study: Study, whole: Path) -> None:
    results = {name: read_comparison(whole / name) for name in ("read", "write")}
    by = measured(study, results, {name: summary_in(result) for name, result in results.items()})
    evidence = by["read"].evidence
    assert evidence.part("read") is evidence
    assert evidence.part("write") is by["write"].evidence
    with pytest.raises(AssertionError, match="days"):
        evidence.part("days")
    above, below = evidence.sample("natural", "get_peak_data"), by["write"].evidence.sample("natural", "insert_reading")
    assert above is not None
    assert below is not None
    formula = "latency(natural, get_peak_data) / latency(write: natural, insert_reading)"
    interval = evidence.interval(Expression.parse(formula))
    assert interval is not None
    assert interval.value == pytest.approx(above.figure("median") / below.figure("median"))
    assert evidence.interval(Expression.parse(f"{formula} * latency(write: natural, get_peak_data)")) is None


class Drifting(Evidence):
    """Three runs, each slower than the one before, which is all that they differ in."""

    def sample(self, role: str, operation: str) -> Sample:
        return Sample.of_runs([np.array([time_s, 1.01 * time_s] * 20) for time_s in (1.0, 2.0, 4.0)], block_length=4)


def test_what_drifts_cancels_within_a_part_alone() -> None:
    def result_of(part: str) -> Any:
        return SimpleNamespace(manifest=SimpleNamespace(plan=SimpleNamespace(part=part)))

    parts: dict[str, Evidence] = {}
    parts.update({part: Drifting(result_of(part), {"a": "a", "b": "b"}, "median", parts) for part in ("read", "write")})
    within = parts["read"].interval(Expression.parse("latency(a, x) / latency(b, x)"))
    over = parts["read"].interval(Expression.parse("latency(a, x) / latency(write: a, x)"))
    assert within is not None
    assert over is not None
    assert within.low == pytest.approx(1.0, rel=0.05)
    assert over.low is not None
    assert over.low < 0.5


def test_what_was_finished_is_not_repeated_and_what_is_missing_is_begun(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "again"
    arguments = ("study", "run", "small-parts", "--part", "read", "--part", "days", *TINY, "--out", out)
    assert cli(*arguments).exit_code == 0
    shutil.rmtree(out / "days")
    measured_once = out / "read/experiments/sqlite-star/run-1/operations.parquet"
    before = measured_once.stat().st_mtime_ns
    outcome = cli(*arguments, "--resume")
    assert outcome.exit_code == 0, outcome.err
    assert outcome.err.count("finished before, not repeated") == 3
    assert measured_once.stat().st_mtime_ns == before
    assert summary_of(out)["status"] == "complete"
    assert cli(*arguments).exit_code == 2


@pytest.mark.parametrize("continue_on_error", [True, False])
def test_a_part_that_fails_ends_the_others_only_where_the_study_says_so(
    study: Study, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, continue_on_error: bool
) -> None:
    monkeypatch.setitem(
        STUDIES, study.name, replace(study, file=study.file.model_copy(update={"continue_on_error": continue_on_error}))
    )
    conducted = []

    def run_part(part: Part, *arguments: Any, **options: Any) -> None:
        conducted.append(part.name)
        if part.name == "read":
            raise FailedError("made to fail")

    monkeypatch.setattr("sensorbench.app.study._run_part", run_part)
    outcome = cli("study", "run", study.name, *TINY, "--out", tmp_path / "out")
    assert outcome.exit_code == 1
    assert "made to fail" in outcome.err
    assert ("write" in conducted) == continue_on_error
    assert ("read failed; the causes are above" in outcome.err) == continue_on_error


def test_one_part_alone_is_no_series(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "alone"
    outcome = cli("study", "run", "small-parts", "--part", "read", "--schema", "natural", *TINY, "--out", out)
    assert outcome.exit_code == 0, outcome.err
    assert not is_series(out)
    summary = summary_of(out)
    assert summary["result"]["part"] == "read"
    assert [variant["id"] for variant in summary["variants"]] == ["sqlite-natural"]
    own = [claim["id"] for claim in summary["claims"] if "this is part read" not in claim["reason"]]
    assert (len(summary["claims"]), own) == (9, ["P-1", "P-4", "P-9"])
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "study small-parts, part read" in page
    assert "<h1>Small parts: Reading</h1>" in page
    other = cli("study", "run", "small-parts", "--part", "write", "--schema", "natural", *TINY, "--out", out, "--resume")
    assert other.exit_code == 2
    assert "was begun with another part" in other.err


def test_parts_without_layouts_for_the_targets_are_left_out(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "sqlite"
    arguments = ("--part", "write", "--part", "days", "--part", "read", "--target", "sqlite", "--repetitions", "1")
    outcome = cli("study", "run", "small-parts", *arguments, *TINY, "--out", out)
    assert outcome.exit_code == 0, outcome.err
    assert "part days is left out: it has no schema for sqlite" in outcome.err
    assert outcome.err.index("Small parts: Reading: 42,869 readings") < outcome.err.index("Small parts: Writing: 42,869 readings")
    assert list(read_series(out).plan.parts) == ["read", "write"], "in the order of the study"
    claims = {claim["id"]: claim for claim in summary_of(out)["claims"]}
    assert (claims["P-5"]["verdict"], claims["P-5"]["reason"]) == ("not tested", "part days was not run")
    assert (claims["P-6"]["verdict"], claims["P-6"]["reason"]) == ("not tested", "needs part days")
    assert claims["P-2"]["verdict"] == "reproduced"


def test_what_is_told_of_targets_has_no_address(study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = StudyOptions(targets=(f"sqlite:{tmp_path}/private.db",), scale=0.0005)
    planned = plan_study(study, options, tmp_path / "out", ProgressReporter())
    assert [part.name for part in planned] == ["read", "write"]
    told = capsys.readouterr().err
    assert "part days is left out: it has no schema for sqlite\n" in told
    assert "private" not in told


def test_runs_can_have_a_length_and_a_rate(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "paced"
    paced = ("--duration", "400ms", "--rate", "150", "--arrival", "poisson", "--target", "sqlite", "--repetitions", "2")
    assert cli("study", "run", "small-parts", "--part", "read", *paced, *TINY, "--out", out).exit_code == 0
    workload = read_comparison(out).manifest.plan.workload
    assert (workload["operations"], workload["duration"], workload["repetitions"]) == (None, "400ms", 2)
    assert workload["schedule"] == {"concurrency": 32, "rate": 150.0, "segments": [], "arrival": "poisson"}
    started = [run.manifest.totals.phases[0].started for run in read_comparison(out).runs["sqlite-star"] if run.manifest.totals]
    assert len(started) == 2
    assert all(0 < number < 150 for number in started), "400 ms at 150 a second are 60"


def test_a_number_of_requests_replaces_a_length(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "counted"
    counted = ("--operations", "25", "--concurrency", "3")
    assert cli("study", "run", "small-parts", "--part", "days", *counted, *TINY, "--out", out).exit_code == 0
    workload = read_comparison(out).manifest.plan.workload
    assert (workload["operations"], workload["duration"], workload["schedule"]["concurrency"]) == (25, None, 3)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("small-parts", "--part", "reed"), "--part reed: study small-parts has the parts read, write, days"),
        (("iot", "--part", "read"), "--part read: study iot has no parts"),
        (("small-parts", "--dataset", "cu-bems", "--dataset", "beijing-air-quality"), "give one dataset at a time"),
        (
            ("small-parts", "--target", "redis"),
            "study small-parts has no schema for redis; it has some for sqlite",
        ),
        (("small-parts", "--target", "sqlite", "--target", "redis"), "study small-parts has no schema for redis"),
        (("small-parts", "--part", "days", "--target", "sqlite"), "no schema for sqlite; it has some for fjall"),
        (
            ("small-parts", "--schema", "snowflake"),
            "study small-parts has no schema for sqlite among snowflake; expected one of natural, star",
        ),
        (("small-parts", "--operations", "5", "--duration", "1s"), "--operations and --duration both say when a run ends"),
        (("small-parts", "--duration", "soon"), "--duration 'soon': expected a length of time above zero such as 500ms"),
        (("small-parts", "--rate", "0"), "--rate 0: expected a number of operations per second, above 0"),
        (("small-parts", "--arrival", "poisson"), "--arrival poisson: give the rate of arrivals with --rate"),
        (("small-parts", "--arrival", "late", "--rate", "5"), "--arrival late: expected one of constant, poisson"),
        (("small-parts", "--resume", "--part", "read", "--part", "write"), "holds no results of these parts to continue"),
    ],
)
def test_wishes_that_cannot_be_met_are_refused(cli: Cli, tmp_path: Path, arguments: tuple[str, ...], problem: str) -> None:
    outcome = cli("study", "run", *arguments, *TINY, "--out", tmp_path / "none")
    assert outcome.exit_code == 2
    assert problem in outcome.err
    assert not (tmp_path / "none").exists()


# What is told.


def test_a_study_is_shown_with_its_parts(cli: Cli) -> None:
    shown = cli("study", "show", "small-parts").out
    assert "part days: Days at a time (cu-bems)" in shown
    assert "fjall: by_sensor_day" in shown
    described = cli("study", "show", "small-parts", "--json").json
    assert described["parts"]["read"]["schemas"] == {"sqlite": ["natural", "star"], "fjall": ["by_sensor"]}
    assert described["claims"][1]["parts"] == ["read", "write"]


def test_claims_of_all_parts_are_printed(cli: Cli, whole: Path) -> None:
    printed = cli("claims", whole, "--json").json
    assert printed == summary_of(whole)["claims"]
    assert "differs by part" in cli("claims", whole).out


def test_a_series_from_before_there_were_parts_is_of_datasets(tmp_path: Path) -> None:
    (tmp_path / "series.json").write_text('{"format": 1, "name": "x", "title": "X", "parts": {"a": "a"}}', encoding="utf-8")
    assert read_series(tmp_path).plan.of == "datasets"


def as_format_1(whole: Path, folder: Path, **changes: Any) -> Path:
    """A series as the version before wrote it, `series.json` in the place of a manifest: in place, or a copy."""
    if folder != whole:
        shutil.copytree(whole, folder)
    plan = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["plan"]
    for name in ("manifest.json", "checksums.txt", "summary.json", "report.html"):
        (folder / name).unlink()
    series = {"format": 1, "title": "Small parts", **plan, **changes}
    (folder / "series.json").write_text(json.dumps(series), encoding="utf-8")
    return folder


def test_a_series_of_format_1_says_what_it_said(cli: Cli, whole: Path, tmp_path: Path) -> None:
    folder = as_format_1(whole, tmp_path / "old")
    reported = cli("report", folder, "--no-open", "--json")
    assert reported.exit_code == 0, reported.err
    of_parts = {key: summary_of(whole / "read")[key] for key in ("created", "version", "command", "environment")}
    assert reported.json == {**summary_of(whole), **of_parts}
    assert cli("claims", folder, "--json").json == summary_of(whole)["claims"]
    missing = as_format_1(whole, tmp_path / "missing", parts={"read": "read", "write": "write", "days": "days", "more": "more"})
    assert cli("report", missing, "--no-open", "--json").json["status"] == "interrupted"


def test_a_series_of_format_1_goes_on(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("study", "run", "small-parts", "--part", "read", "--part", "days", "--target", "fjall", *TINY, "--out", out)
    assert cli(*arguments).exit_code == 0
    before = read_series(out).plan
    as_format_1(out, out)
    shutil.rmtree(out / "days")
    resumed = cli(*arguments, "--resume")
    assert resumed.exit_code == 0, resumed.err
    assert resumed.err.count("finished before, not repeated") == 1
    assert (read_series(out).status, read_series(out).plan, summary_of(out)["status"]) == ("complete", before, "complete")


def test_a_series_goes_on_with_its_own_study_alone(cli: Cli, whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    shutil.copytree(whole, folder)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["plan"]["name"] = "another"
    (folder / "checksums.txt").unlink()
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    resumed = cli("study", "run", "small-parts", *TINY, "--out", folder, "--resume")
    assert (resumed.exit_code, "was begun with another name" in resumed.err) == (2, True), resumed.err


def test_an_interrupted_series_says_so_itself(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, begun = tmp_path / "out", []
    run_part = study_app._run_part

    def interrupted(part: Part, *arguments: Any, **options: Any) -> None:
        begun.append(part.name)
        if part.name == "write":
            raise KeyboardInterrupt
        run_part(part, *arguments, **options)

    monkeypatch.setattr("sensorbench.app.study._run_part", interrupted)
    ended = cli("study", "run", "small-parts", "--target", "sqlite", *TINY, "--out", out)
    assert ended.exit_code == 130
    assert f"interrupted; what was measured until then is in {out}; --resume continues" in ended.err
    assert (read_series(out).status, summary_of(out)["status"], list(summary_of(out)["result"]["parts"])) == (
        "interrupted", "interrupted", ["read"],
    )  # fmt: skip


def test_a_series_whose_first_part_is_refused_leaves_nothing(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine-natural.db").write_bytes(b"")
    sqlite3.connect(tmp_path / "mine-natural.db").executescript("CREATE TABLE mine (a); INSERT INTO mine VALUES (1)").close()
    target = ("--target", f"sqlite:{tmp_path / 'mine.db'}", "--part", "read", "--part", "write")
    refused = cli("study", "run", "small-parts", *target, *TINY, "--out", tmp_path / "out")
    assert refused.exit_code == 2, refused.err
    assert not (tmp_path / "out").exists()


def test_the_page_has_parts_pictures_and_claims(cli: Cli, whole: Path) -> None:
    page = (whole / "report.html").read_text(encoding="utf-8")
    for name, title in (("read", "Reading"), ("write", "Writing"), ("days", "Days at a time")):
        link = f'<a href="{name}/report.html">{name}</a></td>'
        assert re.search(rf'{link}\s*<td class="text"[^>]*>{title}</td>', page)
    assert "Over read and write and days" in page
    assert re.search(r"<td[^>]*>read, write</td>", page)
    assert "How it grows" not in page
    command = summary_of(whole / "read")["command"]
    assert command[:4] == ["sensorbench", "study", "run", "small-parts"]
    assert commands_on(whole / "report.html") == commands_on(whole / "read" / "report.html") == [command]
    assert ("warning" in page[: page.index("</header>")]) == any(
        part["warnings"] for part in summary_of(whole)["result"]["parts"].values()
    )
    assert set(specifications(whole)) == {"front-1", "effects-1"}
    for name in specifications(whole):
        assert f'data-chart="{name}"' in page
    # The first section of a part has a table alone.
    assert {"front-2", "effects-2"} <= set(specifications(whole / "read"))
    assert (whole / "read/charts/front-2.svg").exists()
    assert cli("report", whole, "--no-open").exit_code == 0
    assert (whole / "report.html").read_text(encoding="utf-8") == page
