"""The MapReduce study: the job on every connector and by databases themselves, its figures, its claims, and what is refused."""

import json
import re
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import jsonschema
import pytest

from sensorbench import lab
from sensorbench.benchmarks.mapreduce import MapReduceOptions, MapReduceSpec
from sensorbench.benchmarks.mapreduce.clusters import starting_with, why_fixed
from sensorbench.benchmarks.mapreduce.run import MapReducePlan
from sensorbench.benchmarks.mapreduce.summary import summarise_mapreduce
from sensorbench.benchmarks.mapreduce.systems import variants_of
from sensorbench.benchmarks.mapreduce.words import BLANKS, Reference, reference_of, word_of
from sensorbench.claims import decide
from sensorbench.dataset import open_dataset
from sensorbench.errors import BudgetOverError, UsageError
from sensorbench.lifecycle import Deadline
from sensorbench.report.build import write_page
from sensorbench.report.mapreduce import mapreduce_page
from sensorbench.results.json_schemas import json_schemas
from sensorbench.results.manifest import Process, now
from sensorbench.results.mapreduce import (
    CompleteExecution,
    Execution,
    FailedExecution,
    JobRecord,
    MapReduceResult,
    MapReduceWriter,
    WordRecord,
    read_mapreduce,
)
from sensorbench.results.planned import MapReduceManifest, PlannedMapReduce, WantedWord
from sensorbench.results.summary.claims import JudgedClaim
from sensorbench.results.summary.mapreduce import HoldsByReading
from sensorbench.runner import parse_target
from sensorbench.spark import driver, find_master
from sensorbench.spark.connector import connectors, files_in, place_of
from sensorbench.spark.inverted_index import InvertedIndex, tally_jar
from sensorbench.studies.mapreduce import MAPREDUCE, choose
from sensorbench.studies.mapreduce.claims import Evidence, judged_as_printed, kinds_of
from tests.conftest import Cli, commands_on, forget_checksums
from tests.servers import LabServers
from tests.test_watch import PAGE_TIMEOUT_S, events_at, free_port, rows_of

# The worked example of the spec; then blanks of all kinds, punctuation, other letters, and a word with signs of regular expressions.
EXAMPLE = {7: "the cat the", 9: "The end"}
TRICKY = {
    1: "\tTHE\nthe, (the)\x0bthe\x0cthe\rthe the\u00a0end other",
    2: "ΚΑΙ και Και λόγοσ ΛΌΓΟΣ λόγος logos",
    3: "a.b* aab A.B* a.b*c",
    4: "",
}


