//! Rows in the form that LOAD DATA reads: values between tabs, rows between line feeds, backslashes before what would be misread.

use std::io::Write;
use std::ops::Range;

use arrow_array::RecordBatch;
use bytes::Bytes;
use mysql_async::consts::ColumnType;
use mysql_async::prelude::Queryable;
use mysql_async::{Column as Found, Conn};
use sensorbench_dataset::Column;
use sensorbench_driver::{DriverError, Parameter, SchemaError, Type, ValueRef};

use super::calendar::Moment;
use super::link::Link;
use super::places::with_place;
use super::values::{finite, moment};
use crate::dialect::quoted;

/// This many bytes are written before they are sent: while the server reads one piece, we write the next.
const BYTES_A_PIECE: usize = 128 * 1024;

/// The columns of a table in the order of its fill, and how their values are written.
#[derive(Debug)]
pub struct Layout {
    pub table: String,
    columns: Vec<(Parameter, Form)>,
}

/// How the values of a column are written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    /// As the type has it; timestamps as microseconds.
    Plain,
    /// As date and time of day. The column keeps multiples of `step` microseconds.
    Datetime { step: i64 },
}

impl Layout {
    /// Asks the server what columns the table has.
    pub async fn of(table: &str, columns: &[Parameter], link: &Link, connection: &mut Conn) -> Result<Self, DriverError> {
        let path = || format!("fill.{table}");
        let names: Vec<_> = columns.iter().map(|column| quoted(&column.name)).collect();
        let statement = format!("SELECT {} FROM {} LIMIT 0", names.join(", "), quoted(table));
        let prepared = connection.prep(statement).await.map_err(|error| with_place(path(), link.error(error)))?;
        let form = |(column, found): (&Parameter, &Found)| match form(column, found) {
            Ok(form) => Ok((column.clone(), form)),
            Err(reason) => Err(SchemaError::at(path(), format!("column {}: {reason}", column.name))),
        };
        let columns = columns.iter().zip(prepared.columns().iter()).map(form).collect::<Result<_, _>>()?;
        connection.close(prepared).await.map_err(|error| link.error(error))?;
        Ok(Self { table: table.to_owned(), columns })
    }

    /// The statement that reads rows of this layout.
    ///
    /// Bytes are read as they are only where everything is; text must then be declared as such, so that columns with a character
    /// set of their own get what was meant.
    pub fn load_statement(&self) -> String {
        let is_binary = self.columns.iter().any(|(column, _)| column.value_type == Type::Bytes);
        let (mut names, mut meanings) = (Vec::new(), Vec::new());
        for (number, (column, _)) in self.columns.iter().enumerate() {
            let name = quoted(&column.name);
            if is_binary && column.value_type == Type::Text {
                meanings.push(format!("{name} = CONVERT(@text{number} USING utf8mb4)"));
                names.push(format!("@text{number}"));
            } else {
                names.push(name);
            }
        }
        let (character_set, names) = (if is_binary { "binary" } else { "utf8mb4" }, names.join(", "));
        let meanings = if meanings.is_empty() { String::new() } else { format!(" SET {}", meanings.join(", ")) };
        let table = quoted(&self.table);
        format!("LOAD DATA LOCAL INFILE 'rows' INTO TABLE {table} CHARACTER SET {character_set} ({names}){meanings}")
    }

    /// The text of a batch, piece by piece. Columns are found by name.
    pub fn pieces<'a>(&'a self, batch: &'a RecordBatch) -> Result<Pieces<'a>, DriverError> {
        let found = |(column, _): &(Parameter, Form)| Column::of(batch, &column.name);
        let arrays: Result<Vec<_>, _> = self.columns.iter().map(found).collect();
        let arrays = arrays.map_err(|error| DriverError::Data(format!("table {}: {error}", self.table)))?;
        Ok(Pieces { layout: self, arrays, rows: 0..batch.num_rows() })
    }

    fn write_row(&self, arrays: &[Column], row: usize, text: &mut Vec<u8>) -> Result<(), DriverError> {
        for (array, (column, form)) in arrays.iter().zip(&self.columns) {
            write_value(array.value(row), *form, text)
                .map_err(|reason| DriverError::Data(format!("table {}, column {}: {reason}", self.table, column.name)))?;
            text.push(b'\t');
        }
        text.pop();
        text.push(b'\n');
        Ok(())
    }
}

