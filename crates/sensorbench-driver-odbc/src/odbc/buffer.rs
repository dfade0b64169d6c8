//! Cells that a driver reads or writes, many rows of one column, each with a length.

use std::ffi::c_void;

use super::Text;
use super::api::{
    SQL_BIGINT, SQL_BIT, SQL_C_BINARY, SQL_C_BIT, SQL_C_CHAR, SQL_C_DOUBLE, SQL_C_SBIGINT, SQL_C_TYPE_TIMESTAMP, SQL_C_WCHAR,
    SQL_DOUBLE, SQL_LONGVARBINARY, SQL_LONGVARCHAR, SQL_NO_TOTAL, SQL_NULL_DATA, SQL_TYPE_TIMESTAMP, SQL_VARBINARY, SQL_VARCHAR,
    SQL_WLONGVARCHAR, SQL_WVARCHAR,
};

/// Characters or bytes that are declared to a driver as the short kind of its types; what is longer, as the long kind.
const MAX_SHORT: usize = 4000;

/// A point in time as ODBC has it (SQL_TIMESTAMP_STRUCT).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moment {
    pub year: i16,
    pub month: u16,
    pub day: u16,
    pub hour: u16,
    pub minute: u16,
    pub second: u16,
    pub nanoseconds: u32,
}

/// In which form values go to a driver or come from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// One bit.
    Bit,
    /// 64 bits with a sign.
    Integer,
    /// 64 bits, IEEE 754.
    Double,
    /// Date and time of day.
    Moment,
    /// Characters.
    Text(Text),
    /// Bytes.
    Bytes,
}

impl Form {
    /// Whether the width of its cells is to be chosen.
    pub fn is_variable(self) -> bool {
        matches!(self, Form::Text(_) | Form::Bytes)
    }

    /// The type of its cells.
    pub(super) fn c_type(self) -> i16 {
        match self {
            Form::Bit => SQL_C_BIT,
            Form::Integer => SQL_C_SBIGINT,
            Form::Double => SQL_C_DOUBLE,
            Form::Moment => SQL_C_TYPE_TIMESTAMP,
            Form::Text(Text::Wide) => SQL_C_WCHAR,
            Form::Text(Text::Narrow) => SQL_C_CHAR,
            Form::Bytes => SQL_C_BINARY,
        }
    }
}

/// Rows of one column.
#[derive(Debug)]
pub struct Buffer {
    form: Form,
    cells: Cells,
    /// Bytes of each cell, or what else stands for its length.
    lengths: Vec<isize>,
}

#[derive(Debug)]
enum Cells {
    Bits(Vec<u8>),
    Integers(Vec<i64>),
    Doubles(Vec<f64>),
    Moments(Vec<Moment>),
    /// UTF-16, `width` units a cell.
    Wide {
        units: Vec<u16>,
        width: usize,
    },
    /// UTF-8 or bytes, `width` a cell.
    Narrow {
        bytes: Vec<u8>,
        width: usize,
    },
}

/// A value to be written.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    Null,
    Bit(bool),
    Integer(i64),
    Double(f64),
    Moment(Moment),
    Text(&'a str),
    Bytes(&'a [u8]),
}

/// A cell as it lies in its buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    Null,
    Bit(bool),
    Integer(i64),
    Double(f64),
    Moment(Moment),
    Wide(&'a [u16]),
    /// Text or bytes, as the form says.
    Narrow(&'a [u8]),
    /// It was longer than the buffer is wide.
    Cut,
}

impl Cell<'_> {
    /// What the cell holds, as messages name it.
    pub fn kind(self) -> &'static str {
        match self {
            Cell::Null => "null",
            Cell::Bit(_) => "a bit",
            Cell::Integer(_) => "an integer",
            Cell::Double(_) => "a double",
            Cell::Moment(_) => "a timestamp",
            Cell::Wide(_) => "text",
            Cell::Narrow(_) => "text or bytes",
            Cell::Cut => "a value that was cut",
        }
    }
}

