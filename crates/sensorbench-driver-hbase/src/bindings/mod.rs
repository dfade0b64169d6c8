//! Calls of the Thrift 2 gateway. `hbase.rs` is generated from `thrift/hbase.thrift` and never edited; its first line says how.

#[allow(clippy::all, dead_code, missing_docs, unused)]
#[rustfmt::skip]
mod hbase;

pub use hbase::*;
