//! A connection of a session: operations go in one after the other, and their answers come in the same order.
//!
//! The library logs in and finds out the types of statements. Executing is not left to it, because it passes each request and each answer through
//! channels between two tasks, and allocates for every row, which costs a third of the client's CPU time per operation (`make bench-clients`).

use std::collections::BTreeSet;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use sensorbench_driver::pipeline::{Incoming, Outgoing, Pipeline, Replies, Stream, Turn};
use sensorbench_driver::{DriverError, Request, SchemaError};
use tokio::io::AsyncWrite;
use tokio::sync::Notify;
use tokio_postgres::{CancelToken, Client};

use super::errors::{self, Refusal};
use super::messages::{Message, next_message, put_sync, put_terminate};
use super::prepared::Prepared;
use super::target::{Place, Target};
use crate::statement::OperationStatement;

/// For this long after a cancellation it may be what ended a statement. It ends whatever the server executes when it arrives, and
/// sometimes the next statement as well: PostgreSQL signals the process and then its group (`signal_child` in postmaster.c).
const INTERRUPTS_COME_WITHIN: Duration = Duration::from_secs(10);

/// A request that comes back with how it ended.
pub type Answered = (Box<Request>, Result<(), DriverError>);

/// A connection with every operation prepared.
pub struct Connection {
    target: Arc<Target>,
    token: CancelToken,
    place: Place,
    prepared: Vec<Prepared>,
    in_flight: AtomicUsize,
    is_lost: AtomicBool,
    line: Mutex<Line>,
    /// The operation at the head of the pipeline is another one, and it was given up.
    head_given_up: Notify,
    last_cancellation: Mutex<Option<Instant>>,
}

/// What is sent and received.
struct Line {
    /// None when the connection was lost.
    stream: Option<Box<dyn Stream>>,
    pipeline: Pipeline<Result<(), Failure>>,
    reader: AnswerReader,
    /// Operations in flight that were given up.
    given_up: BTreeSet<u64>,
}

/// Why there is no answer.
enum Failure {
    /// The server says so.
    Refused(Refusal),
    /// It came and could not be read, or the connection was lost.
    Driver(DriverError),
    /// The connection was lost before anything was sent.
    Unsent,
}

/// Where the reading of answers stands.
#[derive(Default)]
struct AnswerReader {
    /// How often the server said that it is ready since the operation began.
    ready: usize,
    failure: Option<Failure>,
}

impl Connection {
    /// Opens a connection. With `shares` some operations will share it, whose requests are sent together where they come together.
    pub async fn open(
        target: &Arc<Target>,
        name: &str,
        operations: &[OperationStatement],
        shares: bool,
    ) -> Result<Arc<Self>, DriverError> {
        let lending = target.lend(name).await?;
        let client = lending.client.clone();
        let ((prepared, preparing), mut taken) =
            lending.taken_after(all_prepared(&client, target, operations), &target.place).await?;
        let answered = exchange(&mut taken.stream, preparing).await;
        if let Some(refusal) = answered.map_err(|problem| errors::lost_because(&target.place, &problem))? {
            return Err(SchemaError::at("operations", refusal.to_string()).into());
        }
        Ok(Arc::new(Self {
            target: target.clone(),
            token: taken.token,
            place: taken.place,
            prepared,
            in_flight: AtomicUsize::new(0),
            is_lost: AtomicBool::new(false),
            line: Mutex::new(Line {
                stream: Some(taken.stream),
                pipeline: Pipeline::new(shares),
                reader: AnswerReader::default(),
                given_up: BTreeSet::new(),
            }),
            head_given_up: Notify::new(),
            last_cancellation: Mutex::default(),
        }))
    }

    /// Number of operations that wait for their answers.
    #[inline]
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// True when the server, or the network, ended it.
    #[inline]
    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    /// Refuses an operation whose values its parameters cannot hold.
    #[inline]
    pub fn check(&self, request: &Request) -> Result<(), DriverError> {
        self.prepared[request.operation].check(&request.parameters)
    }

    /// Queues an operation after those in flight.
    #[inline]
    pub fn start(self: &Arc<Self>, request: Box<Request>) -> Answering {
        let mut line = self.line();
        let number = line.pipeline.submit(request, |request, bytes| self.prepared[request.operation].put(request, bytes));
        self.in_flight.store(line.pipeline.in_flight(), Ordering::Relaxed);
        Answering { connection: Some(self.clone()), number }
    }

    /// Goes on with an operation; ready when it ended. One that was not executed, or that a cancellation of ours ended, returns
    /// [`DriverError::Cancelled`].
    #[inline]
    fn poll(&self, number: u64, context: &mut Context) -> Poll<Answered> {
        let mut line = self.line();
        match line.pipeline.turn(number, context) {
            Turn::Waits => return Poll::Pending,
            Turn::Drives => {
                self.drive(&mut line, number, context);
                self.note_progress(&mut line);
                if !line.pipeline.has_ended(number) {
                    return Poll::Pending;
                }
            }
            Turn::Ended => {}
        }
        let (request, ended) = line.pipeline.fetch(number);
        drop(line);
        Poll::Ready((request, ended.map_err(|failure| self.error(failure))))
    }

