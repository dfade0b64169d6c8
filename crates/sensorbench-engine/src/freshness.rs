//! How long after its acknowledgement a write is visible: markers are written one after the other, and each is read again and again until
//! a read returns it.
//!
//! Between two reads nobody knows. So a marker has two times: the start of the last read that missed it, and the end of the first that
//! found it. It became visible in between.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;

use futures::future::{Either, join_all, select};
use sensorbench_driver::{
    AsyncConnector, AsyncSession, BlockingConnector, BlockingSession, Deadline, Driver, DriverError, Sessions, runtime,
};
use serde::Deserialize;

use crate::clock::{Clock, RealClock, Timer, ask_for_exact_wakeups};
use crate::dispatcher::Ticket;
use crate::multi_statement::{BlockingMultiStatement, MultiStatement};
use crate::plan::nanoseconds;
use crate::record::Outcome;
use crate::slot::Slot;
use crate::{EngineError, ParameterTable, Plan, ReadyPlan};

/// Markers, as the control plane describes them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FreshnessPlan {
    /// Two operations in turn, the write of a marker and the question that returns it, whose parameters are rows in sequence; its concurrency is
    /// how many markers are watched at a time.
    pub plan: Plan,
    /// How many markers there are at the most.
    pub markers: u64,
    /// Time between the intended starts of two markers, in seconds.
    pub every_s: f64,
    /// Time between the starts of two reads of a marker, in seconds; a read that takes longer is followed at once.
    pub poll_s: f64,
    /// How long after its acknowledgement a marker is read, in seconds.
    pub within_s: f64,
}

/// What became of a marker. Times on the clock of the markers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probed {
    /// Its number, which is that of its row.
    pub marker: u64,
    /// When its write was to start.
    pub intended_start_ns: u64,
    /// When its write started.
    pub start_ns: u64,
    /// When its write ended.
    pub end_ns: u64,
    /// How its write ended; only what was acknowledged is read.
    pub outcome: Outcome,
    /// Start of the last read that did not return it.
    pub missed_ns: Option<u64>,
    /// End of the first read that returned it.
    pub found_ns: Option<u64>,
    /// Reads of it, with those that failed.
    pub reads: u64,
    /// Reads that failed, which say nothing.
    pub failed_reads: u64,
}

/// Kinds of the plan's operations, which come in turn.
const WRITE: u64 = 0;
const READ: u64 = 1;
/// A stop is noticed after this long.
const SLICE_NS: u64 = 50_000_000;

/// What those who watch markers share.
struct Markers {
    plan: ReadyPlan,
    count: u64,
    every_ns: u64,
    poll_ns: u64,
    within_ns: u64,
    /// When the first marker is to start.
    first_ns: AtomicU64,
    next: AtomicU64,
    stopped: AtomicBool,
    probed: Mutex<Vec<Probed>>,
}

