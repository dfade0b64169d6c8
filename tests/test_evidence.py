"""Published evidence: what pages state is in bundles, sizes are kept, and recommendations go by bundles."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from docsite.evidence import entries as evidence_entries
from docsite.evidence import pages, run
from docsite.evidence.entries import AllMade, Entries, Entry, Made
from docsite.evidence.pages import Published, published, violations, with_evidence

from sensorbench.advisor import EvidenceBundle, Recommendation, RecommendOptions, evidence_text, shipped, shipped_evidence
from sensorbench.advisor.leave_one_out import LeaveOneOut
from sensorbench.advisor.recommend import recommend, use_cases
from sensorbench.advisor.source import EVIDENCE_FILE
from sensorbench.analysis.advice import Needs
from sensorbench.analysis.candidate import Candidate
from sensorbench.analysis.sizing import Load
from sensorbench.app.bundle import verify
from sensorbench.benchmarks.comparison import Gathered
from sensorbench.errors import FailedError, UsageError
from sensorbench.report import formatting
from sensorbench.results.summary.claims import verdict_counts
from sensorbench.results.summary.comparison import SectionColumn, StudySection
from tests.conftest import Cli, run_main

ROOT = Path(__file__).parent.parent


# What is published.


def test_pages_state_what_bundles_have() -> None:
    bundles, made, known = published(), evidence_entries.read_made(), evidence_entries.read_entries()
    wrong = {
        page.name: found
        for page in pages.pages()
        if (found := violations(page.read_text(encoding="utf-8"), bundles, made, known))
    }
    assert wrong == {}
    assert [bundle.name for bundle in bundles if not bundle.scale] == []
    # Each study has a page with its evidence, or says why there is none.
    for study in dict.fromkeys([*(entry.study for entry in known.bundles.values()), *known.lacking]):
        assert f"<!-- evidence: {study} -->" in (evidence_entries.PAGES / f"{study}.md").read_text(encoding="utf-8")
        assert known.lacking.get(study) or any(bundle.study == study for bundle in bundles)


def test_what_is_published_is_small_and_was_made_by_its_command() -> None:
    files = evidence_entries.bundle_files()
    for name, file in files.items():
        run.check_size(name, file, evidence_entries.FOLDER)
    made = evidence_entries.read_made().bundles
    assert made.keys() == files.keys()
    assert {name: how.sha256 for name, how in made.items()} == {name: run.new_checksum_of(file) for name, file in files.items()}
    # Recommendations go by the same bundles.
    assert {bundle.sha256 for bundle in shipped_evidence()} <= {how.sha256 for how in made.values()}


@pytest.mark.long("each is computed again as a whole, which takes up to ten seconds")
@pytest.mark.parametrize("study", sorted({entry.study for entry in evidence_entries.read_entries().bundles.values()}))
def test_todays_definitions_of_a_study_judge_its_bundle_as_it_was_judged(study: str) -> None:
    """Other words in a definition must not reject what was published; of several bundles the smallest is verified."""
    entries = evidence_entries.read_entries().bundles
    files = [file for name, file in evidence_entries.bundle_files().items() if entries[name].study == study]
    found = verify(min(files, key=lambda file: file.stat().st_size))
    assert found.problems == []


# Pages of a folder of evidence.


@pytest.fixture(scope="module")
def folder(study_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one bundle, of a small run of a study."""
    place = tmp_path_factory.mktemp("evidence")
    assert run_main(("bundle", study_folder, "--out", place / "small.sbz", "-q")) == 0
    return place


@pytest.fixture(scope="module")
def known(folder: Path) -> Entries:
    command = pages._summary(folder / "small.sbz", pages.read_index(folder / "small.sbz")).command
    entry = Entry(study="iot", command=" ".join(command[1:5]), machine="any", budget="1m", expected_mb=1.0)
    return Entries(bundles={"small": entry}, lacking={"layouts": "Nobody ran it."})


@pytest.fixture(scope="module")
def bundles(folder: Path, known: Entries) -> list[Published]:
    return published(folder, known)


PAGE = """# A study

## Evidence

<!-- evidence: iot -->
<!-- end of evidence -->

The share is <!-- figure: small result.metric --><!-- end of figure -->, by `--scale 0.001`; claim IOT-4 is open.

## Afterwards

There were 12 monkeys.
"""


