//! Connections for everything that is not measured: each with a runtime of its own, lent to one caller at a time.

use std::sync::{Arc, Mutex};

use sensorbench_driver::{DriverError, runtime};
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tokio_postgres::Client;

use super::target::{CONNECT_TIMEOUT, CONTROL, Target};

/// Lends connections. One is kept, so that asking for counters every second does not make the server start a process each time.
pub struct Control {
    target: Arc<Target>,
    idle: Mutex<Option<Line>>,
}

struct Line {
    runtime: Runtime,
    client: Client,
}

impl Control {
    pub fn new(target: Arc<Target>) -> Self {
        Self { target, idle: Mutex::new(None) }
    }

    /// Does something over a connection. Where that fails, the connection is not used again.
    pub fn with<T>(&self, work: impl AsyncFnOnce(&mut Client) -> Result<T, DriverError>) -> Result<T, DriverError> {
        let mut line = self.line()?;
        let done = line.runtime.block_on(work(&mut line.client))?;
        *self.idle.lock().expect("nothing panics under this lock") = Some(line);
        Ok(done)
    }

    /// The kept connection if it still answers, else a new one.
    fn line(&self) -> Result<Line, DriverError> {
        let idle = self.idle.lock().expect("nothing panics under this lock").take();
        match idle {
            Some(line) if line.answers() => Ok(line),
            _ => Line::open(&self.target),
        }
    }
}

impl Line {
    fn open(target: &Target) -> Result<Self, DriverError> {
        let runtime = runtime()?;
        let client = runtime.block_on(async {
            let client = target.connect(CONTROL).await?;
            target.dialect.check_server(&client, &target.place, &target.url).await?;
            Ok::<_, DriverError>(client)
        })?;
        Ok(Self { runtime, client })
    }

    fn answers(&self) -> bool {
        let checked = async { timeout(CONNECT_TIMEOUT, self.client.check_connection()).await };
        matches!(self.runtime.block_on(checked), Ok(Ok(())))
    }
}