impl Markers {
    fn new(planned: FreshnessPlan, tables: &[ParameterTable]) -> Result<Self, EngineError> {
        let is_positive = |number: f64| number.is_finite() && number > 0.0;
        if ![planned.every_s, planned.poll_s, planned.within_s].into_iter().all(is_positive) {
            return Err(EngineError::Plan("every_s, poll_s and within_s must be above zero".to_owned()));
        }
        let plan = ReadyPlan::new(planned.plan, tables)?;
        if plan.operations().len() != 2 || (0..2).any(|k| plan.kind_of(0, k) as u64 != k) {
            return Err(EngineError::Plan("markers need two operations in turn, a write and a question".to_owned()));
        }
        Ok(Self {
            plan,
            count: planned.markers,
            every_ns: nanoseconds(planned.every_s),
            poll_ns: nanoseconds(planned.poll_s),
            within_ns: nanoseconds(planned.within_s),
            first_ns: AtomicU64::new(0),
            next: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            probed: Mutex::default(),
        })
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// The next marker and its intended start; None when there are no more.
    fn take(&self) -> Option<(u64, u64)> {
        let marker = self.next.fetch_add(1, Ordering::Relaxed);
        let intended_ns = self.first_ns.load(Ordering::Relaxed) + marker * self.every_ns;
        (marker < self.count && !self.is_stopped()).then_some((marker, intended_ns))
    }

    /// The write of a marker, or a read of it, as an operation of the plan.
    fn ticket(marker: u64, kind: u64) -> Ticket {
        Ticket { phase: 0, k: 2 * marker + kind, intended_start_ns: None }
    }

    fn deadline_ns(&self, start_ns: u64) -> u64 {
        start_ns + self.plan.timeout_ns
    }

    fn put_down(&self, probed: Probed) {
        self.probed.lock().expect("nothing panics under this lock").push(probed);
    }
}

impl Probed {
    fn written(marker: u64, intended_start_ns: u64, start_ns: u64, end_ns: u64, result: &Result<(), DriverError>) -> Self {
        let outcome = Outcome::of(result);
        let (missed_ns, found_ns) = (None, None);
        Self { marker, intended_start_ns, start_ns, end_ns, outcome, missed_ns, found_ns, reads: 0, failed_reads: 0 }
    }

    /// Whether it is read again at `now_ns`.
    fn is_watched(&self, markers: &Markers, now_ns: u64) -> bool {
        self.outcome == Outcome::Ok && self.found_ns.is_none() && now_ns < self.end_ns + markers.within_ns
    }

