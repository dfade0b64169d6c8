//! One operation that is several statements: one for each stretch of time, each shard or each row of another answer (`for_each`),
//! a look before at what there is or for what is to be changed, one for each of several readings or one for all of them encoded,
//! and what is to be told to others (`also`). Sessions are wrapped, so that drivers know nothing of it.

use std::cell::RefCell;
use std::collections::HashSet;
use std::future::ready;
use std::sync::Arc;

use futures::stream::{FuturesUnordered, TryStreamExt};
use sensorbench_dataset::encoding::{append_record, encode_batch};
use sensorbench_driver::{AsyncSession, BlockingSession, Deadline, DriverError, Executing, Request, Rows, Type, Value};

use crate::plan::ReadyPlan;
use crate::work::{Encode, Work};

/// The numbers of an operation's statements among all that sessions are made for; of each, one for each table.
#[derive(Clone, Debug)]
pub(crate) struct Steps {
    pub own: Vec<usize>,
    /// Empty if nothing must be answered before.
    pub before: Vec<usize>,
    pub also: Vec<Vec<usize>>,
}

/// One statement of an operation: its number, and its parameters.
struct Statement {
    number: usize,
    parameters: Set,
}

/// The parameters of one statement: those of the operation, and what makes it another one than its neighbours.
enum Set {
    /// As they are.
    Own,
    /// With one more: a part of the data, a batch, or a text that became longer.
    With(Value),
    /// Those of a later reading with this number, from 0, and what follows from them.
    OfLater(usize),
}

/// A statement that goes with the operation's own.
struct Told {
    statement: Statement,
    /// By what it is remembered, if it need not be issued again.
    key: Option<Vec<u8>>,
}

/// What a request of several statements is about: parameters of the operation and those derived, and of its later readings.
struct Task<'a, 'r> {
    plan: &'a ReadyPlan,
    operation: usize,
    work: &'a Work,
    own: &'r [Value],
    later_readings: &'r [Value],
    table: usize,
}

impl<'a, 'r> Task<'a, 'r> {
    fn of(plan: &'a ReadyPlan, operation: usize, parameters: &'r [Value]) -> Self {
        let work = &plan.work[operation];
        let declared = plan.operations[operation].parameters.len() + work.derive.len();
        let (own, later_readings) = parameters.split_at(declared);
        Self { plan, operation, work, own, later_readings, table: work.table_of(own) }
    }

