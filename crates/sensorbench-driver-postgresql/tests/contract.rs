//! PostgreSQL keeps the driver contract, and what else is promised of its driver.

mod by_url;
mod common;
mod questdb;

use std::net::TcpListener;
use std::time::{Duration, Instant};

use common::{POSTGRESQL, TestServer, TestSession, load, open, schema, table_of};
use sensorbench_driver::contract::{Keeps, Subject, check, owner};
use sensorbench_driver::{Database, DriverError, ErrorKind, Intent, Schema, Value};

const SHORT: Duration = Duration::from_millis(50);

#[test]
fn keeps_the_contract() {
    let server = TestServer::with_namespace("test_contract");
    check(&Subject {
        database: &POSTGRESQL,
        url: server.url.clone(),
        schema: schema(include_str!("contract.toml")),
        stores_nan: true,
        stores_infinity: true,
        keeps: Keeps::default(),
        put_foreign: &|| {
            server.run("CREATE SCHEMA test_contract; CREATE TABLE test_contract.sensorbench (mark text)");
            server.run("INSERT INTO test_contract.sensorbench VALUES ('mine'), ('too')");
        },
        foreign_rows: &|| server.texts("SELECT mark FROM test_contract.sensorbench ORDER BY 1"),
        remove_foreign: &|| server.run("DROP SCHEMA test_contract CASCADE"),
    });
}

#[test]
fn wrong_statements_are_told_with_their_place_without_a_server() {
    let refused = |text: &str| POSTGRESQL.check(&schema(text)).expect_err("refused").to_string();
    assert!(refused("[create]\nstatement = ['x']").starts_with("create.statement: unknown field"));
    let operation = |statement: &str| format!("[[operations]]\nname = 'q'\n{statement}");
    assert!(refused(&operation("")).starts_with("operation.q: missing field `statement`"));
    assert!(refused(&operation("statement.statement = 'SELECT :x'")).contains("the operation has no parameter :x"));
    assert!(refused(&operation("statement.statement = 'SELECT $1'")).contains("must be written as :name"));
    POSTGRESQL.check(&POSTGRESQL.no_op().unwrap()).unwrap();
}

#[test]
fn a_wrong_password_is_told_without_showing_it() {
    let server = TestServer::with_namespace("test_password");
    let driver = open(&server.url_for("wr0ng-secret", server.port()));
    let error = driver.describe().expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    let message = server.message(error);
    assert!(message.contains(&format!(":{}: password authentication failed", server.port())), "{message}");
    assert!(message.contains("check user and password") && !message.contains("wr0ng-secret"), "{message}");
}

#[test]
fn a_server_that_is_not_there_is_told_with_its_address() {
    let server = TestServer::with_namespace("test_unreachable");
    let closed = TcpListener::bind((server.host(), 0)).unwrap().local_addr().unwrap().port();
    let driver = open(&server.url_for("secret", closed));
    let session = TestSession::connect(driver.as_ref(), &Schema::default(), 4).err();
    for error in [
        driver.describe().err(),
        driver.guard(&owner()).fingerprint().err(),
        driver.guard(&owner()).create(&Schema::default(), "", Intent::Replace).err(),
        session,
    ] {
        let error = error.expect("nobody is there");
        assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
        let message = error.to_string();
        assert!(message.contains(&format!(":{closed}: ")) && message.contains("refused"), "{message}");
        assert!(message.contains("check host and port") && !message.contains("secret"), "{message}");
    }
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let server = TestServer::with_namespace("test_silent");
    let listener = TcpListener::bind((server.host(), 0)).unwrap();
    let start = Instant::now();
    let error = open(&server.url_for("secret", listener.local_addr().unwrap().port())).describe().expect_err("no answer");
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    assert!(error.to_string().contains("no answer within 10 s"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(12));
}

#[test]
fn a_schema_of_somebody_else_is_never_touched() {
    let server = TestServer::with_namespace("test_foreign");
    server.run("CREATE SCHEMA test_foreign; CREATE TABLE test_foreign.sensorbench (theirs int)");
    let driver = server.driver();
    for intent in [Intent::Create, Intent::Replace] {
        let error = driver.guard(&owner()).create(&table_of("id bigint, value float8"), "", intent).expect_err("it is theirs");
        assert_eq!(error.kind(), ErrorKind::Namespace, "{error}");
        assert!(server.message(error).contains("name another one with namespace="));
    }
    assert_eq!(driver.guard(&owner()).fingerprint().unwrap(), None);
    assert_eq!(driver.guard(&owner()).attach(&Schema::default(), Intent::Attach).unwrap_err().kind(), ErrorKind::Namespace);
    assert_eq!(driver.guard(&owner()).set_fingerprint("ours").unwrap_err().kind(), ErrorKind::Namespace);
    driver.guard(&owner()).remove().unwrap();
    server.run("SELECT theirs FROM test_foreign.sensorbench");
}

#[test]
fn the_server_describes_itself() {
    let server = TestServer::with_namespace("test_describe");
    let driver = server.driver_with("synchronous_commit=off");
    let description = driver.describe().unwrap();
    assert_eq!(description.database, "PostgreSQL");
    assert!(description.version.starts_with(|c: char| c.is_ascii_digit()), "{description:?}");
    assert_eq!(description.settings["synchronous_commit"], "off");
    for setting in ["shared_buffers", "fsync", "wal_level", "data_checksums", "jit", "checkpoint after loading"] {
        assert!(description.settings.contains_key(setting), "{setting}: {description:?}");
    }
    let status = driver.status().unwrap();
    assert!(status["database.xact_commit"] > 0.0 && status.contains_key("bgwriter.buffers_alloc"), "{status:?}");
}

#[test]
fn what_a_table_cannot_hold_is_told_with_its_place() {
    let server = TestServer::with_namespace("test_columns");
    let refused = |columns: &str| {
        let error = server.driver().guard(&owner()).create(&table_of(columns), "", Intent::Replace).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Schema, "{error}");
        server.message(error)
    };
    assert!(refused("id bigint").contains("fill.t: column \"value\" does not exist"));
    assert!(refused("id bigint, value real").contains("fill.t: column value is float4"));
    assert!(refused("id bigint, value real").contains("declare it as double precision"));
    assert!(refused("id bigin").contains("create.statements[0]: type \"bigin\" does not exist"));
}

