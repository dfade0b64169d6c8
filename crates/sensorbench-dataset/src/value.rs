//! The six types of value that datasets have, whatever a database calls them.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A canonical type. Every stored value is one of these or null.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Type {
    /// True or false.
    Boolean,
    /// A signed 64-bit integer.
    Integer,
    /// A 64-bit floating-point number.
    Double,
    /// Microseconds since 1970-01-01 00:00 UTC.
    Timestamp,
    /// Unicode text.
    Text,
    /// Any bytes.
    Bytes,
}

impl Type {
    /// The word for this type in files and messages.
    pub fn name(self) -> &'static str {
        match self {
            Type::Boolean => "boolean",
            Type::Integer => "integer",
            Type::Double => "double",
            Type::Timestamp => "timestamp",
            Type::Text => "text",
            Type::Bytes => "bytes",
        }
    }
}

/// A value that is kept: a parameter of an operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// No value.
    #[default]
    Null,
    /// See [`Type::Boolean`].
    Boolean(bool),
    /// See [`Type::Integer`].
    Integer(i64),
    /// See [`Type::Double`].
    Double(f64),
    /// See [`Type::Timestamp`].
    Timestamp(i64),
    /// See [`Type::Text`].
    Text(Arc<str>),
    /// See [`Type::Bytes`].
    Bytes(Arc<[u8]>),
}

/// A value that is looked at where it lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueRef<'a> {
    /// No value.
    Null,
    /// See [`Type::Boolean`].
    Boolean(bool),
    /// See [`Type::Integer`].
    Integer(i64),
    /// See [`Type::Double`].
    Double(f64),
    /// See [`Type::Timestamp`].
    Timestamp(i64),
    /// See [`Type::Text`].
    Text(&'a str),
    /// See [`Type::Bytes`].
    Bytes(&'a [u8]),
}

/// The value as messages show it.
impl fmt::Display for ValueRef<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            ValueRef::Null => formatter.write_str("null"),
            ValueRef::Boolean(value) => write!(formatter, "{value}"),
            ValueRef::Integer(value) => write!(formatter, "{value}"),
            ValueRef::Double(value) => write!(formatter, "{value}"),
            ValueRef::Timestamp(value) => write!(formatter, "{value} µs since 1970"),
            ValueRef::Text(value) => write!(formatter, "\"{value}\""),
            ValueRef::Bytes(value) => write!(formatter, "{} bytes", value.len()),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        self.as_ref().fmt(formatter)
    }
}

impl Value {
    /// The value where it lies.
    #[inline]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Null => ValueRef::Null,
            Value::Boolean(value) => ValueRef::Boolean(*value),
            Value::Integer(value) => ValueRef::Integer(*value),
            Value::Double(value) => ValueRef::Double(*value),
            Value::Timestamp(value) => ValueRef::Timestamp(*value),
            Value::Text(value) => ValueRef::Text(value),
            Value::Bytes(value) => ValueRef::Bytes(value),
        }
    }
}

impl ValueRef<'_> {
    /// A copy that is kept.
    pub fn to_value(self) -> Value {
        match self {
            ValueRef::Null => Value::Null,
            ValueRef::Boolean(value) => Value::Boolean(value),
            ValueRef::Integer(value) => Value::Integer(value),
            ValueRef::Double(value) => Value::Double(value),
            ValueRef::Timestamp(value) => Value::Timestamp(value),
            ValueRef::Text(value) => Value::Text(value.into()),
            ValueRef::Bytes(value) => Value::Bytes(value.into()),
        }
    }

    /// The type of the value, or None for null.
    pub fn value_type(self) -> Option<Type> {
        Some(match self {
            ValueRef::Null => return None,
            ValueRef::Boolean(_) => Type::Boolean,
            ValueRef::Integer(_) => Type::Integer,
            ValueRef::Double(_) => Type::Double,
            ValueRef::Timestamp(_) => Type::Timestamp,
            ValueRef::Text(_) => Type::Text,
            ValueRef::Bytes(_) => Type::Bytes,
        })
    }
}
