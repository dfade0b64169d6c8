//! A dialect as the kind of database that it is.

use std::sync::Arc;

use sensorbench_driver::{About, Database, Driver, DriverError, Schema, SqlSchema, TargetUrl};
use serde_json::json;

use crate::dialect::Dialect;
use crate::driver::WireDriver;
use crate::wire::{Link, Statement};

/// The database of a dialect, over MySQL's protocol.
pub struct MysqlWire(pub &'static dyn Dialect);

impl Database for MysqlWire {
    fn about(&self) -> About {
        self.0.about()
    }

    fn open(&self, url: &TargetUrl) -> Result<Box<dyn Driver>, DriverError> {
        Ok(Box::new(WireDriver::new(Arc::new(Link::of(self.0, url)?))))
    }

    /// The form of every part and the parameters of every statement; the statements themselves only a server can check.
    fn check(&self, schema: &Schema) -> Result<(), DriverError> {
        SqlSchema::of(schema)?;
        schema.operations.iter().try_for_each(|operation| Statement::of(operation).map(drop))
    }

    fn no_op(&self) -> Option<Schema> {
        let operation = json!({
            "name": "nothing",
            "columns": [{"name": "one", "type": "integer"}],
            "statement": {"statement": self.0.no_op()},
        });
        Some(serde_json::from_value(json!({"operations": [operation]})).expect("a schema"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{Mariadb, Mysql};

    #[test]
    fn wrong_urls_and_statements_are_told_with_their_place() {
        let url_error = |url: &str| MysqlWire(&Mysql).open(&TargetUrl::parse(url).unwrap()).err().expect("refused").to_string();
        assert!(url_error("mysql:me:secret@host").contains("expected mysql://HOST"));
        assert!(url_error("mysql://a,b").contains("expected one host"));
        assert!(url_error("mysql://a?compress=1").contains("unknown option compress"));
        let schema_error = |text: &str| MysqlWire(&Mysql).check(&toml::from_str(text).unwrap()).expect_err("refused").to_string();
        assert!(schema_error("[create]\nstatement = ['x']").starts_with("create.statement: unknown field"));
        assert!(schema_error("[settle]\nstatements = 'x'").starts_with("settle.statements: "));
        let operation = |statement: &str| format!("[[operations]]\nname = 'q'\n{statement}");
        assert!(schema_error(&operation("")).starts_with("operation.q: missing field `statement`"));
        assert!(schema_error(&operation("statement.statement = 'SELECT :x'")).contains("the operation has no parameter :x"));
        assert!(schema_error(&operation("statement.statement = 'SELECT ?'")).contains("must be written as :name"));
        let unknown_word = schema_error(&operation("statement = {statement = 'SELECT 1', timestamps = 'seconds'}"));
        assert!(unknown_word.contains("expected `datetime` or `microseconds`"), "{unknown_word}");
    }

    #[test]
    fn opening_a_target_does_not_connect() {
        assert!(MysqlWire(&Mariadb).open(&TargetUrl::parse("mariadb://me:secret@127.0.0.1:1").unwrap()).is_ok());
        MysqlWire(&Mariadb).check(&MysqlWire(&Mariadb).no_op().unwrap()).unwrap();
    }
}
