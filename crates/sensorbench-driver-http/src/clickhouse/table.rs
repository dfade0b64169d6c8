//! A table at the server, and how rows are written into it.

use bytes::Bytes;
use percent_encoding::utf8_percent_encode;
use sensorbench_driver::{ConversionError, Parameter, ValueRef};

use super::statement::name;
use super::types::ColumnType;
use crate::connection::{Call, ENCODED, Reply};
use crate::load::Form;

/// The format of written rows.
pub const FORMAT: &str = "RowBinary";
/// This many rows, or bytes, are written at a time: an insert is a part on the disk, and few large ones are what the engine is made for.
pub const FULL_BATCH: (u64, usize) = (200_000, 16 << 20);

/// A table with the types of the columns that are written, in their order.
#[derive(Clone, Debug)]
pub struct Table {
    path: Bytes,
    /// The statement that rows follow, without their format.
    insert: String,
    columns: Vec<(String, ColumnType)>,
}

impl Table {
    /// A table of a database, of whose columns the server says what they are, by name and type.
    pub fn of(database: &str, table: &str, columns: &[Parameter], found: &[(String, String)]) -> Result<Self, String> {
        if found.is_empty() {
            return Err("the statements of [create] create no such table".to_owned());
        }
        let known = |column: &Parameter| {
            let found_names = || found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
            let (_, type_name) = found
                .iter()
                .find(|(name, _)| *name == column.name)
                .ok_or_else(|| format!("the table has no column {}; it has {}", column.name, found_names()))?;
            let column_type = ColumnType::parse(type_name)
                .ok_or_else(|| format!("column {}: values of type {type_name} cannot be written", column.name))?;
            match column_type.why_not(column.value_type) {
                None => Ok((column.name.clone(), column_type)),
                Some(problem) => Err(format!("column {}: {problem}", column.name)),
            }
        };
        let columns: Vec<_> = columns.iter().map(known).collect::<Result<_, _>>()?;
        let names: Vec<_> = columns.iter().map(|(column, _)| name(column)).collect();
        let insert = format!("INSERT INTO {}.{} ({})", name(database), name(table), names.join(", "));
        let statement = format!("{insert} FORMAT {FORMAT}");
        let path = format!("/?database={database}&query={}", utf8_percent_encode(&statement, ENCODED));
        Ok(Self { path: path.into(), insert, columns })
    }

    /// The statement that writes rows in [`FORMAT`], without the format.
    pub fn insert(&self) -> &str {
        &self.insert
    }

    /// Names of the columns of a row, in order.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| name.as_str())
    }

    /// Appends a row whose column of each number has this value. Fails with what cannot be written.
    pub fn append<'v>(&self, data: &mut Vec<u8>, value: impl Fn(usize) -> ValueRef<'v>) -> Result<(), ConversionError> {
        let append = |(place, (name, column)): (usize, &(String, ColumnType))| {
            column.append(data, value(place)).map_err(|error| error.at("column", name))
        };
        self.columns.iter().enumerate().try_for_each(append)
    }
}

impl Form for Table {
    fn columns(&self) -> impl Iterator<Item = &str> {
        Table::columns(self)
    }

    fn append<'v>(&self, data: &mut Vec<u8>, value: impl Fn(usize) -> ValueRef<'v>) -> Result<(), ConversionError> {
        Table::append(self, data, value)
    }

    fn call(&self, data: Vec<u8>) -> Call {
        Call::post(self.path.clone(), data)
    }

    /// Each partition takes its rows of an insert or refuses them, and the server does not say which.
    fn kept_of_refused(&self, _: u64, _: &Reply) -> Option<u64> {
        None
    }

    fn full_batch(&self) -> (u64, usize) {
        FULL_BATCH
    }
}
