//! What the threads of a run share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