def articles(texts: dict[int, str]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE articles (id BIGINT, text VARCHAR)")
    connection.executemany("INSERT INTO articles VALUES (?, ?)", list(texts.items()))
    return connection


@pytest.mark.cluster
def test_spark_and_duckdb_find_what_the_worked_example_has_and_agree_on_blanks_and_case(tmp_path: Path) -> None:
    wanted = [
        (EXAMPLE, "the", {7: 2, 9: 1}),
        (TRICKY, "the", {1: 4}),
        (TRICKY, "Και", {2: 3}),
        (TRICKY, "λόγος", {2: 3}),
        (TRICKY, "a.b*", {3: 2}),
        (TRICKY, "nothing", {}),
    ]
    with (
        driver(find_master("local[2]"), jars=[tally_jar()]) as spark_driver,
        spark_driver.application("test", executors=2) as application,
    ):
        for number, (texts, text, counts) in enumerate(wanted):
            connection, word = articles(texts), word_of(text)
            folder = tmp_path / str(number)
            (folder / "articles").mkdir(parents=True)
            connection.execute(f"COPY articles TO '{folder / 'articles' / 'all.parquet'}' (FORMAT parquet)")
            assert reference_of(connection, "", word).counts == counts, text
            index = InvertedIndex(application.session, files_in(folder), max(texts), 2, BLANKS)
            index.empty()
            first, second = index.first_job(word), index.second_job(word)
            assert index.counts() == counts, text
            assert second.elements == sum(counts.values())
            assert (first.read.rows, first.read.bytes) == (
                len(texts),
                sum(len(spark_driver.encode()) for spark_driver in texts.values()),
            )
            assert first.stages.map_tasks >= 1
            assert 0.0 < first.stages.executed_s <= first.duration_s


@pytest.mark.cluster
def test_every_connector_of_all_servers_gives_the_same_results(cli: Cli, lab_servers: LabServers, tmp_path: Path) -> None:
    names = [name for name in MAPREDUCE.file.targets if name in lab_servers]
    lab_servers.start(*names)
    targets = [part for name in names for part in ("--target", f"lab:{name}?namespace=mapreduce")]
    out = tmp_path / "out"
    options = ("--dataset", "wikipedia", "--scale", "0.1", "--word", "the", "--workers", "1", "--repetitions", "1", "--no-open")
    ended = cli("study", "run", "mapreduce", *targets, "--target", "files", *options, "--out", out)
    assert ended.exit_code == 0, ended.err
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    jsonschema.validate(summary, json_schemas()["mapreduce-summary"])
    assert summary["status"] == "complete"
    assert summary["answers_equal"] is True
    found = summary["result"]
    on_spark = {job["system"]: job for job in found["cells"] if job["workers"] is not None}
    assert list(on_spark) == [*names, "files"]
    sizes = set()
    for job in on_spark.values():
        (word,) = job["words"]
        first, second = word["jobs"]
        assert first["map_tasks"] >= 1
        assert first["read_rows"] == found["dataset"]["articles"]
        assert second["read_rows"] == 1
        assert word["list_length"] == word["occurrences"] == found["words"][0]["occurrences"] > 100
        assert 0.0 < job["setup_share"] < 1.0
        sizes.add((first["read_bytes"], second["read_bytes"]))
    assert len(sizes) == 1
    # Two splits were asked for; a region is a split.
    assert on_spark["files"]["words"][0]["jobs"][0]["map_tasks"] == 2
    assert on_spark["hbase"]["words"][0]["jobs"][0]["map_tasks"] == 2
    native = {job["system"] for job in found["cells"] if job["workers"] is None}
    gaps = {(gap["system"], gap["what"]): gap["why"] for gap in found["gaps"]}
    assert native | {system for system, what in gaps if what == "native job"} == {*names, "files"}
    assert len(native) == 2
    refused = next(why for why in gaps.values() if "NotImplemented" in why)
    assert all(f"{needed}: " in refused for needed in ("$regexMatch", "$split, then $unwind", "a text index", "$push", "$merge"))
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "All results equal those of DuckDB." in page
    assert {claim["id"] for claim in cli("claims", out, "--json").json} == {f"MR-{number}" for number in range(1, 15)}
    assert not (out / "data").exists()
    assert not [instance for instance in lab.read_instances() if instance.database == "spark" and not instance.stays]


@pytest.mark.cluster
def test_ctrl_c_leaves_what_was_measured_and_resume_goes_on(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first_job, done = InvertedIndex.first_job, []

    def interrupted(self: InvertedIndex, word: Any) -> Any:
        if done:
            raise KeyboardInterrupt
        done.append(word)
        return first_job(self, word)

    monkeypatch.setattr(InvertedIndex, "first_job", interrupted)
    options = (
        "--target",
        "files",
        "--spark",
        "local[2]",
        "--dataset",
        "wikipedia",
        "--scale",
        "0.05",
        "--word",
        "the",
        "--nodes",
        "1,2",
        "--repetitions",
        "1",
        "--no-open",
    )
    ended = cli("study", "run", "mapreduce", *options, "--out", tmp_path / "out")
    assert ended.exit_code == 130
    assert "interrupted; what was measured until then is in" in ended.err
    shown = cli("report", tmp_path / "out", "--no-open", "--json").json
    assert (shown["status"], len(shown["result"]["executions"]), shown["answers_equal"]) == ("interrupted", 1, True)
    given = ["sensorbench", "study", "run", "mapreduce", *options, "--out", str(tmp_path / "out")]
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["command"] == shown["command"] == given
    assert commands_on(tmp_path / "out" / "report.html") == [given]
    monkeypatch.setattr(InvertedIndex, "first_job", first_job)
    other = cli("study", "run", "mapreduce", *options, "--resume", "--word", "and", "--out", tmp_path / "out")
    assert (other.exit_code, "has other words; give the same options" in other.err) == (2, True), other.err
    done = read_mapreduce(tmp_path / "out").executions
    # A budget that is over is not a failure, and loses nothing.
    late = cli("study", "run", "mapreduce", *options, "--resume", "--budget", "0.001s", "--out", tmp_path / "out")
    assert late.exit_code == 0, late.err
    assert "interrupted: the budget of 0.001 s is over before 2 nodes are measured; --resume continues" in late.out
    port, live = free_port(), list[dict[str, Any]]()
    follower = threading.Thread(target=lambda: live.extend(events_at(port)))
    follower.start()
    resumed = ("study", "run", "mapreduce", *options, "--resume", "--live-port", port, "--out", tmp_path / "out")
    assert cli(*resumed).exit_code == 0
    follower.join(timeout=PAGE_TIMEOUT_S)
    (execution,) = rows_of(live, "intervals", "executions")
    assert (execution["operation"], execution["phase"], execution["ok"]) == ("files, 2 workers, 'the'", "2 workers", 1)
    assert {row["process"] for row in rows_of(live, "cpu", "executions")} == {"client", "spark driver"}
    whole = read_mapreduce(tmp_path / "out")
    assert whole.manifest.status == "complete"
    assert [(of.workers, of.failed) for of in whole.executions] == [(1, None), (2, None)]
    assert whole.executions[:1] == done


WORDS = {"rare": "zebra", "medium": "river", "very frequent": "the"}


def executions(
    times: dict[tuple[str, int], list[float]], *, equal: bool = True, words: Sequence[str] = ("the",), grown: bool = False
) -> list[Execution]:
    """Executions that took this long for each word, half of it set-up; where they have `grown`, databases have a node for each worker."""
    job = JobRecord(name="job", duration_s=1.0, executed_s=0.5, map_tasks=2, read_rows=1, read_bytes=1, spark_read_rows=1)
    return [
        CompleteExecution(
            execution=number,
            system=system,
            workers=workers,
            nodes=workers if grown else None,
            context_s=0.1,
            executors_s=0.1,
            launch_s=0.1,
            total_s=total_s,
            setup_s=total_s / 2,
            words=[WordRecord(word=text, jobs=(job, job), pairs=1, occurrences=1, list_length=1, equal=equal)],
        )
        for (system, workers), of_cell in times.items()
        for number, total_s in enumerate(of_cell, start=1)
        for text in words
    ]


def result(folder: Path, found: Sequence[Execution], articles: int = 19_580) -> MapReduceResult:
    """Results with these executions, written and read again."""
    systems = {
        execution.system: {"database": execution.system, "connector": "", "splits": "", "native_job": None} for execution in found
    }
    manifest = MapReduceManifest(
        title="MapReduce",
        process=Process.this(),
        created=now(),
        version="0",
        command=["sensorbench", "study", "run", "mapreduce", "--word", "a b"],
        environment={"servers": {}, "spark": {"started": True}, "memory_bytes": 1, "processors_allowed": 8},
        variants=[],
        plan=PlannedMapReduce(
            workload={"cores_per_worker": 1, "memory_per_worker": "1g", "splits": 2, "articles_per_part": 100},
            dataset={"name": "made", "title": "made", "articles": articles, "scale": 1.0, "generated": True},
            systems=systems,
            words=[{"kind": kind, "word": word, "occurrences": 1, "articles": 1} for kind, word in reversed(WORDS.items())],
            workers=[3, 8],
            executions=4,
        ),
    )
    writer = MapReduceWriter(folder, manifest)
    for complete_execution in found:
        writer.write_execution(complete_execution)
    writer.finish("complete")
    return read_mapreduce(folder)


def several(seconds: float, first: float = 99.0) -> list[float]:
    return [first, seconds * 0.99, seconds, seconds * 1.01]


AS_IN_THE_SOURCE = {
    ("cassandra", 3): several(40.0),
    ("cassandra", 8): several(38.0),
    ("hbase", 3): several(88.0),
    ("hbase", 8): several(44.0),
    ("mongodb", 3): several(126.0),
    ("mongodb", 8): several(60.0),
}


def verdicts(found: MapReduceResult) -> dict[str, str]:
    roles, titles = ({name: getattr(role, key) for name, role in MAPREDUCE.file.roles.items()} for key in ("databases", "title"))
    evidence = Evidence(summarise_mapreduce(found), roles, titles)
    return {claim.id: decide(claim.rules, evidence).verdict for claim in MAPREDUCE.claims if claim.rules}


def test_times_of_the_papers_kind_reproduce_its_claims_and_the_contrary_does_not(tmp_path: Path) -> None:
    judged, words = ["MR-1", "MR-2", "MR-3", "MR-4", "MR-5", "MR-7", "MR-8", "MR-12"], list(WORDS.values())
    assert verdicts(result(tmp_path / "one", executions(AS_IN_THE_SOURCE, words=words))) == dict.fromkeys(judged, "reproduced")
    inverted = {place: [1000.0 / seconds**1.5 for seconds in of_cell] for place, of_cell in AS_IN_THE_SOURCE.items()}
    opposite = verdicts(result(tmp_path / "other", executions(inverted, words=words)))
    # The slowest is still more than twice as slow, and nothing gains more than its workers.
    assert {claim for claim, word in opposite.items() if word == "not reproduced"} == {"MR-3", "MR-4", "MR-5", "MR-7"}
    alike = {place: several(40.0) for place in AS_IN_THE_SOURCE}
    same = verdicts(result(tmp_path / "same", executions(alike, words=words)))
    assert {claim for claim, word in same.items() if word == "reproduced"} == {"MR-8", "MR-12"}, "they say that nothing changes"


def test_a_claim_must_hold_for_each_kind_of_word(tmp_path: Path) -> None:
    words = ["zebra", "river"]
    some = result(tmp_path / "two", executions(AS_IN_THE_SOURCE, words=words))
    assert verdicts(some)["MR-8"] == "not tested"
    slow = {place: [10.0 * seconds if place[1] == 8 else seconds for seconds in of] for place, of in AS_IN_THE_SOURCE.items()}
    found = [*executions(AS_IN_THE_SOURCE, words=words), *executions(slow, words=["the"])]
    assert verdicts(result(tmp_path / "three", found))["MR-8"] == "not reproduced"


def test_without_mongodb_hbase_and_cassandra_are_compared(tmp_path: Path) -> None:
    two = {place: of_cell for place, of_cell in AS_IN_THE_SOURCE.items() if place[0] != "mongodb"}
    found = verdicts(result(tmp_path, executions(two, words=list(WORDS.values()))))
    assert {claim: found[claim] for claim in ("MR-1", "MR-2", "MR-7", "MR-8")} == {
        "MR-1": "reproduced",
        "MR-2": "reproduced",
        "MR-7": "reproduced",
        "MR-8": "reproduced",
    }
    assert found["MR-3"] == found["MR-5"] == "not tested"


def test_words_of_a_user_play_what_they_are_as_frequent_as() -> None:
    def kinds(counts: dict[str, int]) -> dict[str, str]:
        return kinds_of([WantedWord(kind="named", word=word, occurrences=count, articles=1) for word, count in counts.items()])

    assert kinds({"b": 9, "a": 1, "c": 100}) == {"rare": "a", "medium": "b", "frequent": "c"}
    assert kinds({"b": 9, "a": 1}) == {"rare": "a", "frequent": "b"}
    assert kinds({"b": 9}) == {"frequent": "b"}


def claims_of(
    folder: Path, found: Sequence[Execution], *, articles: int = 19_580, **environment: object
) -> dict[str, JudgedClaim]:
    summary = summarise_mapreduce(result(folder, found, articles))
    changed = summary.model_copy(update={"environment": {**summary.environment, **environment}})
    return {claim.id: claim for claim in MAPREDUCE.summarise(changed).claims}


def test_a_database_that_stays_as_it_is_judges_no_claim_about_servers(tmp_path: Path) -> None:
    words = list(WORDS.values())
    one = {"cassandra": {"nodes": 1, "database": "cassandra", "version": "1", "settings": {}}}
    fixed = claims_of(tmp_path / "fixed", executions(AS_IN_THE_SOURCE, words=words), servers=one)
    assert fixed["MR-4"].verdict == fixed["MR-8"].verdict == "below minimum scale"
    unknown = claims_of(tmp_path / "unknown", executions(AS_IN_THE_SOURCE, words=words))
    assert {claim.verdict for claim in unknown.values() if claim.id != "MR-12"} == {"not tested"}
    grown = claims_of(tmp_path / "grown", executions(AS_IN_THE_SOURCE, words=words, grown=True))
    judged = ["MR-1", "MR-2", "MR-3", "MR-4", "MR-5", "MR-7", "MR-8", "MR-12"]
    assert [claim.verdict for claim in grown.values() if claim.id in judged] == ["reproduced"] * len(judged)


def test_claims_need_articles_growth_and_processors(tmp_path: Path) -> None:
    found = executions(AS_IN_THE_SOURCE, words=list(WORDS.values()), grown=True)
    few = claims_of(tmp_path / "few", found, articles=196)
    assert {few[claim].verdict for claim in ("MR-1", "MR-2", "MR-7", "MR-8")} == {"below minimum scale"}
    assert "0.01001, at least 0.1" in few["MR-1"].reason
    shared = claims_of(tmp_path / "shared", found, processors_allowed=2)
    alone = claims_of(tmp_path / "alone", [one for one in found if one.system == "hbase"])
    assert alone["MR-8"].verdict == "not tested"
    assert shared["MR-1"].verdict == "reproduced", "it is about one size"
    assert {shared[claim].verdict for claim in ("MR-2", "MR-5", "MR-7", "MR-8")} == {"below minimum scale"}
    assert "CPUs of this machine for each node of the largest cluster: 0.25, at least 1" in shared["MR-8"].reason


def test_systems_take_turns_and_words_are_rotated_size_by_size(tmp_path: Path) -> None:
    targets = [parse_target("cassandra"), parse_target("postgresql")]
    references = [Reference(kind, word_of(word), {}) for kind, word in WORDS.items()]
    dataset = open_dataset("wikipedia", scale=0.05)
    spec = MapReduceSpec(targets, True, dataset, [], (1, 2), 2, 1, "1g", grows=True)
    plan = MapReducePlan(spec, variants_of(targets, tmp_path, spec.borders), None, references)
    (first, of_one), (second, of_two) = plan.stages_left
    assert (first, second) == ([1], [2])
    order = list(dict.fromkeys((turn.number, turn.system, turn.workers) for turn in of_one))
    cells = [("cassandra", 1), ("postgresql", 1), ("files", 1), ("postgresql", None)]
    assert order == [*((1, *cell) for cell in cells), *((2, *cell) for cell in reversed(cells))]
    assert [turn.word for turn in of_one if turn[:3] == (1, "files", 1)] == ["zebra", "river", "the"]
    assert [turn.word for turn in of_one if turn[:3] == (2, "files", 1)] == ["river", "the", "zebra"]
    assert {turn.workers for turn in of_two} == {2}, "a database does its job itself once, on what there is at first"
    # A resumed study begins with the size of which something is left.
    rest = replace(plan, done=frozenset(of_one[:-1]))
    assert [(workers, len(turns)) for workers, turns in rest.stages_left] == [([1], 1), ([2], len(of_two))]
    assert [workers for workers, _ in replace(plan, done=frozenset(of_one)).stages_left] == [[2]]
    fixed = replace(plan, spec=replace(spec, grows=False))
    assert [workers for workers, _ in fixed.stages_left] == [[1, 2]], "with --workers all are interleaved"


def test_only_databases_that_the_lab_starts_and_nodes_can_join_grow() -> None:
    grown = starting_with([parse_target(name) for name in ("cassandra", "hbase", "mariadb", "cassandra://127.0.0.1")], 3)
    assert [target.nodes for target in grown] == [3, 3, None, None]
    assert [why_fixed(target) is None for target in grown] == [True, True, False, False]
    assert "one server" in str(why_fixed(parse_target("postgresql")))


def test_a_budget_ends_before_what_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    deadline = Deadline(60.0, 0.0)
    deadline.note(20.0)
    clock[0] = 40.0
    deadline.check("a")
    clock[0] = 40.5
    with pytest.raises(BudgetOverError, match="before b; --resume continues"):
        deadline.check("b")


def test_a_budget_chooses_scale_then_executions_by_arithmetic() -> None:
    def chosen(budget_s: float, **options: object) -> tuple[float | None, int | None]:
        found = choose(MAPREDUCE.file, MapReduceOptions(**options), budget_s).options
        return found.scale, found.repetitions

    assert chosen(1e6) == (1.0, 5)
    assert chosen(3600.0) == (0.1, 4), "never below what claims need: the rest is left for --resume"
    assert chosen(3600.0, scale=0.01, repetitions=7)[:2] == (0.01, 7), "what is said stays"
    with pytest.raises(UsageError, match="--budget 1m: the smallest run of this study"):
        chosen(60.0)


def test_the_first_execution_is_in_no_mean_and_all_are_told(tmp_path: Path) -> None:
    summary = summarise_mapreduce(result(tmp_path, executions({("files", 1): [9.0, 4.0, 4.0], ("files", 2): [9.0, 2.0, 2.0]})))
    cell, two = summary.result.cells
    assert (cell.total.value, two.total.value) == (4.0, 2.0)
    assert [time.total_s for time in cell.times] == [9.0, 4.0, 4.0]
    assert [time.first for time in cell.times] == [True, False, False]
    (speed_up,) = summary.result.speed_ups
    assert (speed_up.speed_up, speed_up.speed_up_without_setup, speed_up.linear) == (2.0, 2.0, 2.0)
    assert cell.setup_share == 0.5


def test_what_failed_and_what_a_database_did_itself_is_read_again(tmp_path: Path) -> None:
    (on_spark,) = executions({("files", 1): [4.0]})
    jobs = (JobRecord(name="job 1", duration_s=1.0), JobRecord(name="job 2", duration_s=2.0))
    word = WordRecord(word="the", jobs=jobs, pairs=1, occurrences=1, equal=True)
    native = CompleteExecution(execution=1, system="postgresql", workers=None, total_s=3.0, setup_s=0.0, words=[word])
    failed = FailedExecution(execution=1, system="hbase", workers=2, failed="no region")
    found = result(tmp_path, [on_spark, native, failed])
    assert found.executions == [on_spark, native, failed]
    summary = summarise_mapreduce(found)
    jsonschema.validate(json.loads(summary.model_dump_json()), json_schemas()["mapreduce-summary"])
    assert [(job.system, job.workers, job.setup_share) for job in summary.result.cells] == [
        ("files", 1, 0.5),
        ("postgresql", None, None),
    ]
    assert ("hbase", "Spark, 2 workers", "no region") in {(gap.system, gap.what, gap.why) for gap in summary.result.gaps}
    page = write_page(mapreduce_page(MAPREDUCE.summarise(summary)), tmp_path).read_text(encoding="utf-8")
    assert re.search(r'<td class="text"[^>]*>postgresql</td>\s*<td class="text"[^>]*>native job</td>', page)
    assert "hbase, Spark, 2 workers: no region" in page


def test_executions_of_earlier_versions_are_read(tmp_path: Path) -> None:
    first = executions({("files", 1): [4.0]})
    result(tmp_path, first)
    file = tmp_path / "executions" / "0001.json"
    earlier = {"means": "Spark", **json.loads(file.read_text(encoding="utf-8"))}
    forget_checksums(tmp_path)
    file.write_text(json.dumps(earlier), encoding="utf-8")
    (tmp_path / "executions" / "0002.json").write_text(
        json.dumps({"execution": 1, "system": "mongodb", "means": "own means", "workers": None, "failed": "NotImplemented"}),
        encoding="utf-8",
    )
    found = read_mapreduce(tmp_path)
    assert found.executions == [*first, FailedExecution(execution=1, system="mongodb", workers=None, failed="NotImplemented")]


def test_the_page_says_the_command(cli: Cli, tmp_path: Path) -> None:
    given = result(tmp_path, executions({("files", 1): [1.0]})).manifest.command
    assert cli("report", tmp_path, "--no-open", "--json").json["command"] == given
    assert commands_on(tmp_path / "report.html") == [given]


def test_a_summary_of_earlier_versions_is_made_anew(cli: Cli, tmp_path: Path) -> None:
    result(tmp_path, executions({("files", 1): [1.0]}))
    summary = tmp_path / "summary.json"
    summary.write_text(json.dumps({"kind": "mapreduce", "title": "MapReduce", "results_equal": False}), encoding="utf-8")
    assert cli("report", tmp_path, "--no-open").exit_code == 0
    written = json.loads(summary.read_text(encoding="utf-8"))
    assert written["answers_equal"] is True
    assert "results_equal" not in written


def test_wrong_results_are_shown_in_red(cli: Cli, tmp_path: Path) -> None:
    result(tmp_path, executions({("files", 1): [1.0]}, equal=False))
    assert cli("report", tmp_path, "--no-open", "--json").json["answers_equal"] is False
    assert '<p class="banner bad">Results differ' in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_sources_percentages_are_judged_in_both_readings(cli: Cli) -> None:
    gains = MAPREDUCE.printed
    assert {name: (round(gain.increase, 9), gain.ratio) for name, gain in gains.items()} == {
        "Cassandra": (2.29, 1.29),
        "HBase": (3.2, 2.2),
        "mongoDB": (3.11, 2.11),
        "Riak": (2.89, 1.89),
    }
    shown = cli("study", "show", "mapreduce", "--json").json
    assert len(shown["claims"]) == 14
    assert "mapreduce" in {study["name"] for study in cli("study", "list", "--json").json}


def test_no_percentage_but_linear_scaling_depends_on_the_reading() -> None:
    both = HoldsByReading(increase=True, ratio=True)
    reading = HoldsByReading(increase=False, ratio=True)
    assert judged_as_printed(MAPREDUCE.printed) == {"MR-7": both, "MR-11": both, "MR-12": reading}


def test_connectors_take_places_and_credentials_from_a_targets_url(tmp_path: Path) -> None:
    login = tmp_path / "login.toml"
    login.write_text('user = "me"\npassword = "s{host}t"\n', encoding="utf-8")
    name = next(name for connector in connectors().values() if connector.format == "jdbc" for name in connector.databases)
    place = place_of(name, f"{name}://127.0.0.1:5000/base?credentials={login}&namespace=mine")
    options = place._options(place.connector.read, "articles", {"key": "id", "low": "1", "high": "9", "splits": "4"})
    assert "127.0.0.1:5000" in options["url"]
    assert (options["user"], options["password"], options["dbtable"]) == ("me", "s{host}t", "articles")
    assert (options["partitionColumn"], options["numPartitions"]) == ("id", "4")
    assert "user" not in place_of(name, f"{name}://127.0.0.1:5000/base")._options({}, "articles", {})
    with pytest.raises(UsageError, match="connectors cannot be given it"):
        place_of(name, f"{name}://127.0.0.1:5000/base?tls=on")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--workers", "0"), "--workers 0: expected whole numbers above 0"),
        (("--nodes", "2,0"), "--nodes 2,0: expected whole numbers above 0"),
        (("--nodes", "1,2", "--workers", "2"), "--workers: --nodes sets the number of Spark workers, too"),
        (("--workers", "1,x"), "--workers 1,x: expected whole numbers above 0"),
        (("--spark", "yarn"), "--spark yarn: expected spark://HOST:PORT"),
        (("--spark", "spark://127.0.0.1:1"), "--spark spark://127.0.0.1:1: no master answers there"),
        (("--spark", "local[1]"), "--nodes 3: local[1] has 1 threads"),
        (("--word", "two words"), "expected a word without blanks"),
        (("--target", "sqlite"), "no connector between Spark and sqlite is registered; expected one of"),
        (("--target", "files", "--dataset", "beijing-air-quality", "--scale", "0.01"), "it has no articles"),
        (("--schema", "by_id"), "No such option: --schema"),
        (("--hosts", "local:2"), "--hosts: files are on this machine; name a database by --target, too"),
        (
            ("--target", "hbase", "--dataset", "wikipedia", "--hosts", "local:2"),
            "--hosts: the lab starts hbase on this machine alone",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_written(
    options: tuple[str, ...], expected: str, cli: Cli, tmp_path: Path
) -> None:
    ended = cli("study", "run", "mapreduce", "--dataset", "wikipedia", "--target", "files", *options, "--out", tmp_path / "out")
    if "--dataset" in options:
        ended = cli("study", "run", "mapreduce", *options, "--out", tmp_path / "out")
    assert ended.exit_code == 2, ended
    assert expected in " ".join(ended.err.split())
    assert not (tmp_path / "out").exists()


def test_other_studies_do_not_run_on_spark(cli: Cli) -> None:
    ended = cli("study", "run", "iot", "--spark", "local[2]")
    assert ended.exit_code == 2
    assert "No such option: --spark" in " ".join(ended.err.split())
