//! Statements that go with the operation's own: before it, besides it, and for several readings.

use std::cell::{Cell, RefCell};
use std::future::ready;
use std::rc::Rc;

use futures::executor::block_on;
use sensorbench_dataset::encoding::encode_batch;
use sensorbench_driver::{AsyncSession, BlockingSession, DriverError, Executing, Request, Rows, Value, ValueRef};
use serde_json::json;

use super::{BUCKET, no_deadline, ready_plan};
use crate::ReadyPlan;
use crate::multi_statement::{BlockingMultiStatement, MultiStatement};

/// What was requested of a session: numbers of statements and their parameters.
type Requested = Vec<(usize, Vec<Value>)>;

/// Remembers what was requested, and answers a list of the time buckets that begin at 0, 10 and 30. It may refuse all, and may write many rows at once.
#[derive(Clone, Default)]
struct Remembering(Rc<RefCell<Requested>>, Rc<Cell<bool>>, bool);

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

    fn writes_many(&self, _: usize) -> bool {
        self.2
    }
}

impl BlockingSession for Remembering {
    fn execute(&mut self, request: &mut Request) -> Result<(), DriverError> {
        self.answer(request)
    }

    fn writes_many(&self, _: usize) -> bool {
        self.2
    }
}

/// Executes requests with these parameters on one session, either way; what the session was asked by each, sorted.
fn requested(plan: &ReadyPlan, remembering: &Remembering, blocking: bool, requests: &[Vec<Value>]) -> Vec<Requested> {
    let mut asynchronous = MultiStatement::around(Box::new(remembering.clone()), plan);
    let mut blocked = BlockingMultiStatement::around(Box::new(remembering.clone()), plan, &no_deadline());
    let mut execute = |parameters: &Vec<Value>| {
        let mut request = Request { operation: 0, parameters: parameters.clone(), rows: Rows::new() };
        if blocking {
            drop(blocked.execute(&mut request));
        } else {
            drop(block_on(asynchronous.as_mut().execute(Box::new(request))));
        }
        let mut requested = remembering.0.take();
        requested.sort_by_key(|(number, parameters)| (*number, format!("{parameters:?}")));
        requested
    };
    requests.iter().map(&mut execute).collect()
}

/// Executes one request, either way; what came back.
fn executed_once(plan: &ReadyPlan, remembering: &Remembering, blocking: bool, parameters: Vec<Value>) -> Request {
    let mut request = Request { operation: 0, parameters, rows: Rows::new() };
    if blocking {
        BlockingMultiStatement::around(Box::new(remembering.clone()), plan, &no_deadline()).execute(&mut request).unwrap();
        return request;
    }
    let (request, result) = block_on(MultiStatement::around(Box::new(remembering.clone()), plan).execute(Box::new(request)));
    result.unwrap();
    *request
}

/// A plan of one operation that writes readings of (sensor, time, value), with what the client does besides.
fn writing_plan(work: serde_json::Value) -> ReadyPlan {
    let parameters = [("sensor", "integer"), ("time", "timestamp"), ("value", "double")];
    let planned = json!({
        "weight": 1.0,
        "operation": {"name": "write", "parameters": parameters.map(|(name, of)| json!({"name": name, "type": of}))},
        "parameters": [{"source": 0, "column": 0}, {"source": 0, "column": 0}, {"source": 0, "column": 0}],
        "client_steps": work,
    });
    ready_plan(json!([planned]))
}

fn reading(sensor: i64, time: i64, value: f64) -> Vec<Value> {
    vec![Value::Integer(sensor), Value::Timestamp(time), Value::Double(value)]
}

const ROW: &str = "row";

fn row_of_ten() -> serde_json::Value {
    json!([{"name": ROW, "floor": 1, "every": {"microseconds": BUCKET}}])
}

/// Parameters with the start of their row.
fn in_row(mut parameters: Vec<Value>) -> Vec<Value> {
    let Value::Timestamp(time) = parameters[1] else { panic!("a time") };
    parameters.push(Value::Timestamp(time.div_euclid(BUCKET) * BUCKET));
    parameters
}

#[test]
fn each_of_several_readings_has_a_statement() {
    let plan = writing_plan(json!({"derive": row_of_ten(), "readings": 3}));
    let later = [reading(1, 10, 0.2), reading(1, 11, 0.3)];
    let request = [in_row(reading(1, 9, 0.1)), later.concat()].concat();
    for blocking in [true, false] {
        let requested = requested(&plan, &Remembering::default(), blocking, std::slice::from_ref(&request));
        let expected = [reading(1, 9, 0.1), later[0].clone(), later[1].clone()].map(|one| (0, in_row(one)));
        let mut expected = expected.to_vec();
        expected.sort_by_key(|(number, parameters)| (*number, format!("{parameters:?}")));
        assert_eq!(requested, [expected], "blocking: {blocking}");
    }
}

#[test]
fn several_readings_are_one_statement_where_the_session_writes_many() {
    let writes_many = Remembering(Rc::default(), Rc::default(), true);
    let readings = [reading(1, 9, 0.1), reading(1, 10, 0.2), reading(1, 11, 0.3)];
    let request = [in_row(readings[0].clone()), readings[1..].concat()].concat();
    let plan = writing_plan(json!({"derive": row_of_ten(), "readings": 3}));
    for blocking in [true, false] {
        let requested = requested(&plan, &writes_many, blocking, std::slice::from_ref(&request));
        assert_eq!(requested, [[(0, readings.clone().map(in_row).concat())]], "blocking: {blocking}");
    }
    // What goes with each reading is issued with its parameters.
    let plan = writing_plan(json!({"derive": row_of_ten(), "readings": 3, "also": [{"statement": {}, "once": [ROW]}]}));
    for blocking in [true, false] {
        let requested = requested(&plan, &writes_many, blocking, std::slice::from_ref(&request));
        assert_eq!(requested[0].iter().filter(|(number, _)| *number == 0).count(), 3, "blocking: {blocking}");
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
        let requested = requested(&plan, &Remembering::default(), blocking, std::slice::from_ref(&request));
        assert_eq!(requested, [[(0, expected.clone())]], "blocking: {blocking}");
    }
}

