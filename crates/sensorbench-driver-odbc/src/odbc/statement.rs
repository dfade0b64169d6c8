//! A statement with the buffers that are bound to it.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

use super::api::{
    Handle, OfText, Return, SQL_ATTR_PARAM_STATUS_PTR, SQL_ATTR_PARAMS_PROCESSED_PTR, SQL_ATTR_PARAMSET_SIZE,
    SQL_ATTR_ROW_ARRAY_SIZE, SQL_ATTR_ROWS_FETCHED_PTR, SQL_BIGINT, SQL_BINARY, SQL_BIT, SQL_BLOB, SQL_C_BINARY, SQL_C_CHAR,
    SQL_C_WCHAR, SQL_CHAR, SQL_CLOB, SQL_CLOSE, SQL_DECIMAL, SQL_DOUBLE, SQL_FLOAT, SQL_HANDLE_STMT, SQL_INTEGER,
    SQL_LONGVARBINARY, SQL_LONGVARCHAR, SQL_NO_DATA, SQL_NO_TOTAL, SQL_NULL_DATA, SQL_NUMERIC, SQL_PARAM_ERROR, SQL_PARAM_INPUT,
    SQL_REAL, SQL_RESET_PARAMS, SQL_SMALLINT, SQL_SUCCESS, SQL_SUCCESS_WITH_INFO, SQL_TIMESTAMP, SQL_TINYINT, SQL_TYPE_TIMESTAMP,
    SQL_UNBIND, SQL_VARBINARY, SQL_VARCHAR, SQL_WCHAR, SQL_WLONGVARCHAR, SQL_WVARCHAR,
};
use super::buffer::{Buffer, Input};
use super::{Connection, Diagnostics, Text, Watched, number};

/// Bytes of long values that are asked for at first.
const FIRST_PIECE: usize = 64 * 1024;

/// A column of an answer, as the driver describes it.
#[derive(Clone, Debug)]
pub struct Described {
    pub kind: Kind,
    /// Characters, bytes or digits; 0 where the driver does not know.
    pub size: usize,
    /// Digits after the point.
    pub digits: i16,
}

/// The kinds of types that are distinguished.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Bit,
    Integer,
    Decimal,
    /// With less than the 53 bits of a double.
    Real,
    Double,
    Timestamp,
    Text {
        is_long: bool,
    },
    Bytes {
        is_long: bool,
    },
    /// By its number in the standard or, when negative, often the driver's own.
    Other(i16),
}

impl Kind {
    /// The kind as messages name it.
    pub fn name(self) -> String {
        match self {
            Kind::Bit => "a bit".to_owned(),
            Kind::Integer => "an integer".to_owned(),
            Kind::Decimal => "a decimal".to_owned(),
            Kind::Real => "a real".to_owned(),
            Kind::Double => "a double".to_owned(),
            Kind::Timestamp => "a timestamp".to_owned(),
            Kind::Text { .. } => "text".to_owned(),
            Kind::Bytes { .. } => "bytes".to_owned(),
            Kind::Other(number) => format!("the type {number} of ODBC"),
        }
    }

    fn of(sql_type: i16, size: usize) -> Self {
        match sql_type {
            SQL_BIT => Kind::Bit,
            SQL_TINYINT | SQL_SMALLINT | SQL_INTEGER | SQL_BIGINT => Kind::Integer,
            SQL_NUMERIC | SQL_DECIMAL => Kind::Decimal,
            SQL_REAL => Kind::Real,
            // Its size is in binary digits, except where a driver reports it in decimal ones.
            SQL_FLOAT if (1..=7).contains(&size) || size == 24 => Kind::Real,
            SQL_FLOAT | SQL_DOUBLE => Kind::Double,
            SQL_TIMESTAMP | SQL_TYPE_TIMESTAMP => Kind::Timestamp,
            SQL_CHAR | SQL_VARCHAR | SQL_WCHAR | SQL_WVARCHAR => Kind::Text { is_long: false },
            SQL_LONGVARCHAR | SQL_WLONGVARCHAR | SQL_CLOB => Kind::Text { is_long: true },
            SQL_BINARY | SQL_VARBINARY => Kind::Bytes { is_long: false },
            SQL_LONGVARBINARY | SQL_BLOB => Kind::Bytes { is_long: true },
            other => Kind::Other(other),
        }
    }
}

