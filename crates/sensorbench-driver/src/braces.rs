//! Names of tables between braces: `{log}` in a schema file is the table `log` of the target's namespace, for databases whose namespaces
//! are not their own (a database, a schema), but what the names of tables begin with.

/// A statement with a name of the database's for each table between braces, wherever they stand. What else has braces stays as it is.
pub fn place_tables(statement: &str, mut table: impl FnMut(&str) -> String) -> String {
    let mut text = String::with_capacity(statement.len());
    let mut rest = statement;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        rest = after;
        match after.split_once('}').filter(|(name, _)| is_word(name)) {
            Some((name, after)) => {
                text.push_str(&table(name));
                rest = after;
            }
            None => text.push('{'),
        }
    }
    text.push_str(rest);
    text
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
    fn names_in_braces_are_tables() {
        let statement = "CREATE INDEX {log}_value ON {log} (value), {machines} {fn now()} {ts '1'} {} {";
        let placed = place_tables(statement, |name| format!("mine_{name}"));
        assert_eq!(placed, "CREATE INDEX mine_log_value ON mine_log (value), mine_machines {fn now()} {ts '1'} {} {");
    }

    #[test]
    fn only_words_are_names() {
        assert!(is_word("log") && is_word("log_2"));
        assert!(!is_word("") && !is_word("2log") && !is_word("a b") && !is_word("a\"b") && !is_word(&"a".repeat(49)));
    }
}
