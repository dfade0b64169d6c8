//! A question that a connection has prepared: bound, executed and drained as often as it is asked.

use std::sync::Arc;

use sensorbench_driver::{DriverError, Rows, ValueRef};

use crate::link::Link;
use crate::odbc::{Buffer, Connection, Described, Diagnostics, Form, Kind, Moment, Statement, Text, Watched};
use crate::operation_statement::OperationStatement;
use crate::values::{canonical, form_of, input, of_text, requested_form, width};

/// Characters or bytes that a column is bound for; longer ones are read piece by piece.
const MAX_BOUND: usize = 4000;
/// Bytes that the cells of one fetch take at most.
const BYTES_A_FETCH: usize = 4 << 20;
/// Room that parameters of variable length have at first.
const FIRST_WIDTH: usize = 64;

/// A prepared question.
pub struct Prepared {
    statement: Statement,
    operation_statement: OperationStatement,
    /// Which columns may be longer than can be bound. Where there is one, all are read one by one; else this is empty.
    long: Vec<bool>,
    scratch: String,
}

impl Prepared {
    /// Prepares a question.
    pub fn of(link: &Link, connection: &Arc<Connection>, operation_statement: OperationStatement) -> Result<Self, DriverError> {
        let error_of = |diagnostics: Diagnostics| link.error(connection, &diagnostics);
        let prepare = || {
            let mut statement = connection.statement().map_err(error_of)?;
            statement.prepare(&operation_statement.text).map_err(error_of)?;
            bind_parameters(&mut statement, &operation_statement, link, |_| FIRST_WIDTH).map_err(error_of)?;
            let described = statement.described().map_err(error_of)?;
            operation_statement.check_columns(described.len())?;
            let long = bind_columns(&mut statement, &operation_statement, &described, link)?;
            Ok((statement, long))
        };
        let (statement, long) = prepare().map_err(|error| operation_statement.with_place(error))?;
        Ok(Self { statement, operation_statement, long, scratch: String::new() })
    }

    /// Asks it with these values of its parameters, and appends the answer to the rows.
    pub fn ask<'a>(
        &mut self,
        link: &Link,
        value: impl Fn(usize) -> ValueRef<'a>,
        rows: &mut Rows,
        watched: Option<Watched>,
    ) -> Result<(), DriverError> {
        self.bind(link, &value)?;
        let outcome = self.execute(link, rows, watched);
        // The statement must be usable after any error; one that cannot be closed fails when it is executed again.
        let closed = self.statement.close();
        outcome?;
        closed.map_err(|diagnostics| self.error_of(link, diagnostics))
    }

    fn bind<'a>(&mut self, link: &Link, value: &impl Fn(usize) -> ValueRef<'a>) -> Result<(), DriverError> {
        let Self { statement, operation_statement, .. } = self;
        let forms = (0..operation_statement.places.len()).map(|number| statement.parameter(number).form());
        let is_too_long = |(number, place): (usize, &usize)| {
            let buffer = statement.parameter(number);
            buffer.form().is_variable() && width(value(*place)) > buffer.width()
        };
        if link.dbms().binds_each_row(forms) || operation_statement.places.iter().enumerate().any(is_too_long) {
            let widened = |place: usize| width(value(place)).max(FIRST_WIDTH).next_power_of_two();
            let bound = bind_parameters(statement, operation_statement, link, widened);
            bound.map_err(|diagnostics| link.error(statement.connection(), &diagnostics))?;
        }
        for (number, place) in operation_statement.places.iter().enumerate() {
            let form = statement.parameter(number).form();
            let input = input(value(*place), form).map_err(|refused| {
                DriverError::Data(refused.at("parameter", &operation_statement.parameters[*place].name).to_string())
            })?;
            statement.set(number, 0, input);
        }
        Ok(())
    }

    fn execute(&mut self, link: &Link, rows: &mut Rows, watched: Option<Watched>) -> Result<(), DriverError> {
        self.statement.execute(watched).map_err(|diagnostics| self.error_of(link, diagnostics))?;
        if self.operation_statement.columns.is_empty() {
            return Ok(());
        }
        let watched_fetch = watched.filter(|_| !link.dbms().answers_at_once());
        loop {
            let fetched = self.statement.fetch(watched_fetch).map_err(|diagnostics| self.error_of(link, diagnostics))?;
            if fetched == 0 {
                return Ok(());
            }
            if self.long.is_empty() {
                self.take_rows(fetched, rows)?
            } else {
                self.read_row(link, rows)?
            }
            if let Some((_, deadline)) = watched {
                deadline.check()?;
            }
        }
    }

    /// Takes the rows that were fetched out of the bound buffers.
    fn take_rows(&mut self, fetched: usize, rows: &mut Rows) -> Result<(), DriverError> {
        for row in 0..fetched {
            for (number, column) in self.operation_statement.columns.iter().enumerate() {
                rows.push(canonical(self.statement.column(number).cell(row), column, &mut self.scratch)?);
            }
            rows.end_row();
        }
        Ok(())
    }

    /// Reads the one row that was fetched, column by column.
    fn read_row(&mut self, link: &Link, rows: &mut Rows) -> Result<(), DriverError> {
        for number in 0..self.long.len() {
            let read = if self.long[number] { self.read_long(number, rows) } else { self.read_short(number, rows) };
            read.map_err(|diagnostics| self.error_of(link, diagnostics))??;
        }
        rows.end_row();
        Ok(())
    }

    fn read_short(&mut self, number: usize, rows: &mut Rows) -> Result<Result<(), DriverError>, Diagnostics> {
        self.statement.get(number)?;
        let (cell, column) = (self.statement.column(number).cell(0), &self.operation_statement.columns[number]);
        Ok(canonical(cell, column, &mut self.scratch).map(|value| rows.push(value)))
    }

    fn read_long(&mut self, number: usize, rows: &mut Rows) -> Result<Result<(), DriverError>, Diagnostics> {
        if self.statement.column(number).form() == Form::Bytes {
            let bytes = self.statement.get_bytes(number)?;
            rows.push(bytes.as_deref().map_or(ValueRef::Null, ValueRef::Bytes));
            return Ok(Ok(()));
        }
        if !self.statement.get_text(number, &mut self.scratch)? {
            rows.push(ValueRef::Null);
            return Ok(Ok(()));
        }
        Ok(of_text(&self.scratch, &self.operation_statement.columns[number]).map(|value| rows.push(value)))
    }

    fn error_of(&self, link: &Link, diagnostics: Diagnostics) -> DriverError {
        link.error(self.statement.connection(), &diagnostics)
    }
}

