//! A session for everything that is not measured, kept going by a thread of its own.

use std::sync::{Arc, Mutex};

use scylla::client::session::Session;
use sensorbench_driver::DriverError;
use tokio::runtime::{Builder, Runtime};

use crate::target::Target;

/// Keeps a session. It connects when it is first asked for.
pub struct Control {
    target: Arc<Target>,
    line: Mutex<Option<Arc<Line>>>,
}

/// A session and what keeps it going.
struct Line {
    session: Session,
    runtime: Runtime,
}

impl Control {
    pub fn new(target: Arc<Target>) -> Self {
        Self { target, line: Mutex::new(None) }
    }

    /// Does something in the session.
    pub fn with<T>(&self, work: impl AsyncFnOnce(&Session) -> Result<T, DriverError>) -> Result<T, DriverError> {
        let line = self.line()?;
        line.runtime.block_on(work(&line.session))
    }

    fn line(&self) -> Result<Arc<Line>, DriverError> {
        let mut kept = self.line.lock().expect("nothing panics under this lock");
        if let Some(line) = &*kept {
            return Ok(line.clone());
        }
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| DriverError::Connection(format!("an asynchronous runtime: {error}")))?;
        let session = runtime.block_on(self.target.connect(1, None))?;
        let line = Arc::new(Line { session, runtime });
        *kept = Some(line.clone());
        Ok(line)
    }
}
