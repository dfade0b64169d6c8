//! One connection with many operations in flight, whose replies come in the order of their commands.
//!
//! No task stands behind it: of the operations in flight, whoever is polled with a reason to send or to receive does so for
//! all, and reads the replies of the others into their requests. That one is the *driver*; when it ends, another is woken to
//! take its place. A reply to an operation that was dropped is passed over.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use sensorbench_driver::{DriverError, Request};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::cluster::Redirection;
use crate::operation::Prepared;
use crate::reply::{Reply, ReplyReader};
use crate::target::{Address, Stream, Target};
use crate::wire::{Incoming, Outgoing};

/// After so many reads the other operations of the thread get their turn, even if there is more to read.
const READS_A_TURN: usize = 4;

/// How long to wait before a server is tried again that could not be reached.
const RECONNECT_PAUSE: Duration = Duration::from_millis(20);

/// A connection to one server, which is made again when it is lost.
pub struct Connection {
    target: Arc<Target>,
    address: Address,
    runtime: Handle,
    link: Link,
    outgoing: Outgoing,
    incoming: Incoming,
    reader: ReplyReader,
    /// Operations from number `first` on, in the order of their commands.
    calls: VecDeque<Call>,
    first: u64,
    /// How many of `calls`, from the front, have ended.
    ended: usize,
    /// Whether commands that are there at the same time are sent together.
    gathers: bool,
    gatherer: Option<Gatherer>,
    /// Whose waker the connection has.
    driver: Option<u64>,
}

/// Who sends the commands that are being gathered.
struct Gatherer {
    number: u64,
    /// Whether the others that were ready had their turn.
    has_waited: bool,
}

enum Link {
    Up(Box<dyn Stream>),
    Connecting(JoinHandle<Result<Box<dyn Stream>, DriverError>>),
    Down { after_failure: bool },
}

