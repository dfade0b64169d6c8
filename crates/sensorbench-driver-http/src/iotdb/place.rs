//! Where rows are written: a table, or the series below a path.

use sensorbench_driver::{ConversionError, ValueRef};

use super::answer;
use super::table::Table;
use super::tree::Series;
use crate::connection::{Call, Reply};
use crate::load::Form;

/// A table of the table model, or what stands for one in the tree model.
#[derive(Clone, Debug)]
pub enum Place {
    Table(Table),
    Series(Series),
}

impl Form for Place {
    fn columns(&self) -> impl Iterator<Item = &str> {
        let columns: Box<dyn Iterator<Item = &str>> = match self {
            Self::Table(table) => Box::new(table.columns()),
            Self::Series(series) => Box::new(series.columns()),
        };
        columns
    }

    fn append<'v>(&self, data: &mut Vec<u8>, value: impl Fn(usize) -> ValueRef<'v>) -> Result<(), ConversionError> {
        match self {
            Self::Table(table) => table.append(data, value),
            Self::Series(series) => series.append(data, value),
        }
    }

    fn call(&self, data: Vec<u8>) -> Call {
        match self {
            Self::Table(table) => table.call(data),
            Self::Series(series) => series.call(data),
        }
    }

    fn refusal(&self, reply: &Reply) -> Option<String> {
        answer::refusal(reply)
    }

    /// A code is for the whole request, of which the server may have written columns, devices and partitions.
    fn kept_of_refused(&self, _: u64, _: &Reply) -> Option<u64> {
        None
    }

    fn full_batch(&self) -> (u64, usize) {
        FULL_BATCH
    }
}

/// The server holds a request as objects: more rows cost it more than they save.
const FULL_BATCH: (u64, usize) = (10_000, 4 << 20);
