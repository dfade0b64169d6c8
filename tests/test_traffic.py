"""Traffic of a server becomes a trace, which is described, and of which no literal is left when it is anonymised."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sensorbench.errors import UsageError
from sensorbench.traffic import FORMATS, describe_trace, import_logs, read_trace
from sensorbench.traffic.anonymise import Anonymiser
from sensorbench.traffic.lexer import kind_of, lift_literals, split_statements, tables_of
from tests.conftest import Cli

# What a PostgreSQL 17.6 of the lab wrote of psql and of pgbench in each of its protocols.
CSVLOG, JSONLOG = (Path(__file__).parent / "fixtures" / "traffic" / f"postgresql.{end}" for end in ("csv", "json"))


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traffic") / "trace"
    import_logs([CSVLOG], folder)
    return folder


def rows_of(folder: Path) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = pq.read_table(folder / "statements.parquet").to_pylist()
    return rows


def test_a_csvlog_and_a_jsonlog_of_the_same_traffic_are_the_same_trace(trace: Path, tmp_path: Path) -> None:
    import_logs([JSONLOG], tmp_path / "of-json")
    assert rows_of(trace) == rows_of(tmp_path / "of-json")
    assert read_trace(trace).templates == read_trace(tmp_path / "of-json").templates


def test_a_trace_has_the_statements_of_the_log(trace: Path) -> None:
    templates, rows = read_trace(trace).templates, rows_of(trace)
    of_psql = [row for row in rows if row["session"] == 0]
    assert [templates[int(str(row["template"]))].kind for row in of_psql] == [
        *("other", "write", "begin", "read", "write", "commit", "read", "read", "begin", "read", "rollback")
    ]
    assert [row["transaction"] for row in of_psql] == [None, None, 0, 0, 0, 0, None, None, 1, 1, 1]
    assert [row["sequence"] for row in of_psql] == list(range(11))
    assert [json.loads(str(row["parameters"])) for row in of_psql][1] == [
        *("s-1", "2026-01-01 00:00:00+00", 1.5, "it's", "2026-01-01 00:01:00+00", -2)
    ]
    assert [json.loads(str(row["parameters"])) for row in of_psql][4:7] == [[7, "s-1"], [], ["dollar 'quoted'", "two\nlines"]]
    assert [row["error"] for row in of_psql if row["error"]] == ["division by zero", 'relation "missing_table" does not exist']
    assert rows == sorted(rows, key=lambda row: str(row["at"]))


def test_what_is_bound_is_a_statements_parameters(trace: Path) -> None:
    """Each of pgbench's transactions that bind their values, 12 of them, has its own four numbers in its five statements."""
    templates = {template.statement: template.number for template in read_trace(trace).templates}
    bound = [
        row for row in rows_of(trace) if row["template"] == templates["SELECT abalance FROM pgbench_accounts WHERE aid = $1"]
    ]
    with CSVLOG.open(encoding="utf-8", newline="") as file:
        logged = [row for row in csv.reader(file) if "execute" in row[13] and "SELECT abalance" in row[13]]
    assert [json.loads(str(row["parameters"])) for row in bound] == [[row[14].split("'")[1]] for row in logged]
    assert len(bound) == 12
    # A statement takes the time of its binding and its execution.
    assert all(float(str(row["duration"])) > float(log[13].split()[1]) / 1000 for row, log in zip(bound, logged, strict=True))


def test_figures_of_a_trace(trace: Path) -> None:
    described = describe_trace(trace)
    assert described.statements == 146
    assert described.errors == 3
    assert sum(template.statements for template in described.templates) == 146
    assert described.transactions is not None
    assert (described.transactions.transactions, described.transactions.committed, described.transactions.rolled_back) == (
        20,
        19,
        1,
    )
    # BEGIN, three updates, a query, an insertion, END.
    assert described.transactions.statements.median == 7
    accounts = next(table for table in described.tables if table.table == "pgbench_accounts")
    assert (accounts.reads, accounts.writes) == (18, 18)
    assert sum((bucket.reads + bucket.writes + bucket.others) * described.bucket_s for bucket in described.rate) == pytest.approx(
        146, rel=0.1
    )


def json_lines(folder: Path, times_s: list[float], values: list[object]) -> Path:
    file = folder / "statements.jsonl"
    lines = [
        {
            "at": f"2026-01-01T00:00:{time:09.6f}Z",
            "session": "a",
            "statement": "SELECT v FROM t WHERE k = $1",
            "parameters": [value],
        }
        for time, value in zip(times_s, values, strict=True)
    ]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return file


