"""Datasets with a log: the generated log of machines, the importer of the Azure VM noise tree and its sample."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from sensorbench.dataset import machine_log, open_dataset
from sensorbench.dataset.azure_vm_noise import SHIPPED_FOLDER
from sensorbench.dataset.generated import in_this_process
from sensorbench.options import DEFAULT_SEED
from sensorbench.progress import ProgressReporter
from tests.conftest import Cli

SCALE = 0.01
HERE = in_this_process(ProgressReporter(quiet=True), 2)

# What the paper prints of its log: records, and the share of them in seven open ranges of values.
RECORDS = {"1GB": 19_530_000, "2GB": 37_800_000, "4GB": 74_550_000, "6GB": 111_180_000}
PERCENT = {
    (2.5, 3): {"1GB": 0.12, "2GB": 0.06, "4GB": 0.03, "6GB": 0.02},
    (2, 7): {"1GB": 1, "2GB": 0.6, "4GB": 0.3, "6GB": 0.2},
    (15.6, 15.7): {"1GB": 12, "2GB": 6, "4GB": 3, "6GB": 2},
    (15.53, 15.81): {"1GB": 29, "2GB": 15, "4GB": 7.5, "6GB": 5},
    (15.75, 16.2): {"1GB": 36, "2GB": 29, "4GB": 15, "6GB": 10},
    (0, 16.16): {"1GB": 81, "2GB": 49, "4GB": 25, "6GB": 17},
    (0, 16.72): {"1GB": 81, "2GB": 90, "4GB": 64, "6GB": 43},
}
# Rows that match at 4GB, as printed.
MATCHING_AT_4GB = [23_736, 213_624, 2_326_128, 5_577_960, 10_894_824, 18_388_477, 47_631_229]


def query(dataset: Path, sql: str) -> list[tuple[Any, ...]]:
    with open_dataset(str(dataset)).connect() as connection:
        rows: list[tuple[Any, ...]] = connection.sql(sql).fetchall()
        return rows


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each size of the log, small."""
    folder = tmp_path_factory.mktemp("logs")
    for size in RECORDS:
        machine_log.generate(size, folder / size, DEFAULT_SEED, SCALE, HERE)
    return {size: folder / size for size in RECORDS}


def test_each_size_has_the_records_of_the_study(log: dict[str, Path], cli: Cli) -> None:
    assert {size: machine_log.records_of(size) for size in RECORDS} == RECORDS
    for size, records in RECORDS.items():
        described = cli("data", "describe", log[size], "--json").json
        assert described["relations"]["log"]["rows"] == records * SCALE
        assert (described["generated"], described["scale"], described["interval_s"]) == (
            True,
            SCALE,
            pytest.approx(600, abs=0.05),
        )
    assert "generated, not measured" in cli("data", "describe", log["1GB"]).out


@pytest.mark.parametrize("size", RECORDS)
def test_each_size_has_the_selectivities_of_the_study(log: dict[str, Path], size: str) -> None:
    counts = ", ".join(f"count(*) FILTER (value > {low} AND value < {high})" for low, high in PERCENT)
    (counted,) = query(log[size], f"SELECT {counts} FROM log")
    for (bounds, percent), count in zip(PERCENT.items(), counted, strict=True):
        share = percent[size]
        # Percentages are printed with one or two digits; of few records some more or fewer are a matter of chance.
        rounding = 0.005 if share < 0.2 else 0.05 if share < 1 else 0.5
        chance = 400 * (share / 100 / (RECORDS[size] * SCALE)) ** 0.5
        assert 100 * count / (RECORDS[size] * SCALE) == pytest.approx(share, abs=rounding + chance), bounds
    if size == "4GB":
        for count, matching in zip(counted, MATCHING_AT_4GB, strict=True):
            assert count == pytest.approx(matching * SCALE, rel=0.01, abs=4 * (matching * SCALE) ** 0.5)


