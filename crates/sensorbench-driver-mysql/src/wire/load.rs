//! Loading by LOAD DATA LOCAL, over one connection, so that rows lie in the table in the order in which they came. The text of rows is
//! written while the server reads what was written before.

use std::iter::Peekable;
use std::time::Instant;

use arrow_array::RecordBatchReader;
use bytes::Bytes;
use futures::future::{Either, select};
use futures::{StreamExt, pin_mut, stream};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use sensorbench_driver::{DriverError, Parameter, Progress};
use tokio::sync::mpsc;

use super::link::Link;
use super::text::Layout;

/// This many rows, and the rest of their batch, go into one statement. A statement is a transaction: it costs a flush of the log, and the
/// more there is in it, the longer the server must be able to undo it. With one for each 65 thousand rows, MariaDB needs a fifth more
/// processor time.
const ROWS_A_STATEMENT: u64 = 1_000_000;
/// Of long rows fewer go into one, because a server must be able to undo them all.
const BYTES_A_STATEMENT: usize = 256 << 20;

/// Errors of servers that allow no LOAD DATA LOCAL: of MySQL before 8, of MySQL, of MariaDB.
const LOCAL_INFILE_IS_OFF: [u16; 3] = [1148, 3948, 4166];

/// Batches of rows that are still to be loaded.
type Batches = Peekable<Box<dyn RecordBatchReader + Send>>;

pub async fn load(
    link: &Link,
    connection: &mut Conn,
    table: &str,
    columns: &[Parameter],
    rows: Box<dyn RecordBatchReader + Send>,
    progress: &Progress,
) -> Result<(), DriverError> {
    let layout = Layout::of(table, columns, link, connection).await?;
    // Tables are filled one after the other, so that rows may come before those that they refer to. Unique keys stay checked: rows that
    // are not checked, MariaDB sorts first, which costs half as much again even where they are sorted already.
    connection.query_drop("SET foreign_key_checks = 0").await.map_err(|error| link.error(error))?;
    let mut batches = rows.peekable();
    while batches.peek().is_some() {
        let rows = load_some(&mut batches, &layout, link, connection, progress).await?;
        check_arrival(rows, &layout.table, link, connection).await?;
    }
    Ok(())
}

/// Loads as many batches as go into one statement, and returns how many rows they have. After an error at our end the connection is lost,
/// which is how the server hears that the statement must be undone.
async fn load_some(
    batches: &mut Batches,
    layout: &Layout,
    link: &Link,
    connection: &mut Conn,
    progress: &Progress,
) -> Result<u64, DriverError> {
    let (writer, mut reader) = mpsc::channel(1);
    let text = stream::poll_fn(move |context| reader.poll_recv(context)).map(Ok);
    connection.set_infile_handler(async { Ok(text.boxed()) });
    let reading = connection.query_drop(layout.load_statement());
    let writing = write(batches, layout, progress, writer);
    pin_mut!(writing);
    let (read, rows) = match select(reading, writing).await {
        Either::Right((written, reading)) => {
            let rows = written?;
            (reading.await, rows)
        }
        // The server has given up before it read everything.
        Either::Left((read, _)) => (read, 0),
    };
    read.map(|()| rows).map_err(|error| load_error(&layout.table, link, error))
}

/// Writes the text of one statement, piece by piece, and returns how many rows it has.
async fn write(
    batches: &mut Batches,
    layout: &Layout,
    progress: &Progress,
    writer: mpsc::Sender<Bytes>,
) -> Result<u64, DriverError> {
    let (mut rows, mut bytes) = (0, 0);
    while rows < ROWS_A_STATEMENT
        && bytes < BYTES_A_STATEMENT
        && let Some(batch) = batches.next()
    {
        progress.check()?;
        let batch = batch.map_err(|error| DriverError::Data(error.to_string()))?;
        let (rows_of_batch, start) = (batch.num_rows() as u64, Instant::now());
        for piece in layout.pieces(&batch)? {
            let piece: Bytes = piece?;
            bytes += piece.len();
            // Nobody reads any more when the statement has ended, and its end says why.
            let _ = writer.send(piece).await;
        }
        progress.add_batch(rows_of_batch, start.elapsed());
        rows += rows_of_batch;
    }
    Ok(rows)
}

/// With LOCAL, the server turns errors in rows into warnings and continues.
async fn check_arrival(rows: u64, table: &str, link: &Link, connection: &mut Conn) -> Result<(), DriverError> {
    let (arrived, warnings) = (connection.affected_rows(), connection.get_warnings());
    if arrived == rows && warnings == 0 {
        return Ok(());
    }
    let warning = connection.query_first("SHOW WARNINGS LIMIT 1").await.map_err(|error| link.error(error))?;
    let reason = warning.map_or_else(
        || "the server names none".to_owned(),
        |(_level, code, message): (String, u16, String)| format!("{message} ({code})"),
    );
    Err(DriverError::Data(format!(
        "table {table}: {arrived} of {rows} rows arrived, with {warnings} warnings; the first: {reason}"
    )))
}

fn load_error(table: &str, link: &Link, error: Error) -> DriverError {
    match error {
        Error::Server(error) if LOCAL_INFILE_IS_OFF.contains(&error.code) => DriverError::Statement(format!(
            "table {table}: the server allows no LOAD DATA LOCAL ({error}); allow it with SET GLOBAL local_infile = 1, \
             or start the server with --local-infile=1 (a server of the lab: --server-setting local_infile=1)"
        )),
        lost => match link.error(lost) {
            DriverError::Statement(reason) => DriverError::Data(format!("table {table}: {reason}")),
            other => other,
        },
    }
}

#[cfg(test)]
mod tests {
    use mysql_async::ServerError;
    use sensorbench_driver::TargetUrl;

    use super::*;

    #[test]
    fn a_server_without_local_infile_is_told_what_to_do() {
        let link = Link::of(&crate::dialect::Mysql, &TargetUrl::parse("mysql://host").unwrap()).unwrap();
        let error = Error::Server(ServerError { code: 3948, message: "disabled".into(), state: "42000".into() });
        assert!(load_error("t", &link, error).to_string().contains("SET GLOBAL local_infile = 1"));
    }
}
