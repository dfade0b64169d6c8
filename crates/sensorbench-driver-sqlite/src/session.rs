//! Executing operations: statements are prepared once a session, bound, stepped and drained.

use std::sync::Arc;

use rusqlite::types::ValueRef as SqlValue;
use rusqlite::{Connection, ErrorCode, Statement};
use self_cell::self_cell;
use sensorbench_driver::{
    BlockingConnector, BlockingSession, Column, Deadline, DriverError, Operation, Request, Rows, SchemaError, SqlStatement, Type,
    Value, ValueRef, parse_part,
};

use crate::errors::statement_error;
use crate::load::sql_value;
use crate::target::Target;

/// After how many steps of SQLite's virtual machine the deadline is looked at: some microseconds.
const STEPS_BETWEEN_DEADLINE_CHECKS: i32 = 1000;

pub struct Connector {
    pub target: Target,
    pub operations: Vec<Operation>,
}

impl BlockingConnector for Connector {
    fn connect(&self, deadline: Arc<Deadline>) -> Result<Box<dyn BlockingSession>, DriverError> {
        let mut connection = self.target.connect()?;
        let watch = deadline.clone();
        connection
            .progress_handler(STEPS_BETWEEN_DEADLINE_CHECKS, Some(move || watch.passed().is_some()))
            .map_err(statement_error)?;
        let cell = SessionCell::try_new(connection, |connection| PreparedAll::of(connection, &self.operations))?;
        Ok(Box::new(SqliteSession { cell, deadline }))
    }
}

/// An operation's statement with the places of its parameters and the types of its columns.
pub struct Prepared<'a> {
    statement: Statement<'a>,
    /// For each parameter of the operation that the statement uses: its number and its place in the statement.
    places: Vec<(usize, usize)>,
    columns: Vec<Column>,
}

impl<'a> Prepared<'a> {
    pub fn of(connection: &'a Connection, operation: &Operation) -> Result<Self, DriverError> {
        let path = format!("operation.{}", operation.name);
        let text: SqlStatement = parse_part(&path, &operation.statement)?;
        let at_statement = |message: String| SchemaError::at(format!("{path}.statement"), message);
        let statement = connection.prepare(&text.statement).map_err(|error| at_statement(error.to_string()))?;
        let mut places = Vec::new();
        for place in 1..=statement.parameter_count() {
            let name = statement.parameter_name(place).and_then(|name| name.strip_prefix(':'));
            let name = name.ok_or_else(|| at_statement("parameters must be written as :name".to_owned()))?;
            places.push((operation.require_parameter(name)?, place));
        }
        if statement.column_count() != operation.columns.len() {
            let expected: Vec<_> = operation.columns.iter().map(|column| column.name.as_str()).collect();
            let message = format!(
                "the statement returns {} columns; the operation has {} ({})",
                statement.column_count(),
                expected.len(),
                expected.join(", ")
            );
            return Err(at_statement(message).into());
        }
        Ok(Self { statement, places, columns: operation.columns.clone() })
    }

    fn execute(&mut self, parameters: &[Value], rows: &mut Rows) -> Result<(), DriverError> {
        for (parameter, place) in &self.places {
            self.statement.raw_bind_parameter(*place, sql_value(parameters[*parameter].as_ref())).map_err(statement_error)?;
        }
        let mut answer = self.statement.raw_query();
        while let Some(row) = answer.next().map_err(step_error)? {
            for (number, column) in self.columns.iter().enumerate() {
                rows.push(canonical(row.get_ref(number).map_err(statement_error)?, column)?);
            }
            rows.end_row();
        }
        Ok(())
    }
}

/// A statement that was interrupted, or that met another connection's lock, is distinguished from one that failed.
fn step_error(error: rusqlite::Error) -> DriverError {
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => DriverError::Timeout,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => DriverError::Connection(error.to_string()),
        _ => statement_error(error),
    }
}

#[inline]
fn canonical<'a>(value: SqlValue<'a>, column: &Column) -> Result<ValueRef<'a>, DriverError> {
    Ok(match (column.value_type, value) {
        (_, SqlValue::Null) => ValueRef::Null,
        (Type::Integer, SqlValue::Integer(value)) => ValueRef::Integer(value),
        (Type::Timestamp, SqlValue::Integer(value)) => ValueRef::Timestamp(value),
        (Type::Boolean, SqlValue::Integer(value)) => ValueRef::Boolean(value != 0),
        (Type::Double, SqlValue::Real(value)) => ValueRef::Double(value),
        (Type::Text, SqlValue::Text(value)) => ValueRef::Text(
            std::str::from_utf8(value).map_err(|error| DriverError::Data(format!("column {}: {error}", column.name)))?,
        ),
        (Type::Bytes, SqlValue::Blob(value)) => ValueRef::Bytes(value),
        (expected, found) => {
            return Err(DriverError::Data(format!(
                "column {} should be a {}, but SQLite returns {}",
                column.name,
                expected.name(),
                found.data_type()
            )));
        }
    })
}

struct PreparedAll<'a>(Vec<Prepared<'a>>);

impl<'a> PreparedAll<'a> {
    fn of(connection: &'a Connection, operations: &[Operation]) -> Result<Self, DriverError> {
        operations.iter().map(|operation| Prepared::of(connection, operation)).collect::<Result<_, _>>().map(Self)
    }
}

self_cell!(
    struct SessionCell {
        owner: Connection,
        #[not_covariant]
        dependent: PreparedAll,
    }
);

struct SqliteSession {
    cell: SessionCell,
    deadline: Arc<Deadline>,
}

impl BlockingSession for SqliteSession {
    fn execute(&mut self, request: &mut Request) -> Result<(), DriverError> {
        let Request { operation, parameters, rows } = request;
        let deadline = &self.deadline;
        self.cell.with_dependent_mut(|_, prepared| {
            loop {
                match prepared.0[*operation].execute(parameters, rows) {
                    Err(DriverError::Timeout) => return Err(deadline.passed().unwrap_or(DriverError::Timeout)),
                    Err(DriverError::Connection(_)) => deadline.check()?,
                    outcome => return outcome,
                }
                rows.clear();
            }
        })
    }
}
