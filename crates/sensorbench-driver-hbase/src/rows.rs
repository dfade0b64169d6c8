//! Rows of HBase as rows of an answer.

use sensorbench_dataset::encoding::{KeyPart, read_key};
use sensorbench_driver::{DriverError, Rows, Value, ValueRef};

use crate::bindings::{TColumn, TResult};
use crate::cells;
use crate::operation::{Reading, Source};
use crate::table::{FAMILY, Offset};

/// What no row of ours is like: somebody else wrote it.
fn malformed(reading: &Reading, problem: impl std::fmt::Display) -> DriverError {
    DriverError::Data(format!("table {}: {problem}; the row is none of sensorbench's", reading.table_name))
}

impl Reading {
    /// The columns that are asked for; None for all.
    pub fn columns(&self) -> Option<Vec<TColumn>> {
        let column = |source: &Source| match source {
            Source::Column(place) | Source::Number(place) => {
                let qualifier = self.table.columns[*place].name.as_bytes().to_vec();
                Some(TColumn { family: FAMILY.to_vec(), qualifier: Some(qualifier), timestamp: None })
            }
            _ => None,
        };
        self.narrow.then(|| self.sources.iter().filter_map(column).collect())
    }

    /// Appends what a row of HBase says.
    pub fn push(&self, parameters: &[Value], result: &TResult, rows: &mut Rows) -> Result<(), DriverError> {
        let Some(key) = &result.row else { return Ok(()) };
        let key = self.key_parts(key)?;
        match self.table.offset() {
            None => self.push_row(parameters, &key, result, rows),
            Some(offset) => self.push_cells(offset, parameters, &key, result, rows),
        }
    }

    /// The columns of a key, where one of them is wanted; none otherwise.
    fn key_parts<'a>(&self, mut key: &'a [u8]) -> Result<Vec<KeyPart<'a>>, DriverError> {
        if self.table.offset().is_none() && !self.sources.iter().any(|source| matches!(source, Source::Key(_))) {
            return Ok(Vec::new());
        }
        let parts = self.table.key.iter().map(|column| read_key(&mut key, column.value_type));
        parts.collect::<Result<_, _>>().map_err(|error| malformed(self, error))
    }

    #[inline]
    fn push_row(&self, parameters: &[Value], key: &[KeyPart], result: &TResult, rows: &mut Rows) -> Result<(), DriverError> {
        for source in &self.sources {
            match source {
                Source::Parameter(number) => rows.push(parameters[*number].as_ref()),
                Source::Key(place) => rows.push(key[*place].value()),
                Source::Time => unreachable!("a table that keeps no time apart has no such column"),
                Source::Column(place) => {
                    let column = &self.table.columns[*place];
                    match cells::find(result, &column.name) {
                        Some(bytes) => {
                            cells::push(column.value_type, bytes, rows).map_err(|error| malformed(self, error))?;
                        }
                        None => rows.push(ValueRef::Null),
                    }
                }
                Source::Number(place) => match cells::find(result, &self.table.columns[*place].name) {
                    Some(bytes) => rows.push(cells::number(bytes).map_err(|error| malformed(self, error))?),
                    None => rows.push(ValueRef::Null),
                },
            }
        }
        rows.end_row();
        Ok(())
    }

    /// A row for each cell. Versions come newest first; rows are in the order of their times.
    fn push_cells(
        &self,
        offset: &Offset,
        parameters: &[Value],
        key: &[KeyPart],
        result: &TResult,
        rows: &mut Rows,
    ) -> Result<(), DriverError> {
        let is_qualifier = self.table.qualifier.is_some();
        let since = self.table.key.iter().position(|column| column.name == offset.since).expect("was checked");
        let ValueRef::Timestamp(start_us) = key[since].value() else { unreachable!("was checked") };
        let value_type = self.table.columns[0].value_type;
        let cells = &result.column_values;
        for number in 0..cells.len() {
            let cell = &cells[if is_qualifier { number } else { cells.len() - 1 - number }];
            let unit = cells::unit_of(cell, is_qualifier).map_err(|problem| malformed(self, problem))?;
            for source in &self.sources {
                match source {
                    Source::Parameter(number) => rows.push(parameters[*number].as_ref()),
                    Source::Key(place) => rows.push(key[*place].value()),
                    Source::Time => rows.push(ValueRef::Timestamp(offset.time_us(start_us, unit))),
                    Source::Column(_) | Source::Number(_) => {
                        cells::push(value_type, &cell.value, rows).map_err(|error| malformed(self, error))?;
                    }
                }
            }
            rows.end_row();
        }
        Ok(())
    }
}
