//! Names between quotes, and places in schema files.

use sensorbench_driver::{DriverError, SchemaError};

/// A name between quotes, as MySQL has it.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// What a statement is refused for is told with its place in the schema file; a lost connection has no place there.
pub fn with_place(path: String, error: DriverError) -> DriverError {
    match error {
        DriverError::Statement(message) => SchemaError::at(path, message).into(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted() {
        assert_eq!(quoted("a`b"), "`a``b`");
    }
}