    /// Takes down a read that returned this many rows.
    fn read(&mut self, start_ns: u64, end_ns: u64, rows: Result<u64, DriverError>) {
        self.reads += 1;
        match rows {
            Ok(0) => self.missed_ns = Some(start_ns),
            Ok(_) => self.found_ns = Some(end_ns),
            Err(_) => self.failed_reads += 1,
        }
    }
}

/// Writes and watches markers, one after the other, with a session that others share.
async fn watch<C: Clock>(markers: &Markers, session: &dyn AsyncSession, clock: &C, number: usize) -> std::io::Result<()> {
    let (mut timer, mut limit) = (clock.timer()?, clock.timer()?);
    let mut slot = Slot::new(number);
    while let Some((marker, intended_ns)) = markers.take() {
        while clock.now_ns() < intended_ns && !markers.is_stopped() {
            timer.until(intended_ns.min(clock.now_ns() + SLICE_NS)).await;
        }
        if markers.is_stopped() {
            return Ok(());
        }
        let (start_ns, end_ns, result) =
            execute(markers, session, clock, &mut slot, &mut limit, Markers::ticket(marker, WRITE)).await;
        let mut probed = Probed::written(marker, intended_ns, start_ns, end_ns, &result.map(|_| ()));
        while probed.is_watched(markers, clock.now_ns()) {
            let (start_ns, end_ns, rows) =
                execute(markers, session, clock, &mut slot, &mut limit, Markers::ticket(marker, READ)).await;
            probed.read(start_ns, end_ns, rows);
            if probed.is_watched(markers, end_ns) {
                timer.until(start_ns + markers.poll_ns).await;
            }
        }
        markers.put_down(probed);
    }
    Ok(())
}

/// Executes one operation: when it started and ended, and how many rows it returned.
async fn execute<C: Clock>(
    markers: &Markers,
    session: &dyn AsyncSession,
    clock: &C,
    slot: &mut Slot,
    limit: &mut C::Timer,
    ticket: Ticket,
) -> (u64, u64, Result<u64, DriverError>) {
    slot.begin(&markers.plan, ticket);
    let request = slot.request.take().unwrap_or_default();
    let start_ns = clock.now_ns();
    let too_late = Box::pin(limit.until(markers.deadline_ns(start_ns)));
    let result = match select(session.execute(request), too_late).await {
        Either::Left(((request, result), _)) => {
            slot.request = Some(request);
            result
        }
        Either::Right(_) => Err(DriverError::Timeout),
    };
    let end_ns = clock.now_ns();
    let rows = result.and_then(|()| slot.work(&markers.plan)).map(|()| slot.rows(&markers.plan));
    (start_ns, end_ns, rows)
}

/// The same with a session of its own, which blocks.
fn watch_blocking(markers: &Markers, session: &mut dyn BlockingSession, clock: &RealClock, deadline: &Deadline, number: usize) {
    let mut slot = Slot::new(number);
    let mut execute = |ticket| {
        slot.begin(&markers.plan, ticket);
        let start_ns = clock.now_ns();
        deadline.set(markers.deadline_ns(start_ns));
        let result = session.execute(slot.request.get_or_insert_default());
        let end_ns = clock.now_ns();
        let rows = result.and_then(|()| slot.work(&markers.plan)).map(|()| slot.rows(&markers.plan));
        (start_ns, end_ns, rows)
    };
    while let Some((marker, intended_ns)) = markers.take() {
        while clock.now_ns() < intended_ns && !markers.is_stopped() {
            clock.block_until(intended_ns.min(clock.now_ns() + SLICE_NS));
        }
        if markers.is_stopped() {
            return;
        }
        let (start_ns, end_ns, result) = execute(Markers::ticket(marker, WRITE));
        let mut probed = Probed::written(marker, intended_ns, start_ns, end_ns, &result.map(|_| ()));
        while probed.is_watched(markers, clock.now_ns()) {
            let (start_ns, end_ns, rows) = execute(Markers::ticket(marker, READ));
            probed.read(start_ns, end_ns, rows);
            if probed.is_watched(markers, end_ns) {
                clock.block_until(start_ns + markers.poll_ns);
            }
        }
        markers.put_down(probed);
    }
}

/// Markers that are written and watched beside whatever else runs.
pub struct Freshness {
    markers: Arc<Markers>,
    clock: RealClock,
    threads: Vec<JoinHandle<()>>,
    cancelled: Arc<AtomicBool>,
}

impl Freshness {
    /// Connects, and writes the first marker at once. `tables` are those that the plan's parameter sources name.
    pub fn start(driver: &dyn Driver, planned: FreshnessPlan, tables: &[ParameterTable]) -> Result<Self, EngineError> {
        let markers = Arc::new(Markers::new(planned, tables)?);
        let mut freshness = Self { markers, clock: RealClock::default(), threads: Vec::new(), cancelled: Arc::default() };
        let concurrency = freshness.markers.plan.concurrency;
        let (ready, is_ready) = mpsc::channel();
        let bodies: Vec<Box<dyn FnOnce() + Send>> = match driver.sessions(&freshness.markers.plan.statements)? {
            Sessions::Asynchronous(connector) => {
                let (markers, clock) = (freshness.markers.clone(), freshness.clock.clone());
                vec![Box::new(move || watch_all(connector.as_ref(), &markers, &clock, concurrency, &ready))]
            }
            Sessions::Blocking(connector) => {
                let connector: Arc<dyn BlockingConnector> = connector.into();
                let body = |number| -> Box<dyn FnOnce() + Send> {
                    let (markers, clock, connector) = (freshness.markers.clone(), freshness.clock.clone(), connector.clone());
                    let deadline = Arc::new(Deadline::new(clock.origin(), freshness.cancelled.clone()));
                    let ready = ready.clone();
                    Box::new(move || watch_one(connector.as_ref(), &markers, &clock, deadline, number, &ready))
                };
                (0..concurrency).map(body).collect()
            }
        };
        freshness.markers.first_ns.store(freshness.clock.now_ns(), Ordering::Relaxed);
        let workers = bodies.len();
        for body in bodies {
            let thread = std::thread::Builder::new().name("markers".to_owned()).spawn(body);
            freshness.threads.push(thread.map_err(|error| EngineError::System(format!("a thread: {error}")))?);
        }
        for _ in 0..workers {
            // On an error the others are stopped and joined as this goes out of scope.
            is_ready.recv().map_err(|_| EngineError::System("a thread of the markers ended".to_owned()))??;
        }
        Ok(freshness)
    }

