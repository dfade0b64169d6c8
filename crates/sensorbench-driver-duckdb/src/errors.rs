//! What DuckDB's refusals mean.

use std::path::Path;

use sensorbench_driver::DriverError;

use crate::library::{Refusal, kind};

/// A statement that DuckDB refused, in its own words. After a fatal error the database takes no statement any more.
pub fn statement_error(refusal: Refusal) -> DriverError {
    match refusal.kind {
        kind::FATAL => DriverError::Connection(refusal.message),
        _ => DriverError::Statement(refusal.message),
    }
}

/// A file that cannot be opened.
pub fn connection_error(path: &Path, refusal: Refusal) -> DriverError {
    DriverError::Connection(format!("{}: {}", path.display(), refusal.message))
}

/// Whether two transactions met: DuckDB locks no row, and refuses the later one, which may be tried again. Of two that insert one key, it says
/// so only when the later one commits.
pub fn is_conflict(refusal: &Refusal) -> bool {
    refusal.kind == kind::TRANSACTION
        && ["Conflict", "conflict", "duplicate key"].iter().any(|word| refusal.message.contains(word))
}

/// Whether a key was there already. Of a statement that says what is done then, it came while the statement ran, from another session.
pub fn is_taken_key(refusal: &Refusal) -> bool {
    refusal.kind == kind::CONSTRAINT && refusal.message.contains("Duplicate key")
}
