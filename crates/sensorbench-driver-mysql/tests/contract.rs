//! MySQL and MariaDB keep the driver contract, and what is their own. The server is the one that SENSORBENCH_TEST_URL names; each test
//! has a namespace of its own there.

use std::time::{Duration, Instant};

use arrow_array::{RecordBatch, RecordBatchIterator};
use futures::future::{join_all, select};
use futures::pin_mut;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};
use sensorbench_dataset::array_of;
use sensorbench_driver::contract::{Keeps, Subject, check, owner};
use sensorbench_driver::{
    AsyncSession, Database, Driver, DriverError, ErrorKind, Intent, Progress, Request, Rows, Schema, Sessions, TargetUrl, Type,
    Value, ValueRef,
};
use sensorbench_driver_mysql::{Mariadb, Mysql, MysqlWire};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

const MYSQL: MysqlWire = MysqlWire(&Mysql);
const MARIADB: MysqlWire = MysqlWire(&Mariadb);
fn server_url() -> String {
    std::env::var("SENSORBENCH_TEST_URL")
        .expect("SENSORBENCH_TEST_URL names the server to test with, mysql://USER:PASSWORD@HOST:PORT")
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Asks the server past the driver, and past the runtime that the session is in.
fn ask(statements: &[&str]) -> Vec<Row> {
    let answered = || runtime().block_on(ask_all(statements));
    std::thread::scope(|scope| scope.spawn(answered).join().unwrap())
}

/// The answer to the last one.
async fn ask_all(statements: &[&str]) -> Vec<Row> {
    let mut connection = Conn::from_url(server_url()).await.expect("the server of SENSORBENCH_TEST_URL answers");
    let mut rows = Vec::new();
    for statement in statements {
        rows = connection.query(*statement).await.unwrap();
    }
    connection.disconnect().await.unwrap();
    rows
}

fn open(namespace: &str, options: &str) -> Box<dyn Driver> {
    let url = format!("{}?namespace={namespace}{options}", server_url());
    MYSQL.open(&TargetUrl::parse(&url).unwrap()).unwrap()
}

/// A driver in a namespace of its own, with the schema's tables there.
fn created(namespace: &str, options: &str, schema: &Schema) -> Box<dyn Driver> {
    let driver = open(namespace, options);
    MYSQL.check(schema).unwrap();
    driver.guard(&owner()).create(schema, "test", Intent::Replace).unwrap();
    driver
}

fn load(driver: &dyn Driver, table: &str, rows: RecordBatch) -> Result<(), DriverError> {
    let schema = rows.schema();
    driver.load(table, Box::new(RecordBatchIterator::new([Ok(rows)], schema)), &Progress::default())
}

/// Does something with a session of this many connections.
fn with_session(driver: &dyn Driver, schema: &Schema, concurrency: usize, work: impl AsyncFnOnce(&dyn AsyncSession)) {
    let Sessions::Asynchronous(connector) = driver.sessions(&schema.operations).unwrap() else {
        panic!("sessions are asynchronous")
    };
    runtime().block_on(async {
        let session = connector.connect(concurrency).await.unwrap();
        work(session.as_ref()).await;
    });
}

async fn execute(session: &dyn AsyncSession, operation: usize, parameters: &[Value]) -> Result<Vec<Vec<Value>>, DriverError> {
    let request = Request { operation, parameters: parameters.to_vec(), rows: Rows::new() };
    let (request, outcome) = session.execute(Box::new(request)).await;
    outcome.map(|()| {
        request.rows.iter().map(|row| (0..row.columns()).map(|column| row.value(column).to_value()).collect()).collect()
    })
}

/// Gives an operation up after a while.
async fn give_up(session: &dyn AsyncSession, operation: usize, after: Duration) {
    let (operation, pause) = (execute(session, operation, &[]), tokio::time::sleep(after));
    pin_mut!(operation, pause);
    let given_up = select(operation, pause).await;
    assert!(matches!(given_up, futures::future::Either::Right(_)), "the operation was to take longer");
}

/// One table `t` and the operations `echo`, which takes a moment, `forever` and `connection`. They do not sleep, because MariaDB takes
/// two seconds over killing a SLEEP that it does not catch at the right moment.
fn small_schema() -> Schema {
    let integer = |name: &str| json!({"name": name, "type": "integer"});
    serde_json::from_value(json!({
        "create": {"statements": ["CREATE TABLE t (id BIGINT PRIMARY KEY, value DOUBLE)"]},
        "tables": {"t": [{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}]},
        "operations": [
            {"name": "echo", "parameters": [integer("n")], "columns": [integer("n")],
                "statement": {"statement": "SELECT :n + BENCHMARK(10000, 1 + 1)"}},
            {"name": "forever", "columns": [integer("n")], "statement": {"statement": "SELECT BENCHMARK(1000000000000, 1 + 1)"}},
            {"name": "connection", "columns": [integer("id")], "statement": {"statement": "SELECT CONNECTION_ID()"}},
        ],
    }))
    .unwrap()
}

const ECHO: usize = 0;
const FOREVER: usize = 1;
const CONNECTION: usize = 2;

fn id_value(rows: &[(i64, f64)]) -> RecordBatch {
    RecordBatch::try_from_iter([
        ("id", array_of(Type::Integer, rows.iter().map(|(id, _)| ValueRef::Integer(*id)))),
        ("value", array_of(Type::Double, rows.iter().map(|(_, value)| ValueRef::Double(*value)))),
    ])
    .unwrap()
}

#[test]
fn keeps_the_contract() {
    check(&Subject {
        database: &MYSQL,
        url: format!("{}?namespace=sb_contract", server_url()),
        schema: toml::from_str(include_str!("contract.toml")).expect("the schema of the contract"),
        stores_nan: false,
        stores_infinity: false,
        keeps: Keeps::default(),
        put_foreign: &|| {
            ask(&["CREATE DATABASE sb_contract", "CREATE TABLE sb_contract.sensorbench (mark TEXT)"]);
            ask(&["INSERT INTO sb_contract.sensorbench VALUES ('mine'), ('too')"]);
        },
        foreign_rows: &|| {
            let rows = ask(&["SELECT mark FROM sb_contract.sensorbench ORDER BY mark"]);
            rows.iter().map(|row| row.get(0).expect("a text")).collect()
        },
        remove_foreign: &|| drop(ask(&["DROP DATABASE sb_contract"])),
    });
}

#[test]
fn who_is_not_let_in_is_told_without_the_password() {
    let address = server_url().rsplit_once('@').expect("a user in the URL").1.to_owned();
    let refused = |url: &str| {
        let driver = MARIADB.open(&TargetUrl::parse(url).unwrap()).unwrap();
        let error = driver.describe().expect_err("not let in");
        assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
        error.to_string()
    };
    let wrong = refused(&format!("mariadb://sensorbench:secret@{address}"));
    assert!(wrong.starts_with(&format!("{address}: ")) && wrong.contains("check user and password"), "{wrong}");
    let unknown = refused(&format!("{}/sb_nowhere", server_url().replacen("mysql:", "mariadb:", 1)));
    assert!(unknown.contains("leave the database out of the URL"), "{unknown}");
    let closed = refused("mariadb://me:secret@127.0.0.1:1");
    assert!(closed.starts_with("127.0.0.1:1: ") && closed.contains("is the server running"), "{closed}");
    let nowhere = refused("mariadb://me:secret@nowhere.invalid");
    assert!(nowhere.starts_with("nowhere.invalid:3306: "), "{nowhere}");
}

#[test]
fn a_database_of_somebody_else_is_never_touched() {
    ask(&["DROP DATABASE IF EXISTS sb_foreign", "CREATE DATABASE sb_foreign", "CREATE TABLE sb_foreign.sensorbench (mark TEXT)"]);
    let driver = open("sb_foreign", "");
    for intent in [Intent::Create, Intent::Replace] {
        let error = driver.guard(&owner()).create(&small_schema(), "test", intent).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Namespace, "{error}");
        assert!(error.to_string().contains("namespace="), "{error}");
    }
    assert_eq!(driver.guard(&owner()).fingerprint().unwrap(), None);
    driver.guard(&owner()).remove().unwrap();
    ask(&["INSERT INTO sb_foreign.sensorbench VALUES ('still here')", "DROP DATABASE sb_foreign"]);
}

