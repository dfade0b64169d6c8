//! fjall keeps the driver contract.

use arrow_array::{RecordBatch, RecordBatchIterator};
use sensorbench_dataset::array_of;
use sensorbench_driver::contract::{Subject, check};
use sensorbench_driver::{Database, Driver, DriverError, Progress, Schema, TargetUrl, Type, ValueRef};
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
        ("put = { table = 't', values = {} }", "operation.q.put.values: the key column id is missing"),
        ("unknown = 1", "unknown field `unknown`"),
    ] {
        let error = check(statement);
        assert!(error.contains(expected), "{error}");
    }
}
