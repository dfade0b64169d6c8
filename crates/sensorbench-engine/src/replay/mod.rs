//! Replays recorded statements on the clock that they were recorded by: an open loop whose arrivals are those of a trace.
//!
//! A thread reads the trace while it is replayed (`source.rs`), so that memory does not grow with its length. Another one hands
//! each statement to its session at its intended start (`work.rs`). A session executes its statements in their order on a
//! connection of its own (`session.rs`); one that comes while the statement before it is unanswered waits, and its response time
//! counts from the intended start all the same.
//!
//! Where the session was free at the intended start, the schedule lag is the replayer's own: it is the timer lag of the run.
//! Else the target made it late.

mod literals;
mod plan;
mod session;
mod source;
mod work;

pub use literals::parse_literals;
pub use plan::{Copy, ReplayPlan};
pub use source::{SessionLengths, TraceReader};
pub(crate) use work::{Replay, replay};
