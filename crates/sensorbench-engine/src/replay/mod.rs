//! Replays recorded statements on the clock that they were recorded by: an open loop whose arrivals are those of a trace.
//!
//! A thread reads the trace while it is replayed (`source.rs`), so that memory does not grow with its length. Another one hands
//! each statement to its session at its intended start (`work.rs`). A session executes its statements in their order on a
//! connection of its own (`session.rs`); one that comes while the statement before it is unanswered waits, and its response time
//! counts from the intended start all the same.
//!
//! The intended starts and service times of a session show when each statement would have started if the replayer had never been late.
//! Lag up to that moment is the target's; what comes on top is the replayer's own, which is the run's timer lag.

mod literals;
mod plan;
mod session;
mod source;
mod work;

pub use literals::parse_literals;
pub use plan::{Copy, ReplayPlan};
pub use source::{SessionLengths, TraceReader};
pub(crate) use work::{Replay, replay};
