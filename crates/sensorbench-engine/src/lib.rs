//! Runs a workload on a target: hands out operations, calls the driver, records what happened.
//!
//! A [`Run`] is a handle: it is started, looked at, steered and stopped from outside, while its own threads do the work.
//! Start reading at [`Run::start`], then `asynchronous.rs` and `blocking.rs`, which are the two ways in which operations
//! are executed; `dispatcher.rs` says which comes next, `slot.rs` what happens around a call, `recorder.rs` what is kept.

mod asynchronous;
mod blocking;
mod client_steps;
mod clock;
mod cpu;
mod delivery;
mod dispatcher;
mod execute_once;
#[cfg(test)]
mod fake;
mod freshness;
mod merge;
mod multi_statement;
#[cfg(feature = "overhead")]
pub mod overhead;
mod parameter_table;
mod parameters;
mod plan;
mod prepared;
mod ready_plan;
mod record;
mod recorder;
mod records;
mod reduction;
mod replay;
mod run;
mod shared;
mod slot;
mod workers;

pub use client_steps::{
    Also, Append, ClientSteps, Decode, Derive, Encode, First, ForEach, Listed, ListedRows, Parts, Reduce, Statements, Tables,
};
pub use clock::{Clock, RealClock, Timer};
pub use delivery::{Churn, PlannedDelivery};
pub use dispatcher::PhaseReport;
pub use execute_once::execute_once;
pub use freshness::{Freshness, FreshnessPlan, Probed};
pub use merge::Merge;
pub use parameter_table::ParameterTable;
pub use parameters::{NumberColumn, Numbering, ParameterOrigin, Span};
pub use plan::{Plan, PlannedOperation, PlannedPhase, PlannedShare, PlannedSource};
pub use prepared::Prepared;
pub use ready_plan::ReadyPlan;
pub use record::{Answer, OUTCOMES, Outcome, Record};
pub use recorder::{ErrorCount, Errors, Figures, Interval, Recorded};
pub use records::{GrownBy, RecordNames, TextLengths};
pub use reduction::Reduction;
pub use replay::{Copy, ReplayPlan, SessionLengths, TraceReader, parse_literals};
pub use run::{Ended, Event, Run, Segment, Snapshot};

use sensorbench_driver::{DriverError, SchemaError};
use sensorbench_workload::WorkloadError;
use thiserror::Error;

/// A run that cannot start or be steered as asked.
#[derive(Clone, Debug, Error)]
pub enum EngineError {
    /// A plan that makes no sense.
    #[error("{0}")]
    Plan(String),
    /// A workload that makes no sense.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// Client steps that the schema declares and that cannot be taken.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// A session that cannot be made.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The operating system refused something that the engine needs.
    #[error("{0}")]
    System(String),
}
