//! The marker's table, and names between quotes.

/// The table that holds the marker.
pub const MARKER_TABLE: &str = "sensorbench";
/// Its comment, which nobody else's table has.
pub const MARKER_COMMENT: &str = "sensorbench made this database and may drop it";

/// A name between quotes, as MySQL has it.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted() {
        assert_eq!(quoted("a`b"), "`a``b`");
    }
}
