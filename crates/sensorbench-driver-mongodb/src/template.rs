//! Documents in which typed values are put, and their bytes in BSON. A value is never read as a part of the document around it.

use bson::oid::ObjectId;
use bson::{Bson, RawDocumentBuf};
use sensorbench_driver::{Parameter, SchemaError, Type, ValueRef};
use serde_json::Value as Json;

use crate::conversion::FieldConversionError;
use crate::names::{Name, place_of};

// Numbers of types, https://bsonspec.org/spec.html.
const DOUBLE: u8 = 0x01;
const TEXT: u8 = 0x02;
const DOCUMENT: u8 = 0x03;
const ARRAY: u8 = 0x04;
const BINARY: u8 = 0x05;
const OBJECT_ID: u8 = 0x07;
const BOOLEAN: u8 = 0x08;
const DATE: u8 = 0x09;
const NULL: u8 = 0x0a;
const INT: u8 = 0x10;
const LONG: u8 = 0x12;

/// A value of a document.
#[derive(Clone, Debug)]
pub enum Part {
    /// What stands in the schema, in BSON.
    Literal {
        kind: u8,
        bytes: Vec<u8>,
    },
    /// A parameter or column.
    Field {
        place: usize,
        as_date: bool,
    },
    /// An identifier that is new each time.
    NewId,
    Text(Name),
    Array(Vec<Part>),
    Document(Template),
}

/// A document with places for values.
#[derive(Clone, Debug, Default)]
pub struct Template {
    pub members: Vec<(Name, Part)>,
}

impl Template {
    /// Reads a document of a schema file.
    pub fn of(path: &str, json: &Json, fields: &[Parameter]) -> Result<Self, SchemaError> {
        let Json::Object(members) = json else {
            return Err(SchemaError::at(path, format!("expected a document, found {json}")));
        };
        let member = |(key, value): (&String, &Json)| {
            let path = format!("{path}.{key}");
            Ok((Name::of(&path, key, fields)?, Part::of(&path, value, fields)?))
        };
        Ok(Self { members: members.iter().map(member).collect::<Result<_, SchemaError>>()? })
    }

    /// A document that has each of these as a field.
    pub fn of_fields(fields: &[Parameter]) -> Self {
        let member =
            |(place, field): (usize, &Parameter)| (Name::Literal(field.name.clone()), Part::Field { place, as_date: false });
        Self { members: fields.iter().enumerate().map(member).collect() }
    }

    /// The member of this name.
    pub fn member(&self, key: &str) -> Option<&Part> {
        self.members.iter().find(|(name, _)| *name == Name::Literal(key.to_owned())).map(|(_, part)| part)
    }

    /// Appends a member that is not in it yet.
    pub fn add(&mut self, key: &str, part: Part) {
        if self.member(key).is_none() {
            self.members.push((Name::Literal(key.to_owned()), part));
        }
    }

    /// Gives it an identifier if it has none, as every driver does before it sends a new document.
    pub fn identify(&mut self) {
        if self.member("_id").is_none() {
            self.members.insert(0, (Name::Literal("_id".to_owned()), Part::NewId));
        }
    }

    /// The document's bytes with these values.
    pub fn append<'v>(&self, out: &mut Vec<u8>, value: &dyn Fn(usize) -> ValueRef<'v>) -> Result<(), FieldConversionError> {
        in_document(out, |out| {
            let mut key = String::new();
            for (name, part) in &self.members {
                key.clear();
                name.write_key(&mut key, value)?;
                part.append(out, &key, value)?;
            }
            Ok(())
        })
    }
}

impl Part {
    /// Reads a value of a schema file.
    pub fn of(path: &str, json: &Json, fields: &[Parameter]) -> Result<Self, SchemaError> {
        match json {
            Json::String(text) if text.starts_with(':') && !text.starts_with("::") && text.len() > 1 => {
                Part::field(path, &text[1..], fields, false)
            }
            Json::String(text) if text.starts_with("::") => Part::literal(path, &Json::String(text[1..].to_owned())),
            Json::Array(parts) => {
                let part = |(number, part): (usize, &Json)| Part::of(&format!("{path}[{number}]"), part, fields);
                Ok(Part::Array(parts.iter().enumerate().map(part).collect::<Result<_, _>>()?))
            }
            Json::Object(members) => match (members.len(), members.iter().next()) {
                (1, Some((key, Json::String(text)))) if key == "$date" && text.starts_with(':') => {
                    Part::field(path, &text[1..], fields, true)
                }
                // The one member of Extended JSON's values is none of the operators that queries and updates have.
                (_, Some((key, _))) if EXTENDED.contains(&key.as_str()) => Part::literal(path, json),
                _ => Template::of(path, json, fields).map(Part::Document),
            },
            other => Part::literal(path, other),
        }
    }

