//! A CSV file as cqlsh's `COPY … FROM` reads it by default: without a header, columns in the order of the rows, nothing for null.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use arrow_array::RecordBatchReader;
use sensorbench_dataset::Column;
use sensorbench_driver::{ConversionError, DriverError, Progress, ValueRef};

use crate::encode::TableForm;
use crate::wire::{Form, milliseconds};

pub fn write(
    table: &TableForm,
    rows: Box<dyn RecordBatchReader + Send>,
    file: &Path,
    progress: &Progress,
) -> Result<(), DriverError> {
    let failed = |error: std::io::Error| DriverError::Data(format!("{}: {error}", file.display()));
    let refused = |what: String| DriverError::Data(format!("table {}{what}", table.table));
    let names: Vec<String> = rows.schema().fields().iter().map(|field| field.name().clone()).collect();
    let mut output = BufWriter::with_capacity(1 << 20, File::create(file).map_err(failed)?);
    let mut line = String::new();
    for batch in rows {
        progress.check()?;
        let (batch, start) = (batch.map_err(|error| DriverError::Data(error.to_string()))?, Instant::now());
        let column = |name: &String| Column::of(&batch, name).map_err(|error| refused(format!(": {error}")));
        let columns: Vec<(Form, Column)> = names
            .iter()
            .filter_map(|name| Some((table.form(name)?, column(name))))
            .map(|(form, column)| Ok((form, column?)))
            .collect::<Result<_, DriverError>>()?;
        for row in 0..batch.num_rows() {
            line.clear();
            for (place, (form, column)) in columns.iter().enumerate() {
                if place > 0 {
                    line.push(',');
                }
                append(*form, column.value(row), &mut line)
                    .map_err(|error| refused(format!(", column {}: {error}", names[place])))?;
            }
            line.push('\n');
            output.write_all(line.as_bytes()).map_err(failed)?;
        }
        progress.add_batch(batch.num_rows() as u64, start.elapsed());
    }
    output.flush().map_err(failed)
}

/// A value as COPY reads it. Doubles have as few digits as give the same double again.
fn append(form: Form, value: ValueRef, line: &mut String) -> Result<(), ConversionError> {
    let written = match (form, value) {
        (_, ValueRef::Null) => Ok(()),
        (_, ValueRef::Text("")) => return Err(ConversionError("an empty text, which COPY takes for null".to_owned())),
        (Form::Milliseconds, ValueRef::Timestamp(time_us)) => write!(line, "{}", milliseconds(time_us)?),
        (_, ValueRef::Timestamp(time_us)) => write!(line, "{time_us}"),
        (_, ValueRef::Boolean(value)) => write!(line, "{value}"),
        (_, ValueRef::Integer(value)) => write!(line, "{value}"),
        (_, ValueRef::Double(value)) => write!(line, "{value:?}"),
        (_, ValueRef::Text(text)) => write!(line, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        (_, ValueRef::Bytes(bytes)) => {
            line.push_str("0x");
            bytes.iter().try_for_each(|byte| write!(line, "{byte:02x}"))
        }
    };
    written.map_err(|error| ConversionError(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(form: Form, value: ValueRef) -> Result<String, ConversionError> {
        let mut line = String::new();
        append(form, value, &mut line)?;
        Ok(line)
    }

    #[test]
    fn values_are_as_copy_reads_them() {
        assert_eq!(cell(Form::Milliseconds, ValueRef::Timestamp(1_500_000)).unwrap(), "1500");
        assert_eq!(cell(Form::Microseconds, ValueRef::Timestamp(1_500_000)).unwrap(), "1500000");
        assert_eq!(cell(Form::Double, ValueRef::Double(0.1)).unwrap(), "0.1");
        assert_eq!(cell(Form::Double, ValueRef::Double(3.0)).unwrap(), "3.0");
        assert_eq!(cell(Form::Text, ValueRef::Text("a \"b\" \\")).unwrap(), r#""a \"b\" \\""#);
        assert_eq!(cell(Form::Blob, ValueRef::Bytes(&[0, 255])).unwrap(), "0x00ff");
        assert_eq!(cell(Form::Int, ValueRef::Null).unwrap(), "");
    }

    #[test]
    fn what_copy_cannot_tell_apart_is_refused() {
        assert!(cell(Form::Text, ValueRef::Text("")).unwrap_err().to_string().contains("takes for null"));
        assert!(cell(Form::Milliseconds, ValueRef::Timestamp(1)).unwrap_err().to_string().contains("milliseconds"));
    }
}
