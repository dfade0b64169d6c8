//! DuckDB keeps the driver contract.

mod library;

use std::path::{Path, PathBuf};

use sensorbench_driver::contract::{Keeps, Subject, check, owner};
use sensorbench_driver::{Database, Driver, ErrorKind, Intent, Schema, TargetUrl};
use sensorbench_driver_duckdb::DuckdbDatabase;

use crate::library::DUCKDB;

fn contract_schema() -> Schema {
    toml::from_str(include_str!("contract.toml")).expect("the schema of the contract")
}

fn open(path: &Path) -> Box<dyn Driver> {
    DUCKDB.open(&TargetUrl::parse(&format!("duckdb:{}", path.display())).unwrap()).unwrap()
}

/// Somebody's database, made in DuckDB's Python package by pytest, with a table of sensorbench's name in it.
fn theirs() -> PathBuf {
    PathBuf::from(std::env::var_os("SENSORBENCH_TEST_FOREIGN").expect("SENSORBENCH_TEST_FOREIGN"))
}

#[test]
fn keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("contract.db");
    check(&Subject {
        database: &DUCKDB,
        url: format!("duckdb:{}", path.display()),
        schema: contract_schema(),
        stores_nan: true,
        stores_infinity: true,
        keeps: Keeps::default(),
        put_foreign: &|| {
            std::fs::copy(theirs(), &path).unwrap();
        },
        // Byte for byte: that is more than its rows.
        foreign_rows: &|| vec![format!("{:x?}", std::fs::read(&path).unwrap())],
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

#[test]
fn a_database_of_a_version_that_cannot_be_read_is_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("newer.db");
    let mut bytes = std::fs::read(theirs()).unwrap();
    // Behind the magic bytes: the version of the file.
    bytes[12..20].copy_from_slice(&99_999u64.to_le_bytes());
    std::fs::write(&path, &bytes).unwrap();
    let error = open(&path).guard(&owner()).create(&Schema::default(), "", Intent::Replace).unwrap_err();
    assert!(error.kind() == ErrorKind::Namespace && error.to_string().contains("cannot open"), "{error}");
    assert!(std::fs::read(&path).unwrap() == bytes);
}

#[test]
fn a_log_without_its_database_is_somebodys() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my.db");
    let log = folder.path().join("my.db.wal");
    std::fs::write(&log, "theirs").unwrap();
    let error = open(&path).guard(&owner()).create(&Schema::default(), "", Intent::Replace).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Namespace, "{error}");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "theirs");
    assert!(!path.exists());
}

#[test]
fn a_database_whose_creation_was_cut_short_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ours.db");
    std::fs::copy(theirs(), folder.path().join("ours.db.sensorbench-new")).unwrap();
    open(&path).guard(&owner()).create(&Schema::default(), "again", Intent::Create).unwrap();
    assert_eq!(open(&path).guard(&owner()).fingerprint().unwrap().as_deref(), Some("again"));
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["ours.db"]);
}

#[test]
fn drivers_of_one_file_share_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared.db");
    let first = open(&path);
    first.guard(&owner()).create(&contract_schema(), "", Intent::Create).unwrap();
    let second = open(&path);
    second.guard(&owner()).attach(&contract_schema(), Intent::Attach).unwrap();
    assert_eq!(second.count("readings").unwrap(), 0);
    let url = format!("duckdb:{}?threads=1", path.display());
    let other = DUCKDB.open(&TargetUrl::parse(&url).unwrap()).unwrap();
    let error = other.guard(&owner()).attach(&contract_schema(), Intent::Attach).unwrap_err().to_string();
    assert!(error.contains("with other settings"), "{error}");
}

#[test]
fn settings_reach_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!(
        "duckdb:{}?threads=1&memory_limit=200MiB&fsync_mode=NONE&checkpoint_threshold=1MiB",
        folder.path().join("set.db").display()
    );
    let driver = DUCKDB.open(&TargetUrl::parse(&url).unwrap()).unwrap();
    driver.guard(&owner()).create(&Schema::default(), "", Intent::Create).unwrap();
    let settings = driver.describe().unwrap().settings;
    let expected = [("checkpoint_threshold", "1.0 MiB"), ("fsync_mode", "NONE"), ("memory_limit", "200.0 MiB"), ("threads", "1")];
    assert_eq!(settings, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
}

#[test]
fn wrong_urls_and_statements_are_told_with_their_place() {
    let url_error = |url: &str| DUCKDB.open(&TargetUrl::parse(url).unwrap()).err().expect("refused").to_string();
    assert!(url_error("duckdb:").contains("expected the path of a file"));
    assert!(url_error("duckdb:x?fsync_mode=fast").contains("expected one of standard, none, full"));
    assert!(url_error("duckdb:x?memory_limit=lots").contains("memory_limit=lots: expected a number and a unit"));
    assert!(url_error("duckdb:x?threads=0").contains("threads=0: expected a number of threads"));
    let schema_error = |text: &str| DUCKDB.check(&toml::from_str(text).unwrap()).expect_err("refused").to_string();
    assert!(schema_error("[create]\nstatement = ['x']").starts_with("create.statement: unknown field"));
    assert!(schema_error("[create]\nstatements = ['CREATE TABEL x']").starts_with("create.statements[0]: "));
    let operation = |statement: &str| format!("[[operations]]\nname = 'q'\nstatement.statement = '{statement}'");
    assert!(schema_error(&operation("SELECT 1 WHERE :x")).contains("the operation has no parameter :x"));
    assert!(schema_error(&operation("SELECT 1")).contains("returns 1 columns; the operation has 0"));
    assert!(schema_error(&operation("SELECT $x")).contains("must be written as :name"));
    let returned = |statement: &str, kind: &str| format!("{}\ncolumns = [{{name = 'c', type = '{kind}'}}]", operation(statement));
    assert!(schema_error(&returned("SELECT sum(1)", "integer")).contains("more than 64 bits"));
    assert!(schema_error(&returned("SELECT 1::FLOAT", "double")).contains("FLOAT, which rounds"));
}

#[test]
fn a_library_that_is_not_there_or_is_another_is_told() {
    let missing = DuckdbDatabase { find_library: || Ok(PathBuf::from("/nowhere/libduckdb.so")) };
    let error = missing.check(&Schema::default()).unwrap_err();
    assert!(error.kind() == ErrorKind::Url && error.to_string().contains("cannot be opened"), "{error}");
    let another = DuckdbDatabase { find_library: || Ok(PathBuf::from("libc.so.6")) };
    let error = another.check(&Schema::default()).unwrap_err();
    assert!(error.kind() == ErrorKind::Url && error.to_string().contains("exports no C API of DuckDB"), "{error}");
}
