//! Calls of the Thrift 2 gateway. `hbase.rs` is generated of `thrift/hbase.thrift`, which says how, and is never edited.

#[allow(clippy::all, dead_code, missing_docs, unused)]
#[rustfmt::skip]
mod hbase;

pub use hbase::*;
