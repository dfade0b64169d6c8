//! Blocking sessions: each has a thread, which fetches the next operation when it has done the one before.

use std::sync::{Arc, Mutex};

use sensorbench_driver::{BlockingSession, Deadline};

use crate::clock::{Clock, RealClock};
use crate::dispatcher::{Next, Ticket};
use crate::recorder::{Batch, Recorder};
use crate::shared::Shared;
use crate::slot::{Done, Slot};

/// A changed rate or a stop is noticed after this long.
const WAIT_SLICE_NS: u64 = 50_000_000;

/// One thread's share of a run.
pub(crate) struct Worker<'a> {
    /// Its number, which is that of its only slot.
    pub number: usize,
    pub shared: &'a Shared,
    pub recorder: &'a Recorder,
    pub clock: &'a RealClock,
    /// Who waits for the intended start of the next operation: one thread at a time, the others queue behind it.
    pub turn: &'a Mutex<()>,
    pub deadline: Arc<Deadline>,
}

/// Runs operations until none is left.
pub(crate) fn work(worker: &Worker, session: &mut dyn BlockingSession) {
    let plan = &worker.shared.plan;
    let mut slot = Slot::new(worker.number);
    let mut batch = Batch::default();
    let mut now_ns = worker.clock.now_ns();
    while let Some((ticket, awaited)) = next(worker, now_ns, &mut batch) {
        slot.begin(plan, ticket);
        let start_ns = worker.clock.now_ns();
        worker.deadline.set(start_ns + plan.timeout_ns);
        let result = session.execute(slot.request.get_or_insert_default()).and_then(|()| slot.work(plan));
        now_ns = worker.clock.now_ns();
        slot.end(plan, Done { ticket, awaited, start_ns, end_ns: now_ns, result }, &mut batch, worker.recorder);
    }
    batch.hand_over(worker.recorder);
}

/// The next operation and whether it had to be awaited; None when there are no more. It is `now_ns` or a little later.
fn next(worker: &Worker, now_ns: u64, batch: &mut Batch) -> Option<(Ticket, bool)> {
    let dispatcher = &worker.shared.dispatcher;
    let look = || worker.clock.now_ns();
    match dispatcher.next(now_ns, look) {
        Next::Ticket(ticket) => return Some((ticket, false)),
        Next::Ended => return None,
        Next::NotBefore(_) => batch.hand_over(worker.recorder),
    }
    let _turn = worker.turn.lock().expect("nothing panics while waiting");
    let mut awaited = false;
    loop {
        match dispatcher.next(look(), look) {
            Next::Ticket(ticket) => return Some((ticket, awaited)),
            Next::Ended => return None,
            Next::NotBefore(_) if worker.shared.plan.spin => std::hint::spin_loop(),
            Next::NotBefore(intended_start_ns) => worker.clock.block_until(intended_start_ns.min(look() + WAIT_SLICE_NS)),
        }
        awaited = true;
    }
}