fn bind_parameters(
    statement: &mut Statement,
    operation_statement: &OperationStatement,
    link: &Link,
    width: impl Fn(usize) -> usize,
) -> Result<(), Diagnostics> {
    let buffer = |place: &usize| {
        let form = form_of(operation_statement.parameters[*place].value_type, operation_statement.timestamps, link.target.text);
        Buffer::new(form, 1, width(*place))
    };
    statement.bind_parameters(operation_statement.places.iter().map(buffer).collect())
}

/// Binds as many rows as fit; else returns which columns must be read piece by piece.
fn bind_columns(
    statement: &mut Statement,
    operation_statement: &OperationStatement,
    described: &[Described],
    link: &Link,
) -> Result<Vec<bool>, DriverError> {
    let mut forms = Vec::with_capacity(described.len());
    for (column, described) in operation_statement.columns.iter().zip(described) {
        let form = requested_form(column, described, link.target.text).map_err(DriverError::Statement)?;
        if let Some(reason) = link.dbms().inexact(column).filter(|_| form == Form::Double) {
            return Err(DriverError::Statement(reason));
        }
        forms.push((form, described));
    }
    let may_be_long = |described: &Described| is_long(described) || !link.dbms().keeps_to_sizes();
    let long: Vec<bool> = forms.iter().map(|(form, described)| form.is_variable() && may_be_long(described)).collect();
    let row_bytes: usize = forms.iter().map(|(form, described)| cell_bytes(*form, described)).sum();
    let is_any_long = long.contains(&true);
    let rows = if is_any_long { 1 } else { link.target.rows.min(BYTES_A_FETCH / row_bytes.max(1)).max(1) };
    let buffers = forms.iter().map(|(form, described)| Buffer::new(*form, rows, units(*form, described))).collect();
    let bound = if is_any_long { statement.read_columns(buffers) } else { statement.bind_columns(buffers, rows) };
    bound.map_err(|diagnostics| link.error(statement.connection(), &diagnostics))?;
    Ok(if is_any_long { long } else { Vec::new() })
}

/// Whether values may be longer than a buffer should be wide.
fn is_long(described: &Described) -> bool {
    let is_long_kind = matches!(described.kind, Kind::Text { is_long: true } | Kind::Bytes { is_long: true });
    is_long_kind || !(1..=MAX_BOUND).contains(&described.size)
}

/// Units of its encoding, or bytes, that a value takes at most: drivers report the size in characters.
fn units(form: Form, described: &Described) -> usize {
    let units_a_character = match form {
        Form::Text(Text::Wide) => 2,
        Form::Text(Text::Narrow) => 4,
        _ => 1,
    };
    described.size.min(MAX_BOUND) * units_a_character
}

fn cell_bytes(form: Form, described: &Described) -> usize {
    let bytes = match form {
        Form::Text(Text::Wide) => 2 * units(form, described),
        Form::Text(Text::Narrow) | Form::Bytes => units(form, described),
        Form::Bit | Form::Integer | Form::Double | Form::Moment => size_of::<Moment>(),
    };
    bytes + size_of::<isize>()
}