/// A statement. It owns what is bound to it, so that nothing bound is moved or freed while the driver knows where it is.
pub struct Statement {
    connection: Arc<Connection>,
    handle: Handle,
    parameters: Vec<Buffer>,
    columns: Vec<Buffer>,
    counts: Box<Counts>,
    /// What became of each row of parameters.
    statuses: Box<[u16]>,
}

/// Where the driver reports how far it came.
#[derive(Default)]
struct Counts {
    fetched: usize,
    processed: usize,
}

// SAFETY: as of the connection; the buffers belong to the statement.
unsafe impl Send for Statement {}

impl Connection {
    /// A new statement.
    pub fn statement(self: &Arc<Self>) -> Result<Statement, Diagnostics> {
        let mut handle = null_mut();
        // SAFETY: the connection is open.
        self.check(unsafe { (self.manager.functions.allocate)(SQL_HANDLE_STMT, self.handle, &mut handle) })?;
        Ok(Statement::of(self.clone(), handle))
    }
}

impl Statement {
    pub(super) fn of(connection: Arc<Connection>, handle: Handle) -> Self {
        Self { connection, handle, parameters: Vec::new(), columns: Vec::new(), counts: Box::default(), statuses: Box::default() }
    }

    /// The connection that executes it.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Prepares a text. What was bound is let go of.
    pub fn prepare(&mut self, text: &str) -> Result<(), Diagnostics> {
        self.unbind()?;
        let functions = &self.connection.manager.functions;
        let outcome = self.given(text, functions.prepare_wide, functions.prepare_narrow);
        self.check(outcome)
    }

    /// Executes a text once and passes over its answer.
    pub fn execute_direct(&mut self, text: &str) -> Result<(), Diagnostics> {
        self.unbind()?;
        let functions = &self.connection.manager.functions;
        let outcome = self.given(text, functions.execute_direct_wide, functions.execute_direct_narrow);
        self.check_execution(outcome)?;
        self.close()
    }

    /// Gives a text to a function, in the characters that the connection speaks.
    fn given(&self, text: &str, wide: OfText<u16>, narrow: OfText<u8>) -> Return {
        // SAFETY: the text is as long as is said.
        unsafe {
            match self.connection.text {
                Text::Wide => {
                    let text: Vec<u16> = text.encode_utf16().collect();
                    wide(self.handle, text.as_ptr(), text.len() as i32)
                }
                Text::Narrow => narrow(self.handle, text.as_ptr(), text.len() as i32),
            }
        }
    }

    /// The columns of the answer.
    pub fn described(&self) -> Result<Vec<Described>, Diagnostics> {
        let mut columns = 0;
        // SAFETY: the statement is there.
        self.check(unsafe { (self.connection.manager.functions.result_columns)(self.handle, &mut columns) })?;
        (1..=columns.max(0) as u16).map(|number| self.describe(number)).collect()
    }

    /// Asks for all but the name.
    fn describe(&self, number: u16) -> Result<Described, Diagnostics> {
        let functions = &self.connection.manager.functions;
        let (mut length, mut sql_type, mut size, mut digits, mut nullable) = (0, 0, 0, 0, 0);
        let (length, kind, bytes, point, null) = (&mut length, &mut sql_type, &mut size, &mut digits, &mut nullable);
        // SAFETY: no room for the name is given, and none is said to be there.
        let outcome = unsafe {
            match self.connection.text {
                Text::Wide => (functions.describe_wide)(self.handle, number, null_mut(), 0, length, kind, bytes, point, null),
                Text::Narrow => (functions.describe_narrow)(self.handle, number, null_mut(), 0, length, kind, bytes, point, null),
            }
        };
        self.check(outcome)?;
        Ok(Described { kind: Kind::of(sql_type, size), size, digits })
    }

