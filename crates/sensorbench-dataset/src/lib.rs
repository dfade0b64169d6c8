//! What is measured with: typed values, generators of rows, and encodings of rows as bytes.
//!
//! Generators are functions of a seed alone: with a pure-Rust mathematics library they give the same bytes on every
//! machine and with any number of threads.

mod batching;
mod column;
pub mod encoding;
pub mod generator;
mod time_bucket;
mod value;

pub use batching::{BatchedRows, Batching, array_of, arrow_type};
pub use column::{Column, ColumnError, canonical_type};
pub use time_bucket::Every;
pub use value::{Type, Value, ValueRef};
