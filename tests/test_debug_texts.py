"""No text of Rust's debugger reaches users: it names types and fields of the source, and says nothing to them."""

import re
from collections import Counter
from pathlib import Path

CRATES = Path(__file__).parent.parent / "crates"
DEBUG = re.compile(r"\{(\w*)(?:\.\w+)?:[0-9a-fx#]*\?\}")
# What ends a program that is wrong, and what only tests do.
NOT_FOR_USERS = re.compile(r"\b(?:debug_)?assert\w*!|\bpanic!|\bunreachable!|\.expect\(")

# Of texts, numbers and lists of them the debugger's form is that of a quoted text, a number and a list. By file, how often, and of what.
OF_PLAIN_VALUES = {
    "sensorbench-driver/src/keyed.rs": (1, "a text of a schema file, quoted"),
    "sensorbench-driver-cassandra/src/schema.rs": (1, "a word of a schema file, quoted"),
    "sensorbench-driver-cassandra/src/literals.rs": (1, "a recorded value, quoted"),
    "sensorbench-driver-cassandra/src/copy_file.rs": (1, "a number, with all its digits"),
    "sensorbench-driver-cassandra/src/wire.rs": (2, "a type's name in CQL, written small; a text that is not a number, quoted"),
    "sensorbench-driver-hbase/src/table.rs": (2, "a unit, written small; a name of a schema file, quoted"),
    "sensorbench-driver-http/src/influxdb/mod.rs": (1, "a text of a schema file, quoted"),
    "sensorbench-driver-http/src/line.rs": (1, "a text, quoted"),
    "sensorbench-driver-http/src/opentsdb/reading.rs": (2, "texts of a schema file, quoted"),
    "sensorbench-driver-http/src/points.rs": (1, "a name of a schema file, quoted"),
    "sensorbench-driver-http/src/schema.rs": (1, "a text of a schema file, quoted"),
    "sensorbench-driver-http/src/times.rs": (1, "a text of a schema file, quoted"),
    "sensorbench-driver-mongodb/src/answer.rs": (1, "the name of a type of BSON"),
    "sensorbench-driver-mongodb/src/command.rs": (1, "a word of a schema file, quoted"),
    "sensorbench-driver-mongodb/src/slots.rs": (2, "texts of a schema file and of a document, quoted"),
    "sensorbench-driver-mysql/src/wire/text.rs": (1, "a double as SQL has it"),
    "sensorbench-driver-mysql/src/wire/values.rs": (1, "a type's name without the library's prefix"),
    "sensorbench-driver-odbc/src/lib.rs": (1, "a column's name, quoted"),
    "sensorbench-driver-odbc/src/round_trip.rs": (3, "a double, a quoted text, bytes in hexadecimal digits"),
    "sensorbench-driver-odbc/src/target.rs": (1, "a URL's option, quoted"),
    "sensorbench-driver-redis/src/answer.rs": (1, "a text of a schema file, quoted"),
    "sensorbench-driver-redis/src/word.rs": (6, "words of a schema file, quoted"),
    "sensorbench-histogram/src/interval_log.rs": (1, "a tag, quoted"),
    "sensorbench-python/src/merge.rs": (1, "a tag, quoted"),
    "sensorbench-python/src/registry.rs": (1, "a database's name, quoted"),
    "sensorbench-workload/src/lib.rs": (2, "a list of weights"),
}


def debug_texts(source: str) -> int:
    """How many pieces of a source format a value in the debugger's form, outside of tests and of what ends a program that is wrong."""
    product = source.split("#[cfg(test)]\nmod ", 1)[0]
    statements = re.split(r";\n|\{\n|\}\n|,\n", product)
    return sum(len(DEBUG.findall(statement)) for statement in statements if not NOT_FOR_USERS.search(statement))


def test_no_text_of_the_debugger_reaches_users() -> None:
    files = [file for file in CRATES.glob("*/src/**/*.rs") if not {"bindings", "contract", "tests"} & {*file.parts, file.stem}]
    assert len(files) > 100
    found = Counter({str(file.relative_to(CRATES)): debug_texts(file.read_text(encoding="utf-8")) for file in files})
    assert {file: number for file, number in found.items() if number} == {
        file: number for file, (number, _) in OF_PLAIN_VALUES.items()
    }


def test_texts_of_the_debugger_are_found() -> None:
    assert debug_texts('return Err(Data(format!("{error:?}")));\n') == 1
    assert debug_texts('format!(\n    "{:?} and {0:#?}, {self.kind:?}",\n    error\n)') == 3
    assert debug_texts('assert!(is_so, "{error:?}");\nreturn format!("{error}");\n') == 0
    assert debug_texts('let a = 1;\n#[cfg(test)]\nmod tests {\n    format!("{a:?}");\n}\n') == 0