    /// Binds buffers to the parameters, instead of those before. One row of them is executed at a time, until more are asked for.
    pub fn bind_parameters(&mut self, buffers: Vec<Buffer>) -> Result<(), Diagnostics> {
        self.set_attribute(SQL_ATTR_PARAMSET_SIZE, number(1));
        let functions = &self.connection.manager.functions;
        // SAFETY: nothing is bound after it.
        self.check(unsafe { (functions.free_statement)(self.handle, SQL_RESET_PARAMS) })?;
        self.parameters = buffers;
        for number in 0..self.parameters.len() {
            let buffer = &mut self.parameters[number];
            let (c_type, sql_type, (size, digits)) = (buffer.form().c_type(), buffer.sql_type(), buffer.precision());
            let (cells, width, lengths) = buffer.place();
            // SAFETY: the buffer lives as long as it is bound: until the next binding, which the reset above precedes.
            let outcome = unsafe {
                (functions.bind_parameter)(
                    self.handle,
                    number as u16 + 1,
                    SQL_PARAM_INPUT,
                    c_type,
                    sql_type,
                    size,
                    digits,
                    cells,
                    width,
                    lengths,
                )
            };
            self.check(outcome)?;
        }
        Ok(())
    }

    /// Writes a value of a row of parameters.
    #[inline]
    pub fn set(&mut self, number: usize, row: usize, value: Input) {
        self.parameters[number].set(row, value);
    }

    /// How many parameters are bound.
    pub fn parameter_count(&self) -> usize {
        self.parameters.len()
    }

    /// The buffer of a parameter.
    pub fn parameter(&self, number: usize) -> &Buffer {
        &self.parameters[number]
    }

    /// How many rows of parameters are executed at a time. False when the driver takes one alone.
    pub fn set_parameter_rows(&mut self, rows: usize) -> Result<bool, Diagnostics> {
        assert!(self.parameters.iter().all(|buffer| buffer.rows() >= rows), "there are more rows than buffers hold");
        if self.statuses.len() < rows {
            let mut statuses = vec![0; rows].into_boxed_slice();
            let (at_statuses, at_processed) = (statuses.as_mut_ptr().cast(), (&raw mut self.counts.processed).cast());
            // A driver that reports neither may still take arrays.
            self.set_attribute(SQL_ATTR_PARAM_STATUS_PTR, at_statuses);
            self.set_attribute(SQL_ATTR_PARAMS_PROCESSED_PTR, at_processed);
            self.statuses = statuses;
        }
        let outcome = self.set_attribute(SQL_ATTR_PARAMSET_SIZE, number(rows));
        let mut taken = 1_usize;
        let place = (&raw mut taken).cast();
        let functions = &self.connection.manager.functions;
        // SAFETY: the attribute has the size of a pointer.
        let confirmed = unsafe { (functions.get_statement)(self.handle, SQL_ATTR_PARAMSET_SIZE, place, 0, null_mut()) };
        if is_success(outcome) && (!is_success(confirmed) || taken == rows) {
            return Ok(true);
        }
        self.set_attribute(SQL_ATTR_PARAMSET_SIZE, number(1));
        Ok(rows == 1)
    }

