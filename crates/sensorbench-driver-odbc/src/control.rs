//! A connection for what is not measured.

use std::sync::Arc;

use sensorbench_driver::{DriverError, Rows, Type, ValueRef};

use crate::link::Link;
use crate::odbc::Connection;
use crate::operation_statement::OperationStatement;
use crate::prepared::Prepared;

/// A link and a connection that it made.
pub struct Control<'a> {
    pub link: &'a Link,
    pub connection: Arc<Connection>,
}

impl<'a> Control<'a> {
    pub fn of(link: &'a Link) -> Result<Self, DriverError> {
        Ok(Self { link, connection: link.connect()? })
    }

    /// Executes a statement.
    pub fn run(&self, statement: &str) -> Result<(), DriverError> {
        let ran = self.connection.statement().and_then(|mut made| made.execute_direct(statement));
        ran.map_err(|diagnostics| self.link.error(&self.connection, &diagnostics))
    }

    /// The answer to a query of our own.
    pub fn ask(&self, text: String, parameters: &[ValueRef], columns: &[Type]) -> Result<Rows, DriverError> {
        let types: Vec<Type> = parameters.iter().map(|value| value.value_type().unwrap_or(Type::Text)).collect();
        let mut rows = Rows::new();
        let mut prepared = Prepared::of(self.link, &self.connection, OperationStatement::own(text, &types, columns))?;
        prepared.ask(self.link, |place| parameters[place], &mut rows, None)?;
        Ok(rows)
    }

    /// The one number that a query is answered with; None if there is none.
    pub fn number(&self, text: String) -> Result<Option<i64>, DriverError> {
        let rows = self.ask(text, &[], &[Type::Integer])?;
        Ok(rows.iter().next().and_then(|row| if let ValueRef::Integer(number) = row.value(0) { Some(number) } else { None }))
    }

    /// Names and values that a query is answered with.
    pub fn pairs(&self, text: &str) -> Result<Vec<(String, String)>, DriverError> {
        let rows = self.ask(text.to_owned(), &[], &[Type::Text, Type::Text])?;
        let text = |value| if let ValueRef::Text(text) = value { text.to_owned() } else { String::new() };
        Ok(rows.iter().map(|row| (text(row.value(0)), text(row.value(1)))).collect())
    }

    /// Whether there is a table, or something that can be read like one. What a driver says when there is none differs too much
    /// to be distinguished from other refusals.
    pub fn is_there(&self, table: &str) -> Result<bool, DriverError> {
        self.succeeds(&format!("SELECT * FROM {table} WHERE 1 = 0"))
    }

    /// Whether a statement is not refused.
    pub fn succeeds(&self, statement: &str) -> Result<bool, DriverError> {
        match self.run(statement) {
            Ok(()) => Ok(true),
            Err(DriverError::Statement(_)) => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// Does something in one transaction.
    pub fn in_transaction<T>(&self, work: impl FnOnce() -> Result<T, DriverError>) -> Result<T, DriverError> {
        let error_of = |diagnostics| self.link.error(&self.connection, &diagnostics);
        self.connection.set_autocommit(false).map_err(error_of)?;
        let outcome = work();
        let ended = if outcome.is_ok() { self.connection.commit() } else { self.connection.roll_back() };
        let outcome = outcome?;
        ended.and_then(|()| self.connection.set_autocommit(true)).map_err(error_of)?;
        Ok(outcome)
    }
}
