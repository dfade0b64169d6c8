//! fjall keeps the driver contract.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::{RecordBatch, RecordBatchIterator};
use sensorbench_dataset::array_of;
use sensorbench_driver::contract::{Keeps, Subject, check, owner};
use sensorbench_driver::{
    BlockingConnector, BlockingSession, Database, Deadline, Driver, DriverError, ErrorKind, Intent, Operation, Progress, Request,
    Rows, Schema, Sessions, TargetUrl, Type, Value, ValueRef,
};
use sensorbench_driver_fjall::FjallDatabase;

fn contract_schema() -> Schema {
    toml::from_str(include_str!("contract.toml")).expect("the schema of the contract")
}

#[test]
fn keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("contract");
    check(&Subject {
        database: &FjallDatabase,
        url: format!("fjall:{}", path.display()),
        schema: contract_schema(),
        stores_nan: true,
        stores_infinity: true,
        keeps: Keeps::default(),
        put_foreign: &|| {
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("mine"), "x\ny").unwrap();
        },
        foreign_rows: &|| std::fs::read_to_string(path.join("mine")).unwrap().lines().map(str::to_owned).collect(),
        remove_foreign: &|| std::fs::remove_dir_all(&path).unwrap(),
    });
}

#[test]
fn files_that_somebody_put_into_our_folder_stay() {
    let folder = tempfile::tempdir().unwrap();
    let driver = created(&folder);
    let mine = folder.path().join("data").join("mine");
    std::fs::write(&mine, "x").unwrap();
    driver.guard(&owner()).remove().unwrap();
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "x");
    let error = driver.guard(&owner()).create(&Schema::default(), "", Intent::Replace).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Namespace, "{error}");
}

fn load_ids(driver: &dyn Driver, ids: &[i64]) -> Result<(), DriverError> {
    let batch = RecordBatch::try_from_iter([
        ("id", array_of(Type::Integer, ids.iter().map(|id| ValueRef::Integer(*id)))),
        ("value", array_of(Type::Double, ids.iter().map(|_| ValueRef::Double(0.0)))),
    ]);
    let batch = batch.unwrap();
    let schema = batch.schema();
    driver.load("many", Box::new(RecordBatchIterator::new([Ok(batch)], schema)), &Progress::default())
}

/// A target with the tables of the contract, and nothing in them.
fn created(folder: &tempfile::TempDir) -> Box<dyn Driver> {
    let url = format!("fjall:{}", folder.path().join("data").display());
    let driver = FjallDatabase.open(&TargetUrl::parse(&url).unwrap()).unwrap();
    driver.guard(&owner()).create(&Schema { tables: Default::default(), ..contract_schema() }, "", Intent::Replace).unwrap();
    driver
}

fn operation(text: &str) -> Operation {
    toml::from_str(text).expect("an operation")
}

fn connector(driver: &dyn Driver, operations: &[Operation]) -> Box<dyn BlockingConnector> {
    let Sessions::Blocking(connector) = driver.sessions(operations).unwrap() else { panic!("fjall blocks") };
    connector
}

/// A session that asks operations by their numbers.
struct Asking(Box<dyn BlockingSession>);

impl Asking {
    fn on(connector: &dyn BlockingConnector) -> Self {
        Self(connector.connect(Arc::new(Deadline::new(Instant::now(), Arc::default()))).unwrap())
    }

    fn ask(&mut self, operation: usize, parameters: &[Value]) -> Result<Vec<Vec<Value>>, DriverError> {
        let mut request = Request { operation, parameters: parameters.to_vec(), rows: Rows::new() };
        self.0.execute(&mut request)?;
        let rows = request.rows.iter();
        Ok(rows.map(|row| (0..row.columns()).map(|column| row.value(column).to_value()).collect()).collect())
    }
}

#[test]
fn unsorted_rows_and_equal_keys_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("fjall:{}", folder.path().join("data").display());
    let driver = FjallDatabase.open(&TargetUrl::parse(&url).unwrap()).unwrap();
    let schema = Schema { tables: Default::default(), ..contract_schema() };
    for (ids, problem) in [(&[2, 1][..], "sorted"), (&[1, 1], "same key")] {
        driver.guard(&owner()).create(&schema, "", Intent::Replace).unwrap();
        let error = load_ids(driver.as_ref(), ids).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
    driver.guard(&owner()).create(&schema, "", Intent::Replace).unwrap();
    load_ids(driver.as_ref(), &[]).unwrap();
    driver.settle().unwrap();
    assert_eq!(driver.count("many").unwrap(), 0);
}

