//! A connection, with an environment of its own.

use std::path::Path;
use std::ptr::null_mut;
use std::sync::Arc;

use super::api::{
    Handle, Return, SQL_ATTR_AUTOCOMMIT, SQL_ATTR_CONNECTION_DEAD, SQL_ATTR_LOGIN_TIMEOUT, SQL_ATTR_ODBC_VERSION, SQL_CD_FALSE,
    SQL_COMMIT, SQL_DRIVER_NOPROMPT, SQL_HANDLE_DBC, SQL_HANDLE_ENV, SQL_NTS, SQL_OV_ODBC3, SQL_ROLLBACK, SQL_SUCCESS,
    SQL_SUCCESS_WITH_INFO,
};
use super::diagnostics::written;
use super::{Diagnostics, Manager, Text, number};

/// Characters of a fact.
const FACT_LENGTH: usize = 512;

/// What a connection can report.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u16)]
pub enum Fact {
    /// SQL_DRIVER_NAME: the driver's library.
    DriverName = 6,
    /// SQL_DRIVER_VER.
    DriverVersion = 7,
    /// SQL_DBMS_NAME: what answers.
    DatabaseName = 17,
    /// SQL_DBMS_VER.
    DatabaseVersion = 18,
    /// SQL_DRIVER_ODBC_VER: of the standard.
    DriverStandard = 77,
    /// SQL_DM_VER: of the manager.
    ManagerVersion = 171,
}

/// A connection. It ends when the last of its statements is gone, and so does an open transaction.
pub struct Connection {
    pub(super) manager: &'static Manager,
    pub(super) text: Text,
    environment: Handle,
    pub(super) handle: Handle,
    is_connected: bool,
}

// SAFETY: the standard lets a handle be used by any thread, and by several at a time; that a connection executes one statement at
// a time is seen to by those who have it.
unsafe impl Send for Connection {}
unsafe impl Sync for Connection {}

impl Connection {
    /// Connects. `driver` is the driver's library, where the connection string names one by its path.
    pub fn open(
        manager: &'static Manager,
        text: Text,
        connection_string: &str,
        driver: Option<&Path>,
        login_timeout_s: u32,
    ) -> Result<Arc<Self>, Diagnostics> {
        if let Some(driver) = driver {
            manager.load_driver(driver).map_err(|error| Diagnostics::with("IM003", error.to_string()))?;
        }
        let mut connection = Self { manager, text, environment: null_mut(), handle: null_mut(), is_connected: false };
        let functions = &manager.functions;
        // SAFETY: each handle is used while it is there; the string is as long as is said.
        unsafe {
            let outcome = (functions.allocate)(SQL_HANDLE_ENV, null_mut(), &mut connection.environment);
            connection.check_environment(outcome)?;
            let version = number(SQL_OV_ODBC3);
            connection.check_environment((functions.set_environment)(
                connection.environment,
                SQL_ATTR_ODBC_VERSION,
                version,
                0,
            ))?;
            let outcome = (functions.allocate)(SQL_HANDLE_DBC, connection.environment, &mut connection.handle);
            connection.check_environment(outcome)?;
            let limit = number(login_timeout_s as usize);
            // A driver that knows no such limit has its own.
            (functions.set_connection)(connection.handle, SQL_ATTR_LOGIN_TIMEOUT, limit, 0);
            let outcome = connection.log_in(connection_string);
            connection.check(outcome)?;
        }
        connection.is_connected = true;
        Ok(Arc::new(connection))
    }

    /// # Safety
    ///
    /// The handle must be there and not be connected.
    unsafe fn log_in(&self, connection_string: &str) -> Return {
        let functions = &self.manager.functions;
        let (window, ask) = (null_mut(), SQL_DRIVER_NOPROMPT);
        // SAFETY: both strings end with a zero; nothing is written.
        unsafe {
            match self.text {
                Text::Wide => {
                    let text: Vec<u16> = connection_string.encode_utf16().chain([0]).collect();
                    let (start, none) = (text.as_ptr(), null_mut());
                    (functions.connect_wide)(self.handle, window, start, SQL_NTS as i16, none, 0, null_mut(), ask)
                }
                Text::Narrow => {
                    let text: Vec<u8> = connection_string.bytes().chain([0]).collect();
                    let (start, none) = (text.as_ptr(), null_mut());
                    (functions.connect_narrow)(self.handle, window, start, SQL_NTS as i16, none, 0, null_mut(), ask)
                }
            }
        }
    }

