//! Operations in Redis' words: one command on one key, and what its reply looks like.

use sensorbench_driver::{Operation, SchemaError, parse_part};
use serde::Deserialize;

use crate::answer::Answer;
use crate::command::Command;
use crate::schema::RedisSchema;
use crate::word::{Fields, WordText};

/// `[operation.NAME]` of a schema file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    table: String,
    /// What follows the table's name in the key; the table's own `key` if not given.
    key: Option<String>,
    /// The command, without its key.
    command: Vec<WordText>,
    /// The elements of the reply that make a row; one for each column if not given.
    row: Option<Vec<WordText>>,
}

/// An operation made ready.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub parameters: Fields,
    pub command: Command,
    pub answer: Answer,
}

impl Prepared {
    pub fn of(schema: &RedisSchema, operation: &Operation) -> Result<Self, SchemaError> {
        let path = format!("operation.{}", operation.name);
        let statement: Statement = parse_part(&path, &operation.statement)?;
        let parameters = Fields { owner: path.replace('.', " "), kind: "parameter", list: operation.parameters.clone() };
        let table = schema.table(&format!("{path}.table"), &statement.table)?;
        let key = table.key(&format!("{path}.key"), statement.key.as_deref(), &parameters)?;
        let command = Command::of(&format!("{path}.command"), &statement.command, key, &parameters)?;
        let answer = Answer::of(operation, statement.row.as_deref())?;
        Ok(Self { parameters, command, answer })
    }
}

#[cfg(test)]
mod tests {
    use sensorbench_driver::Schema;
    use serde_json::json;

    use super::*;

    fn refused(statement: serde_json::Value) -> String {
        let schema: Schema = serde_json::from_value(json!({
            "create": {"table": {"t": {"key": "{site}"}}},
            "operations": [{
                "name": "o",
                "parameters": [{"name": "site", "type": "integer"}, {"name": "from", "type": "timestamp"}],
                "columns": [{"name": "time", "type": "timestamp"}, {"name": "value", "type": "double"}],
                "statement": statement,
            }],
        }))
        .unwrap();
        let parsed = RedisSchema::of(&schema, "space").unwrap();
        Prepared::of(&parsed, &schema.operations[0]).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn what_makes_no_sense_is_told_with_its_place() {
        for (statement, expected) in [
            (json!({"table": "t", "command": ["ZRANGEBYSCORE", "{from}", "inf"], "row": ["{time}:{value}"]}), ""),
            (json!({"table": "t", "command": ["HMGET", "time", "value"]}), ""),
            (json!({"command": ["GET"]}), "operation.o: missing field `table`"),
            (json!({"table": "u", "command": ["GET"]}), "operation.o.table: there is no table u; expected one of t"),
            (
                json!({"table": "t", "key": "{zone}", "command": ["GET"]}),
                "operation.o.key: operation o has no parameter zone; exp",
            ),
            (json!({"table": "t", "command": ["GET", "{to}"]}), "operation.o.command[1]: operation o has no parameter to"),
            (json!({"table": "t", "command": ["KEYS"]}), "operation.o.command[0]: expected a command that touches only"),
            (
                json!({"table": "t", "command": ["GET"], "row": ["{time}"]}),
                "operation.o.row: expected column value once; it is there 0",
            ),
            (
                json!({"table": "t", "command": ["GET"], "row": ["{time}{value}"]}),
                "operation.o.row[0]: expected some text between",
            ),
            (json!({"table": "t", "command": ["GET"], "row": ["{x}"]}), "operation.o.row[0]: operation o has no column x"),
            (json!({"table": "t", "command": ["GET"], "rows": []}), "operation.o.rows: unknown field `rows`"),
        ] {
            let error = refused(statement);
            assert!(error.starts_with(expected) && error.is_empty() == expected.is_empty(), "{error}");
        }
    }
}
