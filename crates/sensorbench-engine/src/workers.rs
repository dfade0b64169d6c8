//! The threads of a run: each connects, waits for the start, and executes operations until none is left.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread::JoinHandle;

use send_wrapper::SendWrapper;
use sensorbench_driver::{AsyncConnector, BlockingConnector, Deadline, DriverError, Sessions, runtime};

use crate::clock::{RealClock, ask_for_exact_wakeups};
use crate::cpu::thread_cpu_ns;
use crate::multi_statement::{BlockingMultiStatement, MultiStatement};
use crate::recorder::Recorder;
use crate::shared::{Finished, Shared};
use crate::{EngineError, asynchronous, blocking};

/// What a worker thread is given.
pub(crate) struct Start {
    pub shared: Arc<Shared>,
    pub recorder: Arc<Recorder>,
    pub clock: RealClock,
    /// Where it says that its session is ready, or why it is not.
    pub ready: mpsc::Sender<Result<(), DriverError>>,
    /// Where it waits for the others.
    pub go: Arc<Barrier>,
    /// Set when the run does not take place, as when another worker could not connect.
    pub given_up: Arc<AtomicBool>,
}

impl Start {
    /// False when the run does not take place.
    fn is_go(&self) -> bool {
        let _ = self.ready.send(Ok(()));
        self.go.wait();
        if self.given_up.load(Ordering::Relaxed) {
            return false;
        }
        // Load generators that share a run let their workers go before it begins.
        self.clock.block_until(self.shared.dispatcher.start_ns());
        true
    }

    fn give_up(&self, error: DriverError) {
        let _ = self.ready.send(Err(error));
        self.go.wait();
    }
}

/// Has each worker connect and then wait for its start.
pub(crate) fn spawn_all(
    sessions: Sessions,
    starts: Vec<Start>,
    finished: &Arc<Finished>,
) -> Result<Vec<JoinHandle<()>>, EngineError> {
    let spawn = |number: usize, body: Box<dyn FnOnce() + Send>| {
        let finished = finished.clone();
        let body = move || {
            body();
            finished.one_less();
        };
        std::thread::Builder::new()
            .name(format!("worker-{number}"))
            .spawn(body)
            .map_err(|error| EngineError::System(format!("a thread: {error}")))
    };
    let workers = starts.len();
    match sessions {
        Sessions::Asynchronous(connector) => {
            let connector: Arc<dyn AsyncConnector> = connector.into();
            let bodies = starts.into_iter().enumerate().map(|(number, start)| {
                let connector = connector.clone();
                spawn(number, Box::new(move || work_asynchronously(connector, start, number, workers)))
            });
            bodies.collect()
        }
        Sessions::Blocking(connector) => {
            let connector: Arc<dyn BlockingConnector> = connector.into();
            let turn = Arc::new(Mutex::new(()));
            let bodies = starts.into_iter().enumerate().map(|(number, start)| {
                let (connector, turn) = (connector.clone(), turn.clone());
                spawn(number, Box::new(move || work_blocking(connector.as_ref(), &start, number, &turn)))
            });
            bodies.collect()
        }
    }
}

fn work_asynchronously(connector: Arc<dyn AsyncConnector>, start: Start, number: usize, workers: usize) {
    ask_for_exact_wakeups();
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return start.give_up(error),
    };
    let recorder = start.recorder.clone();
    // tokio's budget for a task is meant for one connection. This task is thousands of operations: when the budget is spent,
    // every one of them would be polled in vain, 128 at a time getting on. The worker itself yields often enough.
    let work = tokio::task::unconstrained(async move {
        let concurrency = start.shared.plan.concurrency;
        let share = concurrency / workers + usize::from(number < concurrency % workers);
        let first_of_worker = number * (concurrency / workers) + number.min(concurrency % workers);
        let first_slot = start.shared.plan.first_slot + first_of_worker;
        let session = match connector.connect(share).await {
            Ok(session) => MultiStatement::around(session, &start.shared.plan),
            Err(error) => return start.give_up(error),
        };
        if !start.is_go() {
            return;
        }
        let worker = asynchronous::Worker {
            shared: &start.shared,
            recorder: &start.recorder,
            session: session.as_ref(),
            clock: start.clock.clone(),
            concurrency: share,
            first_slot,
        };
        asynchronous::work(&worker).await.expect("a process has file descriptors for two timers a thread");
    });
    // The future that a runtime blocks on is woken through the kernel, by a write and a read for each answer. A task is not, and must be
    // sendable, though it never leaves this thread.
    if let Err(ended) = runtime.block_on(runtime.spawn(SendWrapper::new(work))) {
        std::panic::resume_unwind(ended.into_panic());
    }
    recorder.set_client_cpu(thread_cpu_ns());
}

fn work_blocking(connector: &dyn BlockingConnector, start: &Start, number: usize, turn: &Mutex<()>) {
    ask_for_exact_wakeups();
    let deadline = Arc::new(Deadline::new(start.clock.origin(), start.shared.cancelled.clone()));
    let mut session = match connector.connect(deadline.clone()) {
        Ok(session) => BlockingMultiStatement::around(session, &start.shared.plan, &deadline),
        Err(error) => return start.give_up(error),
    };
    if !start.is_go() {
        return;
    }
    let (shared, recorder, clock) = (&start.shared, &*start.recorder, &start.clock);
    let worker = blocking::Worker { number: shared.plan.first_slot + number, shared, recorder, clock, turn, deadline };
    blocking::work(&worker, session.as_mut());
    start.recorder.set_client_cpu(thread_cpu_ns());
}