impl Buffer {
    /// Empty cells, for this many rows; of this many characters or bytes where the form leaves that open.
    pub fn new(form: Form, rows: usize, width: usize) -> Self {
        let (rows, width) = (rows.max(1), width.max(1));
        let cells = match form {
            Form::Bit => Cells::Bits(vec![0; rows]),
            Form::Integer => Cells::Integers(vec![0; rows]),
            Form::Double => Cells::Doubles(vec![0.0; rows]),
            Form::Moment => Cells::Moments(vec![Moment::default(); rows]),
            // One more for the zero that ends what is read.
            Form::Text(Text::Wide) => Cells::Wide { units: vec![0; rows * (width + 1)], width: width + 1 },
            Form::Text(Text::Narrow) => Cells::Narrow { bytes: vec![0; rows * (width + 1)], width: width + 1 },
            Form::Bytes => Cells::Narrow { bytes: vec![0; rows * width], width },
        };
        Self { form, cells, lengths: vec![SQL_NULL_DATA; rows] }
    }

    pub fn form(&self) -> Form {
        self.form
    }

    /// How many rows fit.
    pub fn rows(&self) -> usize {
        self.lengths.len()
    }

    /// How many characters or bytes fit into a cell.
    pub fn width(&self) -> usize {
        match (&self.cells, self.form) {
            (Cells::Wide { width, .. }, _) | (Cells::Narrow { width, .. }, Form::Text(_)) => width - 1,
            (Cells::Narrow { width, .. }, _) => *width,
            _ => 0,
        }
    }

    /// The type that values of this buffer are declared to have when they are parameters.
    pub(super) fn sql_type(&self) -> i16 {
        let is_short = self.width() <= MAX_SHORT;
        match self.form {
            Form::Bit => SQL_BIT,
            Form::Integer => SQL_BIGINT,
            Form::Double => SQL_DOUBLE,
            Form::Moment => SQL_TYPE_TIMESTAMP,
            Form::Text(Text::Wide) => [SQL_WLONGVARCHAR, SQL_WVARCHAR][usize::from(is_short)],
            Form::Text(Text::Narrow) => [SQL_LONGVARCHAR, SQL_VARCHAR][usize::from(is_short)],
            Form::Bytes => [SQL_LONGVARBINARY, SQL_VARBINARY][usize::from(is_short)],
        }
    }

    /// Size and decimal digits of that type.
    pub(super) fn precision(&self) -> (usize, i16) {
        match self.form {
            Form::Bit => (1, 0),
            Form::Integer => (19, 0),
            Form::Double => (15, 0),
            // "2000-01-01 00:00:00.000000"
            Form::Moment => (26, 6),
            Form::Text(_) | Form::Bytes => (self.width().max(1), 0),
        }
    }

    /// The first cell, the bytes of a cell, and the first length. They stay where they are as long as the buffer is not dropped.
    pub(super) fn place(&mut self) -> (*mut c_void, isize, *mut isize) {
        fn of<T>(cells: &mut [T], width: usize) -> (*mut c_void, isize) {
            (cells.as_mut_ptr().cast(), (width * size_of::<T>()) as isize)
        }
        let (cells, bytes) = match &mut self.cells {
            Cells::Bits(cells) => of(cells, 1),
            Cells::Integers(cells) => of(cells, 1),
            Cells::Doubles(cells) => of(cells, 1),
            Cells::Moments(cells) => of(cells, 1),
            Cells::Wide { units, width } => of(units, *width),
            Cells::Narrow { bytes, width } => of(bytes, *width),
        };
        (cells, bytes, self.lengths.as_mut_ptr())
    }

