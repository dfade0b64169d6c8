//! The handle of a run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use sensorbench_driver::{Driver, DriverError, ReplayRequest, runtime};
use sensorbench_histogram::Latencies;

use crate::clock::{Clock, RealClock, ask_for_exact_wakeups, ask_for_short_turns};
use crate::cpu::{process_cpu_ns, thread_cpu_ns};
use crate::dispatcher::{Dispatcher, PhaseReport};
use crate::recorder::{Errors, Figures, Recorded, Recorder, merge_figures, merge_interval};
use crate::replay::{Replay, ReplayPlan, SessionLengths, TraceReader};
use crate::shared::{Finished, Shared};
use crate::{EngineError, ReadyPlan, replay};

/// A run that is going on, or over.
pub struct Run {
    pub(crate) shared: Arc<Shared>,
    pub(crate) clock: RealClock,
    pub(crate) recorders: Vec<Arc<Recorder>>,
    pub(crate) finished: Arc<Finished>,
    pub(crate) threads: Mutex<Vec<JoinHandle<()>>>,
    /// Figures of all intervals that were taken.
    pub(crate) totals: Mutex<Vec<Figures>>,
    pub(crate) events: Mutex<Vec<Event>>,
    pub(crate) cpu_at_start_ns: u64,
    /// What is wrong with the trace of a replay.
    pub(crate) failure: Arc<Mutex<Option<String>>>,
}

/// Something that happened during the run, reported from outside.
#[derive(Clone, Debug)]
pub struct Event {
    /// When, on the run's clock.
    pub time_ns: u64,
    /// What.
    pub name: String,
}

/// How far a run is.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Time on the run's clock.
    pub now_ns: u64,
    /// The phases so far.
    pub phases: Vec<PhaseReport>,
    /// Number of the current phase; the number of phases when all are over.
    pub current_phase: usize,
    /// Figures of the run so far, by cell (phase × operations + operation).
    pub figures: Vec<Figures>,
}

/// What was recorded since the last segment.
#[derive(Debug, Default)]
pub struct Segment {
    /// Figures, records and answers.
    pub recorded: Recorded,
    /// Events.
    pub events: Vec<Event>,
}

/// What is known of a run as a whole, when it is over.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The phases.
    pub phases: Vec<PhaseReport>,
    /// Figures by cell (phase × operations + operation).
    pub figures: Vec<Figures>,
    /// Errors by phase, operation and kind.
    pub errors: Errors,
    /// How late the engine was where it waited for an intended start.
    pub timer_lag: Latencies,
    /// Processor time of the threads that executed operations, in nanoseconds. With an embedded database, its work is in it.
    pub client_cpu_ns: u64,
    /// Processor time of the whole process since the run began, in nanoseconds.
    pub process_cpu_ns: u64,
    /// How far the run's clock ran ahead of CLOCK_MONOTONIC, as a share.
    pub clock_drift: f64,
    /// How long the run took, in nanoseconds.
    pub duration_ns: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics under this lock")
}

impl Run {
    /// Starts the replay of a trace: `readers` and `lengths` have one for each copy; lengths are those of the sessions that are
    /// replayed, without statements that the plan leaves out.
    pub fn replay(
        driver: &dyn Driver,
        replayed: ReplayPlan,
        lengths: Vec<SessionLengths>,
        readers: Vec<TraceReader>,
    ) -> Result<Self, EngineError> {
        replayed.check()?;
        if lengths.len() != replayed.copies.len() || readers.len() != replayed.copies.len() {
            return Err(EngineError::Plan("each copy of a trace needs a reader and its sessions".to_owned()));
        }
        let statements = lengths.iter().flat_map(|lengths| lengths.values()).map(|length| u64::from(*length)).sum();
        let mut plan = ReadyPlan::new(replayed.as_run(statements), &[])?;
        plan.open_loop = vec![replayed.speed.is_some()];
        let request = ReplayRequest {
            templates: replayed.templates.clone(),
            read_only: replayed.read_only,
            keeps_answers: replayed.keeps_answers,
        };
        let connector = driver.replayer(request)?;
        let dispatcher = Dispatcher::of_replay(replayed.phase.clone());
        let recorder = Arc::new(Recorder::new(&plan));
        let totals = vec![Figures::default(); plan.cells()];
        let shared = Arc::new(Shared { plan, dispatcher, cancelled: Arc::new(AtomicBool::new(false)) });
        let (clock, finished, failure) = (RealClock::default(), Arc::new(Finished::after(1)), Arc::default());
        let cpu_at_start_ns = process_cpu_ns();
        let replay = Replay {
            plan: replayed,
            lengths,
            readers,
            connector,
            shared: shared.clone(),
            recorder: recorder.clone(),
            clock: clock.clone(),
            statements,
            failure: Arc::clone(&failure),
        };
        let thread = {
            let (finished, recorder, failure) = (finished.clone(), recorder.clone(), failure.clone());
            let body = move || {
                if let Err(problem) = replay_on_this_thread(replay) {
                    *lock(&failure) = Some(problem.to_string());
                }
                recorder.set_client_cpu(thread_cpu_ns());
                finished.one_less();
            };
            std::thread::Builder::new()
                .name("replay".to_owned())
                .spawn(body)
                .map_err(|error| EngineError::System(format!("a thread: {error}")))?
        };
        Ok(Self {
            shared,
            clock,
            recorders: vec![recorder],
            finished,
            threads: Mutex::new(vec![thread]),
            totals: Mutex::new(totals),
            events: Mutex::default(),
            cpu_at_start_ns,
            failure,
        })
    }

