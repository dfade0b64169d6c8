//! One recorded session: its statements in their order, on one connection.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sensorbench_driver::{DriverError, ReplayConnection, ReplayConnector, Rows, digest_of_all_columns};
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use super::source::Statement;
use crate::clock::{Clock, RealClock};
use crate::record::{Answer, Failure, Outcome, Record};
use crate::recorder::{Batch, Recorder};
use crate::shared::Shared;

/// This long may a server take to end a statement that was given up, before its connection is closed.
const ABANDON_AFTER: Duration = Duration::from_secs(30);

/// What the sessions of a replay share. All of it lives on one thread.
pub(super) struct Sessions {
    pub shared: Arc<Shared>,
    pub recorder: Arc<Recorder>,
    pub clock: RealClock,
    pub connector: Box<dyn ReplayConnector>,
    pub keeps_answers: bool,
    pub batch: RefCell<Batch>,
    /// Sessions that are open.
    pub open: Cell<usize>,
    /// Statements that were handed over and have not started.
    pub queued: Cell<usize>,
    /// A session ended, or a statement started.
    pub changed: Notify,
    /// The run was cancelled.
    pub cancelled: Notify,
}

/// A statement that is handed over.
pub(super) struct Handed {
    pub statement: Statement,
    /// When it is to start; None if that is when it starts.
    pub intended_start_ns: Option<u64>,
    /// True when nothing of the target's kept the replay from handing it over in time.
    pub in_time: bool,
}

/// Executes the statements of one session until there are no more, then closes its connection. `late_ns`: how much later than it should
/// the replayer opened the session.
pub(super) async fn run(sessions: Rc<Sessions>, number: u32, late_ns: u64, mut queue: UnboundedReceiver<Handed>) {
    let connection = sessions.connector.connect().await;
    let mut session = Session {
        sessions: &sessions,
        number,
        connection: Some(connection),
        begun: None,
        lost: None,
        free_in_time_ns: sessions.clock.now_ns().saturating_sub(late_ns),
        rows: Rows::default(),
    };
    while let Some(handed) = queue.recv().await {
        sessions.queued.set(sessions.queued.get() - 1);
        sessions.changed.notify_one();
        if !sessions.shared.dispatcher.is_stopped() {
            session.execute(handed).await;
        }
    }
    drop(session);
    sessions.open.set(sessions.open.get() - 1);
    sessions.changed.notify_one();
}

struct Session<'a> {
    sessions: &'a Sessions,
    number: u32,
    /// The connection, or why there is none; None when another one is to be opened.
    connection: Option<Result<Box<dyn ReplayConnection>, DriverError>>,
    /// The transaction of the last statement that succeeded.
    begun: Option<i64>,
    /// The transaction that did not begin, or was lost with its connection. Outside of it, what is left of it would be something else.
    lost: Option<i64>,
    /// When the session would be free for the next statement if the replayer had never been late: its connection open, and the statement
    /// before answered. What a statement starts later than this, and than its intended start, is the replayer's own lag. What is before
    /// this, the target made late.
    free_in_time_ns: u64,
    rows: Rows,
}

