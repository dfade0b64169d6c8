//! Statements that run, so that another thread can end those whose limit has passed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::{Deadline, DriverError};

/// How often limits are looked at: the most by which an operation outlasts its own before it is ended.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// What executes one statement at a time, and is ended from another thread.
pub trait Interrupt: Send + Sync + 'static {
    /// Ends what is being executed.
    fn interrupt(&self);
}

/// What a session is executing, if it is.
pub struct Running<C>(Mutex<Option<(Arc<C>, Arc<Deadline>)>>);

impl<C: Interrupt> Running<C> {
    /// Makes a call that executes something on the connection, and that the watch may end.
    #[inline]
    pub fn during<T>(&self, connection: &Arc<C>, deadline: &Arc<Deadline>, call: impl FnOnce() -> T) -> T {
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

    fn lock(&self) -> MutexGuard<'_, Option<(Arc<C>, Arc<Deadline>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks after the limits of all sessions, as long as somebody has it.
pub struct Watch<C>(Mutex<Vec<Arc<Running<C>>>>);

impl<C: Interrupt> Watch<C> {
    /// Begins to look, on a thread of its own. Fails where the system gives none.
    pub fn start() -> Result<Arc<Self>, DriverError> {
        let watch = Arc::new(Self(Mutex::default()));
        let watched = Arc::downgrade(&watch);
        let started = std::thread::Builder::new().name("time limits".to_owned()).spawn(move || look_after(&watched));
        started.map_err(|error| DriverError::Connection(format!("no thread that looks after time limits: {error}")))?;
        Ok(watch)
    }

    /// A place for what one more session executes.
    pub fn running(&self) -> Arc<Running<C>> {
        let running = Arc::new(Running(Mutex::default()));
        self.all().push(running.clone());
        running
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<Running<C>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn look_after<C: Interrupt>(watch: &Weak<Watch<C>>) {
    while let Some(watch) = watch.upgrade() {
        let running = watch.all().clone();
        drop(watch);
        running.iter().for_each(|running| running.look());
        std::thread::sleep(BETWEEN_LOOKS);
    }
}
