//! Answers, read chunk by chunk.

use std::ffi::c_void;

use sensorbench_driver::{Type, ValueRef};

use super::api::{Functions, Handle, RawResult, RawText, SUCCESS, State, duckdb_type, kind};
use super::{Refusal, text};

/// An answer that is complete.
pub struct Answer {
    raw: RawResult,
    functions: &'static Functions,
}

impl Answer {
    pub(super) fn of(functions: &'static Functions, state: State, raw: RawResult) -> Result<Self, Refusal> {
        let mut answer = Self { raw, functions };
        if state == SUCCESS {
            return Ok(answer);
        }
        // SAFETY: the result is alive, and the text is copied.
        let (message, kind) = unsafe {
            let message = text((functions.result_error)(&mut answer.raw));
            (message, (functions.result_error_type)(&mut answer.raw))
        };
        Err(Refusal::new(kind, message.unwrap_or_else(|| "DuckDB does not say why".to_owned())))
    }

    /// The types of its columns, by DuckDB's numbers.
    pub fn column_types(&mut self) -> impl ExactSizeIterator<Item = u32> {
        // SAFETY: the result is alive.
        let columns = unsafe { (self.functions.column_count)(&mut self.raw) } as usize;
        // SAFETY: as above, and no column is asked for that there is not.
        (0..columns).map(move |column| unsafe { (self.functions.column_type)(&mut self.raw, column as u64) })
    }

    /// The next chunk; None after the last one.
    pub fn next_chunk(&mut self) -> Result<Option<AnswerChunk>, Refusal> {
        // SAFETY: the result is alive.
        let handle = unsafe { (self.functions.fetch_chunk)(self.raw) };
        if !handle.is_null() {
            return Ok(Some(AnswerChunk { handle, functions: self.functions }));
        }
        // SAFETY: as above; the text is copied.
        match unsafe { text((self.functions.result_error)(&mut self.raw)) } {
            Some(message) => Err(Refusal::new(kind::INVALID, message)),
            None => Ok(None),
        }
    }

    /// All values of all rows, of columns that have these types. For control, not for what is measured.
    pub fn rows(mut self, types: &[Type]) -> Result<Vec<Vec<sensorbench_driver::Value>>, Refusal> {
        let found: Vec<u32> = self.column_types().collect();
        let mut rows = Vec::new();
        while let Some(chunk) = self.next_chunk()? {
            let columns = chunk.columns(&found, types).map_err(|place| {
                Refusal::new(kind::INVALID, format!("column {place} has the type {} of DuckDB", found[place]))
            })?;
            rows.extend(
                (0..chunk.rows()).map(|row| columns.iter().map(|column| column.value(row).to_value()).collect::<Vec<_>>()),
            );
        }
        Ok(rows)
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // SAFETY: it is destroyed once.
        unsafe { (self.functions.destroy_result)(&mut self.raw) };
    }
}

/// Rows of an answer, by columns.
pub struct AnswerChunk {
    handle: Handle,
    functions: &'static Functions,
}

impl AnswerChunk {
    pub fn rows(&self) -> usize {
        // SAFETY: the chunk is alive.
        unsafe { (self.functions.data_chunk_get_size)(self.handle) as usize }
    }

    /// A column of one of DuckDB's types to be read as one of ours; None if it is another type's.
    #[inline]
    pub fn column(&self, place: usize, found: u32, expected: Type) -> Option<Column<'_>> {
        let values = Values::of(found, expected)?;
        // SAFETY: the chunk is alive as long as the column, and its vectors are flat.
        let (data, validity) = unsafe {
            let vector = (self.functions.data_chunk_get_vector)(self.handle, place as u64);
            ((self.functions.vector_get_data)(vector), (self.functions.vector_get_validity)(vector))
        };
        Some(Column { values, data, validity, rows: self.rows(), chunk: std::marker::PhantomData })
    }

    /// All columns; the place of the first one that is another type's.
    fn columns(&self, found: &[u32], expected: &[Type]) -> Result<Vec<Column<'_>>, usize> {
        let column = |place| self.column(place, found[place], expected[place]).ok_or(place);
        (0..expected.len()).map(column).collect()
    }
}

impl Drop for AnswerChunk {
    fn drop(&mut self) {
        // SAFETY: it is destroyed once.
        unsafe { (self.functions.destroy_data_chunk)(&mut self.handle) };
    }
}

/// How the values of a column lie in memory.
#[derive(Clone, Copy)]
enum Values {
    Boolean,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    Double,
    Timestamp,
    Text,
    Bytes,
    /// Of no type, because all are null.
    Null,
}