    /// Writes a value, which must be of the buffer's form and not longer than the buffer is wide.
    #[inline]
    pub(super) fn set(&mut self, row: usize, value: Input) {
        self.lengths[row] = match (&mut self.cells, value) {
            (_, Input::Null) => SQL_NULL_DATA,
            (Cells::Bits(cells), Input::Bit(value)) => put(&mut cells[row], u8::from(value)),
            (Cells::Integers(cells), Input::Integer(value)) => put(&mut cells[row], value),
            (Cells::Doubles(cells), Input::Double(value)) => put(&mut cells[row], value),
            (Cells::Moments(cells), Input::Moment(value)) => put(&mut cells[row], value),
            (Cells::Wide { units, width }, Input::Text(value)) => {
                // Text has no more units in UTF-16 than bytes in UTF-8.
                assert!(value.len() < *width, "a text is longer than its buffer is wide");
                let cell = &mut units[row * *width..][..*width];
                let written = cell.iter_mut().zip(value.encode_utf16()).map(|(place, unit)| *place = unit).count();
                (written * size_of::<u16>()) as isize
            }
            (Cells::Narrow { bytes, width }, Input::Text(value)) => {
                assert!(value.len() < *width, "a text is longer than its buffer is wide");
                put_bytes(bytes, row * *width, value.as_bytes())
            }
            (Cells::Narrow { bytes, width }, Input::Bytes(value)) => {
                assert!(value.len() <= *width, "bytes are more than their buffer is wide");
                put_bytes(bytes, row * *width, value)
            }
            (_, other) => panic!("{other:?} is not of the form {:?}", self.form),
        };
    }

    /// What was read into a row.
    #[inline]
    pub fn cell(&self, row: usize) -> Cell<'_> {
        let length = self.lengths[row];
        if length == SQL_NULL_DATA {
            return Cell::Null;
        }
        let length = if length == SQL_NO_TOTAL { usize::MAX } else { length.max(0) as usize };
        match &self.cells {
            Cells::Bits(cells) => Cell::Bit(cells[row] != 0),
            Cells::Integers(cells) => Cell::Integer(cells[row]),
            Cells::Doubles(cells) => Cell::Double(cells[row]),
            Cells::Moments(cells) => Cell::Moment(cells[row]),
            Cells::Wide { .. } if length / size_of::<u16>() > self.width() => Cell::Cut,
            Cells::Wide { units, width } => Cell::Wide(&units[row * width..][..length / size_of::<u16>()]),
            Cells::Narrow { .. } if length > self.width() => Cell::Cut,
            Cells::Narrow { bytes, width } => Cell::Narrow(&bytes[row * width..][..length]),
        }
    }
}

/// Writes a cell of fixed length; returns that length.
#[inline]
fn put<T>(cell: &mut T, value: T) -> isize {
    *cell = value;
    size_of::<T>() as isize
}

#[inline]
fn put_bytes(cells: &mut [u8], start: usize, value: &[u8]) -> isize {
    cells[start..][..value.len()].copy_from_slice(value);
    value.len() as isize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut wide = Buffer::new(Form::Text(Text::Wide), 2, 8);
        wide.set(1, Input::Text("é🌡"));
        assert_eq!(wide.cell(0), Cell::Null);
        assert_eq!(wide.cell(1), Cell::Wide(&[0xe9, 0xd83c, 0xdf21]));
        let mut bytes = Buffer::new(Form::Bytes, 2, 3);
        bytes.set(0, Input::Bytes(b""));
        bytes.set(1, Input::Bytes(b"\0\x01\xff"));
        assert_eq!((bytes.cell(0), bytes.cell(1)), (Cell::Narrow(b""), Cell::Narrow(b"\0\x01\xff")));
        let mut integers = Buffer::new(Form::Integer, 1, 0);
        integers.set(0, Input::Integer(i64::MIN));
        assert_eq!(integers.cell(0), Cell::Integer(i64::MIN));
    }

    #[test]
    fn what_was_cut_is_told() {
        let mut text = Buffer::new(Form::Text(Text::Wide), 1, 2);
        text.lengths[0] = 6;
        assert_eq!(text.cell(0), Cell::Cut);
        text.lengths[0] = SQL_NO_TOTAL;
        assert_eq!(text.cell(0), Cell::Cut);
    }

    #[test]
    fn a_moment_lies_as_the_standard_says() {
        assert_eq!((size_of::<Moment>(), std::mem::offset_of!(Moment, nanoseconds)), (16, 12));
    }
}