#[test]
fn a_refused_row_ends_the_load_with_its_cause() {
    let server = TestServer::with_namespace("test_load");
    let driver =
        server.created("connections=1", &table_of("id integer PRIMARY KEY, value double precision CHECK (value < 1000)"));
    let refused = |ids: &[i64]| {
        let error = load(driver.as_ref(), ids).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Data, "{error}");
        server.message(error)
    };
    let message = refused(&[1, 2, 3, 2]);
    assert!(message.contains("table t: duplicate key") && message.contains("Key (id)=(2)"), "{message}");
    assert!(message.contains("line 4"), "{message}");
    assert!(refused(&[1, 7001]).contains("violates check constraint"));
    assert!(refused(&[1, 1 << 31]).contains("table t, column id: 2147483648 does not fit into integer"));
    assert_eq!(driver.count("t").unwrap(), 0, "a load that fails leaves nothing");
    assert_eq!(load(driver.as_ref(), &[1, 2, 3]).unwrap(), 3);
    assert_eq!(driver.count("t").unwrap(), 3);
}

#[test]
fn loads_of_many_copies_are_whole() {
    let server = TestServer::with_namespace("test_copies");
    let driver = server.created("connections=1", &table_of("id bigint, value double precision"));
    let ids: Vec<i64> = (0..2_500_000).collect();
    assert_eq!(load(driver.as_ref(), &ids).unwrap(), 2_500_000);
    assert_eq!(driver.count("t").unwrap(), 2_500_000);
}

const READS: &str = r#"
[create]
statements = ["CREATE TABLE t (id bigint PRIMARY KEY, value double precision)"]
[tables]
t = [{ name = "id", type = "integer" }, { name = "value", type = "double" }]
[[operations]]
name = "read"
parameters = [{ name = "id", type = "integer" }]
columns = [{ name = "id", type = "integer" }, { name = "value", type = "double" }]
statement.statement = "SELECT id, value FROM t WHERE id >= :id AND id < :id + 3 ORDER BY id /* WORDS */"
[[operations]]
name = "sleep"
columns = [{ name = "done", type = "boolean" }]
statement.statement = "SELECT pg_sleep(60) IS NULL /* WORDS */"
[[operations]]
name = "nap"
columns = [{ name = "done", type = "boolean" }]
statement.statement = "SELECT pg_sleep(1) IS NULL /* WORDS */"
"#;

/// A table with a thousand rows; its statements have the namespace in a comment, by which they are known at the server.
fn reads(server: &TestServer, words: &str, connections: usize) -> TestSession {
    let schema = schema(&READS.replace("WORDS", words));
    let driver = server.created(&format!("connections={connections}"), &schema);
    load(driver.as_ref(), &(0..1000).collect::<Vec<_>>()).unwrap();
    TestSession::connect(driver.as_ref(), &schema, 64).unwrap()
}

fn rows_from(id: i64) -> Vec<Vec<Value>> {
    (id..id + 3).map(|id| vec![Value::Integer(id), Value::Double(id as f64 / 7.0)]).collect()
}