    /// Whether each statement is a transaction of its own, as it is at first.
    pub fn set_autocommit(&self, on: bool) -> Result<(), Diagnostics> {
        let value = number(usize::from(on));
        // SAFETY: the connection is open.
        self.check(unsafe { (self.manager.functions.set_connection)(self.handle, SQL_ATTR_AUTOCOMMIT, value, 0) })
    }

    /// Ends a transaction, so that it holds.
    pub fn commit(&self) -> Result<(), Diagnostics> {
        self.end_transaction(SQL_COMMIT)
    }

    /// Ends a transaction, so that nothing of it holds.
    pub fn roll_back(&self) -> Result<(), Diagnostics> {
        self.end_transaction(SQL_ROLLBACK)
    }

    fn end_transaction(&self, end: i16) -> Result<(), Diagnostics> {
        // SAFETY: the connection is open.
        self.check(unsafe { (self.manager.functions.end_transaction)(SQL_HANDLE_DBC, self.handle, end) })
    }

    /// True when the driver knows that the server is gone.
    pub fn is_dead(&self) -> bool {
        let mut state = 0_usize;
        let place = (&raw mut state).cast();
        // SAFETY: the attribute has four bytes, and eight in some drivers.
        let outcome =
            unsafe { (self.manager.functions.get_connection)(self.handle, SQL_ATTR_CONNECTION_DEAD, place, 0, null_mut()) };
        outcome == SQL_SUCCESS && state != SQL_CD_FALSE
    }

    /// What the driver says of itself and of the database; nothing if it does not say.
    pub fn fact(&self, fact: Fact) -> String {
        let mut length = 0;
        let functions = &self.manager.functions;
        match self.text {
            Text::Wide => {
                let mut units = [0_u16; FACT_LENGTH];
                let bytes = size_of_val(&units) as i16;
                // SAFETY: the buffer is as long as is said.
                let outcome =
                    unsafe { (functions.info_wide)(self.handle, fact as u16, units.as_mut_ptr().cast(), bytes, &mut length) };
                if outcome != SQL_SUCCESS {
                    return String::new();
                }
                // Some drivers report the length in characters, and not in bytes.
                let end = units.iter().position(|unit| *unit == 0).unwrap_or(0);
                String::from_utf16_lossy(&units[..end])
            }
            Text::Narrow => {
                let mut bytes = [0_u8; FACT_LENGTH];
                // SAFETY: the buffer is as long as is said.
                let outcome = unsafe {
                    (functions.info_narrow)(self.handle, fact as u16, bytes.as_mut_ptr().cast(), FACT_LENGTH as i16, &mut length)
                };
                if outcome != SQL_SUCCESS {
                    return String::new();
                }
                String::from_utf8_lossy(&bytes[..written(length, FACT_LENGTH)]).into_owned()
            }
        }
    }

    pub(super) fn check(&self, outcome: Return) -> Result<(), Diagnostics> {
        if matches!(outcome, SQL_SUCCESS | SQL_SUCCESS_WITH_INFO) {
            return Ok(());
        }
        // SAFETY: the handle is there.
        Err(unsafe { Diagnostics::of(&self.manager.functions, self.text, SQL_HANDLE_DBC, self.handle) })
    }

    fn check_environment(&self, outcome: Return) -> Result<(), Diagnostics> {
        if matches!(outcome, SQL_SUCCESS | SQL_SUCCESS_WITH_INFO) {
            return Ok(());
        }
        if self.environment.is_null() {
            return Err(Diagnostics::with("HY001", "the driver manager gives no environment"));
        }
        // SAFETY: the handle is there.
        Err(unsafe { Diagnostics::of(&self.manager.functions, self.text, SQL_HANDLE_ENV, self.environment) })
    }
}

impl Drop for Connection {
    /// Nothing can be done about an end that fails.
    fn drop(&mut self) {
        let functions = &self.manager.functions;
        // SAFETY: each handle is freed once, the inner one first; statements are gone, because they hold the connection.
        unsafe {
            if self.is_connected {
                // An open transaction would keep it from ending.
                (functions.end_transaction)(SQL_HANDLE_DBC, self.handle, SQL_ROLLBACK);
                (functions.disconnect)(self.handle);
            }
            if !self.handle.is_null() {
                (functions.free)(SQL_HANDLE_DBC, self.handle);
            }
            if !self.environment.is_null() {
                (functions.free)(SQL_HANDLE_ENV, self.environment);
            }
        }
    }
}