    fn steps(&self) -> &'a Steps {
        &self.plan.steps[self.operation]
    }

    /// What must be answered before anything else is issued, if anything must.
    fn before(&self) -> Option<Statement> {
        self.steps().before.get(self.table).map(|number| Statement { number: *number, parameters: Set::Own })
    }

    /// The operation's own statement, once or once for each part or reading, in the order that its rows must come in. `found` is the
    /// answer to what was asked before.
    fn statements(&self, found: &Rows) -> Result<Vec<Statement>, DriverError> {
        let number = self.steps().own[self.table];
        let statement = |parameters| Statement { number, parameters };
        if let Some(encode) = &self.work.encode {
            return Ok(vec![statement(Set::With(self.batch(encode)?))]);
        }
        if let Some(append) = self.work.first.as_ref().and_then(|first| first.append.as_ref()) {
            return Ok(vec![statement(Set::With(append.to(found)?))]);
        }
        let Some(for_each) = &self.work.for_each else {
            let later = self.later_readings.len() / self.parameters_of_operation().max(1);
            return Ok(std::iter::once(Set::Own).chain((0..later).map(Set::OfLater)).map(statement).collect());
        };
        let mut parts = for_each.parts.of(self.own, found);
        if for_each.parts.are_stretches() && self.plan.is_latest_first(self.operation) {
            parts.reverse();
        }
        Ok(parts.into_iter().map(|part| statement(Set::With(part))).collect())
    }

    fn parameters_of_operation(&self) -> usize {
        self.own.len() - self.work.derive.len()
    }

    /// The parameters of a later reading.
    fn later(&self, number: usize) -> &'r [Value] {
        let length = self.parameters_of_operation();
        &self.later_readings[number * length..][..length]
    }

    /// The readings as bytes.
    fn batch(&self, encode: &Encode) -> Result<Value, DriverError> {
        let first = &self.own[..self.parameters_of_operation()];
        let readings = std::iter::once(first).chain(self.later_readings.chunks_exact(first.len()));
        let (mut times, mut values) = (Vec::new(), Vec::new());
        for reading in readings {
            let (Value::Timestamp(time), Value::Double(value)) = (&reading[encode.time], &reading[encode.value]) else {
                return Err(DriverError::Data("a reading of a batch has neither a null time nor a null value".to_owned()));
            };
            times.push(*time);
            values.push(*value);
        }
        let mut bytes = Vec::new();
        encode_batch(encode.encoding, &times, &values, &mut bytes).map_err(|error| DriverError::Data(error.to_string()))?;
        Ok(Value::Bytes(bytes.into()))
    }

    /// Statements that go with the operation's own, where they were not issued with the same values before.
    fn also(&self, statements: &[Statement], known: &HashSet<Vec<u8>>) -> Result<Vec<Told>, DriverError> {
        let mut wanted: Vec<Told> = Vec::new();
        for (place, also) in self.work.also.iter().enumerate() {
            for statement in statements {
                let parameters = match statement.parameters {
                    Set::OfLater(number) => Set::OfLater(number),
                    _ => Set::Own,
                };
                let key = self.key(place, &also.once, &parameters)?;
                let is_known = |key: &Vec<u8>| known.contains(key) || wanted.iter().any(|told| told.key.as_ref() == Some(key));
                if !key.as_ref().is_some_and(is_known) {
                    wanted.push(Told { statement: Statement { number: self.steps().also[place][self.table], parameters }, key });
                }
            }
        }
        Ok(wanted)
    }

    /// By what a statement that is issued once is remembered; None for one that is issued each time.
    fn key(&self, place: usize, once: &[String], parameters: &Set) -> Result<Option<Vec<u8>>, DriverError> {
        if once.is_empty() {
            return Ok(None);
        }
        let mut values = Vec::new();
        self.append_parameters(parameters, &mut values);
        let mut key = vec![place as u8];
        for name in once {
            append_value(&mut key, &values[self.place_of(name)])?;
        }
        Ok(Some(key))
    }

    fn place_of(&self, name: &str) -> usize {
        self.plan.statements[self.operation].parameter(name).expect("checked when the plan was made ready")
    }

    fn append_parameters(&self, parameters: &Set, values: &mut Vec<Value>) {
        match parameters {
            Set::Own => values.extend_from_slice(self.own),
            Set::With(value) => {
                values.extend_from_slice(self.own);
                values.push(value.clone());
            }
            Set::OfLater(number) => {
                values.extend_from_slice(self.later(*number));
                self.work.derive_parameters(values);
            }
        }
    }

    /// Makes `request` ask for one statement.
    fn put(&self, statement: &Statement, request: &mut Request) {
        request.operation = statement.number;
        request.rows.clear();
        request.parameters.clear();
        self.append_parameters(&statement.parameters, &mut request.parameters);
    }
}

fn append_value(key: &mut Vec<u8>, value: &Value) -> Result<(), DriverError> {
    let value = value.as_ref();
    // A null is written alike whatever type it has.
    let value_type = value.value_type().unwrap_or(Type::Integer);
    append_record(key, value_type, value).map_err(|error| DriverError::Data(error.to_string()))
}

/// An asynchronous session that issues all statements of an operation at the same time.
pub(crate) struct Stepping<'a> {
    session: Box<dyn AsyncSession>,
    plan: &'a ReadyPlan,
    /// Requests for single statements that are not in use, to be used again.
    #[expect(clippy::vec_box, reason = "sessions take and give boxes")]
    spare: RefCell<Vec<Box<Request>>>,
    /// What `also` need not tell again.
    known: RefCell<HashSet<Vec<u8>>>,
}