#[test]
fn what_was_never_created_cannot_be_attached() {
    let driver = open("sb_nothing", "");
    let error = driver.guard(&owner()).attach(&small_schema(), Intent::Attach).expect_err("there is nothing");
    assert!(
        error.kind() == ErrorKind::Namespace
            && error.to_string().contains("database sb_nothing: sensorbench created nothing there"),
        "{error}"
    );
    driver.guard(&owner()).remove().unwrap();
}

#[test]
fn the_server_describes_itself() {
    let schema: Schema = serde_json::from_value(json!({
        "create": {"statements": [
            "CREATE TABLE t (id BIGINT PRIMARY KEY, value DOUBLE, INDEX by_value (value))",
            "CREATE TABLE parted (id BIGINT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 3",
            "CREATE TABLE other (id BIGINT PRIMARY KEY) ENGINE = MyISAM",
        ]},
        "settle": {"statements": ["ANALYZE TABLE t, parted, other"]},
        "tables": {"t": [{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}]},
    }))
    .unwrap();
    let driver = created("sb_describe", "", &schema);
    load(driver.as_ref(), "t", id_value(&[(1, 0.5)])).unwrap();
    let description = driver.describe().unwrap();
    assert_eq!(description.database == "MariaDB", description.version.contains("MariaDB"));
    assert!(description.settings.contains_key("innodb_flush_log_at_trx_commit"), "{description:?}");
    assert!(driver.status().unwrap()["Questions"] > 0.0);
    driver.settle().unwrap();
    let size = driver.size().unwrap();
    assert_eq!(size.parts.keys().collect::<Vec<_>>(), ["other", "parted", "t", "t.by_value"]);
    assert!(size.parts.values().sum::<u64>() <= size.total_bytes, "{size:?}");
    driver.guard(&owner()).remove().unwrap();
}

