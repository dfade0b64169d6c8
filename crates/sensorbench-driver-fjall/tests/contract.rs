//! fjall keeps the driver contract.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::{RecordBatch, RecordBatchIterator};
use sensorbench_dataset::array_of;
use sensorbench_driver::contract::{Subject, check};
use sensorbench_driver::{
    Database, Deadline, Driver, DriverError, Operation, Progress, Request, Rows, Schema, Sessions, TargetUrl, Type, Value,
    ValueRef,
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
        put_foreign: &|| {
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("mine"), "x").unwrap();
        },
        remove_foreign: &|| std::fs::remove_dir_all(&path).unwrap(),
    });
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

#[test]
fn unsorted_rows_and_equal_keys_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("fjall:{}", folder.path().join("data").display());
    let driver = FjallDatabase.open(&TargetUrl::parse(&url).unwrap()).unwrap();
    let schema = Schema { tables: Default::default(), ..contract_schema() };
    for (ids, problem) in [(&[2, 1][..], "sorted"), (&[1, 1], "same key")] {
        driver.create(&schema, "", true).unwrap();
        let error = load_ids(driver.as_ref(), ids).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
    driver.create(&schema, "", true).unwrap();
    load_ids(driver.as_ref(), &[]).unwrap();
    driver.settle().unwrap();
    assert_eq!(driver.count("many").unwrap(), 0);
}

#[test]
fn a_scan_may_exclude_its_first_bound() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("fjall:{}", folder.path().join("data").display());
    let driver = FjallDatabase.open(&TargetUrl::parse(&url).unwrap()).unwrap();
    driver.create(&Schema { tables: Default::default(), ..contract_schema() }, "", true).unwrap();
    load_ids(driver.as_ref(), &[-300, -1, 0, 255, 256, 257, i64::MAX]).unwrap();
    let operation: Operation = toml::from_str(
        "name = 'between'\nparameters = [{ name = 'low', type = 'integer' }, { name = 'high', type = 'integer' }]\n\
         columns = [{ name = 'id', type = 'integer' }]\nstatement.scan = { table = 'many', after = ':low', to = ':high' }",
    )
    .unwrap();
    let Sessions::Blocking(connector) = driver.sessions(&[operation]).unwrap() else { panic!("fjall blocks") };
    let mut session = connector.connect(Arc::new(Deadline::new(Instant::now(), Arc::default()))).unwrap();
    let mut between = |low: i64, high: i64| {
        let mut request = Request { operation: 0, parameters: [low, high].map(Value::Integer).to_vec(), rows: Rows::new() };
        session.execute(&mut request).unwrap();
        request.rows.iter().map(|row| row.value(0).to_value()).collect::<Vec<_>>()
    };
    assert_eq!(between(-300, 256), [-1, 0, 255].map(Value::Integer));
    assert_eq!(between(255, 257), [Value::Integer(256)]);
    assert_eq!(between(256, 257), []);
    assert_eq!(between(i64::MAX, i64::MAX), []);
    assert_eq!(between(5, 1), []);
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
            "operation.q.scan.prefix[0]: parameter :name is a text, but the column is a integer",
        ),
        (
            "scan = { table = 't', prefix = [':id'] }",
            "operation.q.scan.prefix[0]: the operation has no parameter :id; expected one of :name",
        ),
        (
            "scan = { table = 't', from = ':name', after = ':name' }",
            "operation.q.scan: expected either from (included) or after (excluded)",
        ),
        ("put = { table = 't', values = {} }", "operation.q.put.values: the key column id is missing"),
        ("unknown = 1", "unknown field `unknown`"),
    ] {
        let error = check(statement);
        assert!(error.contains(expected), "{error}");
    }
}
