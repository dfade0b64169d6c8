//! Where records become figures: counts and histograms by interval, phase and operation.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, TryLockError};

use sensorbench_driver::ErrorKind;
use sensorbench_histogram::Latencies;
use sensorbench_workload::Share;

use crate::ready_plan::ReadyPlan;
use crate::record::{Answer, Failure, Outcome, Record};

/// Figures of one kind of operation in one phase, over one interval or the whole run.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Operations by outcome, in the order of [`crate::OUTCOMES`].
    pub counts: [u64; 4],
    /// Operations that started late.
    pub late: u64,
    /// Rows of all answers.
    pub rows: u64,
    /// Response times of operations that ended well or timed out (at their limit).
    pub response: Latencies,
    /// Service times of the same operations.
    pub service: Latencies,
    /// Schedule lag of the same operations: from intended start to start. Empty in a closed loop.
    pub wait: Latencies,
    /// Service times of operations that failed.
    pub failed: Latencies,
}

impl Figures {
    #[inline]
    fn add(&mut self, record: &Record, open_loop: bool, late_after_ns: u64) {
        self.counts[record.outcome as usize] += 1;
        match record.outcome {
            Outcome::Ok | Outcome::Timeout => {
                self.rows += record.rows;
                self.response.record(record.response_ns());
                self.service.record(record.service_ns());
                if open_loop {
                    self.wait.record(record.schedule_lag_ns());
                }
            }
            Outcome::Error => self.failed.record(record.service_ns()),
            Outcome::Cancelled => {}
        }
        self.late += u64::from(record.schedule_lag_ns() > late_after_ns);
    }

    fn merge(&mut self, other: &Figures) {
        self.counts.iter_mut().zip(other.counts).for_each(|(sum, count)| *sum += count);
        self.late += other.late;
        self.rows += other.rows;
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.wait.merge(&other.wait);
        self.failed.merge(&other.failed);
    }

    /// Operations with this outcome.
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.counts[outcome as usize]
    }

    /// Operations that ended, however.
    pub fn ended(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// Figures of one interval.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Number of the interval: its start divided by its length.
    pub number: u64,
    /// Figures by cell (phase × operations + operation).
    pub figures: Vec<Figures>,
}

/// What was recorded since it was last taken.
#[derive(Debug, Default)]
pub struct Recorded {
    /// Intervals that are over. One that a long operation held open may come in several pieces, to be merged.
    pub intervals: Vec<Interval>,
    /// Records of operations, as far as they are kept.
    pub log: Vec<Record>,
    /// Digests of answers, as far as they are kept.
    pub answers: Vec<Answer>,
}

/// Errors of one kind of operation.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorCount {
    /// How many there were.
    pub count: u64,
    /// What the first one said.
    pub first_message: String,
}

/// Errors by phase, operation and kind.
pub type Errors = BTreeMap<(u16, u16, ErrorKind), ErrorCount>;

/// Collects the records of one worker. The worker adds them in batches, the control plane takes them out now and then.
pub(crate) struct Recorder {
    cells: usize,
    open_loop: Vec<bool>,
    operations: usize,
    interval_ns: u64,
    late_after_ns: u64,
    log_every: Option<u64>,
    share: Share,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Intervals that are not taken yet, by number. Nearly always one or two.
    intervals: Vec<Interval>,
    log: Vec<Record>,
    answers: Vec<Answer>,
    errors: Errors,
    timer_lag: Latencies,
    client_cpu_ns: u64,
}