def test_what_is_appended_lies_where_the_study_saw_it(log: dict[str, Path]) -> None:
    pieces = "CASE WHEN n <= 195300 THEN 1 WHEN n <= 378000 THEN 2 WHEN n <= 745500 THEN 3 ELSE 4 END"
    numbered = f"(SELECT {pieces} AS piece, n, value FROM (SELECT row_number() OVER (ORDER BY begin_time) AS n, value FROM log))"
    for low, high in [(2.5, 3), (2, 7), (15.6, 15.7), (15.53, 15.81)]:
        assert query(log["6GB"], f"SELECT DISTINCT piece FROM {numbered} WHERE value > {low} AND value < {high}") == [(1,)]
    in_first = query(
        log["1GB"],
        "SELECT count(*) FILTER (value >= 16.16 AND value < 16.72), count(*) FILTER (value <= 0 OR value >= 16.72) / count(*) FROM log",
    )
    assert in_first == [(0, pytest.approx(0.19, abs=0.005))]
    assert query(log["6GB"], f"SELECT min(value) > 16.72 FROM {numbered} WHERE piece = 4") == [(True,)]
    means = [
        mean
        for _, mean in query(log["6GB"], f"SELECT n // 50000 AS stretch, avg(value) FROM {numbered} GROUP BY ALL ORDER BY ALL")
    ]
    assert means[:-1] == sorted(means[:-1]), "the level drifts upward all along, not only from piece to piece"


def test_a_size_is_the_beginning_of_the_next(log: dict[str, Path]) -> None:
    # The largest is in several files, whose order is that of their names.
    tables = {size: pq.read_table(next(folder.glob("log*"))) for size, folder in log.items()}
    for smaller, larger in [("1GB", "2GB"), ("2GB", "4GB"), ("4GB", "6GB")]:
        assert tables[larger].slice(0, tables[smaller].num_rows).equals(tables[smaller])


def test_a_smaller_scale_has_the_first_sensors_of_a_larger_one(log: dict[str, Path], tmp_path: Path) -> None:
    machine_log.generate("1GB", tmp_path / "log", DEFAULT_SEED, SCALE / 3, HERE)
    smaller = query(tmp_path / "log", "SELECT * FROM log ORDER BY begin_time")
    assert len(smaller) == 651 * 100
    assert smaller == query(log["1GB"], "SELECT * FROM log WHERE machine <= 10 ORDER BY begin_time")


def test_the_log_is_in_order_and_its_key_is_one(log: dict[str, Path]) -> None:
    facts = """
        SELECT count(DISTINCT (machine, sensor)), count(DISTINCT (machine, sensor, begin_time)) = count(*), bool_and(begin_time < end_time),
            bool_and(begin_time > before), bool_and(end_time < again)
        FROM (SELECT *, lag(begin_time) OVER (ORDER BY position) AS before,
                lead(begin_time) OVER (PARTITION BY machine, sensor ORDER BY begin_time) AS again
            FROM (SELECT *, row_number() OVER () AS position FROM log))
    """
    assert query(log["1GB"], facts) == [(300, True, True, True, True)]


def test_the_same_seed_gives_the_same_log_with_any_number_of_threads(tmp_path: Path) -> None:
    def log_of(name: str, seed: int, threads: int) -> bytes:
        machine_log.generate("2GB", tmp_path / name, seed, 0.004, in_this_process(ProgressReporter(quiet=True), threads))
        return (tmp_path / name / "log.parquet").read_bytes()

    assert log_of("one", 7, 1) == log_of("three", 7, 3)
    assert log_of("other", 8, 1) != log_of("same", 7, 1)


def test_the_log_is_generated_by_its_name(cli: Cli, tmp_path: Path) -> None:
    generated = cli("data", "generate", "machine-log-1gb", "--scale", "0.001", "--out", tmp_path / "log", "--json")
    assert generated.exit_code == 0, generated.err
    described = cli("data", "describe", "machine-log-1gb", "--scale", "0.001", "--json").json
    assert described == generated.json
    assert described["relations"]["log"]["rows"] == 19_530
    whole = cli("data", "describe", "machine-log", "--scale", "0.0002", "--json").json
    assert whole["relations"]["log"]["rows"] == 6 * 3706
    refused = cli("data", "generate", "machine-log", "--scale", "1e-6", "--out", tmp_path / "none")
    assert refused.exit_code == 2
    assert "--scale 1e-06 leaves none of the 30,000 sensors; expected at least 3e-05" in refused.err


def test_a_log_is_described_and_exported(cli: Cli, tmp_path: Path) -> None:
    text = cli("data", "describe", "azure-vm-noise").out
    assert "log: 160,781 rows (machine, sensor, begin_time, end_time, value)" in text
    assert "site is" not in text
    arguments = ("azure-vm-noise", "--scale", "0.01")
    for form in ("csv", "parquet", "influx"):
        assert cli("data", "export", *arguments, "--format", form, "--out", tmp_path / form).exit_code == 0
    lines = (tmp_path / "csv/log.csv").read_text(encoding="utf-8").splitlines()
    assert lines[:2] == [
        "machine,sensor,begin_time,end_time,value",
        "3,2,2023-05-28 19:58:53.26,2023-05-28 19:59:32.52,1508459.25",
    ]
    rows = cli("data", "describe", *arguments, "--json").json["relations"]["log"]["rows"]
    assert rows == len(lines) - 1 == pq.read_table(tmp_path / "parquet/log.parquet").num_rows
    points = (tmp_path / "influx/log.lp").read_text(encoding="utf-8").splitlines()
    assert len(points) == rows
    assert points[0] == "log,machine=3,sensor=2 end_time=1685303972520000000i,value=1508459.25 1685303933260000000"