#[test]
fn a_scan_may_exclude_its_first_bound() {
    let folder = tempfile::tempdir().unwrap();
    let driver = created(&folder);
    load_ids(driver.as_ref(), &[-300, -1, 0, 255, 256, 257, i64::MAX]).unwrap();
    let between = operation(
        "name = 'between'\nparameters = [{ name = 'low', type = 'integer' }, { name = 'high', type = 'integer' }]\n\
         columns = [{ name = 'id', type = 'integer' }]\nstatement.scan = { table = 'many', after = ':low', to = ':high' }",
    );
    let mut session = Asking::on(connector(driver.as_ref(), &[between]).as_ref());
    let mut between = |low: i64, high: i64| session.ask(0, &[low, high].map(Value::Integer)).unwrap().concat();
    assert_eq!(between(-300, 256), [-1, 0, 255].map(Value::Integer));
    assert_eq!(between(255, 257), [Value::Integer(256)]);
    assert_eq!(between(256, 257), []);
    assert_eq!(between(i64::MAX, i64::MAX), []);
    assert_eq!(between(5, 1), []);
}

#[test]
fn a_scan_may_have_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let driver = created(&folder);
    load_ids(driver.as_ref(), &[-1, 0, 5, 6, 9]).unwrap();
    let from = |name: &str, more: &str| {
        operation(&format!(
            "name = '{name}'\nparameters = [{{ name = 'id', type = 'integer' }}, {{ name = 'rows', type = 'integer' }}]\n\
             columns = [{{ name = 'id', type = 'integer' }}]\n\
             statement.scan = {{ table = 'many', {more}limit = ':rows' }}"
        ))
    };
    let operations = [from("from", "from = ':id', "), from("latest", "to = ':id', reverse = true, ")];
    let mut session = Asking::on(connector(driver.as_ref(), &operations).as_ref());
    let mut ask = |operation: usize, id: i64, rows: i64| session.ask(operation, &[id, rows].map(Value::Integer));
    let expected = |ids: &[i64]| ids.iter().map(|id| vec![Value::Integer(*id)]).collect::<Vec<_>>();
    assert_eq!(ask(0, 0, 3).unwrap(), expected(&[0, 5, 6]));
    assert_eq!(ask(0, 1, 1).unwrap(), expected(&[5]));
    assert_eq!(ask(0, 6, i64::MAX).unwrap(), expected(&[6, 9]));
    assert_eq!(ask(0, -5, 0).unwrap(), expected(&[]));
    assert_eq!(ask(1, 6, 2).unwrap(), expected(&[5, 0]));
    let error = ask(0, 0, -1).unwrap_err();
    assert!(error.to_string().contains("the limit of a scan is -1, expected a number of rows"), "{error}");
}

/// Writes that merge some columns of `readings`, and one that writes no other column than a number; then what reads a row.
fn writes_of_columns(driver: &dyn Driver) -> Box<dyn BlockingConnector> {
    let write = |column: &str, of: &str, merge: bool| {
        operation(&format!(
            "name = 'write_{column}_{merge}'\n\
             parameters = [{{ name = 'id', type = 'integer' }}, {{ name = 'new', type = '{of}' }}]\n\
             statement.put = {{ table = 'readings', values = {{ id = ':id', {column} = ':new' }}, merge = {merge} }}"
        ))
    };
    let read = operation(
        "name = 'read'\nparameters = [{ name = 'id', type = 'integer' }]\n\
         columns = [{ name = 'number', type = 'integer' }, { name = 'time', type = 'timestamp' }, { name = 'name', type = 'text' }]\n\
         statement.scan = { table = 'readings', prefix = [':id'] }",
    );
    connector(
        driver,
        &[
            write("number", "integer", true),
            write("time", "timestamp", true),
            write("name", "text", true),
            write("number", "integer", false),
            read,
        ],
    )
}

