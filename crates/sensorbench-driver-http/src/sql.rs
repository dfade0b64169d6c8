//! Operations of databases with tables and SQL: statements with `:name`, and rows that are written.

use std::collections::BTreeMap;

use sensorbench_driver::{Column, DriverError, Operation, SchemaError, SqlStatement, parse_part};
use serde::Deserialize;

use crate::row_places::RowPlaces;
use crate::template::{Form, Language, Piece, Template};

/// Parameters are `:name`, with a form where the database takes it.
const LANGUAGE: Language = Language { identifiers: false, own: false };

/// An operation, ready to be executed, with a database's own statements and tables.
#[derive(Clone)]
pub enum Prepared<Statement, Table> {
    Read(Statement, Vec<Column>),
    /// A statement that returns nothing.
    Run(Statement),
    /// Rows of a table.
    Write(Table, RowPlaces),
}

impl<Statement, Table> Prepared<Statement, Table> {
    /// An operation; `statement` takes a statement apart, `table` finds a table with the columns that are written, and the places of their
    /// parameters.
    pub fn of(
        operation: &Operation,
        statement: impl FnOnce(&Operation) -> Result<Statement, DriverError>,
        table: impl FnOnce(&WriteText) -> Result<(Table, Vec<usize>), DriverError>,
    ) -> Result<Self, DriverError> {
        if let Some(text) = written(operation)? {
            let (table, places) = table(&text)?;
            return Ok(Self::Write(table, RowPlaces::new(operation, places)));
        }
        let statement = statement(operation)?;
        Ok(if operation.columns.is_empty() { Self::Run(statement) } else { Self::Read(statement, operation.columns.clone()) })
    }
}

/// Refuses an operation that cannot work, as far as that is known without a server; `statement` takes a statement apart.
pub fn check<Statement>(
    operation: &Operation,
    statement: impl FnOnce(&Operation) -> Result<Statement, DriverError>,
) -> Result<(), DriverError> {
    if written(operation)?.is_none() {
        statement(operation)?;
    }
    Ok(())
}

/// `[operation.NAME]` that writes a row of a table; a column has the parameter of its own name, if no other one is named.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteText {
    pub write: String,
    #[serde(default)]
    pub columns: BTreeMap<String, String>,
}

/// What an operation says that writes a row; None if it is a statement.
pub fn written(operation: &Operation) -> Result<Option<WriteText>, SchemaError> {
    if operation.statement.get("write").is_none() {
        return Ok(None);
    }
    parse_part(&format!("operation.{}", operation.name), &operation.statement).map(Some)
}

/// The pieces of an operation's statement, whose parameters have forms that `takes` accepts; `forms` says in words which they are.
pub fn pieces(operation: &Operation, takes: impl Fn(Form) -> bool, forms: &str) -> Result<Vec<Piece>, DriverError> {
    let path = format!("operation.{}", operation.name);
    let text: SqlStatement = parse_part(&path, &operation.statement)?;
    let path = format!("{path}.statement");
    let Template(pieces) = Template::of(operation, &path, text.statement.trim().trim_end_matches(';'), LANGUAGE)?;
    if pieces.iter().any(|piece| matches!(piece, Piece::Value(_, form) if !takes(*form))) {
        return Err(SchemaError::at(path, forms).into());
    }
    Ok(pieces)
}