#[test]
fn a_user_who_may_see_nothing_but_the_namespace_is_enough() {
    let remove = ["DROP USER IF EXISTS sb_small@'%'", "DROP DATABASE IF EXISTS sb_small"];
    ask(&remove);
    ask(&["CREATE USER sb_small@'%' IDENTIFIED BY 'small'", "GRANT ALL ON sb_small.* TO sb_small@'%'"]);
    let address = server_url().rsplit_once('@').expect("a user in the URL").1.to_owned();
    let url = format!("mariadb://sb_small:small@{address}?namespace=sb_small");
    let driver = MARIADB.open(&TargetUrl::parse(&url).unwrap()).unwrap();
    driver.guard(&owner()).create(&small_schema(), "test", Intent::Create).unwrap();
    load(driver.as_ref(), "t", id_value(&[(1, 0.5)])).unwrap();
    driver.settle().unwrap();
    let size = driver.size().unwrap();
    assert!(size.total_bytes > 0 && size.parts["t"] > 0, "{size:?}");
    assert!(!driver.status().unwrap().is_empty());
    with_session(driver.as_ref(), &small_schema(), 1, async |session| {
        give_up(session, FOREVER, Duration::from_millis(20)).await;
        answers_again(session).await;
    });
    driver.guard(&owner()).remove().unwrap();
    ask(&remove);
}

/// Every server of MariaDB since 11.4 and of MySQL since 5.7 makes itself a certificate that nobody vouches for.
#[test]
fn connections_are_encrypted_as_the_url_says() {
    let cipher = json!({"name": "cipher", "columns": [{"name": "name", "type": "text"}, {"name": "cipher", "type": "text"}],
        "statement": {"statement": "SHOW STATUS LIKE 'Ssl_cipher'"}});
    let schema: Schema = serde_json::from_value(json!({"operations": [cipher]})).unwrap();
    let driver = created("sb_tls", "&tls=unverified", &schema);
    with_session(driver.as_ref(), &schema, 1, async |session| {
        let rows = execute(session, 0, &[]).await.unwrap();
        assert!(matches!(&rows[0][1], Value::Text(cipher) if !cipher.is_empty()), "{rows:?}");
    });
    let error = open("sb_tls", "&tls=on").describe().expect_err("nobody vouches for the server");
    assert!(error.kind() == ErrorKind::Connection && error.to_string().contains("check the certificates"), "{error}");
    driver.guard(&owner()).remove().unwrap();
}

