//! The driver contract on a real Cassandra, whose URL is in SENSORBENCH_TEST_URL, and what the contract does not ask.

mod common;

use std::time::Duration;

use common::{TestCluster, TestSession, first_host, load, load_watched, open, schema};
use sensorbench_driver::contract::{Keeps, Subject, check, owner};
use sensorbench_driver::{ErrorKind, Intent, Progress, Schema, Value};
use sensorbench_driver_cassandra::CassandraDatabase;

#[test]
fn the_driver_keeps_the_contract() {
    let cluster = TestCluster::with_namespace("test_contract");
    let schema = schema(include_str!("contract.toml"));
    let put_foreign = || {
        cluster.run("CREATE KEYSPACE test_contract WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        cluster.run("CREATE TABLE test_contract.sensorbench (id int PRIMARY KEY, mark text)");
        cluster.run("INSERT INTO test_contract.sensorbench (id, mark) VALUES (0, 'mine')");
        cluster.run("INSERT INTO test_contract.sensorbench (id, mark) VALUES (1, 'too')");
    };
    let foreign_rows = || cluster.texts("SELECT mark FROM test_contract.sensorbench");
    let remove_foreign = || cluster.run("DROP KEYSPACE test_contract");
    check(&Subject {
        database: &CassandraDatabase,
        url: cluster.url.clone(),
        schema,
        stores_nan: true,
        stores_infinity: true,
        // It is slow with fewer rows, too.
        keeps: Keeps { many_rows: 100_000, ..Keeps::default() },
        put_foreign: &put_foreign,
        foreign_rows: &foreign_rows,
        remove_foreign: &remove_foreign,
    });
}

#[test]
fn a_closed_port_is_told_with_what_to_do() {
    let host = first_host(&common::base_url()).split(':').next().unwrap().to_owned();
    let error = open(&format!("cassandra://me:secret@{host}:1")).unwrap().describe().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    let message = error.to_string();
    assert!(message.contains(&format!("{host}:1")) && message.contains("check host and port"), "{message}");
    assert!(!message.contains("secret"), "{message}");
}

#[test]
fn the_cluster_describes_itself() {
    let cluster = TestCluster::with_namespace("test_describe");
    let driver = cluster.driver_with("&consistency=one");
    let description = driver.describe().unwrap();
    assert_eq!(description.database, "Apache Cassandra");
    assert_eq!(description.settings["consistency"], "one");
    for setting in ["nodes", "replication", "retries", "commitlog_sync", "flush after loading", "num_tokens"] {
        assert!(description.settings.contains_key(setting), "{setting}: {description:?}");
    }
    let status = driver.status().unwrap();
    assert!(status.keys().any(|name| name.contains("thread_pools.")), "{status:?}");
    assert!(status.keys().any(|name| name.contains("caches.")), "{status:?}");
}

#[test]
fn more_copies_than_nodes_are_refused_before_anything_is_created() {
    let cluster = TestCluster::with_namespace("test_copies");
    let driver = cluster.driver_with("&replication=99");
    let error = driver.guard(&owner()).create(&Schema::default(), "", Intent::Create).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Url, "{error}");
    assert!(error.to_string().contains("a node holds one copy at most"), "{error}");
    assert_eq!(driver.guard(&owner()).fingerprint().unwrap(), None);
}

const READS: &str = r#"
[create]
statements = ["CREATE TABLE t (part int, id bigint, value double, PRIMARY KEY (part, id))"]
[tables]
t = [{ name = "part", type = "integer" }, { name = "id", type = "integer" }, { name = "value", type = "double" }]
[[operations]]
name = "read"
parameters = [{ name = "part", type = "integer" }, { name = "id", type = "integer" }, { name = "end", type = "integer" }]
columns = [{ name = "id", type = "integer" }, { name = "value", type = "double" }]
statement.statement = "SELECT id, value FROM t WHERE part = :part AND id >= :id AND id < :end"
[[operations]]
name = "whole"
parameters = [{ name = "part", type = "integer" }]
columns = [{ name = "id", type = "integer" }, { name = "value", type = "double" }]
statement.statement = "SELECT id, value FROM t WHERE part = :part"
statement.page_size = 100
"#;

/// Ten partitions of a thousand rows each.
fn reads(cluster: &TestCluster) -> TestSession {
    let schema = schema(READS);
    let driver = cluster.driver_with("");
    driver.guard(&owner()).create(&schema, "mark", Intent::Replace).unwrap();
    let rows = (0..10_000).map(|row| [Value::Integer(row / 1000), Value::Integer(row), Value::Double(row as f64 / 7.0)]);
    assert_eq!(load(driver.as_ref(), "t", &["part", "id", "value"], rows).unwrap(), 10_000);
    assert_eq!(driver.count("t").unwrap(), 10_000);
    TestSession::connect(driver.as_ref(), &schema, 64)
}

fn rows(ids: std::ops::Range<i64>) -> Vec<Vec<Value>> {
    ids.map(|id| vec![Value::Integer(id), Value::Double(id as f64 / 7.0)]).collect()
}

#[test]
fn answers_of_many_operations_in_flight_are_not_mixed_up_and_pages_are_drained() {
    let cluster = TestCluster::with_namespace("test_in_flight");
    let session = reads(&cluster);
    session.run(async |executor| {
        let read = async |number: i64| {
            let id = number * 7919 % 9_990;
            let (part, end) = (id / 1000, (id / 1000 * 1000 + 1000).min(id + 3));
            let parameters = [part, id, end].map(Value::Integer);
            assert_eq!(executor.execute("read", &parameters).await.unwrap(), rows(id..end));
        };
        for start in (0..10_000).step_by(64) {
            futures::future::join_all((start..start + 64).map(&read)).await;
        }
        assert_eq!(executor.execute("whole", &[Value::Integer(4)]).await.unwrap(), rows(4000..5000));
    });
}