#[test]
fn answers_of_many_operations_in_flight_are_not_mixed_up() {
    let server = TestServer::with_namespace("test_in_flight");
    let session = reads(&server, "test_in_flight", 4);
    session.run(async |executor| {
        let read = async |executor: &common::Executor, number: u64| {
            let id = (number * 7919 % 997) as i64;
            assert_eq!(executor.execute("read", &[Value::Integer(id)]).await.unwrap(), rows_from(id));
        };
        executor.execute_all(20_000, 64, read).await;
    });
}

#[test]
fn operations_that_are_given_up_leave_the_others_alone() {
    let server = TestServer::with_namespace("test_given_up");
    let session = reads(&server, "test_given_up", 4);
    session.run(async |executor| {
        let read_or_give_up = async |executor: &common::Executor, number: u64| {
            let id = (number * 7919 % 997) as i64;
            if number % 50 == 7 {
                let outcome = executor.execute_for(Duration::from_micros(number % 3000), "sleep").await;
                assert!(outcome.is_none(), "{outcome:?}");
            } else {
                assert_eq!(executor.execute("read", &[Value::Integer(id)]).await.unwrap(), rows_from(id));
            }
        };
        executor.execute_all(5_000, 16, read_or_give_up).await;
    });
    still_reads(&session);
}

