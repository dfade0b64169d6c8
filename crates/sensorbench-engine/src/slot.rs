//! One operation after the other: what comes before and after the call, the same for all kinds of session.

use sensorbench_driver::{DriverError, Request, Rows, digest};

use crate::dispatcher::Ticket;
use crate::ready_plan::ReadyPlan;
use crate::record::{Answer, Failure, Outcome, Record};
use crate::recorder::{Batch, Recorder};

/// The parameters of an operation are fetched this many operations before it: early enough for memory, and late enough to be still in the cache.
const PREFETCHED_AHEAD: u64 = 8;

/// A place for one operation in flight. Its memory is used again for each operation.
pub(crate) struct Slot {
    /// Its number among all slots of the run.
    number: u32,
    /// The request; none while an asynchronous session has it, or after it was lost with an operation given up.
    pub request: Option<Box<Request>>,
    operation: usize,
    /// Rows of the answer, where the client made them from those that the statement returned.
    answer: Rows,
}

impl Slot {
    pub fn new(number: usize) -> Self {
        Self { number: number as u32, request: None, operation: 0, answer: Rows::default() }
    }

    /// Finds out what the operation is.
    #[inline(always)]
    pub fn begin(&mut self, plan: &ReadyPlan, ticket: Ticket) {
        let phase = &plan.workloads[ticket.phase];
        self.operation = phase.workload.operation(ticket.k);
        let request = self.request.get_or_insert_default();
        request.operation = self.operation;
        plan.parameters.fill(phase, self.operation, ticket.k, &mut request.parameters);
        plan.parameters.prefetch(phase, ticket.k + PREFETCHED_AHEAD * plan.share.of);
        plan.work[self.operation].derive_parameters(&mut request.parameters);
        for reading in 1..plan.parameters.readings[self.operation] {
            plan.parameters.append_reading(phase, self.operation, ticket.k, reading, &mut request.parameters);
        }
        request.rows.clear();
        self.answer.clear();
    }

    /// Does the client's share of the operation, which is part of its service time.
    #[inline]
    pub fn work(&mut self, plan: &ReadyPlan) -> Result<(), DriverError> {
        let work = &plan.work[self.operation];
        match &self.request {
            Some(request) if !work.leaves_rows_as_they_are() => work.apply(&request.parameters, &request.rows, &mut self.answer),
            _ => Ok(()),
        }
    }

    /// How many rows the answer to the operation has.
    pub fn rows(&self, plan: &ReadyPlan) -> u64 {
        match &self.request {
            Some(request) if plan.work[self.operation].leaves_rows_as_they_are() => request.rows.len(),
            _ => self.answer.len(),
        }
    }

    /// Puts down what became of it. Nothing here counts as service time.
    #[inline(always)]
    pub fn end(&mut self, plan: &ReadyPlan, done: Done, batch: &mut Batch, recorder: &Recorder) {
        let Done { ticket, awaited, start_ns, mut end_ns, result } = done;
        let outcome = Outcome::of(&result);
        if outcome == Outcome::Timeout {
            end_ns = start_ns + plan.timeout_ns;
        }
        let (phase, operation) = (ticket.phase as u16, self.operation as u16);
        let mut rows = 0;
        if let (Outcome::Ok, Some(request)) = (outcome, &self.request) {
            let answer = if plan.work[self.operation].leaves_rows_as_they_are() { &request.rows } else { &self.answer };
            rows = answer.len();
            if plan.answers_every.is_some_and(|every| ticket.k < plan.answers_whole || ticket.k % every == 0) {
                batch.add_answer(Answer {
                    phase,
                    operation,
                    k: ticket.k,
                    digest: digest(answer, &plan.operations[self.operation]),
                });
            }
        }
        if let Err(error) = result {
            batch.add_failure(Failure { phase, operation, error });
        }
        let intended_start_ns = ticket.intended_start_ns.unwrap_or(start_ns).min(start_ns);
        let (slot, k) = (self.number, ticket.k);
        let own_lag_ns = awaited.then_some(start_ns - intended_start_ns);
        batch.add(Record { phase, operation, slot, outcome, own_lag_ns, k, intended_start_ns, start_ns, end_ns, rows }, recorder);
    }
}

/// An operation that ended.
pub(crate) struct Done {
    pub ticket: Ticket,
    pub awaited: bool,
    pub start_ns: u64,
    pub end_ns: u64,
    pub result: Result<(), DriverError>,
}
