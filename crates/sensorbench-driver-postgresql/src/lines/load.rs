//! Loading: lines over HTTP, encoded by one thread while another sends those before them. Tables without a write-ahead log, and values that
//! lines cannot hold (bytes), are loaded by inserts; so is everything where the connection is encrypted.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;

use sensorbench_driver::{DriverError, TlsMode, Type};
use tokio_postgres::Client;

use super::encoder::LineEncoder;
use super::http::{LineConnection, Outcome};
use crate::dialect::questdb::{http_port, stored};
use crate::wire::{LoadOrder, Rows, errors, insert, table_forms};

/// A request is sent when it is as large as this. QuestDB makes one transaction of each.
const REQUEST_BYTES: usize = 1 << 21;
/// Requests that may wait to be sent.
const REQUESTS_AHEAD: usize = 2;

/// Some encoded rows.
struct Lines {
    bytes: Vec<u8>,
    rows: u64,
}

/// Loads rows into a table, by its fastest way in.
pub fn load(order: &LoadOrder, rows: Rows) -> Result<(), DriverError> {
    match encoder(order)? {
        Some(encoder) => by_lines(order, &encoder, rows),
        None => insert(order, rows),
    }
}

/// How rows of the table are written as lines; none where they cannot be.
fn encoder(order: &LoadOrder) -> Result<Option<LineEncoder>, DriverError> {
    let is_writable = order.columns.len() > 1 && order.columns.iter().all(|column| column.value_type != Type::Bytes);
    order.control.with(async |client| {
        let forms = table_forms(client, order.target, order.table, order.columns).await?;
        let designated = designated_timestamp(order, client).await?;
        let place = designated.and_then(|name| order.columns.iter().position(|column| column.name == name));
        let place = place.filter(|_| is_writable && order.target.server.tls.mode == TlsMode::Off);
        Ok(place.map(|place| {
            let names = order.columns.iter().map(|column| column.name.as_str());
            LineEncoder::new(&stored(&order.target.namespace, order.table), names.zip(forms), place)
        }))
    })
}

/// The designated timestamp of a table with a write-ahead log.
async fn designated_timestamp(order: &LoadOrder<'_>, client: &Client) -> Result<Option<String>, DriverError> {
    let refused = |error| errors::statement_error(&order.target.place, error);
    let table = stored(&order.target.namespace, order.table);
    let query = "SELECT designatedTimestamp FROM tables() WHERE table_name = $1::varchar AND walEnabled";
    let row = client.query_opt(query, &[&table]).await.map_err(refused)?;
    Ok(row.map(|row| row.try_get::<_, Option<String>>(0)).transpose().map_err(refused)?.flatten())
}

fn by_lines(order: &LoadOrder, encoder: &LineEncoder, rows: Rows) -> Result<(), DriverError> {
    let mut connection = LineConnection::open(order.target, http_port(&order.target.url)?)?;
    let (encoded, requests) = sync_channel(REQUESTS_AHEAD);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if let Err(error) = encode_all(order, encoder, rows, &encoded) {
                // Where nobody takes it, the sender has an error of its own.
                let _ = encoded.send(Err(error));
            }
        });
        send_all(order, &mut connection, requests)
    })
}

fn encode_all(
    order: &LoadOrder,
    encoder: &LineEncoder,
    rows: Rows,
    encoded: &SyncSender<Result<Lines, DriverError>>,
) -> Result<(), DriverError> {
    let mut lines = empty();
    let hand_over = |lines: Lines| encoded.send(Ok(lines)).map_err(|_| DriverError::Cancelled);
    for batch in rows {
        order.progress.check()?;
        let batch = batch.map_err(|error| DriverError::Data(error.to_string()))?;
        let arrays = order.arrays(&batch)?;
        for row in 0..batch.num_rows() {
            let done = encoder.encode(&arrays, row, &mut lines.bytes);
            done.map_err(|(place, error)| order.refused(&order.columns[place].name, &error))?;
            lines.rows += 1;
            if lines.bytes.len() >= REQUEST_BYTES {
                hand_over(std::mem::replace(&mut lines, empty()))?;
            }
        }
    }
    if lines.rows > 0 { hand_over(lines) } else { Ok(()) }
}

fn empty() -> Lines {
    Lines { bytes: Vec::with_capacity(REQUEST_BYTES + REQUEST_BYTES / 8), rows: 0 }
}

fn send_all(
    order: &LoadOrder,
    connection: &mut LineConnection,
    requests: Receiver<Result<Lines, DriverError>>,
) -> Result<(), DriverError> {
    let mut taken = 0;
    for lines in requests {
        let lines = lines?;
        let start = Instant::now();
        if let Outcome::Refused(refusal) = connection.send(&lines.bytes)? {
            let row = refusal.line.map(|line| format!(" (row {})", taken + line)).unwrap_or_default();
            return Err(DriverError::Data(format!(
                "table {}: {}{row}; the {} rows of this request were not kept, {taken} before them were",
                order.table, refusal.message, lines.rows
            )));
        }
        taken += lines.rows;
        order.progress.add_batch(lines.rows, start.elapsed());
    }
    Ok(())
}