enum Call {
    /// The reply is awaited.
    Waiting { request: Box<Request>, waker: Option<Waker> },
    /// The reply is awaited, but nobody wants it.
    Dropped,
    /// The reply was read, and is not fetched yet.
    Ended { request: Box<Request>, outcome: Outcome },
    /// Nothing is left to do.
    Fetched,
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
            outgoing: Outgoing::default(),
            incoming: Incoming::new(),
            reader: ReplyReader::default(),
            calls: VecDeque::new(),
            first: 0,
            ended: 0,
            gathers,
            gatherer: None,
            driver: None,
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
        self.calls.len() - self.ended
    }

    /// Takes an operation on, whose command is packed; gives it a number.
    #[inline]
    pub fn submit(&mut self, request: Box<Request>, command: &[u8]) -> u64 {
        if let Link::Down { after_failure } = self.link {
            self.start_connecting(after_failure);
        }
        let number = self.first + self.calls.len() as u64;
        if self.gathers && self.outgoing.bytes.is_empty() {
            self.gatherer = Some(Gatherer { number, has_waited: false });
        }
        self.outgoing.bytes.extend_from_slice(command);
        self.calls.push_back(Call::Waiting { request, waker: None });
        number
    }

    /// Sends a command before the next one whose reply nobody wants.
    pub fn precede(&mut self, command: &[u8]) {
        self.outgoing.bytes.extend_from_slice(command);
        self.calls.push_back(Call::Dropped);
    }

    /// Goes on with an operation; ready when it ended. It must not be polled again then.
    #[inline]
    pub fn poll(&mut self, number: u64, operations: &[Prepared], context: &mut Context) -> Poll<(Box<Request>, Outcome)> {
        if !self.has_ended(number) {
            self.remember(number, context.waker());
            if self.is_gathering(number) {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            if self.must_drive(number) {
                self.drive(number, operations, context);
            }
            if !self.has_ended(number) {
                return Poll::Pending;
            }
        }
        Poll::Ready(self.fetch(number))
    }

    /// Gives an operation up; its reply will be passed over.
    pub fn abandon(&mut self, number: u64) {
        let place = self.place(number);
        self.calls[place] = if self.has_ended(number) { Call::Fetched } else { Call::Dropped };
        self.forget_fetched();
        if self.gatherer.take_if(|gatherer| gatherer.number == number).is_some() {
            // Another has to send what was gathered.
            self.driver = Some(number);
        }
        self.hand_over(number);
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
    fn place(&self, number: u64) -> usize {
        (number - self.first) as usize
    }

    #[inline]
    fn has_ended(&self, number: u64) -> bool {
        self.place(number) < self.ended
    }

    #[inline]
    fn remember(&mut self, number: u64, new: &Waker) {
        let place = self.place(number);
        if let Call::Waiting { waker, .. } = &mut self.calls[place]
            && !waker.as_ref().is_some_and(|waker| waker.will_wake(new))
        {
            *waker = Some(new.clone());
        }
    }

    /// Whether to leave time to the others that are ready now, which may add their commands.
    #[inline]
    fn is_gathering(&mut self, number: u64) -> bool {
        match &mut self.gatherer {
            Some(gatherer) if gatherer.number == number => {
                let must_wait = !std::mem::replace(&mut gatherer.has_waited, true);
                if !must_wait {
                    self.gatherer = None;
                }
                must_wait
            }
            _ => false,
        }
    }

    #[inline]
    fn must_drive(&self, number: u64) -> bool {
        let may_send = self.gatherer.is_none() && !self.outgoing.bytes.is_empty();
        may_send || self.driver.is_none_or(|driver| driver == number)
    }

    #[inline]
    fn drive(&mut self, number: u64, operations: &[Prepared], context: &mut Context) {
        self.driver = Some(number);
        if let Link::Connecting(task) = &mut self.link {
            match Pin::new(task).poll(context) {
                Poll::Pending => return,
                Poll::Ready(Ok(Ok(stream))) => self.link = Link::Up(stream),
                Poll::Ready(Ok(Err(error))) => return self.lose(error, true, number),
                Poll::Ready(Err(error)) => return self.lose(self.address.unreachable(error), true, number),
            }
        }
        if let Err(problem) = self.exchange(number, operations, context) {
            self.lose(problem, false, number);
        }
    }

    /// Sends and receives what can be without waiting.
    #[inline]
    fn exchange(&mut self, number: u64, operations: &[Prepared], context: &mut Context) -> Result<(), DriverError> {
        if self.gatherer.is_none()
            && let Link::Up(stream) = &mut self.link
            && let Poll::Ready(Err(problem)) = self.outgoing.poll_send(stream, context)
        {
            return Err(self.lost(problem));
        }
        for _ in 0..READS_A_TURN {
            let Link::Up(stream) = &mut self.link else { return Ok(()) };
            match self.incoming.poll_receive(stream, context) {
                Poll::Pending => return Ok(()),
                Poll::Ready(received) => received.map_err(|problem| self.lost(problem))?,
            }
            self.read_replies(number, operations)?;
            if self.has_ended(number) {
                return Ok(());
            }
        }
        context.waker().wake_by_ref();
        Ok(())
    }

    #[inline]
    fn read_replies(&mut self, polled: u64, operations: &[Prepared]) -> Result<(), DriverError> {
        let mut at = 0;
        while at < self.incoming.unread().len() {
            let into = match self.calls.get_mut(self.ended) {
                None => return Err(self.lost("it sent a reply that nothing was asked for")),
                Some(Call::Waiting { request, .. }) => Some((&operations[request.operation].answer, &mut request.rows)),
                Some(_) => None,
            };
            match self.reader.read(self.incoming.unread(), &mut at, into).map_err(|problem| self.address.unreachable(problem))? {
                None => break,
                Some(Reply::Whole(outcome)) => self.end_next(polled, Outcome::Done(outcome)),
                Some(Reply::Refused(text)) => self.end_next(polled, refused(&text, &self.address)),
            }
        }
        self.incoming.consume(at);
        Ok(())
    }

    /// Ends the operation that is next, and wakes it if it is not the one that is being polled.
    #[inline]
    fn end_next(&mut self, polled: u64, outcome: Outcome) {
        let number = self.first + self.ended as u64;
        let call = &mut self.calls[self.ended];
        self.ended += 1;
        match std::mem::replace(call, Call::Fetched) {
            Call::Waiting { request, waker } => {
                *call = Call::Ended { request, outcome };
                waker.into_iter().filter(|_| number != polled).for_each(Waker::wake);
            }
            _ => self.forget_fetched(),
        }
    }

    #[inline]
    fn fetch(&mut self, number: u64) -> (Box<Request>, Outcome) {
        let place = self.place(number);
        let Call::Ended { request, outcome } = std::mem::replace(&mut self.calls[place], Call::Fetched) else {
            unreachable!("an operation is polled until it ended, and no longer")
        };
        self.forget_fetched();
        self.hand_over(number);
        (request, outcome)
    }

    #[inline]
    fn forget_fetched(&mut self) {
        while self.ended > 0 && matches!(self.calls.front(), Some(Call::Fetched)) {
            self.calls.pop_front();
            self.first += 1;
            self.ended -= 1;
        }
    }

    /// Wakes another operation to drive the connection, if the one that ended did so.
    #[inline]
    fn hand_over(&mut self, number: u64) {
        if self.driver != Some(number) {
            return;
        }
        self.driver = None;
        let waker = |call: &Call| match call {
            Call::Waiting { waker, .. } => waker.clone(),
            _ => None,
        };
        self.calls.range(self.ended..).find_map(waker).into_iter().for_each(Waker::wake);
    }

    /// Ends every operation in flight with an error.
    #[cold]
    fn lose(&mut self, error: DriverError, after_failure: bool, polled: u64) {
        self.link = Link::Down { after_failure };
        self.outgoing.clear();
        self.incoming.clear();
        self.reader = ReplyReader::default();
        self.gatherer = None;
        while self.in_flight() > 0 {
            self.end_next(polled, Outcome::Done(Err(error.clone())));
        }
    }

    /// Whether it is not connected.
    pub fn is_down(&self) -> bool {
        matches!(self.link, Link::Down { .. })
    }

    #[cold]
    fn lost(&self, problem: impl fmt::Display) -> DriverError {
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