#[test]
fn schemas_that_the_server_refuses_are_told_with_their_place() {
    let refused = |schema: serde_json::Value| {
        let schema: Schema = serde_json::from_value(schema).unwrap();
        let driver = open("sb_schema", "");
        let outcome =
            driver.guard(&owner()).create(&schema, "test", Intent::Replace).and_then(|()| driver.settle()).and_then(|()| {
                let Sessions::Asynchronous(connector) = driver.sessions(&schema.operations)? else { panic!() };
                runtime().block_on(connector.connect(1)).map(drop)
            });
        outcome.expect_err("refused").to_string()
    };
    let create = refused(json!({"create": {"statements": ["DO 1", "CREATE TABEL x"]}}));
    assert!(create.starts_with("create.statements[1]: ERROR 1064"), "{create}");
    let settle = refused(json!({"settle": {"statements": ["ANALYZE TABLE missing"]}}));
    assert!(settle.starts_with("settle.statements[0]: Table") && settle.contains("missing"), "{settle}");
    let fill = refused(json!({"tables": {"missing": [{"name": "id", "type": "integer"}]}}));
    assert!(fill.starts_with("fill.missing: ERROR 1146"), "{fill}");
    let float = refused(json!({
        "create": {"statements": ["CREATE TABLE t (value FLOAT)"]}, "tables": {"t": [{"name": "value", "type": "double"}]}}));
    assert!(float.starts_with("fill.t: column value: a double is stored exactly in a DOUBLE alone"), "{float}");
    let operation = |statement: &str| json!({"operations": [{"name": "q", "statement": {"statement": statement}}]});
    let misspelt = refused(operation("SELEKT 1"));
    assert!(misspelt.starts_with("operation.q.statement: ERROR 1064"), "{misspelt}");
    let columns = refused(operation("SELECT 1"));
    assert!(columns.starts_with("operation.q.statement: the statement returns 1 columns; the operation has 0"), "{columns}");
    open("sb_schema", "").guard(&owner()).remove().unwrap();
}

#[test]
fn rows_that_the_table_refuses_are_told_with_their_cause() {
    let schema: Schema = serde_json::from_value(json!({
        "create": {"statements": [
            "CREATE TABLE t (id BIGINT PRIMARY KEY, value DOUBLE)",
            "CREATE TABLE narrow (number TINYINT, name VARCHAR(3) NOT NULL, time DATETIME(3))",
        ]},
        "tables": {
            "t": [{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}],
            "narrow": [
                {"name": "number", "type": "integer"}, {"name": "name", "type": "text"}, {"name": "time", "type": "timestamp"}],
        },
    }))
    .unwrap();
    let driver = created("sb_refused", "", &schema);
    let refused = |table: &str, rows: RecordBatch| {
        let error = load(driver.as_ref(), table, rows).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Data, "{error}");
        assert!(error.to_string().starts_with(&format!("table {table}")), "{error}");
        error.to_string()
    };
    let twice = refused("t", id_value(&[(1, 1.0), (2, 2.0), (1, 3.0)]));
    assert!(twice.contains("Duplicate entry '1'"), "{twice}");
    load(driver.as_ref(), "t", id_value(&[(7, 7.0)])).unwrap();
    let again = refused("t", id_value(&[(8, 8.0), (7, 7.5), (9, 9.0)]));
    assert!(again.contains("Duplicate entry '7'"), "{again}");
    let infinity = refused("t", id_value(&[(3, f64::INFINITY)]));
    assert!(infinity.contains("column value") && infinity.contains("infinity"), "{infinity}");
    let narrow = |number: i64, name: Option<&str>, time: i64| {
        RecordBatch::try_from_iter_with_nullable([
            ("number", array_of(Type::Integer, [ValueRef::Integer(number)].into_iter()), true),
            ("name", array_of(Type::Text, [name.map_or(ValueRef::Null, ValueRef::Text)].into_iter()), true),
            ("time", array_of(Type::Timestamp, [ValueRef::Timestamp(time)].into_iter()), true),
        ])
        .unwrap()
    };
    load(driver.as_ref(), "narrow", narrow(127, Some("abc"), 1_000)).unwrap();
    let range = refused("narrow", narrow(128, Some("abc"), 0));
    assert!(range.contains("Out of range value for column 'number'"), "{range}");
    let long = refused("narrow", narrow(1, Some("abcd"), 0));
    assert!(long.contains("Data truncated for column 'name'") || long.contains("Data too long"), "{long}");
    let null = refused("narrow", narrow(1, None, 0));
    assert!(null.contains("'name'"), "{null}");
    let rounded = refused("narrow", narrow(1, Some("abc"), 1_500));
    assert!(rounded.contains("column time") && rounded.contains("DATETIME(6)"), "{rounded}");
    let late = refused("narrow", narrow(1, Some("abc"), i64::MAX / 1_000 * 1_000));
    assert!(late.contains("years 1 to 9999"), "{late}");
    driver.guard(&owner()).remove().unwrap();
}

