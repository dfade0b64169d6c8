"""What plans say of the access path, in each dialect's own words."""

import pytest

from sensorbench.schemas.explains import explain_of

JOIN = """{"query_block": {"table": {"table_name": "a", "access_type": "ref", "possible_keys": ["ka"], "key": "ka"},
"table": {"table_name": "b", "access_type": "ALL"}}}"""
JOIN_FROM_A_SCAN = """{"query_block": {"table": {"table_name": "b", "access_type": "ALL"},
"table": {"table_name": "a", "access_type": "ref", "key": "ka"}}}"""


@pytest.mark.parametrize(
    ("dialect", "text", "access"),
    [
        ("sqlite", "SEARCH m USING INDEX log_key (k>? AND k<?)", "index log_key"),
        ("sqlite", "SEARCH m USING COVERING INDEX log_key (k=?)", "index log_key"),
        ("sqlite", "SEARCH m USING PRIMARY KEY (sensor=?)", "index PRIMARY KEY"),
        ("sqlite", "SEARCH m USING INTEGER PRIMARY KEY (rowid=?)", "index INTEGER PRIMARY KEY"),
        ("sqlite", "SCAN m USING COVERING INDEX log_key", "scan of index log_key"),
        ("sqlite", "SCAN m\nUSE TEMP B-TREE FOR ORDER BY", "scan"),
        ("sqlite", "SCAN m\nSEARCH l USING INDEX k (k=?)", "index k"),
        ("postgresql", "Index Scan using log_key on log  (cost=0.29..8.31 rows=1 width=8)", "index log_key"),
        ("postgresql", "Limit\n  ->  Index Only Scan Backward using log_key on log", "index log_key"),
        ("postgresql", "Bitmap Heap Scan on log\n  ->  Bitmap Index Scan on log_key", "index log_key"),
        ("postgresql", "Sort\n  ->  Seq Scan on log", "scan"),
        ("postgresql", "Result", None),
        ("questdb", "PageFrame\n    Index forward scan on: s deferred: true\n    Interval forward scan on: m", "index s"),
        (
            "questdb",
            "Async JIT Filter workers: 2\n    PageFrame\n        Row forward scan\n        Interval forward scan on: m",
            "scan of an interval of time",
        ),
        ("questdb", "LatestByValueDeferredFiltered\n    Frame backward scan on: m", "scan"),
        ("mysql", '{"query_block": {"table": {"access_type": "ALL", "rows": 9}}}', "scan"),
        ("mysql", '{"query_block": {"table": {"access_type": "range", "key": "log_key", "rows": 9}}}', "index log_key"),
        ("mysql", '{"query_block": {\n"table": {"access_type": "index",\n"key": "log_key"}}}', "scan of index log_key"),
        ("mysql", '{"query_block": {"table": {"access_type": "system"}}}', "scan"),
        ("mysql", JOIN, "index ka"),
        ("mysql", JOIN_FROM_A_SCAN, "scan"),
        ("mysql", '{"query_block": {"message": "Impossible WHERE"}}', None),
    ],
)
def test_a_plan_says_how_rows_are_reached(dialect: str, text: str, access: str | None) -> None:
    explain = explain_of(dialect)
    assert explain is not None
    assert explain.access(text) == access


def test_a_dialect_without_plans_has_none() -> None:
    assert explain_of("redis") is None
    # Its plan says "sequential scan" also where an index is used: that is decided when the statement is executed.
    assert explain_of("duckdb") is None
