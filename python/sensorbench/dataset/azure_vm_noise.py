"""Azure VM noise: what benchmarks measured on virtual machines for sixteen months, on long-lived and short-lived ones.

As a log, a machine is a virtual machine and a sensor is a metric of a benchmark; a record lasts as long as its benchmark ran.
The real sample in the package was made by `sensorbench data import azure-vm-noise` from the original files of one benchmark
suite on the long-lived machines; its README.md names them.
"""

from dataclasses import dataclass
from pathlib import Path

from sensorbench.dataset.csv_rows import ROW_NUMBER, TextRows, columns_of, quoted, require_columns
from sensorbench.dataset.dataset import LOG, LOG_SCHEMA, Dataset, DatasetWriter, Description
from sensorbench.dataset.importing import Intake, cast
from sensorbench.errors import UsageError

NAME = "azure-vm-noise"
SHIPPED_FOLDER = Path(__file__).parent / "azure_vm_noise"

DESCRIPTION = Description(
    name=NAME,
    title="Benchmarks of virtual machines in Azure, May 2023 to September 2024",
    generated=False,
    source=(
        "Azure VM Noise Dataset 2024 (AzurePublicDataset), described in: Freischuetz, J., Kanellis, K., Kroth, B. and Venkataraman, S. (2025). "
        "TUNA: Tuning Unstable and Noisy Cloud Applications. EuroSys '25"
    ),
    license="CC BY 4.0",
    how_made=(
        "Imported from the original folder tree: a machine is a virtual machine (vm_lifespan, vm_region, vm_sku and VM_id), a sensor is a metric "
        "(test_suite, test_name and unit); a record begins at starttime and ends runtime later. Records lie in the order of their begin."
    ),
    notes=["The source names no time zone; times are stored as if they were UTC."],
)

FOLDER_KEYS = ("test_suite", "test_name", "vm_lifespan", "vm_region", "vm_sku")
FILE_KEY = "unit"

VALUE = "TRY_CAST(value AS DOUBLE)"
RUNTIME_S = "TRY_CAST(runtime AS DOUBLE)"
BEGIN_TIME = "TRY_CAST(starttime AS TIMESTAMP)"
LONGEST_RUNTIME_S = 1e9


@dataclass(frozen=True)
class ColumnRule:
    """A column of a file: when a cell of it can be taken over, and what is expected there."""

    column: str
    is_good: str
    expected: str


COLUMN_RULES = (
    ColumnRule("value", f"isfinite({VALUE})", "a number"),
    ColumnRule("runtime", f"{RUNTIME_S} BETWEEN 0 AND {LONGEST_RUNTIME_S}", "a number of seconds"),
    ColumnRule("starttime", f"isfinite({BEGIN_TIME})", "a time"),
    ColumnRule("VM_id", "regexp_full_match(VM_id, '[0-9]{1,9}')", "a whole number"),
)


def recognises(columns: list[str]) -> bool:
    """Whether a file with these columns is one of a metric."""
    return {rule.column for rule in COLUMN_RULES} <= set(columns)


def import_files(files: list[Path], out: Path, *, skip_bad_rows: bool) -> Dataset:
    """Imports original files, or all that lie in folders. Machines and sensors are numbered in the order of their names."""
    intake = _new_intake()
    for file in _csv_files(files):
        _take(intake, file)
    intake.bad_rows.refuse_or_keep_count(skip=skip_bad_rows)
    _number(intake)
    writer = DatasetWriter(out)
    notes = _write(intake, writer)
    return writer.finish(DESCRIPTION.model_copy(update={"notes": DESCRIPTION.notes + notes}))


def _csv_files(places: list[Path]) -> list[Path]:
    """The files themselves, and those in folders, in the order of their paths."""
    found = []
    for place in places:
        inside = sorted(place.rglob("*.csv")) if place.is_dir() else [place]
        if not inside:
            raise UsageError(f"{place}: no CSV file is in this folder; expected the folder tree of the original")
        found += inside
    return found


def _new_intake() -> Intake:
    intake = Intake()
    names = ", ".join(f"{key} VARCHAR" for key in (*FOLDER_KEYS, FILE_KEY))
    intake.connection.execute(f"CREATE TABLE metrics (file_number INTEGER, {names})")
    intake.connection.execute(
        "CREATE TABLE staged (file_number INTEGER, row_number BIGINT, VM_id INTEGER, begin_time TIMESTAMP, end_time TIMESTAMP, value DOUBLE)"
    )
    return intake


