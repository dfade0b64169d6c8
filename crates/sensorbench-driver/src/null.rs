//! A database that does nothing, at a known speed: the ceiling of the engine, and a server whose stalls are arithmetic.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use arrow_array::RecordBatchReader;
use futures::future::LocalBoxFuture;
use serde_json::json;
use tokio::time::Instant;

use crate::{
    ANY_STATEMENTS, About, Admission, AsyncConnector, AsyncSession, BlockingConnector, BlockingSession, Database, Deadline,
    Description, Driver, DriverError, Executing, Literal, Marker, Occupant, Operation, Progress, ReplayConnection,
    ReplayConnector, ReplayRequest, Request, Rows, Schema, Sessions, Size, TargetUrl, WriteCheck, WriteQuestion, parse_part,
};

/// The null database. Options: `delay_ms` (each operation takes this long), `stall_at_ms` and `stall_ms` (all operations
/// that fall into this one span of time are held until its end), `session` (`asynchronous` or `blocking`).
pub struct NullDatabase;

#[derive(Clone, Copy, Default)]
struct Behaviour {
    delay: Duration,
    stall: Option<(Duration, Duration)>,
    blocking: bool,
}

impl Behaviour {
    fn of(url: &TargetUrl) -> Result<Self, DriverError> {
        url.check_options(&["delay_ms", "session", "stall_at_ms", "stall_ms"])?;
        let milliseconds = |key: &str| -> Result<Option<Duration>, DriverError> {
            let value: Option<f64> = url.parsed_option(key, "a number of milliseconds")?;
            let duration = |value: f64| {
                Duration::try_from_secs_f64(value / 1e3).map_err(|error| url.error(format!("option {key}: {error}")))
            };
            value.map(duration).transpose()
        };
        let stall = match (milliseconds("stall_at_ms")?, milliseconds("stall_ms")?) {
            (Some(at), Some(length)) => Some((at, at + length)),
            (None, None) => None,
            _ => return Err(url.error("options stall_at_ms and stall_ms belong together")),
        };
        let blocking = match url.option("session") {
            None | Some("asynchronous") => false,
            Some("blocking") => true,
            Some(other) => return Err(url.error(format!("option session={other}: expected asynchronous or blocking"))),
        };
        Ok(Self { delay: milliseconds("delay_ms")?.unwrap_or_default(), stall, blocking })
    }

    /// How long an operation takes that starts this long after the session did.
    #[inline]
    fn duration(&self, elapsed: impl FnOnce() -> Duration) -> Duration {
        let Some((from, to)) = self.stall else { return self.delay };
        let elapsed = elapsed();
        if (from..to).contains(&elapsed) { to - elapsed } else { self.delay }
    }
}

impl Database for NullDatabase {
    fn about(&self) -> About {
        let replays = Some(ANY_STATEMENTS);
        About { replays, many_processes: true, ..About::embedded("null", "answers nothing at once; the ceiling of the engine") }
    }

    fn open(&self, url: &TargetUrl) -> Result<Box<dyn Driver>, DriverError> {
        Ok(Box::new(NullDriver { behaviour: Behaviour::of(url)?, counts: Mutex::default(), marker: Mutex::default() }))
    }

    fn check(&self, schema: &Schema) -> Result<(), DriverError> {
        for operation in &schema.operations {
            parse_part::<NoStatement>(&format!("operation.{}", operation.name), &operation.statement)?;
        }
        Ok(())
    }

    fn no_op(&self) -> Option<Schema> {
        Some(serde_json::from_value(json!({"operations": [{"name": "nothing"}]})).expect("a schema"))
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct NoStatement {}

struct NullDriver {
    behaviour: Behaviour,
    counts: Mutex<BTreeMap<String, u64>>,
    /// It forgets with the driver, as everything else.
    marker: Mutex<Option<Marker>>,
}

impl NullDriver {
    fn counts(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.counts.lock().expect("nothing panics under this lock")
    }

    fn marker(&self) -> MutexGuard<'_, Option<Marker>> {
        self.marker.lock().expect("nothing panics under this lock")
    }
}

impl Driver for NullDriver {
    fn describe(&self) -> Result<Description, DriverError> {
        Ok(Description { database: "null".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned(), ..Description::default() })
    }

    fn namespace(&self) -> String {
        "the null database".to_owned()
    }

    fn occupant(&self) -> Result<Occupant, DriverError> {
        Ok(self.marker().clone().map_or(Occupant::Absent, Occupant::Ours))
    }

    fn create(&self, _: &Schema, marker: &Marker, admission: &Admission) -> Result<(), DriverError> {
        self.counts().clear();
        self.write_marker(marker, admission)
    }