    fn field(path: &str, name: &str, fields: &[Parameter], as_date: bool) -> Result<Self, SchemaError> {
        let place = place_of(path, name, fields)?;
        if as_date && fields[place].value_type != Type::Timestamp {
            let value_type = fields[place].value_type.name();
            return Err(SchemaError::at(
                path,
                format!(":{name} within $date: expected a timestamp, it is declared as {value_type}"),
            ));
        }
        Ok(Part::Field { place, as_date })
    }

    fn literal(path: &str, json: &Json) -> Result<Self, SchemaError> {
        let value = Bson::try_from(json.clone()).map_err(|error| SchemaError::at(path, error.to_string()))?;
        Ok(Part::constant(value))
    }

    /// A value that is always the same.
    pub fn constant(value: impl Into<Bson>) -> Self {
        let document = bson::doc! {"": value.into()};
        let bytes = RawDocumentBuf::try_from(&document).expect("a document with one value").into_bytes();
        // Length, type, the empty key's end, value, end.
        Part::Literal { kind: bytes[4], bytes: bytes[6..bytes.len() - 1].to_vec() }
    }

    fn append<'v>(
        &self,
        out: &mut Vec<u8>,
        key: &str,
        value: &dyn Fn(usize) -> ValueRef<'v>,
    ) -> Result<(), FieldConversionError> {
        match self {
            Part::Literal { kind, bytes } => {
                append_key(out, *kind, key);
                out.extend_from_slice(bytes);
            }
            Part::Field { place, as_date: false } => append_value(out, key, value(*place)),
            Part::Field { place, as_date: true } => append_date(out, key, *place, value(*place))?,
            Part::NewId => {
                append_key(out, OBJECT_ID, key);
                out.extend_from_slice(&ObjectId::new().bytes());
            }
            Part::Text(name) => {
                let mut text = String::new();
                name.write(&mut text, value)?;
                append_value(out, key, ValueRef::Text(&text));
            }
            Part::Array(parts) => {
                append_key(out, ARRAY, key);
                in_document(out, |out| {
                    parts.iter().enumerate().try_for_each(|(number, part)| part.append(out, &number.to_string(), value))
                })?;
            }
            Part::Document(template) => {
                append_key(out, DOCUMENT, key);
                template.append(out, value)?;
            }
        }
        Ok(())
    }
}

/// Keys that make a document of Extended JSON a single value of another type.
const EXTENDED: [&str; 9] =
    ["$oid", "$date", "$numberInt", "$numberLong", "$numberDouble", "$numberDecimal", "$binary", "$regularExpression", "$uuid"];

/// Writes what is within a document, and its length before it.
pub fn in_document<E>(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out)?;
    out.push(0);
    let length = (out.len() - start) as i32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// Begins a document within a document.
pub fn append_document_key(out: &mut Vec<u8>, key: &str) {
    append_key(out, DOCUMENT, key);
}

fn append_key(out: &mut Vec<u8>, kind: u8, key: &str) {
    out.push(kind);
    out.extend_from_slice(key.as_bytes());
    out.push(0);
}

/// A value with its key.
pub fn append_value(out: &mut Vec<u8>, key: &str, value: ValueRef) {
    match value {
        ValueRef::Null => append_key(out, NULL, key),
        ValueRef::Boolean(value) => {
            append_key(out, BOOLEAN, key);
            out.push(value.into());
        }
        ValueRef::Integer(value) => match i32::try_from(value) {
            Ok(short) => {
                append_key(out, INT, key);
                out.extend_from_slice(&short.to_le_bytes());
            }
            Err(_) => append_long(out, LONG, key, value),
        },
        ValueRef::Double(value) => {
            append_key(out, DOUBLE, key);
            out.extend_from_slice(&value.to_le_bytes());
        }
        ValueRef::Timestamp(time_us) => append_long(out, LONG, key, time_us),
        ValueRef::Text(value) => {
            append_key(out, TEXT, key);
            out.extend_from_slice(&(value.len() as i32 + 1).to_le_bytes());
            out.extend_from_slice(value.as_bytes());
            out.push(0);
        }
        ValueRef::Bytes(value) => {
            append_key(out, BINARY, key);
            out.extend_from_slice(&(value.len() as i32).to_le_bytes());
            // Bytes of no special kind.
            out.push(0);
            out.extend_from_slice(value);
        }
    }
}

fn append_date(out: &mut Vec<u8>, key: &str, place: usize, value: ValueRef) -> Result<(), FieldConversionError> {
    match value {
        ValueRef::Timestamp(time_us) if time_us % 1000 != 0 => return Err(FieldConversionError::TooFine(place, time_us)),
        ValueRef::Timestamp(time_us) => append_long(out, DATE, key, time_us / 1000),
        other => append_value(out, key, other),
    }
    Ok(())
}

