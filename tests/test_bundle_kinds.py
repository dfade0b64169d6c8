"""Bundles of results that are not comparisons: what follows from records is computed again, the rest is named."""

import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sensorbench._engine import read_interval_log
from sensorbench.app.bundle import verify
from sensorbench.results.bundle import RESULTS_PART, read_index
from sensorbench.results.writer import HISTOGRAM_FILE
from sensorbench.studies import FACTOR_STUDIES
from sensorbench.studies.factors import FactorStudy
from tests.conftest import run_main
from tests.forging import edit_json, forged
from tests.test_factors import carried_out, null_file, null_study
from tests.test_mapreduce import executions, several
from tests.test_mapreduce import result as mapreduce_result
from tests.test_tune import NULL, NULL_SPACE

Make = Callable[[Path], None]
QUICK = ("--step-duration", "200ms", "--ramp", "0", "--warmup", "0", "--no-open", "-q")


def _done(*arguments: object) -> None:
    assert run_main(tuple(arguments)) == 0


def _stress(out: Path) -> None:
    _done("stress", "--target", "null", "--rates", "200,400", "--records", "10", "--mix", "read=3,write=1", *QUICK, "--out", out)


def _tune(out: Path) -> None:
    space = out.parent / "null.toml"
    space.write_text(NULL_SPACE, encoding="utf-8")
    _done(*NULL, "--goal", "p50@50", "--space", space, "--budget-runs", "3", "--out", out)


def _factors(out: Path) -> None:
    carried_out(null_study({"repetitions": 1, "parts": ("delay",)}), out)


def _mapreduce(out: Path) -> None:
    mapreduce_result(out, executions({("cassandra", 3): several(40.0), ("hbase", 3): several(88.0)}))


def _ycsb(out: Path) -> None:
    target = f"sqlite:{out.parent / 'y.db'}?synchronous=off"
    _done("ycsb", "load", "--target", target, "-p", "recordcount=50", "--replace", "--out", out.parent / "load", "-q")
    _done("ycsb", "run", "--target", target, "-p", "recordcount=50", "-p", "operationcount=200", "--out", out, "-q")


# Of each kind, how many figures follow at least, and what is named as measured once.
KINDS: dict[str, tuple[Make, int, str]] = {
    "stress": (_stress, 30, "hit rates"),
    "tune": (_tune, 10, "load times and sizes"),
    "factors": (_factors, 30, "how long each cell took"),
    "mapreduce": (_mapreduce, 5, "times of executions"),
    "ycsb": (_ycsb, 10, "rows that answers had"),
}


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """A bundle of each kind, made of the smallest results."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FACTOR_STUDIES, "delays", FactorStudy("delays", null_file(), ()))
        for kind, (make, _, _) in KINDS.items():
            folder = tmp_path_factory.mktemp(kind)
            make(folder / "out")
            _done("bundle", folder / "out", "--out", folder / f"{kind}.sbz", "-q")
            found[kind] = folder / f"{kind}.sbz"
        yield found


@pytest.mark.parametrize("kind", KINDS)
def test_a_bundle_of_a_kind_is_sound_and_names_what_was_measured_once(bundles: dict[str, Path], kind: str) -> None:
    _, figures, once = KINDS[kind]
    found = verify(bundles[kind])
    assert found.problems == []
    assert found.index.results == kind
    assert found.figures >= figures
    assert any(name.startswith(once) for name in found.unverified), found.unverified
    # No log is needed, so that none goes in.
    index = read_index(bundles[kind])
    assert not index.with_operations
    assert index.unverifiable == []
    assert not any(file.path.rpartition("/")[2].startswith("operations") for file in index.files)


@pytest.mark.parametrize("kind", ["stress", "tune", "factors"])
def test_histograms_of_whole_phases_are_summed_up(bundles: dict[str, Path], kind: str) -> None:
    """Of each second they would take most of a bundle, and no figure follows from them."""
    has_summed_histograms(bundles[kind], bundles[kind].parent / "out")


def has_summed_histograms(bundle: Path, results: Path) -> None:
    """A bundle has one histogram for each of several that the log of a run has of a tag, with the same counts."""
    with zipfile.ZipFile(bundle) as packed:
        logs = {name: packed.read(name).decode() for name in packed.namelist() if name.endswith(HISTOGRAM_FILE)}
    assert logs
    for name, text in logs.items():
        summed = read_interval_log(text)
        whole = read_interval_log((results / name.removeprefix(f"{RESULTS_PART}/")).read_text(encoding="utf-8"))
        assert sorted(summed["tag"].to_pylist()) == sorted(set(whole["tag"].to_pylist()))
        assert counts_by_tag(summed) == counts_by_tag(whole)


def counts_by_tag(log: pa.RecordBatch) -> dict[tuple[str, int], int]:
    """How often each latency of a tag was counted."""
    counts: Counter[tuple[str, int]] = Counter()
    for row in log.to_pylist():
        counts.update({(row["tag"], value): count for value, count in zip(row["value_ns"], row["count"], strict=True)})
    return dict(counts)


@pytest.mark.parametrize(("kind", "key"), [("tune", "value"), ("factors", "steps")])
def test_a_figure_that_a_measurement_does_not_have_is_rejected(
    bundles: dict[str, Path], tmp_path: Path, kind: str, key: str
) -> None:
    """The forger computes the summary again, which takes the figure from the measurement's own file."""

    def better(measurement: dict[str, Any]) -> None:
        if key == "value":
            measurement[key] *= 0.5
        else:
            measurement[key][0]["p99_s"] *= 0.5

    def forge(unpacked: Path) -> None:
        edit_json(min((unpacked / "results").rglob("measurement.json")), better)

    problems = verify(forged(bundles[kind], tmp_path, forge)).problems
    assert [problem.check for problem in problems] == ["figures"]
    assert "measurement.json" in str(problems[0])
