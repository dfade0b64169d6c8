//! The connections of a session: which one the next operation goes to, and what becomes of one that was lost, or on which an
//! operation was given up.
//!
//! An operation that is given up (timed out, cancelled) is still executed by the server. No other operation is queued after it:
//! its connection leaves the pool, the server is asked to cancel it, and the connection comes back when that is done. Should it
//! take longer, another connection takes its place.

use std::hash::{BuildHasher, RandomState};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use futures::StreamExt;
use futures::future::try_join_all;
use futures::stream::FuturesUnordered;
use sensorbench_driver::DriverError;
use tokio::runtime::{Builder, Handle};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{sleep, timeout};

use super::connection::{Answering, Connection};
use super::errors;
use super::target::{CONTROL, Target};
use crate::statement::OperationStatement;

/// How long a connection is waited for whose operation is being cancelled, before another one is opened as well.
const HEAD_START: Duration = Duration::from_millis(20);
/// After this long without an effect a cancellation is sent again: it does nothing if it arrives before the statement does.
const CANCEL_AGAIN_AFTER: Duration = Duration::from_millis(200);
/// After this long a connection is closed whose operation cannot be cancelled.
const ABANDON_AFTER: Duration = Duration::from_secs(30);
/// Pause between two attempts to reach a server that is away.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// How long the end of a session takes at most if it leaves something to be ended at the server.
const ENDING_TIMEOUT: Duration = Duration::from_secs(2);

/// Connections that serve one engine thread.
pub struct Pool {
    target: Arc<Target>,
    /// What the server calls its connections, which nobody else's are called.
    name: String,
    operations: Arc<[OperationStatement]>,
    /// Whether there are more operations in flight than connections.
    shares: bool,
    /// Where connections are kept going and replaced.
    runtime: Handle,
    state: Mutex<State>,
    /// A connection came in, or could not be opened.
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// Connections that take operations.
    ready: Vec<Arc<Connection>>,
    /// Connections on which an operation was given up that is not over yet.
    recovering: Vec<Recovering>,
    /// How often opening a connection failed, and why it did last.
    failures: u64,
    last_failure: Option<DriverError>,
}

struct Recovering {
    connection: Arc<Connection>,
    given_up: UnboundedSender<Answering>,
}

impl Pool {
    /// Opens this many connections, inside the runtime that will poll the operations.
    pub async fn open(
        target: Arc<Target>,
        operations: Arc<[OperationStatement]>,
        connections: usize,
        shares: bool,
    ) -> Result<Arc<Self>, DriverError> {
        let name = format!("{CONTROL}-{:016x}", RandomState::new().hash_one(()));
        let ready = try_join_all((0..connections).map(|_| Connection::open(&target, &name, &operations, shares))).await?;
        Ok(Arc::new(Self {
            target,
            name,
            operations,
            shares,
            runtime: Handle::current(),
            state: Mutex::new(State { ready, ..State::default() }),
            changed: Notify::new(),
        }))
    }

    /// The connection with the fewest operations in flight. Where there is none at the moment, the next one that comes in, or the
    /// reason why it does not.
    #[inline]
    pub async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, DriverError> {
        match self.idlest() {
            Some(connection) => Ok(connection),
            None => self.next_connection().await,
        }
    }

    async fn next_connection(self: &Arc<Self>) -> Result<Arc<Connection>, DriverError> {
        let failures = self.state().failures;
        loop {
            let changed = self.changed.notified();
            if let Some(connection) = self.idlest() {
                return Ok(connection);
            }
            if let Some(error) = self.state().failure_since(failures) {
                return Err(error);
            }
            changed.await;
        }
    }

    fn idlest(self: &Arc<Self>) -> Option<Arc<Connection>> {
        let mut state = self.state();
        loop {
            let place = state.idlest()?;
            if !state.ready[place].is_lost() {
                return Some(state.ready[place].clone());
            }
            state.ready.swap_remove(place);
            self.runtime.spawn(open_another(Arc::downgrade(self)));
        }
    }

    /// Takes over an operation that nobody waits for any more.
    pub fn give_up(self: &Arc<Self>, answering: Answering) {
        let Some((connection, number)) = answering.place() else { return };
        let connection = connection.clone();
        connection.give_up(number);
        let mut state = self.state();
        let is_this = |other: &Arc<Connection>| Arc::ptr_eq(other, &connection);
        if let Some(recovering) = state.recovering.iter().find(|recovering| is_this(&recovering.connection)) {
            // It cannot be sent where the connection was abandoned.
            let _ = recovering.given_up.send(answering);
            return;
        }
        let (given_up, receiver) = unbounded_channel();
        let _ = given_up.send(answering);
        state.recovering.push(Recovering { connection: connection.clone(), given_up });
        let place = state.ready.iter().position(is_this);
        let pool = Arc::downgrade(self);
        match place {
            Some(place) => {
                state.ready.swap_remove(place);
                self.runtime.spawn(recover(pool, connection, receiver));
            }
            None => {
                self.runtime.spawn(see_off(pool, connection, receiver));
            }
        }
    }

