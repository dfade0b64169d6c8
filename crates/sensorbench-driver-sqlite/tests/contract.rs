//! SQLite keeps the driver contract.

use std::path::Path;

use sensorbench_driver::contract::{Keeps, Subject, check, owner};
use sensorbench_driver::{Database, Driver, ErrorKind, Intent, Schema, TargetUrl};
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
        keeps: Keeps::default(),
        put_foreign: &|| {
            let mine = rusqlite::Connection::open(&path).unwrap();
            mine.execute_batch("CREATE TABLE sensorbench (mark TEXT); INSERT INTO sensorbench VALUES ('mine'), ('too')").unwrap();
        },
        foreign_rows: &|| {
            let mine = rusqlite::Connection::open(&path).unwrap();
            let mut rows = mine.prepare("SELECT mark FROM sensorbench ORDER BY 1").unwrap();
            rows.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
        },
        remove_foreign: &|| std::fs::remove_file(&path).unwrap(),
    });
}

#[test]
fn a_file_that_is_no_database_is_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("thesis.txt");
    std::fs::write(&path, "x".repeat(4096)).unwrap();
    let error = open(&path).guard(&owner()).create(&Schema::default(), "", Intent::Replace).unwrap_err();
    assert!(error.kind() == ErrorKind::Namespace && error.to_string().contains("name another path"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap().len(), 4096);
}

fn open(path: &Path) -> Box<dyn Driver> {
    SqliteDatabase.open(&TargetUrl::parse(&format!("sqlite:{}", path.display())).unwrap()).unwrap()
}

#[test]
fn a_journal_without_its_database_is_somebodys() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my.db");
    let journal = folder.path().join("my.db-wal");
    std::fs::write(&journal, "theirs").unwrap();
    let error = open(&path).guard(&owner()).create(&Schema::default(), "", Intent::Replace).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Namespace, "{error}");
    assert_eq!(std::fs::read_to_string(&journal).unwrap(), "theirs");
    assert!(!path.exists());
}

#[test]
fn a_database_whose_creation_was_cut_short_is_ours() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ours.db");
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "application_id", 0x5342_4348).unwrap();
    open(&path).guard(&owner()).create(&Schema::default(), "again", Intent::Replace).unwrap();
    assert_eq!(open(&path).guard(&owner()).fingerprint().unwrap().as_deref(), Some("again"));
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
