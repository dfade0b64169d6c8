//! Loading by SSTables: a program of ours around Cassandra's own writer and loader gets the rows by its standard input, writes
//! them to files and streams these to the nodes.
//!
//! It reads a line of JSON (where to, how to log in, the table), then the cells of all rows as in a request, then −2 and the number
//! of rows. It prints `written ROWS`, `streamed BYTES OF_BYTES` and at the end `done …`.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use arrow_array::RecordBatchReader;
use rustix::process::{Pid, Signal, kill_process};
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
/// How often it is checked whether the program has ended.
const POLL: Duration = Duration::from_millis(10);
/// How long it may take to remove its files when it has to end.
const PATIENCE: Duration = Duration::from_secs(10);

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
    let failed = |what: &str| DriverError::Data(format!("table {}: {}: {what}", table.form.table, program.display()));
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(&error.to_string()))?;
    let (Some(input), Some(output), Some(messages)) = (child.stdin.take(), child.stdout.take(), child.stderr.take()) else {
        return Err(failed("it has no input or output"));
    };
    let (fed, ended, said) = std::thread::scope(|scope| {
        let (encoded, chunks) = channel(AHEAD);
        let limit = ChunkLimit { bytes: PIECE_BYTES, at_partitions: false };
        scope.spawn(move || table.form.encode_all(rows, limit, progress, &encoded));
        scope.spawn(move || follow(output, progress));
        let said = scope.spawn(move || all_of(messages));
        let fed = feed(input, &header(target, table), chunks);
        // With all rows it still streams files, and the nodes index them, which takes minutes.
        let ended = wait(&mut child, || !matches!(fed, Err(Feeding::Rows(_))) && progress.check().is_ok());
        (fed, ended, said.join().expect("reading does not panic"))
    });
    match (fed, ended) {
        (Err(Feeding::Rows(error)), _) => Err(error),
        (Ok(()), Ok(status)) if status.success() => Ok(()),
        (_, Err(error)) => Err(failed(&error.to_string())),
        // What it prints says more than that it took no more rows.
        _ => progress.check().and(Err(failed(said.trim()))),
    }
}

/// Waits until a program has ended. It is ended when it is not wanted any more, and is given time to remove its files.
fn wait(child: &mut Child, is_wanted: impl Fn() -> bool) -> io::Result<ExitStatus> {
    let mut ends_by = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        match ends_by {
            None if !is_wanted() => {
                kill_process(Pid::from_child(child), Signal::TERM)?;
                ends_by = Some(Instant::now() + PATIENCE);
            }
            Some(ends_by) if Instant::now() >= ends_by => child.kill()?,
            _ => {}
        }
        sleep(POLL);
    }
}

/// What a program says, as far as it can be read.
fn all_of(mut messages: ChildStderr) -> String {
    let mut said = Vec::new();
    let _ = messages.read_to_end(&mut said);
    String::from_utf8_lossy(&said).into_owned()
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn shell(commands: &str) -> Child {
        Command::new("sh").args(["-c", commands]).stdout(Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn a_program_is_waited_for_while_it_is_wanted() {
        assert_eq!(wait(&mut shell("sleep 0.1; exit 7"), || true).unwrap().code(), Some(7));
    }

    #[test]
    fn a_program_that_is_not_wanted_any_more_ends_and_removes_its_files_before() {
        let mut child = shell("trap 'echo removed; exit 3' TERM; echo begun; while :; do sleep 0.01; done");
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert_eq!(said.next().as_deref(), Some("begun"));
        let checks = Cell::new(0);
        let status = wait(&mut child, || checks.replace(checks.get() + 1) < 3).unwrap();
        assert_eq!((status.code(), said.next().as_deref()), (Some(3), Some("removed")));
    }
}
