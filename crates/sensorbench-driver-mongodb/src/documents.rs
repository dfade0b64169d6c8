//! How rows of a fill become documents.

use std::collections::BTreeMap;
use std::convert::Infallible;

use bson::RawDocumentBuf;
use bson::oid::ObjectId;
use sensorbench_driver::{ConversionError, Parameter, SchemaError, Value, ValueRef};
use serde::Deserialize;
use serde_json::Value as Json;

use crate::conversion::FieldConversionError;
use crate::names::{Name, Piece, Unit};
use crate::template::{Part, Template, append_document_key, append_value, in_document};

/// `[create.documents.TABLE]` of a schema file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentsText {
    /// Name of the collection, if it is not that of the table.
    collection: Option<String>,
    /// A row as a document, or what rows share; the columns as they are if not given.
    document: Option<Json>,
    /// Of rows that share a document, where a row's value goes: one path and one column.
    #[serde(default)]
    each: BTreeMap<String, String>,
    /// Whether all slots are there from the start.
    #[serde(default)]
    preallocated: bool,
}

/// How the rows of a table become documents.
#[derive(Clone, Debug)]
pub struct Documents {
    /// The table's columns in their order.
    pub columns: Vec<Parameter>,
    /// Where the documents go.
    pub collection: Name,
    document: Template,
    each: Option<Each>,
}

/// Where rows that share a document go in it.
#[derive(Clone, Debug)]
struct Each {
    field: String,
    /// The time's column and its numbers, level by level.
    time: usize,
    levels: Vec<Unit>,
    value: usize,
    preallocated: bool,
}

impl Documents {
    pub fn of(table: &str, text: DocumentsText, columns: &[Parameter]) -> Result<Self, SchemaError> {
        let path = format!("create.documents.{table}");
        let collection = text.collection.as_deref().unwrap_or(table);
        let mut document = match &text.document {
            Some(document) => Template::of(&format!("{path}.document"), document, columns)?,
            None => Template::of_fields(columns),
        };
        let each = Each::of(&path, &text, columns)?;
        if each.is_none() {
            document.identify();
        }
        Ok(Self {
            columns: columns.to_vec(),
            collection: Name::of(&format!("{path}.collection"), collection, columns)?,
            document,
            each,
        })
    }

    /// The field with the slots; None if a row is a document.
    pub fn slots(&self) -> Option<&str> {
        self.each.as_ref().map(|each| each.field.as_str())
    }
}

impl Each {
    fn of(path: &str, text: &DocumentsText, columns: &[Parameter]) -> Result<Option<Self>, SchemaError> {
        let Some((slot, value)) = text.each.iter().next() else { return Ok(None) };
        let path = format!("{path}.each");
        let refused = || {
            SchemaError::at(&path, "expected one slot, as in { \"hours.:time@hour.:time@minute\" = \":value\" }, and a document")
        };
        let name = Name::of(&path, slot, columns)?;
        let (field, time, levels) =
            taken_apart(&name).filter(|_| text.each.len() == 1 && text.document.is_some()).ok_or_else(refused)?;
        let Part::Field { place: value, as_date: false } = Part::of(&path, &Json::String(value.clone()), columns)? else {
            return Err(refused());
        };
        if text.preallocated && levels.contains(&Unit::Day) {
            return Err(SchemaError::at(&path, "of days there is no end, so they cannot be preallocated"));
        }
        Ok(Some(Self { field, time, levels, value, preallocated: text.preallocated }))
    }

    /// No values, in all slots or in none.
    fn empty_slots(&self) -> BTreeMap<Vec<i64>, Value> {
        let mut slots = vec![Vec::new()];
        for unit in self.levels.iter().filter(|_| self.preallocated) {
            let numbers = 0..unit.count().unwrap_or_default();
            slots = slots.iter().flat_map(|slot| numbers.clone().map(|number| [slot.as_slice(), &[number]].concat())).collect();
        }
        if self.preallocated { slots.into_iter().map(|slot| (slot, Value::Null)).collect() } else { BTreeMap::new() }
    }
}

/// The field, the time's column and the levels of `field.:time@hour.:time@minute`.
fn taken_apart(name: &Name) -> Option<(String, usize, Vec<Unit>)> {
    let [Piece::Literal(field), rest @ ..] = name.pieces() else { return None };
    let mut levels = Vec::new();
    let mut time = None;
    for (number, piece) in rest.iter().enumerate() {
        match piece {
            Piece::OfTime(place, unit) if number % 2 == 0 && time.is_none_or(|time| time == *place) => {
                time = Some(*place);
                levels.push(*unit);
            }
            Piece::Literal(dot) if number % 2 == 1 && dot == "." => {}
            _ => return None,
        }
    }
    let field = field.strip_suffix('.').filter(|field| !field.contains('.'))?;
    Some((field.to_owned(), time.filter(|_| rest.len() % 2 == 1)?, levels))
}

/// A document that is ready, for a collection.
#[derive(Debug)]
pub struct Ready {
    pub collection: String,
    pub document: RawDocumentBuf,
    /// How many rows it holds.
    pub rows: u64,
}

