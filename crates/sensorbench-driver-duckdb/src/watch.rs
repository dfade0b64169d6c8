//! Statements that run, so that another thread can end those whose limit has passed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sensorbench_driver::{Deadline, DriverError};

use crate::library::Connection;

/// How often limits are looked at: the most by which an operation outlasts its own before it is ended.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// What a session is executing, if it is.
#[derive(Default)]
pub struct Running(Mutex<Option<(Arc<Connection>, Arc<Deadline>)>>);

impl Running {
    /// Makes a call that executes something on the connection, and that the watch may end.
    #[inline]
    pub fn during<T>(&self, connection: &Arc<Connection>, deadline: &Arc<Deadline>, call: impl FnOnce() -> T) -> T {
        *self.lock() = Some((connection.clone(), deadline.clone()));
        let outcome = call();
        *self.lock() = None;
        outcome
    }

    /// Ends the call when its limit has passed. The lock keeps it from returning meanwhile, so that no later one is met.
    fn look(&self) {
        if let Some((connection, deadline)) = &*self.lock()
            && deadline.passed().is_some()
        {
            connection.interrupt();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Arc<Connection>, Arc<Deadline>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks after the limits of all sessions, as long as somebody has it.
#[derive(Default)]
pub struct Watch(Mutex<Vec<Arc<Running>>>);

impl Watch {
    pub fn start() -> Result<Arc<Self>, DriverError> {
        let watch = Arc::new(Self::default());
        let watched = Arc::downgrade(&watch);
        let started = std::thread::Builder::new().name("duckdb limits".to_owned()).spawn(move || look_after(&watched));
        started.map_err(|error| DriverError::Connection(format!("no thread that looks after time limits: {error}")))?;
        Ok(watch)
    }

    /// A place for what one more session executes.
    pub fn running(&self) -> Arc<Running> {
        let running = Arc::new(Running::default());
        self.all().push(running.clone());
        running
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<Running>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn look_after(watch: &Weak<Watch>) {
    while let Some(watch) = watch.upgrade() {
        let running = watch.all().clone();
        drop(watch);
        running.iter().for_each(|running| running.look());
        std::thread::sleep(BETWEEN_LOOKS);
    }
}
