//! A plan that was checked: nothing is looked up by name any more.

use sensorbench_driver::{Direction, Operation, Value};
use sensorbench_workload::{Choice, Grown, ParameterSource, Share, Stream, Workload};

use crate::EngineError;
use crate::client_steps::{ClientSteps, StatementNumbers};
use crate::delivery::ReadyDelivery;
use crate::dispatcher::{Dispatcher, Phase};
use crate::parameter_table::ParameterTable;
use crate::parameters::{Parameters, PhaseWorkload, Records, SourceValues};
use crate::plan::{Plan, PlannedOperation, PlannedPhase, PlannedShare, PlannedSource, nanoseconds};
use crate::records::{GrownBy, RandomText};

/// The streams of deliveries are those after it: parameter sources and kinds of operation have the first.
const DELIVERIES: u64 = 1 << 32;

/// A plan made ready: every number is checked, nothing is looked up by name any more.
pub struct ReadyPlan {
    pub(crate) operations: Vec<Operation>,
    pub(crate) work: Vec<ClientSteps>,
    /// What sessions are made for: of each operation its own statement, and after those all others that operations take.
    pub(crate) statements: Vec<Operation>,
    /// For each operation the numbers of its statements.
    pub(crate) steps: Vec<StatementNumbers>,
    pub(crate) parameters: Parameters,
    /// One workload for each phase, so that the k-th operation of a phase does not depend on how long others took.
    pub(crate) workloads: Vec<PhaseWorkload>,
    /// For each phase, whether it is an open loop.
    pub(crate) open_loop: Vec<bool>,
    pub(crate) share: Share,
    pub(crate) concurrency: usize,
    /// Number of its first slot among those of all load generators.
    pub(crate) first_slot: usize,
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
    /// Makes a plan ready with the tables that its parameter sources name.
    pub fn new(plan: Plan, tables: &[ParameterTable]) -> Result<Self, EngineError> {
        Ok(Self::with_dispatcher(plan, tables)?.0)
    }

    /// The same, with the dispatcher of its operations.
    pub(crate) fn with_dispatcher(plan: Plan, tables: &[ParameterTable]) -> Result<(Self, Dispatcher), EngineError> {
        let sources: Vec<(ParameterSource, SourceValues)> =
            plan.parameter_sources.iter().map(|source| ready_source(source, &plan, tables)).collect::<Result<_, _>>()?;
        check_parameters(&plan, &sources)?;
        check_limits(&plan)?;
        let share = ready_share(&plan)?;
        let (first_slot, concurrency) = share.places(plan.concurrency);
        let weights: Vec<f64> = plan.operations.iter().map(|planned| planned.weight).collect();
        let workload_sources: Vec<ParameterSource> = sources.iter().map(|(source, _)| *source).collect();
        let mut workloads = Vec::new();
        let mut phases = Vec::new();
        for (number, phase) in plan.phases.iter().enumerate() {
            let seed = Stream::new(plan.seed).split(number as u64).number(0);
            let workload = Workload::new(seed, &weights, plan.order, &workload_sources)?;
            let deliveries = ready_deliveries(&plan.operations, Stream::new(seed))?;
            workloads.push(PhaseWorkload::new(workload, &phase.numbering, deliveries, sources.len()));
            phases.push(Phase::new(phase, Stream::new(seed), share)?);
        }
        let (statements, steps) = statements(&plan.operations)?;
        let ready = Self {
            statements,
            steps,
            parameters: Parameters::new(
                sources.into_iter().map(|(_, values)| values).collect(),
                plan.operations.iter().map(|planned| planned.parameters.clone()).collect(),
                plan.operations.iter().map(|planned| planned.client_steps.readings()).collect(),
                plan.operations.iter().map(|planned| of_texts(plan.seed, &planned.operation.name)).collect(),
            ),
            work: plan.operations.iter().map(|planned| planned.client_steps.clone()).collect(),
            operations: plan.operations.into_iter().map(|planned| planned.operation).collect(),
            workloads,
            open_loop: phases.iter().map(Phase::is_open_loop).collect(),
            share,
            concurrency,
            first_slot,
            threads: plan.threads,
            timeout_ns: nanoseconds(plan.timeout_s),
            spin: plan.spin,
            interval_ns: nanoseconds(plan.interval_s),
            late_after_ns: nanoseconds(plan.late_after_ms / 1e3),
            log_every: plan.log_every,
            answers_every: plan.answers_every,
            answers_whole: plan.answers_whole,
        };
        Ok((ready, Dispatcher::new(phases)))
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
        self.work.iter().all(ClientSteps::is_one_statement)
    }