    /// Ends what the server still executes. There may be more given up in a pipeline than is worth cancelling one by one, so the
    /// server is asked to end the connections. The runtime may be gone right after this, so another one does it.
    pub fn close(&self) {
        let state = std::mem::take(&mut *self.state());
        let Some(end_connections) = self.target.dialect.end_connections().filter(|_| !state.recovering.is_empty()) else {
            return;
        };
        let (target, name) = (self.target.clone(), self.name.clone());
        let end = move || {
            let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
            let ended = async {
                let client = target.connect(CONTROL).await?;
                client.execute(end_connections, &[&name]).await.map_err(|error| errors::lost(&target.place, &error))
            };
            // A server that cannot be reached has ended them itself.
            let _ = runtime.block_on(async { timeout(ENDING_TIMEOUT, ended).await });
        };
        let _ = std::thread::Builder::new().name("end".to_owned()).spawn(end).map(|thread| thread.join());
    }

    fn add(&self, connection: Arc<Connection>) {
        self.state().ready.push(connection);
        self.changed.notify_waiters();
    }

    fn failed(&self, error: DriverError) {
        let mut state = self.state();
        state.failures += 1;
        state.last_failure = Some(error);
        drop(state);
        self.changed.notify_waiters();
    }

    /// Notes that nothing that was given up is left on a connection, which takes operations again if it is free.
    fn recovered(&self, connection: &Arc<Connection>, is_free: bool) {
        self.state().recovering.retain(|recovering| !Arc::ptr_eq(&recovering.connection, connection));
        if is_free {
            self.add(connection.clone());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics under this lock")
    }
}

impl State {
    #[inline]
    fn idlest(&self) -> Option<usize> {
        let idle = self.ready.iter().position(|connection| connection.in_flight() == 0);
        idle.or_else(|| (0..self.ready.len()).min_by_key(|place| self.ready[*place].in_flight()))
    }

    /// Why there is no connection, unless one may still come back.
    fn failure_since(&self, failures: u64) -> Option<DriverError> {
        self.last_failure.clone().filter(|_| self.failures > failures && self.recovering.is_empty())
    }
}

/// Opens a connection, trying until the server takes one or the session is over.
async fn open_another(pool: Weak<Pool>) {
    while let Some(pool) = pool.upgrade() {
        match Connection::open(&pool.target, &pool.name, &pool.operations, pool.shares).await {
            Ok(connection) => return pool.add(connection),
            Err(error) => pool.failed(error),
        }
        drop(pool);
        sleep(RETRY_PAUSE).await;
    }
}

/// What became of a connection on which an operation was given up.
#[derive(PartialEq)]
enum Fate {
    /// It takes operations again.
    Free,
    /// It is of no use any more.
    Lost,
    /// It took so long that another one takes its place.
    Replaced,
}

/// Sees to it that the pool gets a connection back for one on which an operation was given up.
async fn recover(pool: Weak<Pool>, connection: Arc<Connection>, given_up: UnboundedReceiver<Answering>) {
    let mut ended = pin!(timeout(ABANDON_AFTER, end_given_up(&connection, given_up)));
    let replaced = async {
        sleep(HEAD_START).await;
        open_another(pool.clone()).await;
    };
    let fate = tokio::select! {
        ended = &mut ended => if ended.is_ok() && !connection.is_lost() { Fate::Free } else { Fate::Lost },
        () = replaced => {
            let _ = ended.await;
            Fate::Replaced
        }
    };
    if let Some(pool) = pool.upgrade() {
        pool.recovered(&connection, fate == Fate::Free);
    }
    if fate == Fate::Lost {
        open_another(pool).await;
    }
}

/// Ends operations on a connection that was lost or replaced before.
async fn see_off(pool: Weak<Pool>, connection: Arc<Connection>, given_up: UnboundedReceiver<Answering>) {
    let _ = timeout(ABANDON_AFTER, end_given_up(&connection, given_up)).await;
    if let Some(pool) = pool.upgrade() {
        pool.recovered(&connection, false);
    }
}

/// Has the server end the operations that were given up, each when it is its turn.
async fn end_given_up(connection: &Connection, mut given_up: UnboundedReceiver<Answering>) {
    let mut ending = FuturesUnordered::new();
    let mut cancelled = None;
    loop {
        tokio::select! {
            biased;
            Some(answering) = given_up.recv() => ending.push(answering),
            Some(_) = ending.next() => if ending.is_empty() && given_up.is_empty() { return },
            head = connection.next_given_up_head(cancelled) => {
                connection.cancel().await;
                cancelled = Some(head);
            }
            () = sleep(CANCEL_AGAIN_AFTER) => cancelled = None,
        }
    }
}
