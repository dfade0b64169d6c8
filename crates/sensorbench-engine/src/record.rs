//! What is known of an operation after it ended.

use sensorbench_driver::{Digest, DriverError};

/// How an operation ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// With an answer.
    Ok,
    /// With an error.
    Error,
    /// Not within its time limit.
    Timeout,
    /// Not before the run was cancelled.
    Cancelled,
}

/// All outcomes, in the order of their numbers.
pub const OUTCOMES: [Outcome; 4] = [Outcome::Ok, Outcome::Error, Outcome::Timeout, Outcome::Cancelled];

impl Outcome {
    /// The word for this outcome in results.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Error => "error",
            Outcome::Timeout => "timeout",
            Outcome::Cancelled => "cancelled",
        }
    }

    pub(crate) fn of(result: &Result<(), DriverError>) -> Self {
        match result {
            Ok(()) => Outcome::Ok,
            Err(DriverError::Timeout) => Outcome::Timeout,
            Err(DriverError::Cancelled) => Outcome::Cancelled,
            Err(_) => Outcome::Error,
        }
    }
}

/// One operation. Times on the run's clock.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Number of its phase.
    pub phase: u16,
    /// Number of its kind.
    pub operation: u16,
    /// Number of the place that executed it: no other of the run has it, and it executes one operation after the other.
    pub slot: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// How much of its schedule lag is the engine's own, where that is known: all of it, where the engine waited for its intended start.
    pub own_lag_ns: Option<u64>,
    /// Its number in the phase.
    pub k: u64,
    /// Its intended start; in a closed loop, when it started.
    pub intended_start_ns: u64,
    /// When it started.
    pub start_ns: u64,
    /// When its answer was there, or the error; for time-outs, when the limit was reached.
    pub end_ns: u64,
    /// Rows of the answer.
    pub rows: u64,
}

impl Record {
    /// Schedule lag: from the intended start to the start.
    pub fn schedule_lag_ns(&self) -> u64 {
        self.start_ns - self.intended_start_ns
    }

    /// Service time: from the start to the end.
    pub fn service_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    /// Response time: from the intended start to the end.
    pub fn response_ns(&self) -> u64 {
        self.end_ns - self.intended_start_ns
    }
}

/// What an answer said.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Number of the operation's phase.
    pub phase: u16,
    /// Number of its kind.
    pub operation: u16,
    /// Its number in the phase.
    pub k: u64,
    /// What is compared.
    pub digest: Digest,
}

/// An error as it is counted.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub phase: u16,
    pub operation: u16,
    pub error: DriverError,
}
