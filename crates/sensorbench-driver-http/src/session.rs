//! Executing operations.

use std::io::BufRead;
use std::sync::Arc;

use futures::future::LocalBoxFuture;
use sensorbench_driver::{AsyncConnector, AsyncSession, DriverError, Executing, Request, Rows, Value};

use crate::point_form;
use crate::pool::Pool;
use crate::protocol::{AnswerState, Protocol, Reading};
use crate::schema::Prepared;
use crate::target::Target;

/// Connections of a client thread where the URL does not say how many: one for each operation in flight, but no more than this. More
/// operations wait for one of them.
const MAX_CONNECTIONS: usize = 64;

pub struct Connector {
    pub protocol: &'static dyn Protocol,
    /// What stands before the names of measurements.
    pub prefix: String,
    pub target: Arc<Target>,
    pub operations: Arc<[Prepared]>,
}

impl AsyncConnector for Connector {
    fn connect(&self, concurrency: usize) -> LocalBoxFuture<'_, Result<Box<dyn AsyncSession>, DriverError>> {
        Box::pin(async move {
            let pool = connected(&self.target, concurrency).await?;
            let session = HttpSession {
                protocol: self.protocol,
                prefix: self.prefix.clone(),
                target: self.target.clone(),
                operations: self.operations.clone(),
                pool,
            };
            Ok(Box::new(session) as Box<dyn AsyncSession>)
        })
    }
}

/// The connections of a client thread with this many operations in flight, all open.
pub async fn connected(target: &Arc<Target>, concurrency: usize) -> Result<Pool, DriverError> {
    let connections = target.connections.unwrap_or(concurrency.clamp(1, MAX_CONNECTIONS));
    let pool = Pool::new(target.clone(), connections);
    pool.fill(connections).await?;
    Ok(pool)
}

struct HttpSession {
    protocol: &'static dyn Protocol,
    prefix: String,
    target: Arc<Target>,
    operations: Arc<[Prepared]>,
    pool: Pool,
}

impl AsyncSession for HttpSession {
    /// Dropped before its end, the connection is closed, by which the server knows that nobody waits any more.
    fn execute(&self, mut request: Box<Request>) -> Executing<'_> {
        Box::pin(async move {
            let Request { operation, parameters, rows } = request.as_mut();
            let outcome = match &self.operations[*operation] {
                Prepared::Read(reading) => self.read(reading.as_ref(), parameters, rows).await,
                Prepared::Write(points, places) => {
                    match places.written(parameters, |data, value| point_form::append(points, data, &self.prefix, value)) {
                        Ok(written) => self.write(written).await,
                        Err(error) => Err(error),
                    }
                }
            };
            (request, outcome)
        })
    }

    fn writes_many(&self, operation: usize) -> bool {
        matches!(self.operations[operation], Prepared::Write(..))
    }
}

impl HttpSession {
    async fn read(&self, reading: &dyn Reading, parameters: &[Value], rows: &mut Rows) -> Result<(), DriverError> {
        let Some(call) = reading.call(parameters)? else { return Ok(()) };
        let (mut lines, mut state) = (Lines::default(), AnswerState::default());
        let mut read = |line: &[u8]| reading.read(line, parameters, &mut state, rows);
        let reply = self.pool.exchange(call, |data| lines.take(data, &mut read)).await?;
        if !reply.status.is_success() {
            return if reading.finds_nothing(&reply) { Ok(()) } else { Err(DriverError::Statement(reply.shown())) };
        }
        lines.finish(read)
    }

    async fn write(&self, points: Vec<u8>) -> Result<(), DriverError> {
        let reply = self.pool.ask(self.protocol.write(&self.target, points)).await?;
        self.protocol.refusal(&reply).map_or(Ok(()), |refusal| Err(DriverError::Statement(refusal)))
    }
}

/// Takes an answer apart into its lines as it comes.
#[derive(Default)]
struct Lines {
    unfinished: Vec<u8>,
}

impl Lines {
    fn take(&mut self, data: &[u8], mut read: impl FnMut(&[u8]) -> Result<(), DriverError>) -> Result<(), DriverError> {
        let mut rest = data;
        while let Some(end) = line_length(rest) {
            if self.unfinished.is_empty() {
                read_line(&rest[..end], &mut read)?;
            } else {
                self.unfinished.extend_from_slice(&rest[..end]);
                read_line(&self.unfinished, &mut read)?;
                self.unfinished.clear();
            }
            rest = &rest[end + 1..];
        }
        self.unfinished.extend_from_slice(rest);
        Ok(())
    }

    fn finish(self, mut read: impl FnMut(&[u8]) -> Result<(), DriverError>) -> Result<(), DriverError> {
        read_line(&self.unfinished, &mut read)
    }
}

/// Bytes before the end of the first line; None if there is no end. The standard library looks for it many bytes at a time.
fn line_length(mut data: &[u8]) -> Option<usize> {
    let all = data;
    let passed = data.skip_until(b'\n').expect("memory is read without fail");
    all[..passed].ends_with(b"\n").then(|| passed - 1)
}

fn read_line(line: &[u8], read: &mut impl FnMut(&[u8]) -> Result<(), DriverError>) -> Result<(), DriverError> {
    if line.iter().all(u8::is_ascii_whitespace) { Ok(()) } else { read(line) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_however_they_come() {
        for size in 1..12 {
            let mut lines = Lines::default();
            let mut seen = Vec::new();
            let mut read = |line: &[u8]| {
                seen.push(String::from_utf8(line.to_vec()).unwrap());
                Ok(())
            };
            for piece in b"one\n\ntwo\nthree".chunks(size) {
                lines.take(piece, &mut read).unwrap();
            }
            lines.finish(&mut read).unwrap();
            assert_eq!(seen, ["one", "two", "three"]);
        }
    }
}