    fn attach(&self, _: &Schema) -> Result<(), DriverError> {
        Ok(())
    }

    fn write_marker(&self, marker: &Marker, _: &Admission) -> Result<(), DriverError> {
        *self.marker() = Some(marker.clone());
        Ok(())
    }

    fn remove(&self, _: &Admission) -> Result<(), DriverError> {
        self.counts().clear();
        *self.marker() = None;
        Ok(())
    }

    fn namespaces(&self) -> Result<Vec<String>, DriverError> {
        Ok(Vec::new())
    }

    /// Forgets the rows, but counts them.
    fn load(&self, table: &str, rows: Box<dyn RecordBatchReader + Send>, progress: &Progress) -> Result<(), DriverError> {
        for batch in rows {
            progress.check()?;
            let rows = batch.map_err(|error| DriverError::Data(error.to_string()))?.num_rows() as u64;
            *self.counts().entry(table.to_owned()).or_default() += rows;
            progress.add_batch(rows, Duration::ZERO);
        }
        Ok(())
    }

    fn settle(&self) -> Result<(), DriverError> {
        Ok(())
    }

    fn count(&self, table: &str) -> Result<u64, DriverError> {
        Ok(self.counts().get(table).copied().unwrap_or(0))
    }

    fn size(&self) -> Result<Size, DriverError> {
        Ok(Size::default())
    }

    fn sessions(&self, _: &[Operation]) -> Result<Sessions, DriverError> {
        let connector = NullConnector { behaviour: self.behaviour };
        Ok(if self.behaviour.blocking {
            Sessions::Blocking(Box::new(connector))
        } else {
            Sessions::Asynchronous(Box::new(connector))
        })
    }

    fn replayer(&self, _: ReplayRequest) -> Result<Box<dyn ReplayConnector>, DriverError> {
        Ok(Box::new(NullConnector { behaviour: self.behaviour }))
    }

    /// Nothing is written anywhere.
    fn check_writes(&self, question: WriteQuestion) -> Result<Vec<WriteCheck>, DriverError> {
        Ok(question.writes.iter().map(|template| WriteCheck { template: *template, problem: None }).collect())
    }
}

struct NullConnector {
    behaviour: Behaviour,
}

impl AsyncConnector for NullConnector {
    fn connect(&self, _in_flight: usize) -> LocalBoxFuture<'_, Result<Box<dyn AsyncSession>, DriverError>> {
        let session = NullSession { behaviour: self.behaviour, start: Instant::now() };
        Box::pin(async { Ok(Box::new(session) as Box<dyn AsyncSession>) })
    }
}

impl BlockingConnector for NullConnector {
    fn connect(&self, deadline: Arc<Deadline>) -> Result<Box<dyn BlockingSession>, DriverError> {
        Ok(Box::new(NullBlockingSession { behaviour: self.behaviour, start: std::time::Instant::now(), deadline }))
    }
}

impl ReplayConnector for NullConnector {
    fn connect(&self) -> LocalBoxFuture<'_, Result<Box<dyn ReplayConnection>, DriverError>> {
        let session = NullSession { behaviour: self.behaviour, start: Instant::now() };
        Box::pin(async { Ok(Box::new(session) as Box<dyn ReplayConnection>) })
    }
}

struct NullSession {
    behaviour: Behaviour,
    start: Instant,
}

impl AsyncSession for NullSession {
    fn execute(&self, request: Box<Request>) -> Executing<'_> {
        let duration = self.behaviour.duration(|| self.start.elapsed());
        Box::pin(async move {
            if !duration.is_zero() {
                tokio::time::sleep(duration).await;
            }
            (request, Ok(()))
        })
    }
}

impl ReplayConnection for NullSession {
    fn execute<'a>(
        &'a self,
        _template: usize,
        _literals: &'a [Literal],
        _rows: &'a mut Rows,
    ) -> LocalBoxFuture<'a, Result<u64, DriverError>> {
        let duration = self.behaviour.duration(|| self.start.elapsed());
        Box::pin(async move {
            if !duration.is_zero() {
                tokio::time::sleep(duration).await;
            }
            Ok(0)
        })
    }

    fn cancel(&self) -> LocalBoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn is_lost(&self) -> bool {
        false
    }
}

struct NullBlockingSession {
    behaviour: Behaviour,
    start: std::time::Instant,
    deadline: Arc<Deadline>,
}

impl BlockingSession for NullBlockingSession {
    fn execute(&mut self, _: &mut Request) -> Result<(), DriverError> {
        let duration = self.behaviour.duration(|| self.start.elapsed());
        if duration.is_zero() { Ok(()) } else { self.deadline.sleep(duration) }
    }
}
