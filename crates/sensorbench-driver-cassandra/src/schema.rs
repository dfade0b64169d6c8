//! A schema in Cassandra's words.

use scylla::statement::Consistency;
use sensorbench_driver::{Column, DriverError, Operation, Parameter, Placeholder, Positional, SchemaError, parse_part};
use serde::Deserialize;

/// Words for consistency levels.
pub const CONSISTENCIES: [&str; 11] =
    ["any", "one", "two", "three", "quorum", "all", "local_one", "local_quorum", "each_quorum", "serial", "local_serial"];
/// Those that reads may have: nothing was written that nobody has, and `each_quorum` is for writes alone.
pub const READ_CONSISTENCIES: [&str; 9] =
    ["one", "two", "three", "quorum", "all", "local_one", "local_quorum", "serial", "local_serial"];
/// Those that writes may have.
pub const WRITE_CONSISTENCIES: [&str; 9] =
    ["any", "one", "two", "three", "quorum", "all", "local_one", "local_quorum", "each_quorum"];

/// `[operation.NAME]` of a schema file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    statement: String,
    consistency: Option<String>,
    page_size: Option<u16>,
}

/// An operation's statement as the server is asked to prepare it.
#[derive(Clone, Debug)]
pub struct OperationStatement {
    /// Place of the statement in the schema file.
    pub path: String,
    /// The statement and which parameters its placeholders stand for.
    pub positional: Positional,
    /// Parameters of the operation.
    pub parameters: Vec<Parameter>,
    /// Columns of the operation.
    pub columns: Vec<Column>,
    /// How many replicas must answer, if the schema says so.
    pub consistency: Option<Consistency>,
    /// Rows fetched at a time, if the schema says so; 0 for all at once.
    pub page_size: Option<i32>,
}

impl OperationStatement {
    pub fn of(operation: &Operation) -> Result<Self, DriverError> {
        let path = format!("operation.{}", operation.name);
        let declared: Statement = parse_part(&path, &operation.statement)?;
        let consistency = declared.consistency.as_deref().map(|word| {
            consistency_of(word).ok_or_else(|| {
                let message = format!("{word:?}: expected one of {}", CONSISTENCIES.join(", "));
                SchemaError::at(format!("{path}.consistency"), message)
            })
        });
        Ok(Self {
            path: format!("{path}.statement"),
            positional: Positional::of(operation, &declared.statement, Placeholder::Question)?,
            parameters: operation.parameters.clone(),
            columns: operation.columns.clone(),
            consistency: consistency.transpose()?,
            page_size: declared.page_size.map(i32::from),
        })
    }

    /// An error about the statement.
    pub fn error(&self, message: String) -> DriverError {
        SchemaError::at(&self.path, message).into()
    }
}

/// The word for a level.
pub fn word_of(consistency: Consistency) -> &'static str {
    CONSISTENCIES.into_iter().find(|word| consistency_of(word) == Some(consistency)).unwrap_or("unknown")
}

/// The level that a word stands for.
pub fn consistency_of(word: &str) -> Option<Consistency> {
    Some(match word {
        "any" => Consistency::Any,
        "one" => Consistency::One,
        "two" => Consistency::Two,
        "three" => Consistency::Three,
        "quorum" => Consistency::Quorum,
        "all" => Consistency::All,
        "local_one" => Consistency::LocalOne,
        "local_quorum" => Consistency::LocalQuorum,
        "each_quorum" => Consistency::EachQuorum,
        "serial" => Consistency::Serial,
        "local_serial" => Consistency::LocalSerial,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(statement: serde_json::Value) -> Result<OperationStatement, DriverError> {
        let parameter = Parameter { name: "id".to_owned(), value_type: sensorbench_driver::Type::Integer };
        OperationStatement::of(&Operation {
            name: "q".to_owned(),
            parameters: vec![parameter],
            columns: Vec::new(),
            order: Vec::new(),
            statement,
        })
    }

    #[test]
    fn a_statement_may_have_a_consistency_and_a_page_size_of_its_own() {
        let statement = json!({"statement": "SELECT v FROM t WHERE id = :id", "consistency": "one", "page_size": 0});
        let parsed = parsed(statement).unwrap();
        assert_eq!(parsed.positional.text, "SELECT v FROM t WHERE id = ?");
        assert_eq!((parsed.consistency, parsed.page_size), (Some(Consistency::One), Some(0)));
    }

    #[test]
    fn every_word_for_a_level_is_known() {
        assert!(CONSISTENCIES.iter().all(|word| consistency_of(word).is_some()));
        let error = parsed(json!({"statement": "SELECT 1", "consistency": "most"})).unwrap_err().to_string();
        assert!(error.starts_with("operation.q.consistency: \"most\": expected one of any, one"), "{error}");
    }
}
