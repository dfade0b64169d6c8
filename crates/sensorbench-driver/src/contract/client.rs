//! One session of whichever kind, executing one operation at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sensorbench_dataset::{Value, ValueRef};

use super::subject::{Subject, schema};
use crate::deadline::Deadline;
use crate::driver::{AsyncSession, BlockingConnector, BlockingSession, Driver, Request, Sessions};
use crate::error::DriverError;
use crate::rows::{RowRef, Rows};

/// One session of whichever kind, and the means to end an operation.
pub(super) struct Client {
    session: Session,
    operations: Vec<String>,
    sorts: bool,
    later_us: i64,
    pub(super) cancelled: Arc<AtomicBool>,
}

pub(super) enum Session {
    Asynchronous(tokio::runtime::Runtime, Box<dyn AsyncSession>),
    Blocking(Box<dyn BlockingSession>, Arc<Deadline>, Instant),
}

pub(super) const NO_LIMIT: Duration = Duration::from_secs(600);

impl Client {
    pub(super) fn of(subject: &Subject, driver: &dyn Driver) -> Self {
        let operations = schema(subject).operations;
        let cancelled = Arc::new(AtomicBool::new(false));
        let session = match driver.sessions(&operations).expect("sessions are made") {
            Sessions::Asynchronous(connector) => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                let session = runtime.block_on(connector.connect(1)).expect("a session connects");
                Session::Asynchronous(runtime, session)
            }
            Sessions::Blocking(connector) => blocking_session(connector.as_ref(), cancelled.clone()),
        };
        Self {
            session,
            operations: operations.into_iter().map(|operation| operation.name).collect(),
            sorts: subject.keeps.sorts,
            later_us: subject.keeps.later_us,
            cancelled,
        }
    }

    pub(super) fn execute(&mut self, operation: &str, parameters: &[Value], limit: Duration) -> Result<Rows, DriverError> {
        let operation = self
            .operations
            .iter()
            .position(|name| name == operation)
            .unwrap_or_else(|| panic!("the schema has the operation {operation}"));
        let mut request = Request { operation, parameters: parameters.to_vec(), rows: Rows::new() };
        match &mut self.session {
            Session::Blocking(session, deadline, origin) => {
                deadline.set((origin.elapsed() + limit).as_nanos() as u64);
                session.execute(&mut request)?;
                Ok(request.rows)
            }
            Session::Asynchronous(runtime, session) => {
                let cancelled = self.cancelled.clone();
                let watched = async {
                    while !cancelled.load(Ordering::Relaxed) {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                };
                runtime.block_on(async {
                    tokio::select! {
                        (request, outcome) = session.execute(Box::new(request)) => outcome.map(|()| request.rows),
                        () = tokio::time::sleep(limit) => Err(DriverError::Timeout),
                        () = watched => Err(DriverError::Cancelled),
                    }
                })
            }
        }
    }

    pub(super) fn ids_in(&mut self, from: i64, to: i64) -> Vec<i64> {
        let range = [from, to].map(|time| Value::Timestamp(time + self.later_us));
        let rows = self.execute("in_time_range", &range, NO_LIMIT).expect("a range is read");
        let of_row = |row: RowRef| match (row.value(0), row.value(1)) {
            (ValueRef::Integer(id), ValueRef::Timestamp(time)) => (time, id),
            other => panic!("an id is an integer and a time a timestamp, not {other:?}"),
        };
        let mut found: Vec<(i64, i64)> = rows.iter().map(of_row).collect();
        if !self.sorts {
            found.sort_unstable();
        }
        found.into_iter().map(|(_, id)| id).collect()
    }

    pub(super) fn still_works(&mut self) {
        assert_eq!(self.ids_in(1_000_000, 2_000_000), [1], "a session is usable after an error");
    }
}

pub(super) fn blocking_session(connector: &dyn BlockingConnector, cancelled: Arc<AtomicBool>) -> Session {
    let origin = Instant::now();
    let deadline = Arc::new(Deadline::new(origin, cancelled));
    Session::Blocking(connector.connect(deadline.clone()).expect("a session connects"), deadline, origin)
}
