//! What a run is asked to do.

use sensorbench_driver::{Direction, Operation, Value};
use sensorbench_workload::{Choice, Draw, Grown, MixOrder, Pace, Stream, Workload};
use serde::{Deserialize, Serialize};

use crate::EngineError;
use crate::parameters::{
    DrawValues, NumberColumn, Numbering, ParameterSource, ParameterTable, Parameters, PhaseWorkload, Records, Span,
};
use crate::records::{RandomText, RecordNames, TextLengths};
use crate::source::{Phase, Source};
use crate::steps::Steps;
use crate::work::Work;

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
    /// What operations draw their parameters from.
    #[serde(default)]
    pub draws: Vec<PlannedDraw>,
    /// Stretches of the run, one after the other.
    pub phases: Vec<PlannedPhase>,
    /// Operations in flight: always so many in a closed loop, at most so many in an open one.
    pub in_flight: usize,
    /// Threads that poll asynchronous sessions. Blocking sessions have a thread for each operation in flight.
    #[serde(default = "one")]
    pub threads: usize,
    /// How long an operation may take, in seconds.
    pub timeout_s: f64,
    /// Wait for due operations by looking at the clock all the time, which costs a processor.
    #[serde(default)]
    pub spin: bool,
    /// Length of the intervals of figures, in seconds.
    #[serde(default = "one_second")]
    pub interval_s: f64,
    /// An operation that starts more than this after it was due counts as late, in milliseconds.
    #[serde(default = "one_millisecond")]
    pub late_after_ms: f64,
    /// Keep a record of every n-th operation.
    pub log_every: Option<u64>,
    /// Keep the digest of the answer to every n-th operation.
    pub answers_every: Option<u64>,
    /// The digests of the answers to so many operations at the beginning are all kept, if any are.
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
    pub parameters: Vec<ParameterSource>,
    /// What the client does besides the statement.
    #[serde(default)]
    pub work: Work,
}

/// A draw of the run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum PlannedDraw {
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
        /// Number of a sequential draw: they are counted for each of its rows.
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
        /// A stretch of time that ends with what was written; two columns more.
        span: Option<Span>,
    },
}

/// What adds records while others are chosen.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GrownBy {
    /// Number of the operation.
    pub operation: usize,
    /// Number of its parameter that is the name of the record.
    pub parameter: usize,
    /// How many operations the choice stays behind.
    pub window: u64,
}

/// A stretch of the run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedPhase {
    /// Name, for example `warm_up` or `measure`.
    pub name: String,
    /// Ends after so many operations.
    pub operations: Option<u64>,
    /// Ends after so many seconds.
    pub duration_s: Option<f64>,
    /// When operations are due; a closed loop if not given.
    pub pace: Option<Pace>,
    /// How operations are numbered for writes.
    #[serde(default)]
    pub numbering: Numbering,
}

/// A plan made ready: every number is checked, nothing is looked up by name any more.
pub struct ReadyPlan {
    pub(crate) operations: Vec<Operation>,
    pub(crate) work: Vec<Work>,
    /// What sessions are made for: of each operation its own statement, and behind those all others that operations take.
    pub(crate) statements: Vec<Operation>,
    /// For each operation the numbers of its statements.
    pub(crate) steps: Vec<Steps>,
    pub(crate) parameters: Parameters,
    /// One workload for each phase, so that the k-th operation of a phase does not depend on how long others took.
    pub(crate) workloads: Vec<PhaseWorkload>,
    /// For each phase, whether it is an open loop.
    pub(crate) open_loop: Vec<bool>,
    pub(crate) in_flight: usize,
    pub(crate) threads: usize,
    pub(crate) timeout_ns: u64,
    pub(crate) spin: bool,
    pub(crate) interval_ns: u64,
    pub(crate) late_after_ns: u64,
    pub(crate) log_every: Option<u64>,
    pub(crate) answers_every: Option<u64>,
    pub(crate) answers_whole: u64,
}

impl ReadyPlan {
    /// Makes a plan ready with the tables that its draws name.
    pub fn new(plan: Plan, tables: &[ParameterTable]) -> Result<Self, EngineError> {
        Ok(Self::with_source(plan, tables)?.0)
    }

