//! One connection with many operations in flight, which is made again when it is lost.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use sensorbench_driver::pipeline::{Pipeline, Replies, Stream, Turn};
use sensorbench_driver::{DriverError, Request};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::cluster::Redirection;
use crate::operation::Prepared;
use crate::reply::{Reply, ReplyReader};
use crate::target::{Address, Target};

/// How long to wait before a server is tried again that could not be reached.
const RECONNECT_PAUSE: Duration = Duration::from_millis(20);

/// A connection to one server, which is made again when it is lost.
pub struct Connection {
    target: Arc<Target>,
    address: Address,
    runtime: Handle,
    link: Link,
    pipeline: Pipeline<Outcome>,
    reader: ReplyReader,
}

enum Link {
    Up(Box<dyn Stream>),
    Connecting(JoinHandle<Result<Box<dyn Stream>, DriverError>>),
    Down { after_failure: bool },
}

/// How an operation ended.
pub enum Outcome {
    Done(Result<(), DriverError>),
    /// It is to be asked elsewhere.
    Redirected(Box<Redirection>),
}

impl Connection {
    /// A connection that is made when it is needed.
    pub fn new(target: Arc<Target>, address: Address, runtime: Handle, gathers: bool) -> Self {
        Self {
            target,
            address,
            runtime,
            link: Link::Down { after_failure: false },
            pipeline: Pipeline::new(gathers),
            reader: ReplyReader::default(),
        }
    }

    /// Connects now.
    pub async fn connect(&mut self) -> Result<(), DriverError> {
        self.link = Link::Up(self.target.connect(&self.address).await?);
        Ok(())
    }

    /// Number of operations whose replies are awaited.
    #[inline]
    pub fn in_flight(&self) -> usize {
        self.pipeline.in_flight()
    }

    /// Takes an operation on, whose command is packed; gives it a number.
    #[inline]
    pub fn submit(&mut self, request: Box<Request>, command: &[u8]) -> u64 {
        if let Link::Down { after_failure } = self.link {
            self.start_connecting(after_failure);
        }
        self.pipeline.submit(request, |_, bytes| bytes.extend_from_slice(command))
    }

    /// Sends a command before the next one whose reply nobody wants.
    pub fn precede(&mut self, command: &[u8]) {
        self.pipeline.precede(command);
    }

    /// Goes on with an operation; ready when it ended. It must not be polled again then.
    #[inline]
    pub fn poll(&mut self, number: u64, operations: &[Prepared], context: &mut Context) -> Poll<(Box<Request>, Outcome)> {
        match self.pipeline.turn(number, context) {
            Turn::Waits => return Poll::Pending,
            Turn::Drives => {
                self.drive(number, operations, context);
                if !self.pipeline.has_ended(number) {
                    return Poll::Pending;
                }
            }
            Turn::Ended => {}
        }
        Poll::Ready(self.pipeline.fetch(number))
    }

    /// Gives an operation up; its reply will be passed over.
    pub fn abandon(&mut self, number: u64) {
        self.pipeline.abandon(number);
    }

    /// Closes it if no reply is awaited; it is made again when it is needed.
    pub fn close_if_idle(&mut self) {
        if self.in_flight() == 0 && matches!(self.link, Link::Up(_)) {
            self.link = Link::Down { after_failure: false };
        }
    }

    fn start_connecting(&mut self, after_failure: bool) {
        let (target, address) = (self.target.clone(), self.address.clone());
        self.link = Link::Connecting(self.runtime.spawn(async move {
            if after_failure {
                tokio::time::sleep(RECONNECT_PAUSE).await;
            }
            target.connect(&address).await
        }));
    }

    #[inline]
    fn drive(&mut self, number: u64, operations: &[Prepared], context: &mut Context) {
        if let Link::Connecting(task) = &mut self.link {
            match Pin::new(task).poll(context) {
                Poll::Pending => return,
                Poll::Ready(Ok(Ok(stream))) => self.link = Link::Up(stream),
                Poll::Ready(Ok(Err(error))) => return self.lose(error, true, number),
                Poll::Ready(Err(error)) => return self.lose(self.address.unreachable(error), true, number),
            }
        }
        let Link::Up(stream) = &mut self.link else { return };
        let mut replies = RepliesTo { reader: &mut self.reader, operations, address: &self.address };
        if let Err(problem) = self.pipeline.exchange(number, stream, &mut replies, context) {
            self.lose(problem, false, number);
        }
    }

    /// Ends every operation in flight with an error.
    #[cold]
    fn lose(&mut self, error: DriverError, after_failure: bool, polled: u64) {
        self.link = Link::Down { after_failure };
        self.reader = ReplyReader::default();
        self.pipeline.end_all(polled, || Outcome::Done(Err(error.clone())));
    }

    /// Whether it is not connected.
    pub fn is_down(&self) -> bool {
        matches!(self.link, Link::Down { .. })
    }
}

/// The replies to operations, read into their requests.
struct RepliesTo<'a> {
    reader: &'a mut ReplyReader,
    operations: &'a [Prepared],
    address: &'a Address,
}

impl Replies for RepliesTo<'_> {
    type Outcome = Outcome;

    #[inline]
    fn read(&mut self, bytes: &[u8], at: &mut usize, request: Option<&mut Request>) -> Result<Option<Outcome>, DriverError> {
        let into = request.map(|request| (&self.operations[request.operation].answer, &mut request.rows));
        let read = self.reader.read(bytes, at, into).map_err(|problem| self.address.unreachable(problem))?;
        Ok(read.map(|reply| match reply {
            Reply::Whole(outcome) => Outcome::Done(outcome),
            Reply::Refused(text) => refused(&text, self.address),
        }))
    }

    #[cold]
    fn lost(&self, problem: &dyn fmt::Display) -> DriverError {
        DriverError::Connection(format!("{}: the connection was lost: {problem}; is the server still running?", self.address))
    }
}

/// What an error of the server means.
#[cold]
fn refused(text: &str, answering: &Address) -> Outcome {
    if let Some(redirection) = Redirection::of(text, answering) {
        return Outcome::Redirected(Box::new(redirection));
    }
    Outcome::Done(Err(match text.split(' ').next() {
        Some("CLUSTERDOWN" | "LOADING" | "MASTERDOWN" | "NOAUTH") => DriverError::Connection(format!("{answering}: {text}")),
        _ => DriverError::Statement(text.to_owned()),
    }))
}
