//! Values in Arrow columns of the canonical types.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, BinaryArray, BooleanArray, PrimitiveArray, RecordBatch, StringArray};
use arrow_schema::{DataType, TimeUnit};
use thiserror::Error;

use crate::{Type, ValueRef};

/// A column of an Arrow batch, ready to be read row by row.
#[derive(Clone, Copy, Debug)]
pub enum Column<'a> {
    /// See [`Type::Boolean`].
    Boolean(&'a BooleanArray),
    /// See [`Type::Integer`].
    Integer(&'a PrimitiveArray<Int64Type>),
    /// See [`Type::Double`].
    Double(&'a PrimitiveArray<Float64Type>),
    /// See [`Type::Timestamp`].
    Timestamp(&'a PrimitiveArray<TimestampMicrosecondType>),
    /// See [`Type::Text`].
    Text(&'a StringArray),
    /// See [`Type::Bytes`].
    Bytes(&'a BinaryArray),
}

/// A batch whose columns are not what they should be.
#[derive(Debug, Error)]
pub enum ColumnError {
    /// A column whose Arrow type is not the one for a canonical type.
    #[error("column {name} has the Arrow type {found}, which is none of Boolean, Int64, Float64, Timestamp(µs), Utf8, Binary")]
    Type {
        /// Name of the column.
        name: String,
        /// Its Arrow type.
        found: DataType,
    },
    /// A column that is missing.
    #[error("there is no column {name}; the columns are {}", .found.join(", "))]
    Missing {
        /// Name of the column.
        name: String,
        /// The columns that are there.
        found: Vec<String>,
    },
}

/// The canonical type of an Arrow type, or None when it has none.
pub fn canonical_type(data_type: &DataType) -> Option<Type> {
    Some(match data_type {
        DataType::Boolean => Type::Boolean,
        DataType::Int64 => Type::Integer,
        DataType::Float64 => Type::Double,
        DataType::Timestamp(TimeUnit::Microsecond, _) => Type::Timestamp,
        DataType::Utf8 => Type::Text,
        DataType::Binary => Type::Bytes,
        _ => return None,
    })
}

impl<'a> Column<'a> {
    /// The column called `name`.
    pub fn of(batch: &'a RecordBatch, name: &str) -> Result<Self, ColumnError> {
        let array = batch.column_by_name(name).ok_or_else(|| ColumnError::Missing {
            name: name.to_owned(),
            found: batch.schema().fields().iter().map(|field| field.name().clone()).collect(),
        })?;
        let refused = || ColumnError::Type { name: name.to_owned(), found: array.data_type().clone() };
        Ok(match canonical_type(array.data_type()).ok_or_else(refused)? {
            Type::Boolean => Column::Boolean(array.as_boolean()),
            Type::Integer => Column::Integer(array.as_primitive()),
            Type::Double => Column::Double(array.as_primitive()),
            Type::Timestamp => Column::Timestamp(array.as_primitive()),
            Type::Text => Column::Text(array.as_string()),
            Type::Bytes => Column::Bytes(array.as_binary()),
        })
    }

    /// The value in a row.
    #[inline]
    pub fn value(&self, row: usize) -> ValueRef<'a> {
        if self.is_null(row) {
            return ValueRef::Null;
        }
        match self {
            Column::Boolean(array) => ValueRef::Boolean(array.value(row)),
            Column::Integer(array) => ValueRef::Integer(array.value(row)),
            Column::Double(array) => ValueRef::Double(array.value(row)),
            Column::Timestamp(array) => ValueRef::Timestamp(array.value(row)),
            Column::Text(array) => ValueRef::Text(array.value(row)),
            Column::Bytes(array) => ValueRef::Bytes(array.value(row)),
        }
    }

    #[inline]
    fn is_null(&self, row: usize) -> bool {
        match self {
            Column::Boolean(array) => array.is_null(row),
            Column::Integer(array) => array.is_null(row),
            Column::Double(array) => array.is_null(row),
            Column::Timestamp(array) => array.is_null(row),
            Column::Text(array) => array.is_null(row),
            Column::Bytes(array) => array.is_null(row),
        }
    }
}
