"""Documents say what the code does: lists of databases, keys and their defaults, examples, names of packages."""

import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sensorbench import results
from sensorbench.catalog.write_docs_lists import databases_in, with_lists, write_docs_lists
from sensorbench.dataset.beijing_air_quality import DESCRIPTION
from sensorbench.dataset.mapping import Mapping, TimeColumn
from sensorbench.errors import UsageError
from sensorbench.hosts.chosen import INSTALL as INSTALL_OF_HOSTS
from sensorbench.lab.spark import INSTALL
from sensorbench.options import DEFAULT_SEED
from sensorbench.runner.experiment_file import ExperimentFile
from sensorbench.runner.workload import MAX_CONCURRENCY, MAX_CONCURRENCY_EMBEDDED, Workload
from tests.test_insight import run_that_reported

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
DOCUMENTS = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]


def text_of(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


# Lists of databases.


def outdated(text: str) -> bool:
    """Whether a list of a document is not what the package has."""
    return with_lists(text) != text


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document.relative_to(ROOT)))
def test_lists_of_databases_are_those_of_the_package(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert not outdated(text), "make docs-lists"
    # At the beginning of a line a comment would end the paragraph.
    assert not re.search(r"^\s*<!-- databases", text, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("document", "folder"),
    [
        ("how-to/stress.md", "schemas/ycsb"),
        ("how-to/ycsb.md", "schemas/ycsb"),
        ("how-to/articles.md", "schemas/articles"),
        ("explanation/guarantees.md", "schemas/registers"),
        ("how-to/tune.md", "benchmarks/tune/spaces"),
    ],
)
def test_pages_have_their_list(document: str, folder: str) -> None:
    assert f"<!-- databases: {folder} -->" in text_of(document)


def test_a_list_that_is_out_of_date_is_found_and_written_again(tmp_path: Path) -> None:
    current = text_of("how-to/ycsb.md")
    document = tmp_path / "page.md"
    for stale in (current.replace("HBase, ", "", 1), current.replace("SQLite, ", "SQLite, dBase, ", 1)):
        assert outdated(stale)
        document.write_text(stale, encoding="utf-8")
        assert write_docs_lists([document]) == [document]
        assert document.read_text(encoding="utf-8") == current
    assert write_docs_lists([document]) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("On <!-- databases: schemas/ycsb -->SQLite.", "1 lists begin with"),
        ("On <!-- databases: schemas/ycsb -->SQLite, <!-- databases: schemas/ycsb -->SQLite<!-- end -->", "2 lists begin with"),
        ("On <!-- databases: schemas/nothing -->SQLite<!-- end -->", "there is no folder schemas/nothing"),
    ],
)
def test_a_list_without_an_end_or_of_nothing_is_refused(text: str, expected: str) -> None:
    with pytest.raises(UsageError, match=re.escape(expected)):
        with_lists(text)


def test_a_folder_stands_for_its_dialect_and_a_file_for_one_database(tmp_path: Path) -> None:
    for part in ("schemas/mysql/natural.toml", "schemas/null/natural.toml", "schemas/odbc/none.txt", "spaces/mysql.toml"):
        (tmp_path / part).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / part).touch()
    assert databases_in("schemas", tmp_path) == ["MySQL", "MariaDB"]
    assert databases_in("spaces", tmp_path) == ["MySQL"]
    assert with_lists("<!-- databases: spaces --><!-- end -->", tmp_path) == "<!-- databases: spaces -->MySQL<!-- end -->"


# Keys and defaults.