impl Session<'_> {
    async fn execute(&mut self, handed: Handed) {
        let sessions = self.sessions;
        let is_lost = handed.statement.transaction.is_some() && self.lost == handed.statement.transaction;
        if self.connection.is_none() && !is_lost {
            let begun_ns = sessions.clock.now_ns();
            self.connection = Some(sessions.connector.connect().await);
            let took_ns = sessions.clock.now_ns() - begun_ns;
            self.free_in_time_ns = self.start_in_time(&handed).unwrap_or(begun_ns) + took_ns;
        }
        sessions.shared.dispatcher.count_started();
        let start_ns = sessions.clock.now_ns();
        match self.connection.take() {
            Some(Ok(connection)) if !is_lost => self.execute_on(connection, &handed, start_ns).await,
            Some(Err(error)) if !is_lost => self.end(&handed, start_ns, Err(error)),
            connection => {
                self.connection = connection;
                let why = "not sent: its transaction did not begin, or was lost with its connection";
                self.end(&handed, start_ns, Err(DriverError::Statement(why.to_owned())));
            }
        }
    }

    async fn execute_on(&mut self, connection: Box<dyn ReplayConnection>, handed: &Handed, start_ns: u64) {
        let sessions = self.sessions;
        let limit = Duration::from_nanos(sessions.shared.plan.timeout_ns);
        let mut rows = std::mem::take(&mut self.rows);
        rows.clear();
        let mut is_over = true;
        let result = {
            let Statement { template, literals, .. } = &handed.statement;
            let mut executing = connection.execute(usize::from(*template), literals, &mut rows);
            let result = tokio::select! {
                biased;
                ended = timeout(limit, &mut executing) => ended.unwrap_or(Err(DriverError::Timeout)),
                () = sessions.cancelled.notified() => Err(DriverError::Cancelled),
            };
            if let Err(DriverError::Timeout | DriverError::Cancelled) = result {
                // Its transaction continues only when the server has ended it: what follows must not come before that.
                let ended = async {
                    connection.cancel().await;
                    let _ = (&mut executing).await;
                };
                let wait = if sessions.shared.is_cancelled() { limit.min(Duration::from_secs(1)) } else { ABANDON_AFTER };
                is_over = timeout(wait, ended).await.is_ok();
            }
            result
        };
        self.rows = rows;
        if is_over && !connection.is_lost() {
            self.connection = Some(Ok(connection));
        } else {
            self.lost = handed.statement.transaction;
        }
        self.end(handed, start_ns, result);
    }

    /// When a statement would have started if the replayer had never been late; None if the target kept it from handing the statement over, or
    /// there is no clock.
    fn start_in_time(&self, handed: &Handed) -> Option<u64> {
        handed.intended_start_ns.filter(|_| handed.in_time).map(|intended_ns| intended_ns.max(self.free_in_time_ns))
    }

    /// Puts down what became of a statement.
    fn end(&mut self, handed: &Handed, start_ns: u64, result: Result<u64, DriverError>) {
        let sessions = self.sessions;
        match (&result, handed.statement.transaction) {
            (Ok(_), transaction) => self.begun = transaction,
            (Err(_), Some(transaction)) if self.begun != Some(transaction) => self.lost = Some(transaction),
            _ => {}
        }
        let free_ns = sessions.clock.now_ns();
        let mut end_ns = free_ns;
        let outcome = Outcome::of(&result.as_ref().map(|_| ()).map_err(Clone::clone));
        if outcome == Outcome::Timeout {
            end_ns = start_ns + sessions.shared.plan.timeout_ns;
        }
        let (operation, k) = (handed.statement.template, handed.statement.k);
        let mut batch = sessions.batch.borrow_mut();
        let rows = *result.as_ref().unwrap_or(&0);
        if sessions.keeps_answers && outcome == Outcome::Ok {
            batch.add_answer(Answer { phase: 0, operation, k, digest: digest_of_all_columns(&self.rows) });
        }
        if let Err(error) = result {
            batch.add_failure(Failure { phase: 0, operation, error });
        }
        let start_in_time_ns = self.start_in_time(handed);
        let own_lag_ns = start_in_time_ns.map(|start_in_time_ns| start_ns.saturating_sub(start_in_time_ns));
        // A statement that was given up keeps its session until the server has ended it.
        self.free_in_time_ns = free_ns - own_lag_ns.unwrap_or(0);
        let intended_start_ns = handed.intended_start_ns.unwrap_or(start_ns).min(start_ns);
        let slot = self.number;
        let record = Record { phase: 0, operation, slot, outcome, own_lag_ns, k, intended_start_ns, start_ns, end_ns, rows };
        batch.add(record, &sessions.recorder);
    }
}
