"""The public Python API: results as typed objects, runs and comparisons without a command line, the package's own errors."""

import builtins
import doctest
import inspect
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import sensorbench as sb
from sensorbench.runner import ExperimentOptions
from tests.conftest import Cli, forget_checksums

EXAMPLE = Path(__file__).parent.parent / "docs" / "example"
LARGE = {"altair", "vl_convert", "scipy", "duckdb", "pyarrow", "numpy", "jinja2", "pandas", "pydantic", "typer", "rich"}
SMALL: dict[str, Any] = {"datasets": ["beijing-air-quality"], "scale": 0.005, "operations": 20}
ALONE: dict[str, Any] = {**SMALL, "targets": ["sqlite"], "schemas": ["natural"]}


@pytest.fixture(scope="module")
def results(study_folder: Path) -> sb.ComparisonResults:
    found = sb.read(study_folder)
    assert isinstance(found, sb.ComparisonResults)
    return found


@pytest.fixture
def in_folder(study_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as examples find it: results of the study `iot`, and the files of the worked example."""
    (tmp_path / "results").mkdir()
    shutil.copytree(study_folder, tmp_path / "results" / "iot", ignore=shutil.ignore_patterns("data"))
    shutil.copytree(EXAMPLE, tmp_path / "example")
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Importing.


def test_importing_the_package_imports_nothing_large() -> None:
    command = [sys.executable, "-c", "import sys, sensorbench; dir(sensorbench); print(*sys.modules)"]
    imported = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "sensorbench" in imported
    assert {name.partition(".")[0] for name in imported} & LARGE == set()
    assert not [name for name in imported if name.startswith("sensorbench.")]


def test_a_name_that_is_not_there_is_said_as_python_does() -> None:
    with pytest.raises(AttributeError, match="nothing_like_this"):
        sb.nothing_like_this  # type: ignore[attr-defined]  # noqa: B018
    assert sb.__version__


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(sb.__file__).parent / "py.typed").is_file()


# Examples and what they document.


def public_objects() -> dict[str, Any]:
    """All that is public, and the public methods of its classes, by name."""
    found: dict[str, Any] = {}
    for name in sb.__all__:
        value = getattr(sb, name)
        found[name] = value
        if inspect.isclass(value) and value.__module__.startswith("sensorbench.api"):
            found |= {
                f"{name}.{key}": member for key, member in vars(value).items() if not key.startswith("_") and callable_of(member)
            }
    return found


def callable_of(member: object) -> Any:
    """The function of a method; None for what is none."""
    member = member.__func__ if isinstance(member, classmethod | staticmethod) else member
    return member if inspect.isfunction(member) else None


def examples_of(name: str, value: object) -> list[doctest.DocTest]:
    text = inspect.getdoc(callable_of(value) or value) or ""
    parsed = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    return [parsed] if parsed.examples else []


EXAMPLES = {name: test for name, value in public_objects().items() for test in examples_of(name, value)}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_give_what_they_show(name: str, in_folder: Path) -> None:
    said: list[str] = []
    failed, tried = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(EXAMPLES[name], out=said.append, clear_globs=False)
    assert tried > 0
    assert failed == 0, "".join(said)


def undocumented(name: str, value: object) -> list[str]:
    """What the docstring of something public does not say."""
    function = callable_of(value)
    text = inspect.getdoc(function or value) or ""
    lacking = [] if text else ["a docstring"]
    if function is None:
        return lacking
    signature = inspect.signature(function)
    arguments = [parameter for parameter in signature.parameters.values() if parameter.name not in ("self", "cls")]
    section = text.partition("Args:")[2].partition("Returns:")[0]
    lacking += [parameter.name for parameter in arguments if f"{parameter.name}: " not in section]
    return lacking + (["Returns"] if "Returns:" not in text and signature.return_annotation not in (None, "None") else [])


INHERITED = {"MeasuredResults.operation_batches"}


@pytest.mark.parametrize("name", sorted(set(public_objects()) - INHERITED))
def test_all_that_is_public_is_documented(name: str) -> None:
    assert undocumented(name, public_objects()[name]) == []


def test_every_public_name_is_shown_in_an_example() -> None:
    shown = "\n".join(example.source for test in EXAMPLES.values() for example in test.examples)
    errors = {name for name in sb.__all__ if name.endswith("Error")}
    page = (Path(__file__).parent.parent / "docs" / "python-api.md").read_text(encoding="utf-8")
    assert {name for name in set(sb.__all__) - errors if name not in EXAMPLES and f"sb.{name}" not in shown} == {
        "ComparedOperation"
    }
    assert {name for name in errors | {"ComparedOperation"} if f"`{name}`" not in page} == set()


# Results.


def test_operations_are_all_that_was_measured(results: sb.ComparisonResults, study_folder: Path) -> None:
    table = results.operations()
    assert table.num_rows == 4 * 3 * 120
    assert set(table["phase"].to_pylist()) == {"measure"}
    logged = pq.read_table(study_folder / "experiments" / "sqlite-star" / "run-2" / "operations.parquet")
    run = results.operations(variants=["sqlite-star"], repetitions=[2])
    assert run["k"].to_pylist() == logged.filter(pc.equal(logged["phase"], 0))["k"].to_pylist()
    assert run["end_ns"].to_pylist() == logged["end_ns"].cast(pa.int64()).to_pylist()
    response = pc.subtract(run["end_ns"], run["intended_start_ns"])
    assert run["response_time_s"].to_pylist() == pytest.approx([value / 1e9 for value in response.to_pylist()])


def test_operations_of_a_name_are_selected(results: sb.ComparisonResults) -> None:
    table = results.operations(operations=["get_peak_data"], repetitions=[1, 3])
    assert set(table["operation"].to_pylist()) == {"get_peak_data"}
    assert set(table["repetition"].to_pylist()) == {1, 3}
    whole = results.operations().filter(pc.equal(results.operations()["operation"].cast(pa.string()), "get_peak_data"))
    assert 0 < table.num_rows < whole.num_rows


def test_batches_are_the_same_rows_some_at_a_time(results: sb.ComparisonResults) -> None:
    batches = list(results.operation_batches(rows=50))
    assert max(batch.num_rows for batch in batches) <= 50
    assert pa.Table.from_batches(batches).equals(results.operations())


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ({"variants": ["mine"]}, "variants: there is no 'mine'; expected one of sqlite-star"),
        ({"variants": "sqlite-star"}, r"expected a list of names, as in variants=\['sqlite-star'\]"),
        ({"repetitions": [4]}, "repetitions: there is no 4; expected one of 1, 2, 3"),
        ({"operations": ["scan"]}, "operations: there is no 'scan'"),
    ],
)
def test_a_selection_of_what_is_not_there_is_refused(results: sb.ComparisonResults, selection: Any, expected: str) -> None:
    with pytest.raises(sb.UsageError, match=expected):
        results.operations(**selection)


def test_figures_are_those_of_the_summary(results: sb.ComparisonResults, summary: dict[str, Any]) -> None:
    written = {(each["variant"], each["operation"]): each["latency_s"] for each in summary["result"]["figures"]}
    assert len(results.figures()) == sum(map(len, written.values()))
    for figure in results.figures():
        assert written[figure.variant, figure.operation][figure.metric]["value"] == figure.value_s
    ranked = [figure for figure in results.figures(metric=summary["result"]["metric"]) if figure.is_fastest]
    first = {ranking["operation"]: ranking["places"][0]["variant"] for ranking in summary["result"]["rankings"]}
    assert first.items() <= {(figure.operation, figure.variant) for figure in ranked}
    assert {figure.is_fastest for figure in results.figures(metric="p99")} == {None}
    with pytest.raises(sb.UsageError, match="metric: there is no 'p42'; expected one of mean"):
        results.figures(metric="p42")


def test_rows_are_a_sequence_and_a_table(results: sb.ComparisonResults) -> None:
    figures = results.figures()
    assert figures[:2].items == figures.items[:2]
    assert list(figures)[1] == figures[1]
    assert figures.to_arrow().column("value_s").to_pylist() == [figure.value_s for figure in figures]
    assert len(figures.to_pandas()) == len(figures)
    assert figures.where(lambda figure: False).to_arrow().num_rows == 0


def test_a_frame_has_the_rows_of_the_table(results: sb.ComparisonResults) -> None:
    frame = results.to_pandas(variants=["sqlite-star"])
    assert len(frame) == 360
    assert frame["operation"].dtype.name == "category"


def test_without_pandas_it_is_said_what_to_do(results: sb.ComparisonResults, monkeypatch: pytest.MonkeyPatch) -> None:
    imports = builtins.__import__

    def without(name: str, *arguments: Any) -> ModuleType:
        if name.partition(".")[0] == "pandas":
            raise ImportError(name)
        return imports(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without)
    for frame in (results.to_pandas, results.figures().to_pandas, sb.compare(results, results).to_pandas):
        with pytest.raises(sb.NotAvailableError, match="extra `notebook`"):
            frame()


def test_a_notebook_shows_a_table_with_the_fastest_marked(results: sb.ComparisonResults) -> None:
    shown = results._repr_html_()
    assert shown.count("<tr>") == 1 + 4
    assert "Readings of one sensor" in shown
    assert "fjall · by_sensor_day" in shown
    assert shown.count("<b>★") == sum(figure.is_fastest is True for figure in results.figures())
    assert "95% confidence interval" in shown
    assert "<script" not in shown


def test_names_in_a_notebook_are_no_markup(results: sb.ComparisonResults) -> None:
    planted = results.summary.model_copy(update={"title": "<script>alert(1)</script>"})
    found = sb.read(results.folder)
    found.__dict__["summary"] = planted
    assert isinstance(found, sb.ComparisonResults)
    assert "<script>" not in found._repr_html_()
    assert "&lt;script&gt;" in found._repr_html_()


def test_the_summary_is_computed_where_it_is_not_stored(study_folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(study_folder, copy, ignore=shutil.ignore_patterns("data"))
    forget_checksums(copy)
    stored = json.loads((copy / "summary.json").read_text(encoding="utf-8"))
    (copy / "summary.json").unlink()
    (copy / "report.html").unlink()
    found = sb.read(copy)
    assert found.summary.model_dump(mode="json")["result"]["figures"] == stored["result"]["figures"]
    assert not (copy / "summary.json").exists(), "reading writes nothing"
    assert found.report() == copy / "report.html"
    assert (copy / "summary.json").exists()
    written = found.report().stat().st_mtime_ns
    assert found.report().stat().st_mtime_ns == written
    assert found.report(rewrite=True).stat().st_mtime_ns > written


def test_a_summary_of_another_status_is_not_believed(study_folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(study_folder, copy, ignore=shutil.ignore_patterns("data"))
    forget_checksums(copy)
    manifest = json.loads((copy / "manifest.json").read_text(encoding="utf-8"))
    (copy / "manifest.json").write_text(json.dumps({**manifest, "status": "failed", "reason": "a planted one"}), encoding="utf-8")
    assert (sb.read(copy).status, sb.read(copy).summary.reason) == ("failed", "a planted one")


# Errors.


def test_no_results_and_damaged_ones_are_errors_of_the_package(study_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(sb.UsageError, match="no results are there"):
        sb.read(tmp_path)
    copy = tmp_path / "copy"
    shutil.copytree(study_folder, copy, ignore=shutil.ignore_patterns("data"))
    (copy / "experiments" / "sqlite-star" / "run-1" / "operations.parquet").write_bytes(b"x")
    with pytest.raises(sb.DamagedResultsError, match=r"operations\.parquet: damaged"):
        sb.read(copy).operations()


def test_all_errors_have_one_base() -> None:
    errors = [getattr(sb, name) for name in sb.__all__ if name.endswith("Error")]
    assert len(errors) == 7
    assert all(issubclass(error, sb.SensorbenchError) for error in errors)


def test_nothing_is_printed_unless_asked(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sb.study("iot", out=tmp_path / "quiet", **ALONE)
    assert capfd.readouterr() == ("", "")
    sb.study("iot", out=tmp_path / "shown", progress=True, **ALONE)
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "results go to" in printed.err


def test_a_function_is_told_how_far_a_run_is(tmp_path: Path) -> None:
    said: list[sb.Progress] = []
    sb.study("iot", out=tmp_path / "told", progress=said.append, **ALONE)
    assert {"message", "done"} <= {progress.kind for progress in said}
    assert any("sqlite-natural, run 3 of 3" in progress.text for progress in said if progress.kind == "done")


# Runs.


def test_an_experiment_is_run_and_says_by_which_call(in_folder: Path) -> None:
    changes = {
        "workload.duration": "300ms",
        "target[0].url": "sqlite:mine.db?synchronous=full",
        "workload.mix": {"mean_of_hour": 1},
    }
    found = sb.run("example/experiment.toml", out="mine", changes=changes)
    assert found.folder == Path("mine")
    assert (found.kind, found.status) == ("comparison", "complete")
    assert [variant.url.partition("?")[2] for variant in found.variants] == ["synchronous=full", ""]
    assert list(found.summary.result.operations) == ["mean_of_hour"]
    manifest = json.loads(Path("mine/manifest.json").read_text(encoding="utf-8"))
    assert manifest["command"][:2] == ["python", "-c"]
    assert manifest["command"][2].startswith(
        "import sensorbench; sensorbench.run('example/experiment.toml', out='mine', changes="
    )


def test_the_arguments_of_an_experiment_are_its_options() -> None:
    assert set(ExperimentOptions.model_fields) <= set(inspect.signature(sb.run).parameters)


def test_secrets_are_not_recorded(in_folder: Path) -> None:
    with pytest.raises(sb.SensorbenchError):
        sb.study("iot", out="mine", targets=["postgresql://me:secret@127.0.0.1:1/none"], **SMALL)
    assert not any("secret" in file.read_text(errors="replace") for file in Path("mine").rglob("*") if file.is_file())


def test_a_run_that_is_resumed_measures_nothing_twice(tmp_path: Path) -> None:
    out = tmp_path / "again"
    first = sb.study("iot", out=out, **ALONE)
    before = first.operations()
    again = sb.study("iot", out=out, resume=True, **ALONE)
    assert again.operations().equals(before)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: sb.run("none.toml"), "none.toml: no such file"),
        (lambda: sb.run("example/experiment.toml", resume=True), "name the folder of the results to continue with out="),
        (lambda: sb.run("example/experiment.toml", changes={"workload.repeat": "x"}), "workload.repeat"),
        (lambda: sb.study("none"), "there is no study 'none'; expected one of iot"),
        (lambda: sb.study("iot", speed=3), "study iot has no option 'speed'; expected one of"),
        (lambda: sb.study("iot", operations="many"), "operations: "),
        (lambda: sb.study("elasticity"), "sensorbench study run elasticity"),
        (lambda: sb.study("cassandra-tuning", replace=True), "replace and drop_after have no meaning there"),
        (lambda: sb.study("iot", out="results/iot"), "results/iot is not empty"),
        (lambda: sb.compare("results/iot", "example"), "example: no results are there"),
        (lambda: sb.compare("results/iot:none", "results/iot"), "has no variant 'none'"),
        (lambda: sb.Dataset.open("none"), "there is no dataset 'none'"),
        (lambda: sb.Dataset.from_csv("none.csv", name="x", time="t", sensors={"a": "a"}), "none.csv: no such file"),
        (lambda: sb.Dataset.from_csv("example/water.csv", name="x y", time="unix_ts", sensors={"a": "counter"}), "name: "),
        (lambda: sb.Dataset.from_csv("example/water.csv", name="x", time="unix_ts"), "give either sensor and value"),
        (lambda: sb.Dataset.from_csv("example/water.csv", name="x", time="at", sensors={"a": "counter"}), "'at'"),
        (lambda: sb.Dataset.open("beijing-air-quality").query("SELECT none"), "query of dataset beijing-air-quality: "),
        (lambda: sb.Dataset.open("beijing-air-quality").table("none"), "has no relation 'none'; expected one of measurements"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(in_folder: Path, call: Any, expected: str) -> None:
    before = sorted(in_folder.rglob("*"))
    with pytest.raises(sb.UsageError, match=expected.replace("[", r"\[")):
        call()
    assert sorted(in_folder.rglob("*")) == before


# Comparisons of results.


def test_a_comparison_is_that_of_the_command(cli: Cli, study_folder: Path) -> None:
    places = f"{study_folder}:fjall-by_sensor", f"{study_folder}:sqlite-star"
    printed = cli("compare", *places, "--json").json
    found = sb.compare(*places)
    assert found.to_arrow().to_pylist() == printed["comparisons"]
    assert [found.metric, list(found.differences)] == [printed["metric"], printed["differences"]]
    verdicts = {operation.operation: operation.verdict for operation in found.operations}
    assert [each.operation for each in found.faster] == [name for name, verdict in verdicts.items() if verdict == "faster"]
    assert [each.operation for each in found.slower] == [name for name, verdict in verdicts.items() if verdict == "slower"]


def test_a_notebook_shows_a_comparison(results: sb.ComparisonResults) -> None:
    shown = sb.compare(results, results)._repr_html_()
    assert shown.count("<tr>") == 1 + 16
    assert "equivalent" in shown


# Datasets.


def test_own_files_are_imported_once_and_used_by_an_experiment(in_folder: Path) -> None:
    def imported() -> sb.Dataset:
        sensors = {"counter_l": "counter", "average_l_per_min": "avg_rate", "flow_l_per_min": "inst_rate"}
        return sb.Dataset.from_csv("example/water.csv", name="water", time="unix_ts", time_unit="s", sensors=sensors)

    dataset = imported()
    by_mapping = sb.Dataset.open("example/water.toml")
    assert dataset.fingerprint == by_mapping.fingerprint
    assert dataset.relations == by_mapping.relations
    assert dataset.span == by_mapping.span
    made = dataset.folder.stat().st_mtime_ns
    assert imported().folder.stat().st_mtime_ns == made
    assert "water" in dataset._repr_html_()
    kept = sb.Dataset.from_csv(
        "example/water.csv", name="kept", time="unix_ts", time_unit="s", sensors={"a": "counter"}, out="kept"
    )
    assert kept.folder == Path("kept")
    assert sb.Dataset.open("kept").fingerprint == kept.fingerprint


@pytest.fixture
def bad_csv(tmp_path: Path) -> Path:
    file = tmp_path / "bad.csv"
    file.write_text("at,a\n2024-01-01,1\n2024-01-02,x\n", encoding="utf-8")
    return file


def test_bad_rows_are_refused_or_noted(bad_csv: Path) -> None:
    with pytest.raises(sb.UsageError, match=r"bad\.csv, line 3, column a: 'x' is not a number"):
        sb.Dataset.from_csv(bad_csv, name="bad", time="at", sensors={"a": "a"})
    dataset = sb.Dataset.from_csv(bad_csv, name="bad", time="at", sensors={"a": "a"}, bad_rows="skip")
    assert dataset.readings == 1
    assert dataset.notes[0].startswith("1 bad row: ")
    assert os.environ["SENSORBENCH_CACHE"] in str(dataset.folder)


# Other kinds of results.

FIXTURES = Path(__file__).parent / "fixtures"


def test_results_of_an_earlier_format_are_read(tmp_path: Path) -> None:
    found = sb.read(FIXTURES / "format-1")
    assert found.kind == "comparison"
    assert found.operations().num_rows > 0
    assert found.variants


def test_a_stress_run_has_operations_by_phase_and_no_figures() -> None:
    found = sb.read(FIXTURES / "format-1-stress")
    assert isinstance(found, sb.MeasuredResults)
    assert found.kind == "stress"
    assert found.summary.result.steps
    with pytest.raises(
        sb.NotAvailableError, match=r"results of kind stress have no figures of variants; their figures are in \.summary"
    ):
        found.figures()
    with pytest.raises(sb.NotAvailableError, match="are not compared; expected those of a comparison"):
        sb.compare(found, found)
    assert "<td" in found._repr_html_()


def test_of_a_series_the_parts_have_figures(in_folder: Path) -> None:
    found = sb.study("iot", out="two", **{**ALONE, "datasets": ["beijing-air-quality", "example/water.toml"]})
    assert isinstance(found, sb.SeriesResults)
    assert found.summary.result.of == "datasets"
    for missing in (found.figures, found.operations):
        with pytest.raises(sb.NotAvailableError, match=r"take \.parts\[NAME\], of 'beijing-air-quality', 'water'"):
            missing()
    assert {figure.variant for figure in found.parts["water"].figures()} == {"sqlite-natural"}


def test_a_search_for_settings_has_neither(tmp_path: Path) -> None:
    results = sb.Results(tmp_path, "tune", object())
    for missing in (results.figures, results.operations, results.to_pandas):
        with pytest.raises(sb.NotAvailableError, match="results of kind tune have no"):
            missing()
