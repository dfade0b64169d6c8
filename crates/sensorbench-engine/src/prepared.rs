//! A run whose sessions are connected, and that waits for its start.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};

use sensorbench_driver::{Driver, Sessions};

use crate::clock::RealClock;
use crate::cpu::process_cpu_ns;
use crate::recorder::{Figures, Recorder};
use crate::run::Run;
use crate::shared::{Finished, Shared};
use crate::workers::{Start, spawn_all};
use crate::{EngineError, ParameterTable, Plan, ReadyPlan};

/// A run that is ready. Dropped without a start, it disconnects.
pub struct Prepared {
    /// None once it has started.
    run: Option<Run>,
    go: Arc<Barrier>,
    given_up: Arc<AtomicBool>,
}

impl Prepared {
    /// Connects all sessions. `tables` are those that the plan's parameter sources name.
    pub fn connect(driver: &dyn Driver, plan: Plan, tables: &[ParameterTable]) -> Result<Self, EngineError> {
        let share = plan.share;
        let (plan, mut dispatcher) = ReadyPlan::with_dispatcher(plan, tables)?;
        let sessions = driver.sessions(&plan.statements)?;
        let workers = match &sessions {
            Sessions::Asynchronous(_) => plan.threads.min(plan.concurrency),
            Sessions::Blocking(_) => plan.concurrency,
        };
        dispatcher.expect_threads(workers);
        let recorders: Vec<_> = (0..workers).map(|_| Arc::new(Recorder::new(&plan))).collect();
        let totals = vec![Figures::default(); plan.cells()];
        let shared = Arc::new(Shared { plan, dispatcher, cancelled: Arc::new(AtomicBool::new(false)) });
        let clock = share.map_or_else(RealClock::default, |share| RealClock::with_origin(share.clock_origin_ns));
        let finished = Arc::new(Finished::after(workers));
        let cpu_at_start_ns = process_cpu_ns();

        let (ready, is_ready) = mpsc::channel();
        let (go, given_up) = (Arc::new(Barrier::new(workers + 1)), Arc::new(AtomicBool::new(false)));
        let start = |recorder: &Arc<Recorder>| Start {
            shared: shared.clone(),
            recorder: recorder.clone(),
            clock: clock.clone(),
            ready: ready.clone(),
            go: go.clone(),
            given_up: given_up.clone(),
        };
        let threads = spawn_all(sessions, recorders.iter().map(start).collect(), &finished)?;
        let connected = (0..workers).map(|_| is_ready.recv().expect("every worker reports")).collect::<Result<Vec<()>, _>>();
        let run = Run {
            shared,
            clock,
            recorders,
            finished,
            threads: Mutex::new(threads),
            totals: Mutex::new(totals),
            events: Mutex::default(),
            cpu_at_start_ns,
            failure: Arc::default(),
        };
        let prepared = Self { run: Some(run), go, given_up };
        connected?;
        Ok(prepared)
    }

    /// Time on the run's clock.
    pub fn now_ns(&self) -> u64 {
        self.run.as_ref().map_or(0, Run::now_ns)
    }

    /// Starts now.
    pub fn start(self) -> Run {
        let now_ns = self.now_ns();
        self.start_at(now_ns)
    }

    /// Has the first phase begin at a time on the run's clock. Returns before it, if that lies ahead.
    pub fn start_at(mut self, at_ns: u64) -> Run {
        let run = self.run.take().expect("a run starts once");
        run.shared.dispatcher.start(at_ns);
        self.go.wait();
        run
    }
}

impl Run {
    /// Connects all sessions, then starts. `tables` are those that the plan's parameter sources name.
    pub fn start(driver: &dyn Driver, plan: Plan, tables: &[ParameterTable]) -> Result<Self, EngineError> {
        Ok(Prepared::connect(driver, plan, tables)?.start())
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if self.run.is_some() {
            self.given_up.store(true, Ordering::Relaxed);
            self.go.wait();
        }
    }
}
