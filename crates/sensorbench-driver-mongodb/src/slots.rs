//! Reading rows out of the slots of a document.

use bson::{RawBsonRef, RawDocument};
use sensorbench_driver::{Column, ConversionError, Parameter, Rows, SchemaError, Type, ValueRef};
use serde::Deserialize;

use crate::answer::{Path, read};
use crate::names::{Unit, place_of};

/// `slots` of an operation in a schema file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlotsText {
    /// The field of the documents that has the slots.
    field: String,
    /// The field with the time that the slots count from.
    start: String,
    /// What the keys of each level count.
    levels: Vec<Unit>,
    /// The time from which on slots are wanted, and until before which.
    from: Option<String>,
    to: Option<String>,
}

/// The slots of an operation's documents.
#[derive(Clone, Debug)]
pub struct Slots {
    field: Path,
    start: Path,
    levels: Vec<Unit>,
    from: Option<usize>,
    to: Option<usize>,
    columns: Vec<Cell>,
}

/// Where a column comes from.
#[derive(Clone, Debug)]
enum Cell {
    Time,
    Value(Type),
    Field(Path, Type),
}

impl Slots {
    pub fn of(path: &str, text: &SlotsText, parameters: &[Parameter], columns: &[Column]) -> Result<Self, SchemaError> {
        let bound = |key: &str, written: &Option<String>| {
            let path = format!("{path}.{key}");
            let place = |written: &String| match written.strip_prefix(':') {
                Some(name) => place_of(&path, name, parameters),
                None => Err(SchemaError::at(&path, format!("{written:?}: expected a parameter, as in :from"))),
            };
            written.as_ref().map(place).transpose()
        };
        if text.levels.is_empty() {
            return Err(SchemaError::at(format!("{path}.levels"), "expected at least one of day, hour, minute"));
        }
        let cell = |column: &Column| match (column.name.as_str(), column.value_type) {
            ("time", Type::Timestamp) => Cell::Time,
            ("value", value_type) => Cell::Value(value_type),
            (name, value_type) => Cell::Field(Path::of(name), value_type),
        };
        Ok(Self {
            field: Path::of(&text.field),
            start: Path::of(&text.start),
            levels: text.levels.clone(),
            from: bound("from", &text.from)?,
            to: bound("to", &text.to)?,
            columns: columns.iter().map(cell).collect(),
        })
    }

    /// Appends a row for each slot with a value.
    pub fn push<'v>(
        &self,
        rows: &mut Rows,
        document: &RawDocument,
        parameter: impl Fn(usize) -> ValueRef<'v>,
    ) -> Result<(), ConversionError> {
        let bound = |place: Option<usize>| match place.map(&parameter) {
            Some(ValueRef::Timestamp(time)) => Some(time),
            _ => None,
        };
        let (from, to) = (bound(self.from).unwrap_or(i64::MIN), bound(self.to).unwrap_or(i64::MAX));
        let start = match read(Type::Timestamp, self.start.find(document)?)? {
            ValueRef::Timestamp(start) => start,
            other => return Err(ConversionError(format!("the start of the slots is {other}, expected a time"))),
        };
        let Some(slots) = self.field.find(document)? else { return Ok(()) };
        self.visit(&self.levels, start, slots, &mut |time, value| {
            if time < from || time >= to {
                return Ok(());
            }
            for column in &self.columns {
                rows.push(match column {
                    Cell::Time => ValueRef::Timestamp(time),
                    Cell::Value(value_type) => read(*value_type, Some(value))?,
                    Cell::Field(path, value_type) => read(*value_type, path.find(document)?)?,
                });
            }
            rows.end_row();
            Ok(())
        })
    }

    fn visit<'d>(
        &self,
        levels: &[Unit],
        start: i64,
        slots: RawBsonRef<'d>,
        row: &mut impl FnMut(i64, RawBsonRef<'d>) -> Result<(), ConversionError>,
    ) -> Result<(), ConversionError> {
        let Some((unit, below)) = levels.split_first() else { return row(start, slots) };
        let RawBsonRef::Document(slots) = slots else {
            return Err(ConversionError("the slots are a single value, expected a document".to_owned()));
        };
        for slot in slots {
            let (key, value) = slot.map_err(|error| ConversionError(error.to_string()))?;
            if value == RawBsonRef::Null {
                continue;
            }
            let key = key.as_str();
            let number: i64 = key.parse().map_err(|_| ConversionError(format!("the slot {key:?} has no number")))?;
            self.visit(below, start + number * unit.length_us(), value, row)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bson::{RawDocumentBuf, doc};
    use sensorbench_driver::Value;
    use serde_json::json;

    use super::*;

    const MINUTE: i64 = 60_000_000;

    fn slots(text: serde_json::Value) -> Result<Slots, SchemaError> {
        let column = |name: &str, value_type| Column { name: name.to_owned(), value_type, computed: false };
        let columns = [column("value", Type::Double), column("time", Type::Timestamp), column("sensor", Type::Integer)];
        let parameter = |name: &str| Parameter { name: name.to_owned(), value_type: Type::Timestamp };
        Slots::of("x", &serde_json::from_value(text).unwrap(), &[parameter("from"), parameter("to")], &columns)
    }

    fn rows(slots: &Slots, document: bson::Document, from: i64, to: i64) -> Result<Vec<Vec<Value>>, ConversionError> {
        let document = RawDocumentBuf::try_from(&document).unwrap();
        let mut rows = Rows::new();
        slots.push(&mut rows, &document, |place| ValueRef::Timestamp([from, to][place]))?;
        Ok(rows.iter().map(|row| (0..3).map(|column| row.value(column).to_value()).collect()).collect())
    }

    #[test]
    fn each_slot_with_a_value_between_the_bounds_is_a_row() {
        let slots =
            slots(json!({"field": "h", "start": "day", "levels": ["hour", "minute"], "from": ":from", "to": ":to"})).unwrap();
        let document = doc! {
            "sensor": 7, "day": 0_i64, "h": {"0": {"0": 0.5, "1": null, "2": 2.5}, "1": {"0": 60.5}, "2": null},
        };
        let row = |time: i64, value: f64| vec![Value::Double(value), Value::Timestamp(time), Value::Integer(7)];
        assert_eq!(rows(&slots, document.clone(), 0, 60 * MINUTE).unwrap(), [row(0, 0.5), row(2 * MINUTE, 2.5)]);
        assert_eq!(rows(&slots, document, 1, i64::MAX).unwrap(), [row(2 * MINUTE, 2.5), row(60 * MINUTE, 60.5)]);
        assert!(rows(&slots, doc! {"day": 0_i64}, 0, 1).unwrap().is_empty());
    }

    #[test]
    fn what_are_no_slots_is_told() {
        let text = |from: &str| json!({"field": "h", "start": "day", "levels": ["hour"], "from": from});
        assert!(slots(text("from")).unwrap_err().to_string().contains("x.from: \"from\": expected a parameter"));
        assert!(slots(text(":form")).unwrap_err().to_string().contains("there is no :form"));
        let slots = slots(json!({"field": "h", "start": "day", "levels": ["hour"]})).unwrap();
        let refused = |document| rows(&slots, document, 0, 0).unwrap_err().to_string();
        assert!(refused(doc! {"h": {}}).contains("the start of the slots is null"));
        assert!(refused(doc! {"day": 0_i64, "h": 5}).contains("expected a document"));
        assert!(refused(doc! {"day": 0_i64, "h": {"x": 5}}).contains("\"x\" has no number"));
    }
}