const COUNTS: &str = r#"
[create]
statements = ["CREATE TABLE counts (day int, hour int, readings counter, PRIMARY KEY (day, hour))"]
[tables]
counts = [{ name = "day", type = "integer" }, { name = "readings", type = "integer" }, { name = "hour", type = "integer" }]
[[operations]]
name = "read"
parameters = [{ name = "day", type = "integer" }]
columns = [{ name = "hour", type = "integer" }, { name = "readings", type = "integer" }]
statement.statement = "SELECT hour, readings FROM counts WHERE day = :day"
"#;

/// Whatever place they have among the columns of the fill.
#[test]
fn counters_are_loaded_by_raising_them() {
    let cluster = TestCluster::with_namespace("test_counters");
    let schema = schema(COUNTS);
    let driver = cluster.driver_with("");
    driver.guard(&owner()).create(&schema, "", Intent::Replace).unwrap();
    let rows = (0..96).map(|row| [row / 24, 100 + row, row % 24].map(Value::Integer));
    assert_eq!(load(driver.as_ref(), "counts", &["day", "readings", "hour"], rows).unwrap(), 96);
    assert_eq!(driver.count("counts").unwrap(), 96);
    let session = TestSession::connect(driver.as_ref(), &schema, 4);
    let expected: Vec<Vec<Value>> = (0..24).map(|hour| [hour, 148 + hour].map(Value::Integer).to_vec()).collect();
    session.run(async |executor| assert_eq!(executor.execute("read", &[Value::Integer(2)]).await.unwrap(), expected));
}

/// With more copies than nodes, no write reaches the level ALL, until somebody takes the second copy back.
#[test]
fn batches_that_are_sent_again_are_counted() {
    let cluster = TestCluster::with_namespace("test_retries");
    let driver = cluster.driver_with("&write_consistency=all");
    driver.guard(&owner()).create(&schema(READS), "", Intent::Replace).unwrap();
    let keep = |copies: u8| {
        let replication = format!("{{'class': 'SimpleStrategy', 'replication_factor': {copies}}}");
        cluster.run(&format!("ALTER KEYSPACE test_retries WITH replication = {replication}"));
    };
    let load = |progress: &Progress| {
        let rows = (0..10).map(|row| [Value::Integer(0), Value::Integer(row), Value::Double(0.5)]);
        load_watched(driver.as_ref(), "t", &["part", "id", "value"], rows, progress).unwrap();
        assert_eq!(progress.rows(), 10);
    };
    let (quiet, busy) = (Progress::default(), Progress::default());
    load(&quiet);
    keep(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Not for ever, where retries are not counted.
            for _ in 0..1000 {
                if busy.retries() > 0 {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            keep(1);
        });
        load(&busy);
    });
    assert_eq!(quiet.retries(), 0);
    assert!(busy.retries() > 0);
    assert_eq!(driver.count("t").unwrap(), 10);
}

#[test]
fn a_row_that_does_not_fit_ends_the_load_with_its_cause() {
    let cluster = TestCluster::with_namespace("test_load");
    let driver = cluster.driver_with("");
    driver.guard(&owner()).create(&schema(READS), "", Intent::Replace).unwrap();
    let row = [Value::Integer(1 << 31), Value::Integer(1), Value::Double(0.5)];
    let error = load(driver.as_ref(), "t", &["part", "id", "value"], [row].into_iter()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data, "{error}");
    assert!(error.to_string().contains("table t, column part: 2147483648 does not fit into int"), "{error}");
    let row = [Value::Null, Value::Integer(1), Value::Double(0.5)];
    let error = load(driver.as_ref(), "t", &["part", "id", "value"], [row].into_iter()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data, "{error}");
    assert!(error.to_string().starts_with("table t: "), "{error}");
}

#[test]
fn statements_that_do_not_fit_their_operation_are_refused_before_the_run() {
    let cluster = TestCluster::with_namespace("test_statements");
    let created = "[create]\nstatements = ['CREATE TABLE t (id int PRIMARY KEY, f float, at date)']\n";
    let driver = cluster.driver_with("");
    driver.guard(&owner()).create(&schema(created), "", Intent::Replace).unwrap();
    let refused = |operation: &str| {
        let schema = schema(&format!("[[operations]]\nname = 'q'\n{operation}"));
        let error = TestSession::try_connect(driver.as_ref(), &schema, 1).err().expect("refused");
        assert_eq!(error.kind(), ErrorKind::Schema, "{error}");
        let message = error.to_string();
        assert!(message.starts_with("operation.q.statement: "), "{message}");
        message
    };
    let column = |column_type: &str| format!("columns = [{{ name = 'c', type = '{column_type}' }}]\n");
    assert!(refused("statement.statement = 'SELEC 1'").contains("no viable alternative"));
    assert!(refused(&(column("double") + "statement.statement = 'SELECT f FROM t'")).contains("but Cassandra returns float"));
    assert!(refused(&(column("integer") + "statement.statement = 'SELECT id, f FROM t'")).contains("returns 2 columns"));
    let parameter = "parameters = [{ name = 'x', type = 'text' }]\n".to_owned() + &column("integer");
    let message = refused(&(parameter + "statement.statement = 'SELECT id FROM t WHERE id = :x'"));
    assert!(message.contains("Cassandra takes :x for int, but it is declared as text"), "{message}");
}
