//! The rows of an answer, as values in one buffer that is used again for the next answer.

use crate::ValueRef;

/// Rows of values. A session appends the values of each row and ends it; the engine reads them after the end time.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    cells: Vec<Cell>,
    bytes: Vec<u8>,
    columns: usize,
    count: u64,
}

#[derive(Clone, Copy, Debug)]
enum Cell {
    Null,
    Boolean(bool),
    Integer(i64),
    Double(f64),
    Timestamp(i64),
    Text { start: u32, end: u32 },
    Bytes { start: u32, end: u32 },
}

/// A row that is looked at where it lies.
#[derive(Clone, Copy)]
pub struct RowRef<'a> {
    cells: &'a [Cell],
    bytes: &'a [u8],
}

impl Rows {
    /// No rows, of any number of columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets the rows and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.cells.clear();
        self.bytes.clear();
        self.columns = 0;
        self.count = 0;
    }

    /// Appends a value to the row that is being written.
    ///
    /// Panics when the text and bytes of an answer exceed 4 GiB.
    #[inline]
    pub fn push(&mut self, value: ValueRef) {
        let cell = match value {
            ValueRef::Null => Cell::Null,
            ValueRef::Boolean(value) => Cell::Boolean(value),
            ValueRef::Integer(value) => Cell::Integer(value),
            ValueRef::Double(value) => Cell::Double(value),
            ValueRef::Timestamp(value) => Cell::Timestamp(value),
            ValueRef::Text(value) => {
                let (start, end) = self.kept(value.as_bytes());
                Cell::Text { start, end }
            }
            ValueRef::Bytes(value) => {
                let (start, end) = self.kept(value);
                Cell::Bytes { start, end }
            }
        };
        self.cells.push(cell);
    }

    fn kept(&mut self, value: &[u8]) -> (u32, u32) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        (start, u32::try_from(self.bytes.len()).expect("the text and bytes of an answer are below 4 GiB"))
    }

    /// Ends the row that is being written.
    #[inline]
    pub fn end_row(&mut self) {
        self.count += 1;
        if self.count == 1 {
            self.columns = self.cells.len();
        }
        debug_assert_eq!(self.cells.len() as u64, self.count * self.columns as u64, "rows differ in their number of values");
    }

    /// Counts a row whose values are not wanted.
    #[inline]
    pub fn count_row(&mut self) {
        self.count += 1;
    }

    /// Number of rows.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// True when there is no row.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Every row.
    pub fn iter(&self) -> impl Iterator<Item = RowRef<'_>> {
        self.cells.chunks_exact(self.columns.max(1)).map(|cells| RowRef { cells, bytes: &self.bytes })
    }
}

impl<'a> RowRef<'a> {
    /// The value in a column.
    #[inline]
    pub fn value(&self, column: usize) -> ValueRef<'a> {
        let kept = |start: u32, end: u32| &self.bytes[start as usize..end as usize];
        match self.cells[column] {
            Cell::Null => ValueRef::Null,
            Cell::Boolean(value) => ValueRef::Boolean(value),
            Cell::Integer(value) => ValueRef::Integer(value),
            Cell::Double(value) => ValueRef::Double(value),
            Cell::Timestamp(value) => ValueRef::Timestamp(value),
            Cell::Text { start, end } => {
                ValueRef::Text(std::str::from_utf8(kept(start, end)).expect("was text when it was pushed"))
            }
            Cell::Bytes { start, end } => ValueRef::Bytes(kept(start, end)),
        }
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.cells.len()
    }
}