const EXACT: [(&str, Type, &str); 9] = [
    ("id", Type::Integer, "BIGINT PRIMARY KEY"),
    ("moment", Type::Timestamp, "DATETIME(6)"),
    ("stamp", Type::Timestamp, "TIMESTAMP(6) NULL"),
    ("micros", Type::Timestamp, "BIGINT"),
    ("number", Type::Integer, "BIGINT UNSIGNED"),
    ("flag", Type::Boolean, "TINYINT(1)"),
    ("value", Type::Double, "DOUBLE"),
    ("name", Type::Text, "VARCHAR(100) CHARACTER SET latin1"),
    ("data", Type::Bytes, "VARBINARY(300)"),
];

/// Rows with values at the edges of what the columns hold.
fn exact_rows() -> Vec<Vec<Value>> {
    let row = |id: i64, moment: i64, stamp: i64, number: i64, value: f64, name: &str, data: &[u8]| {
        let (moment, stamp, micros) =
            (Value::Timestamp(moment), Value::Timestamp(stamp), Value::Timestamp(moment.wrapping_mul(3)));
        let (number, flag, value) = (Value::Integer(number), Value::Boolean(id % 2 == 0), Value::Double(value));
        vec![Value::Integer(id), moment, stamp, micros, number, flag, value, Value::Text(name.into()), Value::Bytes(data.into())]
    };
    let every_byte: Vec<u8> = (0..=255).collect();
    vec![
        row(1, -62_135_596_800_000_000, 1_000_000, 0, -0.0, "", b""),
        row(2, -1, 1_234_567_890_123_456, i64::MAX, 5e-324, "été \\ \t \n \r 'x' \"y\" \\N", &every_byte),
        row(3, 253_402_300_799_999_999, 2_147_483_647_999_999, 1, f64::MAX, "\\N", b"\\N"),
        row(4, 1_700_000_000_000_001, 1_700_000_000_999_999, 2, 0.1 + 0.2, "N\u{a0}", b"NULL\0\t\n\\"),
        row(5, 0, 1_000_001, 3, 2.225_073_858_507_201e-308, " spaces ", b" \x1a "),
        [vec![Value::Integer(6)], vec![Value::Null; 8]].concat(),
    ]
}

