//! The columns of a table that is filled, and the forms in which their values are written.

use arrow_array::RecordBatch;
use sensorbench_dataset::Column;
use sensorbench_driver::{DriverError, Parameter, SchemaError, Type, ValueRef};

use crate::control::Control;
use crate::namespace::with_place;
use crate::odbc::{Described, Form, Kind};
use crate::values::{Timestamps, form_of};

/// A table of the schema.
#[derive(Debug)]
pub struct Layout {
    /// What the schema file calls it.
    pub name: String,
    /// What the database calls it.
    pub table: String,
    pub columns: Vec<(Parameter, Form)>,
}

impl Layout {
    /// Asks the database what columns the table has.
    pub fn of(name: &str, columns: &[Parameter], control: &Control) -> Result<Self, DriverError> {
        let path = format!("fill.{name}");
        let table = control.link.names.table(name);
        let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
        let described = describe(&format!("SELECT {} FROM {table} WHERE 1 = 0", names.join(", ")), control);
        let described = described.map_err(|error| with_place(path.clone(), error))?;
        let text = control.link.target.text;
        let form = |(column, described): (&Parameter, &Described)| {
            let timestamps = timestamps(column, described)
                .map_err(|reason| SchemaError::at(path.clone(), format!("column {}: {reason}", column.name)))?;
            Ok((column.clone(), form_of(column.value_type, timestamps, text)))
        };
        let columns = columns.iter().zip(&described).map(form).collect::<Result<_, SchemaError>>()?;
        Ok(Self { name: name.to_owned(), table, columns })
    }

    /// The statement that writes a row.
    pub fn insert(&self) -> String {
        let names: Vec<_> = self.columns.iter().map(|(column, _)| column.name.as_str()).collect();
        let places = vec!["?"; names.len()];
        format!("INSERT INTO {} ({}) VALUES ({})", self.table, names.join(", "), places.join(", "))
    }
}

fn describe(operation_statement: &str, control: &Control) -> Result<Vec<Described>, DriverError> {
    let described = || {
        let mut statement = control.connection.statement()?;
        statement.prepare(operation_statement)?;
        statement.described()
    };
    described().map_err(|diagnostics| control.link.error(&control.connection, &diagnostics))
}

/// How times are written into this column, or why they cannot be.
fn timestamps(column: &Parameter, described: &Described) -> Result<Timestamps, &'static str> {
    let is_whole = described.kind == Kind::Integer || (described.kind == Kind::Decimal && described.digits <= 0);
    match (column.value_type, described.kind) {
        (Type::Timestamp, Kind::Timestamp) => Ok(Timestamps::Datetime),
        (Type::Timestamp, _) if is_whole => Ok(Timestamps::Microseconds),
        (Type::Timestamp, _) => Err("a timestamp is stored in a TIMESTAMP, or as microseconds in a BIGINT"),
        (Type::Double, Kind::Real | Kind::Decimal | Kind::Integer) => {
            Err("a double is stored exactly in a DOUBLE PRECISION alone")
        }
        _ => Ok(Timestamps::Datetime),
    }
}

/// The columns of a batch in the order of a layout.
pub struct Values<'a> {
    pub columns: Vec<Column<'a>>,
    pub rows: usize,
}

impl<'a> Values<'a> {
    pub fn of(batch: &'a RecordBatch, layout: &Layout) -> Result<Self, DriverError> {
        let found = |(column, _): &(Parameter, _)| Column::of(batch, &column.name);
        let columns: Result<Vec<_>, _> = layout.columns.iter().map(found).collect();
        let columns = columns.map_err(|error| DriverError::Data(format!("table {}: {error}", layout.name)))?;
        Ok(Self { columns, rows: batch.num_rows() })
    }

    /// The values of a row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = ValueRef<'a>> {
        self.columns.iter().map(move |column| column.value(row))
    }
}
