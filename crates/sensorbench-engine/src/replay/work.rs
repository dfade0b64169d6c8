//! Hands each statement of a trace to its session when it is to start.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sensorbench_driver::ReplayConnector;
use tokio::sync::mpsc::{self, UnboundedSender, unbounded_channel};
use tokio::task::{LocalSet, spawn_local, yield_now};
use tokio::time::timeout;

use super::plan::ReplayPlan;
use super::session::{self, Handed, Sessions};
use super::source::{self, PARCELS, SessionLengths, Statement, TraceReader};
use crate::clock::{Clock, RealClock, RealTimer, Timer, ask_for_precedence};
use crate::recorder::Recorder;
use crate::shared::Shared;

/// Between the beginning and the first statement: the first connections are opened meanwhile.
const LEAD_NS: u64 = 500_000_000;
/// The connection of a session is opened this long before its first statement, where the limit of connections allows it.
const OPEN_AHEAD_NS: u64 = 1_000_000_000;
/// How often stopping and cancelling are noticed.
const SLICE: Duration = Duration::from_millis(20);
/// Statements that are looked at ahead.
const AHEAD: usize = 4096;
/// Statements that may wait in their sessions. Behind a slow target, the others wait in the file.
const MAX_QUEUED: usize = 16_384;
/// After this many statements that are due at once, the sessions get their turn.
const BETWEEN_YIELDS: u32 = 16;

/// What a replay is made of.
pub(crate) struct Replay {
    pub plan: ReplayPlan,
    /// Of each copy.
    pub lengths: Vec<SessionLengths>,
    pub readers: Vec<TraceReader>,
    pub connector: Box<dyn ReplayConnector>,
    pub shared: Arc<Shared>,
    pub recorder: Arc<Recorder>,
    pub clock: RealClock,
    /// Statements of all copies.
    pub statements: u64,
    /// Where it says what is wrong with the trace.
    pub failure: Arc<Mutex<Option<String>>>,
}

/// Replays a trace to its end, or until it is stopped.
pub(crate) async fn replay(replay: Replay) {
    let Replay { plan, lengths, readers, connector, shared, recorder, clock, statements, failure } = replay;
    let (sender, parcels) = mpsc::channel(PARCELS);
    let reading = {
        let (plan, lengths) = (plan.clone(), lengths.clone());
        let read = move || {
            if let Err(problem) = source::read(&plan, readers, &lengths, &sender) {
                *failure.lock().expect("nothing panics under this lock") = Some(problem);
            }
        };
        std::thread::Builder::new().name("trace".to_owned()).spawn(read)
    };
    // Not before: threads inherit it.
    if plan.speed.is_some() {
        ask_for_precedence();
    }
    let sessions = Rc::new(Sessions {
        shared: shared.clone(),
        recorder: recorder.clone(),
        clock: clock.clone(),
        connector,
        keeps_answers: plan.keeps_answers,
        batch: Default::default(),
        open: Default::default(),
        queued: Default::default(),
        changed: Default::default(),
        cancelled: Default::default(),
    });
    let timer = clock.timer().expect("a process has a file descriptor for a timer");
    let dispatch = Dispatch {
        sessions: sessions.clone(),
        timer,
        limit: plan.connections,
        is_timed: plan.speed.is_some(),
        lengths,
        origin_ns: clock.now_ns() + if plan.speed.is_some() { LEAD_NS } else { 0 },
        parcels,
        ahead: VecDeque::new(),
        announced: 0,
        handed: HashMap::new(),
        opened: 0,
        held_up_until_ns: 0,
    };
    LocalSet::new()
        .run_until(async {
            shared.dispatcher.start(dispatch.origin_ns);
            dispatch.run().await;
            while sessions.open.get() > 0 {
                let _ = timeout(SLICE, sessions.changed.notified()).await;
                if shared.is_cancelled() {
                    sessions.cancelled.notify_waiters();
                }
                sessions.batch.borrow_mut().hand_over(&recorder);
            }
        })
        .await;
    sessions.batch.borrow_mut().hand_over(&recorder);
    shared.dispatcher.end_recorded(clock.now_ns(), statements);
    if let Ok(reading) = reading {
        reading.join().expect("whoever reads a trace does not panic");
    }
}