    /// What kept a replay from reading its trace to the end.
    pub fn failure(&self) -> Option<String> {
        lock(&self.failure).clone()
    }

    /// Waits until the run is over, but not longer than `timeout`. True when it is over.
    pub fn wait(&self, timeout: Duration) -> bool {
        self.finished.wait(timeout)
    }

    /// Time on the run's clock, which all its results are on.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// How far the run is.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            now_ns: self.now_ns(),
            phases: self.shared.dispatcher.reports(),
            current_phase: self.shared.dispatcher.current_phase(),
            figures: self.figures(),
        }
    }

    fn figures(&self) -> Vec<Figures> {
        let mut figures = lock(&self.totals).clone();
        self.recorders.iter().for_each(|recorder| recorder.add_open_to(&mut figures));
        figures
    }

    /// Takes out what was recorded since the last time, without the intervals that are still open.
    pub fn take(&self) -> Segment {
        // An interval stays open for one more, because records are handed over up to 10 ms late.
        self.take_before(self.now_ns().saturating_sub(self.shared.plan.interval_ns))
    }

    fn take_before(&self, open_from_ns: u64) -> Segment {
        let mut segment = Segment::default();
        for recorder in &self.recorders {
            let Recorded { intervals, log, answers } = recorder.take(open_from_ns);
            intervals.into_iter().for_each(|interval| merge_interval(&mut segment.recorded.intervals, interval));
            segment.recorded.log.extend(log);
            segment.recorded.answers.extend(answers);
        }
        segment.recorded.intervals.sort_by_key(|interval| interval.number);
        let mut totals = lock(&self.totals);
        segment.recorded.intervals.iter().for_each(|interval| merge_figures(&mut totals, &interval.figures));
        segment.events = std::mem::take(&mut lock(&self.events));
        segment
    }

    /// Notes that something happened now, by its name.
    pub fn annotate(&self, name: &str) {
        lock(&self.events).push(Event { time_ns: self.now_ns(), name: name.to_owned() });
    }

    /// From now on operations come at this rate. An error in a closed loop, which has none.
    pub fn set_rate(&self, per_s: f64) -> Result<(), EngineError> {
        self.set_rate_at(self.now_ns(), per_s)
    }

    /// From a time on the run's clock on, which lies ahead, operations come at this rate: so that load generators change it together.
    pub fn set_rate_at(&self, at_ns: u64, per_s: f64) -> Result<(), EngineError> {
        if !self.shared.dispatcher.set_rate(at_ns, per_s)? {
            return Err(EngineError::Plan("the rate of a closed loop, or of a run that is over, cannot be set".to_owned()));
        }
        lock(&self.events).push(Event { time_ns: at_ns, name: format!("rate set to {per_s}/s") });
        Ok(())
    }

    /// Starts no more operations; those in flight continue.
    pub fn stop(&self) {
        self.shared.dispatcher.stop(self.now_ns());
    }

    /// Ends the operations in flight, too.
    pub fn cancel(&self) {
        self.stop();
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }

    /// How late the engine was until now where it waited for an intended start.
    pub fn timer_lag(&self) -> Latencies {
        let mut timer_lag = Latencies::default();
        self.recorders.iter().for_each(|recorder| timer_lag.merge(&recorder.timer_lag()));
        timer_lag
    }

    /// Length of the intervals of figures.
    pub fn interval_ns(&self) -> u64 {
        self.shared.plan.interval_ns
    }

    /// The plan, for asking what its operations are.
    pub fn plan(&self) -> &ReadyPlan {
        &self.shared.plan
    }

    /// Waits until the run is over and returns its totals, together with the last segment.
    pub fn end(&self) -> (Segment, Ended) {
        lock(&self.threads).drain(..).for_each(|thread| thread.join().expect("a worker does not panic"));
        let duration_ns = self.now_ns();
        let segment = self.take_before(u64::MAX);
        let mut errors = Errors::new();
        self.recorders.iter().for_each(|recorder| recorder.add_errors_to(&mut errors));
        let ended = Ended {
            phases: self.shared.dispatcher.reports(),
            figures: self.figures(),
            errors,
            timer_lag: self.timer_lag(),
            client_cpu_ns: self.recorders.iter().map(|recorder| recorder.client_cpu_ns()).sum(),
            process_cpu_ns: process_cpu_ns() - self.cpu_at_start_ns,
            clock_drift: self.clock.drift(),
            duration_ns,
        };
        (segment, ended)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.cancel();
    }
}

fn replay_on_this_thread(replay: Replay) -> Result<(), DriverError> {
    ask_for_exact_wakeups();
    ask_for_short_turns();
    runtime()?.block_on(replay::replay(replay));
    Ok(())
}
