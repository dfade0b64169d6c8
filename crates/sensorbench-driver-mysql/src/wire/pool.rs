//! The connections of a session. Each serves one operation at a time; those that are lost, or cannot be cleared of a cancelled
//! operation, are replaced in the background while the others continue.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::future::try_join_all;
use futures::pin_mut;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Statement as PreparedStatement};
use sensorbench_driver::{DriverError, Request};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::link::Link;
use super::places::with_place;
use super::statement::Statement;

/// How long the server may take to cancel a statement, before another connection is opened in place of the one that it is on.
const GRACE: Duration = Duration::from_millis(20);

/// How long a server may take over a KILL, before the connection that it was sent on counts as lost.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);

/// How long to wait before a lost server, or a cancellation without effect, is tried again.
const PAUSE: Duration = Duration::from_millis(100);

/// What every connection of a session is made from.
pub struct Setup {
    pub link: Arc<Link>,
    pub statements: Vec<Statement>,
}

/// A connection on which all statements are prepared.
struct Connection {
    inner: Conn,
    /// In the order of the setup's statements.
    prepared: Vec<PreparedStatement>,
}

impl Connection {
    async fn open(setup: &Setup) -> Result<Self, DriverError> {
        let mut inner = setup.link.connect_inside().await?;
        let mut prepared = Vec::with_capacity(setup.statements.len());
        for statement in &setup.statements {
            let answer = inner.prep(statement.text.as_str()).await;
            let answer = answer.map_err(|error| with_place(statement.path(), setup.link.error(error)))?;
            statement.check_columns(answer.num_columns().into())?;
            prepared.push(answer);
        }
        Ok(Self { inner, prepared })
    }

    async fn execute(&mut self, setup: &Setup, request: &mut Request) -> Result<(), DriverError> {
        let Request { operation, parameters, rows } = request;
        let statement = &setup.statements[*operation];
        let parameters = statement.bind(parameters)?;
        let mut outcome = Ok(());
        let executed = async {
            let answer = self.inner.exec_iter(&self.prepared[*operation], parameters).await?;
            // The answer is read to its end even when a value is not as declared, so that the connection is of use again.
            let decode = |row| {
                if outcome.is_ok() {
                    outcome = statement.decode(&row, rows);
                }
            };
            answer.for_each_and_drop(decode).await
        };
        executed.await.map_err(|error| setup.link.error(error))?;
        outcome
    }
}

/// The connections of a session.
pub struct Pool {
    setup: Arc<Setup>,
    /// How many there should be.
    connections: usize,
    state: Mutex<State>,
    /// The connection over which statements on the others are cancelled.
    side: tokio::sync::Mutex<Option<Conn>>,
}

#[derive(Default)]
struct State {
    /// Connections that nobody uses.
    free: Vec<Connection>,
    /// Operations that wait for a connection, the longest first.
    waiting: VecDeque<oneshot::Sender<Result<Lease, DriverError>>>,
    /// How many connections there are, free or not.
    open: usize,
    /// Connections whose operations are being cancelled.
    called_off: Vec<u32>,
    /// How many of these have been replaced already.
    overdue: usize,
}

