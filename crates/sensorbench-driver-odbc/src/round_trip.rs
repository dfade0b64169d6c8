//! The check that a driver and a database keep values as they are: of each kind of value that a column is given, the first one is
//! read back while rows are loaded. Drivers are known to cut fractions of seconds, round doubles, turn text into question marks
//! or empty text into null, and say nothing.

use sensorbench_driver::{DriverError, RowRef, Rows, Type, ValueRef};

use crate::control::Control;
use crate::layout::{Layout, Values};
use crate::odbc::Form;

/// When 32 bits of seconds are full.
const AFTER_2038: i64 = (1 << 31) * 1_000_000;

/// The kinds of values that each column was given so far.
pub struct RoundTripCheck<'a> {
    layout: &'a Layout,
    seen: Vec<u32>,
}

impl<'a> RoundTripCheck<'a> {
    pub fn of(layout: &'a Layout) -> Self {
        Self { layout, seen: vec![0; layout.columns.len()] }
    }

    /// Reads back those of these rows that have a value of a kind that was not there before.
    pub fn check(&mut self, values: &Values, control: &Control) -> Result<(), DriverError> {
        for row in 0..values.rows {
            let mut is_new = false;
            for (seen, value) in self.seen.iter_mut().zip(values.row(row)) {
                let kind = kind(value);
                is_new |= *seen & kind != kind;
                *seen |= kind;
            }
            if is_new {
                self.read_back(&values.row(row).collect::<Vec<_>>(), control)?;
            }
        }
        Ok(())
    }

    /// Finds the row by its integers and times, and compares all of it.
    fn read_back(&self, row: &[ValueRef], control: &Control) -> Result<(), DriverError> {
        let columns = || self.layout.columns.iter().map(|(column, _)| column);
        let read: Vec<_> = columns().map(|column| control.link.dbms().exact(&column.name, column.value_type)).collect();
        let types: Vec<Type> = columns().map(|column| column.value_type).collect();
        let (mut conditions, mut parameters) = (Vec::new(), Vec::new());
        for ((column, form), value) in self.layout.columns.iter().zip(row) {
            if matches!(value, ValueRef::Integer(_) | ValueRef::Timestamp(_)) {
                conditions.push(format!("{} = ?", column.name));
                parameters.push((*value, *form));
            }
        }
        let condition = if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
        let operation_statement = format!("SELECT {} FROM {}{condition}", read.join(", "), self.layout.table);
        let parameters: Vec<ValueRef> = parameters.into_iter().map(|(value, form)| stored(value, form)).collect();
        let found = control.ask(operation_statement, &parameters, &types)?;
        match self.difference(row, &found) {
            None => Ok(()),
            Some(difference) => Err(DriverError::Data(format!("table {}, {difference}", self.layout.name))),
        }
    }

    /// How the row that is most like the written one differs from it.
    fn difference(&self, row: &[ValueRef], found: &Rows) -> Option<String> {
        let differing = |found: RowRef| -> Vec<(usize, String)> {
            let pairs = row.iter().enumerate().map(|(number, written)| (number, *written, found.value(number)));
            pairs.filter(|(_, written, read)| !is_same(*written, *read)).map(|(number, _, read)| (number, shown(read))).collect()
        };
        let nearest = found.iter().map(differing).min_by_key(Vec::len);
        let Some(differences) = nearest else {
            let times = row.iter().filter(|value| matches!(value, ValueRef::Timestamp(_)));
            let values: Vec<_> = times.map(|value| shown(*value)).collect();
            return Some(format!(
                "a row was written and is not found by its own integers and times ({}): the driver or the column rounds them; \
                 declare times as TIMESTAMP(6), or as BIGINT, which keeps microseconds",
                values.join(", ")
            ));
        };
        let (number, read) = differences.first()?;
        let (column, _) = &self.layout.columns[*number];
        Some(format!(
            "column {}: {} was written and {read} is read back; {}",
            column.name,
            shown(row[*number]),
            advice(column.value_type)
        ))
    }
}

/// A time that is stored as an integer is looked for as one.
fn stored(value: ValueRef, form: Form) -> ValueRef {
    match (value, form) {
        (ValueRef::Timestamp(micros), Form::Integer) => ValueRef::Integer(micros),
        (value, _) => value,
    }
}

/// Equal bit by bit, but for −0.0 and the many forms of NaN.
fn is_same(written: ValueRef, read: ValueRef) -> bool {
    match (written, read) {
        (ValueRef::Double(written), ValueRef::Double(read)) => written == read || (written.is_nan() && read.is_nan()),
        _ => written == read,
    }
}

fn shown(value: ValueRef) -> String {
    let text = match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Timestamp(micros) => format!("{micros} µs since 1970"),
        ValueRef::Boolean(value) => value.to_string(),
        ValueRef::Integer(value) => value.to_string(),
        ValueRef::Double(value) => format!("{value:?}"),
        ValueRef::Text(text) => format!("{text:?}"),
        ValueRef::Bytes(bytes) => format!("{bytes:02x?}"),
    };
    if text.chars().count() <= 60 { text } else { text.chars().take(60).chain(['…']).collect() }
}