def test_a_page_is_made_of_the_bundles_and_a_figure_that_none_has_is_found(bundles: list[Published], known: Entries) -> None:
    made = AllMade()
    page = with_evidence(PAGE, bundles, made, known)
    assert violations(page, bundles, made, known) == []
    (bundle,) = bundles
    counts = verdict_counts(bundle.summary.claims)
    assert f"Of its {len(bundle.summary.claims)} claims: {counts}." in page
    for verdict in ("reproduced", "partly reproduced", "not reproduced", "inconclusive", "not tested", "below minimum scale"):
        assert f" {verdict}" in counts
    for claim in bundle.summary.claims:
        assert claim.id in page
    # The overview has no zeros, and leaves out no claim.
    assert "0" not in bundle.verdicts
    assert sum(int(count or 0) for count in bundle.verdicts) == len(bundle.summary.claims)
    # Planted: a figure in the tables, one in a sentence, one of a bundle that is not there, one that the bundle does not have, and other words.
    for old, new, said in (
        (f"Of its {len(bundle.summary.claims)}", "Of its 99", "not those of the bundles"),
        ("is open.", "is open, and 3.7 times as fast.", "'3.7' is a figure that no bundle is named for"),
        ("figure: small result.metric", "figure: other result.metric", "there is no bundle other"),
        (
            "figure: small result.metric",
            "figure: small result.none.metric",
            "the bundle has no such figure; expected for example result.metric",
        ),
        (f"{bundle.summary.result.metric}<!-- end of figure", "p50<!-- end of figure", "not those of the bundles"),
    ):
        assert old in page
        assert any(said in found for found in violations(page.replace(old, new), bundles, made, known)), said


def test_figures_have_their_units(bundles: list[Published]) -> None:
    ((variant, load), *_) = bundles[0].summary.result.load.items()
    of_load = f"result.load.{variant}"
    shown = [pages.figure_text(bundles, "small", f"{of_load}.{key}") for key in ("size.total_bytes", "load_s")]
    assert shown == [formatting.size(load.size.total_bytes), formatting.duration(load.load_s)]


def test_recommendations_do_not_go_by_a_bundle_that_is_not_for_that(folder: Path, known: Entries) -> None:
    assert [bundle["name"] for bundle in json.loads(pages.advice(known, folder))["bundles"]] == ["small"]
    silent = known.bundles["small"].model_copy(update={"no_advice": "It was too short."})
    assert json.loads(pages.advice(known.model_copy(update={"bundles": {"small": silent}}), folder))["bundles"] == []


def test_cells_are_named_by_the_first_words_of_their_row_and_their_column(bundles: list[Published]) -> None:
    """A number would be another cell as soon as a column or a row came before it."""
    columns = [
        SectionColumn(title=title, kind=kind) for title, kind in (("variant", "variant"), ("rate", "count"), ("q1", "duration_s"))
    ]
    rows = [["duckdb", 100.0, 0.002], ["duckdb", 1_000_000.0, 0.5], ["sqlite", 100.0, None]]
    section = StudySection(title="Latency", text="", columns=columns, rows=rows)
    result = bundles[0].summary.result.model_copy(update={"sections": [section]})
    found = [replace(bundles[0], summary=bundles[0].summary.model_copy(update={"result": result}))]

    def cell(row: str, column: str, title: str = "Latency") -> str:
        return pages.figure_text(found, "small", f"result.sections[{title}].rows[{row}].{column}")

    assert (cell("duckdb | 100", "q1"), cell("duckdb | 1000000", "q1"), cell("sqlite", "rate")) == ("2.00 ms", "500 ms", "100")
    for words, said in (
        (("duckdb | 100", "q2"), "expected one of the columns variant; rate; q1"),
        (("duckdb", "q1"), "2 rows begin like this; expected one"),
        (("duckdb | 10", "q1"), "0 rows begin like this"),
        (("sqlite", "q1"), "this cell is empty"),
        (("sqlite", "q1", "Storage"), "expected one of the sections Latency"),
    ):
        with pytest.raises(UsageError, match=re.escape(said)):
            cell(*words)


def test_a_study_without_a_bundle_says_why(bundles: list[Published], known: Entries) -> None:
    page = with_evidence("<!-- evidence: layouts -->\n<!-- end of evidence -->", bundles, AllMade(), known)
    assert "**No evidence yet.** Nobody ran it." in page
    table = with_evidence("<!-- evidence: all -->\n<!-- end of evidence -->", bundles, AllMade(), known)
    assert "[small](evidence/small.sbz)" in table
    assert (
        "| measured | reproduced | partly reproduced | not reproduced | inconclusive | not tested | below minimum scale |"
        in table
    )
    assert "| none yet. Nobody ran it. |" in table