fn still_reads(session: &TestSession) {
    assert_eq!(session.execute("read", &[Value::Integer(5)]).unwrap(), rows_from(5));
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_operation_that_is_given_up_ends_at_the_server() {
    let server = TestServer::with_namespace("test_cancel");
    let session = reads(&server, "test_cancel", 1);
    session.run(async |executor| assert!(executor.execute_for(SHORT, "sleep").await.is_none()));
    let start = Instant::now();
    still_reads(&session);
    assert!(start.elapsed() < Duration::from_secs(1), "the session is usable at once, not after {:?}", start.elapsed());
    eventually("it is cancelled", || server.executing("test_cancel") == 0);
    session.run(async |executor| {
        let given_up = futures::future::join_all((0..5).map(|_| executor.execute_for(SHORT, "sleep"))).await;
        assert!(given_up.iter().all(Option::is_none));
    });
    drop(session);
    eventually("those that wait in a pipeline end with the session", || server.executing("test_cancel") == 0);
}

#[test]
fn those_behind_an_operation_that_is_given_up_go_on() {
    let server = TestServer::with_namespace("test_behind");
    let session = reads(&server, "test_behind", 1);
    session.run(async |executor| {
        let behind = async {
            tokio::time::sleep(SHORT / 5).await;
            (executor.execute("read", &[Value::Integer(8)]).await, executor.execute_for(SHORT, "sleep").await.is_none())
        };
        let (given_up, (read, also_given_up)) = tokio::join!(executor.execute_for(SHORT, "sleep"), behind);
        assert!(given_up.is_none() && also_given_up);
        assert_eq!(read.unwrap(), rows_from(8));
    });
    still_reads(&session);
}

#[test]
fn those_before_an_operation_that_is_given_up_are_not_cancelled() {
    let server = TestServer::with_namespace("test_before");
    let session = reads(&server, "test_before", 1);
    session.run(async |executor| {
        let behind = async {
            tokio::time::sleep(SHORT / 5).await;
            assert!(executor.execute_for(SHORT, "sleep").await.is_none());
            let start = Instant::now();
            assert_eq!(executor.execute("read", &[Value::Integer(8)]).await.unwrap(), rows_from(8));
            start.elapsed()
        };
        let last = async {
            tokio::time::sleep(SHORT / 2).await;
            executor.execute_for(Duration::from_millis(1500), "sleep").await
        };
        let (napped, waited, last) = tokio::join!(executor.execute("nap", &[]), behind, last);
        assert_eq!(napped.unwrap(), [[Value::Boolean(false)]]);
        assert!(last.is_none(), "{last:?}");
        assert!(waited < Duration::from_millis(700), "a later operation waited {waited:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    });
    eventually("what was given up is cancelled in its turn", || server.executing("test_before") == 0);
}

#[test]
fn connections_that_are_lost_are_replaced() {
    let server = TestServer::with_namespace("test_lost");
    let session = reads(&server, "test_lost", 4);
    let outcomes = std::thread::scope(|scope| {
        let ended = scope.spawn(|| {
            eventually("they sleep", || server.executing("test_lost") == 4);
            server.end_connections("test_lost")
        });
        let asleep =
            async |executor: common::Executor| futures::future::join_all((0..8).map(|_| executor.execute("sleep", &[]))).await;
        let outcomes = session.run(asleep);
        assert_eq!(ended.join().unwrap(), 4);
        outcomes
    });
    for outcome in outcomes {
        let error = outcome.expect_err("its connection was lost");
        assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
        assert!(server.message(error).contains("the connection was lost"));
    }
    still_reads(&session);
    assert!(server.end_connections("test_lost") > 0);
    eventually("idle connections are replaced as well", || session.execute("read", &[Value::Integer(5)]).is_ok());
    still_reads(&session);
}

/// A session with one operation.
fn session_for(server: &TestServer, operation: &str) -> Result<TestSession, DriverError> {
    let schema = schema(&format!("[[operations]]\nname = 'q'\n{operation}"));
    TestSession::connect(server.driver().as_ref(), &schema, 1)
}

#[test]
fn statements_that_do_not_fit_their_operation_are_refused_before_the_run() {
    let server = TestServer::with_namespace("test_statements");
    let refused = |operation: &str| {
        let error = session_for(&server, operation).err().expect("refused");
        assert_eq!(error.kind(), ErrorKind::Schema, "{error}");
        let message = server.message(error);
        assert!(message.starts_with("operation.q.statement: "), "{message}");
        message
    };
    let column = |column_type: &str| format!("columns = [{{ name = 'c', type = '{column_type}' }}]\n");
    assert!(refused("statement.statement = 'SELEC 1'").contains("syntax error"));
    assert!(refused("statement.statement = 'SELECT * FROM nowhere'").contains("relation \"nowhere\" does not exist"));
    assert!(refused("statement.statement = 'SELECT 1'").contains("returns 1 columns; the operation has 0"));
    let message = refused(&(column("double") + "statement.statement = 'SELECT 1::float4'"));
    assert!(message.contains("column c should be double (double precision), but PostgreSQL returns float4"), "{message}");
    let message = refused(&(column("double") + "statement.statement = 'SELECT 1.5'"));
    assert!(message.contains("PostgreSQL returns numeric; cast it with ::float8"), "{message}");
    let parameter = "parameters = [{ name = 'x', type = 'integer' }]\n".to_owned() + &column("text");
    let message = refused(&(parameter + "statement.statement = 'SELECT :x'"));
    assert!(message.contains("PostgreSQL takes :x for text, but it is declared as integer; write :x::bigint"), "{message}");
}

#[test]
fn narrow_integers_take_what_fits() {
    let server = TestServer::with_namespace("test_narrow");
    let operation = "parameters = [{ name = 'x', type = 'integer' }]\ncolumns = [{ name = 'x', type = 'integer' }]\n\
                     statement.statement = 'SELECT :x::smallint'";
    let session = session_for(&server, operation).unwrap();
    assert_eq!(session.execute("q", &[Value::Integer(-32_768)]).unwrap(), [[Value::Integer(-32_768)]]);
    let error = session.execute("q", &[Value::Integer(32_768)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data, "{error}");
    assert!(error.to_string().contains("parameter x: 32768 does not fit into smallint"), "{error}");
    assert_eq!(session.execute("q", &[Value::Null]).unwrap(), [[Value::Null]]);
}

#[test]
fn computed_numerics_are_the_doubles_that_the_server_makes_of_them() {
    let server = TestServer::with_namespace("test_numeric");
    let operation = r#"
        columns = [{ name = 'n', type = 'double', computed = true }, { name = 'd', type = 'double' }]
        statement.statement = """
            SELECT n, n::float8 FROM (
                SELECT unnest(ARRAY[0, 1, -1, 0.1, 1.0 / 3, -2.0 / 3, 1e-30, 1e30, 12345.6789, 9999, 10000, 99990000, 0.00010001,
                    1.7e308, 'NaN', 'Infinity', '-Infinity']::numeric[]) AS n
                UNION ALL SELECT avg(i) * 1.1 FROM generate_series(1, 1000) i GROUP BY i % 37) AS numbers"""
    "#;
    let rows = session_for(&server, operation).unwrap().execute("q", &[]).unwrap();
    assert_eq!(rows.len(), 17 + 37);
    for row in rows {
        let [Value::Double(ours), Value::Double(servers)] = row[..] else { panic!("doubles: {row:?}") };
        assert!(ours == servers || (ours.is_nan() && servers.is_nan()), "{ours} {servers}");
    }
}

#[test]
fn times_that_are_infinite_are_told_with_their_column() {
    let server = TestServer::with_namespace("test_infinite");
    let operation = "columns = [{ name = 't', type = 'timestamp' }]\n\
                     statement.statement = \"SELECT 'infinity'::timestamptz FROM generate_series(1, 100000)\"";
    let session = session_for(&server, operation).unwrap();
    for _ in 0..2 {
        let error = session.execute("q", &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data, "{error}");
        assert!(error.to_string().contains("column t: the time is infinite"), "{error}");
    }
}
