//! The schema that a driver works with.

use std::fmt::Display;
use std::sync::Mutex;

use crate::DriverError;

/// A schema in a driver's own form, once its tables were created or attached.
#[derive(Debug)]
pub struct KeptSchema<S>(Mutex<Option<S>>);

impl<S> Default for KeptSchema<S> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<S: Clone> KeptSchema<S> {
    /// Keeps a schema, instead of the one before.
    pub fn keep(&self, schema: S) {
        *self.0.lock().expect("nothing panics under this lock") = Some(schema);
    }

    /// The schema; an error about the place when there is none.
    pub fn get(&self, place: impl Display) -> Result<S, DriverError> {
        let kept = self.0.lock().expect("nothing panics under this lock").clone();
        kept.ok_or_else(|| DriverError::Namespace(format!("{place}: no schema was created or attached")))
    }
}
