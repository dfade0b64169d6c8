//! Loading by prepared writes: rows of one partition go together, as one unlogged batch that is one mutation at the server, and
//! many batches are on their way at a time.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow_array::RecordBatchReader;
use futures::stream::{self, TryStreamExt};
use scylla::client::session::Session;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};
use scylla::statement::batch::{Batch, BatchStatement, BatchType};
use sensorbench_driver::{DriverError, Progress};
use tokio::sync::mpsc::{Receiver, channel};

use crate::control::Control;
use crate::encode::{Chunk, ChunkLimit, TableForm};
use crate::errors;
use crate::target::Target;

/// Below the 5 KiB from which servers warn of batches if nobody changed it.
const BATCH_BYTES: usize = 4096;
const BATCHES_IN_FLIGHT: usize = 128;
/// Hand-overs of encoded rows that may wait to be sent.
const AHEAD: usize = 4;
/// A batch that did not succeed because nodes are busy or away is sent again this many times, after a pause that doubles: loading
/// is measured by its rate, not by its errors.
const ATTEMPTS: u32 = 10;
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Loads rows into a table.
pub fn load(
    control: &Control,
    target: &Target,
    form: &TableForm,
    rows: Box<dyn RecordBatchReader + Send>,
    progress: &Progress,
) -> Result<(), DriverError> {
    let (encoded, chunks) = channel(AHEAD);
    let limit = ChunkLimit { bytes: BATCH_BYTES, at_partitions: true };
    let by_library = || target.retries.as_ref().map_or(0, |retries| retries.load(Ordering::Relaxed));
    let before = by_library();
    let loaded = std::thread::scope(|scope| {
        scope.spawn(move || form.encode_all(rows, limit, progress, &encoded));
        control
            .with(async |session| Loading { session, target, form, batches: Mutex::default(), progress }.send_all(chunks).await)
    });
    progress.add_retries(by_library() - before);
    loaded
}

/// The side that sends.
struct Loading<'a> {
    session: &'a Session,
    target: &'a Target,
    form: &'a TableForm,
    /// Batches by their number of rows.
    batches: Mutex<HashMap<usize, Arc<Batch>>>,
    progress: &'a Progress,
}

impl Loading<'_> {
    async fn send_all(&self, chunks: Receiver<Result<Vec<Chunk>, DriverError>>) -> Result<(), DriverError> {
        let received = stream::unfold(chunks, async |mut chunks| chunks.recv().await.map(|some| (some, chunks)));
        received
            .map_ok(|some| stream::iter(some.into_iter().map(Ok)))
            .try_flatten()
            .try_for_each_concurrent(BATCHES_IN_FLIGHT, |chunk| self.insert(chunk))
            .await
    }

    async fn insert(&self, chunk: Chunk) -> Result<(), DriverError> {
        let start = Instant::now();
        let mut pause = FIRST_PAUSE;
        for attempt in 1.. {
            match self.execute(&chunk).await {
                Ok(()) => break,
                Err(error) if attempt < ATTEMPTS && !self.form.counts && is_passing(&error) => {
                    self.progress.add_retries(1);
                    tokio::time::sleep(pause).await;
                }
                Err(error) => return Err(self.refused(error)),
            }
            pause *= 2;
        }
        self.progress.add_batch(chunk.rows() as u64, start.elapsed());
        Ok(())
    }

    async fn execute(&self, chunk: &Chunk) -> Result<(), ExecutionError> {
        if chunk.rows() == 1
            && let Some(row) = chunk.iter().next()
        {
            return self.session.execute_unpaged(&self.form.write, row).await.map(|_| ());
        }
        let rows: Vec<_> = chunk.iter().collect();
        self.session.batch(&self.batch(rows.len()), rows).await.map(|_| ())
    }

    fn batch(&self, rows: usize) -> Arc<Batch> {
        let mut batches = self.batches.lock().expect("nothing panics under this lock");
        let write = || BatchStatement::PreparedStatement(self.form.write.clone());
        let of_type = if self.form.counts { BatchType::Counter } else { BatchType::Unlogged };
        let new = || {
            let mut batch = Batch::new_with_statements(of_type, std::iter::repeat_with(write).take(rows).collect());
            // A batch has a level of its own; that of its statements does not count.
            if let Some(consistency) = self.target.write_consistency {
                batch.set_consistency(consistency);
            }
            Arc::new(batch)
        };
        batches.entry(rows).or_insert_with(new).clone()
    }

    fn refused(&self, error: ExecutionError) -> DriverError {
        match errors::execution_error(&self.target.shown, error) {
            DriverError::Statement(message) => DriverError::Data(format!("table {}: {message}", self.form.table)),
            other => other,
        }
    }
}

/// True for what another attempt may fix. Inserting the same row twice leaves one row.
fn is_passing(error: &ExecutionError) -> bool {
    match error {
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, _)) => matches!(
            error,
            DbError::Overloaded
                | DbError::IsBootstrapping
                | DbError::Unavailable { .. }
                | DbError::WriteTimeout { .. }
                | DbError::WriteFailure { .. }
        ),
        ExecutionError::LastAttemptError(RequestAttemptError::BrokenConnectionError(_)) => true,
        ExecutionError::ConnectionPoolError(_) => true,
        _ => false,
    }
}
