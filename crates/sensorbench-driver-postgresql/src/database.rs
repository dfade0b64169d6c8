//! A dialect as the kind of database that it is.

use std::sync::Arc;

use sensorbench_driver::{About, Database, Driver, DriverError, Schema, SqlSchema, TargetUrl};
use serde_json::json;

use crate::dialect::Dialect;
use crate::driver::WireDriver;
use crate::statement::OperationStatement;
use crate::wire::Target;

/// The database of a dialect, over PostgreSQL's protocol.
pub struct PostgresqlWire(pub &'static dyn Dialect);

impl Database for PostgresqlWire {
    fn about(&self) -> About {
        self.0.about()
    }

    fn open(&self, url: &TargetUrl) -> Result<Box<dyn Driver>, DriverError> {
        Ok(Box::new(WireDriver::new(Arc::new(Target::of(self.0, url)?))))
    }

    /// Without a server only the form can be checked: what SQL there is, and that its parameters are declared.
    fn check(&self, schema: &Schema) -> Result<(), DriverError> {
        SqlSchema::of(schema)?;
        schema.operations.iter().try_for_each(|operation| OperationStatement::of(operation).map(|_| ()))
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
    use crate::dialect::relational;

    /// A database that speaks the protocol and knows no commits that are not waited for.
    struct Other;

    impl Dialect for Other {
        fn about(&self) -> About {
            About { schemas: "postgresql", ..relational("other", "another database") }
        }

        fn product(&self) -> &'static str {
            "OtherDB"
        }

        fn default_port(&self) -> u16 {
            26_257
        }

        fn options(&self) -> &'static [&'static str] {
            &[]
        }
    }

    #[test]
    fn a_dialect_says_what_it_does_in_another_way() {
        let database = PostgresqlWire(&Other);
        assert_eq!(
            (database.name(), database.dialect(), database.about().bulk_load),
            ("other", "postgresql", Some("binary COPY"))
        );
        let open = |url: &str| database.open(&TargetUrl::parse(url).unwrap());
        assert_eq!(open("other://me@host/data?namespace=mine").unwrap().namespace(), "OtherDB at host:26257, schema mine");
        let error = open("other://host?synchronous_commit=off").err().expect("refused").to_string();
        assert!(error.contains("unknown option synchronous_commit"), "{error}");
    }
}
