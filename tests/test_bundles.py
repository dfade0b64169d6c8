"""Bundles: what is in them, frauds that are rejected with the reason, and honest results that are not."""

import io
import json
import shutil
import stat
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from sensorbench.app.bundle import verify
from sensorbench.bundles.checks.generator import arrivals, kinds
from sensorbench.bundles.contents import without_secrets
from sensorbench.bundles.figures import differences
from sensorbench.results.block_sums import BLOCK_SUMS_FILE, SAMPLED_FILE
from sensorbench.results.bundle import read_entry, read_index
from sensorbench.results.checksums import new_checksum_of
from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.results.summary.envelope import Caveat
from sensorbench.schemas import shipped_schemas
from tests.conftest import Cli, forget_checksums, made_once, run_main
from tests.forging import bundle_of, edit_json, forged, runs_in, set_column
from tests.programs import have_ssh_keygen

# Two variants at a rate, after a warm-up: what there is to forge.
OPEN_LOOP = """
dataset = "beijing-air-quality"
scale = 0.002
[[target]]
url = "sqlite"
schema = "natural"
[[target]]
url = "fjall"
schema = "by_sensor"
[workload]
mix = { get_sensor_data = 1, get_peak_data = 1 }
schedule = { rate = 1000, arrival = "poisson" }
operations = 400
warmup = "150ms"
"""
# The same variant twice, in a closed loop without a warm-up: its files lie in the system's cache.
CLOSED_LOOP = """
dataset = "beijing-air-quality"
scale = 0.002
[[target]]
url = "sqlite:{folder}/a.db"
schema = "natural"
[[target]]
url = "sqlite:{folder}/b.db"
schema = "natural"
[workload]
mix = {{ get_sensor_data = 1 }}
operations = 60
"""
# A rate at which no operation begins in so short a warm-up.
IDLE_WARMUP = """
dataset = "beijing-air-quality"
scale = 0.002
[[target]]
url = "sqlite"
schema = "natural"
[workload]
mix = { get_sensor_data = 1 }
schedule = { rate = 40, arrival = "poisson" }
operations = 20
warmup = "1ms"
"""
# Averages, which are compared within a tolerance, and more answers than have a reference.
AVERAGES = """
dataset = "tsbs-cpu-only:hosts=3,duration=13h"
operations = "tsbs_cpu"
[[target]]
url = "sqlite"
schema = "wide"
[[target]]
url = "duckdb"
schema = "wide"
[workload]
mix = { double-groupby-1 = 1 }
operations = 60
"""
SQLITE, FJALL = "sqlite-natural", "fjall-by_sensor"
Place = Callable[[Path], None]


@pytest.fixture(scope="session")
def open_loop_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    experiment = tmp_path_factory.mktemp("open-loop") / "experiment.toml"
    experiment.write_text(OPEN_LOOP, encoding="utf-8")
    return made_once(tmp_path_factory, "open-loop", "run", experiment, "--no-open")