impl Recorder {
    pub fn new(plan: &ReadyPlan) -> Self {
        Self {
            cells: plan.cells(),
            open_loop: plan.open_loop.clone(),
            operations: plan.operations.len(),
            interval_ns: plan.interval_ns,
            late_after_ns: plan.late_after_ns,
            log_every: plan.log_every,
            share: plan.share,
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics under this lock")
    }

    pub fn add(&self, batch: &mut Batch) {
        self.add_to(&mut self.lock(), batch);
    }

    /// The same unless the control plane is taking something out: true when it was done.
    fn try_add(&self, batch: &mut Batch) -> bool {
        match self.state.try_lock() {
            Ok(mut state) => self.add_to(&mut state, batch),
            Err(TryLockError::WouldBlock) => return false,
            Err(TryLockError::Poisoned(_)) => panic!("nothing panics under this lock"),
        }
        true
    }

    fn add_to(&self, state: &mut State, batch: &mut Batch) {
        let Batch { records, answers, failures } = batch;
        for record in records.iter() {
            let figures = state.figures(record.end_ns / self.interval_ns, self.cells);
            let phase = usize::from(record.phase);
            let cell = &mut figures[phase * self.operations + usize::from(record.operation)];
            cell.add(record, self.open_loop[phase], self.late_after_ns);
            if let Some(own_lag_ns) = record.own_lag_ns {
                state.timer_lag.record(own_lag_ns);
            }
            // Of their own operations: else all records could be of the same load generator.
            if self.log_every.is_some_and(|every| self.share.ordinal(record.k).is_multiple_of(every)) {
                state.log.push(*record);
            }
        }
        records.clear();
        state.answers.append(answers);
        for failure in failures.drain(..) {
            state.count_failure(failure);
        }
    }

    /// Takes out what is there, without intervals that are still open; these begin at `open_from_ns`.
    pub fn take(&self, open_from_ns: u64) -> Recorded {
        let state = &mut *self.lock();
        let open_from = open_from_ns / self.interval_ns;
        let (over, open) = std::mem::take(&mut state.intervals).into_iter().partition(|interval| interval.number < open_from);
        state.intervals = open;
        Recorded { intervals: over, log: std::mem::take(&mut state.log), answers: std::mem::take(&mut state.answers) }
    }

    /// Adds the figures that are not taken yet to `totals`.
    pub fn add_open_to(&self, totals: &mut [Figures]) {
        for interval in &self.lock().intervals {
            merge_figures(totals, &interval.figures);
        }
    }

    pub fn add_errors_to(&self, errors: &mut Errors) {
        for (key, error) in &self.lock().errors {
            errors.entry(*key).and_modify(|sum| sum.count += error.count).or_insert_with(|| error.clone());
        }
    }

    pub fn timer_lag(&self) -> Latencies {
        self.lock().timer_lag.clone()
    }

    pub fn set_client_cpu(&self, client_cpu_ns: u64) {
        self.lock().client_cpu_ns = client_cpu_ns;
    }

    pub fn client_cpu_ns(&self) -> u64 {
        self.lock().client_cpu_ns
    }
}

impl State {
    #[inline]
    fn figures(&mut self, number: u64, cells: usize) -> &mut Vec<Figures> {
        let found = self.intervals.iter().rposition(|interval| interval.number == number);
        let place = found.unwrap_or_else(|| {
            self.intervals.push(Interval { number, figures: vec![Figures::default(); cells] });
            self.intervals.len() - 1
        });
        &mut self.intervals[place].figures
    }

    fn count_failure(&mut self, failure: Failure) {
        let error = self.errors.entry((failure.phase, failure.operation, failure.error.kind()));
        error
            .and_modify(|error| error.count += 1)
            .or_insert_with(|| ErrorCount { count: 1, first_message: failure.error.to_string() });
    }
}

/// Adds figures cell by cell.
pub(crate) fn merge_figures(sum: &mut [Figures], figures: &[Figures]) {
    sum.iter_mut().zip(figures).filter(|(_, figures)| figures.ended() > 0).for_each(|(sum, figures)| sum.merge(figures));
}

/// Adds an interval to others; one of the same number is added to.
pub(crate) fn merge_interval(intervals: &mut Vec<Interval>, interval: Interval) {
    match intervals.iter_mut().find(|other| other.number == interval.number) {
        Some(other) => merge_figures(&mut other.figures, &interval.figures),
        None => intervals.push(interval),
    }
}

/// Records on their way to a recorder: a worker hands them over many at a time, so that a lock and a walk through the
/// histograms do not come between any two operations.
#[derive(Default)]
pub(crate) struct Batch {
    records: Vec<Record>,
    answers: Vec<Answer>,
    failures: Vec<Failure>,
}

impl Batch {
    const MAX_RECORDS: usize = 64;
    /// So old may a record become before it is handed over: what a killed run may lose besides operations in flight.
    const MAX_AGE_NS: u64 = 10_000_000;
    /// This many wait while the control plane takes something out: on a busy machine it may keep the lock for long, and nothing is to start late
    /// because of that.
    const MAX_WAITING: usize = 16_384;

    #[inline]
    pub fn add(&mut self, record: Record, recorder: &Recorder) {
        self.records.push(record);
        let age_ns = record.end_ns.saturating_sub(self.records[0].end_ns);
        let is_full = self.records.len() >= Self::MAX_RECORDS || age_ns >= Self::MAX_AGE_NS;
        if is_full && !recorder.try_add(self) && self.records.len() >= Self::MAX_WAITING {
            self.hand_over(recorder);
        }
    }

    pub fn add_answer(&mut self, answer: Answer) {
        self.answers.push(answer);
    }

    pub fn add_failure(&mut self, failure: Failure) {
        self.failures.push(failure);
    }

    pub fn hand_over(&mut self, recorder: &Recorder) {
        if !self.records.is_empty() {
            recorder.add(self);
        }
    }
}
