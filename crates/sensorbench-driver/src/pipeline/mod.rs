//! Many operations in flight on one connection, whose replies come in the order of their requests.
//!
//! It has no task of its own: of the operations in flight, whoever is polled with a reason to send or to receive does so for all, and reads the
//! replies of the others into their requests. That one is the *driver*; when it ends, another is woken to take its place. A reply to an operation that
//! was dropped is passed over.

mod bytes;

use std::collections::VecDeque;
use std::fmt::Display;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite};

pub use self::bytes::{Incoming, Outgoing};
use crate::{DriverError, Request};

/// After this many reads the other operations of the thread get their turn, even if there is more to read.
const READS_A_TURN: usize = 4;

/// A connection that is logged in: encrypted or not.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// How replies are read. They may arrive in pieces.
pub trait Replies {
    /// How an operation ended.
    type Outcome;

    /// Reads on at `at`, which moves past what was read, into the request that the reply is for. Returns None when more bytes are needed. Without
    /// a request nobody wants the reply.
    ///
    /// # Errors
    /// What arrived cannot be understood: the connection is of no use any more.
    fn read(&mut self, bytes: &[u8], at: &mut usize, request: Option<&mut Request>)
    -> Result<Option<Self::Outcome>, DriverError>;

    /// Reads on at `at` where no reply is awaited. Returns whether something was read; false when more bytes are needed.
    ///
    /// # Errors
    /// Nothing may come unasked.
    #[cold]
    fn read_unasked(&mut self, _bytes: &[u8], _at: &mut usize) -> Result<bool, DriverError> {
        Err(self.lost(&"it sent a reply that nothing was asked for"))
    }

    /// The error for a connection that was lost.
    fn lost(&self, problem: &dyn Display) -> DriverError;
}

/// What an operation that is polled has to do.
#[derive(Debug, PartialEq)]
pub enum Turn {
    /// It ended: [`Pipeline::fetch`] it.
    Ended,
    /// It has to send and receive for all: [`Pipeline::exchange`].
    Drives,
    /// It will be woken.
    Waits,
}

/// The operations in flight on a connection.
pub struct Pipeline<O> {
    outgoing: Outgoing,
    incoming: Incoming,
    /// Operations from number `first` on, in the order of their requests.
    calls: VecDeque<Call<O>>,
    first: u64,
    /// How many of `calls`, from the front, have ended.
    ended: usize,
    /// How many of `calls`, from the back, have requests of which nothing or not all was sent.
    unsent: usize,
    /// Whether requests that are there at the same time are sent together.
    gathers: bool,
    gatherer: Option<Gatherer>,
    /// Whose waker the connection has.
    driver: Option<u64>,
}

/// Who sends the requests that are being gathered.
struct Gatherer {
    number: u64,
    /// Whether the others that were ready had their turn.
    has_waited: bool,
}

enum Call<O> {
    /// The reply is awaited.
    Waiting { request: Box<Request>, waker: Option<Waker> },
    /// The reply is awaited, but nobody wants it.
    Dropped,
    /// The reply was read, and is not fetched yet.
    Ended { request: Box<Request>, outcome: O },
    /// Nothing is left to do.
    Fetched,
}

impl<O> Pipeline<O> {
    /// One with nothing in flight. If it `gathers`, requests that are there at the same time are sent together.
    pub fn new(gathers: bool) -> Self {
        Self {
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            calls: VecDeque::new(),
            first: 0,
            ended: 0,
            unsent: 0,
            gathers,
            gatherer: None,
            driver: None,
        }
    }

    /// Number of operations whose replies are awaited.
    #[inline]
    pub fn in_flight(&self) -> usize {
        self.calls.len() - self.ended
    }

    /// Number of the first operation whose reply is awaited, or that the next one will have.
    #[inline]
    pub fn head(&self) -> u64 {
        self.first + self.ended as u64
    }

    /// Whether nothing was sent of what is in flight: the connection was idle until now.
    #[inline]
    pub fn begins(&self) -> bool {
        self.unsent == self.in_flight() && self.outgoing.is_untouched()
    }

    /// Takes an operation on, whose request to the server `write` appends; gives it a number.
    #[inline]
    pub fn submit(&mut self, request: Box<Request>, write: impl FnOnce(&Request, &mut Vec<u8>)) -> u64 {
        let number = self.first + self.calls.len() as u64;
        if self.gathers && self.outgoing.bytes.is_empty() {
            self.gatherer = Some(Gatherer { number, has_waited: false });
        }
        write(&request, &mut self.outgoing.bytes);
        self.unsent += 1;
        self.calls.push_back(Call::Waiting { request, waker: None });
        number
    }

