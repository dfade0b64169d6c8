//! What a driver or the manager says of a call that did not succeed.

use std::fmt;

use super::Text;
use super::api::{Functions, Handle, SQL_NO_DATA, SQL_SUCCESS, SQL_SUCCESS_WITH_INFO};

/// No call has more to say than this.
const MAX_RECORDS: i16 = 8;
/// Characters of one message; longer ones are cut.
const MESSAGE_LENGTH: usize = 2048;
const STATE_LENGTH: usize = 5;

/// The records of one call, the most important first.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics(Vec<Record>);

#[derive(Clone, Debug)]
struct Record {
    /// Five letters and digits; the first two are the class.
    state: String,
    message: String,
}

impl Diagnostics {
    /// What was said of the last call with this handle.
    ///
    /// # Safety
    ///
    /// The handle must be one of this kind, and not be freed.
    pub unsafe fn of(functions: &Functions, text: Text, kind: i16, handle: Handle) -> Self {
        // SAFETY: the caller's.
        let record = |number| unsafe { Record::of(functions, text, kind, handle, number) };
        Self((1..=MAX_RECORDS).map_while(record).collect())
    }

    /// One record of our own.
    pub fn with(state: &str, message: impl Into<String>) -> Self {
        Self(vec![Record { state: state.to_owned(), message: message.into() }])
    }

    /// Whether a record is of this class or state.
    pub fn has(&self, state: &str) -> bool {
        self.0.iter().any(|record| record.state.starts_with(state))
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        if self.0.is_empty() {
            return formatter.write_str("the driver does not say why");
        }
        for (number, Record { state, message }) in self.0.iter().enumerate() {
            write!(formatter, "{}{message} ({state})", if number == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl Record {
    /// # Safety
    ///
    /// As of [`Diagnostics::of`].
    unsafe fn of(functions: &Functions, text: Text, kind: i16, handle: Handle, number: i16) -> Option<Self> {
        let (mut native, mut length) = (0, 0);
        let capacity = MESSAGE_LENGTH as i16;
        let (outcome, state, message) = match text {
            Text::Wide => {
                let (mut state, mut message) = ([0_u16; STATE_LENGTH + 1], [0_u16; MESSAGE_LENGTH]);
                let (at_state, at_message) = (state.as_mut_ptr(), message.as_mut_ptr());
                // SAFETY: the buffers are as long as is said.
                let outcome = unsafe {
                    (functions.diagnostic_wide)(kind, handle, number, at_state, &mut native, at_message, capacity, &mut length)
                };
                let written = &message[..written(length, MESSAGE_LENGTH)];
                (outcome, String::from_utf16_lossy(&state[..STATE_LENGTH]), String::from_utf16_lossy(written))
            }
            Text::Narrow => {
                let (mut state, mut message) = ([0_u8; STATE_LENGTH + 1], [0_u8; MESSAGE_LENGTH]);
                let (at_state, at_message) = (state.as_mut_ptr(), message.as_mut_ptr());
                // SAFETY: the buffers are as long as is said.
                let outcome = unsafe {
                    (functions.diagnostic_narrow)(kind, handle, number, at_state, &mut native, at_message, capacity, &mut length)
                };
                let written = &message[..written(length, MESSAGE_LENGTH)];
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                (outcome, text(&state[..STATE_LENGTH]), text(written))
            }
        };
        debug_assert!(matches!(outcome, SQL_SUCCESS | SQL_SUCCESS_WITH_INFO | SQL_NO_DATA) || outcome < 0);
        matches!(outcome, SQL_SUCCESS | SQL_SUCCESS_WITH_INFO).then(|| Self { state, message: message.trim().to_owned() })
    }
}

/// How much of a buffer was written where `length` were to be, and one more that ends them.
pub fn written(length: i16, capacity: usize) -> usize {
    usize::try_from(length).unwrap_or(0).min(capacity - 1)
}
