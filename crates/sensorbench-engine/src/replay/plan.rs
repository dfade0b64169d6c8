//! What a replay is requested to do, as the control plane describes it.

use sensorbench_driver::{Operation, StatementTemplate};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::EngineError;
use crate::plan::{Plan, PlannedOperation, PlannedPhase};

/// The replay of a trace.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayPlan {
    /// Statement templates, in the order of their numbers.
    pub templates: Vec<StatementTemplate>,
    /// Name of the only phase.
    pub phase: String,
    /// How many times as fast as recorded; None as fast as the target takes the statements of each session.
    pub speed: Option<f64>,
    /// Copies of the trace that are replayed together.
    pub copies: Vec<Copy>,
    /// Rows of the trace: the number k of a statement is its row, after all those of the copies before.
    pub rows: u64,
    /// Numbers of templates whose statements are left out, in ascending order.
    #[serde(default)]
    pub left_out: Vec<usize>,
    /// Most connections that are open at a time.
    pub connections: usize,
    /// How long a statement may take, in seconds.
    pub timeout_s: f64,
    /// Length of the intervals of figures, in seconds.
    pub interval_s: f64,
    /// A statement that starts more than this after its intended start counts as late, in milliseconds.
    pub late_after_ms: f64,
    /// Keep the digest of each answer.
    pub keeps_answers: bool,
    /// The server must refuse all writes.
    pub read_only: bool,
}

/// A copy of a trace.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Copy {
    /// How much later than the first it comes, in microseconds of the replay.
    pub delay_us: u64,
}

impl ReplayPlan {
    /// Refuses what makes no sense.
    pub fn check(&self) -> Result<(), EngineError> {
        let is_positive = |number: f64| number.is_finite() && number > 0.0;
        let problem = if self.templates.is_empty() || self.templates.len() > usize::from(u16::MAX) {
            "a replay needs at least one template, and at most 65,535"
        } else if self.speed.is_some_and(|speed| !is_positive(speed)) {
            "speed must be above zero"
        } else if self.copies.is_empty() {
            "a replay needs at least one copy of the trace"
        } else if self.connections == 0 {
            "connections must be at least 1"
        } else {
            return Ok(());
        };
        Err(EngineError::Plan(problem.to_owned()))
    }

    /// The same in the terms of every run: a template is an operation, and there is one phase.
    pub(crate) fn as_run(&self, statements: u64) -> Plan {
        let operation = |template: &StatementTemplate| PlannedOperation {
            weight: 1.0,
            operation: Operation {
                name: template.name.clone(),
                parameters: Vec::new(),
                columns: Vec::new(),
                order: Vec::new(),
                statement: Json::Null,
            },
            parameters: Vec::new(),
            client_steps: Default::default(),
            delivery: None,
        };
        Plan {
            seed: 0,
            operations: self.templates.iter().map(operation).collect(),
            order: Default::default(),
            parameter_sources: Vec::new(),
            phases: vec![PlannedPhase {
                name: self.phase.clone(),
                operations: Some(statements),
                duration_s: None,
                pace: None,
                numbering: Default::default(),
            }],
            concurrency: self.connections,
            threads: 1,
            timeout_s: self.timeout_s,
            spin: false,
            interval_s: self.interval_s,
            late_after_ms: self.late_after_ms,
            share: None,
            log_every: Some(1),
            answers_every: self.keeps_answers.then_some(1),
            answers_whole: 0,
        }
    }
}