    fn drive(&self, line: &mut Line, number: u64, context: &mut Context) {
        let Some(stream) = &mut line.stream else { return self.lose(line, number, || Failure::Unsent) };
        if line.pipeline.begins() && ended_while_idle(&mut line.pipeline, stream, context) {
            return self.lose(line, number, || Failure::Unsent);
        }
        let mut replies = Replying { reader: &mut line.reader, connection: self };
        if let Err(problem) = line.pipeline.exchange(number, stream, &mut replies, context) {
            // What the server said before it closed the connection is why the operation at the head ended.
            let mut said = line.reader.failure.take();
            self.lose(line, number, || said.take().unwrap_or_else(|| Failure::Driver(problem.clone())));
        }
    }

    #[cold]
    fn lose(&self, line: &mut Line, polled: u64, mut failure: impl FnMut() -> Failure) {
        self.is_lost.store(true, Ordering::Relaxed);
        line.stream = None;
        line.reader = AnswerReader::default();
        line.pipeline.end_all(polled, || Err(failure()));
    }

    /// Notifies whoever needs to know that operations ended.
    #[inline]
    fn note_progress(&self, line: &mut Line) {
        let in_flight = line.pipeline.in_flight();
        if in_flight == self.in_flight() {
            return;
        }
        self.in_flight.store(in_flight, Ordering::Relaxed);
        if !line.given_up.is_empty() {
            let head = line.pipeline.head();
            line.given_up = line.given_up.split_off(&head);
            if line.given_up.first() == Some(&head) {
                self.head_given_up.notify_one();
            }
        }
    }

    /// Notes that nobody waits for an operation any more.
    pub fn give_up(&self, number: u64) {
        let mut line = self.line();
        let head = line.pipeline.head();
        if number < head {
            return;
        }
        line.given_up.insert(number);
        if number == head {
            self.head_given_up.notify_one();
        }
    }

    /// Waits until the server executes an operation that was given up, another one than `but_not`.
    pub async fn next_given_up_head(&self, but_not: Option<u64>) -> u64 {
        loop {
            match self.given_up_head() {
                Some(head) if Some(head) != but_not => return head,
                _ => self.head_given_up.notified().await,
            }
        }
    }

    fn given_up_head(&self) -> Option<u64> {
        let line = self.line();
        let head = line.pipeline.head();
        line.given_up.contains(&head).then_some(head)
    }

    /// Asks the server to end the operation that it executes.
    pub async fn cancel(&self) {
        *self.last_cancellation() = Some(Instant::now());
        self.target.cancel_at(self.token.clone(), &self.place).await;
    }

    /// Closes it, unless this operation ended: nobody will see to its end.
    fn close(&self, number: u64) {
        let mut line = self.line();
        if !line.pipeline.has_ended(number) {
            let closed = || Failure::Driver(self.lost(&"an operation on it was not seen to its end"));
            self.lose(&mut line, number, closed);
            self.note_progress(&mut line);
        }
        line.pipeline.abandon(number);
    }

    fn error(&self, failure: Failure) -> DriverError {
        match failure {
            Failure::Driver(error) => error,
            Failure::Unsent => DriverError::Cancelled,
            Failure::Refused(refusal) if refusal.is_cancellation() && self.was_cancelled_lately() => DriverError::Cancelled,
            Failure::Refused(refusal) => refusal.error(&self.target.place),
        }
    }

    #[cold]
    fn lost(&self, problem: &dyn fmt::Display) -> DriverError {
        errors::lost_because(&self.target.place, problem)
    }

    fn was_cancelled_lately(&self) -> bool {
        self.last_cancellation().is_some_and(|time| time.elapsed() < INTERRUPTS_COME_WITHIN)
    }

    fn last_cancellation(&self) -> MutexGuard<'_, Option<Instant>> {
        self.last_cancellation.lock().expect("nothing panics under this lock")
    }

    #[inline]
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().expect("nothing panics under this lock")
    }
}

impl Drop for Connection {
    /// Says goodbye, as far as that is possible without waiting: a server that only notices the end of a connection may keep tables busy until then.
    fn drop(&mut self) {
        let line = self.line.get_mut().expect("nothing panics under this lock");
        if let Some(stream) = &mut line.stream {
            let (mut context, mut goodbye) = (Context::from_waker(Waker::noop()), Vec::new());
            put_terminate(&mut goodbye);
            if Pin::new(&mut *stream).poll_write(&mut context, &goodbye).is_ready() {
                let _ = Pin::new(stream).poll_flush(&mut context);
            }
        }
    }
}

