//! A schema in MySQL's words.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};
use sensorbench_driver::{DriverError, Parameter, Schema, SchemaError, parse_part};
use serde::Deserialize;

use crate::link::Link;
use crate::text::Layout;

/// `[create]` and `[settle]` of a schema file: statements, one after the other.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Statements {
    #[serde(default)]
    statements: Vec<String>,
}

/// A schema whose parts are known to be statements.
#[derive(Clone, Debug)]
pub struct MysqlSchema {
    create: Statements,
    settle: Statements,
    tables: Vec<(String, Vec<Parameter>)>,
}

impl MysqlSchema {
    pub fn of(schema: &Schema) -> Result<Self, SchemaError> {
        Ok(Self {
            create: parse_part("create", &schema.create)?,
            settle: parse_part("settle", &schema.settle)?,
            tables: schema.tables.clone().into_iter().collect(),
        })
    }

    /// The columns of a table that the schema fills.
    pub fn table(&self, name: &str) -> Result<&[Parameter], DriverError> {
        let table = self.tables.iter().find(|(table, _)| table == name);
        table.map(|(_, columns)| columns.as_slice()).ok_or_else(|| DriverError::Data(format!("the schema fills no table {name}")))
    }

    pub async fn run_create(&self, link: &Link, connection: &mut Conn) -> Result<(), DriverError> {
        run("create.statements", &self.create.statements, link, connection).await
    }

    pub async fn run_settle(&self, link: &Link, connection: &mut Conn) -> Result<(), DriverError> {
        run("settle.statements", &self.settle.statements, link, connection).await
    }

    /// Every table that is filled exists, with columns for its fill.
    pub async fn check_tables(&self, link: &Link, connection: &mut Conn) -> Result<(), DriverError> {
        for (table, columns) in &self.tables {
            Layout::of(table, columns, link, connection).await?;
        }
        Ok(())
    }
}

/// What a statement is refused for is told with its place in the schema file; a lost connection has no place there.
pub fn with_place(path: String, error: DriverError) -> DriverError {
    match error {
        DriverError::Statement(message) => SchemaError::at(path, message).into(),
        other => other,
    }
}

async fn run(path: &str, statements: &[String], link: &Link, connection: &mut Conn) -> Result<(), DriverError> {
    for (number, statement) in statements.iter().enumerate() {
        let reported = reported_by(statement, connection).await.map_err(|error| link.error(error));
        let outcome = reported.and_then(|report| report.map_or(Ok(()), |error| Err(DriverError::Statement(error))));
        outcome.map_err(|error| with_place(format!("{path}[{number}]"), error))?;
    }
    Ok(())
}

/// Runs a statement to its end. ANALYZE TABLE and its like report errors as rows of their answer: the first one is returned.
async fn reported_by(statement: &str, connection: &mut Conn) -> mysql_async::Result<Option<String>> {
    let mut answer = connection.query_iter(statement).await?;
    let mut reported = None;
    while !answer.is_empty() {
        answer.for_each(|row| reported = reported.take().or_else(|| reported_error(&row))).await?;
    }
    answer.drop_result().await?;
    Ok(reported)
}

fn reported_error(row: &Row) -> Option<String> {
    let text = |column: &str| row.get_opt::<String, _>(column)?.ok();
    text("Msg_type").filter(|kind| kind.eq_ignore_ascii_case("error")).and_then(|_| text("Msg_text"))
}
