//! A schema: how rows become points, and what operations are.

use std::collections::BTreeMap;

use sensorbench_driver::{DriverError, Operation, Schema, SchemaError, Type, parse_part};
use serde::Deserialize;
use serde_json::Value as Json;

use crate::points::{Points, PointsText};
use crate::protocol::{Protocol, Reading, Scope};
use crate::row_places::RowPlaces;

/// A schema whose parts are known to be sound.
#[derive(Clone, Debug)]
pub struct HttpSchema {
    tables: BTreeMap<String, Points>,
    /// How the rows of tables become points that are only written to.
    unfilled: BTreeMap<String, PointsText>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settle {}

/// `[operation.NAME]` that writes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteText {
    write: String,
}

/// Names of what becomes the columns of a row: what the statement says, or the names of the operation's columns.
///
/// Fails where the statement names another number of them.
pub fn row_names(operation: &Operation, named: Option<Vec<String>>) -> Result<Vec<String>, SchemaError> {
    let columns = &operation.columns;
    match named {
        None => Ok(columns.iter().map(|column| column.name.clone()).collect()),
        Some(names) if names.len() == columns.len() => Ok(names),
        Some(_) => Err(SchemaError::at(
            format!("operation.{}.row", operation.name),
            format!("expected {} names, one for each column of the operation", columns.len()),
        )),
    }
}

/// The place of the timestamp parameter that a key of the statement names as `:name`; None if the statement has no such key.
pub fn time_parameter(operation: &Operation, key: &str, text: Option<&str>) -> Result<Option<usize>, SchemaError> {
    let Some(text) = text else { return Ok(None) };
    let place = text.strip_prefix(':').map(|name| operation.require_parameter(name)).transpose()?;
    match place {
        Some(place) if operation.parameters[place].value_type == Type::Timestamp => Ok(Some(place)),
        _ => Err(SchemaError::at(
            format!("operation.{}.{key}", operation.name),
            format!("{text:?}: expected a timestamp, written as :name"),
        )),
    }
}

/// An operation, ready to be executed.
pub enum Prepared {
    Read(Box<dyn Reading>),
    /// Writes a point for each row.
    Write(Box<Points>, RowPlaces),
}

impl HttpSchema {
    /// Reads a schema. What else a protocol has in `[create]` is checked by itself.
    pub fn of(schema: &Schema, protocol: &dyn Protocol) -> Result<Self, DriverError> {
        let _: Settle = parse_part("settle", &schema.settle)?;
        protocol.check(schema)?;
        let texts = schema.create.get("points").cloned().unwrap_or(Json::Null);
        let mut texts: BTreeMap<String, PointsText> = parse_part("create.points", &texts)?;
        let mut tables = BTreeMap::new();
        for (table, columns) in &schema.tables {
            let text = texts.remove(table).ok_or_else(|| {
                SchemaError::at(
                    format!("create.points.{table}"),
                    "the table is filled, so it must say how its rows become points",
                )
            })?;
            tables.insert(table.clone(), Points::of(table, &text, columns, protocol.limits())?);
        }
        for (table, text) in &texts {
            tables.insert(table.clone(), Points::of(table, text, &text.columns(), protocol.limits())?);
        }
        Ok(Self { tables, unfilled: texts })
    }

    /// How the rows of a table become points.
    pub fn table(&self, name: &str) -> Result<&Points, DriverError> {
        self.tables.get(name).ok_or_else(|| DriverError::Data(format!("the schema has no table {name}")))
    }

    /// An operation.
    pub fn prepare(&self, protocol: &dyn Protocol, scope: &Scope, operation: &Operation) -> Result<Prepared, DriverError> {
        if operation.statement.get("write").is_none() {
            return Ok(Prepared::Read(protocol.reading(scope, operation)?));
        }
        let path = format!("operation.{}", operation.name);
        let text: WriteText = parse_part(&path, &operation.statement)?;
        let known = self.tables.get(&text.write).ok_or_else(|| {
            let known: Vec<_> = self.tables.keys().map(String::as_str).collect();
            SchemaError::at(
                format!("{path}.write"),
                format!("there is no table {}; expected one of {}", text.write, known.join(", ")),
            )
        })?;
        // What is only written to has the types of what is written.
        let points = match self.unfilled.get(&text.write) {
            Some(unfilled) => Points::of(&text.write, unfilled, &operation.parameters, protocol.limits())?,
            None => known.clone(),
        };
        let mut places = Vec::new();
        for column in &points.columns {
            let place = operation.require_parameter(&column.name)?;
            if operation.parameters[place].value_type != column.value_type {
                let message = format!("parameter :{} has another type than the column of the table {}", column.name, text.write);
                return Err(SchemaError::at(format!("{path}.write"), message).into());
            }
            places.push(place);
        }
        Ok(Prepared::Write(Box::new(points), RowPlaces::new(operation, places)))
    }
}
