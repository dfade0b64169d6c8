//! Who comes next: operations are handed out one by one, phase by phase, now (closed loop) or at their intended starts (open loop).

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use sensorbench_workload::{Arrivals, Share, Stream};

use crate::EngineError;
use crate::plan::{PlannedPhase, nanoseconds};

/// An operation whose intended start lies before the end of its phase may start this much after that end: the engine's own timers are late by
/// some microseconds, which must not look like a server that cannot keep up.
const GRACE_NS: u64 = 10_000_000;

/// A phase of a run, made ready.
pub(crate) struct Phase {
    pub name: String,
    operations: u64,
    duration_ns: u64,
    loop_kind: LoopKind,
    /// Which of its operations are handed out here.
    share: Share,
    /// When the phase began and was over, on the run's clock; u64::MAX while it has not.
    start_ns: AtomicU64,
    end_ns: AtomicU64,
    dropped: AtomicU64,
}

enum LoopKind {
    /// As soon as somebody asks.
    ClosedLoop(AtomicU64),
    /// As the arrivals, which count from the start of the phase, have it.
    OpenLoop(Mutex<Arrivals>),
    /// As a trace has it: whoever replays it hands them out, and counts here those that start.
    Recorded(AtomicU64),
}

/// An operation that is handed out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ticket {
    pub phase: usize,
    pub k: u64,
    /// Its intended start; None in a closed loop, where that is when it starts.
    pub intended_start_ns: Option<u64>,
}

/// What somebody gets who asks for an operation.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    Ticket(Ticket),
    /// Ask again at this time.
    NotBefore(u64),
    Ended,
}

/// What became of a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseReport {
    /// Its name.
    pub name: String,
    /// When it began, on the run's clock; None if it did not.
    pub start_ns: Option<u64>,
    /// When its last operation was handed out or its time was over; None if it was not.
    pub end_ns: Option<u64>,
    /// Operations that were handed out.
    pub started: u64,
    /// Operations whose intended start has passed and that never started, because all those that may be were in flight.
    pub dropped: u64,
}

impl Phase {
    pub fn new(planned: &PlannedPhase, stream: Stream, share: Share) -> Result<Self, EngineError> {
        if planned.operations.is_none() && planned.duration_s.is_none() {
            return Err(EngineError::Plan(format!("phase {} has no end: give it operations or duration_s", planned.name)));
        }
        let loop_kind = match &planned.pace {
            None => LoopKind::ClosedLoop(AtomicU64::new(share.number)),
            Some(pace) => LoopKind::OpenLoop(Mutex::new(Arrivals::of_share(pace, stream, share)?)),
        };
        Ok(Self {
            name: planned.name.clone(),
            operations: planned.operations.unwrap_or(u64::MAX),
            duration_ns: planned.duration_s.map_or(u64::MAX, nanoseconds),
            loop_kind,
            share,
            start_ns: AtomicU64::new(u64::MAX),
            end_ns: AtomicU64::new(u64::MAX),
            dropped: AtomicU64::new(0),
        })
    }

    /// The only phase of a replay.
    fn recorded(name: String) -> Self {
        Self {
            name,
            operations: u64::MAX,
            duration_ns: u64::MAX,
            loop_kind: LoopKind::Recorded(AtomicU64::new(0)),
            share: Share::default(),
            start_ns: AtomicU64::new(u64::MAX),
            end_ns: AtomicU64::new(u64::MAX),
            dropped: AtomicU64::new(0),
        }
    }

    pub fn is_open_loop(&self) -> bool {
        matches!(self.loop_kind, LoopKind::OpenLoop(_))
    }

    fn limit_ns(&self) -> u64 {
        self.start_ns.load(Ordering::Relaxed).saturating_add(self.duration_ns)
    }

