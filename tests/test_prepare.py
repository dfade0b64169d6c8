"""Rows are prepared once, and many tables are reported together."""

import pytest

from sensorbench.dataset import open_dataset
from sensorbench.progress import ProgressReporter
from sensorbench.runner.prepare import MAX_REPORTED_ALONE, PreparedTable, prepare_tables
from tests.test_timelines import layout


# Other tests have no dataset of these scales, so that nothing is prepared yet.
@pytest.mark.parametrize(("tables", "scale"), [(5, 0.0037), (100, 0.0041)])
def test_a_line_for_each_table_or_one_for_many(tables: int, scale: float, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = open_dataset("sensor-timelines", scale=scale)
    schema = layout("cassandra", "typed", tables=tables).on(dataset)

    def prepared() -> tuple[list[PreparedTable], list[str]]:
        with dataset.connect() as workbench:
            found = prepare_tables(dataset, schema, schema.loaded_columns(workbench), workbench, ProgressReporter())
        return found, [line.strip() for line in capsys.readouterr().err.splitlines()]

    first, lines = prepared()
    assert len(first) >= tables
    if tables > MAX_REPORTED_ALONE:
        (line,) = lines
        assert line.startswith("preparing cassandra/typed: ")
        assert " tables in " in line
    else:
        assert len(lines) == len(first)
        for line, table in zip(lines, first, strict=True):
            assert line.startswith("preparing cassandra/typed ")
            assert f": {table.rows:,} rows in " in line
    again, lines = prepared()
    assert (again, lines) == (first, []), "they are there"