#[test]
fn values_come_back_exactly_whether_loaded_or_inserted() {
    let names: Vec<_> = EXACT.iter().map(|(name, ..)| *name).collect();
    let typed: Vec<_> = EXACT.iter().map(|(name, value_type, _)| json!({"name": name, "type": value_type})).collect();
    let declared: Vec<_> = EXACT.iter().map(|(name, _, declaration)| format!("{name} {declaration}")).collect();
    let places: Vec<_> =
        names
            .iter()
            // A time goes into a BIGINT through a function here, because the other two columns take it as it is.
            .map(|name| {
                if *name == "micros" { format!("TIMESTAMPDIFF(MICROSECOND, '1970-01-01', :{name})") } else { format!(":{name}") }
            })
            .collect();
    let create = |table: &str| format!("CREATE TABLE {table} ({})", declared.join(", "));
    let read = |table: &str| {
        json!({"name": table, "columns": typed,
            "statement": {"statement": format!("SELECT {} FROM {table} ORDER BY id", names.join(", "))}})
    };
    let schema: Schema = serde_json::from_value(json!({
        "create": {"statements": [create("loaded"), create("inserted")]},
        "tables": {"loaded": typed},
        "operations": [
            read("loaded"),
            read("inserted"),
            {"name": "insert", "parameters": typed, "statement": {
                "statement": format!("INSERT INTO inserted ({}) VALUES ({})", names.join(", "), places.join(", "))}},
        ],
    }))
    .unwrap();
    let driver = created("sb_exact", "", &schema);
    let rows = exact_rows();
    let columns = EXACT
        .iter()
        .enumerate()
        .map(|(number, (name, value_type, _))| (*name, array_of(*value_type, rows.iter().map(|row| row[number].as_ref())), true));
    load(driver.as_ref(), "loaded", RecordBatch::try_from_iter_with_nullable(columns).unwrap()).unwrap();
    with_session(driver.as_ref(), &schema, 1, async |session| {
        assert_same(&execute(session, 0, &[]).await.unwrap(), &rows);
        // Beyond its range, TIMESTAMPDIFF has no date to start from.
        let insertable: Vec<_> = rows
            .iter()
            .cloned()
            .map(|mut row| {
                if !matches!(row[1], Value::Null) {
                    row[3] = Value::Timestamp(-62_000_000_000_000_001);
                }
                row
            })
            .collect();
        for row in &insertable {
            execute(session, 2, row).await.unwrap();
        }
        assert_same(&execute(session, 1, &[]).await.unwrap(), &insertable);
    });
    driver.guard(&owner()).remove().unwrap();
}

/// Equal bit by bit: 0.0 is not -0.0.
fn assert_same(found: &[Vec<Value>], expected: &[Vec<Value>]) {
    assert_eq!(format!("{found:?}"), format!("{expected:?}"));
}

#[test]
fn answers_of_another_type_are_told_and_the_session_goes_on() {
    let question = |name: &str, column_type: &str, computed: bool, statement: &str| json!({"name": name, "columns": [{"name": "c", "type": column_type, "computed": computed}], "statement": {"statement": statement}});
    let schema: Schema = serde_json::from_value(json!({"operations": [
        question("decimal", "double", false, "SELECT 1.5"),
        question("average", "double", true, "SELECT avg(n) FROM (SELECT 1 AS n UNION ALL SELECT 2) AS x"),
        question("sum", "integer", false, "SELECT sum(n) FROM (SELECT 1 AS n UNION ALL SELECT 2) AS x"),
        question("cast", "integer", false, "SELECT CAST(sum(n) AS SIGNED) FROM (SELECT 1 AS n UNION ALL SELECT 2) AS x"),
    ]}))
    .unwrap();
    let driver = created("sb_types", "", &schema);
    with_session(driver.as_ref(), &schema, 1, async |session| {
        let error = execute(session, 0, &[]).await.expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Data);
        assert!(error.to_string().starts_with("column c should be a double, but the server returns a DECIMAL"), "{error}");
        assert_eq!(execute(session, 1, &[]).await.unwrap(), [[Value::Double(1.5)]]);
        let error = execute(session, 2, &[]).await.expect_err("refused");
        assert!(error.to_string().contains("CAST(… AS SIGNED)"), "{error}");
        assert_eq!(execute(session, 3, &[]).await.unwrap(), [[Value::Integer(3)]]);
    });
    driver.guard(&owner()).remove().unwrap();
}

#[test]
fn operations_in_flight_share_the_connections_and_keep_their_answers_apart() {
    let driver = created("sb_in_flight", "&connections=4", &small_schema());
    with_session(driver.as_ref(), &small_schema(), 64, async |session| {
        for round in 0..5 {
            let operations = (0..64).map(|n| async move {
                let n = Value::Integer(round * 1_000 + n);
                assert_eq!(execute(session, ECHO, std::slice::from_ref(&n)).await.unwrap(), [[n]]);
            });
            join_all(operations).await;
        }
        let connections = join_all((0..64).map(|_| execute(session, CONNECTION, &[]))).await;
        let mut ids: Vec<_> = connections.into_iter().map(|rows| format!("{:?}", rows.unwrap())).collect();
        ids.sort();
        ids.dedup();
        assert!((1..=4).contains(&ids.len()), "{ids:?}");
    });
    driver.guard(&owner()).remove().unwrap();
}