    /// Time on the clock of the markers.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Writes no more markers. Those that are not visible yet are read on, as long as they would have been.
    pub fn stop(&self) {
        self.markers.stopped.store(true, Ordering::Relaxed);
    }

    /// Stops, and waits until the last marker is seen or given up; what became of all, by their numbers.
    pub fn end(mut self) -> Vec<Probed> {
        self.join();
        let mut probed = std::mem::take(&mut *self.markers.probed.lock().expect("nothing panics under this lock"));
        probed.sort_unstable_by_key(|probed| probed.marker);
        probed
    }

    fn join(&mut self) {
        self.stop();
        for thread in self.threads.drain(..) {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

impl Drop for Freshness {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
        if !std::thread::panicking() {
            self.join();
        }
    }
}

type Ready = mpsc::Sender<Result<(), DriverError>>;

fn watch_all(connector: &dyn AsyncConnector, markers: &Markers, clock: &RealClock, concurrency: usize, ready: &Ready) {
    ask_for_exact_wakeups();
    let watching = || -> Result<(), DriverError> {
        runtime()?.block_on(async {
            let session = MultiStatement::around(connector.connect(concurrency).await?, &markers.plan);
            // Whoever waits for it is there until all are ready.
            let _ = ready.send(Ok(()));
            let watching = (0..concurrency).map(|number| watch(markers, session.as_ref(), clock, number));
            for watched in join_all(watching).await {
                watched.expect("a process has file descriptors for two timers a marker");
            }
            Ok(())
        })
    };
    if let Err(error) = watching() {
        let _ = ready.send(Err(error));
    }
}

fn watch_one(
    connector: &dyn BlockingConnector,
    markers: &Markers,
    clock: &RealClock,
    deadline: Arc<Deadline>,
    number: usize,
    ready: &Ready,
) {
    ask_for_exact_wakeups();
    match connector.connect(deadline.clone()) {
        Ok(session) => {
            let _ = ready.send(Ok(()));
            let mut session = BlockingMultiStatement::around(session, &markers.plan, &deadline);
            watch_blocking(markers, session.as_mut(), clock, &deadline, number);
        }
        Err(error) => {
            let _ = ready.send(Err(error));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::HashMap;
    use std::rc::Rc;

    use sensorbench_driver::{Executing, Request, Value, ValueRef};
    use serde_json::json;

    use super::*;
    use crate::fake::FakeClock;

    const MS: u64 = 1_000_000;
    const POLL_NS: u64 = 5 * MS;
    const READ_NS: u64 = 2 * MS;
    const WRITE_NS: u64 = 3 * MS;
    const MARKERS: u64 = 200;

    /// Acknowledges a write after a while, and shows it this long after that, or before that.
    struct LaggingServer {
        clock: FakeClock,
        lag_ns: fn(u64) -> i64,
        visible_ns: RefCell<HashMap<i64, u64>>,
    }

    async fn until(clock: &FakeClock, at_ns: u64) {
        clock.timer().expect("a timer").until(at_ns).await;
    }

    impl AsyncSession for LaggingServer {
        fn execute(&self, mut request: Box<Request>) -> Executing<'_> {
            let Value::Timestamp(marker) = request.parameters[0] else { panic!("{:?}", request.parameters) };
            Box::pin(async move {
                let now_ns = self.clock.now_ns();
                if request.operation as u64 == WRITE {
                    let acknowledged_ns = now_ns + WRITE_NS;
                    let visible_ns = acknowledged_ns.saturating_add_signed((self.lag_ns)(marker as u64));
                    self.visible_ns.borrow_mut().insert(marker, visible_ns);
                    until(&self.clock, acknowledged_ns).await;
                } else {
                    // What a read returns was there in the middle of it.
                    until(&self.clock, now_ns + READ_NS / 2).await;
                    let is_visible = self.visible_ns.borrow()[&marker] <= self.clock.now_ns();
                    until(&self.clock, now_ns + READ_NS).await;
                    if is_visible {
                        request.rows.push(ValueRef::Timestamp(marker));
                        request.rows.end_row();
                    }
                }
                (request, Ok(()))
            })
        }
    }

    fn probed(lag_ns: fn(u64) -> i64, within_s: f64) -> (Vec<Probed>, HashMap<i64, u64>) {
        let parameters = json!([{"name": "time", "type": "timestamp"}]);
        let rows = json!([{"source": 0, "column": 0}]);
        let planned: FreshnessPlan = serde_json::from_value(json!({
            "plan": {
                "seed": 1,
                "operations": [
                    {"weight": 1.0, "operation": {"name": "write", "parameters": parameters}, "parameters": rows},
                    {
                        "weight": 1.0,
                        "operation": {"name": "read", "parameters": parameters, "columns": parameters},
                        "parameters": rows,
                    },
                ],
                "order": "in turn",
                "parameter_sources": [{"rows": {"table": 0, "choice": "sequential"}}],
                "phases": [{"name": "markers", "operations": 2 * MARKERS}],
                "concurrency": 4,
                "timeout_s": 1.0,
            },
            "markers": MARKERS,
            "every_s": 0.0137,
            "poll_s": POLL_NS as f64 / 1e9,
            "within_s": within_s,
        }))
        .unwrap();
        let table = ParameterTable::of_values(&[(0..MARKERS as i64).map(Value::Timestamp).collect()]);
        let markers = Rc::new(Markers::new(planned, &[table]).unwrap());
        let clock = FakeClock::default();
        let server = Rc::new(LaggingServer { clock: clock.clone(), lag_ns, visible_ns: RefCell::default() });
        let (watched, watched_server, watching_clock) = (markers.clone(), server.clone(), clock.clone());
        clock.run(async move {
            join_all((0..4).map(|number| watch(&watched, &*watched_server, &watching_clock, number))).await;
        });
        let mut probed = markers.probed.lock().unwrap().clone();
        probed.sort_unstable_by_key(|probed| probed.marker);
        let visible_ns = server.visible_ns.borrow().clone();
        (probed, visible_ns)
    }

    #[test]
    fn the_true_moment_lies_within_the_interval_and_that_is_no_wider_than_a_poll_and_a_read() {
        let lags: [fn(u64) -> i64; 4] = [
            |_| 0,
            |_| 40 * MS as i64,
            |marker| (marker * 977_123 % (60 * MS)) as i64,
            // Visible before it is acknowledged.
            |marker| (marker % 3) as i64 * MS as i64 - 2 * MS as i64,
        ];
        for lag_ns in lags {
            let (probed, visible_ns) = probed(lag_ns, 1.0);
            assert_eq!(probed.len() as u64, MARKERS);
            for marker in probed {
                let true_ns = visible_ns[&(marker.marker as i64)].max(marker.end_ns);
                let low_ns = marker.missed_ns.unwrap_or(marker.end_ns);
                let high_ns = marker.found_ns.expect("it was found");
                assert!((low_ns..=high_ns).contains(&true_ns), "{marker:?}: {true_ns}");
                assert!(high_ns - low_ns <= POLL_NS + READ_NS, "{marker:?}");
                assert_eq!(marker.failed_reads, 0);
            }
        }
    }

    #[test]
    fn what_is_not_seen_in_time_is_given_up_and_says_until_when_it_was_missed() {
        let (probed, visible_ns) = probed(|marker| if marker % 2 == 0 { 10 * MS as i64 } else { 500 * MS as i64 }, 0.1);
        for marker in probed {
            let missed_ns = marker.missed_ns.expect("it was missed at first");
            assert!(missed_ns < visible_ns[&(marker.marker as i64)]);
            assert_eq!(marker.found_ns.is_some(), marker.marker % 2 == 0, "{marker:?}");
            assert!(marker.found_ns.is_some() || missed_ns + POLL_NS >= marker.end_ns + 100 * MS, "{marker:?}");
        }
    }
}
