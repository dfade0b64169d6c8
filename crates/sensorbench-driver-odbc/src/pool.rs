//! The connections of a run. Each serves one operation at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sensorbench_driver::{Deadline, DriverError, Lender, Request};

use crate::link::Link;
use crate::odbc::{Connection, Running};
use crate::operation_statement::OperationStatement;
use crate::prepared::Prepared;

/// How often limits are looked at: the most by which an operation outlasts its own before it is called off.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// Connections with the statements of the run.
pub struct Pool {
    link: Arc<Link>,
    operation_statements: Vec<OperationStatement>,
    clients: Lender<Client>,
    /// What each connection that was ever made executes.
    running: Mutex<Vec<Arc<Running>>>,
}

/// A connection on loan, or the memory of one that was lost.
pub struct Client {
    /// None until it is made again.
    connected: Option<Connected>,
    running: Arc<Running>,
}

/// A connection and its prepared statements.
struct Connected {
    prepared: Vec<Prepared>,
    connection: Arc<Connection>,
}

impl Pool {
    /// No connections yet. A thread looks after the limits of operations as long as there is the pool.
    pub fn of(link: Arc<Link>, operation_statements: Vec<OperationStatement>) -> Result<Arc<Self>, DriverError> {
        let pool = Arc::new(Self {
            clients: Lender::new(link.target.connections),
            link,
            operation_statements,
            running: Mutex::default(),
        });
        let watched = Arc::downgrade(&pool);
        let started = std::thread::Builder::new().name("odbc limits".to_owned()).spawn(move || watch(&watched));
        started.map_err(|error| pool.link.connection_error(format!("no thread that looks after time limits: {error}")))?;
        Ok(pool)
    }

    /// Makes one more connection, unless there are as many as there may be.
    pub fn open(&self) -> Result<(), DriverError> {
        self.clients.open(|_| {
            let connected = Some(Connected::of(&self.link, &self.operation_statements)?);
            let running = Arc::new(Running::default());
            self.running().push(running.clone());
            Ok(Client { connected, running })
        })
    }

    /// Executes an operation on a connection of its own while it lasts.
    pub fn execute(&self, request: &mut Request, deadline: &Arc<Deadline>) -> Result<(), DriverError> {
        self.clients.lend(deadline)?.execute(self, request, deadline)
    }

    fn running(&self) -> MutexGuard<'_, Vec<Arc<Running>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls statements off whose limits have passed, until the pool is gone.
fn watch(pool: &Weak<Pool>) {
    while let Some(pool) = pool.upgrade() {
        let running = pool.running().clone();
        drop(pool);
        running.iter().for_each(|running| running.look());
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

impl Connected {
    fn of(link: &Link, operation_statements: &[OperationStatement]) -> Result<Self, DriverError> {
        let connection = link.connect()?;
        let prepared =
            operation_statements.iter().map(|operation_statement| Prepared::of(link, &connection, operation_statement.clone()));
        Ok(Self { prepared: prepared.collect::<Result<_, _>>()?, connection })
    }

    /// Prepares a statement again after an error: MariaDB's driver, asked once more, waits for the rest of an answer that ended
    /// with one.
    fn prepare_again(&mut self, operation: usize, pool: &Pool) -> Result<(), DriverError> {
        self.prepared[operation] = Prepared::of(&pool.link, &self.connection, pool.operation_statements[operation].clone())?;
        Ok(())
    }
}

impl Client {
    /// Executes an operation. A connection that was lost is made again by the next one.
    fn execute(&mut self, pool: &Pool, request: &mut Request, deadline: &Arc<Deadline>) -> Result<(), DriverError> {
        // What is called off before it has begun may go wrong in drivers.
        deadline.check()?;
        let connected = match &mut self.connected {
            Some(connected) => connected,
            none => none.insert(Connected::of(&pool.link, &pool.operation_statements)?),
        };
        let Request { operation, parameters, rows } = request;
        let watched = Some((&*self.running, deadline));
        let outcome = connected.prepared[*operation].ask(&pool.link, |place| parameters[place].as_ref(), rows, watched);
        let called_off = self.running.take_called_off();
        let is_usable = match (&outcome, called_off) {
            (Ok(()), 0) => true,
            // A call that came late might end the next statement.
            (Ok(()), _) | (Err(_), 2..) | (Err(DriverError::Connection(_)), _) => false,
            // Where there was one call, it was heard: it has ended the statement.
            (Err(_), _) => connected.prepare_again(*operation, pool).is_ok(),
        };
        if !is_usable {
            self.connected = None;
        }
        // What a server says of a statement that it ended half-way may look like an answer.
        if called_off > 0 { Err(deadline.passed().unwrap_or(DriverError::Timeout)) } else { outcome }
    }
}
