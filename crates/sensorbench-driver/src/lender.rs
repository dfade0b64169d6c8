//! Connections that are lent to one operation at a time.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::deadline::Deadline;
use crate::error::DriverError;

/// How often an operation that waits for a connection looks at its limit.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// Lends the connections of a run. Where there are fewer of them than operations in flight, an operation waits for a free one, which is
/// part of its service time.
pub struct Lender<C> {
    /// How many there may be, if that is limited.
    max: Option<usize>,
    state: Mutex<State<C>>,
    returned: Condvar,
}

struct State<C> {
    free: Vec<C>,
    /// How many there are, on loan or not.
    made: usize,
}

/// A connection on loan. It goes back when it is dropped.
pub struct Loan<'a, C> {
    lender: &'a Lender<C>,
    /// None only while it goes back.
    connection: Option<C>,
}

impl<C> Lender<C> {
    /// No connections yet, and never more than `max`.
    pub fn new(max: Option<usize>) -> Self {
        Self { max, state: Mutex::new(State { free: Vec::new(), made: 0 }), returned: Condvar::new() }
    }

    /// Makes one more connection, which is given its number from 0 on, unless there are as many as there may be.
    ///
    /// Fails as `make` does; there is then no such connection.
    pub fn open(&self, make: impl FnOnce(usize) -> Result<C, DriverError>) -> Result<(), DriverError> {
        let number = {
            let mut state = self.lock();
            if self.max.is_some_and(|max| state.made >= max) {
                return Ok(());
            }
            state.made += 1;
            state.made - 1
        };
        let connection = make(number).inspect_err(|_| self.lock().made -= 1)?;
        self.give_back(connection);
        Ok(())
    }

    /// A connection that nobody else has meanwhile.
    ///
    /// Fails with a time-out or a cancellation where the deadline says so before one is free.
    pub fn lend(&self, deadline: &Deadline) -> Result<Loan<'_, C>, DriverError> {
        deadline.check()?;
        let mut state = self.lock();
        loop {
            if let Some(connection) = state.free.pop() {
                return Ok(Loan { lender: self, connection: Some(connection) });
            }
            state = self.returned.wait_timeout(state, BETWEEN_LOOKS).unwrap_or_else(PoisonError::into_inner).0;
            deadline.check()?;
        }
    }

    fn give_back(&self, connection: C) {
        self.lock().free.push(connection);
        self.returned.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> Deref for Loan<'_, C> {
    type Target = C;

    fn deref(&self) -> &C {
        self.connection.as_ref().expect("it is on loan")
    }
}

impl<C> DerefMut for Loan<'_, C> {
    fn deref_mut(&mut self) -> &mut C {
        self.connection.as_mut().expect("it is on loan")
    }
}

impl<C> Drop for Loan<'_, C> {
    fn drop(&mut self) {
        self.connection.take().into_iter().for_each(|connection| self.lender.give_back(connection));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::time::Instant;

    use super::*;

    fn deadline(is_cancelled: bool) -> Deadline {
        Deadline::new(Instant::now(), Arc::new(AtomicBool::new(is_cancelled)))
    }

    #[test]
    fn a_connection_serves_one_operation_after_the_other() {
        let lender = Lender::new(Some(1));
        (0..3).for_each(|_| lender.open(Ok).unwrap());
        let waited = std::thread::scope(|scope| {
            let mut first = lender.lend(&deadline(false)).unwrap();
            let second = scope.spawn(|| *lender.lend(&deadline(false)).unwrap());
            *first += 7;
            drop(first);
            second.join().unwrap()
        });
        assert_eq!(waited, 7, "the only connection there may be, as the first operation left it");
    }

    #[test]
    fn a_connection_that_is_not_made_counts_for_nothing() {
        let lender = Lender::new(Some(1));
        let refused = |_| Err(DriverError::Connection("refused".to_owned()));
        assert!(lender.open(refused).is_err());
        lender.open(Ok).unwrap();
        assert_eq!(*lender.lend(&deadline(false)).unwrap(), 0);
    }

    #[test]
    fn waiting_ends_with_the_operation() {
        let lender: Lender<()> = Lender::new(None);
        let cancelled = Arc::new(AtomicBool::new(false));
        let deadline = Deadline::new(Instant::now(), cancelled.clone());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| lender.lend(&deadline).err());
            cancelled.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(matches!(waiting.join().unwrap(), Some(DriverError::Cancelled)));
        });
        assert!(lender.lend(&self::deadline(true)).is_err());
    }
}