/// Makes documents of rows, in the order in which they come.
pub struct Assembly<'a> {
    documents: &'a Documents,
    /// Documents that are complete.
    pub ready: Vec<Ready>,
    shared: Option<Shared>,
}

/// A document that rows still go into.
struct Shared {
    collection: String,
    /// What the rows have in common.
    base: Vec<u8>,
    slots: BTreeMap<Vec<i64>, Value>,
    rows: u64,
}

impl<'a> Assembly<'a> {
    pub fn new(documents: &'a Documents) -> Self {
        Self { documents, ready: Vec::new(), shared: None }
    }

    /// Takes in the next row.
    pub fn add<'v>(&mut self, value: &dyn Fn(usize) -> ValueRef<'v>) -> Result<(), ConversionError> {
        let error = |error: FieldConversionError| ConversionError(format!("column {}", error.describe(&self.documents.columns)));
        let (mut collection, mut bytes) = (String::new(), Vec::new());
        self.documents.collection.write(&mut collection, value).map_err(error)?;
        self.documents.document.append(&mut bytes, value).map_err(error)?;
        match &self.documents.each {
            None => self.ready.push(Ready { collection, document: document_of(bytes), rows: 1 }),
            Some(each) => {
                if self.shared.as_ref().is_none_or(|shared| shared.base != bytes || shared.collection != collection) {
                    self.finish();
                    self.shared = Some(Shared { collection, base: bytes, slots: each.empty_slots(), rows: 0 });
                }
                let shared = self.shared.as_mut().expect("was just made");
                shared.take_in(each, value).map_err(|what| ConversionError(what.describe(&self.documents.columns)))?;
            }
        }
        Ok(())
    }

    /// Completes the document that rows still went into.
    pub fn finish(&mut self) {
        let Some(shared) = self.shared.take() else { return };
        let each = self.documents.each.as_ref().expect("rows share documents");
        let rows = shared.rows;
        self.ready.push(Ready { collection: shared.collection.clone(), document: shared.document(&each.field), rows });
    }
}

/// Why a row has no place among those that share its document.
enum Displaced {
    NoTime(usize),
    BetweenSlots(usize, i64),
    Taken(usize, i64),
}

impl Displaced {
    fn describe(&self, columns: &[Parameter]) -> String {
        match self {
            Displaced::NoTime(place) => format!("column {}: expected a time", columns[*place].name),
            Displaced::BetweenSlots(place, time) => {
                format!("column {}", FieldConversionError::BetweenSlots(*place, *time).describe(columns))
            }
            Displaced::Taken(place, time) => format!(
                "column {}: there are two rows for the slot of the time {time} µs; rows that share a document must follow each other, \
                 and have a slot each",
                columns[*place].name
            ),
        }
    }
}

impl Shared {
    fn take_in<'v>(&mut self, each: &Each, value: &dyn Fn(usize) -> ValueRef<'v>) -> Result<(), Displaced> {
        let ValueRef::Timestamp(time) = value(each.time) else { return Err(Displaced::NoTime(each.time)) };
        if each.levels.last().is_some_and(|unit| time % unit.length_us() != 0) {
            return Err(Displaced::BetweenSlots(each.time, time));
        }
        let slot = each.levels.iter().map(|unit| unit.number(time)).collect();
        let before = self.slots.insert(slot, value(each.value).to_value());
        self.rows += 1;
        if before.is_some_and(|before| before != Value::Null) { Err(Displaced::Taken(each.time, time)) } else { Ok(()) }
    }

    /// The document with its slots, one document within another for each level.
    fn document(self, field: &str) -> RawDocumentBuf {
        let mut bytes = Vec::with_capacity(self.base.len() + 16 * self.slots.len());
        let slots: Vec<_> = self.slots.iter().map(|(slot, value)| (slot.as_slice(), value)).collect();
        let written = in_document::<Infallible>(&mut bytes, |out| {
            append_new_id(out);
            // Without its own length and end.
            out.extend_from_slice(&self.base[4..self.base.len() - 1]);
            append_document_key(out, field);
            append_slots(out, &slots);
            Ok(())
        });
        let Ok(()) = written;
        document_of(bytes)
    }
}

fn append_new_id(out: &mut Vec<u8>) {
    let id = bson::rawdoc! {"_id": ObjectId::new()};
    out.extend_from_slice(&id.as_bytes()[4..id.as_bytes().len() - 1]);
}

fn append_slots(out: &mut Vec<u8>, slots: &[(&[i64], &Value)]) {
    let written = in_document::<Infallible>(out, |out| {
        for of_one in slots.chunk_by(|(one, _), (other, _)| one[0] == other[0]) {
            let key = of_one[0].0[0].to_string();
            match of_one {
                [([_], value)] => append_value(out, &key, value.as_ref()),
                _ => {
                    let below: Vec<_> = of_one.iter().map(|(slot, value)| (&slot[1..], *value)).collect();
                    append_document_key(out, &key);
                    append_slots(out, &below);
                }
            }
        }
        Ok(())
    });
    let Ok(()) = written;
}