#[test]
fn what_is_to_be_told_once_is_told_again_only_when_it_failed() {
    let plan = writing_plan(json!({"derive": row_of_ten(), "also": [{"statement": {}, "once": ["sensor", ROW]}]}));
    let requests = [(1, 9), (1, 8), (2, 9), (1, 10), (1, 3)].map(|(sensor, time)| in_row(reading(sensor, time, 0.5)));
    for blocking in [true, false] {
        let remembering = Remembering::default();
        let counts = |requested: Vec<Requested>| requested.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(counts(requested(&plan, &remembering, blocking, &requests)), [2, 1, 2, 2, 1], "blocking: {blocking}");
        remembering.1.set(true);
        // The first error ends a blocking operation; what was not acknowledged is written again.
        let failing = counts(requested(&plan, &remembering, blocking, &requests[..2]));
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
        let failed = requested(&plan, &remembering, blocking, &[reading(1, 9, 0.1)]);
        assert_eq!(failed[0].len(), 1, "nothing is written where the reading failed");
    }
}

/// Holds some texts, each of which answers whatever is asked.
#[derive(Clone, Default)]
struct Holding(Vec<&'static str>, Rc<RefCell<Requested>>);

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
                BlockingMultiStatement::around(Box::new(holding.clone()), &plan, &no_deadline()).execute(&mut request)
            } else {
                block_on(MultiStatement::around(Box::new(holding.clone()), &plan).execute(Box::new(request))).1
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
        let requested = requested(&plan, &Remembering::default(), blocking, &[reading(1, 9, 0.5), reading(1, 9, 0.5)]);
        assert_eq!(requested[1], [(0, reading(1, 9, 0.5)), (1, reading(1, 9, 0.5))], "blocking: {blocking}");
    }
}

#[test]
fn the_table_follows_from_a_parameter() {
    let tables = json!({"count": 3, "by": 0});
    let plan = writing_plan(json!({"tables": tables, "also": [{"statement": {}, "once": ["sensor"]}]}));
    let requests = [5, -1, 3, 3].map(|sensor| reading(sensor, 9, 0.5));
    for blocking in [true, false] {
        let requested = requested(&plan, &Remembering::default(), blocking, &requests);
        let numbers: Vec<Vec<usize>> = requested.iter().map(|one| one.iter().map(|(number, _)| *number).collect()).collect();
        // The operation's own statement for tables 0, 1, 2 has the numbers 0, 1, 2; the other one 3, 4, 5.
        assert_eq!(numbers, [vec![2, 5], vec![2, 5], vec![0, 3], vec![0]], "blocking: {blocking}");
    }
    let statement = |number: usize| plan.statements[number].statement.clone();
    assert_eq!(statement(0), serde_json::Value::Null);
}

#[test]
fn time_buckets_are_looked_up_first() {
    let listed = json!({
        "statement": {"list": true},
        "returns": [{"name": "sensor", "type": "integer"}, {"name": "start", "type": "timestamp"}],
        "start": 1,
        "own": [[0, 0]],
        "from": 1,
        "to": 2,
        "every": {"microseconds": BUCKET},
    });
    let read = json!({
        "weight": 1.0,
        "operation": {
            "name": "read",
            "parameters": [
                {"name": "sensor", "type": "integer"}, {"name": "from", "type": "timestamp"}, {"name": "to", "type": "timestamp"}],
            "columns": [{"name": "sensor", "type": "integer"}, {"name": "time", "type": "timestamp"}],
        },
        "parameters": [{"source": 0, "column": 0}, {"source": 0, "column": 0}, {"source": 0, "column": 0}],
        "client_steps": {"for_each": {"name": "start", "parts": {"listed": listed}}},
    });
    let plan = ready_plan(json!([read]));
    let range = |from: i64, to: i64| vec![Value::Integer(1), Value::Timestamp(from), Value::Timestamp(to)];
    for blocking in [true, false] {
        let starts: Vec<Vec<Value>> =
            requested(&plan, &Remembering::default(), blocking, &[range(9, 31), range(10, 30), range(40, 50)])
                .into_iter()
                .map(|requested| {
                    assert_eq!(requested.iter().filter(|(number, _)| *number == 1).count(), 1, "one look");
                    requested
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
            "parameters": [{"source": 0, "column": 0}],
            "client_steps": {"for_each": {"name": "time", "parts": {"rows": rows}}},
        });
        let plan = ready_plan(json!([read]));
        for blocking in [true, false] {
            let remembering = Remembering::default();
            let request = executed_once(&plan, &remembering, blocking, vec![Value::Integer(7)]);
            assert_eq!(request.rows.len(), 25, "five rows of each, and none of the list");
            let of_row = |time: i64| (0, vec![Value::Integer(7), Value::Timestamp(time)]);
            let looked_up = std::iter::once((1, vec![Value::Integer(7)]));
            // As they were listed, whatever the order of the answer.
            let expected: Requested = looked_up.chain([30, 0, 20, 10, 10].map(of_row)).collect();
            assert_eq!(remembering.0.take(), expected, "{direction}, blocking: {blocking}");
        }
    }
}
