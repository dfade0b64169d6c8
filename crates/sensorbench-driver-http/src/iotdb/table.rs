//! Tables at the server, and how rows are written into them: tablets, of which a request has one.

use std::collections::BTreeMap;

use sensorbench_driver::{ConversionError, Parameter, Schema, SchemaError, SqlSchema, Type, ValueRef, parse_part};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::precision::Precision;
use super::tree::Paths;
use crate::connection::Call;
use crate::template::{append_number, quoted, tag_text};

/// Time and length before each row of a batch.
const HEAD_BYTES: usize = 12;

/// A schema whose parts are known to be sound.
#[derive(Clone, Debug)]
pub struct IotdbSchema {
    pub sql: SqlSchema,
    columns: BTreeMap<String, BTreeMap<String, String>>,
    /// Of the tree model: which columns are nodes; None in the table model.
    pub paths: Option<Paths>,
}

/// `[create]` of a schema file besides its statements.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Create {
    #[serde(rename = "statements")]
    _statements: Option<Json>,
    #[serde(default)]
    columns: BTreeMap<String, BTreeMap<String, String>>,
    paths: Option<Paths>,
}

impl IotdbSchema {
    pub fn of(schema: &Schema) -> Result<Self, SchemaError> {
        let Create { columns, paths, .. } = parse_part("create", &schema.create)?;
        let mut statements = schema.clone();
        if let Some(create) = statements.create.as_object_mut() {
            create.remove("columns");
            create.remove("paths");
        }
        Ok(Self { sql: SqlSchema::of(&statements)?, columns, paths })
    }

    /// The names that the columns of a table have at the server, by those of the load query.
    pub fn server_names(&self, table: &str) -> BTreeMap<String, String> {
        let renamed = self.columns.get(table).into_iter().flatten();
        renamed.map(|(server, ours)| (ours.clone(), server.clone())).collect()
    }
}

/// What a column is, as the server says.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub name: String,
    pub type_name: String,
    pub category: String,
}

/// A column that is written.
#[derive(Clone, Debug, PartialEq)]
struct Column {
    /// In the load query, or among an operation's parameters.
    ours: String,
    is_tag: bool,
    is_time: bool,
}

/// A table with the columns that are written, in their order.
#[derive(Clone, Debug)]
pub struct Table {
    /// The tablet without its times and values, and without its end.
    head: String,
    columns: Vec<Column>,
    time: usize,
    precision: Precision,
}

impl Table {
    /// A table of a database, of whose columns the server says what they are; `server_names` are those of columns that are called
    /// otherwise there.
    pub fn of(
        (database, table): (&str, &str),
        columns: &[Parameter],
        server_names: &BTreeMap<String, String>,
        found: &[Found],
        precision: Precision,
    ) -> Result<Self, String> {
        if found.is_empty() {
            return Err("the statements of [create] create no such table".to_owned());
        }
        let known = columns.iter().map(|column| known(column, server_names, found)).collect::<Result<Vec<_>, _>>()?;
        let time = known.iter().position(|(_, found)| found.category == "TIME");
        let time = time.ok_or("no column becomes the time of a row; name it: columns = { time = \"…\" }")?;
        let written = || known.iter().filter(|(_, found)| found.category != "TIME").map(|(_, found)| *found);
        let list = |part: fn(&Found) -> &str| written().map(part).collect::<Vec<_>>();
        let head = json!({
            "database": database,
            "table": table,
            "column_names": list(|found| &found.name),
            // So it is called there.
            "column_catogories": list(|found| &found.category),
            "data_types": list(|found| &found.type_name),
        });
        let head = head.to_string().trim_end_matches('}').to_owned();
        let columns = known.iter().map(|(column, found)| Column {
            ours: column.name.clone(),
            is_tag: found.category == "TAG",
            is_time: found.category == "TIME" || found.type_name == "TIMESTAMP",
        });
        Ok(Self { head, columns: columns.collect(), time, precision })
    }

    fn append_values<'v>(&self, text: &mut String, value: impl Fn(usize) -> ValueRef<'v>) -> Result<(), ConversionError> {
        for (place, column) in self.columns.iter().enumerate().filter(|(place, _)| *place != self.time) {
            text.push(if text.is_empty() { '[' } else { ',' });
            append_value(text, column, value(place), self.precision).map_err(|error| error.at("column", &column.ours))?;
        }
        text.push(']');
        Ok(())
    }
}

/// A column with what the server has under its name, if values of its type can be written there.
fn known<'a>(
    column: &'a Parameter,
    server_names: &BTreeMap<String, String>,
    found: &'a [Found],
) -> Result<(&'a Parameter, &'a Found), String> {
    let name = server_names.get(&column.name).unwrap_or(&column.name);
    let listed = || found.iter().map(|found| found.name.as_str()).collect::<Vec<_>>().join(", ");
    let found = found.iter().find(|found| found.name == *name);
    let found = found.ok_or_else(|| format!("the table has no column {name}; it has {}", listed()))?;
    let fits = match (found.category.as_str(), found.type_name.as_str()) {
        ("TIME", _) => matches!(column.value_type, Type::Timestamp | Type::Integer),
        ("TAG", _) => matches!(column.value_type, Type::Text | Type::Integer | Type::Boolean),
        (_, "BOOLEAN") => column.value_type == Type::Boolean,
        (_, "INT64") => column.value_type == Type::Integer,
        (_, "DOUBLE") => column.value_type == Type::Double,
        (_, "TIMESTAMP") => column.value_type == Type::Timestamp,
        (_, "STRING" | "TEXT") => column.value_type == Type::Text,
        _ => false,
    };
    if fits {
        return Ok((column, found));
    }
    Err(format!(
        "column {name}: values of type {} cannot be written into a {} of type {}",
        column.value_type.name(),
        found.category,
        found.type_name
    ))
}

