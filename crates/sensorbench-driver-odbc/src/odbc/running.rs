//! Statements that run, so that another thread can call them off.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sensorbench_driver::Deadline;

use super::Manager;
use super::api::{Handle, Return};

/// A statement is called off again when it did not hear: a server passes over what comes before the statement itself.
const ONCE_MORE_AFTER: Duration = Duration::from_millis(100);

/// The statement that a session is executing, if there is one.
#[derive(Default)]
pub struct Running(Mutex<State>);

#[derive(Default)]
struct State {
    call: Option<Call>,
    /// How often it was called off since that was last asked.
    called_off: u32,
}

struct Call {
    manager: &'static Manager,
    statement: Handle,
    deadline: Arc<Deadline>,
    last: Option<Instant>,
}

// SAFETY: the standard lets a statement be cancelled by any thread while another executes it.
unsafe impl Send for Call {}

/// A place for the statement that runs, with the limit of its operation.
pub type Watched<'a> = (&'a Running, &'a Arc<Deadline>);

impl Running {
    /// Calls the statement off when its limit has passed.
    pub fn look(&self) {
        let mut state = self.lock();
        let State { call: Some(call), called_off } = &mut *state else { return };
        let is_time = call.last.is_none_or(|last| last.elapsed() >= ONCE_MORE_AFTER);
        if is_time && call.deadline.passed().is_some() {
            // SAFETY: the lock keeps the statement from ending meanwhile.
            unsafe { (call.manager.functions.cancel)(call.statement) };
            call.last = Some(Instant::now());
            *called_off += 1;
        }
    }

    /// How often a statement was called off since this was last asked.
    pub fn take_called_off(&self) -> u32 {
        std::mem::take(&mut self.lock().called_off)
    }

    /// Makes a call that executes a statement, which can be called off meanwhile.
    pub(super) fn during(
        &self,
        manager: &'static Manager,
        statement: Handle,
        deadline: &Arc<Deadline>,
        call: impl FnOnce() -> Return,
    ) -> Return {
        self.lock().call = Some(Call { manager, statement, deadline: deadline.clone(), last: None });
        let outcome = call();
        self.lock().call = None;
        outcome
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
