//! How a dataset lies in one database, as a driver sees it: what the schema file says in the database's own words.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use thiserror::Error;

use crate::Type;

/// A schema. The parts that only the database's driver understands are kept as they stand in the file.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// How to create the tables.
    #[serde(default)]
    pub create: Json,
    /// What to do after loading, for example building indexes.
    #[serde(default)]
    pub settle: Json,
    /// Tables that are filled, with their columns in the order of the fill.
    #[serde(default)]
    pub tables: BTreeMap<String, Vec<Parameter>>,
    /// The operations.
    #[serde(default)]
    pub operations: Vec<Operation>,
}

/// An operation and how it is asked in this schema.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// Name, the same for all databases.
    pub name: String,
    /// Parameters that a call brings, in this order.
    #[serde(default)]
    pub parameters: Vec<Parameter>,
    /// Columns of the rows that the statement returns, in this order. None for writes.
    #[serde(default)]
    pub columns: Vec<Column>,
    /// Declared order of the rows; none if empty.
    #[serde(default)]
    pub order: Vec<Order>,
    /// The statement in the driver's own words.
    #[serde(default)]
    pub statement: Json,
}

/// A named and typed parameter of an operation, or column of a table.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Name.
    pub name: String,
    /// Type.
    #[serde(rename = "type")]
    pub value_type: Type,
}

/// A column of an answer.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Name.
    pub name: String,
    /// Type.
    #[serde(rename = "type")]
    pub value_type: Type,
    /// A double that was computed and not stored: compared by value with a tolerance, not hashed.
    #[serde(default)]
    pub computed: bool,
}

/// One column of a declared order.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Name of the column.
    pub column: String,
    /// Ascending if not given.
    #[serde(default)]
    pub direction: Direction,
}

/// A direction of an order.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Smallest first.
    #[default]
    Ascending,
    /// Largest first.
    Descending,
}

/// A schema that a driver cannot use. The path leads to the key in the schema file, for example
/// `operation.get_peak_data.statement`.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{path}: {message}")]
pub struct SchemaError {
    /// Keys from the top of the file to the place, joined with dots.
    pub path: String,
    /// What is wrong there and what was expected.
    pub message: String,
}

impl SchemaError {
    /// An error at a place.
    pub fn at(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

/// Reads a part of a schema, found at `path`, into the type that a driver has for it.
pub fn parse_part<T: DeserializeOwned>(path: &str, part: &Json) -> Result<T, SchemaError> {
    let empty = Json::Object(Default::default());
    let part = if part.is_null() { &empty } else { part };
    serde_path_to_error::deserialize(part).map_err(|error| {
        let inner = error.path().to_string();
        let path = if inner == "." { path.to_owned() } else { format!("{path}.{inner}") };
        SchemaError::at(path, error.into_inner().to_string())
    })
}

impl Schema {
    /// The operation called `name`.
    pub fn operation(&self, name: &str) -> Option<&Operation> {
        self.operations.iter().find(|operation| operation.name == name)
    }
}

impl Operation {
    /// The place of the parameter called `name`.
    pub fn parameter(&self, name: &str) -> Option<usize> {
        self.parameters.iter().position(|parameter| parameter.name == name)
    }

    /// The place of the parameter called `name`, or an error that lists the parameters.
    pub fn require_parameter(&self, name: &str) -> Result<usize, SchemaError> {
        self.parameter(name).ok_or_else(|| {
            let known: Vec<_> = self.parameters.iter().map(|parameter| format!(":{}", parameter.name)).collect();
            let known = if known.is_empty() { "it has none".to_owned() } else { format!("expected one of {}", known.join(", ")) };
            SchemaError::at(format!("operation.{}", self.name), format!("the operation has no parameter :{name}; {known}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Statement {
        #[allow(dead_code)]
        scan: Scan,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Scan {
        #[allow(dead_code)]
        table: String,
    }

    #[test]
    fn an_unknown_key_is_named_with_its_path() {
        let error = parse_part::<Statement>("operation.x", &serde_json::json!({"scan": {"tabel": "t"}})).unwrap_err();
        assert_eq!(error.path, "operation.x.scan.tabel");
        assert!(error.message.contains("unknown field `tabel`, expected `table`"), "{error}");
    }
}