/// An operation on its way. It owns what it needs, so that it can be seen to its end when nobody waits for it any more. Dropped before, it closes its
/// connection.
pub struct Answering {
    /// None when it ended.
    connection: Option<Arc<Connection>>,
    number: u64,
}

impl Answering {
    /// The connection and the number of the operation there; None when it ended.
    pub fn place(&self) -> Option<(&Arc<Connection>, u64)> {
        self.connection.as_ref().map(|connection| (connection, self.number))
    }
}

impl Future for Answering {
    type Output = Answered;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<Self::Output> {
        let connection = self.connection.as_ref().expect("polled until it is ready");
        let polled = connection.poll(self.number, context);
        if polled.is_ready() {
            self.connection = None;
        }
        polled
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.close(self.number);
        }
    }
}

/// The answers to operations, read into their requests.
struct Replying<'a> {
    reader: &'a mut AnswerReader,
    connection: &'a Connection,
}

impl Replies for Replying<'_> {
    type Outcome = Result<(), Failure>;

    #[inline]
    fn read(
        &mut self,
        bytes: &[u8],
        at: &mut usize,
        mut request: Option<&mut Request>,
    ) -> Result<Option<Self::Outcome>, DriverError> {
        let AnswerReader { ready, failure } = &mut *self.reader;
        while let Some((message, length)) = next_message(&bytes[*at..]).map_err(|problem| self.connection.lost(&problem))? {
            *at += length;
            match (message, &mut request) {
                // What follows a row that cannot be read is passed over.
                (Message::Row(fields), Some(request)) if *ready == 0 && failure.is_none() => {
                    let read = self.connection.prepared[request.operation].read(fields, &mut request.rows);
                    *failure = read.err().map(Failure::Driver);
                }
                (Message::Refused(refusal), _) => *failure = Some(Failure::Refused(refusal)),
                (Message::Ready, Some(request)) => {
                    *ready += 1;
                    if *ready == self.connection.prepared[request.operation].answers() {
                        *ready = 0;
                        return Ok(Some(failure.take().map_or(Ok(()), Err)));
                    }
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Settings that change and notices come at any time.
    fn read_unasked(&mut self, bytes: &[u8], at: &mut usize) -> Result<bool, DriverError> {
        match next_message(&bytes[*at..]).map_err(|problem| self.connection.lost(&problem))? {
            None => Ok(false),
            Some((Message::Other, length)) => {
                *at += length;
                Ok(true)
            }
            Some((Message::Refused(refusal), _)) => Err(self.connection.lost(&refusal)),
            Some(_) => Err(self.connection.lost(&"it sent an answer that nothing was asked for")),
        }
    }

    #[cold]
    fn lost(&self, problem: &dyn fmt::Display) -> DriverError {
        self.connection.lost(problem)
    }
}

/// Whether the server ended a connection on which nothing was in flight. What else it says there does not matter.
#[inline]
fn ended_while_idle<O>(pipeline: &mut Pipeline<O>, stream: &mut Box<dyn Stream>, context: &mut Context) -> bool {
    match pipeline.incoming().poll_receive(stream, context) {
        Poll::Pending => false,
        Poll::Ready(Err(_)) => true,
        Poll::Ready(Ok(())) => {
            let mut at = 0;
            while let Ok(Some((message, length))) = next_message(&pipeline.incoming().unread()[at..]) {
                if matches!(message, Message::Refused(_)) {
                    return true;
                }
                at += length;
            }
            pipeline.incoming().consume(at);
            false
        }
    }
}

/// All operations, and the messages that prepare them under names of ours.
async fn all_prepared(
    client: &Client,
    target: &Target,
    operations: &[OperationStatement],
) -> Result<(Vec<Prepared>, Vec<u8>), DriverError> {
    let (mut prepared, mut preparing) = (Vec::with_capacity(operations.len()), Vec::new());
    for (number, operation) in operations.iter().enumerate() {
        prepared.push(Prepared::of(client, target, operation, number, &mut preparing).await?);
    }
    put_sync(&mut preparing);
    Ok((prepared, preparing))
}

/// Sends messages of which the last one makes the server answer; what it refused.
async fn exchange(stream: &mut Box<dyn Stream>, messages: Vec<u8>) -> io::Result<Option<Refusal>> {
    let (mut outgoing, mut incoming, mut refused) = (Outgoing::default(), Incoming::default(), None);
    outgoing.bytes = messages;
    poll_fn(|context| outgoing.poll_send(stream, context)).await?;
    loop {
        poll_fn(|context| incoming.poll_receive(stream, context)).await?;
        while let Some((message, length)) = next_message(incoming.unread()).map_err(io::Error::other)? {
            match message {
                Message::Ready => return Ok(refused),
                Message::Refused(refusal) => refused = Some(refusal),
                _ => {}
            }
            incoming.consume(length);
        }
    }
}