def keys_of(document: str) -> dict[str, list[str]]:
    """What the first table of keys says of each, by its name; the same of each of several in a row."""
    table = text_of(document).partition("\n| key |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]
    return {key: row[1:] for row in rows for key in re.findall(r"`([^`]+)`", row[0])}


def test_the_keys_of_an_experiment_are_those_of_the_code() -> None:
    rows = keys_of("how-to/experiments.md")
    assert {key for key in rows if "." not in key} == set(ExperimentFile.model_fields) - {"target", "workload"}
    assert {key.removeprefix("workload.") for key in rows if key.startswith("workload.")} == {
        field.alias or name for name, field in Workload.model_fields.items()
    }
    assert rows["dataset_seed"][-1] == str(ExperimentFile.model_fields["dataset_seed"].default) == str(DEFAULT_SEED)
    for key in ("scale", "metric", "operations"):
        default = ExperimentFile.model_fields[key].default
        assert rows[key][-1].strip("`") == (f"{default:g}" if isinstance(default, float) else default)
    for key in ("repetitions", "seed", "threads", "timeout", "log", "answers"):
        assert rows[f"workload.{key}"][-1].strip('`"') == str(Workload.model_fields[key].default)


def test_the_most_in_flight_is_that_of_the_code() -> None:
    said = f"{MAX_CONCURRENCY} if not given, {MAX_CONCURRENCY_EMBEDDED} for an embedded database"
    assert said in text_of("how-to/experiments.md")


def test_the_keys_of_a_mapping_are_those_of_the_code() -> None:
    rows = keys_of("how-to/own-data.md")
    fields = {**Mapping.model_fields, **{f"time.{name}": field for name, field in TimeColumn.model_fields.items()}}
    del fields["time"]
    assert rows.keys() == fields.keys()
    required = {key for key, row in rows.items() if row[0].startswith("must be given")}
    assert required == {key for key, field in fields.items() if field.is_required()}


# Examples, names, sources.


def test_the_example_of_insight_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = range(1, 200)
    run = run_that_reported(
        tmp_path,
        {
            f"127.77.1.2.{name}": {s: float(s * factor) for s in seconds}
            for name, factor in {
                "jmx.Compaction.PendingTasks": 0,
                "caches.keys.hit_count": 9,
                "caches.keys.request_count": 10,
            }.items()
        },
    )
    object.__setattr__(run, "manifest", SimpleNamespace(variant=SimpleNamespace(database="cassandra")))
    monkeypatch.setattr(results, "read_run", lambda folder: run)
    (example,) = re.findall(r"```python\n(.*?)```", text_of("reference/metrics.md"), flags=re.DOTALL)
    found: dict[str, Any] = {}
    exec(example, found)
    assert found["over"](found["measured"], 60.0, 120.0).hit_rates == {"key cache": 0.9}


def test_what_is_to_be_installed_is_what_the_project_needs() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert all(f"'{requirement}'" in INSTALL for requirement in extras["spark"])
    assert all(f"'{requirement}'" in INSTALL_OF_HOSTS for requirement in extras["hosts"])
    for document, extra in (("how-to/tune.md", "tune"), ("studies/mapreduce.md", "spark"), ("how-to/own-data.md", "spark")):
        assert all(f"uv pip install '{requirement}'" in text_of(document) for requirement in extras[extra]), document


def test_nothing_is_said_to_come_from_a_package_that_there_is_not() -> None:
    """The project is on no package index: whoever takes its name there could have anything installed."""
    sources = [*DOCUMENTS, *(ROOT / "python").rglob("*.py"), *(ROOT / "python").rglob("*.toml")]
    named = [str(file.relative_to(ROOT)) for file in sources if names_the_package(file.read_text(encoding="utf-8"))]
    assert named == []


def names_the_package(text: str) -> bool:
    """Whether a text says to install the project by its name, from an index."""
    return bool(re.search(r"install[^\n]*\bsensorbench(\[|['\"]|\s*$)", text, flags=re.MULTILINE))


@pytest.mark.parametrize(
    "text", ["pip install 'sensorbench[tune]'", "uv pip install sensorbench", 'X = "pip install sensorbench"']
)
def test_an_installation_by_name_is_found(text: str) -> None:
    assert names_the_package(text)


def test_the_source_of_the_air_quality_is_cited_as_in_reports() -> None:
    author, year, title, doi = re.fullmatch(r"(.+?) \((\d+)\)\. (.+?)\. UCI .*DOI (\S+)", DESCRIPTION.source).groups()  # type: ignore[union-attr]
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"{author} ({year}), {title}, UCI Machine Learning Repository, DOI {doi}" in readme
