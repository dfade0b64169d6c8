//! Appenders, which load by chunks of columns.

use std::ffi::c_char;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use super::api::{Functions, Handle, SUCCESS};
use super::instance::c_text;
use super::{Connection, Refusal, text};

/// Appends chunks to a table. What was not closed is thrown away.
pub struct Appender {
    handle: Handle,
    connection: Arc<Connection>,
}

impl Appender {
    /// Begins to append rows of these columns to a table.
    pub fn to(connection: &Arc<Connection>, table: &str, columns: impl Iterator<Item = String>) -> Result<Self, Refusal> {
        let mut appender = Self { handle: null_mut(), connection: connection.clone() };
        let functions = connection.functions();
        let table = c_text(table);
        // SAFETY: the connection and the texts are there until the call is over.
        let state = unsafe { (functions.appender_create)(connection.handle, null(), table.as_ptr(), &mut appender.handle) };
        appender.check(state)?;
        for column in columns {
            let column = c_text(&column);
            // SAFETY: the appender was made above.
            appender.check(unsafe { (functions.appender_add_column)(appender.handle, column.as_ptr()) })?;
        }
        Ok(appender)
    }

    pub fn append(&self, chunk: &Chunk) -> Result<(), Refusal> {
        // SAFETY: both handles are alive.
        self.check(unsafe { (self.connection.functions().append_data_chunk)(self.handle, chunk.handle) })
    }

    /// Hands everything to the table.
    pub fn close(self) -> Result<(), Refusal> {
        // SAFETY: the handle is alive.
        self.check(unsafe { (self.connection.functions().appender_close)(self.handle) })
    }

    fn check(&self, state: u32) -> Result<(), Refusal> {
        if state == SUCCESS {
            return Ok(());
        }
        let functions = self.connection.functions();
        // SAFETY: the error is ours, and is destroyed once, after its message was copied.
        unsafe {
            let mut error = (functions.appender_error_data)(self.handle);
            let message = text((functions.error_data_message)(error)).unwrap_or_default();
            let refusal = Refusal::new((functions.error_data_error_type)(error), message);
            (functions.destroy_error_data)(&mut error);
            Err(refusal)
        }
    }
}

impl Drop for Appender {
    fn drop(&mut self) {
        let functions = self.connection.functions();
        // SAFETY: the handle is destroyed once. Cleared before, so that nothing is handed to the table here.
        unsafe {
            (functions.appender_clear)(self.handle);
            (functions.appender_destroy)(&mut self.handle);
        }
    }
}

/// Rows by columns, to be filled and appended.
pub struct Chunk {
    handle: Handle,
    functions: &'static Functions,
    vectors: Vec<Handle>,
}

impl Chunk {
    /// An empty chunk with columns of these types, by DuckDB's numbers.
    pub fn of(connection: &Connection, types: &[u32]) -> Self {
        let functions = connection.functions();
        // SAFETY: the types are made, used and destroyed here, each once.
        unsafe {
            let mut made: Vec<Handle> = types.iter().map(|number| (functions.create_logical_type)(*number)).collect();
            let handle = (functions.create_data_chunk)(made.as_mut_ptr(), made.len() as u64);
            made.iter_mut().for_each(|made| (functions.destroy_logical_type)(made));
            assert!(!handle.is_null(), "a chunk of known types is made");
            let vectors = (0..types.len()).map(|place| (functions.data_chunk_get_vector)(handle, place as u64)).collect();
            Self { handle, functions, vectors }
        }
    }

    /// Empties the chunk for this many rows, not more than `Library::chunk_rows`.
    pub fn begin(&mut self, rows: usize) {
        // SAFETY: the chunk is alive.
        unsafe {
            (self.functions.data_chunk_reset)(self.handle);
            (self.functions.data_chunk_set_size)(self.handle, rows as u64);
        }
    }

    /// Writes the values of a column. They must have the width of the column's type, and be no more than the rows that were begun.
    pub fn fill<T: Copy>(&mut self, column: usize, values: impl ExactSizeIterator<Item = T>) {
        // SAFETY: the vector has room for a chunk of values of its type.
        unsafe {
            let data = (self.functions.vector_get_data)(self.vectors[column]).cast::<T>();
            values.enumerate().for_each(|(row, value)| data.add(row).write(value));
        }
    }

    /// Copies the values of a column, as `fill`.
    pub fn copy<T: Copy>(&mut self, column: usize, values: &[T]) {
        // SAFETY: as above.
        unsafe {
            let data = (self.functions.vector_get_data)(self.vectors[column]).cast::<T>();
            data.copy_from_nonoverlapping(values.as_ptr(), values.len());
        }
    }

    /// Writes a text, or bytes, which are copied.
    pub fn set_bytes(&mut self, column: usize, row: usize, bytes: &[u8]) {
        // SAFETY: the vector is of texts or bytes. Texts come from Rust, where they are UTF-8.
        unsafe {
            let function = self.functions.unsafe_vector_assign_string_element_len;
            function(self.vectors[column], row as u64, bytes.as_ptr().cast::<c_char>(), bytes.len() as u64);
        }
    }

    /// Makes values of a column null.
    pub fn set_nulls(&mut self, column: usize, rows: impl Iterator<Item = usize>) {
        // SAFETY: the mask has a bit for each row of a chunk, once it may be written.
        unsafe {
            (self.functions.vector_ensure_validity_writable)(self.vectors[column]);
            let mask = (self.functions.vector_get_validity)(self.vectors[column]);
            rows.for_each(|row| *mask.add(row / 64) &= !(1 << (row % 64)));
        }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: it is destroyed once.
        unsafe { (self.functions.destroy_data_chunk)(&mut self.handle) };
    }
}
