//! Locks of rows, for writes that read what they change.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard};

/// Rows that share a lock wait for one another without need: enough that a dozen threads rarely do.
const LOCKS: usize = 256;

/// A lock for each row, which some rows share.
pub struct RowLocks {
    locks: [Mutex<()>; LOCKS],
    hasher: RandomState,
}

impl Default for RowLocks {
    fn default() -> Self {
        Self { locks: [const { Mutex::new(()) }; LOCKS], hasher: RandomState::new() }
    }
}

impl RowLocks {
    /// Holds the row with this key until the guard is dropped.
    pub fn lock(&self, key: &[u8]) -> MutexGuard<'_, ()> {
        let place = self.hasher.hash_one(key) as usize % LOCKS;
        self.locks[place].lock().expect("nothing panics under this lock")
    }
}