    /// Binds buffers to all columns of the answer, instead of those before; each fetch fills this many rows of them.
    pub fn bind_columns(&mut self, buffers: Vec<Buffer>, rows: usize) -> Result<(), Diagnostics> {
        assert!(buffers.iter().all(|buffer| buffer.rows() >= rows), "buffers are for fewer rows than are fetched");
        self.read_columns(buffers)?;
        self.check(self.set_attribute(SQL_ATTR_ROW_ARRAY_SIZE, number(rows)))?;
        let fetched = (&raw mut self.counts.fetched).cast();
        self.check(self.set_attribute(SQL_ATTR_ROWS_FETCHED_PTR, fetched))?;
        let functions = &self.connection.manager.functions;
        for number in 0..self.columns.len() {
            let c_type = self.columns[number].form().c_type();
            let (cells, width, lengths) = self.columns[number].place();
            // SAFETY: the buffer lives as long as it is bound: until the next binding, which lets go of all first.
            let outcome = unsafe { (functions.bind_column)(self.handle, number as u16 + 1, c_type, cells, width, lengths) };
            self.check(outcome)?;
        }
        Ok(())
    }

    /// Has buffers for one row of the answer, into which [`get`](Self::get) reads one column after the other.
    pub fn read_columns(&mut self, buffers: Vec<Buffer>) -> Result<(), Diagnostics> {
        // SAFETY: nothing is bound after it.
        self.check(unsafe { (self.connection.manager.functions.free_statement)(self.handle, SQL_UNBIND) })?;
        self.columns = buffers;
        Ok(())
    }

    /// The buffer of a column.
    #[inline]
    pub fn column(&self, number: usize) -> &Buffer {
        &self.columns[number]
    }

    /// Executes what was prepared, so that it can be called off meanwhile. Returns how many rows of parameters the driver says it
    /// took, where it says so.
    pub fn execute(&mut self, watched: Option<Watched>) -> Result<Option<usize>, Diagnostics> {
        self.counts.processed = 0;
        self.statuses.fill(0);
        let functions = &self.connection.manager.functions;
        // SAFETY: what is bound is there.
        let outcome = self.watch(watched, || unsafe { (functions.execute)(self.handle) });
        self.check_execution(outcome)?;
        if self.statuses.contains(&SQL_PARAM_ERROR) {
            return Err(self.diagnostics());
        }
        Ok(Some(self.counts.processed).filter(|processed| *processed > 0))
    }

    /// Fetches the next rows into the buffers; returns how many, none at the end.
    pub fn fetch(&mut self, watched: Option<Watched>) -> Result<usize, Diagnostics> {
        self.counts.fetched = 1;
        let functions = &self.connection.manager.functions;
        // SAFETY: what is bound is there.
        match self.watch(watched, || unsafe { (functions.fetch)(self.handle) }) {
            SQL_NO_DATA => Ok(0),
            outcome => self.check(outcome).map(|()| self.counts.fetched),
        }
    }

    /// Reads a column of the row that was fetched last into the first row of its buffer. Columns are read from left to right.
    pub fn get(&mut self, number: usize) -> Result<(), Diagnostics> {
        let c_type = self.columns[number].form().c_type();
        let (cells, width, length) = self.columns[number].place();
        // SAFETY: the buffer is as wide as is said.
        let outcome =
            unsafe { (self.connection.manager.functions.get_data)(self.handle, number as u16 + 1, c_type, cells, width, length) };
        self.check(outcome)
    }

    /// Reads a long text of the row that was fetched last; false when it is null.
    pub fn get_text(&mut self, number: usize, text: &mut String) -> Result<bool, Diagnostics> {
        text.clear();
        let bytes = match self.connection.text {
            Text::Wide => {
                let Some(bytes) = self.get_long(number, SQL_C_WCHAR, size_of::<u16>())? else { return Ok(false) };
                let units = bytes.chunks_exact(size_of::<u16>()).map(|unit| u16::from_ne_bytes([unit[0], unit[1]]));
                for character in char::decode_utf16(units) {
                    text.push(character.map_err(|_| not_text("UTF-16"))?);
                }
                return Ok(true);
            }
            Text::Narrow => self.get_long(number, SQL_C_CHAR, 1)?,
        };
        let Some(bytes) = bytes else { return Ok(false) };
        text.push_str(std::str::from_utf8(&bytes).map_err(|_| not_text("UTF-8"))?);
        Ok(true)
    }