fn append_value(text: &mut String, column: &Column, value: ValueRef, precision: Precision) -> Result<(), ConversionError> {
    match value {
        ValueRef::Null if column.is_tag => return Err(ConversionError("a tag cannot be null".to_owned())),
        ValueRef::Null => text.push_str("null"),
        value if column.is_tag => text.push_str(&quoted(&tag_text(value)?)),
        ValueRef::Timestamp(time_us) => text.push_str(&precision.time(time_us)?.to_string()),
        ValueRef::Boolean(value) => text.push_str(if value { "true" } else { "false" }),
        ValueRef::Integer(_) | ValueRef::Double(_) => append_number(text, value)?,
        ValueRef::Text(value) => text.push_str(&quoted(value)),
        ValueRef::Bytes(_) => return Err(ConversionError("bytes cannot be written over REST".to_owned())),
    }
    Ok(())
}

impl Table {
    /// Names of the columns of a row, in order.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.ours.as_str())
    }

    /// Appends the row's time, the length of its values, and the values.
    pub fn append<'v>(&self, data: &mut Vec<u8>, value: impl Fn(usize) -> ValueRef<'v>) -> Result<(), ConversionError> {
        let time = match value(self.time) {
            ValueRef::Timestamp(time_us) => self.precision.time(time_us),
            ValueRef::Integer(number) => Ok(number),
            _ => Err(ConversionError("the time of a row cannot be null".to_owned())),
        };
        let time = time.map_err(|error| error.at("column", &self.columns[self.time].ours))?;
        let mut values = String::with_capacity(64);
        self.append_values(&mut values, value)?;
        let length = u32::try_from(values.len()).map_err(|_| ConversionError("a row has more than 4 GB".to_owned()))?;
        data.extend_from_slice(&time.to_le_bytes());
        data.extend_from_slice(&length.to_le_bytes());
        data.extend_from_slice(values.as_bytes());
        Ok(())
    }

    /// The request that writes rows: a tablet.
    pub fn call(&self, data: Vec<u8>) -> Call {
        let mut times = String::new();
        let mut values = Vec::with_capacity(data.len());
        let mut rest = data.as_slice();
        while !rest.is_empty() {
            let (head, after) = rest.split_at(HEAD_BYTES);
            let time = i64::from_le_bytes(head[..8].try_into().expect("eight bytes"));
            let length = u32::from_le_bytes(head[8..].try_into().expect("four bytes")) as usize;
            let separator = if times.is_empty() { "" } else { "," };
            times.push_str(separator);
            times.push_str(itoa::Buffer::new().format(time));
            values.extend_from_slice(separator.as_bytes());
            values.extend_from_slice(&after[..length]);
            rest = &after[length..];
        }
        let body = [format!("{},\"timestamps\":[{times}],\"values\":[", self.head).into_bytes(), values, b"]}".to_vec()].concat();
        Call::post_json("/rest/table/v1/insertTablet", body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Body;

    fn found(name: &str, type_name: &str, category: &str) -> Found {
        Found { name: name.to_owned(), type_name: type_name.to_owned(), category: category.to_owned() }
    }

    fn table(precision: Precision, columns: &[(&str, Type)]) -> Result<Table, String> {
        let columns: Vec<_> =
            columns.iter().map(|(name, value_type)| Parameter { name: (*name).to_owned(), value_type: *value_type }).collect();
        let found = [found("time", "TIMESTAMP", "TIME"), found("site", "STRING", "TAG"), found("value", "DOUBLE", "FIELD")];
        let names = BTreeMap::from([("measured".to_owned(), "time".to_owned())]);
        Table::of(("d", "t"), &columns, &names, &found, precision)
    }

    #[test]
    fn rows_become_a_tablet() {
        let table =
            table(Precision::Millis, &[("value", Type::Double), ("measured", Type::Timestamp), ("site", Type::Integer)]).unwrap();
        let mut data = Vec::new();
        for (time, site, value) in [(1000, 7, ValueRef::Double(5.0)), (-2000, 8, ValueRef::Null)] {
            let values = [value, ValueRef::Timestamp(time), ValueRef::Integer(site)];
            table.append(&mut data, |place| values[place]).unwrap();
        }
        let Some(Body::Json(body)) = table.call(data).body else { panic!("a body of JSON") };
        let body: Json = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["timestamps"], json!([1, -2]));
        assert_eq!(body["values"], json!([[5.0, "7"], [null, "8"]]));
        assert_eq!(body["column_catogories"], json!(["FIELD", "TAG"]));
        for values in [
            [ValueRef::Double(f64::NAN), ValueRef::Timestamp(0), ValueRef::Integer(1)],
            [ValueRef::Double(1.0), ValueRef::Timestamp(1), ValueRef::Integer(1)],
            [ValueRef::Double(1.0), ValueRef::Null, ValueRef::Integer(1)],
            [ValueRef::Double(1.0), ValueRef::Timestamp(0), ValueRef::Null],
        ] {
            assert!(table.append(&mut Vec::new(), |place| values[place]).is_err(), "{values:?}");
        }
    }

    #[test]
    fn what_the_server_does_not_have_is_refused() {
        let refused = |columns: &[(&str, Type)]| table(Precision::Micros, columns).unwrap_err();
        assert!(refused(&[("value", Type::Double)]).contains("no column becomes the time"));
        assert!(
            refused(&[("measured", Type::Timestamp), ("zone", Type::Text)])
                .contains("has no column zone; it has time, site, value")
        );
        assert!(
            refused(&[("measured", Type::Timestamp), ("value", Type::Text)]).contains("type text cannot be written into a FIELD")
        );
        assert!(Precision::of("ns").unwrap_err().contains("expected us"));
    }
}
