//! Prepared statements.

use std::ptr::null_mut;
use std::sync::Arc;

use sensorbench_driver::ValueRef;

use super::api::{Handle, RawResult, SUCCESS, State, Timestamp, kind, statement_type};
use super::instance::c_text;
use super::{Answer, Connection, Refusal, text};

/// A statement that was prepared on a connection.
pub struct Statement {
    handle: Handle,
    connection: Arc<Connection>,
}

// SAFETY: it may move to another thread, together with its connection.
unsafe impl Send for Statement {}

impl Statement {
    /// Prepares one statement.
    pub fn of(connection: &Arc<Connection>, statement: &str) -> Result<Self, Refusal> {
        let statement = c_text(statement);
        let mut prepared = Self { handle: null_mut(), connection: connection.clone() };
        // SAFETY: all of it lives until the call is over.
        let state = unsafe { (connection.functions().prepare)(connection.handle, statement.as_ptr(), &mut prepared.handle) };
        if state == SUCCESS { Ok(prepared) } else { Err(prepared.refusal()) }
    }

    fn refusal(&self) -> Refusal {
        // SAFETY: the handle is alive or null, and the text is copied.
        let message = unsafe { text((self.connection.functions().prepare_error)(self.handle)) };
        Refusal::new(kind::INVALID, message.unwrap_or_else(|| "DuckDB does not say why".to_owned()))
    }

    /// How many parameters there are.
    pub fn parameters(&self) -> usize {
        // SAFETY: the handle is alive.
        unsafe { (self.connection.functions().nparams)(self.handle) as usize }
    }

    /// The types of the columns that it returns, by DuckDB's numbers. A write returns how many rows it changed.
    pub fn column_types(&self) -> Vec<u32> {
        let functions = self.connection.functions();
        // SAFETY: the handle is alive, and no column is asked for that there is not.
        unsafe {
            let columns = (functions.prepared_statement_column_count)(self.handle);
            (0..columns).map(|column| (functions.prepared_statement_column_type)(self.handle, column)).collect()
        }
    }

    /// Whether it changes rows.
    pub fn is_write(&self) -> bool {
        use statement_type::{DELETE, INSERT, MERGE_INTO, UPDATE};
        // SAFETY: the handle is alive.
        let statement = unsafe { (self.connection.functions().prepared_statement_type)(self.handle) };
        [INSERT, UPDATE, DELETE, MERGE_INTO].contains(&statement)
    }

    /// Sets a parameter; the first is 1. Texts and bytes are copied.
    #[inline]
    pub fn bind(&self, place: u64, value: ValueRef) -> Result<(), Refusal> {
        let functions = self.connection.functions();
        // SAFETY: the handle is alive, and what is pointed to lives until the call is over.
        let state: State = unsafe {
            match value {
                ValueRef::Null => (functions.bind_null)(self.handle, place),
                ValueRef::Boolean(value) => (functions.bind_boolean)(self.handle, place, value),
                ValueRef::Integer(value) => (functions.bind_int64)(self.handle, place, value),
                ValueRef::Double(value) => (functions.bind_double)(self.handle, place, value),
                ValueRef::Timestamp(micros) => (functions.bind_timestamp)(self.handle, place, Timestamp { micros }),
                ValueRef::Text(value) => {
                    (functions.bind_varchar_length)(self.handle, place, value.as_ptr().cast(), value.len() as u64)
                }
                ValueRef::Bytes(value) => (functions.bind_blob)(self.handle, place, value.as_ptr().cast(), value.len() as u64),
            }
        };
        if state == SUCCESS { Ok(()) } else { Err(self.refusal()) }
    }

    /// Executes it with the parameters that were set, to its end.
    #[inline]
    pub fn execute(&self) -> Result<Answer, Refusal> {
        let functions = self.connection.functions();
        let mut raw = RawResult::EMPTY;
        // SAFETY: the handle is alive, and the result lies here.
        let state = unsafe { (functions.execute_prepared)(self.handle, &mut raw) };
        Answer::of(functions, state, raw)
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        // SAFETY: it is destroyed once, before its connection.
        unsafe { (self.connection.functions().destroy_prepare)(&mut self.handle) };
    }
}
