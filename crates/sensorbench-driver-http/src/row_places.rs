//! The rows that an operation writes: its parameters are those of one row after those of another.

use sensorbench_driver::{ConversionError, DriverError, Operation, Value, ValueRef};

/// Room for a row.
const ROW_BYTES: usize = 256;

/// Where the columns of a row are among an operation's parameters.
#[derive(Clone, Debug)]
pub struct RowPlaces {
    columns: Vec<usize>,
    /// How many parameters a row has.
    width: usize,
}

impl RowPlaces {
    /// Those of an operation, of whose parameters these are the columns.
    pub fn new(operation: &Operation, columns: Vec<usize>) -> Self {
        Self { columns, width: operation.parameters.len() }
    }

    /// The bytes of all rows. `append` appends a row whose column of each number has this value; it fails with what cannot be written.
    pub fn written<'a>(
        &'a self,
        parameters: &'a [Value],
        mut append: impl FnMut(&mut Vec<u8>, &dyn Fn(usize) -> ValueRef<'a>) -> Result<(), ConversionError>,
    ) -> Result<Vec<u8>, DriverError> {
        let rows = parameters.chunks_exact(self.width);
        let mut data = Vec::with_capacity(rows.len() * ROW_BYTES);
        for row in rows {
            append(&mut data, &|column| row[self.columns[column]].as_ref())
                .map_err(|error| DriverError::Data(error.to_string()))?;
        }
        Ok(data)
    }
}
