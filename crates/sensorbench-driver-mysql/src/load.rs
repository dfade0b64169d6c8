//! Loading by LOAD DATA LOCAL: one statement a batch, whose text is written while the server reads it.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::{RecordBatch, RecordBatchReader};
use futures::StreamExt;
use futures::stream;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, LocalInfileError};
use sensorbench_driver::{DriverError, Parameter, Progress};

use crate::link::Link;
use crate::text::{Layout, Pieces};

/// Errors of servers that allow no LOAD DATA LOCAL: of MySQL before 8, of MySQL, of MariaDB.
const LOCAL_INFILE_IS_OFF: [u16; 3] = [1148, 3948, 4166];

pub async fn load(
    link: &Link,
    connection: &mut Conn,
    table: &str,
    columns: &[Parameter],
    rows: Box<dyn RecordBatchReader + Send>,
    progress: &Progress,
) -> Result<(), DriverError> {
    let layout = Arc::new(Layout::of(table, columns, link, connection).await?);
    let settings = "SET unique_checks = 0, foreign_key_checks = 0";
    connection.query_drop(settings).await.map_err(|error| link.error(error))?;
    for batch in rows {
        progress.check()?;
        let batch = batch.map_err(|error| DriverError::Data(error.to_string()))?;
        let (rows, start) = (batch.num_rows() as u64, Instant::now());
        load_batch(link, connection, table, &layout, batch).await?;
        progress.add_batch(rows, start.elapsed());
    }
    Ok(())
}

async fn load_batch(
    link: &Link,
    connection: &mut Conn,
    table: &str,
    layout: &Arc<Layout>,
    batch: RecordBatch,
) -> Result<(), DriverError> {
    layout.columns_of(&batch)?;
    let rows = batch.num_rows() as u64;
    let pieces = Pieces { layout: layout.clone(), batch, row: 0 };
    connection.set_infile_handler(async { Ok(stream::iter(pieces.map(|piece| piece.map_err(std::io::Error::other))).boxed()) });
    connection.query_drop(layout.load_statement()).await.map_err(|error| load_error(link, table, error))?;
    let (arrived, warnings) = (connection.affected_rows(), connection.get_warnings());
    if arrived == rows && warnings == 0 {
        return Ok(());
    }
    let reason = first_warning(connection).await.map_err(|error| link.error(error))?;
    Err(DriverError::Data(format!("table {table}: {arrived} of {rows} rows arrived, with {warnings} warnings; the first: {reason}")))
}

/// With LOCAL, the server turns errors in rows into warnings and goes on.
async fn first_warning(connection: &mut Conn) -> mysql_async::Result<String> {
    let warning: Option<(String, u16, String)> = connection.query_first("SHOW WARNINGS LIMIT 1").await?;
    Ok(warning.map_or_else(|| "the server names none".to_owned(), |(_, code, message)| format!("{message} ({code})")))
}

fn load_error(link: &Link, table: &str, error: Error) -> DriverError {
    match error {
        Error::Driver(mysql_async::DriverError::LocalInfile(LocalInfileError::ReadError(error))) => match error.downcast() {
            Ok(ours) => ours,
            Err(other) => DriverError::Data(format!("table {table}: {other}")),
        },
        Error::Server(error) if LOCAL_INFILE_IS_OFF.contains(&error.code) => DriverError::Statement(format!(
            "table {table}: the server allows no LOAD DATA LOCAL ({error}); allow it with SET GLOBAL local_infile = 1, \
             or start the server with --local-infile=1 (a server of the lab: --set local_infile=1)"
        )),
        Error::Server(error) => DriverError::Data(format!("table {table}: {error}")),
        other => link.error(other),
    }
}

#[cfg(test)]
mod tests {
    use mysql_async::ServerError;
    use sensorbench_driver::TargetUrl;

    use super::*;

    #[test]
    fn a_server_without_local_infile_is_told_what_to_do() {
        let link = Link::of(&TargetUrl::parse("mysql://host").unwrap()).unwrap();
        let error = Error::Server(ServerError { code: 3948, message: "disabled".into(), state: "42000".into() });
        assert!(load_error(&link, "t", error).to_string().contains("SET GLOBAL local_infile = 1"));
    }
}
