//! What can be wrong with a batch.

use thiserror::Error;

/// Readings that cannot be encoded, or bytes that cannot be decoded.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum BatchError {
    /// Times without values, or values without times.
    #[error("a reading has a time and a value, but there are {times} times and {values} values")]
    Uneven {
        /// Number of times.
        times: usize,
        /// Number of values.
        values: usize,
    },
    /// Bytes that are not a batch.
    #[error("the bytes are not a batch of readings in this encoding")]
    Malformed,
}
