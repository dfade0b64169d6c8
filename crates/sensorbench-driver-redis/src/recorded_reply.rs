//! What a server answers to a command of a trace, as rows.

use redis::Value;
use sensorbench_driver::{Rows, ValueRef};

/// The elements of a reply as rows of this many; nil is not a row.
pub fn read(reply: &Value, columns: usize, keeps_answers: bool, rows: &mut Rows) {
    let elements: &[Value] = match reply {
        Value::Nil => &[],
        Value::Array(elements) | Value::Set(elements) => elements,
        single => std::slice::from_ref(single),
    };
    let columns = if elements.len().is_multiple_of(columns) { columns } else { 1 };
    for row in elements.chunks(columns) {
        if keeps_answers {
            row.iter().for_each(|value| push(value, rows));
            rows.end_row();
        } else {
            rows.count_row();
        }
    }
}

fn push(value: &Value, rows: &mut Rows) {
    let written;
    rows.push(match value {
        Value::Nil => ValueRef::Null,
        Value::Int(number) => ValueRef::Integer(*number),
        Value::BulkString(bytes) => ValueRef::Bytes(bytes),
        Value::SimpleString(text) => ValueRef::Text(text),
        Value::Double(number) => ValueRef::Double(*number),
        nested => {
            written = shown(nested);
            ValueRef::Text(&written)
        }
    });
}

/// A value within an answer, as redis-cli and JSON would write it: texts in quotes, other bytes as `\xff`, so that different values are
/// different texts.
fn shown(value: &Value) -> String {
    let quoted = |bytes: &[u8]| format!("\"{}\"", bytes.escape_ascii());
    let list = |values: &[Value]| values.iter().map(shown).collect::<Vec<_>>().join(", ");
    match value {
        Value::Nil => "nil".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Boolean(value) => value.to_string(),
        Value::Okay => "OK".to_owned(),
        Value::SimpleString(text) => text.clone(),
        Value::BulkString(bytes) => quoted(bytes),
        Value::VerbatimString { text, .. } => quoted(text.as_bytes()),
        Value::BigNumber(digits) => String::from_utf8_lossy(digits).into_owned(),
        Value::Array(values) | Value::Set(values) => format!("[{}]", list(values)),
        Value::Push { data, .. } => format!("[{}]", list(data)),
        Value::Map(pairs) => {
            let pairs: Vec<_> = pairs.iter().map(|(key, value)| format!("{}: {}", shown(key), shown(value))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        Value::Attribute { data, .. } => shown(data),
        Value::ServerError(error) => {
            format!("error {} {}", error.code(), error.details().unwrap_or_default()).trim_end().to_owned()
        }
        // The library may get to know more of the protocol.
        _ => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(word: &str) -> Value {
        Value::BulkString(word.into())
    }

    #[test]
    fn replies_become_rows() {
        for (reply, columns, expected) in [
            (Value::Nil, 1, 0),
            (Value::Int(5), 1, 1),
            (Value::Array(vec![word("a"), word("b")]), 1, 2),
            (Value::Array(vec![word("a"), word("b")]), 2, 1),
            (Value::Array(vec![word("a")]), 2, 1),
            (Value::Array(vec![Value::Array(vec![word("a")]), Value::Nil]), 1, 2),
        ] {
            for keeps_answers in [true, false] {
                let mut rows = Rows::new();
                read(&reply, columns, keeps_answers, &mut rows);
                assert_eq!(rows.len(), expected, "{reply:?}");
            }
        }
    }

    #[test]
    fn what_is_within_an_answer_is_written_so_that_it_can_be_told_apart() {
        let list = |values: Vec<Value>| shown(&Value::Array(values));
        assert_eq!(list(vec![word("a"), Value::Array(vec![Value::Int(1), Value::Nil])]), r#"["a", [1, nil]]"#);
        assert_eq!(list(vec![Value::BulkString(vec![0xff, b'"'])]), r#"["\xff\""]"#);
        assert_ne!(list(vec![word("a, b")]), list(vec![word("a"), word("b")]));
        assert_ne!(list(vec![word("1")]), list(vec![Value::Int(1)]));
        assert_eq!(shown(&Value::Map(vec![(word("a"), Value::Double(0.5))])), r#"{"a": 0.5}"#);
        assert_eq!(shown(&Value::Okay), "OK");
    }
}
