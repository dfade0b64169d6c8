"""Studies of factors: scaling, cells, rounds and drafts on the null database; the study of Cassandra's settings on a cluster."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sensorbench import lab
from sensorbench.app.reports import FACTORS
from sensorbench.benchmarks.factors import run as factors
from sensorbench.benchmarks.factors.best_draft import OWN, best_draft
from sensorbench.benchmarks.factors.cells import cells_of
from sensorbench.benchmarks.factors.file import FactorLoad, FactorsFile
from sensorbench.benchmarks.factors.measure import rates_of
from sensorbench.benchmarks.factors.options import FactorOptions
from sensorbench.benchmarks.factors.plan import FactorsPlan, check
from sensorbench.benchmarks.factors.run import FactorsBenchmark
from sensorbench.benchmarks.factors.scaling import scaled
from sensorbench.benchmarks.factors.summary import summarise_factors
from sensorbench.errors import FailedError, InterruptedRunError, UsageError
from sensorbench.lifecycle.benchmark import run as run_benchmark
from sensorbench.progress import ProgressReporter
from sensorbench.report import factors_page
from sensorbench.results import read_run
from sensorbench.results.factors import CellMeasurement, FactorsResult, FilledFigures, StepFigures, read_factors
from sensorbench.results.json_schemas import json_schemas
from sensorbench.results.page import Text
from sensorbench.results.summary.factors import FactorsSummary
from sensorbench.studies import FACTOR_STUDIES
from sensorbench.studies.factors import FactorStudy
from sensorbench.toml_file import parse
from tests.conftest import Cli, commands_on

TUNING = FACTOR_STUDIES["cassandra-tuning"]
NULL_FILE = """
title = "Delays"
question = "Which delay is best?"
source = "made up"
database = "null"
source_step = "5m"
step = "1s"
concurrency = 16
rounds = 3
cache = "no cache"
draft_part = "draft"
records = { count = 1000, fields = 1, field_bytes = 10, distribution = "uniform" }
loads.read = { title = "reads", mix = { read = 1 }, shares = [0.5, 1.0] }
parameters = [
  { source = "delay", setting = "delay_ms", default = "100", about = "how long each operation takes" },
  { source = "way", setting = "session", default = "blocking", about = "how the client waits" },
]
[parts.delay]
title = "The delay"
about = "How long each operation takes."
loads = ["read"]
chooses = true
levels = [{ name = "100" }, { name = "5", set = { delay_ms = "5" } }, { name = "1", set = { delay_ms = "1" } }]
[parts.draft]
title = "Drafts"
about = "All at once."
loads = ["read"]
apart = true
levels = [{ name = "default" }, { name = "draft", set = { delay_ms = "5" } }]
"""


def null_file(**changes: Any) -> FactorsFile:
    return parse(NULL_FILE, FactorsFile, Path("null.toml")).model_copy(update=changes)


def null_study(options: Mapping[str, Any] | None = None, file: FactorsFile | None = None) -> FactorsPlan:
    wanted = FactorOptions(scale=0.02, duration=0.4, repetitions=3, seed=1, concurrency=16, rate=40.0)
    return FactorsPlan("delays", file or null_file(), wanted.model_copy(update=options))


def carried_out(wanted: FactorsPlan, folder: Path, *, resume: bool = False) -> FactorsResult:
    run_benchmark(FactorsBenchmark(), wanted, folder, ProgressReporter(quiet=True), resume=resume)
    return read_factors(folder)


# Scaling and cells


def test_sizes_shrink_with_the_data_and_keep_their_distances() -> None:
    large, small = scaled(TUNING.file, 0.1, 300.0), scaled(TUNING.file, 0.001, 30.0)
    sizes = {"key_cache_size": "500MiB", "memtable_heap_space": "512MiB", "jvm.heap": "2048M"}
    assert large.configuration(sizes) == {"key_cache_size": "50MiB", "memtable_heap_space": "51MiB", "jvm.heap": "512M"}
    # The least key cache is 1 MiB, where the default is 92.
    assert small.configuration(sizes) == {"key_cache_size": "5MiB", "memtable_heap_space": "8MiB", "jvm.heap": "512M"}
    assert scaled(TUNING.file, 1.0, 300.0).configuration(TUNING.file.default) == TUNING.file.default


def test_lengths_of_time_shrink_with_steps_and_words_stay() -> None:
    at = scaled(TUNING.file, 0.01, 30.0)
    wanted = {"key_cache_save_period": "4h", "memtable_allocation_type": "heap_buffers", "key_cache_size": "0MiB"}
    assert at.configuration(wanted) == {**wanted, "key_cache_save_period": "1440s", "key_cache_size": "1MiB"}


def test_every_level_that_the_paper_planned_is_measured() -> None:
    """Its plan has 300 MB, 5.5 h and 6 h, which its tables lack; the server takes whole numbers of a unit alone."""
    sizes, periods = (TUNING.file.parts[name].levels for name in ("key-cache-size", "key-cache-save-period"))
    planned = [level.name for level in (*sizes, *periods) if not level.successor]
    assert planned == ["92 MB", "200 MB", "300 MB", "500 MB", "700 MB", "1000 MB", "3 h", "4 h", "5 h", "5.5 h", "6 h"]
    of_period = {level.name: level.set["key_cache_save_period"] for level in periods}
    assert of_period["5.5 h"] == "330m"
    at = scaled(TUNING.file, 0.01, 30.0)
    assert [at.configuration(level.set)["key_cache_save_period"] for level in periods[-2:]] == ["1980s", "2160s"]


def test_levels_that_are_the_same_configuration_under_a_load_are_one_cell() -> None:
    cells = cells_of(TUNING.file, list(TUNING.file.parts), scaled(TUNING.file, 1.0, 300.0))
    shared = next(cell for cell in cells.values() if ("flush-writers", "8") in cell.levels)
    wishes = [("compaction", "size-tiered"), ("compression", "LZ4")]
    assert shared.levels == [
        ("memtable-allocation", "heap buffers"),
        ("flush-writers", "8"),
        ("cleanup-threshold", "0.11"),
        *wishes,
    ]
    mixed = next(cell for cell in cells.values() if ("file-cache", "a quarter of the heap") in cell.levels)
    assert mixed.levels[1:] == wishes
    assert shared.load == "write"
    # Those that compare drafts have their runs to themselves.
    assert {level for cell in cells.values() if cell.apart for level in cell.levels} == {
        (part, level.name) for part in ("draft", "draft-without") for level in TUNING.file.parts[part].levels
    }
    assert list(cells) == sorted(cells, key=lambda name: cells[name].apart)
    assert all(cell.settings == {**TUNING.file.default, **cell.settings} for cell in cells.values())


def test_rates_are_shares_of_what_a_mix_takes() -> None:
    load = FactorLoad(title="", mix={"read": 1.0, "write": 1.0}, shares=[0.5, 1.0])
    # Half reads of 1/1000 s, half writes of 1/4000 s: 1600 a second.
    assert rates_of(load, {"read": 1000.0, "write": 4000.0}) == [800.0, 1600.0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('draft_part = "draft"', 'draft_part = "none"'), "draft_part none: there is no such part"),
        (('loads = ["read"]', 'loads = ["scan"]'), "parts name loads that there are not: scan"),
        (
            (
                "[parts.delay]",
                '[curves]\ntitle = "c"\nabout = "a"\nparts = ["no"]\nfigures = ["hit_rate"]\nprinted_load = "x"\n[parts.delay]',
            ),
            "curves.parts no: there is no such part",
        ),
        (('{ name = "5",', '{ name = "100",'), "parts.delay: two levels have the same name"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(change: tuple[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse(NULL_FILE.replace(*change), FactorsFile, Path("null.toml"))


# Carrying it out


def step_of(rate_per_s: float, figures: Mapping[str, Any]) -> StepFigures:
    """A step with those of these figures that steps have."""
    whole = {"offered": 1, "ok": 1, "error": 0, "timeout": 0, "dropped": 0, "completed_per_s": rate_per_s, **figures}
    return StepFigures(rate_per_s=rate_per_s, **only(StepFigures, whole))


def filled_of(figures: Mapping[str, Any]) -> FilledFigures:
    """Putting the records there, with those of these figures that it has."""
    return FilledFigures(**only(FilledFigures, {"written": 1, "took_s": 1.0, "per_s": 1.0, **figures}))


def only(model: type[StepFigures | FilledFigures], figures: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in figures.items() if name in model.model_fields}


def made_of_delay(bench: Any, cell: Any, rates: Any, folder: Path, *, round_: int, seed: int, **_: Any) -> CellMeasurement:
    """A measurement whose response time is the delay, whatever else this machine does."""
    delay_s = float(cell.settings["delay_ms"]) / 1e3 * (1 + 0.01 * round_)
    steps = [step_of(rate, {"p99_of_offered_s": delay_s}) for rate in rates]
    return CellMeasurement(cell=cell.id, round=round_, outcome="measured", seed=seed, took_s=1.0, steps=steps)


def test_all_levels_are_measured_in_rounds_and_the_best_becomes_a_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factors, "measure", made_of_delay)
    result = carried_out(null_study(), tmp_path / "out")
    assert result.state == "complete"
    levels = ["delay-100", "delay-5", "delay-1", "draft-default", "draft-draft", "draft-own-draft"]
    assert list(result.measurements) == [f"read-{level}" for level in levels]
    assert all([measurement.round for measurement in found] == [1, 2, 3] for found in result.measurements.values())
    assert result.manifest.plan.rates == {"read": [20.0, 40.0]}
    assert best_draft(null_file(), result).changed == {"delay_ms": "1"}
    assert result.manifest.plan.cells["read-draft-own-draft"].settings == {"delay_ms": "1", "session": "blocking"}
    parts = summarise_factors(null_file(), result).result.parts
    assert parts["draft"].levels == ["default", "draft", OWN]
    last = {row.level: row.figures for row in parts["delay"].rows if row.where == 1}
    to_base = last["1"]["p99_of_offered_s"].ratio
    assert to_base is not None
    assert to_base.value == pytest.approx(0.01)
    assert last["5"]["p99_of_offered_s"].value == pytest.approx(0.0051)
    # Cells of a round have the same operations, other rounds others.
    seeds = {(measurement.round, measurement.seed) for found in result.measurements.values() for measurement in found}
    assert len(seeds) == len({seed for _, seed in seeds}) == 3


def test_a_draft_of_few_rounds_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factors, "measure", made_of_delay)
    result = carried_out(null_study({"repetitions": 2}), tmp_path / "out")
    assert best_draft(null_file(), result).choices == []
    assert not any(OWN in level for cell in result.manifest.plan.cells.values() for level in cell.levels)


def test_figures_are_those_of_the_database(tmp_path: Path) -> None:
    result = carried_out(null_study({"repetitions": 1, "parts": ("delay",)}), tmp_path / "out")
    slow, quick = (result.measurements[f"read-delay-{delay}"][0] for delay in (100, 1))
    assert slow.filled.written == quick.filled.written == 20
    assert slow.filled.mean_s >= 0.1
    assert min(step.median_s for step in slow.steps) >= 0.1 > min(step.median_s for step in quick.steps)
    assert [step.offered for step in slow.steps] == [step.offered for step in quick.steps]


def test_measurements_of_format_1_are_read() -> None:
    """Older results have other words, and {} where the records were there before."""
    counts = {"offered": 9, "ok": 6, "error": 0, "timeout": 0, "unstarted": 3}
    step = {"rate_per_s": 9.0, **counts, "completed_per_s": 6.0, "p99_of_due_s": 0.5, "processors": 1.5, "by_operation": {}}
    old = {"cell": "c", "round": 1, "outcome": "measured", "seed": 1, "took_s": 1.0, "filled": {}, "steps": [step]}
    measured = CellMeasurement.model_validate(old)
    assert measured.filled is None
    assert (measured.steps[0].dropped, measured.steps[0].p99_of_offered_s, measured.steps[0].server_cpu) == (3, 0.5, 1.5)
    assert measured.steps[0].load_average is None
    assert CellMeasurement.model_validate_json(measured.model_dump_json()) == measured
    filled = {"written": 2, "took_s": 1.0, "per_s": 2.0, "processors": 0.5}
    assert CellMeasurement.model_validate({**old, "filled": filled}).filled == filled_of({**filled, "server_cpu": 0.5})


def test_rates_follow_from_what_the_default_takes(tmp_path: Path) -> None:
    result = carried_out(null_study({"rate": None, "repetitions": 1, "parts": ("delay",)}), tmp_path / "out")
    # 16 at a time, 100 ms each: 160 a second, and those that were begun at the end.
    assert 80 < result.manifest.plan.reached["read"] <= 210
    reached = result.manifest.plan.reached["read"]
    assert result.manifest.plan.rates["read"] == [float(f"{share * reached:.2g}") for share in (0.5, 1.0)]


def test_work_that_was_interrupted_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, count = factors.measure, 0

    def interrupted(*arguments: Any, **words: Any) -> CellMeasurement:
        nonlocal count
        count += 1
        if count == 3:
            raise KeyboardInterrupt
        return whole(*arguments, **words)

    wanted = null_study({"repetitions": 1, "parts": ("delay",)})
    monkeypatch.setattr(factors, "measure", interrupted)
    with pytest.raises(InterruptedRunError, match="--resume continues"):
        carried_out(wanted, tmp_path / "out")
    before = read_factors(tmp_path / "out")
    assert before.state == "interrupted"
    assert sum(map(len, before.measurements.values())) == 2
    with pytest.raises(UsageError, match="another scale"):
        carried_out(null_study({"repetitions": 1, "parts": ("delay",), "scale": 0.5}), tmp_path / "out", resume=True)
    with pytest.raises(UsageError, match="has the part delay, too; give --part delay"):
        carried_out(null_study({"repetitions": 1, "parts": ("draft",)}), tmp_path / "out", resume=True)
    with pytest.raises(UsageError, match="is not empty"):
        carried_out(wanted, tmp_path / "out")
    # It may be given more rounds.
    after = carried_out(null_study({"repetitions": 2, "parts": ("delay",)}), tmp_path / "out", resume=True)
    assert [len(found) for found in after.measurements.values()] == [2, 2, 2]
    kept = [measurement for found in before.measurements.values() for measurement in found]
    assert all(measurement in after.measurements[measurement.cell] for measurement in kept)
    assert count == 7


def test_a_level_that_cannot_be_measured_is_an_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = factors.measure

    def failing(bench: Any, cell: Any, *arguments: Any, **words: Any) -> CellMeasurement:
        settings = {**cell.settings, **({"delay_ms": "many"} if cell.settings["delay_ms"] == "5" else {})}
        return whole(bench, replace(cell, settings=settings), *arguments, **words)

    monkeypatch.setattr(factors, "measure", failing)
    result = carried_out(null_study({"repetitions": 1, "parts": ("delay",)}), tmp_path / "out")
    outcomes = {name: found[0].outcome for name, found in result.measurements.items()}
    assert outcomes == {"read-delay-100": "measured", "read-delay-5": "failed", "read-delay-1": "measured"}
    assert "many" in str(result.measurements["read-delay-5"][0].reason)
    warnings = {caveat.kind: caveat.text for caveat in summarise_factors(null_file(), result).warnings}
    assert "1 measurement failed; the first (read-delay-5)" in warnings["failed"]
    monkeypatch.undo()
    again = carried_out(null_study({"repetitions": 1, "parts": ("delay",)}), tmp_path / "out", resume=True)
    assert {found[0].outcome for found in again.measurements.values()} == {"measured"}


def test_a_default_that_takes_nothing_ends_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factors, "probe", fails)
    with pytest.raises(FailedError, match="took no reads"):
        carried_out(null_study({"rate": None}), tmp_path / "out")
    assert read_factors(tmp_path / "out").state == "failed"


def fails(*_: object) -> dict[str, float]:
    raise FailedError("the default configuration took no reads in 1 s")


def test_settings_that_the_server_does_not_know_are_refused_before_anything_is_started(tmp_path: Path) -> None:
    file = null_file(parameters=[*null_file().parameters, null_file().parameters[0].model_copy(update={"setting": "spleen"})])
    with pytest.raises(UsageError, match="delays, spleen: null does not know it"):
        check(null_study(file=file))
    with pytest.raises(UsageError, match="--part none: study delays has the parts delay, draft"):
        check(null_study({"parts": ("none",)}))


def test_the_version_in_use_knows_all_settings_of_the_study() -> None:
    check(FactorsPlan(TUNING.name, TUNING.file, FactorOptions(scale=0.01)))


# The command


def test_the_study_is_listed_and_shown(cli: Cli) -> None:
    shown = cli("study", "show", "cassandra-tuning", "--json").json
    assert [claim["id"] for claim in shown["claims"]] == [f"TUN-{number}" for number in range(1, 33)]
    told = cli("study", "show", "cassandra-tuning").out
    assert "file_cache_size_in_mb" in told
    assert "deprecated" in told


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--part", "none"], "--part none: study cassandra-tuning has the parts key-cache-size"),
        (["--schema", "star"], "No such option: --schema"),
        (
            ["--target", "redis"],
            "--target redis: study cassandra-tuning starts servers with the settings that it tries; expected cassandra",
        ),
        (["--target", "cassandra?consistency=some"], "consistency=some"),
        (["--scale", "0"], "--scale 0: expected a number above 0"),
        (["--duration", "long"], "--duration 'long': expected a length of time"),
        (["--rate", "-5"], "--rate -5: expected a number of operations per second"),
        (["--resume"], "--resume: name the folder of the results"),
    ],
)
def test_what_makes_no_sense_is_refused(cli: Cli, options: list[str], said: str) -> None:
    ended = cli("study", "run", "cassandra-tuning", *options)
    assert ended.exit_code == 2
    assert said in " ".join(ended.err.split())


def about(summary: FactorsSummary) -> str:
    """What the page says first."""
    first = factors_page(summary).head[0]
    assert isinstance(first, Text)
    return str(first.line)


def test_results_are_reported_again(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    carried_out(null_study({"repetitions": 1, "parts": ("delay",)}), out)
    monkeypatch.setitem(FACTOR_STUDIES, "delays", FactorStudy("delays", null_file(), (), {}))
    summary, page = FACTORS.write(out)
    written = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert FactorsSummary.model_validate(written) == summary
    jsonschema.validate(written, json_schemas()["factors-summary"])
    jsonschema.validate(json.loads((out / "manifest.json").read_text(encoding="utf-8")), json_schemas()["factors-manifest"])
    assert (written["format"], written["kind"], written["variants"]) == (2, "factors", [])
    assert "The delay" in page.read_text(encoding="utf-8")
    assert "on a fresh cluster, 1 round. " in about(summary)
    interrupted = summary.model_copy(update={"result": summary.result.model_copy(update={"rounds": 5, "looks": [3, 5]})})
    assert "on a fresh cluster, 1 of up to 5 rounds. " in about(interrupted)
    assert (out / "charts" / "importance.svg").exists()
    assert commands_on(page) == [summary.command]
    assert "No level can be called better or worse" in cli("report", out, "--no-open").out
    assert cli("claims", out, "--json").json == []


# On a cluster


@pytest.mark.cluster
def test_factors_of_cassandra_are_measured_on_fresh_clusters_of_three_nodes(lab_home: Path, tmp_path: Path) -> None:
    """One level of reads that come again after a restart, with the cache saved meanwhile, and one of writes."""
    file = TUNING.file
    levels = {"key-cache-save-period": "1 h", "flush-writers": "10"}
    parts = {
        name: part.model_copy(update={"levels": [part.level(levels[name])]}) if name in levels else part
        for name, part in file.parts.items()
    }
    # 30 s at this step's length.
    later = {name: "30m" if load.again_after else None for name, load in file.loads.items()}
    loads = {
        name: load.model_copy(update={"shares": load.shares[-1:], "again_after": later[name]})
        for name, load in file.loads.items()
    }
    small = file.model_copy(update={"parts": parts, "loads": loads})
    options = FactorOptions(scale=0.00004, duration=5.0, repetitions=1, seed=1, concurrency=32, parts=tuple(levels), rate=150.0)
    result = carried_out(FactorsPlan(TUNING.name, small, options), tmp_path / "out")
    (restarted,), (written,) = result.measurements.values()
    assert (restarted.outcome, written.outcome) == ("measured", "measured"), (restarted.reason, written.reason)
    # Adding is what writes measure; nodes for reads start with records that were added before.
    assert (written.data_of, written.filled.written) == (None, 2000)
    assert (restarted.data_of, restarted.filled) == ("templates/restart-key-cache-save-period-1-h/round-1", None)
    shared = read_run(tmp_path / "out" / restarted.data_of).manifest
    assert sum(phase.operations["insert"]["counts"]["ok"] for phase in shared.phase_figures) == 2000
    once, again = restarted.steps
    assert min(once.ok, again.ok) > 0.5 * 150 * 5.0
    assert once.hit_rate is not None
    assert min(once.load_average, again.load_average, written.filled.load_average) > 0.0
    # How many there were in these two seconds depends on the machine; that there were some, the files say.
    assert written.filled.flushes_per_s is not None
    assert written.filled.sstables > 0
    # What the servers say of their own settings is what was wished for.
    folder = tmp_path / "out" / "cells" / "write-flush-writers-10" / "round-1" / "populate"
    told = read_run(folder).manifest.description["settings"]
    assert told["memtable_flush_writers"] == "10"
    assert told["memtable_cleanup_threshold"] == "0.11"
    assert told["key_cache_size"] == "1MiB"
    assert (told["nodes"], told["replication"]) == ("3", "3")
    assert not [instance for instance in lab.read_instances() if not instance.stays]
