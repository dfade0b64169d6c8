//! An operation's statement.

use mysql_async::{Params, Row, Value as MysqlValue};
use sensorbench_driver::{
    Column, DriverError, Operation, Parameter, Placeholder, Positional, Rows, SchemaError, Value, parse_part,
};
use serde::Deserialize;

use super::values::{Timestamps, bound, canonical};

/// `[operation.NAME]` of a schema file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    statement: String,
    #[serde(default)]
    timestamps: Timestamps,
}

/// A statement with the parameters that it takes and the columns that it returns.
#[derive(Debug)]
pub struct Statement {
    /// What the server is asked, with `?` for parameters.
    pub text: String,
    /// For each `?`, the place of the operation's parameter.
    places: Vec<usize>,
    parameters: Vec<Parameter>,
    timestamps: Timestamps,
    columns: Vec<Column>,
    path: String,
}

impl Statement {
    pub fn of(operation: &Operation) -> Result<Self, DriverError> {
        let path = format!("operation.{}", operation.name);
        let words: Words = parse_part(&path, &operation.statement)?;
        let positional = Positional::of(operation, &words.statement, Placeholder::Question)?;
        Ok(Self {
            text: positional.text,
            places: positional.parameters,
            parameters: operation.parameters.clone(),
            timestamps: words.timestamps,
            columns: operation.columns.clone(),
            path: format!("{path}.statement"),
        })
    }

    /// Where it stands in the schema file.
    pub fn path(&self) -> String {
        self.path.clone()
    }

    /// The server returns as many columns as the operation has.
    pub fn check_columns(&self, returned: usize) -> Result<(), SchemaError> {
        if returned == self.columns.len() {
            return Ok(());
        }
        let expected: Vec<_> = self.columns.iter().map(|column| column.name.as_str()).collect();
        let message =
            format!("the statement returns {returned} columns; the operation has {} ({})", expected.len(), expected.join(", "));
        Err(SchemaError::at(self.path(), message))
    }

    /// The values of the operation's parameters, as the server takes them.
    pub fn bind(&self, values: &[Value]) -> Result<Params, DriverError> {
        if self.places.is_empty() {
            return Ok(Params::Empty);
        }
        let value = |place: &usize| bound(&values[*place], self.timestamps, &self.parameters[*place].name);
        self.places.iter().map(value).collect::<Result<Vec<MysqlValue>, _>>().map(Params::Positional)
    }

    /// Appends a row of the answer.
    pub fn decode(&self, row: &Row, rows: &mut Rows) -> Result<(), DriverError> {
        self.check_columns(row.len())?;
        for (number, (column, found)) in self.columns.iter().zip(row.columns_ref()).enumerate() {
            let value = row.as_ref(number).unwrap_or(&MysqlValue::NULL);
            rows.push(canonical(value, found, column)?);
        }
        rows.end_row();
        Ok(())
    }
}
