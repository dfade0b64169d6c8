//! When a blocking operation must be over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::DriverError;

/// The limit of the operation that a blocking session is executing. The engine sets it before each operation; the session
/// asks it now and then, from wherever its database lets it, and gives up when it has passed.
#[derive(Debug)]
pub struct Deadline {
    origin: Instant,
    at_ns: AtomicU64,
    cancelled: Arc<AtomicBool>,
}

impl Deadline {
    /// No limit yet. Times count from `origin`; `cancelled` ends every operation at once.
    pub fn new(origin: Instant, cancelled: Arc<AtomicBool>) -> Self {
        Self { origin, at_ns: AtomicU64::new(u64::MAX), cancelled }
    }

    /// Sets the limit, in nanoseconds after the origin.
    #[inline]
    pub fn set(&self, at_ns: u64) {
        self.at_ns.store(at_ns, Ordering::Relaxed);
    }

    /// Why the operation should end now, if it should.
    pub fn passed(&self) -> Option<DriverError> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Some(DriverError::Cancelled);
        }
        (self.origin.elapsed().as_nanos() as u64 >= self.at_ns.load(Ordering::Relaxed)).then_some(DriverError::Timeout)
    }

    /// An error when the operation should end now.
    pub fn check(&self) -> Result<(), DriverError> {
        self.passed().map_or(Ok(()), Err)
    }

    /// Sleeps for `duration`, but not beyond the limit.
    pub fn sleep(&self, duration: Duration) -> Result<(), DriverError> {
        const SLICE: Duration = Duration::from_millis(10);
        let end = Instant::now() + duration;
        while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            self.check()?;
            let until_limit = Duration::from_nanos(self.at_ns.load(Ordering::Relaxed)).saturating_sub(self.origin.elapsed());
            std::thread::sleep(left.min(SLICE).min(until_limit));
        }
        Ok(())
    }
}