    /// True when rows of later time buckets must come first.
    pub(crate) fn is_latest_first(&self, operation: usize) -> bool {
        self.operations[operation].order.first().is_some_and(|order| order.direction == Direction::Descending)
    }

    /// The operations, in the order of their numbers.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }
}

/// How the operations of a phase deliver their readings.
fn ready_deliveries(planned: &[PlannedOperation], random: Stream) -> Result<Vec<Option<ReadyDelivery>>, EngineError> {
    let ready = |(number, of_kind): (usize, &PlannedOperation)| {
        let random = random.split(DELIVERIES + number as u64);
        let delivery = of_kind.delivery.as_ref().map(|delivery| ReadyDelivery::new(delivery, of_kind.parameters.len(), random));
        delivery.transpose()
    };
    planned.iter().enumerate().map(ready).collect()
}

/// All statements of operations, and where those of each are.
fn statements(planned: &[PlannedOperation]) -> Result<(Vec<Operation>, Vec<StatementNumbers>), EngineError> {
    let of_each = planned.iter().map(|one| one.client_steps.statements_of(&one.operation)).collect::<Result<Vec<_>, _>>()?;
    let tables = |number: usize| planned[number].client_steps.tables.as_ref().map_or(1, |tables| tables.count.get() as usize);
    let mut all: Vec<Operation> = planned.iter().zip(&of_each).map(|(one, of)| one.client_steps.for_table(&of.own, 0)).collect();
    let mut steps = Vec::new();
    for (number, of_one) in of_each.iter().enumerate() {
        let mut added = |statement: &Operation, from_table: usize| -> Vec<usize> {
            let first = all.len();
            all.extend((from_table..tables(number)).map(|table| planned[number].client_steps.for_table(statement, table)));
            (first..all.len()).collect()
        };
        let own = std::iter::once(number).chain(added(&of_one.own, 1)).collect();
        let before = of_one.before.iter().flat_map(|before| added(before, 0)).collect();
        let also = of_one.also.iter().map(|also| added(also, 0)).collect();
        steps.push(StatementNumbers { own, before, also });
    }
    Ok((all, steps))
}

fn ready_source(
    source: &PlannedSource,
    plan: &Plan,
    tables: &[ParameterTable],
) -> Result<(ParameterSource, SourceValues), EngineError> {
    Ok(match source {
        PlannedSource::Rows { table, choice } => {
            let table = tables.get(*table).ok_or_else(|| EngineError::Plan(format!("there is no parameter table {table}")))?;
            if table.rows() == 0 {
                return Err(EngineError::Plan("a parameter query found no candidates".to_owned()));
            }
            (ParameterSource::Rows { rows: table.rows() as u64, choice: *choice }, SourceValues::Table(table.clone()))
        }
        PlannedSource::Records { first, present, choice, names, grown } => {
            if *present == 0 {
                return Err(EngineError::Plan("a draw of records needs at least one".to_owned()));
            }
            let by = grown.map(|by| Grown { operation: by.operation, window: by.window });
            (
                ParameterSource::Records { present: *present, choice: *choice, grown: by },
                SourceValues::Records(Records { first: *first, present: *present, names: names.clone(), grown: *grown }),
            )
        }
        PlannedSource::NewRecords { first, names } => {
            (ParameterSource::Number { per: None }, SourceValues::NewRecords { first: *first, names: names.clone() })
        }
        PlannedSource::Texts(lengths) => {
            let texts = lengths.iter().map(|lengths| RandomText::of(*lengths)).collect::<Result<_, _>>()?;
            (ParameterSource::Number { per: None }, SourceValues::Texts(texts))
        }
        PlannedSource::Numbers { columns, per } => {
            let per = per.map(|source| rows_in_order(source, plan, tables)).transpose()?;
            (ParameterSource::Number { per }, SourceValues::Numbers(columns.clone()))
        }
        PlannedSource::Written { operation, window, exponent, span } => (
            ParameterSource::Written { operation: *operation, window: *window, exponent: *exponent },
            SourceValues::Written(*operation, *span),
        ),
    })
}

