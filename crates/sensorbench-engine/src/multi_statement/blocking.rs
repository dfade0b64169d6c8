//! Blocking sessions: the statements of an operation come one after the other.

use std::collections::HashSet;
use std::sync::Arc;

use sensorbench_driver::{BlockingSession, Deadline, DriverError, Request};

use super::task::{Statement, Task};
use crate::ready_plan::ReadyPlan;

/// A blocking session that issues the statements of an operation one after the other.
pub(crate) struct BlockingMultiStatement<'a> {
    session: Box<dyn BlockingSession>,
    plan: &'a ReadyPlan,
    deadline: Arc<Deadline>,
    /// The request for a single statement, which is used for all of them.
    partial: Request,
    /// What `also` need not write again.
    known: HashSet<Vec<u8>>,
}

impl<'a> BlockingMultiStatement<'a> {
    /// The session itself, where each operation of the plan is one statement.
    pub fn around(
        session: Box<dyn BlockingSession>,
        plan: &'a ReadyPlan,
        deadline: &Arc<Deadline>,
    ) -> Box<dyn BlockingSession + 'a> {
        if plan.has_single_statements() {
            return session;
        }
        let deadline = deadline.clone();
        Box::new(Self { session, plan, deadline, partial: Request::default(), known: HashSet::new() })
    }

    fn execute_task(&mut self, task: &Task<'a, '_>, request: &mut Request) -> Result<(), DriverError> {
        if let Some(before) = task.before() {
            self.execute_one(task, &before)?;
        }
        let statements = task.statements(&self.partial.rows, |number| self.session.writes_many(number))?;
        // Whoever reads finds nothing that was not written there before.
        for accompanying in task.also(&statements, &self.known)? {
            self.execute_one(task, &accompanying.statement)?;
            self.known.extend(accompanying.key);
        }
        for statement in &statements {
            self.execute_one(task, statement)?;
            request.rows.append(&self.partial.rows);
        }
        Ok(())
    }

    fn execute_one(&mut self, task: &Task, statement: &Statement) -> Result<(), DriverError> {
        // Statements may each be too short for the session to look at the deadline.
        self.deadline.check()?;
        task.put(statement, &mut self.partial);
        self.session.execute(&mut self.partial)
    }
}

impl BlockingSession for BlockingMultiStatement<'_> {
    fn execute(&mut self, request: &mut Request) -> Result<(), DriverError> {
        if self.plan.work[request.operation].is_one_statement() {
            return self.session.execute(request);
        }
        let parameters = std::mem::take(&mut request.parameters);
        let done = self.execute_task(&Task::of(self.plan, request.operation, &parameters), request);
        request.parameters = parameters;
        done
    }
}
