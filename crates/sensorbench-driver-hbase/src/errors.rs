//! What gateways and connections say when something goes wrong.

use sensorbench_driver::DriverError;
use thrift::{ApplicationErrorKind, TransportErrorKind};

use crate::bindings::TIOError;

/// The longest part of a server's message that is passed on: some bring whole stack traces.
const MESSAGE_LENGTH_MAX: usize = 400;

/// An error of a gateway, in ours.
pub fn driver_error(gateway: &str, error: thrift::Error) -> DriverError {
    match error {
        thrift::Error::User(error) => DriverError::Statement(match error.downcast_ref::<TIOError>() {
            Some(refused) => describe(refused.message.as_deref().unwrap_or("HBase refused it and does not say why")),
            None => describe(&error.to_string()),
        }),
        thrift::Error::Application(error) if error.kind == ApplicationErrorKind::UnknownMethod => {
            DriverError::Connection(format!(
                "the gateway at {gateway} does not know the call ({}); expected a Thrift 2 gateway: hbase thrift2 start",
                error.message
            ))
        }
        thrift::Error::Application(error) => DriverError::Statement(describe(&error.message)),
        thrift::Error::Transport(error) if error.kind == TransportErrorKind::EndOfFile => DriverError::Connection(format!(
            "the gateway at {gateway} ended the connection; check that it is up, and that transport= is its own (buffered or framed)"
        )),
        thrift::Error::Transport(error) => {
            DriverError::Connection(format!("the gateway at {gateway}: {}; check that it is up", error.message))
        }
        thrift::Error::Protocol(error) => DriverError::Connection(format!(
            "the gateway at {gateway} does not answer in Thrift's binary protocol ({}); check its transport and protocol",
            error.message
        )),
    }
}

/// The first line of a message, without what is too long.
fn describe(message: &str) -> String {
    let line = message.lines().find(|line| !line.trim().is_empty()).unwrap_or(message).trim();
    match line.char_indices().nth(MESSAGE_LENGTH_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_cut_to_what_can_be_read() {
        assert_eq!(describe("\n  no such table\n\tat org.apache.hadoop"), "no such table");
        assert_eq!(describe(&"é".repeat(500)).chars().count(), MESSAGE_LENGTH_MAX + 1);
    }
}
