//! The runtime of calls that are not measured.

use tokio::runtime::{Builder, Runtime};

use crate::error::DriverError;

/// An asynchronous runtime on the calling thread, with timers and sockets.
///
/// Fails with a connection error where the operating system has no file descriptors for it.
pub fn runtime() -> Result<Runtime, DriverError> {
    let built = Builder::new_current_thread().enable_all().build();
    built.map_err(|error| DriverError::Connection(format!("an asynchronous runtime: {error}")))
}