/// How values of a column are written, or why they cannot be stored there exactly.
fn form(column: &Parameter, found: &Found) -> Result<Form, String> {
    use ColumnType::{MYSQL_TYPE_DATETIME, MYSQL_TYPE_DOUBLE, MYSQL_TYPE_LONGLONG, MYSQL_TYPE_TIMESTAMP};
    match (column.value_type, found.column_type()) {
        (Type::Double, MYSQL_TYPE_DOUBLE) => Ok(Form::Plain),
        (Type::Double, _) => Err("a double is stored exactly in a DOUBLE alone".to_owned()),
        (Type::Timestamp, MYSQL_TYPE_DATETIME | MYSQL_TYPE_TIMESTAMP) => {
            Ok(Form::Datetime { step: 10_i64.pow(6_u32.saturating_sub(found.decimals().into())) })
        }
        (Type::Timestamp, MYSQL_TYPE_LONGLONG) => Ok(Form::Plain),
        (Type::Timestamp, _) => Err("a timestamp is stored in a DATETIME(6), a TIMESTAMP(6) or a BIGINT".to_owned()),
        _ => Ok(Form::Plain),
    }
}

/// The text of a batch, piece by piece.
pub struct Pieces<'a> {
    layout: &'a Layout,
    /// In the order of the layout's columns.
    arrays: Vec<Column<'a>>,
    /// Those that are not written yet.
    rows: Range<usize>,
}

impl Iterator for Pieces<'_> {
    type Item = Result<Bytes, DriverError>;

    fn next(&mut self) -> Option<Self::Item> {
        (!self.rows.is_empty()).then(|| self.piece())
    }
}

impl Pieces<'_> {
    fn piece(&mut self) -> Result<Bytes, DriverError> {
        let mut text = Vec::with_capacity(BYTES_A_PIECE + BYTES_A_PIECE / 8);
        while text.len() < BYTES_A_PIECE
            && let Some(row) = self.rows.next()
        {
            self.layout.write_row(&self.arrays, row, &mut text)?;
        }
        Ok(text.into())
    }
}

#[inline]
fn write_value(value: ValueRef, form: Form, text: &mut Vec<u8>) -> Result<(), String> {
    match (value, form) {
        (ValueRef::Null, _) => text.extend_from_slice(b"\\N"),
        (ValueRef::Boolean(value), _) => text.push(b'0' + u8::from(value)),
        (ValueRef::Timestamp(value), Form::Datetime { step }) => write_datetime(value, step, text)?,
        (ValueRef::Integer(value) | ValueRef::Timestamp(value), _) => print(text, format_args!("{value}")),
        // The shortest form that reads back as the same double.
        (ValueRef::Double(value), _) => print(text, format_args!("{:?}", finite(value)?)),
        (ValueRef::Text(value), _) => write_escaped(value.as_bytes(), text),
        (ValueRef::Bytes(value), _) => write_escaped(value, text),
    }
    Ok(())
}

fn print(text: &mut Vec<u8>, what: std::fmt::Arguments) {
    text.write_fmt(what).expect("memory takes what is written to it");
}

fn write_datetime(micros_since_1970: i64, step: i64, text: &mut Vec<u8>) -> Result<(), String> {
    if micros_since_1970 % step != 0 {
        return Err(format!("{micros_since_1970} µs since 1970 would be rounded; declare it DATETIME(6)"));
    }
    let Moment { year, month, day, hour, minute, second, micros } = moment(micros_since_1970)?;
    let parts = [
        (u32::from(year), 4, b'-'),
        (month.into(), 2, b'-'),
        (day.into(), 2, b' '),
        (hour.into(), 2, b':'),
        (minute.into(), 2, b':'),
    ];
    for (number, digits, separator) in parts {
        write_digits(number, digits, text);
        text.push(separator);
    }
    write_digits(second.into(), 2, text);
    text.push(b'.');
    write_digits(micros, 6, text);
    Ok(())
}