    /// Reads long bytes of the row that was fetched last; None when they are null.
    pub fn get_bytes(&mut self, number: usize) -> Result<Option<Vec<u8>>, Diagnostics> {
        self.get_long(number, SQL_C_BINARY, 0)
    }

    /// Reads a value piece by piece. Each piece but of bytes ends with a zero that takes `end` bytes.
    fn get_long(&mut self, number: usize, c_type: i16, end: usize) -> Result<Option<Vec<u8>>, Diagnostics> {
        let get_data = self.connection.manager.functions.get_data;
        let (mut value, mut written, mut piece) = (Vec::new(), 0, FIRST_PIECE);
        loop {
            value.resize(written + piece, 0_u8);
            let room = &mut value[written..];
            let (start, bytes, mut left) = (room.as_mut_ptr().cast(), room.len() as isize, SQL_NO_TOTAL);
            // SAFETY: the room is as long as is said.
            let outcome = unsafe { get_data(self.handle, number as u16 + 1, c_type, start, bytes, &mut left) };
            if outcome == SQL_NO_DATA {
                break;
            }
            self.check(outcome)?;
            if left == SQL_NULL_DATA {
                return Ok(None);
            }
            let available = piece - end;
            let is_last = left != SQL_NO_TOTAL && left.max(0) as usize <= available;
            if is_last {
                written += left.max(0) as usize;
                break;
            }
            written += available;
            piece = if left == SQL_NO_TOTAL { FIRST_PIECE } else { left as usize - available + end };
        }
        value.truncate(written);
        Ok(Some(value))
    }

    /// Passes over the rest of the answer, so that the statement can be executed again.
    pub fn close(&mut self) -> Result<(), Diagnostics> {
        // SAFETY: the statement is there.
        self.check(unsafe { (self.connection.manager.functions.free_statement)(self.handle, SQL_CLOSE) })
    }

    fn unbind(&mut self) -> Result<(), Diagnostics> {
        self.close()?;
        self.bind_parameters(Vec::new())?;
        self.read_columns(Vec::new())
    }

    fn watch(&self, watched: Option<Watched>, call: impl FnOnce() -> Return) -> Return {
        match watched {
            Some((running, deadline)) => running.during(self.connection.manager, self.handle, deadline, call),
            None => call(),
        }
    }

    fn set_attribute(&self, attribute: i32, value: *mut c_void) -> Return {
        // SAFETY: values are numbers, or places that live as long as the statement.
        unsafe { (self.connection.manager.functions.set_statement)(self.handle, attribute, value, 0) }
    }

    /// A write that found nothing to do has succeeded.
    fn check_execution(&self, outcome: Return) -> Result<(), Diagnostics> {
        if outcome == SQL_NO_DATA { Ok(()) } else { self.check(outcome) }
    }

    fn check(&self, outcome: Return) -> Result<(), Diagnostics> {
        if is_success(outcome) { Ok(()) } else { Err(self.diagnostics()) }
    }

    fn diagnostics(&self) -> Diagnostics {
        let Connection { manager, text, .. } = &*self.connection;
        // SAFETY: the statement is there.
        unsafe { Diagnostics::of(&manager.functions, *text, SQL_HANDLE_STMT, self.handle) }
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        // SAFETY: it is freed once; its connection is still there.
        unsafe { (self.connection.manager.functions.free)(SQL_HANDLE_STMT, self.handle) };
    }
}

fn is_success(outcome: Return) -> bool {
    matches!(outcome, SQL_SUCCESS | SQL_SUCCESS_WITH_INFO)
}

fn not_text(encoding: &str) -> Diagnostics {
    Diagnostics::with("22021", format!("the driver returns text that is not {encoding}"))
}
