"""What clients sent to a Redis becomes a trace: MONITOR's text, and requests with their times."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sensorbench.traffic import FORMATS, describe_trace, import_logs, read_trace
from sensorbench.traffic.formats import MONITOR, RESP, recognise
from sensorbench.traffic.redis_commands import command_template
from tests.conftest import Cli

# What a Redis 7.0 of the lab said to MONITOR, and wrote into its append-only file (aof-timestamp-enabled), of the same two clients.
MONITORED, APPENDED = (Path(__file__).parent / "fixtures" / "traffic" / f"redis.{end}" for end in ("monitor", "aof"))
LINE = '1767225602.250000 [0 127.0.0.1:5000] "GET" "k"\n'


def statements(folder: Path) -> list[tuple[str, list[object]]]:
    templates = read_trace(folder).templates
    rows = pq.read_table(folder / "statements.parquet").to_pylist()
    return [(templates[row["template"]].statement, json.loads(row["parameters"])) for row in rows]


def test_monitored_commands_are_those_that_were_sent(tmp_path: Path) -> None:
    assert recognise(MONITORED) is MONITOR
    trace = import_logs([MONITORED], tmp_path / "trace")
    sent = statements(tmp_path / "trace")
    assert ("SET $1 $2 EX $3", ["sensor:1", 'a "b" \\ \n é \\xff', "60"]) in sent
    assert ("MGET $1 $2 $3", ["sensor:1", "sensor:2", "nx"]) in sent
    assert ("ZADD $1 NX $2 $3", ["by-time", "1.5", "reading"]) in sent
    assert ("EVAL $1 $2 $3", ["return redis.call('GET', KEYS[1])", "1", "sensor:1"]) in sent
    assert sent.count(("GET $1", ["sensor:1"])) == 1, "what a script sends comes with the script"
    assert sent[sent.index(("INCR $1", ["in-database-3"])) - 1] == ("SELECT $1", ["3"])
    rows = pq.read_table(tmp_path / "trace" / "statements.parquet").to_pylist()
    kinds = {template.number: template.kind for template in trace.templates}
    in_transaction = [kinds[row["template"]] for row in rows if row["transaction"] is not None]
    assert in_transaction == ["begin", "write", "write", "commit"]
    assert (trace.database, trace.sessions, trace.skipped) == ("redis", 2, 2)
    assert describe_trace(tmp_path / "trace").statements == len(sent)


def test_an_append_only_file_has_the_writes(tmp_path: Path) -> None:
    assert recognise(APPENDED) is RESP
    import_logs([APPENDED], tmp_path / "trace")
    import_logs([MONITORED], tmp_path / "monitored")
    written = statements(tmp_path / "trace")
    assert ("SET $1 $2 PXAT $3", written[1][1]) == written[1], "the server writes the time at which a key expires"
    assert written[1][1][:2] == ["sensor:1", 'a "b" \\ \n é \\xff']
    of_both = [statement for statement in written if statement[0] in {"ZADD $1 NX $2 $3", "INCR $1"}]
    assert of_both == [found for found in statements(tmp_path / "monitored") if found in of_both]
    assert len(of_both) == 4


def test_requests_may_have_clients_and_decimals(tmp_path: Path) -> None:
    captured = tmp_path / "captured.resp"
    request = b"*2\r\n$3\r\nGET\r\n$1\r\n%b\r\n"
    captured.write_bytes(
        b"#TS:1767225602.25\r\n#CLIENT:a\r\n"
        + request % b"1"
        + b"#TS:1767225603\n#CLIENT:b\n"
        + request % b"2"
        + b"*2\r\n$3\r\nG"
    )
    trace = import_logs([captured], tmp_path / "trace")
    rows = pq.read_table(tmp_path / "trace" / "statements.parquet").to_pylist()
    assert [(row["at"].isoformat(), row["session"]) for row in rows] == [
        ("2026-01-01T00:00:02.250000+00:00", 0),
        ("2026-01-01T00:00:03+00:00", 1),
    ]
    assert trace.skipped == 1, "what is not whole at the end"


def test_a_session_that_chose_its_database_before_has_a_select(tmp_path: Path) -> None:
    text = tmp_path / "monitored.txt"
    text.write_text(f"OK\n{LINE.replace('[0 ', '[4 ')}{LINE.replace('[0 ', '[4 ')}", encoding="ascii")
    import_logs([text], tmp_path / "trace")
    assert statements(tmp_path / "trace") == [("SELECT $1", ["4"]), ("GET $1", ["k"]), ("GET $1", ["k"])]


@pytest.mark.parametrize(
    ("words", "template", "values", "kind"),
    [
        ("set ex nx NX GET", "SET $1 $2 NX GET", ("ex", "nx"), "write"),
        ("XADD s MAXLEN ~ 100 * f v", "XADD $1 MAXLEN ~ $2 * $3 $4", ("s", "100", "f", "v"), "write"),
        ("xread COUNT 2 STREAMS a b 0 0", "XREAD COUNT $1 STREAMS $2 $3 $4 $5", ("2", "a", "b", "0", "0"), "read"),
        ("config get save", "CONFIG GET $1", ("save",), "other"),
        ("object encoding k", "OBJECT ENCODING $1", ("k",), "read"),
        ("MULTI", "MULTI", (), "begin"),
        ("DISCARD", "DISCARD", (), "rollback"),
        ("NO.SUCH a", "NO.SUCH $1", ("a",), "other"),
    ],
)
def test_options_stay_in_the_template(words: str, template: str, values: tuple[str, ...], kind: str) -> None:
    assert command_template(words.split()) == (template, values, kind)


@pytest.mark.parametrize(
    ("form", "text", "said"),
    [
        ("redis-monitor", LINE + LINE.replace('"GET"', "GET"), ":2: expected a line of MONITOR"),
        ("redis-monitor", LINE + LINE.replace(' "k"', ' "k'), ":2: expected a line of MONITOR"),
        ("redis-resp", "*1\r\n$4\r\nPING\r\n", ": byte 0: expected a line #TS:SECONDS"),
        ("redis-resp", "#TS:1\r\n*1\r\n:4\r\nPING\r\n", ": byte 11: expected $ and a number"),
        ("redis-resp", "#TS:soon\r\n", ": byte 0: '#TS:soon' is not a time"),
        ("redis-resp", "#TS:1\r\nREDIS0010", ": byte 7: 'REDIS0010' is not the beginning of a request"),
    ],
)
def test_what_is_none_is_named_with_its_place(cli: Cli, tmp_path: Path, form: str, text: str, said: str) -> None:
    log = tmp_path / "log"
    log.write_bytes(text.encode())
    ended = cli("traffic", "import", log, "--out", tmp_path / "trace", "--log-format", form)
    assert (ended.exit_code, f"{log}{said}" in ended.err) == (2, True), ended.err
    assert not (tmp_path / "trace").exists()


def test_keys_and_values_are_gone_when_it_is_anonymised(cli: Cli, tmp_path: Path) -> None:
    import_logs([MONITORED], tmp_path / "trace", FORMATS["redis-monitor"])
    (tmp_path / "key").write_bytes(b"a key that nobody can guess")
    assert cli("traffic", "anonymise", tmp_path / "trace", "--key", tmp_path / "key", "--out", tmp_path / "new").exit_code == 0
    written = b"".join(file.read_bytes() for file in (tmp_path / "new").iterdir())
    assert b"sensor:1" not in written
    left = pq.read_table(tmp_path / "new" / "statements.parquet")["parameters"].to_pylist()
    assert not any("sensor:1" in row or "by-time" in row for row in left)