async fn wait_until_nothing_runs(namespace: &str) {
    let start = Instant::now();
    let question = format!("SELECT info FROM information_schema.processlist WHERE db = '{namespace}' AND info IS NOT NULL");
    while !ask(&[&question]).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(5), "statements keep running at the server");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn cancelled_operations_end_at_the_server_and_leave_the_session_usable() {
    let driver = created("sb_cancel", "", &small_schema());
    with_session(driver.as_ref(), &small_schema(), 16, async |session| {
        for _ in 0..3 {
            join_all((0..16).map(|_| give_up(session, FOREVER, Duration::from_millis(20)))).await;
            let start = Instant::now();
            let answers = (0..64).map(|n| async move {
                let n = Value::Integer(n);
                assert_eq!(execute(session, ECHO, std::slice::from_ref(&n)).await.unwrap(), [[n]]);
            });
            join_all(answers).await;
            assert!(start.elapsed() < Duration::from_secs(1), "after {:?}", start.elapsed());
        }
        wait_until_nothing_runs("sb_cancel").await;
    });
    driver.guard(&owner()).remove().unwrap();
}

#[test]
fn a_connection_is_used_again_after_its_operation_was_cancelled() {
    let driver = created("sb_clear", "", &small_schema());
    with_session(driver.as_ref(), &small_schema(), 1, async |session| {
        let connection = execute(session, CONNECTION, &[]).await.unwrap();
        let mut is_same = false;
        // A busy server now and then takes longer than the driver waits.
        for _ in 0..20 {
            give_up(session, FOREVER, Duration::from_millis(20)).await;
            is_same |= execute(session, CONNECTION, &[]).await.unwrap() == connection;
        }
        assert!(is_same, "every cancelled operation cost a connection");
    });
    driver.guard(&owner()).remove().unwrap();
}

#[test]
fn an_operation_that_is_never_polled_is_never_executed() {
    let mut schema = small_schema();
    let insert = json!({"name": "insert", "statement": {"statement": "INSERT INTO t VALUES (1, 1)"}});
    schema.operations.push(serde_json::from_value(insert).unwrap());
    let driver = created("sb_unpolled", "", &schema);
    with_session(driver.as_ref(), &schema, 1, async |session| {
        drop(session.execute(Box::new(Request { operation: 3, ..Request::default() })));
        answers_again(session).await;
    });
    assert_eq!(driver.count("t").unwrap(), 0);
    driver.guard(&owner()).remove().unwrap();
}

#[test]
fn operations_given_up_before_they_begin_or_after_their_answer_came_do_no_harm() {
    let driver = created("sb_race", "&connections=2", &small_schema());
    with_session(driver.as_ref(), &small_schema(), 8, async |session| {
        for micros in (0..4_000).step_by(40) {
            let operations = (0..8).map(|n| async move {
                let (pause, parameters) = (tokio::time::sleep(Duration::from_micros(micros)), [Value::Integer(n)]);
                let operation = execute(session, ECHO, &parameters);
                pin_mut!(operation, pause);
                if let futures::future::Either::Left((outcome, _)) = select(operation, pause).await {
                    assert_eq!(outcome.unwrap(), [[Value::Integer(n)]]);
                }
            });
            join_all(operations).await;
            assert_eq!(execute(session, ECHO, &[Value::Integer(-1)]).await.unwrap(), [[Value::Integer(-1)]]);
        }
    });
    driver.guard(&owner()).remove().unwrap();
}

#[test]
fn what_is_cancelled_at_the_very_end_ends_at_the_server_too() {
    let driver = created("sb_end", "", &small_schema());
    with_session(driver.as_ref(), &small_schema(), 4, async |session| {
        join_all((0..4).map(|_| give_up(session, FOREVER, Duration::from_millis(50)))).await;
    });
    runtime().block_on(wait_until_nothing_runs("sb_end"));
    driver.guard(&owner()).remove().unwrap();
}