fn write_digits(mut number: u32, digits: usize, text: &mut Vec<u8>) {
    let start = text.len();
    text.resize(start + digits, b'0');
    for digit in text[start..].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

fn write_escaped(bytes: &[u8], text: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\\' | b'\t' | b'\n' | 0)) {
        text.extend_from_slice(&rest[..end]);
        text.extend_from_slice(match rest[end] {
            b'\t' => b"\\t",
            b'\n' => b"\\n",
            0 => b"\\0",
            _ => b"\\\\",
        });
        rest = &rest[end + 1..];
    }
    text.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use sensorbench_dataset::array_of;

    use super::*;

    fn written(value: ValueRef, form: Form) -> String {
        let mut text = Vec::new();
        write_value(value, form, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn values_are_written_as_load_data_reads_them() {
        let exact = Form::Datetime { step: 1 };
        for (value, form, expected) in [
            (ValueRef::Null, Form::Plain, "\\N"),
            (ValueRef::Boolean(true), Form::Plain, "1"),
            (ValueRef::Integer(i64::MIN), Form::Plain, "-9223372036854775808"),
            (ValueRef::Double(0.1 + 0.2), Form::Plain, "0.30000000000000004"),
            (ValueRef::Double(-1.797e308), Form::Plain, "-1.797e308"),
            (ValueRef::Timestamp(-123_456_789), exact, "1969-12-31 23:57:56.543211"),
            (ValueRef::Timestamp(-123_456_789), Form::Plain, "-123456789"),
            (ValueRef::Text("a\tb\\N\nc"), Form::Plain, "a\\tb\\\\N\\nc"),
            (ValueRef::Bytes(b"\0x"), Form::Plain, "\\0x"),
        ] {
            assert_eq!(written(value, form), expected);
        }
    }

    #[test]
    fn what_would_be_rounded_is_refused() {
        let refused = |value, form| write_value(value, form, &mut Vec::new()).unwrap_err();
        assert!(refused(ValueRef::Double(f64::NAN), Form::Plain).contains("NaN"));
        assert!(refused(ValueRef::Timestamp(1_500), Form::Datetime { step: 1_000 }).contains("DATETIME(6)"));
        let column = |value_type| Parameter { name: "c".to_owned(), value_type };
        assert!(form(&column(Type::Double), &Found::new(ColumnType::MYSQL_TYPE_FLOAT)).is_err());
        let seconds = Found::new(ColumnType::MYSQL_TYPE_DATETIME).with_decimals(0);
        assert_eq!(form(&column(Type::Timestamp), &seconds), Ok(Form::Datetime { step: 1_000_000 }));
    }

    fn layout(columns: &[(&str, Type)]) -> Layout {
        let column =
            |(name, value_type): &(&str, Type)| (Parameter { name: (*name).to_owned(), value_type: *value_type }, Form::Plain);
        Layout { table: "t".to_owned(), columns: columns.iter().map(column).collect() }
    }

    #[test]
    fn text_beside_bytes_is_told_apart() {
        assert_eq!(
            layout(&[("id", Type::Integer), ("name", Type::Text)]).load_statement(),
            "LOAD DATA LOCAL INFILE 'rows' INTO TABLE `t` CHARACTER SET utf8mb4 (`id`, `name`)"
        );
        assert_eq!(
            layout(&[("name", Type::Text), ("data", Type::Bytes)]).load_statement(),
            "LOAD DATA LOCAL INFILE 'rows' INTO TABLE `t` CHARACTER SET binary (@text0, `data`) \
             SET `name` = CONVERT(@text0 USING utf8mb4)"
        );
    }

    #[test]
    fn pieces_hold_whole_rows() {
        let ids = (0..100_000).map(ValueRef::Integer);
        let batch = RecordBatch::try_from_iter([("id", array_of(Type::Integer, ids))]).unwrap();
        let layout = layout(&[("id", Type::Integer)]);
        let pieces: Vec<_> = layout.pieces(&batch).unwrap().map(Result::unwrap).collect();
        assert!(pieces.len() > 1 && pieces.iter().all(|piece| piece.ends_with(b"\n")));
        assert_eq!(pieces.concat(), (0..100_000).map(|id| format!("{id}\n")).collect::<String>().into_bytes());
    }
}