#[test]
fn a_merging_write_keeps_the_other_columns() {
    let folder = tempfile::tempdir().unwrap();
    let driver = created(&folder);
    let mut session = Asking::on(writes_of_columns(driver.as_ref()).as_ref());
    let id = Value::Integer(7);
    let mut written = |operation: usize, new: Value| {
        session.ask(operation, &[id.clone(), new]).unwrap();
        session.ask(4, std::slice::from_ref(&id)).unwrap().concat()
    };
    let (name, time) = (Value::Text("a name".into()), Value::Timestamp(-3));
    assert_eq!(written(2, name.clone()), [Value::Null, Value::Null, name.clone()], "a row that was not there");
    assert_eq!(written(1, time.clone()), [Value::Null, time.clone(), name.clone()]);
    assert_eq!(written(0, Value::Integer(5)), [Value::Integer(5), time.clone(), name]);
    assert_eq!(written(2, Value::Null), [Value::Integer(5), time, Value::Null], "what is given may be null");
    assert_eq!(written(3, Value::Integer(6)), [Value::Integer(6), Value::Null, Value::Null], "without merge the row is replaced");
}

#[test]
fn what_threads_write_into_one_row_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let driver = created(&folder);
    let connector = writes_of_columns(driver.as_ref());
    // Two threads that each merge a column of their own, and one that replaces the row: each finds again what it wrote.
    let (text, time) = (|n: i64| Value::Text(n.to_string().into()), Value::Timestamp);
    let write = |operation: usize, new: &dyn Fn(i64) -> Value, column: usize| {
        let mut session = Asking::on(connector.as_ref());
        for number in 0..20_000 {
            session.ask(operation, &[Value::Integer(1), new(number)]).unwrap();
            let found = session.ask(4, &[Value::Integer(1)]).unwrap().concat();
            let is_replaced = column > 0 && found[column] == Value::Null;
            assert!(found[column] == new(number) || is_replaced, "wrote {number}, found {:?}", found[column]);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| write(1, &time, 1));
        scope.spawn(|| write(2, &text, 2));
        scope.spawn(|| write(3, &Value::Integer, 0));
    });
}

#[test]
fn wrong_urls_and_operations_are_told_with_their_place() {
    let url_error = |url: &str| FjallDatabase.open(&TargetUrl::parse(url).unwrap()).err().expect("refused").to_string();
    assert!(url_error("fjall:").contains("expected the path of a folder"));
    assert!(url_error("fjall:x?durability=much").contains("expected one of buffer"));
    let check = |statement: &str| {
        let text = format!(
            "[create.table.t]\nkey = [{{ name = 'id', type = 'integer' }}]\n[[operations]]\nname = 'q'\n\
             parameters = [{{ name = 'name', type = 'text' }}]\nstatement.{statement}"
        );
        FjallDatabase.check(&toml::from_str(&text).unwrap()).expect_err("refused").to_string()
    };
    for (statement, expected) in [
        ("scan = { table = 'u' }", "operation.q.scan.table: there is no table u; expected one of t"),
        ("scan = { table = 't', form = ':name' }", "operation.q.scan.form: unknown field `form`"),
        (
            "scan = { table = 't', prefix = [':name'] }",
            "operation.q.scan.prefix[0]: parameter :name has type text, expected integer",
        ),
        (
            "scan = { table = 't', prefix = [':id'] }",
            "operation.q.scan.prefix[0]: the operation has no parameter :id; expected one of :name",
        ),
        (
            "scan = { table = 't', from = ':name', after = ':name' }",
            "operation.q.scan: expected either from (included) or after (excluded)",
        ),
        ("scan = { table = 't', prefix = [':name'], limit = ':name' }", "operation.q.scan.limit: a whole key is one row"),
        ("scan = { table = 't', limit = ':name' }", "operation.q.scan.limit: parameter :name has type text, expected integer"),
        ("put = { table = 't', values = {} }", "operation.q.put.values: the key column id is missing"),
        ("unknown = 1", "unknown field `unknown`"),
    ] {
        let error = check(statement);
        assert!(error.contains(expected), "{error}");
    }
}