#[test]
fn killed_connections_are_replaced() {
    let driver = created("sb_killed", "", &small_schema());
    with_session(driver.as_ref(), &small_schema(), 4, async |session| {
        let in_flight = async { join_all((0..4).map(|_| execute(session, FOREVER, &[]))).await };
        let (lost, ()) = futures::future::join(in_flight, async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            kill_connections("sb_killed").await;
        })
        .await;
        for outcome in lost {
            let error = outcome.expect_err("the connection was killed");
            assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
            assert!(error.to_string().contains(':') && !error.to_string().contains("sbpass"), "{error}");
        }
        answers_again(session).await;
        // Those that were idle are found out by the next operation.
        kill_connections("sb_killed").await;
        join_all((0..4).map(|_| execute(session, CONNECTION, &[]))).await;
        answers_again(session).await;
    });
    driver.guard(&owner()).remove().unwrap();
}

async fn kill_connections(namespace: &str) {
    let mut connection = Conn::from_url(server_url()).await.unwrap();
    let question = format!("SELECT id FROM information_schema.processlist WHERE db = '{namespace}'");
    let ids: Vec<u64> = connection.query(question).await.unwrap();
    for id in ids {
        // One that has ended meanwhile cannot be killed.
        let _ = connection.query_drop(format!("KILL {id}")).await;
    }
    connection.disconnect().await.unwrap();
}

async fn answers_again(session: &dyn AsyncSession) {
    for n in 0..16 {
        assert_eq!(execute(session, ECHO, &[Value::Integer(n)]).await.unwrap(), [[Value::Integer(n)]]);
    }
}

/// Stands between driver and server, and can be shut like a server that restarts.
struct Door {
    port: u16,
    shut: oneshot::Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

impl Door {
    fn open(port: u16) -> Self {
        let listener = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (shut, is_shut) = oneshot::channel();
        let thread = std::thread::spawn(|| {
            runtime().block_on(async {
                tokio::select! {
                    () = let_through(tokio::net::TcpListener::from_std(listener).unwrap()) => {}
                    _ = is_shut => {}
                }
            })
        });
        Self { port, shut, thread }
    }

    fn shut(self) {
        self.shut.send(()).unwrap();
        self.thread.join().unwrap();
    }
}

async fn let_through(listener: tokio::net::TcpListener) {
    let server = server_url().rsplit_once('@').expect("a user in the URL").1.to_owned();
    loop {
        let (mut outside, _) = listener.accept().await.unwrap();
        let mut inside = tokio::net::TcpStream::connect(&server).await.unwrap();
        tokio::spawn(async move { tokio::io::copy_bidirectional(&mut outside, &mut inside).await });
    }
}

#[test]
fn a_server_that_restarts_is_survived() {
    created("sb_restart", "", &small_schema());
    let door = Door::open(0);
    let port = door.port;
    let user = server_url().rsplit_once('@').expect("a user in the URL").0.to_owned();
    let url = format!("{user}@127.0.0.1:{port}?namespace=sb_restart");
    let driver = MYSQL.open(&TargetUrl::parse(&url).unwrap()).unwrap();
    with_session(driver.as_ref(), &small_schema(), 4, async |session| {
        answers_again(session).await;
        door.shut();
        let start = Instant::now();
        for _ in 0..8 {
            let error = execute(session, ECHO, &[Value::Integer(0)]).await.expect_err("the server is away");
            assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
            assert!(error.to_string().contains(&format!("127.0.0.1:{port}")), "{error}");
        }
        assert!(start.elapsed() < Duration::from_secs(5), "reported only after {:?}", start.elapsed());
        let door = Door::open(port);
        while execute(session, ECHO, &[Value::Integer(0)]).await.is_err() {
            assert!(start.elapsed() < Duration::from_secs(10), "the server is not found again");
        }
        answers_again(session).await;
        give_up(session, FOREVER, Duration::from_millis(20)).await;
        answers_again(session).await;
        wait_until_nothing_runs("sb_restart").await;
        door.shut();
    });
    open("sb_restart", "").guard(&owner()).remove().unwrap();
}
