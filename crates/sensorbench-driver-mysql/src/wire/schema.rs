//! A schema in MySQL's words.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};
use sensorbench_driver::{DriverError, SqlSchema};

use super::link::Link;
use super::places::with_place;
use super::text::Layout;

/// Every table that is filled exists, with columns for its fill.
pub async fn check_tables(schema: &SqlSchema, link: &Link, connection: &mut Conn) -> Result<(), DriverError> {
    for (table, columns) in schema.tables() {
        Layout::of(table, columns, link, connection).await?;
    }
    Ok(())
}

/// Runs statements, each with its place in the schema file.
pub async fn run<'a>(
    statements: impl Iterator<Item = (String, &'a str)>,
    link: &Link,
    connection: &mut Conn,
) -> Result<(), DriverError> {
    for (place, statement) in statements {
        let reported = reported_by(statement, connection).await.map_err(|error| link.error(error));
        let outcome = reported.and_then(|report| report.map_or(Ok(()), |error| Err(DriverError::Statement(error))));
        outcome.map_err(|error| with_place(place, error))?;
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