fn document_of(bytes: Vec<u8>) -> RawDocumentBuf {
    RawDocumentBuf::from_bytes(bytes).expect("a document was written")
}

#[cfg(test)]
mod tests {
    use bson::{Document, doc};
    use sensorbench_driver::Type;
    use serde_json::json;

    use super::*;

    const HOUR: i64 = 3_600_000_000;

    fn columns() -> Vec<Parameter> {
        let column = |name: &str, value_type| Parameter { name: name.to_owned(), value_type };
        vec![column("sensor", Type::Integer), column("time", Type::Timestamp), column("value", Type::Double)]
    }

    fn documents(text: Json) -> Result<Documents, SchemaError> {
        Documents::of("t", serde_json::from_value(text).unwrap(), &columns())
    }

    fn assembled(documents: &Documents, rows: &[(i64, i64, f64)]) -> Result<Vec<(String, Document, u64)>, ConversionError> {
        let mut assembly = Assembly::new(documents);
        for (sensor, time, value) in rows {
            let row = [ValueRef::Integer(*sensor), ValueRef::Timestamp(*time), ValueRef::Double(*value)];
            assembly.add(&|place| row[place])?;
        }
        assembly.finish();
        let document = |ready: Ready| {
            let mut document = Document::try_from(ready.document).unwrap();
            assert!(document.remove("_id").is_some(), "it has an identifier");
            (ready.collection, document, ready.rows)
        };
        Ok(assembly.ready.into_iter().map(document).collect())
    }

    #[test]
    fn a_row_is_a_document_with_its_columns_unless_told_otherwise() {
        let plain = assembled(&documents(json!({})).unwrap(), &[(1, 5, 0.5)]).unwrap();
        assert_eq!(plain, [("t".to_owned(), doc! {"sensor": 1, "time": 5_i64, "value": 0.5}, 1)]);
        let sliced = documents(json!({"collection": "t_:time@day", "document": {"s": ":sensor"}})).unwrap();
        assert_eq!(assembled(&sliced, &[(1, 25 * HOUR, 0.5)]).unwrap(), [("t_1".to_owned(), doc! {"s": 1}, 1)]);
    }

    #[test]
    fn rows_that_share_a_document_lie_in_its_slots() {
        let nested = documents(json!({"document": {"s": ":sensor"}, "each": {"h.:time@hour.:time@minute": ":value"}})).unwrap();
        assert_eq!(nested.slots(), Some("h"));
        let found = assembled(&nested, &[(1, 0, 0.0), (1, HOUR, 1.0), (1, HOUR + HOUR / 2, 1.5), (2, 0, 2.0)]).unwrap();
        let first = doc! {"s": 1, "h": {"0": {"0": 0.0}, "1": {"0": 1.0, "30": 1.5}}};
        assert_eq!(found, [("t".to_owned(), first, 3), ("t".to_owned(), doc! {"s": 2, "h": {"0": {"0": 2.0}}}, 1)]);
    }

    #[test]
    fn preallocated_slots_are_there_with_null() {
        let text = json!({"document": {"s": ":sensor"}, "each": {"h.:time@hour.:time@minute": ":value"}, "preallocated": true});
        let found = assembled(&documents(text).unwrap(), &[(1, HOUR, 1.0)]).unwrap();
        let hours = found[0].1.get_document("h").unwrap();
        assert_eq!((hours.len(), hours.get_document("23").unwrap().len()), (24, 60));
        let of_hour = hours.get_document("1").unwrap();
        assert_eq!((of_hour.get("0"), of_hour.get("1")), (Some(&1.0.into()), Some(&bson::Bson::Null)));
    }

    #[test]
    fn rows_without_a_slot_of_their_own_are_refused() {
        let nested = documents(json!({"document": {"s": ":sensor"}, "each": {"h.:time@hour": ":value"}})).unwrap();
        let refused = |rows: &[_]| assembled(&nested, rows).unwrap_err().to_string();
        assert!(refused(&[(1, 5, 0.0)]).contains("column time: the time 5 µs is not the beginning of a slot"));
        assert!(refused(&[(1, HOUR, 0.0), (1, HOUR, 1.0)]).contains("two rows for the slot"));
    }

    #[test]
    fn what_makes_no_slots_is_refused() {
        let refused =
            |each: Json| documents(json!({"document": {}, "each": each, "preallocated": true})).unwrap_err().to_string();
        assert!(refused(json!({"h": ":value"})).contains("create.documents.t.each: expected one slot"));
        assert!(refused(json!({"h.:time@hour:time@minute": ":value"})).contains("expected one slot"));
        assert!(refused(json!({"h.:time@day": ":value"})).contains("cannot be preallocated"));
        assert!(refused(json!({"h.:time@hour": "value"})).contains("expected one slot"));
        assert!(refused(json!({"h.:time@hour": ":valu"})).contains("there is no :valu"));
    }
}