def test_a_generator_cannot_be_fitted_to_a_log(cli: Cli, tmp_path: Path) -> None:
    outcome = cli("data", "fit", "azure-vm-noise", "--out", tmp_path / "model.json")
    assert outcome.exit_code == 2
    assert "dataset azure-vm-noise is a log; a generator is fitted to measurements or articles only" in outcome.err


def test_log_datasets_are_listed(cli: Cli) -> None:
    names = {row["name"]: row for row in cli("data", "list", "--json").json}
    assert names["azure-vm-noise"] == {"name": "azure-vm-noise", "shipped": True, "generated": False, "importer": True}
    assert {"machine-log-1gb", "machine-log-2gb", "machine-log-4gb", "machine-log"} <= {
        name for name in names if names[name]["generated"]
    }


def test_the_sample_has_what_was_counted_by_hand() -> None:
    """Counted in the original files, of the suite Redis on long-lived machines ($F), with awk, sort and grep."""
    assert sum(file.stat().st_size for file in SHIPPED_FOLDER.iterdir()) <= 2_000_000
    with open_dataset("azure-vm-noise").connect() as connection:

        def asked(sql: str) -> list[tuple[Any, ...]]:
            rows: list[tuple[Any, ...]] = connection.sql(sql).fetchall()
            return rows

        # awk -F, 'FNR>1{n++; if($1>1500000&&$1<2000000)a++; if($1>2000000)b++; if($1>1000000&&$1<1100000)c++} END{print n,a,b,c}' $F
        counts = "count(*), count(*) FILTER (value > 1500000 AND value < 2000000), count(*) FILTER (value > 2000000)"
        assert asked(f"SELECT {counts}, count(*) FILTER (value > 1000000 AND value < 1100000) FROM log") == [
            (160_781, 45_819, 36_054, 11_056)
        ]
        # awk -F, 'FNR>1{print $1}' $F | sort -g | sed -n '1p;$p'
        assert asked("SELECT min(value), max(value) FROM log") == [(446_819.56, 2_868_998.0)]
        # The GET file of B8ms: awk -F, 'FNR>1{print $4}' | sort | uniq -c; that of SET and D8s_v5 likewise
        of_metric = """
            SELECT vm_id, count(*) FROM log JOIN machines USING (machine) JOIN sensors USING (sensor)
            WHERE test_name LIKE '%{}%' AND vm_sku = '{}' GROUP BY ALL ORDER BY ALL
        """
        assert asked(of_metric.format("GET", "B8ms")) == [(0, 3815), (1, 3796), (2, 3815)]
        assert asked(of_metric.format("_SET", "D8s_v5")) == [(0, 7386), (1, 7770), (2, 5576)]
        # head -2 of the GET file of B8ms: 1182054.25,48.75,2023-05-29 06:09:02.950,0
        look_up = "SELECT end_time::VARCHAR, value FROM log WHERE machine = 1 AND sensor = 1 AND begin_time = TIMESTAMP '2023-05-29 06:09:02.950'"
        assert asked(look_up) == [("2023-05-29 06:09:51.7", 1_182_054.25)]
        # awk -F, 'FNR>1&&$3<"2023-06-01"' $F | wc -l
        assert asked("SELECT count(*) FROM log WHERE begin_time < TIMESTAMP '2023-06-01'") == [(947,)]
        assert asked("SELECT count(DISTINCT (machine, sensor, begin_time)) FROM log") == [(160_781,)]


HEADER = "value,runtime,starttime,VM_id\n"
GETS = HEADER + "10.5,2.25,2024-01-01 00:00:00.500,0\n11.5,60,2024-01-01 01:00:00,10\n12.5,2,2024-01-01 02:00:00.250,2\n"
FOLDER = "test_suite=Redis/test_name=Test:_GET/vm_lifespan={}/vm_region=westus2/vm_sku=B8ms"
FILE = "unit=Requests Per Second.csv"


def write_tree(root: Path, files: dict[str, str]) -> Path:
    """Files of the original tree by lifespan of the machines."""
    for lifespan, text in files.items():
        folder = root / FOLDER.format(lifespan)
        folder.mkdir(parents=True)
        (folder / FILE).write_text(text, encoding="utf-8")
    return root


