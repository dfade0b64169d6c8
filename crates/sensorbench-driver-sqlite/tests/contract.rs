//! SQLite keeps the driver contract.

use sensorbench_driver::contract::{Subject, check};
use sensorbench_driver::{Database, Schema, TargetUrl};
use sensorbench_driver_sqlite::SqliteDatabase;

fn contract_schema() -> Schema {
    toml::from_str(include_str!("contract.toml")).expect("the schema of the contract")
}

#[test]
fn keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("contract.db");
    check(&Subject {
        database: &SqliteDatabase,
        url: format!("sqlite:{}", path.display()),
        schema: contract_schema(),
        stores_nan: false,
        stores_infinity: true,
        put_foreign: &|| rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE mine (x)").unwrap(),
        remove_foreign: &|| std::fs::remove_file(&path).unwrap(),
    });
}

#[test]
fn a_file_that_is_no_database_is_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("thesis.txt");
    std::fs::write(&path, "x".repeat(4096)).unwrap();
    let driver = SqliteDatabase.open(&TargetUrl::parse(&format!("sqlite:{}", path.display())).unwrap()).unwrap();
    assert!(driver.create(&Schema::default(), "", true).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap().len(), 4096);
}

#[test]
fn wrong_urls_and_statements_are_told_with_their_place() {
    let url_error = |url: &str| SqliteDatabase.open(&TargetUrl::parse(url).unwrap()).err().expect("refused").to_string();
    assert!(url_error("sqlite:").contains("expected the path of a file"));
    assert!(url_error("sqlite:x?journal_mode=fast").contains("expected one of wal, delete"));
    let schema_error = |text: &str| SqliteDatabase.check(&toml::from_str(text).unwrap()).expect_err("refused").to_string();
    assert!(schema_error("[create]\nstatement = ['x']").starts_with("create.statement: unknown field"));
    assert!(schema_error("[create]\nstatements = ['CREATE TABEL x']").starts_with("create.statements[0]: "));
    let operation = |statement: &str| format!("[[operations]]\nname = 'q'\nstatement.statement = '{statement}'");
    assert!(schema_error(&operation("SELECT 1 WHERE :x")).contains("the operation has no parameter :x"));
    assert!(schema_error(&operation("SELECT 1")).contains("returns 1 columns; the operation has 0"));
}