    /// The same, with the source that hands out its operations.
    pub(crate) fn with_source(plan: Plan, tables: &[ParameterTable]) -> Result<(Self, Source), EngineError> {
        let draws: Vec<(Draw, DrawValues)> =
            plan.draws.iter().map(|draw| ready_draw(draw, &plan, tables)).collect::<Result<_, _>>()?;
        check_parameters(&plan, &draws)?;
        check_limits(&plan)?;
        let weights: Vec<f64> = plan.operations.iter().map(|planned| planned.weight).collect();
        let workload_draws: Vec<Draw> = draws.iter().map(|(draw, _)| *draw).collect();
        let mut workloads = Vec::new();
        let mut phases = Vec::new();
        for (number, phase) in plan.phases.iter().enumerate() {
            let seed = Stream::new(plan.seed).split(number as u64).number(0);
            let workload = Workload::new(seed, &weights, plan.order, &workload_draws)?;
            workloads.push(PhaseWorkload::new(workload, &phase.numbering, plan.operations.len(), draws.len()));
            phases.push(Phase::new(phase, Stream::new(seed))?);
        }
        let (statements, steps) = statements(&plan.operations)?;
        let ready = Self {
            statements,
            steps,
            parameters: Parameters {
                draws: draws.into_iter().map(|(_, values)| values).collect(),
                sources: plan.operations.iter().map(|planned| planned.parameters.clone()).collect(),
                readings: plan.operations.iter().map(|planned| planned.work.readings()).collect(),
                texts: plan.operations.iter().map(|planned| of_texts(plan.seed, &planned.operation.name)).collect(),
            },
            work: plan.operations.iter().map(|planned| planned.work.clone()).collect(),
            operations: plan.operations.into_iter().map(|planned| planned.operation).collect(),
            workloads,
            open_loop: phases.iter().map(Phase::is_open_loop).collect(),
            in_flight: plan.in_flight,
            threads: plan.threads,
            timeout_ns: nanoseconds(plan.timeout_s),
            spin: plan.spin,
            interval_ns: nanoseconds(plan.interval_s),
            late_after_ns: nanoseconds(plan.late_after_ms / 1e3),
            log_every: plan.log_every,
            answers_every: plan.answers_every,
            answers_whole: plan.answers_whole,
        };
        Ok((ready, Source::new(phases)))
    }

    /// Number of cells for figures: one for each phase and operation.
    pub(crate) fn cells(&self) -> usize {
        self.workloads.len() * self.operations.len()
    }

    /// The kind of the k-th operation of a phase.
    pub fn kind_of(&self, phase: usize, k: u64) -> usize {
        self.workloads[phase].workload.operation(k)
    }

    /// The parameters of the k-th operation of a phase: of each of its readings, if it writes several.
    pub fn parameters_of(&self, phase: usize, k: u64) -> impl Iterator<Item = Vec<Value>> {
        let (workload, kind) = (&self.workloads[phase], self.kind_of(phase, k));
        (0..self.parameters.readings[kind]).map(move |reading| {
            let mut values = Vec::new();
            self.parameters.append_reading(workload, kind, k, reading, &mut values);
            values
        })
    }

    /// True when each operation is one statement.
    pub(crate) fn has_single_statements(&self) -> bool {
        self.work.iter().all(Work::is_one_statement)
    }

    /// True when rows of later stretches of time must come first.
    pub(crate) fn is_latest_first(&self, operation: usize) -> bool {
        self.operations[operation].order.first().is_some_and(|order| order.direction == Direction::Descending)
    }

    /// The operations, in the order of their numbers.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }
}

pub(crate) fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// All statements of operations, and where those of each are.
fn statements(planned: &[PlannedOperation]) -> Result<(Vec<Operation>, Vec<Steps>), EngineError> {
    let of_each = planned.iter().map(|one| one.work.statements_of(&one.operation)).collect::<Result<Vec<_>, _>>()?;
    let tables = |number: usize| planned[number].work.tables.as_ref().map_or(1, |tables| tables.count.get() as usize);
    let mut all: Vec<Operation> = planned.iter().zip(&of_each).map(|(one, of)| one.work.for_table(&of.own, 0)).collect();
    let mut steps = Vec::new();
    for (number, of_one) in of_each.iter().enumerate() {
        let mut added = |statement: &Operation, from_table: usize| -> Vec<usize> {
            let first = all.len();
            all.extend((from_table..tables(number)).map(|table| planned[number].work.for_table(statement, table)));
            (first..all.len()).collect()
        };
        let own = std::iter::once(number).chain(added(&of_one.own, 1)).collect();
        let before = of_one.before.iter().flat_map(|before| added(before, 0)).collect();
        let also = of_one.also.iter().map(|also| added(also, 0)).collect();
        steps.push(Steps { own, before, also });
    }
    Ok((all, steps))
}

