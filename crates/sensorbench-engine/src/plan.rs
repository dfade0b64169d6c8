//! What a run is requested to do, as the control plane describes it.

use sensorbench_driver::Operation;
use sensorbench_workload::{Choice, MixOrder, Pace};
use serde::{Deserialize, Serialize};

use crate::client_steps::ClientSteps;
use crate::delivery::PlannedDelivery;
use crate::parameters::{NumberColumn, Numbering, ParameterOrigin, Span};
use crate::records::{GrownBy, RecordNames, TextLengths};

/// A run, as the control plane describes it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// From which, and from k, every operation follows.
    pub seed: u64,
    /// Operations, as the schema asks them.
    pub operations: Vec<PlannedOperation>,
    /// In which order kinds of operation come.
    #[serde(default)]
    pub order: MixOrder,
    /// Where operations take their parameters from.
    #[serde(default)]
    pub parameter_sources: Vec<PlannedSource>,
    /// Phases of the run, one after the other.
    pub phases: Vec<PlannedPhase>,
    /// Operations in flight: always this many in a closed loop; the limit in an open one.
    pub concurrency: usize,
    /// Threads that poll asynchronous sessions. Blocking sessions have a thread for each operation in flight.
    #[serde(default = "one")]
    pub threads: usize,
    /// How long an operation may take, in seconds.
    pub timeout_s: f64,
    /// Wait for intended starts by looking at the clock all the time, which costs a CPU.
    #[serde(default)]
    pub spin: bool,
    /// Length of the intervals of figures, in seconds.
    #[serde(default = "one_second")]
    pub interval_s: f64,
    /// An operation that starts more than this after its intended start counts as late, in milliseconds.
    #[serde(default = "one_millisecond")]
    pub late_after_ms: f64,
    /// What of the run this load generator has, where several share it.
    pub share: Option<PlannedShare>,
    /// Keep a record of every n-th operation that is its own.
    pub log_every: Option<u64>,
    /// Keep the digest of the answer to every n-th operation.
    pub answers_every: Option<u64>,
    /// The digests of the answers to this many operations at the beginning are all kept, if any are.
    #[serde(default)]
    pub answers_whole: u64,
}

fn one() -> usize {
    1
}

fn one_second() -> f64 {
    1.0
}

fn one_millisecond() -> f64 {
    1.0
}

/// An operation of the run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedOperation {
    /// Its share of the mix.
    pub weight: f64,
    /// Name, parameters and columns as every database has them.
    pub operation: Operation,
    /// Where its parameters come from.
    #[serde(default)]
    pub parameters: Vec<ParameterOrigin>,
    /// What the client does besides the statement.
    #[serde(default)]
    pub client_steps: ClientSteps,
    /// Of writes, how they deliver their readings, where these do not come as they are.
    pub delivery: Option<PlannedDelivery>,
}

/// A parameter source of the run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum PlannedSource {
    /// Rows of the table with this number.
    Rows {
        /// Number of the table among those given with the plan.
        table: usize,
        /// How a row is chosen.
        #[serde(default)]
        choice: Choice,
    },
    /// The name of one of the records that are there; one column.
    Records {
        /// Number of the first record.
        first: u64,
        /// How many there are at the beginning.
        present: u64,
        /// How one of them is chosen.
        #[serde(default)]
        choice: Choice,
        /// How they are named.
        names: RecordNames,
        /// What adds others meanwhile.
        grown: Option<GrownBy>,
    },
    /// The name of a record of its own for each operation; one column.
    NewRecords {
        /// Number of the first of them.
        first: u64,
        /// How they are named.
        names: RecordNames,
    },
    /// Random texts of its own for each operation, as many columns as there are lengths.
    Texts(Vec<TextLengths>),
    /// Numbers that are used once.
    Numbers {
        /// The columns made from them.
        columns: Vec<NumberColumn>,
        /// Number of a sequential parameter source: they are counted for each of its rows.
        per: Option<usize>,
    },
    /// What was written earlier.
    Written {
        /// Number of the writing operation.
        operation: usize,
        /// How many operations the choice stays behind.
        window: u64,
        /// Skew towards the newest; uniform if not given.
        exponent: Option<f64>,
        /// A span of time that ends with what was written; two columns more.
        span: Option<Span>,
    },
}

/// A phase of the run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedPhase {
    /// Name, for example `warm_up` or `measure`.
    pub name: String,
    /// Ends after this many operations.
    pub operations: Option<u64>,
    /// Ends after this many seconds.
    pub duration_s: Option<f64>,
    /// The schedule of operations; a closed loop if not given.
    pub pace: Option<Pace>,
    /// How operations are numbered for writes.
    #[serde(default)]
    pub numbering: Numbering,
}

/// What of a run a load generator has that shares it with others. Concurrency and operations of the plan are those of all of them; threads are
/// its own.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedShare {
    /// Its number, from 0: it executes each k with k ≡ `number` (mod `of`).
    pub number: u64,
    /// How many load generators there are.
    pub of: u64,
    /// The zero of the run's clock, which they share: a time of this machine's CLOCK_MONOTONIC, not later than now.
    pub clock_origin_ns: u64,
}

pub(crate) fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}