def test_a_bundle_of_another_command_is_refused(folder: Path, known: Entries) -> None:
    other = known.bundles["small"].model_copy(update={"command": "study run iot --budget 9h"})
    with pytest.raises(UsageError, match=r"evidence\.toml has 'study run iot --budget 9h'"):
        published(folder, known.model_copy(update={"bundles": {"small": other}}))
    with pytest.raises(UsageError, match="has no entry 'small'"):
        published(folder, known.model_copy(update={"bundles": {}}))


# Making evidence.


def test_results_become_a_bundle_that_is_verified_and_small(
    study_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, target = tmp_path / "work", tmp_path / "evidence"
    target.mkdir()
    results = Path(shutil.copytree(study_folder, work / "small", ignore=shutil.ignore_patterns("data")))
    file = run.publish("small", results, target)
    assert file == target / "small.sbz"
    monkeypatch.setattr(run, "MAX_TOTAL_MB", file.stat().st_size * 1.5 / run.MB)
    assert run.publish("small", results, target) == file
    with pytest.raises(FailedError, match="all bundles would have"):
        run.publish("again", results, target)
    monkeypatch.setattr(run, "MAX_MB", 0.001)
    with pytest.raises(FailedError, match=r"are published\. Run at a smaller scale"):
        run.publish("small", results, target)
    assert [path.name for path in target.iterdir()] == ["small.sbz"]
    entry = Entry(study="iot", command="study run iot --scale 0.001", machine="any", budget="1m", expected_mb=1.0)
    assert run.measured_by(entry, results)[3:] == [
        "study",
        "run",
        "iot",
        "--scale",
        "0.001",
        "--no-open",
        "--out",
        str(results),
        "--resume",
    ]
    # What is complete is not run again. How it was made is known although it was not published when it was.
    done = shlex.join(run.summary_at(results).command[1:])
    entry = entry.model_copy(update={"command": done})
    assert run.measure("small", entry, work) is None
    made = Made(sha256="", took_s=12.5, load_before=0.1, load_after=1.9, cpus=2, others_cpu_s=0.5)
    (work / "small.made.json").write_text(made.model_dump_json(), encoding="utf-8")
    assert run.measure("small", entry, work) == made == run.how_made("small", work)
    # Another command, such as one with more parts, continues the results, and how long both took counts.
    monkeypatch.setattr(run, "wait_until_idle", lambda: 0.3)
    monkeypatch.setattr(run, "run_counted", lambda *_: run.Ended(0, 2.0))
    longer = run.measure("small", entry.model_copy(update={"command": f"{done} --budget 9h"}), work)
    assert longer is not None
    assert (longer.took_s > 12.5, longer.load_before, longer.others_cpu_s) == (True, 0.3, 2.5)


def test_results_whose_answers_differ_are_no_evidence(
    study_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    different = run.summary_at(study_folder).model_copy(update={"answers_equal": False})
    monkeypatch.setattr(run, "summary_at", lambda _: different)
    with pytest.raises(FailedError, match="the answers differ, so this is not evidence"):
        run.publish("small", study_folder, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_was_not_measured_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "WORK", tmp_path)
    assert run.main(["iot-embedded", run.AS_IS]) == 2
    assert f"--as-is: {tmp_path / 'iot-embedded'} has no results" in capsys.readouterr().err
    assert run.main(["iot-embedded", "--as-it-is"]) == 2
    assert "and --as-is at most, not 'iot-embedded --as-it-is'" in capsys.readouterr().err


def test_only_one_measures_at_a_time_and_not_with_low_priority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with run.alone(tmp_path), pytest.raises(UsageError, match="evidence is being measured"), run.alone(tmp_path):
        pass
    with run.alone(tmp_path):
        pass
    monkeypatch.setattr(os, "nice", lambda _: 19)
    with pytest.raises(UsageError, match="niceness 19"):
        run.check_priority()


# Burns half a second of CPU in a process that leaves the tree of the command, as servers do, and ends before it.
SERVER = r"""
import os, subprocess, sys, time
burn = "import time\nwhile time.process_time() < 0.5: pass"
if not (child := os.fork()):
    server = subprocess.Popen([sys.executable, "-c", burn], start_new_session=True)
    print(server.pid, flush=True)
    os._exit(0)
os.waitpid(child, 0)
while any(os.path.exists(f"/proc/{word}") for word in open(sys.argv[1]).read().split()):
    time.sleep(0.01)
sys.exit(3)
"""


def test_servers_of_a_command_are_its_own_and_the_cpu_of_others_is_counted(tmp_path: Path) -> None:
    # In a process of its own, since all children of it are reaped.
    given = tmp_path / "run.py"
    given.write_text(
        "import json, os, sys, threading\n"
        "from pathlib import Path\n"
        "from docsite.evidence import run\n"
        f"log = Path({str(tmp_path / 'log')!r})\n"
        "with log.open('ab') as output:\n"
        f"    ended = run.run_counted([sys.executable, '-c', {SERVER!r}, str(log)], output)\n"
        "print(json.dumps([ended.returncode, ended.others_cpu_s, run._reaped_cpu_s()]))\n",
        encoding="utf-8",
    )
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'python'}"}
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        found = subprocess.run([sys.executable, given], capture_output=True, text=True, check=True, env=environment)
    finally:
        other.kill()
        other.wait()
    code, others_s, own_s = json.loads(found.stdout)
    assert code == 3
    assert own_s >= 0.5
    assert others_s > 0.05


def test_measuring_waits_for_an_idle_machine(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    loads = iter([1.5, 0.7, 0.2])
    monkeypatch.setattr(os, "getloadavg", lambda: (next(loads), 0.0, 0.0))
    monkeypatch.setattr(run, "_POLL_S", 0.0)
    assert run.wait_until_idle() == 0.2
    assert "load average 0.70; waiting until it is below 0.5" in capsys.readouterr().out
    monkeypatch.setattr(os, "getloadavg", lambda: (1.5, 0.0, 0.0))
    with pytest.raises(FailedError, match=r"not idle: its load average is 1\.50"):
        run.wait_until_idle(patience_s=0.0)


# Recommendations by bundles.

NEEDS = Needs("high", "high", fresh=True)


def bundle_of(name: str, factors: dict[str, float], *, is_own: bool = False, readings: int = 68_400) -> EvidenceBundle:
    """The reference as a bundle, in which the rates of targets are multiplied."""
    gathered = shipped()

    def changed(measured: Any, factor: float) -> Any:
        return replace(measured, runs=tuple(replace(each, per_s=each.per_s * factor) for each in measured.runs))

    candidates = tuple(
        replace(
            candidate,
            writes=tuple(changed(each, factors.get(candidate.target, 1.0)) for each in candidate.writes),
            reads=tuple(changed(each, factors.get(candidate.target, 1.0)) for each in candidate.reads),
        )
        for candidate in gathered.candidates
    )
    origins = {key: replace(origin, readings=readings) for key, origin in gathered.origins.items()}
    return EvidenceBundle(name, name, replace(gathered, candidates=candidates, origins=origins), is_own)


@pytest.fixture(autouse=True)
def nothing_shipped(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of recommendations name the bundles that they go by."""
    if "published" not in request.node.name:
        monkeypatch.setattr("sensorbench.advisor.recommend.shipped_evidence", list)


def recommended(*given: EvidenceBundle, load: Load | None = None, **options: Any) -> Recommendation:
    return recommend(RecommendOptions(NEEDS, load=load, **options), None, given)


def target_of(found: Recommendation) -> str:
    return found.entries[0].place.candidate.target


def test_evidence_comes_before_the_reference_and_the_users_before_what_is_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    assert recommended().source.kind == "reference"
    large, small = bundle_of("large", {"postgresql": 1e3}, readings=10**6), bundle_of("small", {"cassandra": 1e3})
    monkeypatch.setattr("sensorbench.advisor.recommend.shipped_evidence", lambda: [small, large])
    found = recommended()
    assert (found.source.kind, found.source.name, target_of(found)) == ("evidence", "large", "postgresql")
    own = recommended(bundle_of("own", {"fjall": 1e3}, is_own=True))
    assert (own.source.name, target_of(own)) == ("own", "fjall")
    with pytest.raises(UsageError, match="--evidence: no bundle measured what you need"):
        recommended(replace(small, gathered=Gathered({}, (), (), ())), targets=("none",))


def test_a_shipped_bundle_of_one_layout_at_servers_with_other_settings_recommends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, *others = (place.candidate for place in recommended().ranking.places)
    tuned = replace(first, name="tuned", target=f"{first.target}_tuned")
    another = next(candidate for candidate in others if candidate.layout != first.layout)

    def bundle_with(*candidates: Candidate) -> EvidenceBundle:
        whole = bundle_of("settings", {}, readings=10**6)
        return replace(whole, gathered=replace(whole.gathered, candidates=candidates))

    def ship(bundle: EvidenceBundle) -> None:
        monkeypatch.setattr("sensorbench.advisor.recommend.shipped_evidence", lambda: [bundle])

    one_layout = bundle_with(first, tuned)
    ship(one_layout)
    assert [recommended().source.kind, recommended(targets=(first.target,)).source.kind] == ["reference"] * 2
    assert use_cases(None)[0].kind == "reference"
    # What users name themselves counts.
    assert recommended(replace(one_layout, is_own=True)).source.name == "settings"
    ship(bundle_with(first, tuned, another))
    assert [recommended().source.name, recommended(targets=(first.target,)).source.name] == ["settings"] * 2


def test_each_bundle_is_left_out_and_asked_what_the_others_recommend() -> None:
    alike = [bundle_of(name, {"fjall": 1e3}) for name in ("a", "b", "c")]
    assert recommended(*alike).check == LeaveOneOut(3, 3, 3)
    other = bundle_of("z", {"postgresql": 1e3})
    # The others recommend what is bad there, and it recommends nothing for them: `a` is the nearest for each, and has others itself.
    assert recommended(*alike, other).check == LeaveOneOut(4, 4, 3)
    one = recommended(alike[0]).check
    assert one == LeaveOneOut(1, 0, 0)
    assert one is not None
    assert "not possible, because one bundle" in one.text
    assert "75%" not in one.text
    # The same file twice is one bundle.
    assert recommended(alike[0], alike[0]).check == LeaveOneOut(1, 0, 0)


def test_a_need_outside_of_what_was_measured_is_marked_and_refused_far_outside() -> None:
    bundle = bundle_of("a", {})
    # Six sensors for 3:10 hours, one reading per second.
    inside = Load(6.0, retention_s=11_400.0)
    assert recommended(bundle, load=inside, sensors=6).distances == ()
    near = recommended(bundle, load=Load(30.0, retention_s=5_700.0), sensors=30)
    assert {distance.what: round(distance.factor, 2) for distance in near.distances} == {"sensors": 5.0, "days of readings": 2.0}
    assert all("extrapolated:" in distance.text for distance in near.distances)
    far = Load(600.0, retention_s=11_400.0)
    with pytest.raises(
        UsageError,
        match=r"--sensors: 600 sensors are 100 times more than the 6 that the evidence bundle a measured.*--extrapolate",
    ):
        recommended(bundle, load=far, sensors=600)
    assert [distance.factor for distance in recommended(bundle, load=far, sensors=600, extrapolates=True).distances] == [100.0]
    with pytest.raises(UsageError, match="--rate"):
        recommended(bundle, load=Load(1e9), sensors=6)


def test_bundles_of_ones_own_are_verified_and_answer(cli: Cli, study_folder: Path, tmp_path: Path) -> None:
    assert cli("bundle", study_folder, "--out", tmp_path / "own.sbz").exit_code == 0
    need = ("--writes", "low", "--reads", "high", "--fresh", "no", "--json")
    direct = cli("recommend", *need, study_folder).json
    found = cli("recommend", *need, "--evidence", tmp_path)
    assert found.exit_code == 0, found.err
    assert (found.json["kind"], found.json["source"]) == ("evidence", str(tmp_path / "own.sbz"))
    assert [entry["variant"] for entry in found.json["ranked"]] == [entry["variant"] for entry in direct["ranked"]]
    assert found.json["ranked"][0]["score"] == direct["ranked"][0]["score"]
    assert found.json["leave_one_out"]["bundles"] == 1
    assert found.json["basis"]["versions"][0].startswith("sensorbench")
    chosen = cli("choose", "--operations", "library", "--evidence", tmp_path / "own.sbz", "--json").json
    (fjall,) = [database for database in chosen["databases"] if database["name"] == "fjall"]
    assert any("own.sbz: " in each["what"] and " layouts at scale " in each["what"] for each in fjall["measurements"])
    both = cli("recommend", *need, study_folder, "--evidence", tmp_path)
    assert (both.exit_code, "either a folder of results or bundles" in both.err) == (2, True)
    (tmp_path / "empty").mkdir()
    assert cli("recommend", *need, "--evidence", tmp_path / "empty").exit_code == 2
    with (tmp_path / "own.sbz").open("ab") as file:
        file.truncate(file.tell() // 2)
    assert cli("recommend", *need, "--evidence", tmp_path / "own.sbz").exit_code == 2


def test_what_is_shipped_is_read_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = bundle_of("a", {})
    file = tmp_path / EVIDENCE_FILE.name
    file.write_text(evidence_text([bundle]), encoding="utf-8")
    monkeypatch.setattr("sensorbench.advisor.source.EVIDENCE_FILE", file)
    assert shipped_evidence() == [bundle]