fn ready_draw(draw: &PlannedDraw, plan: &Plan, tables: &[ParameterTable]) -> Result<(Draw, DrawValues), EngineError> {
    Ok(match draw {
        PlannedDraw::Rows { table, choice } => {
            let table = tables.get(*table).ok_or_else(|| EngineError::Plan(format!("there is no parameter table {table}")))?;
            if table.rows() == 0 {
                return Err(EngineError::Plan("a parameter query found no candidates".to_owned()));
            }
            (Draw::Rows { rows: table.rows() as u64, choice: *choice }, DrawValues::Table(table.clone()))
        }
        PlannedDraw::Records { first, present, choice, names, grown } => {
            if *present == 0 {
                return Err(EngineError::Plan("a draw of records needs at least one".to_owned()));
            }
            let by = grown.map(|by| Grown { operation: by.operation, window: by.window });
            (
                Draw::Records { present: *present, choice: *choice, grown: by },
                DrawValues::Records(Records { first: *first, present: *present, names: names.clone(), grown: *grown }),
            )
        }
        PlannedDraw::NewRecords { first, names } => {
            (Draw::Number { per: None }, DrawValues::NewRecords { first: *first, names: names.clone() })
        }
        PlannedDraw::Texts(lengths) => {
            let texts = lengths.iter().map(|lengths| RandomText::of(*lengths)).collect::<Result<_, _>>()?;
            (Draw::Number { per: None }, DrawValues::Texts(texts))
        }
        PlannedDraw::Numbers { columns, per } => {
            let per = per.map(|draw| rows_in_order(draw, plan, tables)).transpose()?;
            (Draw::Number { per }, DrawValues::Numbers(columns.clone()))
        }
        PlannedDraw::Written { operation, window, exponent, span } => (
            Draw::Written { operation: *operation, window: *window, exponent: *exponent },
            DrawValues::Written(*operation, *span),
        ),
    })
}

/// How many rows a draw goes through in their order.
fn rows_in_order(draw: usize, plan: &Plan, tables: &[ParameterTable]) -> Result<u64, EngineError> {
    match plan.draws.get(draw) {
        Some(PlannedDraw::Rows { table, choice: Choice::Sequential }) => {
            Ok(tables.get(*table).map_or(0, ParameterTable::rows).max(1) as u64)
        }
        _ => {
            Err(EngineError::Plan(format!("numbers that count for each row of draw {draw} need its rows in order (sequential)")))
        }
    }
}

fn check_parameters(plan: &Plan, draws: &[(Draw, DrawValues)]) -> Result<(), EngineError> {
    for planned in &plan.operations {
        let name = &planned.operation.name;
        if planned.parameters.len() != planned.operation.parameters.len() {
            return Err(EngineError::Plan(format!("operation {name}: each parameter needs one source")));
        }
        for source in &planned.parameters {
            let columns = match draws.get(source.draw) {
                None => return Err(EngineError::Plan(format!("operation {name}: there is no draw {}", source.draw))),
                Some((_, DrawValues::Table(table))) => table.columns(),
                Some((_, DrawValues::Numbers(columns))) => columns.len(),
                Some((_, DrawValues::Texts(texts))) => texts.len(),
                Some((_, DrawValues::NewRecords { .. })) => 1,
                Some((_, DrawValues::Records(records))) => {
                    check_grown(plan, records)?;
                    1
                }
                Some((_, DrawValues::Written(operation, span))) => {
                    let own = plan.operations.get(*operation).map_or(0, |written| written.parameters.len());
                    own + if span.is_some() { 2 } else { 0 }
                }
            };
            if source.column >= columns {
                return Err(EngineError::Plan(format!("operation {name}: draw {} has no column {}", source.draw, source.column)));
            }
        }
    }
    Ok(())
}

fn check_grown(plan: &Plan, records: &Records) -> Result<(), EngineError> {
    let is_known = |by: &GrownBy| plan.operations.get(by.operation).is_some_and(|add| by.parameter < add.parameters.len());
    match records.grown {
        Some(by) if !is_known(&by) => Err(EngineError::Plan(format!("there is no operation {} that adds records", by.operation))),
        _ => Ok(()),
    }
}

/// The stream of an operation's random texts: what one writes, another one does not, also in another run with the same seed.
fn of_texts(seed: u64, operation: &str) -> Stream {
    operation.bytes().fold(Stream::new(seed), |stream, byte| stream.split(u64::from(byte)))
}

fn check_limits(plan: &Plan) -> Result<(), EngineError> {
    let is_positive = |number: f64| number.is_finite() && number > 0.0;
    let problem = if plan.in_flight == 0 || plan.threads == 0 {
        "in_flight and threads must be at least 1"
    } else if !is_positive(plan.timeout_s) || !is_positive(plan.interval_s) || !is_positive(plan.late_after_ms) {
        "timeout_s, interval_s and late_after_ms must be above zero"
    } else if plan.log_every == Some(0) || plan.answers_every == Some(0) {
        "log_every and answers_every must be at least 1"
    } else if plan.phases.is_empty() || plan.operations.is_empty() {
        "a run needs at least one phase and one operation"
    } else {
        return Ok(());
    };
    Err(EngineError::Plan(problem.to_owned()))
}
