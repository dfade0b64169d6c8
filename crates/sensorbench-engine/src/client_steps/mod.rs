//! What the client does besides the statement, as schema files declare it: derived parameters, one statement for each time bucket
//! of time, each shard or each row of another answer, looking up first what there is, telling others what was written, encoding and
//! decoding of byte-array batches, reduction of rows to one value or to those that differ. It counts as service time, because a
//! user of that schema waits for it.
//!
//! `declared.rs` and `parts.rs` have what a schema file may say, `check.rs` what is refused of it, `statements.rs` which statements
//! follow, and `answer.rs` what becomes of their rows.

mod answer;
mod check;
mod declared;
#[cfg(test)]
mod examples;
mod parts;
mod statements;

pub use declared::{Also, Append, ClientSteps, Decode, Derive, Encode, First, Reduce, Tables};
pub use parts::{ForEach, Listed, ListedRows, Parts};
pub(crate) use statements::StatementNumbers;
pub use statements::Statements;