/// Where a session's statements go, and how many of them are still to come.
struct Line {
    sender: UnboundedSender<Handed>,
    left: u32,
}

struct Dispatch {
    sessions: Rc<Sessions>,
    timer: RealTimer,
    limit: usize,
    is_timed: bool,
    lengths: Vec<SessionLengths>,
    /// When the trace begins, on the run's clock.
    origin_ns: u64,
    parcels: mpsc::Receiver<Vec<Statement>>,
    ahead: VecDeque<Statement>,
    /// Sessions of this many statements ahead are open.
    announced: usize,
    handed: HashMap<(u32, i32), Line>,
    /// Sessions that were opened so far.
    opened: u32,
    /// Until then the target kept statements from being handed over: by connections that it did not free, or statements that it did not answer.
    /// Whatever came before that is late because of it, whichever session it is of.
    held_up_until_ns: u64,
}

impl Dispatch {
    /// Hands over every statement, or ends when the run is stopped. What is left then is dropped with this.
    async fn run(mut self) {
        let mut at_once = 0;
        while !self.sessions.shared.dispatcher.is_stopped() {
            let Some(next) = self.ahead.front() else {
                match timeout(SLICE, self.parcels.recv()).await {
                    Ok(Some(parcel)) => self.ahead.extend(parcel),
                    Ok(None) => return,
                    Err(_) => {}
                }
                continue;
            };
            let (intended_start_ns, now_ns) = (self.origin_ns + next.after_origin_ns, self.sessions.clock.now_ns());
            if self.is_timed && now_ns < intended_start_ns {
                at_once = 0;
                self.look_ahead(now_ns);
                let slice_ns = now_ns + SLICE.as_nanos() as u64;
                self.timer.until(intended_start_ns.min(slice_ns)).await;
                if slice_ns <= intended_start_ns {
                    self.sessions.batch.borrow_mut().hand_over(&self.sessions.recorder);
                    continue;
                }
            } else {
                at_once += 1;
                if at_once % BETWEEN_YIELDS == 0 {
                    yield_now().await;
                }
            }
            self.hand_over_next(intended_start_ns).await;
        }
    }

    /// Takes over what was read meanwhile, and opens the sessions that begin soon.
    fn look_ahead(&mut self, now_ns: u64) {
        while self.ahead.len() < AHEAD
            && let Ok(parcel) = self.parcels.try_recv()
        {
            self.ahead.extend(parcel);
        }
        while let Some(statement) = self.ahead.get(self.announced)
            && self.origin_ns + statement.after_origin_ns <= now_ns + OPEN_AHEAD_NS
        {
            let session = statement.session;
            if !self.handed.contains_key(&session) {
                if self.sessions.open.get() >= self.limit {
                    return;
                }
                self.open(session, 0);
            }
            self.announced += 1;
        }
    }

    /// Opens a session, this much later than it should be because of the replayer.
    fn open(&mut self, session: (u32, i32), late_ns: u64) {
        let (sender, queue) = unbounded_channel();
        self.handed.insert(session, Line { sender, left: self.lengths[session.0 as usize][&session.1] });
        self.sessions.open.set(self.sessions.open.get() + 1);
        spawn_local(session::run(self.sessions.clone(), self.opened, late_ns, queue));
        self.opened += 1;
    }