    fn started(&self) -> u64 {
        match &self.loop_kind {
            LoopKind::ClosedLoop(next) => self.share.count_before(next.load(Ordering::Relaxed).min(self.operations)),
            // Arrivals that a late loop passes over continue after the last operation.
            LoopKind::OpenLoop(arrivals) => {
                self.share.count_before(lock(arrivals).k().min(self.operations)) - self.dropped.load(Ordering::Relaxed)
            }
            LoopKind::Recorded(started) => started.load(Ordering::Relaxed),
        }
    }

    fn report(&self) -> PhaseReport {
        let known = |time: &AtomicU64| Some(time.load(Ordering::Relaxed)).filter(|time| *time != u64::MAX);
        PhaseReport {
            name: self.name.clone(),
            start_ns: known(&self.start_ns),
            end_ns: known(&self.end_ns),
            started: self.started(),
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics under this lock")
}

/// Hands out the operations of a run to whoever asks, from any thread.
pub(crate) struct Dispatcher {
    phases: Vec<Phase>,
    current: AtomicUsize,
    stopped: AtomicBool,
    changing_phase: Mutex<()>,
    has_one_thread: bool,
}

impl Dispatcher {
    pub fn new(phases: Vec<Phase>) -> Self {
        Self {
            phases,
            current: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            changing_phase: Mutex::new(()),
            has_one_thread: false,
        }
    }

    /// The dispatcher of a replay, which only counts.
    pub fn of_replay(phase: String) -> Self {
        Self::new(vec![Phase::recorded(phase)])
    }

    /// Counts a statement of a trace that starts.
    pub fn count_started(&self) {
        if let LoopKind::Recorded(started) = &self.phases[0].loop_kind {
            started.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A replay is over; of all its statements those that never started were dropped.
    pub fn end_recorded(&self, now_ns: u64, statements: u64) {
        let phase = &self.phases[0];
        phase.dropped.store(statements.saturating_sub(phase.started()), Ordering::Relaxed);
        self.end_phase(0, now_ns);
    }

    /// True when nothing more may start.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Says how many threads will ask for operations, before any does.
    pub fn expect_threads(&mut self, threads: usize) {
        self.has_one_thread = threads == 1;
    }

    /// The first phase begins at this time.
    pub fn start(&self, at_ns: u64) {
        self.phases[0].start_ns.store(at_ns, Ordering::Relaxed);
    }

    /// When the first phase begins.
    pub fn start_ns(&self) -> u64 {
        self.phases[0].start_ns.load(Ordering::Relaxed)
    }

    /// What somebody gets who asks at `now_ns`, or a little later. Whoever finds a phase over by its count looks at the clock again: a thread
    /// that was put aside after its last look would have the phase end before its operations were handed out.
    #[inline(always)]
    pub fn next(&self, now_ns: u64, look: impl Fn() -> u64) -> Next {
        loop {
            if self.stopped.load(Ordering::Relaxed) {
                return Next::Ended;
            }
            let number = self.current.load(Ordering::Acquire);
            let Some(phase) = self.phases.get(number) else { return Next::Ended };
            let next = match &phase.loop_kind {
                LoopKind::ClosedLoop(next) => self.next_of_closed_loop(number, phase, next, now_ns, &look),
                LoopKind::OpenLoop(arrivals) => self.next_of_open_loop(number, phase, &mut lock(arrivals), now_ns, &look),
                LoopKind::Recorded(_) => return Next::Ended,
            };
            if let Some(next) = next {
                return next;
            }
        }
    }

    /// None when the phase is over.
    #[inline(always)]
    fn next_of_closed_loop(
        &self,
        number: usize,
        phase: &Phase,
        next: &AtomicU64,
        now_ns: u64,
        look: &impl Fn() -> u64,
    ) -> Option<Next> {
        if now_ns >= phase.limit_ns() {
            self.end_phase(number, phase.limit_ns());
            return None;
        }
        let k = if self.has_one_thread {
            // Without another thread that asks, adding needs no lock on the memory bus.
            let k = next.load(Ordering::Relaxed);
            next.store(k + phase.share.of, Ordering::Relaxed);
            k
        } else {
            next.fetch_add(phase.share.of, Ordering::Relaxed)
        };
        if k < phase.operations {
            return Some(Next::Ticket(Ticket { phase: number, k, intended_start_ns: None }));
        }
        self.end_phase(number, look());
        None
    }

    /// None when the phase is over.
    #[inline(never)]
    fn next_of_open_loop(
        &self,
        number: usize,
        phase: &Phase,
        arrivals: &mut Arrivals,
        now_ns: u64,
        look: &impl Fn() -> u64,
    ) -> Option<Next> {
        let (start_ns, limit_ns) = (phase.start_ns.load(Ordering::Relaxed), phase.limit_ns());
        if arrivals.k() >= phase.operations {
            self.end_phase(number, look());
            return None;
        }
        let intended_start_ns = arrivals.intended_start_ns().map_or(u64::MAX, |intended_start_ns| start_ns + intended_start_ns);
        if intended_start_ns >= limit_ns {
            if now_ns < limit_ns {
                return Some(Next::NotBefore(limit_ns));
            }
            self.end_phase(number, limit_ns);
            return None;
        }
        if now_ns >= limit_ns.saturating_add(GRACE_NS) {
            self.pass_over(phase, arrivals, limit_ns);
            self.end_phase(number, limit_ns);
            return None;
        }
        if intended_start_ns > now_ns {
            return Some(Next::NotBefore(intended_start_ns));
        }
        let ticket = Ticket { phase: number, k: arrivals.k(), intended_start_ns: Some(intended_start_ns) };
        arrivals.advance();
        Some(Next::Ticket(ticket))
    }

    fn pass_over(&self, phase: &Phase, arrivals: &mut Arrivals, until_ns: u64) {
        let start_ns = phase.start_ns.load(Ordering::Relaxed);
        let left = phase.share.count_before(phase.operations).saturating_sub(phase.share.count_before(arrivals.k()));
        let dropped = arrivals.pass_over_until(until_ns.saturating_sub(start_ns)).min(left);
        phase.dropped.fetch_add(dropped, Ordering::Relaxed);
    }

    /// Goes on to the phase after `number`, once, however many ask for it.
    fn end_phase(&self, number: usize, at_ns: u64) {
        let _one_at_a_time = lock(&self.changing_phase);
        if self.current.load(Ordering::Relaxed) != number {
            return;
        }
        // Whoever finds it over may have looked at the clock before another thread began it.
        let start_ns = self.phases[number].start_ns.load(Ordering::Relaxed);
        let at_ns = if start_ns == u64::MAX { at_ns } else { at_ns.max(start_ns + 1) };
        self.phases[number].end_ns.store(at_ns, Ordering::Relaxed);
        if let Some(following) = self.phases.get(number + 1) {
            following.start_ns.store(at_ns, Ordering::Relaxed);
        }
        self.current.store(number + 1, Ordering::Release);
    }

    /// Hands out nothing more. What was intended to start by now and did not is counted.
    pub fn stop(&self, now_ns: u64) {
        if self.stopped.swap(true, Ordering::Relaxed) {
            return;
        }
        let number = self.current.load(Ordering::Acquire);
        if let Some(phase) = self.phases.get(number) {
            if let LoopKind::OpenLoop(arrivals) = &phase.loop_kind {
                self.pass_over(phase, &mut lock(arrivals), now_ns.min(phase.limit_ns()));
            }
            self.end_phase(number, now_ns);
        }
    }

    /// From this time on the current phase's operations come at this rate. False when it is a closed loop or all is over.
    pub fn set_rate(&self, at_ns: u64, per_s: f64) -> Result<bool, EngineError> {
        let number = self.current.load(Ordering::Acquire);
        let Some(phase) = self.phases.get(number) else { return Ok(false) };
        let LoopKind::OpenLoop(arrivals) = &phase.loop_kind else { return Ok(false) };
        lock(arrivals).set_rate(at_ns.saturating_sub(phase.start_ns.load(Ordering::Relaxed)), per_s)?;
        Ok(true)
    }

    /// Number of the current phase; the number of phases when all are over.
    pub fn current_phase(&self) -> usize {
        self.current.load(Ordering::Relaxed)
    }

    pub fn reports(&self) -> Vec<PhaseReport> {
        self.phases.iter().map(Phase::report).collect()
    }
}

#[cfg(test)]
mod tests {
    use sensorbench_workload::{Arrival, Pace, RateSegment};

    use super::*;

    const MS: u64 = 1_000_000;

    fn phase(name: &str, operations: Option<u64>, duration_s: Option<f64>, per_s: Option<f64>) -> Phase {
        phase_of_share(name, operations, duration_s, per_s, Share::default())
    }

    fn phase_of_share(name: &str, operations: Option<u64>, duration_s: Option<f64>, per_s: Option<f64>, share: Share) -> Phase {
        let pace = per_s.map(|per_s| Pace {
            arrival: Arrival::Constant,
            segments: vec![RateSegment { from_per_s: per_s, to_per_s: None, length_s: None }],
        });
        let planned = PlannedPhase { name: name.to_owned(), operations, duration_s, pace, numbering: Default::default() };
        Phase::new(&planned, Stream::new(1), share).unwrap()
    }

    impl Dispatcher {
        fn next_at(&self, now_ns: u64) -> Next {
            self.next(now_ns, || now_ns)
        }
    }

    fn started(phases: Vec<Phase>) -> Dispatcher {
        let dispatcher = Dispatcher::new(phases);
        dispatcher.start(0);
        dispatcher
    }

    fn ticket(phase: usize, k: u64, intended_start_ns: Option<u64>) -> Next {
        Next::Ticket(Ticket { phase, k, intended_start_ns })
    }

    #[test]
    fn a_closed_loop_hands_out_at_once_until_its_count_and_goes_on() {
        let dispatcher = started(vec![phase("warm_up", Some(2), None, None), phase("measure", None, Some(1.0), None)]);
        assert_eq!(
            [dispatcher.next_at(5), dispatcher.next_at(6), dispatcher.next_at(7)],
            [ticket(0, 0, None), ticket(0, 1, None), ticket(1, 0, None)]
        );
        assert_eq!(dispatcher.next_at(1_000 * MS + 7), Next::Ended);
        let reports = dispatcher.reports();
        assert_eq!((reports[0].started, reports[0].end_ns, reports[1].started), (2, Some(7), 1));
    }

    #[test]
    fn a_phase_ends_after_it_began_whoever_looked_at_the_clock_before() {
        let dispatcher = started(vec![phase("warm_up", Some(1), None, None), phase("measure", Some(1), None, None)]);
        dispatcher.next_at(5);
        assert_eq!(dispatcher.next_at(90), ticket(1, 0, None));
        assert_eq!(dispatcher.next_at(80), Next::Ended);
        let report = &dispatcher.reports()[1];
        assert_eq!((report.start_ns, report.end_ns), (Some(90), Some(91)));
    }

    #[test]
    fn a_phase_ends_when_it_is_found_over_not_when_the_clock_was_last_looked_at() {
        for per_s in [None, Some(1e9)] {
            let dispatcher = started(vec![phase("measure", Some(2), None, per_s)]);
            assert_eq!([dispatcher.next_at(50), dispatcher.next_at(90)].map(|next| matches!(next, Next::Ticket(_))), [true; 2]);
            assert_eq!(dispatcher.next(40, || 95), Next::Ended);
            assert_eq!(dispatcher.reports()[0].end_ns, Some(95));
        }
    }

    #[test]
    fn an_open_loop_hands_out_each_operation_at_its_intended_start() {
        let dispatcher = started(vec![phase("measure", None, Some(0.01), Some(1000.0))]);
        assert_eq!(dispatcher.next_at(0), ticket(0, 0, Some(0)));
        assert_eq!(dispatcher.next_at(0), Next::NotBefore(MS));
        assert_eq!(
            [dispatcher.next_at(5 * MS), dispatcher.next_at(5 * MS)],
            [ticket(0, 1, Some(MS)), ticket(0, 2, Some(2 * MS))]
        );
    }

    #[test]
    fn what_cannot_start_in_time_is_counted_as_dropped() {
        let dispatcher = started(vec![phase("measure", None, Some(0.01), Some(1000.0))]);
        dispatcher.next_at(0);
        // Its intended start lies before the end, and it is within the grace: it starts. After that, the other eight never do.
        assert_eq!(dispatcher.next_at(12 * MS), ticket(0, 1, Some(MS)));
        assert_eq!(dispatcher.next_at(21 * MS), Next::Ended);
        let report = &dispatcher.reports()[0];
        assert_eq!((report.started, report.dropped, report.end_ns), (2, 8, Some(10 * MS)));
    }

    #[test]
    fn an_open_loop_that_is_late_drops_no_more_than_it_has() {
        let dispatcher = started(vec![phase("measure", Some(4), Some(0.01), Some(1000.0))]);
        dispatcher.next_at(0);
        assert_eq!(dispatcher.next_at(21 * MS), Next::Ended);
        assert_eq!((dispatcher.reports()[0].started, dispatcher.reports()[0].dropped), (1, 3));
    }

    #[test]
    fn stopping_counts_what_was_intended_to_start() {
        let dispatcher = started(vec![phase("measure", Some(1000), None, Some(1000.0))]);
        dispatcher.next_at(0);
        dispatcher.stop(3 * MS + 1);
        assert_eq!(dispatcher.next_at(4 * MS), Next::Ended);
        assert_eq!((dispatcher.reports()[0].started, dispatcher.reports()[0].dropped), (1, 3));
    }

    #[test]
    fn a_load_generator_is_handed_its_own_operations_only() {
        let share = Share { number: 1, of: 3 };
        let closed = started(vec![phase_of_share("measure", Some(6), None, None, share)]);
        assert_eq!(
            [closed.next_at(5), closed.next_at(6), closed.next_at(7)],
            [ticket(0, 1, None), ticket(0, 4, None), Next::Ended]
        );
        assert_eq!(closed.reports()[0].started, 2);
        let open = started(vec![phase_of_share("measure", Some(6), Some(1.0), Some(1000.0), share)]);
        assert_eq!(open.next_at(0), Next::NotBefore(MS));
        assert_eq!([open.next_at(5 * MS), open.next_at(5 * MS)], [ticket(0, 1, Some(MS)), ticket(0, 4, Some(4 * MS))]);
        assert_eq!(open.next_at(9 * MS), Next::Ended);
        assert_eq!((open.reports()[0].started, open.reports()[0].dropped), (2, 0));
    }

    #[test]
    fn load_generators_drop_what_one_would() {
        for operations in [None, Some(8)] {
            let dropped = |share| {
                let dispatcher = started(vec![phase_of_share("measure", operations, Some(0.01), Some(1000.0), share)]);
                assert_eq!(dispatcher.next_at(21 * MS), Next::Ended);
                dispatcher.reports()[0].dropped
            };
            let all: Vec<u64> = (0..3).map(|number| dropped(Share { number, of: 3 })).collect();
            assert_eq!(all.iter().sum::<u64>(), dropped(Share::default()), "{all:?}");
        }
    }

    #[test]
    fn the_rate_changes_while_it_runs() {
        let dispatcher = started(vec![phase("measure", None, Some(1.0), Some(1.0))]);
        dispatcher.next_at(0);
        assert_eq!(dispatcher.next_at(0), Next::NotBefore(1_000 * MS));
        assert!(dispatcher.set_rate(500 * MS, 1000.0).unwrap());
        let Next::NotBefore(intended_start_ns) = dispatcher.next_at(500 * MS) else { panic!("half an operation was left") };
        assert!(intended_start_ns.abs_diff(500 * MS + MS / 2) <= 1, "{intended_start_ns}");
    }
}
