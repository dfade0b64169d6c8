//! Loading by SSTables: a program of ours around Cassandra's own writer and loader gets the rows by its standard input, writes
//! them to files and streams these to the nodes.
//!
//! It reads a line of JSON (where to, how to log in, the table), then the cells of all rows as in a request, then −2 and the number
//! of rows. It prints `written ROWS`, `streamed BYTES OF_BYTES` and at the end `done …`.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use arrow_array::RecordBatchReader;
use sensorbench_driver::{DriverError, Progress};
use serde_json::json;
use tokio::sync::mpsc::{Receiver, channel};

use crate::encode::{Chunk, ChunkLimit, TableForm};
use crate::target::Target;

/// Rows are handed over in pieces of this size.
const PIECE_BYTES: usize = 1 << 18;
const AHEAD: usize = 4;
/// What comes in the place of a cell's length after the last row.
const END: i32 = -2;

/// A table as the program must know it.
pub struct Described {
    /// Its definition, with the keyspace.
    pub create: String,
    pub form: TableForm,
}

/// Loads rows into a table.
pub fn load(
    program: &Path,
    target: &Target,
    table: &Described,
    rows: Box<dyn RecordBatchReader + Send>,
    progress: &Progress,
) -> Result<(), DriverError> {
    let loader = Loader { program, table: &table.form.table };
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| loader.error(&error.to_string()))?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let (Some(input), Some(output)) = (input, output) else { return Err(loader.error("it has no input or output")) };
    let fed = std::thread::scope(|scope| {
        let (encoded, chunks) = channel(AHEAD);
        let limit = ChunkLimit { bytes: PIECE_BYTES, at_partitions: false };
        scope.spawn(move || table.form.encode_all(rows, limit, progress, &encoded));
        scope.spawn(move || follow(output, progress));
        feed(input, &header(target, table), chunks)
    });
    loader.end(child, fed)
}

struct Loader<'a> {
    program: &'a Path,
    table: &'a str,
}

impl Loader<'_> {
    /// Waits for the program. What it prints says more than that it took no more rows.
    fn end(&self, mut child: Child, fed: Result<(), Feeding>) -> Result<(), DriverError> {
        if let Err(Feeding::Rows(error)) = fed {
            // It may have ended by itself when its input did.
            let _ = child.kill();
            let _ = child.wait();
            return Err(error);
        }
        let ended = child.wait_with_output().map_err(|error| self.error(&error.to_string()))?;
        let output = String::from_utf8_lossy(&ended.stderr);
        match fed {
            Ok(()) if ended.status.success() => Ok(()),
            _ => Err(self.error(output.trim())),
        }
    }

    fn error(&self, output: &str) -> DriverError {
        DriverError::Data(format!("table {}: {}: {output}", self.table, self.program.display()))
    }
}

/// Why not all rows were handed over.
enum Feeding {
    /// They could not be read or encoded.
    Rows(DriverError),
    /// The program takes no more.
    Program,
}

fn feed(mut input: ChildStdin, header: &str, mut chunks: Receiver<Result<Vec<Chunk>, DriverError>>) -> Result<(), Feeding> {
    let mut write = |bytes: &[u8]| input.write_all(bytes).map_err(|_| Feeding::Program);
    write(header.as_bytes())?;
    let mut rows = 0_u64;
    while let Some(some) = chunks.blocking_recv() {
        for chunk in some.map_err(Feeding::Rows)? {
            write(&chunk.bytes)?;
            rows += chunk.rows() as u64;
        }
    }
    write(&END.to_be_bytes())?;
    write(&rows.to_be_bytes())
}

/// Counts the rows that the program says it has written.
fn follow(output: ChildStdout, progress: &Progress) {
    let (mut counted, mut since) = (0, Instant::now());
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        let written = line.strip_prefix("written ").and_then(|rows| rows.parse::<u64>().ok());
        if let Some(rows) = written.filter(|rows| *rows > counted) {
            progress.add_batch(rows - counted, since.elapsed());
            (counted, since) = (rows, Instant::now());
        }
    }
}

/// The first line: it holds the password, which no command line may.
fn header(target: &Target, table: &Described) -> String {
    let server = &target.server;
    let hosts: Vec<&str> = server.hosts.iter().map(|(host, _)| host.as_str()).collect();
    let header = json!({
        "hosts": hosts,
        "port": server.hosts.first().map(|(_, port)| port),
        "storage_port": target.storage_port,
        "throughput_mib_s": 0,
        "user": server.user,
        "password": server.password,
        "keyspace": server.namespace,
        "table": table.form.table,
        "create": table.create,
        "insert": table.form.qualified_insert(&server.namespace),
    });
    format!("{header}\n")
}
