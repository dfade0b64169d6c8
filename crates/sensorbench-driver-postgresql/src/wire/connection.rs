//! A connection of a session: operations go in one behind the other, and their answers come in the same order.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use sensorbench_driver::{DriverError, Request};
use tokio::sync::Notify;
use tokio_postgres::Client;
use tokio_util::sync::ReusableBoxFuture;

use super::errors;
use super::prepared::{Failure, Prepared};
use super::target::Target;
use crate::statement::OperationStatement;

/// For so long after a cancellation it may be what ended a statement. It ends whatever the server executes when it arrives, and
/// sometimes the next statement as well: PostgreSQL signals the process and then its group (`signal_child` in postmaster.c).
const INTERRUPTS_COME_WITHIN: Duration = Duration::from_secs(10);

/// A request that comes back with how it ended.
pub type Answered = (Box<Request>, Result<(), DriverError>);

/// An operation on its way. It owns what it needs, so that it can be seen to its end when nobody waits for it any more. Its memory
/// serves one operation after the other: it is larger than what an allocator hands out quickly.
pub type Answering = ReusableBoxFuture<'static, Answered>;

/// A connection with every operation prepared.
pub struct Connection {
    target: Arc<Target>,
    client: Client,
    prepared: Vec<Prepared>,
    in_flight: AtomicUsize,
    pipeline: Mutex<Pipeline>,
    /// The operation at the head of the pipeline is another one, and it was given up.
    head_given_up: Notify,
    last_cancellation: Mutex<Option<Instant>>,
}

/// The operations in flight, in the order in which the server executes them.
#[derive(Default)]
struct Pipeline {
    /// Number of the operation at the head; they are numbered as they come.
    head: u64,
    /// For each, whether it was given up.
    given_up: VecDeque<bool>,
}

impl Pipeline {
    fn enter(&mut self) -> u64 {
        self.given_up.push_back(false);
        self.head + self.given_up.len() as u64 - 1
    }

    /// Notes that this operation is over, and with it all before it, which may not have been heard of yet.
    fn leave(&mut self, number: u64) {
        let over = (number + 1).saturating_sub(self.head);
        self.given_up.drain(..over as usize);
        self.head += over;
    }

    fn give_up(&mut self, number: u64) {
        let place = number.checked_sub(self.head);
        if let Some(given_up) = place.and_then(|place| self.given_up.get_mut(place as usize)) {
            *given_up = true;
        }
    }

    /// Number of the operation at the head if it was given up.
    fn given_up_head(&self) -> Option<u64> {
        (self.given_up.front() == Some(&true)).then_some(self.head)
    }
}

impl Connection {
    pub async fn open(target: &Arc<Target>, name: &str, operations: &[OperationStatement]) -> Result<Arc<Self>, DriverError> {
        let client = target.connect(name).await?;
        let mut prepared = Vec::with_capacity(operations.len());
        for operation in operations {
            prepared.push(Prepared::of(&client, target, operation).await?);
        }
        Ok(Arc::new(Self {
            target: target.clone(),
            client,
            prepared,
            in_flight: AtomicUsize::new(0),
            pipeline: Mutex::default(),
            head_given_up: Notify::new(),
            last_cancellation: Mutex::default(),
        }))
    }

    /// Number of operations that wait for their answers.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// True when the server, or the network, ended it.
    pub fn is_lost(&self) -> bool {
        self.client.is_closed()
    }

    /// Refuses an operation whose values its parameters cannot hold.
    #[inline]
    pub fn check(&self, request: &Request) -> Result<(), DriverError> {
        self.prepared[request.operation].check(&request.parameters)
    }

    /// Puts an operation behind those in flight. It is sent when the future is polled for the first time, which must be before the
    /// next one is started. An operation that a cancellation of ours ended returns [`DriverError::Cancelled`].
    #[inline]
    pub fn start(self: &Arc<Self>, mut request: Box<Request>) -> (u64, impl Future<Output = Answered> + Send + use<>) {
        let number = self.pipeline().enter();
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        let connection = self.clone();
        let answering = async move {
            let Request { operation, parameters, rows } = &mut *request;
            let answered = connection.prepared[*operation].answer(&connection.client, parameters, rows).await;
            connection.leave(number);
            (request, answered.map_err(|failure| connection.error(failure)))
        };
        (number, answering)
    }

    fn leave(&self, number: u64) {
        let mut pipeline = self.pipeline();
        pipeline.leave(number);
        if pipeline.given_up_head().is_some() {
            self.head_given_up.notify_one();
        }
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    /// Notes that nobody waits for an operation any more.
    pub fn give_up(&self, number: u64) {
        let mut pipeline = self.pipeline();
        pipeline.give_up(number);
        if pipeline.given_up_head().is_some() {
            self.head_given_up.notify_one();
        }
    }

    /// Waits until the server executes an operation that was given up, another one than `but_not`.
    pub async fn next_given_up_head(&self, but_not: Option<u64>) -> u64 {
        loop {
            let head = self.pipeline().given_up_head();
            match head {
                Some(head) if Some(head) != but_not => return head,
                _ => self.head_given_up.notified().await,
            }
        }
    }

    /// Asks the server to end the operation that it executes.
    pub async fn cancel(&self) {
        *self.last_cancellation() = Some(Instant::now());
        self.target.cancel(self.client.cancel_token()).await;
    }

    fn error(&self, failure: Failure) -> DriverError {
        match failure {
            Failure::Data(error) => error,
            Failure::Library(error) if errors::is_cancellation(&error) && self.was_cancelled_lately() => DriverError::Cancelled,
            Failure::Library(error) => errors::statement_error(&self.target.place, error),
        }
    }

    fn was_cancelled_lately(&self) -> bool {
        self.last_cancellation().is_some_and(|time| time.elapsed() < INTERRUPTS_COME_WITHIN)
    }

    fn last_cancellation(&self) -> MutexGuard<'_, Option<Instant>> {
        self.last_cancellation.lock().expect("nothing panics under this lock")
    }

    fn pipeline(&self) -> MutexGuard<'_, Pipeline> {
        self.pipeline.lock().expect("nothing panics under this lock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_moves_on_with_every_answer() {
        let mut pipeline = Pipeline::default();
        assert_eq!([pipeline.enter(), pipeline.enter(), pipeline.enter()], [0, 1, 2]);
        pipeline.give_up(1);
        assert_eq!(pipeline.given_up_head(), None);
        pipeline.leave(0);
        assert_eq!(pipeline.given_up_head(), Some(1));
        pipeline.leave(2);
        assert_eq!((pipeline.given_up_head(), pipeline.enter()), (None, 3));
    }

    #[test]
    fn news_that_come_late_change_nothing() {
        let mut pipeline = Pipeline::default();
        (0..3).for_each(|_| {
            pipeline.enter();
        });
        pipeline.leave(1);
        pipeline.leave(0);
        pipeline.give_up(1);
        pipeline.give_up(7);
        assert_eq!((pipeline.head, pipeline.given_up.make_contiguous()), (2, &mut [false][..]));
    }
}