def test_the_original_tree_is_imported(cli: Cli, tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "vm-noise-data", {"long": GETS, "short": HEADER + "3,1,2023-12-31 23:59:59,2\n"})
    for name, arguments in {"named": ("azure-vm-noise", tree), "recognised": (tree,)}.items():
        out = tmp_path / name
        outcome = cli("data", "import", *arguments, "--out", out, "--json")
        assert outcome.exit_code == 0, outcome.err
        assert query(out, "SELECT machine, sensor, begin_time::VARCHAR, end_time::VARCHAR, value FROM log") == [
            (4, 1, "2023-12-31 23:59:59", "2024-01-01 00:00:00", 3.0),
            (1, 1, "2024-01-01 00:00:00.5", "2024-01-01 00:00:02.75", 10.5),
            (3, 1, "2024-01-01 01:00:00", "2024-01-01 01:01:00", 11.5),
            (2, 1, "2024-01-01 02:00:00.25", "2024-01-01 02:00:02.25", 12.5),
        ]
        assert query(out, "SELECT machine, vm_lifespan, vm_id FROM machines") == [
            (1, "long", 0), (2, "long", 2), (3, "long", 10), (4, "short", 2),
        ]  # fmt: skip
        assert query(out, "SELECT * FROM sensors") == [(1, "Redis", "Test:_GET", "Requests Per Second")]
        assert "interval" not in cli("data", "describe", out).out, "no sensor has two records"


def test_of_two_records_with_one_begin_the_last_one_stays(cli: Cli, tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "a", {"long": GETS + "99,3,2024-01-01 00:00:00.500,0\n98,4,2024-01-01 00:00:00.500,0\n"})
    copy = write_tree(tmp_path / "b", {"long": HEADER + "97,1,2024-01-01 01:00:00,10\n"})
    notes = cli("data", "import", "azure-vm-noise", tree, copy, "--out", tmp_path / "out", "--json").json["notes"]
    assert "3 readings left out: another record has the same sensor and begin; the last in file order was kept" in notes
    assert query(tmp_path / "out", "SELECT value FROM log ORDER BY begin_time") == [(98.0,), (97.0,), (12.5,)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("11.5", "fast", "line 3, column value: 'fast' is not a number"),
        ("11.5", "NaN", "line 3, column value: 'NaN' is not a number"),
        ("11.5", "", "line 3, column value: '' is not a number"),
        ("60", "-1", "line 3, column runtime: '-1' is not a number of seconds"),
        ("2024-01-01 02:00:00.250", "2024-13-01", "line 4, column starttime: '2024-13-01' is not a time"),
        (",10\n", ",1.5\n", "line 3, column VM_id: '1.5' is not a whole number"),
        (",10\n", "\n", "line 3, column (all): "),
        ("runtime", "duration", "line 1: there is no column 'runtime'; the columns are value, duration, starttime, VM_id"),
    ],
)
def test_a_broken_file_is_refused_with_its_line_and_nothing_is_written(
    cli: Cli, tmp_path: Path, old: str, new: str, expected: str
) -> None:
    tree = write_tree(tmp_path / "tree", {"long": GETS.replace(old, new)})
    outcome = cli("data", "import", "azure-vm-noise", tree, "--out", tmp_path / "out")
    assert outcome.exit_code == 2
    assert f"{FOLDER.format('long')}/{FILE}, {expected}" in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["tree"]


def test_broken_records_may_be_left_out(cli: Cli, tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", {"long": GETS.replace("11.5,60", "x,y")})
    outcome = cli("data", "import", "azure-vm-noise", tree, "--out", tmp_path / "out", "--bad-rows", "skip", "--json")
    assert outcome.exit_code == 0, outcome.err
    assert outcome.json["relations"]["log"]["rows"] == 2
    assert any(note.startswith("1 bad row: what could not be read was left out") for note in outcome.json["notes"])


def test_a_file_outside_the_tree_and_an_empty_folder_are_refused(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_text(GETS, encoding="utf-8")
    outcome = cli("data", "import", "azure-vm-noise", file, "--out", tmp_path / "out")
    assert outcome.exit_code == 2
    assert "its path does not name test_suite; expected the folder tree of the original, test_suite=…/test_name=…" in outcome.err
    empty = tmp_path / "empty"
    empty.mkdir()
    outcome = cli("data", "import", "azure-vm-noise", empty, "--out", tmp_path / "out")
    assert outcome.exit_code == 2
    assert "no CSV file is in this folder" in outcome.err