/// How many rows a parameter source goes through in their order.
fn rows_in_order(source: usize, plan: &Plan, tables: &[ParameterTable]) -> Result<u64, EngineError> {
    match plan.parameter_sources.get(source) {
        Some(PlannedSource::Rows { table, choice: Choice::Sequential }) => {
            Ok(tables.get(*table).map_or(0, ParameterTable::rows).max(1) as u64)
        }
        _ => Err(EngineError::Plan(format!(
            "numbers that count for each row of draw {source} need its rows in order (sequential)"
        ))),
    }
}

fn check_parameters(plan: &Plan, sources: &[(ParameterSource, SourceValues)]) -> Result<(), EngineError> {
    for planned in &plan.operations {
        let name = &planned.operation.name;
        if planned.parameters.len() != planned.operation.parameters.len() {
            return Err(EngineError::Plan(format!("operation {name}: each parameter needs one source")));
        }
        for origin in &planned.parameters {
            let columns = match sources.get(origin.source) {
                None => return Err(EngineError::Plan(format!("operation {name}: there is no draw {}", origin.source))),
                Some((_, SourceValues::Table(table))) => table.columns(),
                Some((_, SourceValues::Numbers(columns))) => columns.len(),
                Some((_, SourceValues::Texts(texts))) => texts.len(),
                Some((_, SourceValues::NewRecords { .. })) => 1,
                Some((_, SourceValues::Records(records))) => {
                    check_grown(plan, records)?;
                    1
                }
                Some((_, SourceValues::Written(operation, span))) => {
                    let own = plan.operations.get(*operation).map_or(0, |written| written.parameters.len());
                    own + if span.is_some() { 2 } else { 0 }
                }
            };
            if origin.column >= columns {
                return Err(EngineError::Plan(format!(
                    "operation {name}: draw {} has no column {}",
                    origin.source, origin.column
                )));
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

/// What of the run this load generator has. Refuses what load generators cannot share, because each knows its own operations only.
fn ready_share(plan: &Plan) -> Result<Share, EngineError> {
    let Some(PlannedShare { number, of, .. }) = plan.share else { return Ok(Share::default()) };
    let reads_what_is_written =
        |source: &PlannedSource| matches!(source, PlannedSource::Written { .. } | PlannedSource::Records { grown: Some(_), .. });
    // Behind a phase that ends by its number of operations, the next begins when that is over: at another time for each.
    let begins_at_a_common_time = |phases: &[PlannedPhase]| phases.iter().all(|phase| phase.operations.is_none());
    let problem = if number >= of {
        format!("load generator {number} of {of}: its number must be below how many there are")
    } else if of as usize > plan.concurrency {
        format!("a concurrency of {} cannot be shared by {of} load generators: each needs at least 1", plan.concurrency)
    } else if of > 1 && plan.parameter_sources.iter().any(reads_what_is_written) {
        "load generators cannot share operations that read what the run writes: none knows how far the others are".to_owned()
    } else if let Some(late) = (1..plan.phases.len())
        .find(|number| of > 1 && plan.phases[*number].pace.is_some() && !begins_at_a_common_time(&plan.phases[..*number]))
    {
        format!(
            "phase {}: an open loop that load generators share cannot follow a phase of a number of operations",
            plan.phases[late].name
        )
    } else {
        return Ok(Share { number, of });
    };
    Err(EngineError::Plan(problem))
}

fn check_limits(plan: &Plan) -> Result<(), EngineError> {
    let is_positive = |number: f64| number.is_finite() && number > 0.0;
    let problem = if plan.concurrency == 0 || plan.threads == 0 {
        "concurrency and threads must be at least 1"
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
