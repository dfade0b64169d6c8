//! Answers in the format Native: blocks of columns, read as they come.

use sensorbench_driver::{Column, DriverError, Rows};

use super::types::{ColumnType, Cursor, Values};

/// What stands in an answer instead of a block where the server breaks off.
const REASON: &[u8] = b"Code: ";
/// What of an answer that is none goes into messages.
const MAX_SHOWN_BYTES: usize = 500;

/// Reads an answer piece by piece into rows of an operation's columns.
pub struct Answer<'a> {
    columns: &'a [Column],
    unread: Vec<u8>,
    /// With fewer bytes than these, what is unread has no whole block: known since the last look.
    needed: usize,
}

impl<'a> Answer<'a> {
    /// Nothing is read yet of rows with these columns.
    pub fn of(columns: &'a [Column]) -> Self {
        Self { columns, unread: Vec::new(), needed: 1 }
    }

    /// Takes the next piece, and appends the rows of all blocks that are whole.
    pub fn take(&mut self, data: &[u8], rows: &mut Rows) -> Result<(), DriverError> {
        self.unread.extend_from_slice(data);
        if self.unread.len() < self.needed {
            return Ok(());
        }
        let mut read = 0;
        while !self.unread[read..].starts_with(REASON)
            && let Some(length) = self.block(&self.unread[read..], rows)?
        {
            read += length;
        }
        self.unread.drain(..read);
        // A block may come in many pieces; what it has so far is looked through again only when it has doubled.
        self.needed = if self.unread.is_empty() { 1 } else { 2 * self.unread.len() };
        Ok(())
    }

    /// The end of the answer: what is unread is a block, or the server's reason for breaking off.
    pub fn finish(mut self, rows: &mut Rows) -> Result<(), DriverError> {
        self.needed = 0;
        self.take(&[], rows)?;
        if self.unread.is_empty() {
            return Ok(());
        }
        let end = &self.unread[self.unread.len().saturating_sub(MAX_SHOWN_BYTES)..];
        Err(DriverError::Statement(format!("the answer breaks off: {}", String::from_utf8_lossy(end).trim())))
    }

    /// Appends the rows of the block that begins here; how long it is, or None if it is not whole.
    fn block(&self, bytes: &[u8], rows: &mut Rows) -> Result<Option<usize>, DriverError> {
        let mut cursor = Cursor::new(bytes);
        let Some((columns, count)) = header(&mut cursor) else { return Ok(None) };
        let mut values = Vec::with_capacity(self.columns.len());
        for place in 0..columns {
            let (Some(_), Some(type_name)) = (cursor.text(), cursor.text()) else { return Ok(None) };
            let Some(column) = self.column(place, columns, type_name)? else { continue };
            let Some(taken) = Values::take(column, count, &mut cursor) else { return Ok(None) };
            values.push(taken);
        }
        for row in 0..count {
            for (column, values) in self.columns.iter().zip(&values) {
                let value = values.value(row, column.value_type).map_err(|error| error.at("column", &column.name));
                rows.push(value.map_err(|error| DriverError::Data(error.to_string()))?);
            }
            rows.end_row();
        }
        Ok(Some(bytes.len() - cursor.left()))
    }

    /// The type of a column of the block, which is what the operation has in this place.
    fn column(&self, place: usize, columns: usize, type_name: &[u8]) -> Result<Option<ColumnType>, DriverError> {
        let type_name = String::from_utf8_lossy(type_name);
        if columns != self.columns.len() {
            return Err(DriverError::Data(format!(
                "the statement returns {columns} columns; the operation has {}",
                self.columns.len()
            )));
        }
        let declared = &self.columns[place];
        let unknown = || format!("expected {}, but the server returns {type_name}", declared.value_type.name());
        let column = ColumnType::parse(&type_name);
        let problem = column.as_ref().map_or_else(|| Some(unknown()), |column| column.why_not(declared.value_type));
        match problem {
            None => Ok(column),
            Some(problem) => Err(DriverError::Data(format!("column {}: {problem}", declared.name))),
        }
    }
}

/// The numbers of columns and of rows.
fn header(cursor: &mut Cursor) -> Option<(usize, usize)> {
    Some((usize::try_from(cursor.varint()?).ok()?, usize::try_from(cursor.varint()?).ok()?))
}

#[cfg(test)]
mod tests {
    use sensorbench_driver::{Type, Value};

    use super::*;

    fn columns() -> Vec<Column> {
        let column = |name: &str, value_type| Column { name: name.to_owned(), value_type, computed: false };
        vec![column("id", Type::Integer), column("name", Type::Text)]
    }

    /// A block with ids and names, as the server writes it.
    fn block(ids: &[i64], names: &[&str]) -> Vec<u8> {
        let mut bytes = vec![2, ids.len() as u8];
        bytes.extend_from_slice(b"\x02id\x05Int64");
        ids.iter().for_each(|id| bytes.extend_from_slice(&id.to_le_bytes()));
        bytes.extend_from_slice(b"\x04name\x10Nullable(String)");
        bytes.extend(names.iter().map(|name| u8::from(name.is_empty())));
        for name in names {
            bytes.push(name.len() as u8);
            bytes.extend_from_slice(name.as_bytes());
        }
        bytes
    }

    fn read(bytes: &[u8], piece: usize) -> Result<Vec<Vec<Value>>, String> {
        let columns = columns();
        let (mut answer, mut rows) = (Answer::of(&columns), Rows::new());
        for data in bytes.chunks(piece) {
            answer.take(data, &mut rows).map_err(|error| error.to_string())?;
        }
        answer.finish(&mut rows).map_err(|error| error.to_string())?;
        Ok(rows.iter().map(|row| vec![row.value(0).to_value(), row.value(1).to_value()]).collect())
    }

    #[test]
    fn blocks_are_whole_however_they_come() {
        let bytes = [block(&[1, -2], &["one", ""]), block(&[], &[]), block(&[3], &["three"])].concat();
        let expected = [
            vec![Value::Integer(1), Value::Text("one".into())],
            vec![Value::Integer(-2), Value::Null],
            vec![Value::Integer(3), Value::Text("three".into())],
        ];
        for piece in 1..=bytes.len() {
            assert_eq!(read(&bytes, piece).unwrap(), expected, "in pieces of {piece}");
        }
        assert!(read(&[], 1).unwrap().is_empty());
    }

    #[test]
    fn an_answer_that_breaks_off_has_its_reason() {
        let bytes = [block(&[1], &["one"]), b"\x02\x7fCode: 241, Memory limit exceeded".to_vec()].concat();
        assert!(read(&bytes, 9).unwrap_err().contains("Memory limit exceeded"));
    }

    #[test]
    fn other_columns_are_refused() {
        assert!(read(b"\x01\x01\x01a\x05Int64\0\0\0\0\0\0\0\0", 99).unwrap_err().contains("returns 1 columns"));
        let mut bytes = block(&[1], &["one"]);
        bytes[6..11].copy_from_slice(b"Array");
        assert!(read(&bytes, 99).unwrap_err().contains("expected integer, but the server returns Array"));
    }
}
