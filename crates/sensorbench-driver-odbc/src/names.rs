//! Names of tables: `{log}` in a schema file is the table `log` of the target's namespace.

use std::collections::BTreeSet;

/// What the mark table is called in a namespace.
pub const MARK: &str = "mark";

/// The tables of a namespace. Names are never quoted, so that each database may write them in its own case.
#[derive(Clone, Debug)]
pub struct Names {
    namespace: String,
}

/// A statement for the database.
#[derive(Debug, PartialEq)]
pub struct Placed {
    /// Its text.
    pub text: String,
    /// The tables in it, as the schema file calls them.
    pub tables: BTreeSet<String>,
}

impl Names {
    pub fn of(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned() }
    }

    /// The name that a table of the schema has in the database.
    pub fn table(&self, name: &str) -> String {
        format!("{}_{name}", self.namespace)
    }

    /// The namespace itself.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Writes the names of tables into a statement, wherever they stand.
    pub fn place(&self, statement: &str) -> Placed {
        let mut placed = Placed { text: String::with_capacity(statement.len()), tables: BTreeSet::new() };
        let mut rest = statement;
        while let Some((before, after)) = rest.split_once('{') {
            placed.text.push_str(before);
            rest = after;
            match after.split_once('}').filter(|(name, _)| is_word(name)) {
                Some((name, after)) => {
                    placed.text.push_str(&self.table(name));
                    placed.tables.insert(name.to_owned());
                    rest = after;
                }
                None => placed.text.push('{'),
            }
        }
        placed.text.push_str(rest);
        placed
    }
}

/// Whether this can be a name without quotes, whatever the database.
pub fn is_word(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.len() <= 48
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_braces_are_tables_of_the_namespace() {
        let placed = Names::of("mine").place("CREATE INDEX {log}_value ON {log} (value), {machines} {fn now()} {ts '1'} {} {");
        assert_eq!(placed.text, "CREATE INDEX mine_log_value ON mine_log (value), mine_machines {fn now()} {ts '1'} {} {");
        assert_eq!(placed.tables, BTreeSet::from(["log".to_owned(), "machines".to_owned()]));
    }

    #[test]
    fn only_words_are_names() {
        assert!(is_word("log") && is_word("log_2"));
        assert!(!is_word("") && !is_word("2log") && !is_word("a b") && !is_word("a\"b") && !is_word(&"a".repeat(49)));
    }
}
