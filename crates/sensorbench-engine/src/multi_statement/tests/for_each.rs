//! One statement for each time bucket or shard.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Poll;
use std::time::Instant;

use futures::executor::block_on;
use sensorbench_driver::{AsyncSession, BlockingSession, Deadline, DriverError, Executing, Request, Rows, Value, ValueRef};
use serde_json::json;

use super::{BUCKET, no_deadline, ready_plan};
use crate::ReadyPlan;
use crate::multi_statement::{BlockingMultiStatement, MultiStatement};

/// A plan of three operations: one statement for each time bucket of ten microseconds, one statement alone, and one for each of
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
        "parameters": [{"source": 0, "column": 0}, {"source": 0, "column": 0}],
        "client_steps": {"for_each": {"name": "start", "parts": {"time_buckets": {"from": 0, "to": 1, "every": {"microseconds": BUCKET}}}}},
    });
    let count = json!({
        "weight": 1.0,
        "operation": {"name": "count", "columns": [{"name": "rows", "type": "integer"}]},
        "client_steps": {"for_each": {"name": "shard", "parts": {"shards": 3}}},
    });
    ready_plan(json!([read, {"weight": 1.0, "operation": {"name": "other"}}, count]))
}

/// Has a reading at every microsecond. What was asked last is answered first.
#[derive(Default)]
struct Server {
    latest_first: bool,
    /// Starts of time buckets that it gives an error for.
    refused: Vec<i64>,
    requested: RefCell<Vec<Vec<Value>>>,
    in_flight: Cell<usize>,
    max_in_flight: Cell<usize>,
}

impl Server {
    fn answer(&self, request: &mut Request) -> Result<(), DriverError> {
        let [Value::Timestamp(from), Value::Timestamp(to), Value::Timestamp(start)] = request.parameters[..] else {
            return Ok(());
        };
        if self.refused.contains(&start) {
            return Err(DriverError::Statement(format!("no {start}")));
        }
        let mut times: Vec<i64> = (from.max(start)..to.min(start + BUCKET)).collect();
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
        self.requested.take().into_iter().map(start).collect()
    }
}

#[derive(Clone)]
struct Session(Rc<Server>);

struct InFlight(Rc<Server>);

impl InFlight {
    fn on(server: &Rc<Server>) -> Self {
        server.in_flight.set(server.in_flight.get() + 1);
        server.max_in_flight.set(server.max_in_flight.get().max(server.in_flight.get()));
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
        self.0.requested.borrow_mut().push(request.parameters.clone());
        let in_flight = InFlight::on(&self.0);
        let mut polls_left = 100 - self.0.requested.borrow().len();
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
        self.0.requested.borrow_mut().push(request.parameters.clone());
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
        other => panic!("{other:?} is not a time"),
    };
    rows.iter().map(|row| time(row.value(0))).collect()
}

/// Executes requests on one session, either way: the times that came back, or the error.
fn executed(plan: &ReadyPlan, server: &Rc<Server>, blocking: bool, requests: Vec<Request>) -> Vec<Result<Vec<i64>, String>> {
    let session = Session(server.clone());
    let mut asynchronous = MultiStatement::around(Box::new(session.clone()), plan);
    let mut blocked = BlockingMultiStatement::around(Box::new(session), plan, &no_deadline());
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
fn rows_of_all_time_buckets_come_in_their_order() {
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
        assert_eq!(server.max_in_flight.get(), if blocking { 1 } else { 4 }, "{direction}, blocking: {blocking}");
    }
}

#[test]
fn each_statement_gets_the_parameters_of_the_operation_and_its_start() {
    for blocking in [true, false] {
        let server = Rc::new(Server::default());
        executed(&plan("ascending"), &server, blocking, vec![request(5, 15), request(12, 13)]);
        let expected = [[5, 15, 0], [5, 15, 10], [12, 13, 10]].map(|times| times.map(Value::Timestamp).to_vec());
        assert_eq!(server.requested.take(), expected);
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
        // What is asked last is answered first: so the error of the last time bucket comes first where all are asked at once.
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
    let mut session = BlockingMultiStatement::around(Box::new(Session(server.clone())), &plan, &cancelled);
    assert!(matches!(session.execute(&mut request(0, 20)), Err(DriverError::Cancelled)));
    assert!(server.requested.take().is_empty());
}

#[test]
fn an_operation_that_is_one_statement_goes_through_as_it_is() {
    for blocking in [true, false] {
        let server = Rc::new(Server::default());
        let other = Request { operation: 1, parameters: vec![Value::Integer(3)], rows: Rows::new() };
        executed(&plan("ascending"), &server, blocking, vec![other]);
        assert_eq!(server.requested.take(), [[Value::Integer(3)]]);
    }
}

#[test]
fn shards_are_queried_at_once_where_the_session_is_asynchronous() {
    for blocking in [true, false] {
        let server = Rc::new(Server::default());
        let count = Request { operation: 2, ..Request::default() };
        executed(&plan("ascending"), &server, blocking, vec![count]);
        assert_eq!(server.requested.take(), [0, 1, 2].map(|shard| vec![Value::Integer(shard)]));
        assert_eq!(server.max_in_flight.get(), if blocking { 1 } else { 3 });
    }
}

#[test]
fn a_plan_of_single_statements_has_the_sessions_themselves() {
    let plan = ready_plan(json!([{"weight": 1.0, "operation": {"name": "other"}}]));
    let session: Box<dyn AsyncSession> = Box::new(Session(Rc::default()));
    let address = (&raw const *session).cast::<()>();
    assert_eq!((&raw const *MultiStatement::around(session, &plan)).cast::<()>(), address);
    let session: Box<dyn BlockingSession> = Box::new(Session(Rc::default()));
    let address = (&raw const *session).cast::<()>();
    assert_eq!((&raw const *BlockingMultiStatement::around(session, &plan, &no_deadline())).cast::<()>(), address);
}