impl Values {
    #[inline]
    fn of(found: u32, expected: Type) -> Option<Self> {
        Some(match (expected, found) {
            (Type::Boolean, duckdb_type::BOOLEAN) => Self::Boolean,
            (Type::Integer, duckdb_type::TINYINT) => Self::I8,
            (Type::Integer, duckdb_type::SMALLINT) => Self::I16,
            (Type::Integer, duckdb_type::INTEGER) => Self::I32,
            (Type::Integer, duckdb_type::BIGINT) => Self::I64,
            (Type::Integer, duckdb_type::UTINYINT) => Self::U8,
            (Type::Integer, duckdb_type::USMALLINT) => Self::U16,
            (Type::Integer, duckdb_type::UINTEGER) => Self::U32,
            (Type::Double, duckdb_type::DOUBLE) => Self::Double,
            (Type::Timestamp, duckdb_type::TIMESTAMP) => Self::Timestamp,
            (Type::Text, duckdb_type::VARCHAR) => Self::Text,
            (Type::Bytes, duckdb_type::BLOB) => Self::Bytes,
            (_, duckdb_type::SQLNULL) => Self::Null,
            _ => return None,
        })
    }
}

/// Whether columns are those of a statement that DuckDB can plan only with its parameters: it then reports one column, of no type.
pub fn is_unknown(found: &[u32]) -> bool {
    found == [duckdb_type::INVALID]
}

/// Whether a column of one of DuckDB's types may be read as one of ours, where the type is known before parameters are.
pub fn may_be(found: u32, expected: Type) -> bool {
    [duckdb_type::INVALID, duckdb_type::ANY].contains(&found) || Values::of(found, expected).is_some()
}

/// DuckDB's type for a column of ours, in which it is loaded.
pub fn type_for(canonical: Type) -> u32 {
    match canonical {
        Type::Boolean => duckdb_type::BOOLEAN,
        Type::Integer => duckdb_type::BIGINT,
        Type::Double => duckdb_type::DOUBLE,
        Type::Timestamp => duckdb_type::TIMESTAMP,
        Type::Text => duckdb_type::VARCHAR,
        Type::Bytes => duckdb_type::BLOB,
    }
}

/// A column of a chunk.
#[derive(Clone, Copy)]
pub struct Column<'a> {
    values: Values,
    data: *const c_void,
    validity: *const u64,
    rows: usize,
    chunk: std::marker::PhantomData<&'a AnswerChunk>,
}

impl<'a> Column<'a> {
    /// The value in a row.
    ///
    /// Panics when there is no such row, and when a text is not UTF-8, which DuckDB rules out.
    #[inline]
    pub fn value(&self, row: usize) -> ValueRef<'a> {
        assert!(row < self.rows, "a row of the chunk");
        // SAFETY: the vector is flat and has the type that `values` is for, and the row is one of it. No mask: no nulls.
        unsafe {
            if !self.validity.is_null() && *self.validity.add(row / 64) & (1 << (row % 64)) == 0 {
                return ValueRef::Null;
            }
            match self.values {
                Values::Boolean => ValueRef::Boolean(*self.data.cast::<u8>().add(row) != 0),
                Values::I8 => ValueRef::Integer(i64::from(*self.data.cast::<i8>().add(row))),
                Values::I16 => ValueRef::Integer(i64::from(*self.data.cast::<i16>().add(row))),
                Values::I32 => ValueRef::Integer(i64::from(*self.data.cast::<i32>().add(row))),
                Values::I64 => ValueRef::Integer(*self.data.cast::<i64>().add(row)),
                Values::U8 => ValueRef::Integer(i64::from(*self.data.cast::<u8>().add(row))),
                Values::U16 => ValueRef::Integer(i64::from(*self.data.cast::<u16>().add(row))),
                Values::U32 => ValueRef::Integer(i64::from(*self.data.cast::<u32>().add(row))),
                Values::Double => ValueRef::Double(*self.data.cast::<f64>().add(row)),
                Values::Timestamp => ValueRef::Timestamp(*self.data.cast::<i64>().add(row)),
                Values::Text => ValueRef::Text(std::str::from_utf8(self.bytes(row)).expect("DuckDB's texts are UTF-8")),
                Values::Bytes => ValueRef::Bytes(self.bytes(row)),
                Values::Null => ValueRef::Null,
            }
        }
    }

    /// # Safety
    ///
    /// The column must be of texts or bytes, and the row one of it that is not null.
    #[inline]
    unsafe fn bytes(&self, row: usize) -> &'a [u8] {
        // SAFETY: the caller vouches for it.
        unsafe { (*self.data.cast::<RawText>().add(row)).bytes() }
    }
}