    async fn hand_over_next(&mut self, intended_start_ns: u64) {
        let session = self.ahead[0].session;
        let is_known = self.handed.contains_key(&session);
        while (!is_known && self.sessions.open.get() >= self.limit) || self.sessions.queued.get() >= MAX_QUEUED {
            let _ = timeout(SLICE, self.sessions.changed.notified()).await;
            if self.sessions.shared.dispatcher.is_stopped() {
                return;
            }
            self.held_up_until_ns = self.sessions.clock.now_ns();
        }
        let in_time = intended_start_ns >= self.held_up_until_ns;
        if !is_known {
            let late_ns = if in_time { self.sessions.clock.now_ns().saturating_sub(intended_start_ns) } else { 0 };
            self.open(session, late_ns);
        }
        let Some(statement) = self.ahead.pop_front() else { return };
        self.announced = self.announced.saturating_sub(1);
        let Some(line) = self.handed.get_mut(&session) else { return };
        let intended_start_ns = self.is_timed.then_some(intended_start_ns);
        self.sessions.queued.set(self.sessions.queued.get() + 1);
        // Nobody takes it where the session has ended, which it does only after its last statement.
        let _ = line.sender.send(Handed { statement, intended_start_ns, in_time });
        line.left -= 1;
        if line.left == 0 {
            self.handed.remove(&session);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use futures::future::LocalBoxFuture;
    use sensorbench_driver::{DriverError, Literal, ReplayConnection, Rows, runtime};
    use tokio::time::sleep;

    use super::super::source::tests::{plan, reader};
    use super::*;
    use crate::ReadyPlan;
    use crate::dispatcher::Dispatcher;
    use crate::record::Record;

    /// Takes longer to connect than there is time before the first statement, and answers at once.
    struct SlowToConnect;

    const CONNECTS_IN: Duration = Duration::from_nanos(LEAD_NS + 200_000_000);

    impl ReplayConnector for SlowToConnect {
        fn connect(&self) -> LocalBoxFuture<'_, Result<Box<dyn ReplayConnection>, DriverError>> {
            Box::pin(async {
                sleep(CONNECTS_IN).await;
                Ok(Box::new(AnswersAtOnce) as Box<dyn ReplayConnection>)
            })
        }
    }

    struct AnswersAtOnce;

    impl ReplayConnection for AnswersAtOnce {
        fn execute<'a>(&'a self, _: usize, _: &'a [Literal], _: &'a mut Rows) -> LocalBoxFuture<'a, Result<u64, DriverError>> {
            Box::pin(async { Ok(0) })
        }

        fn cancel(&self) -> LocalBoxFuture<'_, ()> {
            Box::pin(async {})
        }

        fn is_lost(&self) -> bool {
            false
        }
    }

    /// The records of a replay of rows of time (µs), session and template, on one connection.
    fn replayed(rows: &[(i64, i32, i32)], lengths: SessionLengths) -> Vec<Record> {
        let replayed = plan(&[0]);
        let statements = rows.len() as u64;
        let mut ready = ReadyPlan::new(replayed.as_run(statements), &[]).unwrap();
        ready.open_loop = vec![true];
        let recorder = Arc::new(Recorder::new(&ready));
        let dispatcher = Dispatcher::of_replay(replayed.phase.clone());
        let shared = Arc::new(Shared { plan: ready, dispatcher, cancelled: Arc::new(AtomicBool::new(false)) });
        runtime().unwrap().block_on(replay(Replay {
            plan: replayed,
            lengths: vec![lengths],
            readers: vec![reader(rows)],
            connector: Box::new(SlowToConnect),
            shared,
            recorder: recorder.clone(),
            clock: RealClock::default(),
            statements,
            failure: Arc::default(),
        }));
        recorder.take(u64::MAX).log
    }

    #[test]
    fn what_waits_for_a_connection_is_late_because_of_the_target() {
        // The second session has no connection before the first one ends.
        let log = replayed(&[(0, 7, 0), (2000, 7, 0), (6000, 8, 0)], [(7, 2), (8, 1)].into());
        assert_eq!(log.iter().map(|record| record.k).collect::<Vec<_>>(), [0, 1, 2]);
        for record in &log {
            assert!(record.schedule_lag_ns() > 150_000_000, "{record:?}");
            assert!(record.own_lag_ns.unwrap_or(0) < 50_000_000, "{record:?}");
        }
        // Of those that came while the replay was held up nothing can be said.
        assert!(log.iter().map(|record| record.own_lag_ns.is_some()).eq([true, true, false]), "{log:?}");
    }
}
