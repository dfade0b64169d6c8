//! Executing operations: statements are prepared once a session, bound, executed and read chunk by chunk.

use std::sync::Arc;

use sensorbench_driver::{
    BlockingConnector, BlockingSession, Column, Deadline, DriverError, Operation, Placeholder, Positional, Request, Rows,
    Running, SchemaError, SqlStatement, Value, Watch, parse_part,
};

use crate::errors::{is_conflict, is_taken_key, statement_error};
use crate::library::{Answer, Connection, Instance, Refusal, Statement, is_unknown, kind, may_be};

pub struct Connector {
    pub instance: Arc<Instance>,
    pub operations: Vec<Operation>,
    pub watch: Arc<Watch<Connection>>,
}

impl BlockingConnector for Connector {
    fn connect(&self, deadline: Arc<Deadline>) -> Result<Box<dyn BlockingSession>, DriverError> {
        let connection = Connection::to(&self.instance).map_err(statement_error)?;
        let prepared = self.operations.iter().map(|operation| Prepared::of(&connection, operation));
        let prepared = prepared.collect::<Result<_, _>>()?;
        Ok(Box::new(DuckdbSession { prepared, connection, deadline, running: self.watch.running(), _watch: self.watch.clone() }))
    }
}

/// An operation's statement with the places of its parameters and the types of its columns.
pub struct Prepared {
    statement: Statement,
    /// For each parameter of the statement, its number in the operation.
    parameters: Vec<usize>,
    columns: Vec<Column>,
    /// Whether the statement says what is done where a key is there already.
    is_upsert: bool,
}

impl Prepared {
    pub fn of(connection: &Arc<Connection>, operation: &Operation) -> Result<Self, DriverError> {
        let path = format!("operation.{}", operation.name);
        let text: SqlStatement = parse_part(&path, &operation.statement)?;
        let at_statement = |message: String| SchemaError::at(format!("{path}.statement"), message);
        let positional = Positional::of(operation, &text.statement, Placeholder::Dollar)?;
        let statement = Statement::of(connection, &positional.text).map_err(|refusal| at_statement(refusal.message))?;
        if statement.parameters() != positional.parameters.len() {
            return Err(at_statement("parameters must be written as :name".to_owned()).into());
        }
        let words = positional.text.to_lowercase();
        let is_upsert = words.contains("on conflict") || words.contains("insert or");
        let prepared = Self { statement, parameters: positional.parameters, columns: operation.columns.clone(), is_upsert };
        prepared.check_columns().map_err(at_statement)?;
        Ok(prepared)
    }

    fn check_columns(&self) -> Result<(), String> {
        if self.columns.is_empty() && self.statement.is_write() {
            return Ok(());
        }
        let found = self.statement.column_types();
        if is_unknown(&found) {
            return Ok(());
        }
        self.check_count(&found)?;
        let other = self.columns.iter().zip(&found).find(|(column, found)| !may_be(**found, column.value_type));
        other.map_or(Ok(()), |(column, found)| Err(wrong_type(column, *found)))
    }

    fn check_count(&self, found: &[u32]) -> Result<(), String> {
        if found.len() == self.columns.len() {
            return Ok(());
        }
        let expected: Vec<_> = self.columns.iter().map(|column| column.name.as_str()).collect();
        Err(format!(
            "the statement returns {} columns; the operation has {} ({})",
            found.len(),
            expected.len(),
            expected.join(", ")
        ))
    }

    #[inline]
    fn bind(&self, parameters: &[Value]) -> Result<(), Refusal> {
        let bind = |(place, parameter): (usize, &usize)| self.statement.bind(place as u64 + 1, parameters[*parameter].as_ref());
        self.parameters.iter().enumerate().try_for_each(bind)
    }

    /// Reads the whole answer. Rebound with other parameters, a statement may return other types than when it was prepared.
    #[inline]
    fn read(&self, mut answer: Answer, rows: &mut Rows) -> Result<(), DriverError> {
        if self.columns.is_empty() {
            return Ok(());
        }
        let found: Vec<u32> = answer.column_types().collect();
        self.check_count(&found).map_err(DriverError::Data)?;
        while let Some(chunk) = answer.next_chunk().map_err(statement_error)? {
            let column = |(place, column): (usize, &Column)| {
                let read = chunk.column(place, found[place], column.value_type);
                read.ok_or_else(|| DriverError::Data(wrong_type(column, found[place])))
            };
            let columns = self.columns.iter().enumerate().map(column).collect::<Result<Vec<_>, _>>()?;
            for row in 0..chunk.rows() {
                columns.iter().for_each(|column| rows.push(column.value(row)));
                rows.end_row();
            }
        }
        Ok(())
    }
}

fn wrong_type(column: &Column, found: u32) -> String {
    let type_name = match found {
        10 => "FLOAT, which rounds",
        9 | 16 | 32 | 35 => "a whole number of more than 64 bits, as sum() gives it",
        13 => "DATE",
        19 => "DECIMAL",
        31 => "TIMESTAMP WITH TIME ZONE",
        _ => "a type that it is not read from",
    };
    format!(
        "column {} should be a {}, but DuckDB returns {type_name} (its type {found}); CAST it",
        column.name,
        column.value_type.name()
    )
}

/// How often a statement is executed again that met a key of another session: a key of which it says nothing stays taken for good.
const MAX_TAKEN_KEYS: u32 = 1000;

struct DuckdbSession {
    prepared: Vec<Prepared>,
    connection: Arc<Connection>,
    deadline: Arc<Deadline>,
    running: Arc<Running<Connection>>,
    /// Sessions outlive what made them, and are to be watched all the same.
    _watch: Arc<Watch<Connection>>,
}

impl BlockingSession for DuckdbSession {
    /// A write that met another session's write of the same row was rolled back, and is executed again, as DuckDB's documentation has it.
    fn execute(&mut self, request: &mut Request) -> Result<(), DriverError> {
        let Request { operation, parameters, rows } = request;
        let prepared = &self.prepared[*operation];
        let mut taken_keys = 0;
        loop {
            prepared.bind(parameters).map_err(statement_error)?;
            let answer = self.running.during(&self.connection, &self.deadline, || prepared.statement.execute());
            match answer {
                Ok(answer) => return prepared.read(answer, rows),
                Err(refusal) if refusal.kind == kind::INTERRUPT => {
                    return Err(self.deadline.passed().unwrap_or(DriverError::Timeout));
                }
                Err(refusal) if is_conflict(&refusal) => self.deadline.check()?,
                Err(refusal) if prepared.is_upsert && taken_keys < MAX_TAKEN_KEYS && is_taken_key(&refusal) => {
                    taken_keys += 1;
                    self.deadline.check()?;
                }
                Err(refusal) => return Err(statement_error(refusal)),
            }
        }
    }
}