    /// Sends a request before the next one whose reply nobody wants.
    pub fn precede(&mut self, bytes: &[u8]) {
        self.outgoing.bytes.extend_from_slice(bytes);
        self.unsent += 1;
        self.calls.push_back(Call::Dropped);
    }

    /// What an operation that is polled has to do.
    #[inline]
    pub fn turn(&mut self, number: u64, context: &mut Context) -> Turn {
        if self.has_ended(number) {
            return Turn::Ended;
        }
        self.remember(number, context.waker());
        if self.is_gathering(number) {
            context.waker().wake_by_ref();
            return Turn::Waits;
        }
        if !self.must_drive(number) {
            return Turn::Waits;
        }
        self.driver = Some(number);
        Turn::Drives
    }

    /// Sends and receives what can be without waiting, for the operation that is polled and all others.
    ///
    /// # Errors
    /// The connection is of no use any more: [`Pipeline::end_all`].
    #[inline]
    pub fn exchange<R: Replies<Outcome = O> + ?Sized>(
        &mut self,
        number: u64,
        stream: &mut Box<dyn Stream>,
        replies: &mut R,
        context: &mut Context,
    ) -> Result<(), DriverError> {
        if self.gatherer.is_none()
            && let Poll::Ready(sent) = self.outgoing.poll_send(stream, context)
        {
            sent.map_err(|problem| replies.lost(&problem))?;
            self.unsent = 0;
        }
        for _ in 0..READS_A_TURN {
            match self.incoming.poll_receive(stream, context) {
                Poll::Pending => return Ok(()),
                Poll::Ready(received) => received.map_err(|problem| replies.lost(&problem))?,
            }
            self.read_replies(number, replies)?;
            if self.has_ended(number) {
                return Ok(());
            }
        }
        context.waker().wake_by_ref();
        Ok(())
    }

    /// What arrived and was not read, for a protocol in which something may come unasked.
    #[inline]
    pub fn incoming(&mut self) -> &mut Incoming {
        &mut self.incoming
    }

