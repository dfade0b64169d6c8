//! Values that a database's own form cannot hold.

use std::fmt;

/// A value that does not fit into the form in which it is to be written, or bytes that are not a value of it.
#[derive(Debug, PartialEq)]
pub struct ConversionError(pub String);

impl fmt::Display for ConversionError {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for ConversionError {}

impl ConversionError {
    /// The same with where the value was to go or came from.
    pub fn at(self, place: &str, name: &str) -> Self {
        Self(format!("{place} {name}: {}", self.0))
    }
}

/// The bytes of a value whose length is known.
#[inline]
pub fn fixed<const LENGTH: usize>(bytes: &[u8]) -> Result<[u8; LENGTH], ConversionError> {
    bytes.try_into().map_err(|_| ConversionError(format!("{} bytes came where {LENGTH} were expected", bytes.len())))
}

/// An integer for a narrower type of the server, which is called `name` there.
#[inline]
pub fn narrowed<T: TryFrom<i64>>(value: i64, name: &str) -> Result<T, ConversionError> {
    T::try_from(value).map_err(|_| ConversionError(format!("{value} does not fit into {name}; declare it as bigint")))
}