fn advice(value_type: Type) -> &'static str {
    match value_type {
        Type::Timestamp => "declare the column TIMESTAMP(6), or BIGINT, which keeps microseconds",
        Type::Double => "declare the column DOUBLE PRECISION, and leave out what the database cannot store",
        Type::Text => "declare a column for Unicode text, and give text=utf8 in the URL when the driver is not one for Unicode",
        Type::Boolean | Type::Integer | Type::Bytes => "declare the column with a type that keeps it",
    }
}

/// Properties of a value that some driver or database does not keep, as bits.
fn kind(value: ValueRef) -> u32 {
    match value {
        ValueRef::Null => bits([true, false, false]),
        ValueRef::Boolean(value) => bits([false, value, !value]),
        ValueRef::Integer(value) => {
            bits([false, true, value < 0, i32::try_from(value).is_err(), value.unsigned_abs() > 1 << f64::MANTISSA_DIGITS])
        }
        ValueRef::Double(value) => bits([
            false,
            true,
            value.is_nan(),
            value.is_infinite(),
            has_many_digits(value),
            value.abs() > f32::MAX.into(),
            value != 0.0 && value.abs() < f32::MIN_POSITIVE.into(),
        ]),
        ValueRef::Timestamp(micros) => bits([
            false,
            true,
            micros < 0,
            micros >= AFTER_2038,
            micros % 1_000_000 != 0,
            micros % 10_000 != 0,
            micros % 1_000 != 0,
            micros % 10 != 0,
        ]),
        ValueRef::Text(text) => bits([
            false,
            true,
            text.is_empty(),
            text.ends_with(' '),
            !text.is_ascii(),
            text.chars().any(|c| c > '\u{ffff}'),
            text.len() > 255,
            text.len() > 4000,
        ]),
        ValueRef::Bytes(bytes) => {
            bits([false, true, bytes.is_empty(), bytes.contains(&0), bytes.len() > 255, bytes.len() > 4000])
        }
    }
}

fn bits<const N: usize>(properties: [bool; N]) -> u32 {
    properties.iter().rev().fold(0, |bits, property| bits << 1 | u32::from(*property))
}

/// Whether a double needs more decimal digits than 15, as nearly as can be decided quickly.
fn has_many_digits(value: f64) -> bool {
    value.to_bits() & 0xff != 0 && (value * 1e9).fract() != 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart() {
        let is_new = |before: ValueRef, value: ValueRef| kind(before) & kind(value) != kind(value);
        let text = ValueRef::Text;
        for (before, value) in [
            (ValueRef::Integer(1), ValueRef::Null),
            (ValueRef::Integer(1), ValueRef::Integer(-1)),
            (ValueRef::Integer(1 << 40), ValueRef::Integer(1 << 60)),
            (ValueRef::Double(0.5), ValueRef::Double(0.1 + 0.2)),
            (ValueRef::Double(0.5), ValueRef::Double(f64::NAN)),
            (ValueRef::Timestamp(1_000), ValueRef::Timestamp(1_001)),
            (ValueRef::Timestamp(1_000), ValueRef::Timestamp(AFTER_2038)),
            (text("a"), text("")),
            (text("a"), text("é")),
            (text("é"), text("🌡")),
            (ValueRef::Bytes(b"a"), ValueRef::Bytes(b"a\0")),
        ] {
            assert!(is_new(before, value), "{value:?} after {before:?}");
        }
        assert!(!is_new(ValueRef::Timestamp(1_001), ValueRef::Timestamp(7_003)));
        assert!(!is_new(text("é "), text("à")));
        assert!(!is_new(ValueRef::Double(0.1 + 0.2), ValueRef::Double(0.25)));
    }

    #[test]
    fn what_was_changed_on_the_way_is_named() {
        let parameter = |name: &str, value_type| sensorbench_driver::Parameter { name: name.to_owned(), value_type };
        let columns = [(parameter("id", Type::Integer), Form::Integer), (parameter("time", Type::Timestamp), Form::Moment)];
        let layout = Layout { name: "log".to_owned(), table: "sensorbench_log".to_owned(), columns: columns.into() };
        let round_trip = RoundTripCheck::of(&layout);
        let written = [ValueRef::Integer(1), ValueRef::Timestamp(1_234_567)];
        let mut found = Rows::new();
        let none = round_trip.difference(&written, &found).unwrap();
        assert!(none.contains("is not found") && none.contains("1234567 µs"), "{none}");
        for micros in [1_000_000, 1_234_000] {
            written[..1].iter().for_each(|value| found.push(*value));
            found.push(ValueRef::Timestamp(micros));
            found.end_row();
        }
        let cut = round_trip.difference(&written, &found).unwrap();
        assert!(
            cut.starts_with("column time: 1234567 µs since 1970 was written and 1000000 µs since 1970 is read back"),
            "{cut}"
        );
        written.iter().for_each(|value| found.push(*value));
        found.end_row();
        assert_eq!(round_trip.difference(&written, &found), None);
    }
}