impl<'a> Stepping<'a> {
    /// The session itself, where each operation of the plan is one statement.
    pub fn around(session: Box<dyn AsyncSession>, plan: &'a ReadyPlan) -> Box<dyn AsyncSession + 'a> {
        if plan.has_single_statements() {
            return session;
        }
        Box::new(Self { session, plan, spare: RefCell::default(), known: RefCell::default() })
    }

    /// What an operation takes: its own statements, and those that go with them.
    fn wanted(&self, task: &Task, found: &Rows) -> Result<Wanted, DriverError> {
        let own = task.statements(found)?;
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
        let statements = wanted.also.iter().map(|told| &told.statement).chain(&wanted.own);
        let executing: FuturesUnordered<_> =
            statements.enumerate().map(|(place, statement)| self.execute_one(task, place, statement)).collect();
        let mut answered: Vec<(usize, Box<Request>)> = executing.try_collect().await?;
        answered.sort_unstable_by_key(|(place, _)| *place);
        for (_, partial) in answered {
            request.rows.append(&partial.rows);
            self.spare.borrow_mut().push(partial);
        }
        self.known.borrow_mut().extend(wanted.also.into_iter().filter_map(|told| told.key));
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
    also: Vec<Told>,
}

impl AsyncSession for Stepping<'_> {
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
        let wanted = match self.wanted(&task, &Rows::new()) {
            Ok(wanted) if wanted.own.is_empty() => return Box::pin(ready((request, Ok(())))),
            Ok(wanted) => wanted,
            Err(error) => return Box::pin(ready((request, Err(error)))),
        };
        if wanted.own.len() == 1 && wanted.also.is_empty() {
            // Nothing to put together: the request itself asks for the only statement.
            let declared = task.own.len();
            request.parameters.truncate(declared);
            for statement in wanted.own {
                request.operation = statement.number;
                if let Set::With(value) = statement.parameters {
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

/// A blocking session that issues the statements of an operation one after the other.
pub(crate) struct BlockingStepping<'a> {
    session: Box<dyn BlockingSession>,
    plan: &'a ReadyPlan,
    deadline: Arc<Deadline>,
    /// The request for a single statement, which is used for all of them.
    partial: Request,
    /// What `also` need not tell again.
    known: HashSet<Vec<u8>>,
}

impl<'a> BlockingStepping<'a> {
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
        let statements = task.statements(&self.partial.rows)?;
        // Who reads finds nothing that was not told before.
        for told in task.also(&statements, &self.known)? {
            self.execute_one(task, &told.statement)?;
            self.known.extend(told.key);
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

impl BlockingSession for BlockingStepping<'_> {
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::rc::Rc;
    use std::sync::atomic::AtomicBool;
    use std::task::Poll;
    use std::time::Instant;

    use futures::executor::block_on;
    use sensorbench_driver::ValueRef;
    use serde_json::json;

    use super::*;
    use crate::Plan;

    const STRETCH: i64 = 10;

    /// A plan of three operations: one statement for each stretch of ten microseconds, one statement alone, and one for each of
    /// three shards.
    fn plan(direction: &str) -> ReadyPlan {
        let read = json!({
            "weight": 1.0,
            "operation": {
                "name": "read",
                "parameters": [{"name": "from", "type": "timestamp"}, {"name": "to", "type": "timestamp"}],
                "columns": [{"name": "time", "type": "timestamp"}],
                "order": [{"column": "time", "direction": direction}],
            },
            "parameters": [{"draw": 0, "column": 0}, {"draw": 0, "column": 0}],
            "work": {"for_each": {"name": "start", "parts": {"stretches": {"from": 0, "to": 1, "every": {"microseconds": STRETCH}}}}},
        });
        let count = json!({
            "weight": 1.0,
            "operation": {"name": "count", "columns": [{"name": "rows", "type": "integer"}]},
            "work": {"for_each": {"name": "shard", "parts": {"shards": 3}}},
        });
        ready_plan(json!([read, {"weight": 1.0, "operation": {"name": "other"}}, count]))
    }

    fn ready_plan(operations: serde_json::Value) -> ReadyPlan {
        let plan: Plan = serde_json::from_value(json!({
            "seed": 1,
            "operations": operations,
            "draws": [{"numbers": {"columns": [{"type": "timestamp", "start": 0, "step": 1}]}}],
            "phases": [{"name": "measure", "operations": 1}],
            "in_flight": 1,
            "timeout_s": 1.0,
        }))
        .unwrap();
        ReadyPlan::new(plan, &[]).unwrap()
    }

    /// Has a reading at every microsecond. What was asked last is answered first.
    #[derive(Default)]
    struct Server {
        latest_first: bool,
        /// Starts of stretches that it gives an error for.
        refused: Vec<i64>,
        asked: RefCell<Vec<Vec<Value>>>,
        in_flight: Cell<usize>,
        most_in_flight: Cell<usize>,
    }

    impl Server {
        fn answer(&self, request: &mut Request) -> Result<(), DriverError> {
            let [Value::Timestamp(from), Value::Timestamp(to), Value::Timestamp(start)] = request.parameters[..] else {
                return Ok(());
            };
            if self.refused.contains(&start) {
                return Err(DriverError::Statement(format!("no {start}")));
            }
            let mut times: Vec<i64> = (from.max(start)..to.min(start + STRETCH)).collect();
            if self.latest_first {
                times.reverse();
            }
            for time in times {
                request.rows.push(ValueRef::Timestamp(time));
                request.rows.end_row();
            }
            Ok(())
        }

        /// The starts that were asked for since the last time.
        fn starts(&self) -> Vec<i64> {
            let start = |parameters: Vec<Value>| match parameters[2] {
                Value::Timestamp(start) => start,
                _ => panic!("a start is a time"),
            };
            self.asked.take().into_iter().map(start).collect()
        }
    }

    #[derive(Clone)]
    struct Session(Rc<Server>);

    struct InFlight(Rc<Server>);

    impl InFlight {
        fn on(server: &Rc<Server>) -> Self {
            server.in_flight.set(server.in_flight.get() + 1);
            server.most_in_flight.set(server.most_in_flight.get().max(server.in_flight.get()));
            Self(server.clone())
        }
    }

    impl Drop for InFlight {
        fn drop(&mut self) {
            self.0.in_flight.set(self.0.in_flight.get() - 1);
        }
    }

    impl AsyncSession for Session {
        fn execute(&self, mut request: Box<Request>) -> Executing<'_> {
            self.0.asked.borrow_mut().push(request.parameters.clone());
            let in_flight = InFlight::on(&self.0);
            let mut polls_left = 100 - self.0.asked.borrow().len();
            Box::pin(async move {
                poll_fn(|context| {
                    if polls_left == 0 {
                        return Poll::Ready(());
                    }
                    polls_left -= 1;
                    context.waker().wake_by_ref();
                    Poll::Pending
                })
                .await;
                let result = self.0.answer(&mut request);
                drop(in_flight);
                (request, result)
            })
        }
    }

    impl BlockingSession for Session {
        fn execute(&mut self, request: &mut Request) -> Result<(), DriverError> {
            self.0.asked.borrow_mut().push(request.parameters.clone());
            let _in_flight = InFlight::on(&self.0);
            self.0.answer(request)
        }
    }

    fn request(from: i64, to: i64) -> Request {
        Request { operation: 0, parameters: [from, to].map(Value::Timestamp).to_vec(), rows: Rows::new() }
    }

    fn times(rows: &Rows) -> Vec<i64> {
        let time = |value: ValueRef| match value {
            ValueRef::Timestamp(time) => time,
            other => panic!("{other:?} is no time"),
        };
        rows.iter().map(|row| time(row.value(0))).collect()
    }

    fn no_deadline() -> Arc<Deadline> {
        Arc::new(Deadline::new(Instant::now(), Arc::new(AtomicBool::new(false))))
    }

    /// Executes requests on one session, either way: the times that came back, or the error.
    fn executed(plan: &ReadyPlan, server: &Rc<Server>, blocking: bool, requests: Vec<Request>) -> Vec<Result<Vec<i64>, String>> {
        let session = Session(server.clone());
        let mut asynchronous = Stepping::around(Box::new(session.clone()), plan);
        let mut blocked = BlockingStepping::around(Box::new(session), plan, &no_deadline());
        let execute = |mut request: Request| {
            let (request, result) = if blocking {
                let result = blocked.execute(&mut request);
                (Box::new(request), result)
            } else {
                block_on(asynchronous.as_mut().execute(Box::new(request)))
            };
            result.map(|()| times(&request.rows)).map_err(|error| error.to_string())
        };
        requests.into_iter().map(execute).collect()
    }

    #[test]
    fn rows_of_all_stretches_come_in_their_order() {
        for (direction, blocking) in [("ascending", true), ("ascending", false), ("descending", true), ("descending", false)] {
            let latest_first = direction == "descending";
            let server = Rc::new(Server { latest_first, ..Server::default() });
            let ranges = [(-5, 25), (3, 4), (10, 20), (0, 11), (-5, 25)];
            let requests = ranges.map(|(from, to)| request(from, to)).to_vec();
            let expected = ranges.map(|(from, to)| {
                let times = from..to;
                Ok(if latest_first { times.rev().collect() } else { times.collect() })
            });
            assert_eq!(executed(&plan(direction), &server, blocking, requests), expected, "{direction}, blocking: {blocking}");
            let all = if latest_first { [20, 10, 0, -10] } else { [-10, 0, 10, 20] };
            let starts = server.starts();
            assert_eq!([&starts[..4], &starts[8..]], [all, all]);
            assert_eq!(server.most_in_flight.get(), if blocking { 1 } else { 4 }, "{direction}, blocking: {blocking}");
        }
    }

    #[test]
    fn each_statement_gets_the_parameters_of_the_operation_and_its_start() {
        for blocking in [true, false] {
            let server = Rc::new(Server::default());
            executed(&plan("ascending"), &server, blocking, vec![request(5, 15), request(12, 13)]);
            let expected = [[5, 15, 0], [5, 15, 10], [12, 13, 10]].map(|times| times.map(Value::Timestamp).to_vec());
            assert_eq!(server.asked.take(), expected);
        }
    }

    #[test]
    fn no_statement_is_issued_for_an_empty_range() {
        for blocking in [true, false] {
            let server = Rc::new(Server::default());
            let answers = executed(&plan("ascending"), &server, blocking, vec![request(7, 7), request(30, 7)]);
            assert_eq!((answers, server.starts()), (vec![Ok(vec![]), Ok(vec![])], vec![]));
        }
    }

    #[test]
    fn the_first_error_ends_the_operation_and_the_session_goes_on() {
        for blocking in [true, false] {
            let server = Rc::new(Server { refused: vec![0, 20], ..Server::default() });
            let requests = vec![request(0, 30), request(10, 12), request(10, 25)];
            // What is asked last is answered first: so the error of the last stretch comes first where all are asked at once.
            let first = if blocking { "no 0" } else { "no 20" };
            let expected = [Err(first.to_owned()), Ok(vec![10, 11]), Err("no 20".to_owned())];
            assert_eq!(executed(&plan("ascending"), &server, blocking, requests), expected);
            assert_eq!(server.in_flight.get(), 0, "the others are dropped");
            assert_eq!(server.starts(), if blocking { vec![0, 10, 10, 20] } else { vec![0, 10, 20, 10, 10, 20] });
        }
    }

    #[test]
    fn a_blocking_operation_ends_between_its_statements_when_its_time_is_over() {
        let server = Rc::new(Server::default());
        let cancelled = Arc::new(Deadline::new(Instant::now(), Arc::new(AtomicBool::new(true))));
        let plan = plan("ascending");
        let mut session = BlockingStepping::around(Box::new(Session(server.clone())), &plan, &cancelled);
        assert!(matches!(session.execute(&mut request(0, 20)), Err(DriverError::Cancelled)));
        assert!(server.asked.take().is_empty());
    }

    #[test]
    fn an_operation_that_is_one_statement_goes_through_as_it_is() {
        for blocking in [true, false] {
            let server = Rc::new(Server::default());
            let other = Request { operation: 1, parameters: vec![Value::Integer(3)], rows: Rows::new() };
            executed(&plan("ascending"), &server, blocking, vec![other]);
            assert_eq!(server.asked.take(), [[Value::Integer(3)]]);
        }
    }

    #[test]
    fn each_shard_is_asked_at_once_where_the_session_is_asynchronous() {
        for blocking in [true, false] {
            let server = Rc::new(Server::default());
            let count = Request { operation: 2, ..Request::default() };
            executed(&plan("ascending"), &server, blocking, vec![count]);
            assert_eq!(server.asked.take(), [0, 1, 2].map(|shard| vec![Value::Integer(shard)]));
            assert_eq!(server.most_in_flight.get(), if blocking { 1 } else { 3 });
        }
    }

    /// What a session was asked: numbers of statements and their parameters.
    type Asked = Vec<(usize, Vec<Value>)>;

    /// Remembers what it was asked, and answers a list of the stretches that begin at 0, 10 and 30.
    #[derive(Clone, Default)]
    struct Remembering(Rc<RefCell<Asked>>, Rc<Cell<bool>>);

    impl Remembering {
        fn answer(&self, request: &mut Request) -> Result<(), DriverError> {
            self.0.borrow_mut().push((request.operation, request.parameters.clone()));
            for (sensor, start) in [(1, 30), (1, 0), (2, 20), (1, 10), (1, 10)] {
                request.rows.push(ValueRef::Integer(sensor));
                request.rows.push(ValueRef::Timestamp(start));
                request.rows.end_row();
            }
            if self.1.get() { Err(DriverError::Statement("refused".to_owned())) } else { Ok(()) }
        }
    }

    impl AsyncSession for Remembering {
        fn execute(&self, mut request: Box<Request>) -> Executing<'_> {
            let result = self.answer(&mut request);
            Box::pin(ready((request, result)))
        }
    }

    impl BlockingSession for Remembering {
        fn execute(&mut self, request: &mut Request) -> Result<(), DriverError> {
            self.answer(request)
        }
    }

    /// Executes requests with these parameters on one session, either way; what the session was asked by each, sorted.
    fn asked(plan: &ReadyPlan, remembering: &Remembering, blocking: bool, requests: &[Vec<Value>]) -> Vec<Asked> {
        let mut asynchronous = Stepping::around(Box::new(remembering.clone()), plan);
        let mut blocked = BlockingStepping::around(Box::new(remembering.clone()), plan, &no_deadline());
        let mut execute = |parameters: &Vec<Value>| {
            let mut request = Request { operation: 0, parameters: parameters.clone(), rows: Rows::new() };
            if blocking {
                drop(blocked.execute(&mut request));
            } else {
                drop(block_on(asynchronous.as_mut().execute(Box::new(request))));
            }
            let mut asked = remembering.0.take();
            asked.sort_by_key(|(number, parameters)| (*number, format!("{parameters:?}")));
            asked
        };
        requests.iter().map(&mut execute).collect()
    }

    /// Executes one request, either way; what came back.
    fn executed_once(plan: &ReadyPlan, remembering: &Remembering, blocking: bool, parameters: Vec<Value>) -> Request {
        let mut request = Request { operation: 0, parameters, rows: Rows::new() };
        if blocking {
            BlockingStepping::around(Box::new(remembering.clone()), plan, &no_deadline()).execute(&mut request).unwrap();
            return request;
        }
        let (request, result) = block_on(Stepping::around(Box::new(remembering.clone()), plan).execute(Box::new(request)));
        result.unwrap();
        *request
    }

    /// A plan of one operation that writes readings of (sensor, time, value), with what the client does besides.
    fn writing_plan(work: serde_json::Value) -> ReadyPlan {
        let parameters = [("sensor", "integer"), ("time", "timestamp"), ("value", "double")];
        let planned = json!({
            "weight": 1.0,
            "operation": {"name": "write", "parameters": parameters.map(|(name, of)| json!({"name": name, "type": of}))},
            "parameters": [{"draw": 0, "column": 0}, {"draw": 0, "column": 0}, {"draw": 0, "column": 0}],
            "work": work,
        });
        ready_plan(json!([planned]))
    }

    fn reading(sensor: i64, time: i64, value: f64) -> Vec<Value> {
        vec![Value::Integer(sensor), Value::Timestamp(time), Value::Double(value)]
    }

    const ROW: &str = "row";

    fn row_of_ten() -> serde_json::Value {
        json!([{"name": ROW, "floor": 1, "every": {"microseconds": STRETCH}}])
    }

    /// Parameters with the start of their row.
    fn in_row(mut parameters: Vec<Value>) -> Vec<Value> {
        let Value::Timestamp(time) = parameters[1] else { panic!("a time") };
        parameters.push(Value::Timestamp(time.div_euclid(STRETCH) * STRETCH));
        parameters
    }

    #[test]
    fn each_of_several_readings_has_a_statement() {
        let plan = writing_plan(json!({"derive": row_of_ten(), "readings": 3}));
        let later = [reading(1, 10, 0.2), reading(1, 11, 0.3)];
        let request = [in_row(reading(1, 9, 0.1)), later.concat()].concat();
        for blocking in [true, false] {
            let asked = asked(&plan, &Remembering::default(), blocking, std::slice::from_ref(&request));
            let expected = [reading(1, 9, 0.1), later[0].clone(), later[1].clone()].map(|one| (0, in_row(one)));
            let mut expected = expected.to_vec();
            expected.sort_by_key(|(number, parameters)| (*number, format!("{parameters:?}")));
            assert_eq!(asked, [expected], "blocking: {blocking}");
        }
    }

    #[test]
    fn encoded_readings_have_one_statement() {
        let encode = json!({"name": "batch", "encoding": "packed", "time": 1, "value": 2});
        let plan = writing_plan(json!({"derive": row_of_ten(), "readings": 3, "encode": encode}));
        let request = [in_row(reading(1, 9, 0.1)), reading(1, 10, 0.2), reading(1, 11, 0.3)].concat();
        let mut bytes = Vec::new();
        encode_batch(sensorbench_dataset::encoding::BatchEncoding::Packed, &[9, 10, 11], &[0.1, 0.2, 0.3], &mut bytes).unwrap();
        let expected = [in_row(reading(1, 9, 0.1)), vec![Value::Bytes(bytes.into())]].concat();
        for blocking in [true, false] {
            let asked = asked(&plan, &Remembering::default(), blocking, std::slice::from_ref(&request));
            assert_eq!(asked, [[(0, expected.clone())]], "blocking: {blocking}");
        }
    }

    #[test]
    fn what_is_to_be_told_once_is_told_again_only_when_it_failed() {
        let plan = writing_plan(json!({"derive": row_of_ten(), "also": [{"statement": {}, "once": ["sensor", ROW]}]}));
        let requests = [(1, 9), (1, 8), (2, 9), (1, 10), (1, 3)].map(|(sensor, time)| in_row(reading(sensor, time, 0.5)));
        for blocking in [true, false] {
            let remembering = Remembering::default();
            let counts = |asked: Vec<Asked>| asked.iter().map(Vec::len).collect::<Vec<_>>();
            assert_eq!(counts(asked(&plan, &remembering, blocking, &requests)), [2, 1, 2, 2, 1], "blocking: {blocking}");
            remembering.1.set(true);
            // The first error ends a blocking operation; what was not acknowledged is told again.
            let failing = counts(asked(&plan, &remembering, blocking, &requests[..2]));
            assert_eq!(failing, if blocking { [1, 1] } else { [2, 2] });
        }
    }

    #[test]
    fn what_is_read_first_is_answered_before_the_writing() {
        let returns = json!([{"name": "sensor", "type": "integer"}, {"name": "start", "type": "timestamp"}]);
        let plan = writing_plan(json!({"first": {"statement": {}, "returns": returns}, "also": [{"statement": {}}]}));
        for blocking in [true, false] {
            let remembering = Remembering::default();
            executed_once(&plan, &remembering, blocking, reading(1, 9, 0.1));
            // In the order in which they were issued: the first, then the others.
            let numbers: Vec<usize> = remembering.0.take().into_iter().map(|(number, _)| number).collect();
            assert_eq!(numbers, [1, 2, 0], "blocking: {blocking}");
            remembering.1.set(true);
            let failed = asked(&plan, &remembering, blocking, &[reading(1, 9, 0.1)]);
            assert_eq!(failed[0].len(), 1, "nothing is written where the reading failed");
        }
    }

    /// Holds some texts, each of which answers whatever is asked.
    #[derive(Clone, Default)]
    struct Holding(Vec<&'static str>, Rc<RefCell<Asked>>);

    impl AsyncSession for Holding {
        fn execute(&self, mut request: Box<Request>) -> Executing<'_> {
            let result = self.clone().execute_blocking(&mut request);
            Box::pin(ready((request, result)))
        }
    }

    impl BlockingSession for Holding {
        fn execute(&mut self, request: &mut Request) -> Result<(), DriverError> {
            self.execute_blocking(request)
        }
    }

    impl Holding {
        fn execute_blocking(&self, request: &mut Request) -> Result<(), DriverError> {
            self.1.borrow_mut().push((request.operation, request.parameters.clone()));
            for text in &self.0 {
                request.rows.push(ValueRef::Text(text));
                request.rows.end_row();
            }
            Ok(())
        }
    }

    #[test]
    fn what_was_found_is_written_back_longer() {
        let returns = json!([{"name": "text", "type": "text"}]);
        let append = json!({"name": "longer", "column": 0, "text": "1é"});
        let plan = writing_plan(json!({"first": {"statement": {}, "returns": returns, "append": append}}));
        for (texts, written) in [(vec!["γη"], Some("γη1é")), (vec![], None), (vec!["a", "b"], None)] {
            for blocking in [true, false] {
                let holding = Holding(texts.clone(), Rc::default());
                let mut request = Request { operation: 0, parameters: reading(1, 9, 0.5), rows: Rows::new() };
                let result = if blocking {
                    BlockingStepping::around(Box::new(holding.clone()), &plan, &no_deadline()).execute(&mut request)
                } else {
                    block_on(Stepping::around(Box::new(holding.clone()), &plan).execute(Box::new(request))).1
                };
                let mut expected = vec![(1, reading(1, 9, 0.5))];
                if let Some(written) = written {
                    expected.push((0, [reading(1, 9, 0.5), vec![Value::Text(written.into())]].concat()));
                }
                assert_eq!((holding.1.take(), result.is_ok()), (expected, written.is_some()), "blocking: {blocking}, {texts:?}");
            }
        }
    }

    #[test]
    fn what_has_no_once_is_told_each_time() {
        let plan = writing_plan(json!({"also": [{"statement": {}}]}));
        for blocking in [true, false] {
            let asked = asked(&plan, &Remembering::default(), blocking, &[reading(1, 9, 0.5), reading(1, 9, 0.5)]);
            assert_eq!(asked[1], [(0, reading(1, 9, 0.5)), (1, reading(1, 9, 0.5))], "blocking: {blocking}");
        }
    }

    #[test]
    fn the_table_follows_from_a_parameter() {
        let tables = json!({"count": 3, "by": 0});
        let plan = writing_plan(json!({"tables": tables, "also": [{"statement": {}, "once": ["sensor"]}]}));
        let requests = [5, -1, 3, 3].map(|sensor| reading(sensor, 9, 0.5));
        for blocking in [true, false] {
            let asked = asked(&plan, &Remembering::default(), blocking, &requests);
            let numbers: Vec<Vec<usize>> = asked.iter().map(|one| one.iter().map(|(number, _)| *number).collect()).collect();
            // The operation's own statement for tables 0, 1, 2 has the numbers 0, 1, 2; the other one 3, 4, 5.
            assert_eq!(numbers, [vec![2, 5], vec![2, 5], vec![0, 3], vec![0]], "blocking: {blocking}");
        }
        let statement = |number: usize| plan.statements[number].statement.clone();
        assert_eq!(statement(0), serde_json::Value::Null);
    }

    #[test]
    fn statements_of_tables_have_their_numbers() {
        let statement = json!({"scan": {"table_{table}": ["readings_{table}", 3]}});
        assert_eq!(crate::work::with_table(&statement, 2), json!({"scan": {"table_2": ["readings_2", 3]}}));
    }

    #[test]
    fn stretches_are_looked_up_first() {
        let listed = json!({
            "statement": {"list": true},
            "returns": [{"name": "sensor", "type": "integer"}, {"name": "start", "type": "timestamp"}],
            "start": 1,
            "own": [[0, 0]],
            "from": 1,
            "to": 2,
            "every": {"microseconds": STRETCH},
        });
        let read = json!({
            "weight": 1.0,
            "operation": {
                "name": "read",
                "parameters": [
                    {"name": "sensor", "type": "integer"}, {"name": "from", "type": "timestamp"}, {"name": "to", "type": "timestamp"}],
                "columns": [{"name": "sensor", "type": "integer"}, {"name": "time", "type": "timestamp"}],
            },
            "parameters": [{"draw": 0, "column": 0}, {"draw": 0, "column": 0}, {"draw": 0, "column": 0}],
            "work": {"for_each": {"name": "start", "parts": {"listed": listed}}},
        });
        let plan = ready_plan(json!([read]));
        let range = |from: i64, to: i64| vec![Value::Integer(1), Value::Timestamp(from), Value::Timestamp(to)];
        for blocking in [true, false] {
            let starts: Vec<Vec<Value>> =
                asked(&plan, &Remembering::default(), blocking, &[range(9, 31), range(10, 30), range(40, 50)])
                    .into_iter()
                    .map(|asked| {
                        assert_eq!(asked.iter().filter(|(number, _)| *number == 1).count(), 1, "one look");
                        asked
                            .into_iter()
                            .filter(|(number, _)| *number == 0)
                            .map(|(_, parameters)| parameters[3].clone())
                            .collect()
                    })
                    .collect();
            let times = |starts: &[i64]| starts.iter().copied().map(Value::Timestamp).collect::<Vec<_>>();
            assert_eq!(starts, [times(&[0, 10, 30]), times(&[10]), times(&[])], "blocking: {blocking}");
        }
    }

    #[test]
    fn rows_that_are_looked_up_have_a_statement_each_in_their_order() {
        let rows = json!({
            "statement": {"list": true},
            "returns": [{"name": "sensor", "type": "integer"}, {"name": "start", "type": "timestamp"}],
            "column": 1,
        });
        for direction in ["ascending", "descending"] {
            let read = json!({
                "weight": 1.0,
                "operation": {
                    "name": "read",
                    "parameters": [{"name": "sensor", "type": "integer"}],
                    "columns": [{"name": "sensor", "type": "integer"}, {"name": "time", "type": "timestamp"}],
                    "order": [{"column": "time", "direction": direction}],
                },
                "parameters": [{"draw": 0, "column": 0}],
                "work": {"for_each": {"name": "time", "parts": {"rows": rows}}},
            });
            let plan = ready_plan(json!([read]));
            for blocking in [true, false] {
                let remembering = Remembering::default();
                let request = executed_once(&plan, &remembering, blocking, vec![Value::Integer(7)]);
                assert_eq!(request.rows.len(), 25, "five rows of each, and none of the list");
                let of_row = |time: i64| (0, vec![Value::Integer(7), Value::Timestamp(time)]);
                let looked_up = std::iter::once((1, vec![Value::Integer(7)]));
                // As they were listed, whatever the order of the answer.
                let expected: Asked = looked_up.chain([30, 0, 20, 10, 10].map(of_row)).collect();
                assert_eq!(remembering.0.take(), expected, "{direction}, blocking: {blocking}");
            }
        }
    }

    #[test]
    fn a_plan_of_single_statements_has_the_sessions_themselves() {
        let plan = ready_plan(json!([{"weight": 1.0, "operation": {"name": "other"}}]));
        let session: Box<dyn AsyncSession> = Box::new(Session(Rc::default()));
        let address = (&raw const *session).cast::<()>();
        assert_eq!((&raw const *Stepping::around(session, &plan)).cast::<()>(), address);
        let session: Box<dyn BlockingSession> = Box::new(Session(Rc::default()));
        let address = (&raw const *session).cast::<()>();
        assert_eq!((&raw const *BlockingStepping::around(session, &plan, &no_deadline())).cast::<()>(), address);
    }
}
