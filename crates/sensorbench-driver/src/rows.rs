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

impl Cell {
    /// The same cell where its text or bytes lie this much further on.
    fn moved(self, offset: u32) -> Self {
        match self {
            Cell::Text { start, end } => Cell::Text { start: start + offset, end: end + offset },
            Cell::Bytes { start, end } => Cell::Bytes { start: start + offset, end: end + offset },
            other => other,
        }
    }
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

    /// Appends all rows of another answer, which have as many columns.
    ///
    /// Panics when the text and bytes of both exceed 4 GiB.
    pub fn append(&mut self, other: &Rows) {
        let (offset, _) = self.kept(&other.bytes);
        self.cells.extend(other.cells.iter().map(|cell| cell.moved(offset)));
        if self.columns == 0 {
            self.columns = other.columns;
        }
        self.count += other.count;
        debug_assert!([0, self.columns].contains(&other.columns), "answers differ in their number of columns");
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

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[[ValueRef; 3]]) -> Rows {
        let mut written = Rows::new();
        for row in rows {
            row.iter().for_each(|value| written.push(*value));
            written.end_row();
        }
        written
    }

    fn values(rows: &Rows) -> Vec<Vec<ValueRef<'_>>> {
        rows.iter().map(|row| (0..row.columns()).map(|column| row.value(column)).collect()).collect()
    }

    #[test]
    fn rows_of_several_answers_become_one_answer() {
        use ValueRef::{Bytes, Integer, Null, Text};
        let of_each =
            [[Integer(1), Text("one"), Bytes(b"1")], [Integer(2), Text(""), Null], [Integer(3), Text("three"), Bytes(b"33")]];
        let mut all = Rows::new();
        for part in [&of_each[..0], &of_each[..2], &of_each[..0], &of_each[2..]] {
            all.append(&rows(part));
        }
        assert_eq!(all.len(), 3);
        assert_eq!(values(&all), of_each);
        all.push(Null);
        all.push(Text("more"));
        all.push(Null);
        all.end_row();
        assert_eq!(values(&all)[3], [Null, Text("more"), Null]);
    }

    #[test]
    fn rows_that_are_only_counted_are_appended_too() {
        let mut counted = Rows::new();
        counted.count_row();
        let mut all = counted.clone();
        all.append(&counted);
        assert_eq!((all.len(), all.iter().count()), (2, 0));
    }
}
