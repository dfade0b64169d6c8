//! Libraries that are opened at run time: once in a process, until it ends.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What was opened, by its path. Nothing is ever closed, so that everybody may keep what they were given.
pub struct OpenedOnce<T: 'static>(Mutex<BTreeMap<PathBuf, &'static T>>);

impl<T: Sync> OpenedOnce<T> {
    /// Nothing is open.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it is only of use in a static")]
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// What is open at a path; else it is opened. The error names the path and the reason, and the next call tries again.
    pub fn get(&self, path: &Path, open: impl FnOnce(&Path) -> Result<T, String>) -> Result<&'static T, String> {
        let mut opened = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = opened.get(path) {
            return Ok(known);
        }
        let known = Box::leak(Box::new(open(path).map_err(|reason| format!("{}: {reason}", path.display()))?));
        opened.insert(path.to_owned(), known);
        Ok(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_opened_once_and_again_after_a_failure() {
        static OPENED: OpenedOnce<u32> = OpenedOnce::new();
        let path = Path::new("/lib/x.so");
        assert_eq!(OPENED.get(path, |_| Err("no such file".to_owned())), Err("/lib/x.so: no such file".to_owned()));
        let first = OPENED.get(path, |_| Ok(1)).unwrap();
        let second = OPENED.get(path, |_| Ok(2)).unwrap();
        assert!(std::ptr::eq(first, second) && *second == 1);
        assert_eq!(OPENED.get(Path::new("/lib/y.so"), |_| Ok(3)), Ok(&3));
    }
}
