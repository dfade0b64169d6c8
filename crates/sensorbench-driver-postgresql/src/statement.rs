//! The statement of an operation, in the words of schema files.

use sensorbench_driver::{
    Column, DriverError, Operation, Parameter, Placeholder, Positional, SchemaError, SqlStatement, parse_part,
};

/// An operation's statement as the server prepares it.
#[derive(Clone, Debug)]
pub struct OperationStatement {
    /// Place of the statement in the schema file.
    pub path: String,
    /// The statement and which parameters its placeholders stand for.
    pub positional: Positional,
    /// Parameters of the operation.
    pub parameters: Vec<Parameter>,
    /// Columns of the operation.
    pub columns: Vec<Column>,
}

impl OperationStatement {
    pub fn of(operation: &Operation) -> Result<Self, DriverError> {
        let path = format!("operation.{}", operation.name);
        let text: SqlStatement = parse_part(&path, &operation.statement)?;
        Ok(Self {
            path: format!("{path}.statement"),
            positional: Positional::of(operation, &text.statement, Placeholder::Dollar)?,
            parameters: operation.parameters.clone(),
            columns: operation.columns.clone(),
        })
    }

    /// An error about the statement.
    pub fn error(&self, message: String) -> DriverError {
        SchemaError::at(&self.path, message).into()
    }
}