def _take(intake: Intake, file: Path) -> None:
    """Takes over the records of a file."""
    require_columns(file, columns_of(file), [rule.column for rule in COLUMN_RULES])
    number = intake.next_file()
    names = [number, *_names(file)]
    intake.connection.execute(f"INSERT INTO metrics VALUES ({', '.join('?' * len(names))})", names)
    rows = TextRows(intake.connection, f"file_{number}", file, intake.bad_rows)
    for rule in COLUMN_RULES:
        shown = f"coalesce({quoted(rule.column)}, '')"
        intake.add_bad_cells(rows, f"NOT coalesce({rule.is_good}, false)", shown, rule.column, rule.expected)
    are_good = " AND ".join(f"({rule.is_good})" for rule in COLUMN_RULES)
    end_time = f"{BEGIN_TIME} + to_microseconds(CAST(round({RUNTIME_S} * 1e6) AS BIGINT))"
    intake.connection.execute(
        f"""
        INSERT INTO staged
        SELECT {number}, {ROW_NUMBER}, CAST(VM_id AS INTEGER), {BEGIN_TIME}, {end_time}, {VALUE} FROM {rows.table} WHERE {are_good}
        """
    )
    intake.connection.execute(f"DROP TABLE {rows.table}")


def _names(file: Path) -> list[str]:
    """What the path of a file says of its records."""
    path = file.resolve()
    parts = (*path.parent.parts, path.stem)
    said = dict(part.split("=", 1) for part in parts if "=" in part)
    missing = [key for key in (*FOLDER_KEYS, FILE_KEY) if not said.get(key)]
    if missing:
        tree = "/".join(f"{key}=…" for key in (*FOLDER_KEYS, FILE_KEY))
        raise UsageError(f"{file}: its path does not name {missing[0]}; expected the folder tree of the original, {tree}.csv")
    return [said[key] for key in (*FOLDER_KEYS, FILE_KEY)]


def _number(intake: Intake) -> None:
    """Gives numbers to machines and sensors."""
    intake.connection.execute(
        """
        CREATE TABLE machines AS
        SELECT CAST(row_number() OVER (ORDER BY vm_lifespan, vm_region, vm_sku, vm_id) AS INTEGER) AS machine, *
        FROM (SELECT DISTINCT vm_lifespan, vm_region, vm_sku, VM_id AS vm_id FROM staged JOIN metrics USING (file_number));
        CREATE TABLE sensors AS
        SELECT CAST(row_number() OVER (ORDER BY test_suite, test_name, unit) AS INTEGER) AS sensor, *
        FROM (SELECT DISTINCT test_suite, test_name, unit FROM staged JOIN metrics USING (file_number));
        CREATE TABLE numbered AS
        SELECT machine, sensor, begin_time, end_time, value, file_number, row_number
        FROM staged JOIN metrics USING (file_number)
            JOIN machines USING (vm_lifespan, vm_region, vm_sku, vm_id) JOIN sensors USING (test_suite, test_name, unit);
        """
    )


def _write(intake: Intake, writer: DatasetWriter) -> list[str]:
    """Writes the log and what its numbers mean; returns what should be noted."""
    # The rule for several records of one sensor with one begin: the last one in file order stays.
    records = """
        SELECT machine, sensor, begin_time, end_time, value FROM numbered
        QUALIFY row_number() OVER (PARTITION BY machine, sensor, begin_time ORDER BY file_number DESC, row_number DESC) = 1
        ORDER BY begin_time, machine, sensor
    """
    staged = intake.connection.table("numbered").count("*").fetchall()[0][0]
    if staged == 0:
        raise UsageError("the files hold no record at all; nothing was written")
    kept = writer.add(LOG, LOG_SCHEMA, cast(intake.connection.cursor().sql(records).to_arrow_reader(1_000_000), LOG_SCHEMA))
    for name in ("machines", "sensors"):
        writer.add_table(name, intake.connection.sql(f"SELECT * FROM {name} ORDER BY 1").to_arrow_table())
    return intake.notes(staged - kept, "another record has the same sensor and begin")
