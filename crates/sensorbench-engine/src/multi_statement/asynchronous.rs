//! Asynchronous sessions: all statements of an operation are under way at the same time.

use std::cell::RefCell;
use std::collections::HashSet;
use std::future::ready;

use futures::stream::{FuturesUnordered, TryStreamExt};
use sensorbench_driver::{AsyncSession, DriverError, Executing, Request, Rows};

use super::task::{Accompanying, Set, Statement, Task};
use crate::ready_plan::ReadyPlan;

/// An asynchronous session that issues all statements of an operation at the same time.
pub(crate) struct MultiStatement<'a> {
    session: Box<dyn AsyncSession>,
    plan: &'a ReadyPlan,
    /// Requests for single statements that are not in use, to be used again.
    #[expect(clippy::vec_box, reason = "sessions take and give boxes")]
    spare: RefCell<Vec<Box<Request>>>,
    /// What `also` need not write again.
    known: RefCell<HashSet<Vec<u8>>>,
}

impl<'a> MultiStatement<'a> {
    /// The session itself, where each operation of the plan is one statement.
    pub fn around(session: Box<dyn AsyncSession>, plan: &'a ReadyPlan) -> Box<dyn AsyncSession + 'a> {
        if plan.has_single_statements() {
            return session;
        }
        Box::new(Self { session, plan, spare: RefCell::default(), known: RefCell::default() })
    }

    /// What an operation takes: its own statements, and those that go with them.
    fn wanted(&self, task: &Task, found: &Rows) -> Result<Wanted, DriverError> {
        let own = task.statements(found, |number| self.session.writes_many(number))?;
        let also = task.also(&own, &self.known.borrow())?;
        Ok(Wanted { own, also })
    }

    /// Issues what must be answered before, and then the rest.
    async fn execute_after(&self, before: &Statement, task: &Task<'a, '_>, request: &mut Request) -> Result<(), DriverError> {
        let (_, found) = self.execute_one(task, 0, before).await?;
        let wanted = self.wanted(task, &found.rows)?;
        self.spare.borrow_mut().push(found);
        self.execute_all(task, wanted, request).await
    }

    /// Puts the rows of all statements into the request. The first error ends what is still going on.
    async fn execute_all(&self, task: &Task<'a, '_>, wanted: Wanted, request: &mut Request) -> Result<(), DriverError> {
        let statements = wanted.also.iter().map(|accompanying| &accompanying.statement).chain(&wanted.own);
        let executing: FuturesUnordered<_> =
            statements.enumerate().map(|(place, statement)| self.execute_one(task, place, statement)).collect();
        let mut answered: Vec<(usize, Box<Request>)> = executing.try_collect().await?;
        answered.sort_unstable_by_key(|(place, _)| *place);
        for (_, partial) in answered {
            request.rows.append(&partial.rows);
            self.spare.borrow_mut().push(partial);
        }
        self.known.borrow_mut().extend(wanted.also.into_iter().filter_map(|accompanying| accompanying.key));
        Ok(())
    }

    /// Executes one statement, which comes back with its place among the others.
    fn execute_one(
        &self,
        task: &Task,
        place: usize,
        statement: &Statement,
    ) -> impl Future<Output = Result<(usize, Box<Request>), DriverError>> + use<'_, 'a> {
        let mut partial = self.spare.borrow_mut().pop().unwrap_or_default();
        task.put(statement, &mut partial);
        let executing = self.session.execute(partial);
        async move {
            let (partial, result) = executing.await;
            result.map(|()| (place, partial))
        }
    }
}

/// The statements that an operation takes this time.
struct Wanted {
    own: Vec<Statement>,
    also: Vec<Accompanying>,
}

impl AsyncSession for MultiStatement<'_> {
    fn execute(&self, mut request: Box<Request>) -> Executing<'_> {
        if self.plan.work[request.operation].is_one_statement() {
            return self.session.execute(request);
        }
        let task = Task::of(self.plan, request.operation, &request.parameters);
        if let Some(before) = task.before() {
            return Box::pin(async move {
                let parameters = std::mem::take(&mut request.parameters);
                let task = Task::of(self.plan, request.operation, &parameters);
                let result = self.execute_after(&before, &task, &mut request).await;
                request.parameters = parameters;
                (request, result)
            });
        }
        let mut wanted = match self.wanted(&task, &Rows::new()) {
            Ok(wanted) if wanted.own.is_empty() => return Box::pin(ready((request, Ok(())))),
            Ok(wanted) => wanted,
            Err(error) => return Box::pin(ready((request, Err(error)))),
        };
        if wanted.own.len() == 1 && wanted.also.is_empty() {
            // Nothing to put together: the request itself asks for the only statement.
            let Statement { number, parameters } = wanted.own.remove(0);
            request.operation = number;
            if let Set::OfAll = parameters {
                let mut of_all = Vec::with_capacity(request.parameters.len());
                task.append_parameters(&parameters, &mut of_all);
                request.parameters = of_all;
            } else {
                let declared = task.own.len();
                request.parameters.truncate(declared);
                if let Set::With(value) = parameters {
                    request.parameters.push(value);
                }
            }
            return self.session.execute(request);
        }
        Box::pin(async move {
            let parameters = std::mem::take(&mut request.parameters);
            let task = Task::of(self.plan, request.operation, &parameters);
            let result = self.execute_all(&task, wanted, &mut request).await;
            request.parameters = parameters;
            (request, result)
        })
    }
}
