"""What each of several load generators loaded, on pages and in the answer of a command."""

from typing import Any

from sensorbench.report.load_generators import MAX_IN_LINE, loaded_by_generators, loaded_lines, loaded_shares
from sensorbench.results.page import Piece, Table, Text
from sensorbench.results.summary.comparison import LoadFigures, LoadSize


def figures(*tables: list[tuple[int, float]]) -> LoadFigures:
    """A load of tables; of each, the rows and the time of each load generator, or of none."""

    def part(number: int, rows: int, duration_s: float) -> dict[str, Any]:
        return {"number": number, "host": f"host-{number}", "rows": rows, "duration_s": duration_s}

    described = [
        {"table": "t", "generators": [part(number, *of_part) for number, of_part in enumerate(parts, 1)]}
        if parts
        else {"table": "t"}
        for parts in tables
    ]
    return LoadFigures.model_construct(size=LoadSize.model_construct(total_bytes=None), tables=described)


def test_parts_of_all_tables_are_added_up() -> None:
    load = figures([(100, 1.0), (101, 4.0)], [(20, 0.5), (20, 1.0)])
    assert [(share.number, share.rows, share.duration_s, share.rows_per_s) for share in loaded_shares(load)] == [
        (1, 120, 1.5, 80.0),
        (2, 121, 5.0, 24.2),
    ]
    (line,) = loaded_lines({"a-b": load, "alone": figures([])})
    assert line == (
        "a · b: load generator 1 (host-1) 120 rows in 1.50 s, 80.0 rows/s; load generator 2 (host-2) 121 rows in 5.00 s, 24.2 rows/s"
    )
    table, _ = loaded_by_generators({"a-b": load, "alone": figures([])}, ["alone", "a-b"])
    assert isinstance(table, Table)
    assert table.rows == [["a · b", 1, "host-1", 120, 1.5, 80.0], ["", 2, "host-2", 121, 5.0, 24.2]]


def test_without_several_load_generators_nothing_is_said() -> None:
    loads = {"alone": figures([])}
    assert (loaded_by_generators(loads, ["alone", "not loaded"]), loaded_lines(loads)) == ([], [])


def test_why_one_process_loaded_is_said_in_the_place_of_parts() -> None:
    alone = figures([]).model_copy(update={"undivided": "a-b is loaded by one process, because its database has one writer"})
    loads = {"a-b": alone, "c": figures([(100, 1.0), (100, 1.0)])}
    why = " is loaded by one process, because its database has one writer"
    assert loaded_lines(loads)[-1] == f"a · b{why}"
    (text,) = loaded_by_generators({"a-b": alone}, ["a-b", "not loaded"])
    assert text == Text([Piece("a · b", "strong"), f"{why}."], "note")
    # The same reason of several is said once.
    other = alone.model_copy(update={"undivided": "d is loaded by one process, because its database has one writer"})
    assert loaded_lines({"a-b": alone, "d": other}) == [f"a · b, d: each{why}"]
    assert loaded_by_generators({"a-b": alone, "d": other}, ["a-b", "d"]) == [
        Text([Piece("a · b, d", "strong"), f": each{why}."], "note")
    ]
    # With others that were shared, the table is before it.
    table, _, last = loaded_by_generators(loads, ["a-b", "c"])
    assert isinstance(table, Table)
    assert (table.rows[0][0], last) == ("c", text)


def test_of_many_the_slowest_and_the_fastest_are_said() -> None:
    parts = [(10, 1.0 + number) for number in range(MAX_IN_LINE)]
    # The last one had no rows: its table had fewer than there are load generators. It was neither slow nor fast.
    (line,) = loaded_lines({"v": figures([*parts, (0, 0.0)])})
    assert line == (
        "v: 5 load generators loaded it; slowest: load generator 4 (host-4) 10 rows in 4.00 s, 2.50 rows/s; "
        "fastest: load generator 1 (host-1) 10 rows in 1.00 s, 10.0 rows/s"
    )
