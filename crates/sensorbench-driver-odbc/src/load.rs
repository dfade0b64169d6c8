//! Loading: rows in arrays of parameters, in transactions, over one connection.

use std::ops::Range;
use std::time::Instant;

use arrow_array::RecordBatchReader;
use sensorbench_dataset::Column;
use sensorbench_driver::{DriverError, Parameter, Progress, ValueRef};

use crate::control::Control;
use crate::layout::{Layout, Values};
use crate::odbc::{Buffer, Diagnostics, Statement};
use crate::round_trip::RoundTripCheck;
use crate::values::{input, width};

/// This many rows, and the rest of their batch, go into one transaction.
const ROWS_A_TRANSACTION: u64 = 100_000;

/// Bytes that the cells of one array take at most; what is longer goes row by row.
const BYTES_AN_ARRAY: usize = 8 << 20;

/// Loads rows into a table. What a driver or a database makes of them is read back, one row of every kind.
pub fn load(
    control: &Control,
    name: &str,
    columns: &[Parameter],
    rows: Box<dyn RecordBatchReader + Send>,
    progress: &Progress,
) -> Result<(), DriverError> {
    let layout = Layout::of(name, columns, control)?;
    let error_of = |diagnostics: Diagnostics| control.link.error(&control.connection, &diagnostics);
    control.in_transaction(|| {
        let mut insert = Insert::of(&layout, control)?;
        let mut round_trip = RoundTripCheck::of(&layout);
        let mut uncommitted = 0;
        for batch in rows {
            progress.check()?;
            let batch = batch.map_err(|error| DriverError::Data(error.to_string()))?;
            let (rows_of_batch, start) = (batch.num_rows() as u64, Instant::now());
            let values = Values::of(&batch, &layout)?;
            insert.execute(&values)?;
            round_trip.check(&values, control)?;
            uncommitted += rows_of_batch;
            if uncommitted >= ROWS_A_TRANSACTION {
                control.connection.commit().map_err(error_of)?;
                uncommitted = 0;
            }
            progress.add_batch(rows_of_batch, start.elapsed());
        }
        Ok(())
    })
}

/// A prepared INSERT with room for many rows.
struct Insert<'a> {
    control: &'a Control<'a>,
    layout: &'a Layout,
    statement: Statement,
    /// How many rows are executed at a time, as far as is known.
    rows: usize,
    binds_each_row: bool,
}

impl<'a> Insert<'a> {
    fn of(layout: &'a Layout, control: &'a Control<'a>) -> Result<Self, DriverError> {
        let insert = || {
            let mut statement = control.connection.statement()?;
            statement.prepare(&layout.insert())?;
            let binds_each_row = control.link.dbms().binds_each_row(layout.columns.iter().map(|(_, form)| *form));
            let rows = if binds_each_row { 1 } else { control.link.target.rows };
            Ok(Self { control, layout, statement, rows, binds_each_row })
        };
        insert().map_err(|diagnostics| control.link.error(&control.connection, &diagnostics))
    }

    fn execute(&mut self, values: &Values) -> Result<(), DriverError> {
        let mut next = 0;
        while next < values.rows {
            let wanted = next..(next + self.rows).min(values.rows);
            next += self.execute_some(values, wanted)?;
        }
        Ok(())
    }

    /// Writes as many of these rows as fit into one array; returns how many.
    fn execute_some(&mut self, values: &Values, wanted: Range<usize>) -> Result<usize, DriverError> {
        let (rows, widths) = self.fitting(values, wanted);
        let made = self.make_room(rows.len(), &widths).and_then(|()| self.statement.set_parameter_rows(rows.len()));
        let is_taken = made.map_err(|diagnostics| self.refused(&diagnostics, values, &rows))?;
        if !is_taken {
            self.rows = 1;
            return Ok(0);
        }
        self.write(values, rows.clone())?;
        let taken = self.statement.execute(None).map_err(|diagnostics| self.refused(&diagnostics, values, &rows))?;
        if taken.is_some_and(|taken| taken < rows.len()) {
            // It knows no arrays, and does not say so.
            self.rows = 1;
        }
        Ok(taken.unwrap_or(rows.len()).min(rows.len()))
    }

    /// The first of these rows, as many as have room in one array, and how long their longest values are.
    fn fitting(&self, values: &Values, wanted: Range<usize>) -> (Range<usize>, Vec<usize>) {
        let mut rows = wanted;
        loop {
            let longest = |column: &Column| rows.clone().map(|row| width(column.value(row))).max().unwrap_or(0);
            let widths: Vec<usize> = values.columns.iter().map(longest).collect();
            // Text may take two bytes for each of its own.
            if rows.len() == 1 || 2 * widths.iter().sum::<usize>() * rows.len() <= BYTES_AN_ARRAY {
                return (rows, widths);
            }
            rows.end = rows.start + rows.len() / 2;
        }
    }

    /// Binds larger buffers where those that are bound are too small.
    fn make_room(&mut self, rows: usize, widths: &[usize]) -> Result<(), Diagnostics> {
        let has_room = |(number, width): (usize, &usize)| {
            let buffer = self.statement.parameter(number);
            buffer.rows() >= rows && (!buffer.form().is_variable() || buffer.width() >= *width)
        };
        let is_bound = self.statement.parameter_count() > 0;
        if is_bound && !self.binds_each_row && widths.iter().enumerate().all(has_room) {
            return Ok(());
        }
        let buffer = |((_, form), width): (&(Parameter, _), &usize)| Buffer::new(*form, rows, width.next_power_of_two());
        let buffers = self.layout.columns.iter().zip(widths).map(buffer).collect();
        self.statement.bind_parameters(buffers)
    }

    fn write(&mut self, values: &Values, rows: Range<usize>) -> Result<(), DriverError> {
        for (number, ((column, form), array)) in self.layout.columns.iter().zip(&values.columns).enumerate() {
            for (place, row) in rows.clone().enumerate() {
                let input = input(array.value(row), *form).map_err(|refused| {
                    DriverError::Data(format!("table {}, {}", self.layout.name, refused.at("column", &column.name)))
                })?;
                self.statement.set(number, place, input);
            }
        }
        Ok(())
    }

    fn refused(&self, diagnostics: &Diagnostics, values: &Values, rows: &Range<usize>) -> DriverError {
        let is_odd = |value| matches!(value, ValueRef::Double(value) if !value.is_finite());
        let advice = if rows.clone().any(|row| values.row(row).any(is_odd)) {
            "; among its doubles are NaN or infinity, which many databases do not store: leave such rows out in the fill query"
        } else {
            ""
        };
        match self.control.link.error(&self.control.connection, diagnostics) {
            DriverError::Statement(reason) => DriverError::Data(format!("table {}: {reason}{advice}", self.layout.name)),
            other => other,
        }
    }
}
