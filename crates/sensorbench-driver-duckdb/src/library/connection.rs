//! Connections.

use std::ptr::null_mut;
use std::sync::Arc;

use sensorbench_driver::Interrupt;

use super::api::{Functions, Handle, RawResult, SUCCESS, kind};
use super::instance::c_text;
use super::{Answer, Instance, Refusal};

/// A connection to an open database. One thread uses it at a time; `interrupt` may come from any.
pub struct Connection {
    pub(super) handle: Handle,
    instance: Arc<Instance>,
}

// SAFETY: it may move to another thread; DuckDB itself locks what a connection is about.
unsafe impl Send for Connection {}
// SAFETY: as above.
unsafe impl Sync for Connection {}

impl Connection {
    pub fn to(instance: &Arc<Instance>) -> Result<Arc<Self>, Refusal> {
        let mut handle = null_mut();
        // SAFETY: the database is open as long as there is the instance.
        if unsafe { (instance.library.functions.connect)(instance.handle, &mut handle) } != SUCCESS {
            return Err(Refusal::new(kind::INVALID, "DuckDB does not say why it gives no connection"));
        }
        Ok(Arc::new(Self { handle, instance: instance.clone() }))
    }

    pub(super) fn functions(&self) -> &'static Functions {
        &self.instance.library.functions
    }

    /// Executes statements, and returns the answer of the last one.
    pub fn query(&self, statements: &str) -> Result<Answer, Refusal> {
        let statements = c_text(statements);
        let mut raw = RawResult::EMPTY;
        // SAFETY: all of it lives until the call is over.
        let state = unsafe { (self.functions().query)(self.handle, statements.as_ptr(), &mut raw) };
        Answer::of(self.functions(), state, raw)
    }
}

impl Interrupt for Connection {
    fn interrupt(&self) {
        // SAFETY: the connection is there, and this function may be called from any thread.
        unsafe { (self.functions().interrupt)(self.handle) };
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: statements and appenders have a share of this, so that none is left.
        unsafe { (self.functions().disconnect)(&mut self.handle) };
    }
}
