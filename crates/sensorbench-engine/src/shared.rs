//! What the threads of a run share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::dispatcher::Dispatcher;
use crate::ready_plan::ReadyPlan;

/// The state of a run that its workers and its handle look at.
pub(crate) struct Shared {
    pub plan: ReadyPlan,
    pub dispatcher: Dispatcher,
    /// Ends every operation in flight.
    pub cancelled: Arc<AtomicBool>,
}

impl Shared {
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// Signals when the last worker is done.
#[derive(Default)]
pub(crate) struct Finished {
    left: Mutex<usize>,
    changed: Condvar,
}

impl Finished {
    pub fn after(workers: usize) -> Self {
        Self { left: Mutex::new(workers), ..Self::default() }
    }

    pub fn one_less(&self) {
        *self.left.lock().expect("nothing panics under this lock") -= 1;
        self.changed.notify_all();
    }

    /// Waits for the last one, but not longer; true when it is done.
    pub fn wait(&self, timeout: Duration) -> bool {
        let left = self.left.lock().expect("nothing panics under this lock");
        let (left, _) = self.changed.wait_timeout_while(left, timeout, |left| *left > 0).expect("nothing panics under this lock");
        *left == 0
    }
}
