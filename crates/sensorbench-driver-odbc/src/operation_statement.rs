//! A statement with the parameters that it takes and the columns that it returns.

use sensorbench_driver::{Column, DriverError, Operation, Parameter, Placeholder, Positional, SchemaError, Type, parse_part};
use serde::Deserialize;

use crate::names::Names;
use crate::values::Timestamps;

/// `[operation.NAME]` of a schema file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    statement: String,
    #[serde(default)]
    timestamps: Timestamps,
}

/// What is asked, with `?` for parameters.
#[derive(Clone, Debug)]
pub struct OperationStatement {
    pub text: String,
    /// For each `?`, the place of the parameter.
    pub places: Vec<usize>,
    pub parameters: Vec<Parameter>,
    pub timestamps: Timestamps,
    pub columns: Vec<Column>,
    /// Where it stands in the schema file; empty when it is our own.
    path: String,
}

impl OperationStatement {
    /// The question of an operation.
    pub fn of(operation: &Operation, names: &Names) -> Result<Self, DriverError> {
        let path = format!("operation.{}", operation.name);
        let words: Words = parse_part(&path, &operation.statement)?;
        let positional = Positional::of(operation, &words.statement, Placeholder::Question)?;
        Ok(Self {
            text: names.place(&positional.text).text,
            places: positional.parameters,
            parameters: operation.parameters.clone(),
            timestamps: words.timestamps,
            columns: operation.columns.clone(),
            path: format!("{path}.statement"),
        })
    }

    /// A question of our own, its parameters in the order of their use.
    pub fn own(text: String, parameters: &[Type], columns: &[Type]) -> Self {
        let parameter =
            |(place, value_type): (usize, &Type)| Parameter { name: format!("{}", place + 1), value_type: *value_type };
        let column = |(place, value_type): (usize, &Type)| Column {
            name: format!("{}", place + 1),
            value_type: *value_type,
            computed: false,
        };
        Self {
            text,
            places: (0..parameters.len()).collect(),
            parameters: parameters.iter().enumerate().map(parameter).collect(),
            timestamps: Timestamps::Datetime,
            columns: columns.iter().enumerate().map(column).collect(),
            path: String::new(),
        }
    }

    /// What a statement of a schema file is refused for is reported with its place there; a lost connection has no place.
    pub fn with_place(&self, error: DriverError) -> DriverError {
        match error {
            DriverError::Statement(message) if !self.path.is_empty() => SchemaError::at(&self.path, message).into(),
            other => other,
        }
    }

    /// The database returns as many columns as the operation has.
    pub fn check_columns(&self, returned: usize) -> Result<(), DriverError> {
        if returned == self.columns.len() {
            return Ok(());
        }
        let expected: Vec<_> = self.columns.iter().map(|column| column.name.as_str()).collect();
        Err(DriverError::Statement(format!(
            "the statement returns {returned} columns; the operation has {} ({})",
            expected.len(),
            expected.join(", ")
        )))
    }
}