impl Pool {
    pub async fn open(setup: Arc<Setup>, connections: usize) -> Result<Arc<Self>, DriverError> {
        let side = setup.link.connect().await?;
        let free = try_join_all((0..connections).map(|_| Connection::open(&setup))).await?;
        let state = State { free, open: connections, ..State::default() };
        Ok(Arc::new(Self { setup, connections, state: Mutex::new(state), side: tokio::sync::Mutex::new(Some(side)) }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics under this lock")
    }

    /// A connection that is free now.
    #[inline]
    pub fn free_connection(self: &Arc<Self>) -> Option<Lease> {
        let connection = self.state().free.pop()?;
        Some(Lease::of(self.clone(), connection))
    }

    /// A connection that is free, or the next one that becomes free; an error when there is none and none can be made.
    pub async fn next_connection(self: &Arc<Self>) -> Result<Lease, DriverError> {
        let (give, given) = oneshot::channel();
        {
            let mut state = self.state();
            if let Some(connection) = state.free.pop() {
                return Ok(Lease::of(self.clone(), connection));
            }
            while state.waiting.front().is_some_and(oneshot::Sender::is_closed) {
                state.waiting.pop_front();
            }
            state.waiting.push_back(give);
        }
        given.await.unwrap_or_else(|_| Err(self.setup.link.connection_error("the session has ended".to_owned())))
    }

    /// Hands a connection to whoever waits longest, or keeps it.
    fn give(self: &Arc<Self>, connection: Connection) {
        let mut lease = Lease::of(self.clone(), connection);
        loop {
            let waiting = {
                let mut state = self.state();
                match state.waiting.pop_front() {
                    Some(waiting) => waiting,
                    None => return state.free.extend(lease.connection.take()),
                }
            };
            match waiting.send(Ok(lease)) {
                Err(Ok(unwanted)) => lease = unwanted,
                _ => return,
            }
        }
    }

    /// Makes a connection in place of one that is lost.
    fn replace(self: &Arc<Self>) {
        self.state().open -= 1;
        let (pool, setup) = (Arc::downgrade(self), self.setup.clone());
        spawn(async move {
            loop {
                let opened = Connection::open(&setup).await;
                let Some(pool) = pool.upgrade() else { return };
                match opened {
                    Ok(connection) => {
                        pool.state().open += 1;
                        return pool.give(connection);
                    }
                    Err(error) => pool.disappoint(&error),
                }
                drop(pool);
                sleep(PAUSE).await;
            }
        });
    }

    /// Fails whoever waits for a connection: there will be none for now.
    fn disappoint(&self, error: &DriverError) {
        let waiting = {
            let mut state = self.state();
            if state.open > 0 { VecDeque::new() } else { std::mem::take(&mut state.waiting) }
        };
        for waiting in waiting {
            // Nobody listens where the operation was cancelled.
            let _ = waiting.send(Err(error.clone()));
        }
    }

    /// Cancels the statement of an operation, whose rest gives back the connection. Where that takes longer than a moment, a connection
    /// is opened in its place, so that no other operation waits for it.
    pub fn call_off(self: &Arc<Self>, connection_id: u32, rest: impl Future<Output = Lease> + Send + 'static) {
        self.state().called_off.push(connection_id);
        let pool = self.clone();
        spawn(async move {
            let cleared = pool.cleared(connection_id, rest);
            pin_mut!(cleared);
            if timeout(GRACE, &mut cleared).await.is_err() {
                if pool.may_exceed() {
                    pool.replace();
                    cleared.await.close();
                    pool.state().overdue -= 1;
                } else {
                    cleared.await;
                }
            }
            pool.state().called_off.retain(|id| *id != connection_id);
        });
    }

    /// The connection of an operation, when that has ended because it is cancelled again and again: what reaches the server before it
    /// began with the statement is without effect.
    async fn cleared(&self, connection_id: u32, rest: impl Future<Output = Lease>) -> Lease {
        pin_mut!(rest);
        loop {
            self.cancel(connection_id).await;
            if let Ok(mut lease) = timeout(PAUSE, &mut rest).await {
                lease.clear().await;
                return lease;
            }
        }
    }

    /// Asks the server to cancel what is running on a connection.
    async fn cancel(&self, connection_id: u32) {
        let link = &self.setup.link;
        let mut side = self.side.lock().await;
        // Taken out, and put back when it was of use: the next attempt makes another one.
        let connection = match side.take() {
            Some(connection) => Ok(connection),
            None => link.connect().await,
        };
        let Ok(mut connection) = connection else { return };
        if !link.leads_to_several() {
            let kill = connection.query_drop(link.dialect.kill_statement(connection_id));
            // A refusal says that there is no such connection any more.
            let (Ok(Ok(())) | Ok(Err(Error::Server(_)))) = timeout(CANCEL_LIMIT, kill).await else { return };
        }
        *side = Some(connection);
    }

    /// Whether one more connection may be opened beside one whose statement does not end: never more than there are anyway, so that a
    /// server that hangs is not flooded.
    fn may_exceed(&self) -> bool {
        let mut state = self.state();
        let may = state.overdue < self.connections;
        state.overdue += usize::from(may);
        may
    }

    /// Ends what is still being cancelled when the session ends, and with it everything that the session's runtime would have done.
    pub fn end_called_off(&self) {
        let called_off = std::mem::take(&mut self.state().called_off);
        if called_off.is_empty() {
            return;
        }
        let link = self.setup.link.clone();
        let kill_all = async move {
            let mut connection = link.connect().await?;
            for id in called_off.into_iter().filter(|_| !link.leads_to_several()) {
                // An error says that the connection is gone already.
                let _ = connection.query_drop(link.dialect.kill_connection(id)).await;
            }
            connection.disconnect().await.map_err(|error| link.error(error))
        };
        let kill = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
            runtime.block_on(async { timeout(CANCEL_LIMIT, kill_all).await }).ok()
        };
        // A thread of its own, because a runtime cannot be entered from within another. If it fails, nobody waits for the outcome.
        let _ = std::thread::spawn(kill).join();
    }
}

/// Without a runtime, the session is ending, and there is nothing to be done in the background any more.
fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(task);
    }
}

/// A connection that is used by one operation, and goes back to its pool afterwards, or is replaced when it is of no use any more.
pub struct Lease {
    pool: Arc<Pool>,
    /// None when it has gone back.
    connection: Option<Connection>,
    /// False from the beginning of a statement until its answer is read.
    is_clean: bool,
}

impl Lease {
    fn of(pool: Arc<Pool>, connection: Connection) -> Self {
        Self { pool, connection: Some(connection), is_clean: true }
    }

    pub fn connection_id(&self) -> u32 {
        self.connection.as_ref().map_or(0, |connection| connection.inner.id())
    }

    pub async fn execute(&mut self, request: &mut Request) -> Result<(), DriverError> {
        let Some(connection) = &mut self.connection else { unreachable!("a lease has its connection until it is dropped") };
        self.is_clean = false;
        let outcome = connection.execute(&self.pool.setup, request).await;
        self.is_clean = !matches!(outcome, Err(DriverError::Connection(_)));
        outcome
    }

    /// Gives the connection up.
    fn close(mut self) {
        self.connection = None;
    }

    /// A cancellation that came too late would meet the next statement: let it be one that does nothing.
    async fn clear(&mut self) {
        let Some(connection) = self.connection.as_mut().filter(|_| self.is_clean) else { return };
        self.is_clean = false;
        self.is_clean = matches!(connection.inner.query_drop("DO 0").await, Ok(()) | Err(Error::Server(_)));
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        match self.connection.take() {
            Some(connection) if self.is_clean => self.pool.give(connection),
            Some(_) => self.pool.replace(),
            None => {}
        }
    }
}