fn append_long(out: &mut Vec<u8>, kind: u8, key: &str, value: i64) {
    append_key(out, kind, key);
    out.extend_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use bson::spec::BinarySubtype;
    use bson::{Binary, DateTime, Document, doc};
    use serde_json::json;

    use super::*;

    fn fields() -> Vec<Parameter> {
        let field = |name: &str, value_type| Parameter { name: name.to_owned(), value_type };
        vec![
            field("text", Type::Text),
            field("time", Type::Timestamp),
            field("number", Type::Integer),
            field("value", Type::Double),
            field("data", Type::Bytes),
        ]
    }

    const VALUES: [ValueRef; 5] = [
        ValueRef::Text("{\"$gt\": \":value\"}"),
        ValueRef::Timestamp(7_200_000_000),
        ValueRef::Integer(1 << 40),
        ValueRef::Double(0.1),
        ValueRef::Bytes(&[0, 255]),
    ];

    fn written(json: Json) -> Document {
        let mut bytes = Vec::new();
        Template::of("x", &json, &fields()).unwrap().append(&mut bytes, &|place| VALUES[place]).unwrap();
        RawDocumentBuf::from_bytes(bytes).unwrap().try_into().unwrap()
    }

    #[test]
    fn values_are_put_in_with_their_types() {
        let data = Binary { subtype: BinarySubtype::Generic, bytes: vec![0, 255] };
        assert_eq!(
            written(
                json!({"a": ":text", "b": {"$gte": {"$date": ":time"}}, "c": [":number", ":time"], "d": ":value", "e": ":data"})
            ),
            doc! {
                "a": "{\"$gt\": \":value\"}", "b": {"$gte": DateTime::from_millis(7_200_000)},
                "c": [1_i64 << 40, 7_200_000_000_i64], "d": 0.1, "e": data,
            }
        );
    }

    #[test]
    fn what_is_no_parameter_stays_as_it_is() {
        assert_eq!(
            written(
                json!({"a": "::text", "b": "a:b", "c": {"$numberLong": "5"}, "d": null, "e": true, "f": ":", "g": {}, "h": "$x"})
            ),
            doc! {"a": ":text", "b": "a:b", "c": 5_i64, "d": null, "e": true, "f": ":", "g": {}, "h": "$x"}
        );
        assert_eq!(written(json!({"d": {"$date": "1970-01-01T00:00:01Z"}})), doc! {"d": DateTime::from_millis(1000)});
    }

    #[test]
    fn keys_stay_in_their_order_and_take_numbers() {
        let document = written(json!({"z": 1, "a": 1, "hours.:time@hour.:time@minute": ":value"}));
        assert_eq!(document.keys().collect::<Vec<_>>(), ["z", "a", "hours.2.0"]);
    }

    #[test]
    fn integers_are_as_short_as_they_can_be() {
        let kind = |value| {
            let mut bytes = Vec::new();
            append_value(&mut bytes, "", ValueRef::Integer(value));
            (bytes[0], bytes.len())
        };
        assert_eq!(kind(i64::from(i32::MIN)), (INT, 6));
        assert_eq!(kind(i64::from(i32::MAX) + 1), (LONG, 10));
    }

    #[test]
    fn new_documents_get_identifiers() {
        let mut template = Template::of("x", &json!({"a": 1}), &[]).unwrap();
        template.identify();
        template.identify();
        let id = || {
            let mut bytes = Vec::new();
            template.append(&mut bytes, &|_| ValueRef::Null).unwrap();
            RawDocumentBuf::from_bytes(bytes).unwrap().get_object_id("_id").unwrap()
        };
        assert_ne!(id(), id());
    }

    #[test]
    fn what_cannot_be_put_in_is_told_by_name() {
        let refused = |json: Json| Template::of("x", &json, &fields()).unwrap_err().to_string();
        assert_eq!(
            refused(json!({"a": {"b": ":tim"}})),
            "x.a.b: there is no :tim; expected one of :text, :time, :number, :value, :data (a text that begins with a colon is \
             written ::text)"
        );
        assert!(refused(json!({"a": {"$date": ":value"}})).contains("expected a timestamp, it is declared as double"));
        let template = Template::of("x", &json!({"a": {"$date": ":time"}}), &fields()).unwrap();
        let error = template.append(&mut Vec::new(), &|_| ValueRef::Timestamp(1)).unwrap_err();
        assert!(error.describe(&fields()).contains("time: the time 1 µs is not a whole number of milliseconds"));
    }
}
