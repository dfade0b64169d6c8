"""Traffic in Parquet, which anybody can write, is read as that in JSON Lines."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sensorbench.traffic import import_logs
from sensorbench.traffic.formats import PARQUET, recognise
from tests.conftest import Cli

AT = datetime(2026, 1, 1, 0, 0, 0, 125_000, tzinfo=UTC)
LINES = [
    {"at": AT.isoformat(), "session": "a", "statement": "SELECT v FROM t WHERE k = $1", "parameters": ["5"], "duration": 0.002},
    {"at": AT.isoformat(), "session": "b", "statement": "UPDATE t SET v = 1.5 WHERE k = 'x'", "rows": 1, "error": "no"},
]


@pytest.mark.parametrize("as_text", [False, True])
def test_parquet_and_json_lines_are_the_same_trace(tmp_path: Path, as_text: bool) -> None:
    rows = [{**line, "at": AT, "parameters": line.get("parameters")} for line in LINES]
    if as_text:
        rows = [{**row, "parameters": json.dumps(row["parameters"] or [])} for row in rows]
    names = ("at", "session", "statement", "parameters", "duration", "rows", "error")
    pq.write_table(pa.table({name: [row.get(name) for row in rows] for name in names}), tmp_path / "traffic.parquet")
    (tmp_path / "traffic.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in LINES), encoding="utf-8")
    assert recognise(tmp_path / "traffic.parquet") is PARQUET
    for name in ("parquet", "jsonl"):
        import_logs([tmp_path / f"traffic.{name}"], tmp_path / name)
    of_both = [pq.read_table(tmp_path / name / "statements.parquet").to_pylist() for name in ("parquet", "jsonl")]
    assert of_both[0] == of_both[1]
    assert [json.loads(row["parameters"]) for row in of_both[0]] == [["5"], [1.5, "x"]]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"at": [AT], "session": ["a"]}, ": column statement is missing; expected at, session, statement"),
        ({"at": [AT], "session": ["a"], "statement": ["x"], "took": [1]}, ": column took is not known; expected some of at,"),
        ({"at": [AT, None], "session": ["a", "a"], "statement": ["x", "x"]}, ": row 2: column at: Field required"),
        ({"at": [AT], "session": ["a"], "statement": ["x"], "parameters": ["["]}, ": row 1: column parameters: expected a list"),
    ],
)
def test_what_is_wrong_is_named_with_its_row(cli: Cli, tmp_path: Path, columns: dict[str, list[object]], said: str) -> None:
    file = tmp_path / "traffic.parquet"
    pq.write_table(pa.table(columns), file)
    ended = cli("traffic", "import", file, "--out", tmp_path / "trace")
    assert (ended.exit_code, f"{file}{said}" in ended.err) == (2, True), ended.err
    assert not (tmp_path / "trace").exists()
