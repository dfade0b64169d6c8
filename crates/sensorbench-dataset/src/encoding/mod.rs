//! How rows become bytes: keys that sort like their values, records, and batches of readings.

mod batch;
mod key;
mod record;

pub use batch::{BatchCost, BatchEncoding, BatchError, batch_cost, decode_batch, encode_batch};
pub use key::{KeyPart, append_key, read_key};
pub use record::{append_record, read_record};

use thiserror::Error;

use crate::Type;

/// Bytes that are not the encoding of what was expected.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum EncodingError {
    /// The bytes end before the value does.
    #[error("the bytes end in the middle of a {}", .0.name())]
    Truncated(Type),
    /// A value that is not of the declared type.
    #[error("a {} was declared, but the value is {found}", .expected.name())]
    Mismatch {
        /// The declared type.
        expected: Type,
        /// What the value is.
        found: String,
    },
    /// Bytes that no value encodes to.
    #[error("the bytes are not an encoding of a {}", .0.name())]
    Malformed(Type),
}