    /// The request of an operation that ended, and how. It must not be asked about again then.
    #[inline]
    pub fn fetch(&mut self, number: u64) -> (Box<Request>, O) {
        let place = self.place(number);
        let Call::Ended { request, outcome } = std::mem::replace(&mut self.calls[place], Call::Fetched) else {
            unreachable!("an operation is polled until it ended, and no longer")
        };
        self.forget_fetched();
        self.hand_over(number);
        (request, outcome)
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

    /// Ends every operation in flight alike, and forgets what was not sent or not read. All but the one that is polled are woken.
    #[cold]
    pub fn end_all(&mut self, polled: u64, mut outcome: impl FnMut() -> O) {
        self.outgoing.clear();
        self.incoming.clear();
        self.gatherer = None;
        self.unsent = 0;
        while self.in_flight() > 0 {
            self.end_next(polled, outcome());
        }
    }

    #[inline]
    fn place(&self, number: u64) -> usize {
        (number - self.first) as usize
    }

    /// Whether an operation ended.
    #[inline]
    pub fn has_ended(&self, number: u64) -> bool {
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

    /// Whether to leave time to the others that are ready now, which may add their requests.
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
    fn read_replies<R: Replies<Outcome = O> + ?Sized>(&mut self, polled: u64, replies: &mut R) -> Result<(), DriverError> {
        let mut at = 0;
        while at < self.incoming.unread().len() {
            let request = match self.calls.get_mut(self.ended) {
                None if replies.read_unasked(self.incoming.unread(), &mut at)? => continue,
                None => break,
                Some(Call::Waiting { request, .. }) => Some(&mut **request),
                Some(_) => None,
            };
            match replies.read(self.incoming.unread(), &mut at, request)? {
                None => break,
                Some(outcome) => self.end_next(polled, outcome),
            }
        }
        self.incoming.consume(at);
        Ok(())
    }

    /// Ends the operation that is next, and wakes it if it is not the one that is being polled.
    #[inline]
    fn end_next(&mut self, polled: u64, outcome: O) {
        let number = self.head();
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
        let waker = |call: &Call<O>| match call {
            Call::Waiting { waker, .. } => waker.clone(),
            _ => None,
        };
        self.calls.range(self.ended..).find_map(waker).into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::{Pin, pin};

    use futures::future::{join, join_all};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    /// Requests and replies have one byte each; the reply to a request that was dropped is read without one.
    #[derive(Default)]
    struct Bytes(Vec<(u8, bool)>);

    impl Replies for Bytes {
        type Outcome = Result<u8, DriverError>;

        fn read(
            &mut self,
            bytes: &[u8],
            at: &mut usize,
            request: Option<&mut Request>,
        ) -> Result<Option<Self::Outcome>, DriverError> {
            let Some(byte) = bytes.get(*at) else { return Ok(None) };
            *at += 1;
            self.0.push((*byte, request.is_some()));
            Ok(Some(Ok(*byte)))
        }

        fn lost(&self, problem: &dyn Display) -> DriverError {
            DriverError::Connection(problem.to_string())
        }
    }

    /// A connection as a driver has it.
    struct Connected {
        stream: Box<dyn Stream>,
        pipeline: Pipeline<Result<u8, DriverError>>,
        replies: Bytes,
    }

    impl Connected {
        fn to(stream: impl Stream + 'static, gathers: bool) -> std::cell::RefCell<Self> {
            std::cell::RefCell::new(Self {
                stream: Box::new(stream),
                pipeline: Pipeline::new(gathers),
                replies: Bytes::default(),
            })
        }

        fn submit(&mut self, byte: u8) -> u64 {
            self.pipeline.submit(Box::default(), |_, bytes| bytes.push(byte))
        }

        fn poll(&mut self, number: u64, context: &mut Context) -> Poll<Result<u8, DriverError>> {
            match self.pipeline.turn(number, context) {
                Turn::Waits => return Poll::Pending,
                Turn::Drives => {
                    if let Err(error) = self.pipeline.exchange(number, &mut self.stream, &mut self.replies, context) {
                        self.pipeline.end_all(number, || Err(error.clone()));
                    }
                    if !self.pipeline.has_ended(number) {
                        return Poll::Pending;
                    }
                }
                Turn::Ended => {}
            }
            Poll::Ready(self.pipeline.fetch(number).1)
        }
    }

    #[tokio::test]
    async fn replies_reach_their_requests_and_what_comes_together_is_sent_together() {
        let (ours, mut theirs) = duplex(1024);
        let connected = Connected::to(ours, true);
        let numbers: Vec<u64> = (0..20).map(|byte| connected.borrow_mut().submit(byte)).collect();
        let asking = join_all(numbers.iter().map(|number| poll_fn(|context| connected.borrow_mut().poll(*number, context))));
        let answering = async {
            let mut bytes = [0; 64];
            let received = theirs.read(&mut bytes).await.unwrap();
            // In two pieces: whoever drives when the first one comes ends with it, and another one continues.
            theirs.write_all(&bytes[..7]).await.unwrap();
            tokio::task::yield_now().await;
            theirs.write_all(&bytes[7..received]).await.unwrap();
            received
        };
        let (replies, received) = join(asking, answering).await;
        assert_eq!(received, 20, "in one piece");
        assert_eq!(replies.into_iter().map(Result::unwrap).collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
        assert_eq!((connected.borrow().pipeline.in_flight(), connected.borrow().pipeline.head()), (0, 20));
    }

    async fn is_pending<T>(mut future: Pin<&mut impl Future<Output = T>>) -> bool {
        poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await
    }

    #[tokio::test]
    async fn an_operation_that_is_given_up_keeps_its_place_and_hands_over() {
        let (ours, mut theirs) = duplex(1024);
        let connected = Connected::to(ours, false);
        let first = connected.borrow_mut().submit(1);
        let second = connected.borrow_mut().submit(2);
        let mut waiting = pin!(poll_fn(|context| connected.borrow_mut().poll(second, context)));
        {
            let mut driving = pin!(poll_fn(|context| connected.borrow_mut().poll(first, context)));
            assert!(is_pending(driving.as_mut()).await && is_pending(waiting.as_mut()).await);
        }
        connected.borrow_mut().pipeline.abandon(first);
        let (reply, ()) = join(waiting, async { theirs.write_all(&[1, 2]).await.unwrap() }).await;
        assert_eq!(reply.unwrap(), 2);
        assert_eq!(connected.borrow().replies.0, [(1, false), (2, true)]);
    }

    #[tokio::test]
    async fn a_loss_ends_all_and_an_unexpected_reply_is_one() {
        for sent in [&[][..], &[1, 2, 3]] {
            let (ours, mut theirs) = duplex(1024);
            let connected = Connected::to(ours, false);
            let first = connected.borrow_mut().submit(1);
            let second = connected.borrow_mut().submit(2);
            assert!(connected.borrow().pipeline.begins());
            theirs.write_all(sent).await.unwrap();
            if sent.is_empty() {
                drop(theirs);
            }
            let of = |number| {
                poll_fn({
                    let connected = &connected;
                    move |context| connected.borrow_mut().poll(number, context)
                })
            };
            let (one, two) = join(of(first), of(second)).await;
            match sent {
                [] => assert!(one.is_err() && two.is_err()),
                // Both were answered before the third came.
                _ => assert_eq!((one.unwrap(), two.unwrap()), (1, 2)),
            }
        }
    }
}
