//! Rows as lines of QuestDB's line protocol. Doubles are sent as their bits (protocol version 2), so that no digit is lost.

use sensorbench_dataset::{Column, ValueRef};
use sensorbench_driver::ConversionError;

use crate::wire::values::{Form, Nulls};

/// What goes before the bits of a double in place of its digits.
const DOUBLE: &[u8] = b"=\x10";

/// How rows of a table are written.
pub struct LineEncoder {
    /// The table's name, and the space or comma after it.
    start: Vec<u8>,
    /// Columns but the designated timestamp, with their places.
    fields: Vec<Field>,
    /// The place of the designated timestamp.
    designated: usize,
}

struct Field {
    name: String,
    place: usize,
    form: Form,
}

/// A value that lines cannot hold, with the place of its column.
pub type Refused = (usize, ConversionError);

impl LineEncoder {
    /// For a table and the forms of its columns, of which one is the designated timestamp.
    pub fn new<'a>(table: &str, columns: impl Iterator<Item = (&'a str, Form)>, designated: usize) -> Self {
        let field = |(place, (name, form)): (usize, (&str, Form))| Field { name: escaped(name), place, form };
        let fields = columns.enumerate().filter(|(place, _)| *place != designated).map(field).collect();
        Self { start: escaped(table).into_bytes(), fields, designated }
    }

    /// Writes the line of a row. Null is what is not in it.
    pub fn encode(&self, arrays: &[Column], row: usize, out: &mut Vec<u8>) -> Result<(), Refused> {
        out.extend_from_slice(&self.start);
        let mut separator = b' ';
        for field in &self.fields {
            let value = arrays[field.place].value(row);
            let checked = field.form.encode(value).and_then(|_| Nulls::InBand.check(field.form, value));
            checked.map_err(|error| (field.place, error))?;
            if value != ValueRef::Null {
                out.push(separator);
                separator = b',';
                out.extend_from_slice(field.name.as_bytes());
                put(value, out);
            }
        }
        let ValueRef::Timestamp(time) = arrays[self.designated].value(row) else {
            return Err((self.designated, ConversionError("null cannot be a designated timestamp".to_owned())));
        };
        if time < 0 {
            let message = format!("the time {time} µs is before 1970, which no designated timestamp can be");
            return Err((self.designated, ConversionError(message)));
        }
        if separator == b' ' {
            return Err((self.designated, ConversionError("a row of nulls alone cannot be sent as a line".to_owned())));
        }
        out.extend_from_slice(format!(" {time}\n").as_bytes());
        Ok(())
    }
}

fn put(value: ValueRef, out: &mut Vec<u8>) {
    match value {
        ValueRef::Boolean(value) => out.extend_from_slice(if value { b"=t" } else { b"=f" }),
        ValueRef::Integer(value) => out.extend_from_slice(format!("={value}i").as_bytes()),
        ValueRef::Timestamp(value) => out.extend_from_slice(format!("={value}t").as_bytes()),
        ValueRef::Double(value) => {
            out.push(b'=');
            out.extend_from_slice(DOUBLE);
            out.extend_from_slice(&value.to_le_bytes());
        }
        ValueRef::Text(text) => {
            out.extend_from_slice(b"=\"");
            for byte in text.bytes() {
                if matches!(byte, b'"' | b'\\' | b'\n' | b'\r') {
                    out.push(b'\\');
                }
                out.push(byte);
            }
            out.push(b'"');
        }
        ValueRef::Null | ValueRef::Bytes(_) => unreachable!("null is not sent, and tables with bytes are loaded by inserts"),
    }
}

/// A name as it stands in a line.
fn escaped(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for character in name.chars() {
        if matches!(character, ' ' | ',' | '=' | '\\') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, RecordBatch};
    use sensorbench_dataset::{Type, array_of};

    use super::*;

    fn line(values: &[(&str, Type, ValueRef)], forms: &[Form]) -> Result<Vec<u8>, String> {
        let arrays: Vec<(&str, ArrayRef, bool)> = values
            .iter()
            .map(|(name, value_type, value)| (*name, array_of(*value_type, std::iter::once(*value)), true))
            .collect();
        let batch = RecordBatch::try_from_iter_with_nullable(arrays).unwrap();
        let columns: Vec<Column> = values.iter().map(|(name, ..)| Column::of(&batch, name).unwrap()).collect();
        let names = values.iter().map(|(name, ..)| *name).zip(forms.iter().copied());
        let mut out = Vec::new();
        let encoded = LineEncoder::new("a.t", names, 0).encode(&columns, 0, &mut out);
        encoded.map(|()| out).map_err(|(_, error)| error.to_string())
    }

    fn at(time: i64) -> (&'static str, Type, ValueRef<'static>) {
        ("time", Type::Timestamp, ValueRef::Timestamp(time))
    }

    #[test]
    fn a_line_has_what_is_not_null_and_ends_with_the_time() {
        let values = [
            at(1_000_001),
            ("i", Type::Integer, ValueRef::Integer(-7)),
            ("b", Type::Boolean, ValueRef::Boolean(true)),
            ("n", Type::Integer, ValueRef::Null),
            ("s", Type::Text, ValueRef::Text("a \"b\"\\\n日")),
            ("t", Type::Timestamp, ValueRef::Timestamp(-5)),
        ];
        let forms = [Form::Timestamp, Form::Int8, Form::Boolean, Form::Int8, Form::Text, Form::Timestamp];
        assert_eq!(line(&values, &forms).unwrap(), "a.t i=-7i,b=t,s=\"a \\\"b\\\"\\\\\\\n日\",t=-5t 1000001\n".as_bytes());
    }

    #[test]
    fn doubles_are_sent_as_their_bits() {
        let expected = [b"a.t v==\x10".as_slice(), &0.1_f64.to_le_bytes(), b" 5\n"].concat();
        let values = [at(5), ("v", Type::Double, ValueRef::Double(0.1))];
        assert_eq!(line(&values, &[Form::Timestamp, Form::Float8]).unwrap(), expected);
    }

    #[test]
    fn what_would_be_changed_is_refused() {
        let forms = [Form::Timestamp, Form::Float8];
        let refused = |time, value| line(&[at(time), ("v", Type::Double, value)], &forms).unwrap_err();
        assert!(refused(5, ValueRef::Double(f64::NAN)).contains("NaN cannot be stored"));
        assert!(refused(-1, ValueRef::Double(1.0)).contains("before 1970"));
        assert!(refused(5, ValueRef::Null).contains("a row of nulls alone"));
    }
}