@pytest.fixture(scope="session")
def open_loop(open_loop_results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of two variants in an open loop."""
    return made_bundle(open_loop_results, tmp_path_factory)


@pytest.fixture(scope="session")
def same_twice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of a comparison of a variant with itself, which was interrupted and resumed."""
    folder = tmp_path_factory.mktemp("same-twice")
    out = folder / "same-twice"
    (folder / "experiment.toml").write_text(CLOSED_LOOP.format(folder=folder), encoding="utf-8")
    assert run_main(("run", folder / "experiment.toml", "--no-open", "--out", out)) == 0
    run = min(out.rglob("run-2"))
    edit_json(run / "manifest.json", lambda manifest: manifest.update(status="interrupted"))
    edit_json(out / "manifest.json", lambda manifest: manifest.update(status="interrupted"))
    forget_checksums(out)
    assert run_main(("run", folder / "experiment.toml", "--no-open", "--out", out, "--resume")) == 0
    return made_bundle(out, tmp_path_factory)


def made_bundle(results: Path, factory: pytest.TempPathFactory) -> Path:
    out = factory.mktemp("bundle") / f"{results.name}.sbz"
    assert run_main(("bundle", results, "--out", out, "-q")) == 0
    return out


# Frauds. Each forger computes the summary and all checksums again.


def result_cache(unpacked: Path) -> None:
    """A repeated question is answered in a hundredth of the time."""
    for run in runs_in(unpacked, SQLITE):
        hashes = {
            (row["phase"], row["operation"], row["k"]): row["hash"] for row in pq.read_table(run / "answers.parquet").to_pylist()
        }
        seen: set[object] = set()
        starts = []
        for row in pq.read_table(run / SAMPLED_FILE).sort_by([("phase", "ascending"), ("k", "ascending")]).to_pylist():
            question = (row["operation"], hashes[row["phase"], row["operation"], row["k"]])
            took = row["end_ns"] - row["intended_start_ns"]
            starts.append(row["end_ns"] - (took // 100 if question in seen else took))
            seen.add(question)
        pq.write_table(
            pq.read_table(run / SAMPLED_FILE).sort_by([("phase", "ascending"), ("k", "ascending")]), run / SAMPLED_FILE
        )
        set_column(run / SAMPLED_FILE, "start_ns", starts)


def missing_rows(unpacked: Path) -> None:
    def change(load: dict[str, Any]) -> None:
        load["readings"] = round(load["readings"] * 0.9)
        load["rows"] -= load["tables"][-1]["rows"] - round(load["tables"][-1]["rows"] * 0.9)
        load["tables"][-1]["rows"] = round(load["tables"][-1]["rows"] * 0.9)

    edit_json(unpacked / "results/experiments" / SQLITE / "load.json", change)


def missing_rows_in_answers(unpacked: Path) -> None:
    """Answers lack rows, but say that they have none too few: the forger leaves out those that would differ."""
    for run in runs_in(unpacked, SQLITE):
        answers = pq.read_table(run / "answers.parquet")
        pq.write_table(answers.slice(0, answers.num_rows - 9), run / "answers.parquet")


def warm_as_cold(unpacked: Path) -> None:
    for run in runs_in(unpacked):
        edit_json(run / "manifest.json", lambda manifest: manifest.update(temperature="cold"))


def edited_latency(unpacked: Path) -> None:
    for run in runs_in(unpacked, SQLITE):
        set_column(run / BLOCK_SUMS_FILE, "value_ns", pq.read_table(run / BLOCK_SUMS_FILE)["value_ns"].to_numpy() * 4 // 5)


def edited_figure(unpacked: Path) -> None:
    def change(summary: dict[str, Any]) -> None:
        figure = summary["result"]["figures"][0]["latency_s"]["median"]
        figure["value"] *= 0.9

    edit_json(unpacked / "results/summary.json", change)


def dropped_run(unpacked: Path) -> None:
    shutil.rmtree(runs_in(unpacked, SQLITE)[-1])


def dropped_repetition(unpacked: Path) -> None:
    for variant in (SQLITE, FJALL):
        shutil.rmtree(runs_in(unpacked, variant)[-1])
    edit_json(unpacked / "results/manifest.json", lambda manifest: manifest["plan"]["workload"].update(repetitions=2))


def swapped_variants(unpacked: Path) -> None:
    """The runs of each variant are filed as those of the other."""
    manifests = {
        name: json.loads((runs_in(unpacked, name)[0] / "manifest.json").read_bytes())["variant"] for name in (SQLITE, FJALL)
    }
    experiments = unpacked / "results/experiments"
    for number in (1, 2, 3):
        left, right, aside = (experiments / name / f"run-{number}" for name in (SQLITE, FJALL, "aside"))
        aside.parent.mkdir(exist_ok=True)
        left.rename(aside)
        right.rename(left)
        aside.rename(right)
        for place, name in ((left, SQLITE), (right, FJALL)):
            edit_json(place / "manifest.json", lambda manifest, name=name: manifest.update(variant=manifests[name]))  # type: ignore[misc]


def changed_seed(unpacked: Path) -> None:
    for run in runs_in(unpacked):
        edit_json(run / "manifest.json", lambda manifest: manifest.update(seed=12345))
    edit_json(unpacked / "results/manifest.json", lambda manifest: manifest["plan"]["workload"].update(seed=12345))


def other_schema_file(unpacked: Path) -> None:
    (file,) = unpacked.glob("schemas/*/natural.toml")
    file.write_text(file.read_text(encoding="utf-8") + "# tuned\n", encoding="utf-8")


def other_statement(unpacked: Path) -> None:
    """The forger also notes the SHA-256 of the other file as that of loading."""
    (file,) = unpacked.glob("schemas/*/natural.toml")
    text = file.read_text(encoding="utf-8")
    assert "SELECT" in text
    file.write_text(text.replace("SELECT", "SELECT /* quick */"), encoding="utf-8")
    load = unpacked / "results/experiments" / SQLITE / "load.json"
    edit_json(load, lambda said: said.update(schema_sha256=new_checksum_of(file)))


def clipped_tail(unpacked: Path) -> None:
    """All that is above the 97th percentile is cut to it, in block sums and in sampled operations."""
    for run in runs_in(unpacked, SQLITE):
        values = pq.read_table(run / BLOCK_SUMS_FILE)["value_ns"].to_numpy()
        top = int(np.quantile(values, 0.97))
        set_column(run / BLOCK_SUMS_FILE, "value_ns", np.minimum(values, top))
        table = pq.read_table(run / SAMPLED_FILE)
        due, end = (table[name].to_numpy().astype(np.int64) for name in ("intended_start_ns", "end_ns"))
        set_column(run / SAMPLED_FILE, "end_ns", np.minimum(end, due + top))


FRAUDS: dict[str, tuple[Place, str]] = {
    "a cache of results": (result_cache, "result cache:"),
    "missing rows": (missing_rows, "rows:"),
    "missing answers": (missing_rows_in_answers, "answers:"),
    "warm as cold": (warm_as_cold, "warm-up:"),
    "edited latency": (edited_latency, "latencies:"),
    "a dropped run": (dropped_run, "runs:"),
    "a dropped repetition": (dropped_repetition, "runs:"),
    "swapped variants": (swapped_variants, "variants:"),
    "another seed": (changed_seed, "questions:"),
    "another schema file": (other_schema_file, "schema file:"),
    "another statement": (other_statement, "schema file:"),
    "a clipped tail": (clipped_tail, "latencies:"),
}


@pytest.mark.parametrize("name", FRAUDS)
def test_a_fraud_is_rejected_with_the_reason(open_loop: Path, tmp_path: Path, name: str) -> None:
    forge, reason = FRAUDS[name]
    found = verify(forged(open_loop, tmp_path, forge))
    assert not found.is_sound
    assert any(str(problem).startswith(reason) for problem in found.problems), found.problems
    # The forger left no other trace in files and figures: it is this check that finds it.
    assert not any(problem.check in {"files", "figures", "records"} for problem in found.problems), found.problems


def test_an_edited_figure_is_named(cli: Cli, open_loop: Path, tmp_path: Path) -> None:
    ended = cli("verify", forged(open_loop, tmp_path, edited_figure, is_summarised=False))
    assert ended.exit_code == 1
    assert "latency_s.median.value" in ended.err


def test_another_wording_is_no_difference_but_another_number_is(summary: dict[str, Any]) -> None:
    def warned(text: str) -> ComparisonSummary:
        caveat = Caveat(kind="client-bound", variant="sqlite-star", text=text, action="Give it more CPUs.")
        return ComparisonSummary.model_validate(summary).model_copy(update={"warnings": [caveat]})

    stored = warned("The client kept 0.82 processors busy.")
    assert differences(stored, warned("The client kept 0.82 CPUs busy.")) == []
    (found,) = differences(stored, warned("The client kept 0.28 CPUs busy."))
    assert found.path == "warnings[sqlite-star].text"


@pytest.mark.parametrize("key", ["text", "note"])
def test_a_claim_may_be_worded_otherwise_but_its_numbers_are_compared(summary: dict[str, Any], key: str) -> None:
    def judged(words: str) -> ComparisonSummary:
        first, *others = summary["claims"]
        return ComparisonSummary.model_validate({**summary, "claims": [{**first, key: words}, *others]})

    stored = judged("It takes 2 processors.")
    assert differences(stored, judged("It takes 2 CPUs.")) == []
    (found,) = differences(stored, judged("It takes 3 CPUs."))
    assert found.path == f"claims[{summary['claims'][0]['id']}].{key}"


def test_a_closed_loop_does_not_pass_for_an_open_one(same_twice: Path, tmp_path: Path) -> None:
    pace = {"arrival": "constant", "segments": [{"from_per_s": 1000.0}]}

    def forge(unpacked: Path) -> None:
        schedule = {"rate": 1000.0, "concurrency": 32, "segments": [], "arrival": "constant"}
        edit_json(unpacked / "results/manifest.json", lambda said: said["plan"]["workload"].update(schedule=schedule))
        for run in runs_in(unpacked):
            edit_json(run / "manifest.json", lambda said: [phase.update(pace=pace) for phase in said["plan"]["phases"]])  # type: ignore[arg-type, return-value]

    problems = verify(forged(same_twice, tmp_path, forge)).problems
    assert any(problem.check == "schedule" and "closed loop" in problem.text for problem in problems), problems


def test_a_warm_run_without_a_warmup_does_not_pass_for_cold(same_twice: Path, tmp_path: Path) -> None:
    problems = verify(forged(same_twice, tmp_path, warm_as_cold)).problems
    assert {problem.check for problem in problems} == {"warm-up"}


# Honest results.


def test_honest_bundles_are_sound(open_loop: Path, same_twice: Path, study_folder: Path, cli: Cli, tmp_path: Path) -> None:
    """At a rate; a variant against itself, interrupted and resumed, with its files in the system's cache; a study."""
    assert cli("bundle", study_folder, "--out", tmp_path / "study.sbz", "--with-operations").exit_code == 0
    for bundle in (open_loop, same_twice, tmp_path / "study.sbz"):
        ended = cli("verify", bundle, "--json")
        assert ended.exit_code == 0, ended.err
        assert ended.json["is_sound"]
        assert ended.json["figures"] > 100
        assert "load times and rates" in ended.json["unverified"]


def test_a_warmup_in_which_nothing_began_makes_no_run_hot(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    """Its bundle is sound; that of the same results which say *hot* is not."""
    experiment, results = tmp_path / "experiment.toml", tmp_path / "idle-warm-up"
    experiment.write_text(IDLE_WARMUP, encoding="utf-8")
    assert run_main(("run", experiment, "--no-open", "-q", "--out", results)) == 0
    bundle = made_bundle(results, tmp_path_factory)
    assert verify(bundle).is_sound

    def as_hot(unpacked: Path) -> None:
        for run in runs_in(unpacked):
            edit_json(run / "manifest.json", lambda manifest: manifest.update(temperature="hot"))

    problems = verify(forged(bundle, tmp_path, as_hot)).problems
    assert {problem.check for problem in problems} == {"warm-up"}, problems


def test_of_many_values_some_are_kept_for_all_variants_and_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment, results, whole, thinned = (tmp_path / name for name in ("averages.toml", "results", "whole.sbz", "thinned.sbz"))
    experiment.write_text(AVERAGES, encoding="utf-8")
    assert run_main(("run", experiment, "--no-open", "-q", "--out", results)) == 0
    assert run_main(("bundle", results, "--out", whole, "-q")) == 0
    monkeypatch.setattr("sensorbench.bundles.contents.VALUES_OF_ALL", 3_000)
    assert run_main(("bundle", results, "--out", thinned, "-q")) == 0
    index = read_index(thinned)
    assert read_index(whole).answers_without_values == 0 < index.answers_without_values
    assert index.unverifiable == read_index(whole).unverifiable
    found = verify(thinned)
    assert found.is_sound, found.problems
    left_out = f"values within a tolerance of {index.answers_without_values:,} answers, which are left out"
    assert left_out in found.unverified
    assert left_out not in verify(whole).unverified

    def kept(unpacked: Path) -> tuple[Path, list[list[float] | None]]:
        run = runs_in(unpacked)[0]
        return run / "answers.parquet", pq.read_table(run / "answers.parquet")["computed"].to_pylist()

    def other_value(unpacked: Path) -> None:
        """One of those that are kept."""
        file, values = kept(unpacked)
        place = next(place for place, value in enumerate(values) if value)
        values[place] = [1e9] * len(values[place] or [])
        set_column(file, "computed", values)

    problems = verify(forged(thinned, tmp_path, other_value, is_summarised=False)).problems
    assert {problem.check for problem in problems} == {"figures"}, problems


def test_equal_results_make_equal_bundles(cli: Cli, open_loop: Path, open_loop_results: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.sbz"
    assert cli("bundle", open_loop_results, "--out", again).exit_code == 0
    assert again.read_bytes() == open_loop.read_bytes()
    refused = cli("bundle", open_loop_results, "--out", again)
    assert (refused.exit_code, "--replace" in refused.err) == (2, True)
    assert cli("bundle", open_loop_results, "--out", again, "--replace").exit_code == 0
    mine = tmp_path / "mine.sbz"
    mine.write_text("mine", encoding="utf-8")
    assert cli("bundle", open_loop_results, "--out", mine, "--replace").exit_code == 2
    assert mine.read_text(encoding="utf-8") == "mine"


def test_a_bundle_says_what_is_in_it(open_loop: Path) -> None:
    index = read_index(open_loop)
    assert index.unverifiable == []
    crate = json.loads(read_entry(open_loop, "ro-crate-metadata.json"))
    assert crate["@context"] == "https://w3id.org/ro/crate/1.1/context"
    (root,) = [entity for entity in crate["@graph"] if entity["@id"] == "./"]
    described = {entity["@id"] for entity in crate["@graph"]}
    assert {part["@id"] for part in root["hasPart"]} <= described
    assert {file.path for file in index.files} <= described | {"ro-crate-metadata.json"}
    assert not any(file.path.rpartition("/")[2] == "operations.parquet" for file in index.files)


def test_answers_are_in_the_order_of_their_numbers(open_loop: Path) -> None:
    """That takes a fraction of the space of the order in which they came."""
    files = [file.path for file in read_index(open_loop).files if file.path.endswith("/answers.parquet")]
    assert len(files) > 1
    for path in files:
        answers = pq.read_table(io.BytesIO(read_entry(open_loop, path)))
        assert answers.num_rows > 10
        assert answers.equals(answers.sort_by([(column, "ascending") for column in ("phase", "operation", "k")]))


def test_a_schema_file_that_was_changed_since_is_refused(cli: Cli, tmp_path: Path) -> None:
    schema, experiment = tmp_path / "own.toml", tmp_path / "experiment.toml"
    shutil.copyfile(shipped_schemas("sensors", "sqlite")["natural"], schema)
    experiment.write_text(
        OPEN_LOOP.partition("[[target]]")[0]
        + f'[[target]]\nurl = "sqlite"\nschema = "{schema}"\n[workload]\nmix = {{ get_sensor_data = 1 }}\noperations = 5\nrepetitions = 1\n',
        encoding="utf-8",
    )
    assert cli("run", experiment, "--no-open", "--out", tmp_path / "out").exit_code == 0
    schema.write_text(schema.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    ended = cli("bundle", tmp_path / "out", "--out", tmp_path / "x.sbz")
    assert ended.exit_code == 2
    assert "was changed since it was run" in ended.err
    assert not (tmp_path / "x.sbz").exists()


# Signatures.


def test_a_signature_is_of_an_allowed_signer(
    cli: Cli, open_loop_results: Path, open_loop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    have_ssh_keygen(monkeypatch)
    for name in ("mine", "other"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", tmp_path / name], check=True)
        allowed = f"{name}@lab {(tmp_path / f'{name}.pub').read_text(encoding='utf-8')}"
        (tmp_path / f"{name}.signers").write_text(allowed, encoding="utf-8")
    signed = tmp_path / "signed.sbz"
    assert cli("bundle", open_loop_results, "--out", signed, "--sign", tmp_path / "mine").exit_code == 0
    ended = cli("verify", signed, "--allowed-signers", tmp_path / "mine.signers", "--json")
    assert (ended.exit_code, ended.json["signer"]) == (0, "mine@lab"), ended.err
    for bundle, signers, reason in (
        (signed, "other.signers", "none of the signers"),
        (open_loop, "mine.signers", "is not signed"),
        (forged(signed, tmp_path, other_schema_file), "mine.signers", "is wrong"),
    ):
        ended = cli("verify", bundle, "--allowed-signers", tmp_path / signers)
        assert (ended.exit_code, reason in " ".join(ended.err.split())) == (1, True), ended.err
    assert cli("verify", signed, "--allowed-signers", tmp_path / "none").exit_code == 2


# What is not safe to open, or damaged.


def test_what_is_no_bundle_is_not_opened(cli: Cli, tmp_path: Path) -> None:
    bomb = bundle_of({"results/zeros.json": b"0" * (8 << 20)}, tmp_path / "bomb.sbz")
    outside = bundle_of({"results/../../outside.json": b"{}"}, tmp_path / "outside.sbz")
    windows = bundle_of({"results/..\\outside.json": b"{}"}, tmp_path / "windows.sbz")
    link = tmp_path / "link.sbz"
    with zipfile.ZipFile(link, "w") as archive:
        entry = zipfile.ZipInfo("results/link.json")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, "/etc/passwd")
    text, empty = tmp_path / "text.sbz", tmp_path / "empty.sbz"
    text.write_text("no zip", encoding="utf-8")
    with zipfile.ZipFile(empty, "w"):
        pass
    for path, reason in (
        (bomb, "grows more than"),
        (outside, "is not a path inside"),
        (windows, "is not a path inside"),
        (link, "is a link"),
        (text, "cannot be read as a bundle"),
        (empty, "it has no bundle.json"),
        (tmp_path / "absent.sbz", "cannot be read as a bundle"),
    ):
        ended = cli("verify", path)
        assert (ended.exit_code, reason in " ".join(ended.err.split())) == (2, True), ended.err
    pointing = tmp_path / "pointing.sbz"
    content = json.loads(read_entry(bundle_of({}, pointing), "bundle.json"))
    with zipfile.ZipFile(pointing, "w") as archive:
        archive.writestr("bundle.json", json.dumps({**content, "schema_files": {"a": "../../secret.toml"}}))
    ended = cli("verify", pointing)
    assert (ended.exit_code, "is not among its files" in " ".join(ended.err.split())) == (2, True), ended.err
    assert not (tmp_path / "outside.json").exists()
    assert not (tmp_path.parent / "outside.json").exists()


def test_a_file_that_is_not_what_the_index_says_is_named(cli: Cli, open_loop: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed.sbz"
    with zipfile.ZipFile(open_loop) as archive, zipfile.ZipFile(changed, "w") as other:
        for entry in archive.infolist():
            content = archive.read(entry)
            other.writestr(entry.filename, content + b" " if entry.filename == "results/manifest.json" else content)
        other.writestr("results/more.json", "{}")
    ended = cli("verify", changed)
    assert ended.exit_code == 1
    assert "results/manifest.json" in ended.err
    assert "results/more.json: the index does not list it" in ended.err


def test_secrets_do_not_go_into_bundles() -> None:
    text = '{"url": "postgresql://me:secret@db.example/power?tls=on&password=hidden&a=1", "see": "https://example.org/@x"}'
    assert without_secrets(text) == (
        '{"url": "postgresql://db.example/power?tls=on&password=…&a=1", "see": "https://example.org/@x"}'
    )


# The seed.


def test_kinds_and_arrivals_are_those_of_the_engine(open_loop_results: Path) -> None:
    run = open_loop_results / "experiments" / SQLITE / "run-1"
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    rows = pq.read_table(run / "operations.parquet").sort_by("k").to_pylist()
    for number, phase in enumerate(manifest["totals"]["phases"]):
        own = [row for row in rows if row["phase"] == number]
        numbers = np.array([row["k"] for row in own], dtype=np.uint64)
        assert len(numbers)
        assert kinds([1.0, 1.0], "random", manifest["seed"], number, numbers).tolist() == [row["operation"] for row in own]
        due = phase["start_ns"] + arrivals(manifest["plan"]["phases"][number]["pace"], manifest["seed"], number, numbers)
        assert np.abs(due - [row["intended_start_ns"] for row in own]).max() <= 1.0
        assert kinds([1.0, 1.0], "random", 12345, number, numbers).tolist() != [row["operation"] for row in own]
    assert kinds([2.0, 1.0, 0.0], "in turn", 1, 0, np.arange(6, dtype=np.uint64)).tolist() == [0, 0, 1, 0, 0, 1]
