//! Names of tables: `{log}` in a schema file is the table `log` of the target's namespace.

use std::collections::BTreeSet;

use sensorbench_driver::place_tables;

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
        let mut tables = BTreeSet::new();
        let text = place_tables(statement, |name| {
            tables.insert(name.to_owned());
            self.table(name)
        });
        Placed { text, tables }
    }
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
}