def test_burstiness_and_skew_of_known_traffic(tmp_path: Path) -> None:
    """Evenly spaced arrivals have no dispersion; ten at a time, in every tenth window, have ten times what windows have on average less one."""
    values: list[object] = [1] * 50 + list(range(2, 52))
    even = json_lines(tmp_path, [number * 0.1 + 0.0001 * (number > 0) for number in range(100)], values)
    import_logs([even], tmp_path / "even")
    described = describe_trace(tmp_path / "even")
    assert {each.window_s: each.index for each in described.dispersion}[0.1] == pytest.approx(0.0, abs=0.02)
    (skew,) = described.parameters
    assert (skew.values, skew.top_share, skew.top_percent_share) == (51, 0.5, 0.5)
    # The first of the values that come once each are the nine after it.
    assert [(point.values, point.share) for point in skew.curve] == [(1, 0.5), (10, pytest.approx(0.59)), (51, 1.0)]
    bursts = json_lines(tmp_path, [number // 10 * 1.0 for number in range(110)], [0] * 110)
    import_logs([bursts], tmp_path / "bursts")
    found = {each.window_s: each.index for each in describe_trace(tmp_path / "bursts").dispersion}
    # 10 windows of 100 have 10 each: the mean is 1, the variance 9 · 100/99.
    assert found[0.1] == pytest.approx(9 * 100 / 99)
    assert found[1.0] == pytest.approx(0.0)


def test_statements_that_a_log_has_in_another_order_are_sorted(tmp_path: Path) -> None:
    lines = [{"at": f"2026-01-01T00:00:0{second}Z", "session": second, "statement": "SELECT 1"} for second in (3, 1, 2)]
    file = tmp_path / "lines.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    import_logs([file], tmp_path / "trace")
    assert [row["session"] for row in rows_of(tmp_path / "trace")] == [1, 2, 0]
    assert sorted(path.name for path in (tmp_path / "trace").iterdir()) == ["statements.parquet", "trace.json"]


@pytest.mark.parametrize(
    ("statement", "template", "literals"),
    [
        ("SELECT a FROM t WHERE k=5 -- why", "SELECT a FROM t WHERE k=$1::integer", (5,)),
        ("select -5, a -5, a- -5", "select $1::integer, a -$2::integer, a- $3::integer", (-5, 5, -5)),
        ("select 3000000000, 1.5", "select $1::bigint, $2::numeric", (3000000000, 1.5)),
        ('select a1, "x\'1" from t2', 'select a1, "x\'1" from t2', ()),
        ("select interval '1 day', E'a\\'b', $x$it's$x$", "select CAST($1 AS interval), $2, $3", ("1 day", "a'b", "it's")),
        ("select 1::numeric(10,2) from t group by 1 order by 1, 2 limit 3", None, (1, 3)),
        ("create table t (a varchar(3) default 'x')", "create table t (a varchar(3) default 'x')", ()),
    ],
)
def test_literals_are_taken_out(statement: str, template: str | None, literals: tuple[object, ...]) -> None:
    lifted = lift_literals(statement, "postgresql")
    assert lifted.literals == literals
    assert lifted.statement == template or template is None
    if template is None:
        assert lifted.statement == "select $1::integer::numeric(10,2) from t group by 1 order by 1, 2 limit $2::integer"


def test_kinds_tables_and_statements_that_were_sent_together() -> None:
    kinds = {
        **dict.fromkeys(("select 1", "WITH a AS (SELECT 1) SELECT * FROM a", "show x"), "read"),
        **dict.fromkeys(
            ("select 1 for update", "select 1 into t", "with a as (delete from t) select 1", "Update t set a=1"), "write"
        ),
        **{
            "start transaction": "begin",
            "end": "commit",
            "rollback": "rollback",
            "rollback to savepoint a": "other",
            "set a=1": "other",
        },
    }
    assert {statement: kind_of(statement, "postgresql") for statement in kinds} == kinds
    joined = (
        'with c as (select * from x) select extract(year from z) from a, s.b join "D" on true, c where e in (select f from g)'
    )
    assert tables_of(joined, "postgresql") == ["x", "a", "s.b", '"D"', "g"]
    assert split_statements("select ';'; select 2;", "postgresql") == ["select ';'", "select 2"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "2026-01-01 00:00:00.000 CET,x\n2026-01-01 00:00:00.000 CET,x\n", "a.csv:1: expected at least 23 columns"),
        ("a.json", '{"error_severity":"LOG"}\n', "a.json:1: expected a JSON object of a jsonlog"),
        (
            "a.jsonl",
            '{"at":"2026-01-01","session":1,"statement":"x"}\n{"at":1,"statement":"x"}\n',
            "a.jsonl:2: session: Field required",
        ),
        ("a.txt", "hello\n", "name its form with --log-format"),
        ("a.jsonl", '{"statement": 1}', "a.jsonl:1: at: Field required"),
    ],
)
def test_a_log_that_cannot_be_read_is_named_with_its_line(cli: Cli, tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    ended = cli("traffic", "import", tmp_path / name, "--out", tmp_path / "trace")
    assert ended.exit_code == 2
    assert said in " ".join(ended.err.split())
    assert not list((tmp_path / "trace").glob("*"))


def test_a_time_zone_that_is_ambiguous_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "a.csv"
    log.write_text(CSVLOG.read_text(encoding="utf-8").replace(" UTC", " CET"), encoding="utf-8")
    with pytest.raises(UsageError, match="time zone CET is ambiguous"):
        import_logs([log], tmp_path / "trace")


def test_the_last_line_may_be_cut_short(tmp_path: Path, trace: Path) -> None:
    log = tmp_path / "a.json"
    log.write_text(JSONLOG.read_text(encoding="utf-8").rstrip("\n")[:-20], encoding="utf-8")
    assert import_logs([log], tmp_path / "trace", FORMATS["postgresql-jsonlog"]).skipped == (read_trace(trace).skipped or 0) + 1


def literals_in(folder: Path) -> Iterator[str]:
    """All literals of a trace that are long enough not to be found by chance."""
    for row in rows_of(folder):
        yield from (text for value in json.loads(str(row["parameters"])) if len(text := str(value)) > 6)


def test_nothing_of_the_literals_is_left_when_a_trace_is_anonymised(cli: Cli, trace: Path, tmp_path: Path) -> None:
    key, out = tmp_path / "key", tmp_path / "anonymous"
    key.write_text("a secret of more than 16 bytes", encoding="utf-8")
    assert cli("traffic", "anonymise", trace, "--key", key, "--out", out).exit_code == 0
    plain = tmp_path / "plain.parquet"
    pq.write_table(pq.read_table(out / "statements.parquet"), plain, compression="none", use_dictionary=False)
    written = b"".join(path.read_bytes() for path in (*out.iterdir(), plain))
    # The name of a table stays, and pgbench once binds one.
    looked_for = {*literals_in(trace), "secret;text", "dollar 'quoted'", "division by zero"} - {"pgbench_accounts"}
    assert len(looked_for) > 5
    assert [text for text in looked_for if json.dumps(text)[1:-1].encode() in written] == []
    # Equality and therefore skew, times and sessions are as they were.
    before, after = describe_trace(trace), describe_trace(out)
    assert after.parameters == before.parameters
    assert (after.sessions, after.rate, after.transactions) == (before.sessions, before.rate, before.transactions)
    # Another key makes other values.
    key.write_text("another secret of 16 bytes and more", encoding="utf-8")
    assert cli("traffic", "anonymise", trace, "--key", key, "--out", tmp_path / "other").exit_code == 0
    assert [row["parameters"] for row in rows_of(out)] != [row["parameters"] for row in rows_of(tmp_path / "other")]


def test_values_keep_their_form_and_stay_different() -> None:
    anonymiser = Anonymiser(b"k" * 32)
    numbers = [anonymiser.value(number) for number in range(1000)]
    assert sorted(map(str, numbers)) == sorted(map(str, range(1000)))
    assert numbers != list(range(1000))
    of_four_bytes, of_eight = anonymiser.value(2_147_483_647), anonymiser.value(2_147_483_648)
    assert isinstance(of_four_bytes, int)
    assert isinstance(of_eight, int)
    assert 10**9 <= of_four_bytes < 2**31 <= of_eight
    assert str(anonymiser.value("2026-01-01 10:11:12+02"))[4::3] == "-- ::+"
    assert anonymiser.value(None) is None
    days = {str(anonymiser.value(f"2026-01-{day:02d}")) for day in range(1, 32)}
    assert len(days) == 31


def test_order_is_kept_where_that_is_wished(cli: Cli, tmp_path: Path) -> None:
    values: list[object] = [30, 5, 1000, 30, 7]
    import_logs([json_lines(tmp_path, [0, 1, 2, 3, 4], values)], tmp_path / "trace")
    key = tmp_path / "key"
    key.write_text("a secret of more than 16 bytes", encoding="utf-8")
    words = ("traffic", "anonymise", tmp_path / "trace", "--key", key)
    assert cli(*words, "--out", tmp_path / "out", "--keep-order", "0:1").exit_code == 0
    made = [json.loads(str(row["parameters"]))[0] for row in rows_of(tmp_path / "out")]
    assert [sorted(set(made)).index(value) for value in made] == [2, 0, 3, 2, 1]
    assert not set(made) & set(values)
    refused = cli(*words, "--out", tmp_path / "none", "--keep-order", "0:2")
    assert refused.exit_code == 2
    assert "the trace has no parameter 0:2" in refused.err


def test_a_key_that_could_be_guessed_is_refused(cli: Cli, trace: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("short", encoding="utf-8")
    refused = cli("traffic", "anonymise", trace, "--key", key, "--out", tmp_path / "out")
    assert refused.exit_code == 2
    assert "expected at least 16" in " ".join(refused.err.split())


def test_the_page_of_a_trace(cli: Cli, trace: Path) -> None:
    ended = cli("traffic", "describe", trace, "--no-open")
    assert ended.exit_code == 0, ended.err
    assert "transactions: 20: 19 committed, 1 rolled back" in ended.out
    page = (trace / "report.html").read_text(encoding="utf-8")
    for title in ("Templates and mix", "Arrivals", "Skew of parameters", "Tables", "index of dispersion"):
        assert title in page
