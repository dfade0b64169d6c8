//! ODBC keeps the driver contract, through four drivers, and what is its own. Each driver is reached by the URL in a variable of
//! its own; each test has a namespace of its own there.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use arrow_array::{RecordBatch, RecordBatchIterator};
use sensorbench_dataset::array_of;
use sensorbench_driver::contract::{Keeps, Subject, check, owner};
use sensorbench_driver::{
    BlockingConnector, BlockingSession, Database, Deadline, Driver, DriverError, ErrorKind, Intent, Progress, Request, Rows,
    Schema, Sessions, TargetUrl, Type, Value, ValueRef,
};
use sensorbench_driver_odbc::OdbcDatabase;
use serde_json::{Value as Json, json};

/// The drivers that the tests go through, and how text goes to each.
const POSTGRESQL: (&str, &str) = ("POSTGRESQL", "text=utf16");
const POSTGRESQL_ANSI: (&str, &str) = ("POSTGRESQL_ANSI", "text=utf8");
const MARIADB: (&str, &str) = ("MARIADB", "text=utf16");
const SQLITE: (&str, &str) = ("SQLITE", "text=utf8");

/// The URL in `SENSORBENCH_TEST_ODBC_<DRIVER>`, with more options.
fn url(driver: &str, options: &str) -> String {
    let variable = format!("SENSORBENCH_TEST_ODBC_{driver}");
    let url =
        std::env::var(&variable).unwrap_or_else(|_| panic!("{variable} names a target, odbc:?driver=/path/of/a/driver.so&…"));
    format!("{url}&{options}")
}

fn open((driver, text): (&str, &str), options: &str) -> Box<dyn Driver> {
    OdbcDatabase.open(&TargetUrl::parse(&url(driver, &format!("{text}&{options}"))).unwrap()).unwrap()
}

fn schema_of(schema: Json) -> Schema {
    let schema: Schema = serde_json::from_value(schema).unwrap();
    OdbcDatabase.check(&schema).unwrap();
    schema
}

/// Executes statements past the tables of a namespace, one after the other.
fn past(driver: (&str, &str), namespace: &str, statements: &[&str]) {
    let somebody = open(driver, &format!("namespace={namespace}"));
    somebody.guard(&owner()).create(&schema_of(json!({"create": {"statements": statements}})), "", Intent::Replace).unwrap();
    somebody.guard(&owner()).remove().unwrap();
}

/// A driver in a namespace of its own, with the schema's tables there.
fn created(driver: (&str, &str), options: &str, schema: &Schema) -> Box<dyn Driver> {
    let driver = open(driver, options);
    driver.guard(&owner()).create(schema, "test", Intent::Replace).unwrap();
    driver
}

fn load(driver: &dyn Driver, table: &str, rows: RecordBatch) -> Result<(), DriverError> {
    let schema = rows.schema();
    driver.load(table, Box::new(RecordBatchIterator::new([Ok(rows)], schema)), &Progress::default())
}

fn connector(driver: &dyn Driver, schema: &Schema) -> Box<dyn BlockingConnector> {
    match driver.sessions(&schema.operations).unwrap() {
        Sessions::Blocking(connector) => connector,
        Sessions::Asynchronous(_) => panic!("sessions block"),
    }
}

/// A session whose operations may take this long.
fn session(connector: &dyn BlockingConnector, limit: Duration) -> Result<Box<dyn BlockingSession>, DriverError> {
    let deadline = Deadline::new(Instant::now(), Arc::new(AtomicBool::new(false)));
    deadline.set(limit.as_nanos() as u64);
    connector.connect(Arc::new(deadline))
}

const LONG: Duration = Duration::from_secs(600);

fn execute(session: &mut dyn BlockingSession, operation: usize, parameters: &[Value]) -> Result<Vec<Vec<Value>>, DriverError> {
    let mut request = Request { operation, parameters: parameters.to_vec(), rows: Rows::new() };
    session.execute(&mut request)?;
    let row = |row: sensorbench_driver::RowRef| (0..row.columns()).map(|column| row.value(column).to_value()).collect();
    Ok(request.rows.iter().map(row).collect())
}

fn typed(name: &str, value_type: &str) -> Json {
    json!({"name": name, "type": value_type})
}

fn keeps_the_contract(driver: (&str, &str), namespace: &str, schema: &str, stores_nan: bool, stores_infinity: bool) {
    // The table `contract_readings` of a shorter namespace is, to the longer one, somebody else's `readings`.
    let somebody = open(driver, &format!("namespace={namespace}"));
    let foreign = schema_of(json!({
        "create": {"statements": [
            "CREATE TABLE {contract_readings} (x INTEGER)",
            "INSERT INTO {contract_readings} (x) VALUES (1)",
            "INSERT INTO {contract_readings} (x) VALUES (2)",
        ]},
        "operations": [{
            "name": "rows",
            "columns": [typed("x", "integer")],
            "statement": {"statement": "SELECT x FROM {contract_readings} ORDER BY x"},
        }],
    }));
    check(&Subject {
        database: &OdbcDatabase,
        url: url(driver.0, &format!("{}&namespace={namespace}_contract", driver.1)),
        schema: toml::from_str(schema).expect("the schema of the contract"),
        stores_nan,
        stores_infinity,
        keeps: Keeps::default(),
        put_foreign: &|| somebody.guard(&owner()).create(&foreign, "", Intent::Replace).unwrap(),
        foreign_rows: &|| {
            let connector = connector(somebody.as_ref(), &foreign);
            let rows = execute(session(connector.as_ref(), LONG).unwrap().as_mut(), 0, &[]).unwrap();
            rows.iter().map(|row| format!("{row:?}")).collect()
        },
        remove_foreign: &|| somebody.guard(&owner()).remove().unwrap(),
    });
}

#[test]
fn postgresql_keeps_the_contract() {
    keeps_the_contract(POSTGRESQL, "sb", include_str!("contract/postgresql.toml"), true, true);
}

#[test]
fn postgresql_keeps_the_contract_by_a_driver_that_is_not_for_unicode() {
    keeps_the_contract(POSTGRESQL_ANSI, "sb_ansi", include_str!("contract/postgresql.toml"), true, true);
}

#[test]
fn mariadb_keeps_the_contract() {
    keeps_the_contract(MARIADB, "sb", include_str!("contract/mariadb.toml"), false, false);
}

#[test]
fn sqlite_keeps_the_contract() {
    keeps_the_contract(SQLITE, "sb", include_str!("contract/sqlite.toml"), false, true);
}

/// The source's driver is named beside it only to be loaded with the libraries that it needs.
#[test]
fn a_data_source_is_reached_by_its_name() {
    let description = open(("SOURCE", "text=utf16"), "").describe().unwrap();
    assert_eq!(description.database, "PostgreSQL");
}

#[test]
fn who_is_not_let_in_is_told_without_the_password() {
    for (driver, state) in [("POSTGRESQL", "password authentication failed"), ("MARIADB", "Access denied")] {
        let url = url(driver, "uid=sensorbench&pwd=sec}r;et");
        let refused = OdbcDatabase.open(&TargetUrl::parse(&url).unwrap()).unwrap().describe().expect_err("not let in");
        assert_eq!(refused.kind(), ErrorKind::Connection);
        let refused = refused.to_string();
        assert!(refused.contains(state) && refused.contains("check"), "{refused}");
        assert!(!refused.contains("sec}r;et") && !refused.contains("sec}}r"), "{refused}");
    }
    let unreachable = url("POSTGRESQL", "").replace("port=5432", "port=1");
    let error = OdbcDatabase.open(&TargetUrl::parse(&unreachable).unwrap()).unwrap().describe().expect_err("nobody is there");
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    let wrong = |url: &str| OdbcDatabase.open(&TargetUrl::parse(url).unwrap()).unwrap().describe().unwrap_err().to_string();
    let no_source = wrong("odbc:nowhere?pwd=secret");
    assert!(
        no_source.contains("ODBC, nowhere: ") && no_source.contains("odbc.ini") && !no_source.contains("secret"),
        "{no_source}"
    );
    let no_driver = wrong("odbc:?driver=/nowhere/driver.so&pwd=secret");
    assert!(no_driver.contains("/nowhere/driver.so: cannot open") && !no_driver.contains("secret"), "{no_driver}");
}

#[test]
fn passwords_may_have_any_characters() {
    let password = "p;w}d{=@é' x";
    past(
        POSTGRESQL,
        "sb_password",
        &["DROP ROLE IF EXISTS sb_odbc", &format!("CREATE ROLE sb_odbc LOGIN PASSWORD '{}'", password.replace('\'', "''"))],
    );
    past(
        MARIADB,
        "sb_password",
        &[&format!("CREATE OR REPLACE USER sb_odbc@'%' IDENTIFIED BY '{}'", password.replace('\'', "''"))],
    );
    let folder = std::env::temp_dir().join(format!("sb-odbc-{}", std::process::id()));
    std::fs::write(&folder, format!("user = 'sb_odbc'\npassword = \"{password}\"")).unwrap();
    for driver in [POSTGRESQL, MARIADB] {
        let url = url(driver.0, "");
        let (start, rest) = url.split_once("credentials=").expect("the URL names a file of credentials");
        let rest = rest.split_once('&').map_or("", |(_, rest)| rest);
        let url = format!("{start}credentials={}&{rest}", folder.display()).replace("database=mysql&", "");
        let driver = OdbcDatabase.open(&TargetUrl::parse(&url).unwrap()).unwrap();
        assert!(!driver.describe().expect("let in").version.is_empty());
    }
    std::fs::remove_file(&folder).unwrap();
    past(POSTGRESQL, "sb_password", &["DROP ROLE sb_odbc"]);
    past(MARIADB, "sb_password", &["DROP USER sb_odbc@'%'"]);
}

#[test]
fn tables_of_somebody_else_are_never_touched() {
    for driver in [POSTGRESQL, MARIADB, SQLITE] {
        let schema = schema_of(json!({"create": {"statements": ["CREATE TABLE {t} (id INTEGER)"]}}));
        let ours = open(driver, "namespace=sb_other_ours");
        ours.guard(&owner()).remove().unwrap();
        for table in ["{ours_mark}", "{ours_t}"] {
            let somebody = open(driver, "namespace=sb_other");
            let create = json!({"create": {"statements": [format!("CREATE TABLE {table} (mark INTEGER)")]}});
            somebody.guard(&owner()).create(&schema_of(create), "", Intent::Replace).unwrap();
            for intent in [Intent::Create, Intent::Replace] {
                let error = ours.guard(&owner()).create(&schema, "test", intent).expect_err("refused");
                assert_eq!(error.kind(), ErrorKind::Namespace, "{error}");
                assert!(error.to_string().contains("namespace="), "{error}");
            }
            assert_eq!(ours.guard(&owner()).fingerprint().unwrap(), None);
            ours.guard(&owner()).remove().unwrap();
            // It is still there: it can be dropped.
            past(driver, "sb_other_past", &[&format!("DROP TABLE {}", table.replace('{', "sb_other_").replace('}', ""))]);
            somebody.guard(&owner()).remove().unwrap();
        }
        // One that comes after ours is not dropped with them.
        ours.guard(&owner()).create(&schema, "test", Intent::Create).unwrap();
        let other = schema_of(
            json!({"create": {"statements": ["CREATE TABLE {t} (id INTEGER)", "CREATE TABLE {ours_new} (id INTEGER)"]}}),
        );
        let somebody = created(driver, "namespace=sb_other", &other);
        ours.guard(&owner()).create(&schema, "test", Intent::Replace).unwrap();
        ours.guard(&owner()).remove().unwrap();
        past(driver, "sb_other_past", &["DROP TABLE sb_other_ours_new"]);
        somebody.guard(&owner()).remove().unwrap();
    }
}

#[test]
fn a_table_that_cannot_be_created_leaves_nothing_in_the_way() {
    for driver in [POSTGRESQL, MARIADB, SQLITE] {
        let target = open(driver, "namespace=sb_half");
        let schema = schema_of(json!({"create": {"statements": ["CREATE TABLE {a} (id INTEGER)", "CREATE TABEL {b}"]}}));
        let error = target.guard(&owner()).create(&schema, "test", Intent::Replace).expect_err("misspelt").to_string();
        assert!(error.starts_with("create.statements[1]: "), "{error}");
        let good =
            schema_of(json!({"create": {"statements": ["CREATE TABLE {a} (id INTEGER)", "CREATE TABLE {b} (id INTEGER)"]}}));
        target.guard(&owner()).create(&good, "test", Intent::Replace).unwrap();
        target.guard(&owner()).remove().unwrap();
    }
}

#[test]
fn what_was_never_created_cannot_be_attached() {
    for driver in [POSTGRESQL, MARIADB, SQLITE] {
        let target = open(driver, "namespace=sb_nothing");
        for error in [
            target.guard(&owner()).attach(&Schema::default(), Intent::Attach).unwrap_err(),
            target.guard(&owner()).set_fingerprint("x").unwrap_err(),
        ] {
            assert!(error.kind() == ErrorKind::Namespace && error.to_string().contains("load it first"), "{error}");
        }
        target.guard(&owner()).remove().unwrap();
    }
}

#[test]
fn markers_may_be_long() {
    for driver in [POSTGRESQL, POSTGRESQL_ANSI, MARIADB, SQLITE] {
        let target = created(driver, &format!("namespace=sb_mark_{}", driver.0.to_lowercase()), &Schema::default());
        for mark in ["", &"{\"été\": '🌡'}\n".repeat(300)] {
            target.guard(&owner()).set_fingerprint(mark).unwrap();
            assert_eq!(target.guard(&owner()).fingerprint().unwrap().as_deref(), Some(mark));
        }
        target.guard(&owner()).remove().unwrap();
    }
}

#[test]
fn who_takes_part_is_told() {
    for (driver, database, library, setting) in [
        (POSTGRESQL, "PostgreSQL", "psqlodbcw.so", "synchronous_commit"),
        (MARIADB, "MariaDB", "libmaodbc.so", "innodb_flush_log_at_trx_commit"),
        (SQLITE, "SQLite", "sqlite3odbc.so", "synchronous"),
    ] {
        let description = open(driver, "rows=7").describe().unwrap();
        assert_eq!(description.database, database);
        assert_eq!((description.settings["driver"].as_str(), description.settings["rows"].as_str()), (library, "7"));
        assert!(description.version.contains('.') && description.settings["driver version"].contains('.'), "{description:?}");
        assert!(description.settings[setting].len() > 1 || driver == MARIADB || driver == SQLITE, "{description:?}");
    }
}

/// One table `t` and the operations `echo`, `forever` and `connection`.
fn small_schema(driver: (&str, &str)) -> Schema {
    let (echo, forever, connection) = if driver == POSTGRESQL {
        let forever = "SELECT count(*) FROM generate_series(1, 1000000000) a, generate_series(1, 1000000000) b";
        ("SELECT CAST(:n AS BIGINT)", forever, "SELECT pg_backend_pid()")
    } else {
        let forever = "SELECT count(*) FROM seq_1_to_1000000000 a, seq_1_to_1000000000 b WHERE a.seq > b.seq";
        ("SELECT CAST(:n AS SIGNED)", forever, "SELECT CONNECTION_ID()")
    };
    let columns = json!([typed("n", "integer")]);
    let operation =
        |name: &str, statement: &str| json!({"name": name, "columns": columns, "statement": {"statement": statement}});
    // It is ended without an error, and answers.
    let unheard = if driver == POSTGRESQL { forever } else { "SELECT BENCHMARK(1000000000000, 1 + 1)" };
    let mut echo = operation("echo", echo);
    echo["parameters"] = json!([typed("n", "integer")]);
    schema_of(json!({
        "create": {"statements": ["CREATE TABLE {t} (id INTEGER)"]},
        "operations": [
            echo, operation("forever", forever), operation("connection", connection), operation("unheard", unheard),
        ],
    }))
}

const ECHO: usize = 0;
const FOREVER: usize = 1;
const CONNECTION: usize = 2;
const UNHEARD: usize = 3;

fn answers(session: &mut dyn BlockingSession) {
    for n in [1, i64::MAX] {
        assert_eq!(execute(session, ECHO, &[Value::Integer(n)]).unwrap(), [[Value::Integer(n)]]);
    }
}

#[test]
fn statements_that_take_too_long_end_and_their_connection_is_used_again() {
    for driver in [POSTGRESQL, MARIADB] {
        let schema = small_schema(driver);
        let target = created(driver, "namespace=sb_cancel", &schema);
        let connector = connector(target.as_ref(), &schema);
        let deadline = Arc::new(Deadline::new(Instant::now(), Arc::new(AtomicBool::new(false))));
        let origin = Instant::now();
        let mut session = connector.connect(deadline.clone()).unwrap();
        deadline.set(LONG.as_nanos() as u64);
        let mut is_same = false;
        for operation in [FOREVER, UNHEARD, FOREVER, FOREVER, UNHEARD] {
            let first = execute(session.as_mut(), CONNECTION, &[]).unwrap();
            let start = Instant::now();
            deadline.set((origin.elapsed() + Duration::from_millis(50)).as_nanos() as u64);
            let error = execute(session.as_mut(), operation, &[]).expect_err("it takes for ever");
            assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
            assert!(start.elapsed() < Duration::from_secs(2), "after {:?}", start.elapsed());
            deadline.set(LONG.as_nanos() as u64);
            answers(session.as_mut());
            is_same |= execute(session.as_mut(), CONNECTION, &[]).unwrap() == first;
        }
        assert!(is_same, "every statement that was called off cost a connection");
        target.guard(&owner()).remove().unwrap();
    }
}

#[test]
fn killed_connections_are_replaced() {
    for driver in [POSTGRESQL, MARIADB] {
        let schema = small_schema(driver);
        let target = created(driver, "namespace=sb_killed", &schema);
        let connector = connector(target.as_ref(), &schema);
        let mut session = session(connector.as_ref(), LONG).unwrap();
        for operation in [FOREVER, ECHO] {
            let connection = execute(session.as_mut(), CONNECTION, &[]).unwrap();
            let [[Value::Integer(id)]] = [[connection[0][0].clone()]] else { panic!("a connection has a number") };
            let kill = if driver == POSTGRESQL { format!("SELECT pg_terminate_backend({id})") } else { format!("KILL {id}") };
            let killer = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                past(driver, "sb_killer", &[&kill]);
            });
            if operation == ECHO {
                killer.join().unwrap();
                assert_eq!(execute(session.as_mut(), ECHO, &[Value::Integer(1)]).unwrap_err().kind(), ErrorKind::Connection);
            } else {
                let error = execute(session.as_mut(), FOREVER, &[]).expect_err("the connection was killed");
                assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
                killer.join().unwrap();
            }
            answers(session.as_mut());
            assert_ne!(execute(session.as_mut(), CONNECTION, &[]).unwrap(), connection);
        }
        target.guard(&owner()).remove().unwrap();
    }
}

#[test]
fn operations_wait_for_a_connection_where_there_are_few() {
    for driver in [POSTGRESQL, MARIADB] {
        let schema = small_schema(driver);
        let target = created(driver, "namespace=sb_few&connections=2", &schema);
        let connector = connector(target.as_ref(), &schema);
        let ids = std::sync::Mutex::new(std::collections::BTreeSet::new());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut session = session(connector.as_ref(), LONG).unwrap();
                    for n in 0..100 {
                        let n = Value::Integer(n);
                        assert_eq!(execute(session.as_mut(), ECHO, std::slice::from_ref(&n)).unwrap(), [[n]]);
                        ids.lock().unwrap().insert(format!("{:?}", execute(session.as_mut(), CONNECTION, &[]).unwrap()));
                    }
                });
            }
        });
        let ids = ids.into_inner().unwrap();
        assert!((1..=2).contains(&ids.len()), "{ids:?}");
        // Those who wait keep to their limits.
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut session = session(connector.as_ref(), Duration::from_millis(400)).unwrap();
                    assert_eq!(execute(session.as_mut(), FOREVER, &[]).unwrap_err().kind(), ErrorKind::Timeout);
                });
            }
            std::thread::sleep(Duration::from_millis(100));
            let start = Instant::now();
            let mut waiting = session(connector.as_ref(), Duration::from_millis(50)).unwrap();
            let error = execute(waiting.as_mut(), ECHO, &[Value::Integer(1)]).expect_err("both connections are busy");
            assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
            assert!(start.elapsed() < Duration::from_millis(200), "after {:?}", start.elapsed());
        });
        target.guard(&owner()).remove().unwrap();
    }
}

/// Columns of each type, with what they are called in PostgreSQL and MariaDB.
const EXACT: [(&str, &str, &str, &str); 8] = [
    ("id", "integer", "BIGINT", "BIGINT"),
    ("moment", "timestamp", "TIMESTAMP(6)", "DATETIME(6)"),
    ("micros", "timestamp", "BIGINT", "BIGINT"),
    ("number", "integer", "BIGINT", "BIGINT"),
    ("flag", "boolean", "BOOLEAN", "BOOLEAN"),
    ("value", "double", "DOUBLE PRECISION", "DOUBLE PRECISION"),
    ("name", "text", "VARCHAR(100)", "VARCHAR(100) CHARACTER SET utf8mb4"),
    ("data", "bytes", "BYTEA", "VARBINARY(300)"),
];

/// Rows with values at the edges of what the columns hold.
fn exact_rows() -> Vec<Vec<Value>> {
    let row = |id: i64, moment: i64, number: i64, value: f64, name: &str, data: &[u8]| {
        let (times, flag) = ([Value::Timestamp(moment), Value::Timestamp(moment.wrapping_mul(3))], Value::Boolean(id % 2 == 0));
        let [moment, micros] = times;
        let (id, number, value) = (Value::Integer(id), Value::Integer(number), Value::Double(value));
        vec![id, moment, micros, number, flag, value, Value::Text(name.into()), Value::Bytes(data.into())]
    };
    let every_byte: Vec<u8> = (0..=255).collect();
    vec![
        row(1, -62_000_000_000_000_000, 0, 0.25, "", b""),
        row(2, -1, i64::MAX, 5e-324, "été \\ \t \n \r 'x' \"y\" \\N ? :x {t}", &every_byte),
        row(3, 253_402_300_799_999_999, 1, f64::MAX, "日本🌡\u{10ffff}", b"\\N"),
        row(4, 1_700_000_000_000_001, i64::MIN, 0.1 + 0.2, "N\u{a0}", b"NULL\0\t\n\\"),
        row(5, 0, 3, 2.225_073_858_507_201e-308, " spaces", b" \x1a "),
        [vec![Value::Integer(6)], vec![Value::Null; 7]].concat(),
        row(7, 1, -1, -1.0 / 3.0, &"é🌡".repeat(50), &[0xab; 300]),
    ]
}

#[test]
fn values_come_back_exactly_whether_loaded_or_inserted() {
    for (driver, rows_at_a_time) in [(POSTGRESQL, 3), (POSTGRESQL, 1000), (POSTGRESQL_ANSI, 2), (MARIADB, 3), (MARIADB, 1)] {
        let names: Vec<_> = EXACT.iter().map(|(name, ..)| *name).collect();
        let typed: Vec<_> = EXACT.iter().map(|(name, value_type, ..)| typed(name, value_type)).collect();
        let declared = |(name, _, postgresql, mariadb): &(&str, &str, &str, &str)| {
            format!("{name} {}", if driver == MARIADB { mariadb } else { postgresql })
        };
        let declared: Vec<_> = EXACT.iter().map(declared).collect();
        let create = |table: &str| format!("CREATE TABLE {{{table}}} ({})", declared.join(", "));
        let read = |table: &str| {
            json!({"name": table, "columns": typed,
                "statement": {"statement": format!("SELECT {} FROM {{{table}}} ORDER BY id", names.join(", "))}})
        };
        // A time goes into a BIGINT as microseconds, beside one that goes as date and time of day.
        let with_times = |times: &str, names: &[&str]| {
            let places: Vec<_> = names.iter().map(|name| format!(":{name}")).collect();
            json!({"name": times, "parameters": typed, "statement": {"timestamps": times,
                "statement": format!("INSERT INTO {{inserted}} ({}) VALUES ({})", names.join(", "), places.join(", "))}})
        };
        let without = |left_out: &str| names.iter().copied().filter(|name| *name != left_out).collect::<Vec<_>>();
        let schema = schema_of(json!({
            "create": {"statements": [create("loaded"), create("inserted")]},
            "tables": {"loaded": typed},
            "operations": [
                read("loaded"), read("inserted"),
                with_times("datetime", &without("micros")), with_times("microseconds", &without("moment")),
            ],
        }));
        let target = created(driver, &format!("namespace=sb_exact_{}&rows={rows_at_a_time}", driver.0.to_lowercase()), &schema);
        let rows = exact_rows();
        let types = [
            Type::Integer,
            Type::Timestamp,
            Type::Timestamp,
            Type::Integer,
            Type::Boolean,
            Type::Double,
            Type::Text,
            Type::Bytes,
        ];
        let columns =
            names.iter().zip(types).enumerate().map(|(number, (name, value_type))| {
                (*name, array_of(value_type, rows.iter().map(|row| row[number].as_ref())), true)
            });
        load(target.as_ref(), "loaded", RecordBatch::try_from_iter_with_nullable(columns).unwrap()).unwrap();
        let connector = connector(target.as_ref(), &schema);
        let mut session = session(connector.as_ref(), LONG).unwrap();
        assert_same(&execute(session.as_mut(), 0, &[]).unwrap(), &rows);
        for operation in [2, 3] {
            for row in &rows {
                execute(session.as_mut(), operation, row).unwrap();
            }
        }
        let inserted = execute(session.as_mut(), 1, &[]).unwrap();
        let without = |place: usize| {
            rows.iter().cloned().map(move |mut row| {
                row[place] = Value::Null;
                row
            })
        };
        let mut expected: Vec<Vec<Value>> = without(1).chain(without(2)).collect();
        let key = |row: &Vec<Value>| format!("{row:?}");
        expected.sort_by_key(key);
        let mut inserted = inserted;
        inserted.sort_by_key(key);
        assert_same(&inserted, &expected);
        target.guard(&owner()).remove().unwrap();
    }
}

fn assert_same(found: &[Vec<Value>], expected: &[Vec<Value>]) {
    assert_eq!(format!("{found:?}"), format!("{expected:?}"));
}

/// What loading one row of an id and a value of this type into a column that is declared so ends with.
fn loaded_into(driver: (&str, &str), declaration: &str, value: Value, value_type: Type) -> Result<(), String> {
    let schema = schema_of(json!({
        "create": {"statements": [format!("CREATE TABLE {{t}} (id INTEGER, c {declaration})")]},
        "tables": {"t": [typed("id", "integer"), typed("c", value_type.name())]},
    }));
    let target = open(driver, "namespace=sb_proof");
    let rows = RecordBatch::try_from_iter([
        ("id", array_of(Type::Integer, [ValueRef::Integer(1)].into_iter())),
        ("c", array_of(value_type, [value.as_ref()].into_iter())),
    ]);
    let outcome =
        target.guard(&owner()).create(&schema, "test", Intent::Replace).and_then(|()| load(target.as_ref(), "t", rows.unwrap()));
    target.guard(&owner()).remove().unwrap();
    outcome.map_err(|error| error.to_string())
}

#[test]
fn what_a_driver_or_a_column_would_change_is_refused() {
    let time = |micros: i64| Value::Timestamp(1_700_000_000_000_000 + micros);
    for (driver, declaration, kept, changed) in [
        (POSTGRESQL, "TIMESTAMP(3)", time(1_000), time(1)),
        (MARIADB, "DATETIME(3)", time(1_000), time(1)),
        (MARIADB, "DATETIME", time(1_000_000), time(1_000)),
        (SQLITE, "TIMESTAMP", time(1_000), time(1)),
    ] {
        loaded_into(driver, declaration, kept, Type::Timestamp).unwrap();
        let refused = loaded_into(driver, declaration, changed, Type::Timestamp).expect_err("it is cut");
        assert!(refused.starts_with("table t, ") && refused.contains("BIGINT, which keeps microseconds"), "{refused}");
    }
    for (driver, declaration) in [(POSTGRESQL, "REAL"), (POSTGRESQL, "NUMERIC(30, 10)"), (MARIADB, "FLOAT")] {
        let refused = loaded_into(driver, declaration, Value::Double(0.1), Type::Double).expect_err("it is rounded");
        assert!(refused.starts_with("fill.t: column c: a double is stored exactly in a DOUBLE PRECISION alone"), "{refused}");
    }
    let latin = loaded_into(MARIADB, "VARCHAR(10) CHARACTER SET latin1", Value::Text("日本".into()), Type::Text).unwrap_err();
    assert!(latin.starts_with("table t: "), "{latin}");
    // Its driver loses the last of all characters on the way back, where text is UTF-16.
    let sqlite = loaded_into((SQLITE.0, "text=utf16"), "TEXT", Value::Text("\u{10ffff}".into()), Type::Text).unwrap_err();
    assert!(sqlite.starts_with("table t, column c: ") && sqlite.contains("text=utf8"), "{sqlite}");
    let beyond = loaded_into(POSTGRESQL, "TIMESTAMP(6)", Value::Timestamp(i64::MAX), Type::Timestamp).unwrap_err();
    assert!(beyond.contains("outside the years 1 to 9999"), "{beyond}");
    // A driver that is not for Unicode says so when it is given UTF-16.
    let ansi = open((POSTGRESQL_ANSI.0, "text=utf16"), "namespace=sb_proof")
        .guard(&owner())
        .create(&Schema::default(), "test", Intent::Replace)
        .unwrap_err();
    assert!(ansi.to_string().contains("text=utf8"), "{ansi}");
    open(POSTGRESQL, "namespace=sb_proof").guard(&owner()).remove().unwrap();
}

#[test]
fn answers_of_another_type_are_told_and_the_session_goes_on() {
    let question = |name: &str, value_type: &str, computed: bool, statement: &str| {
        let column = json!({"name": "c", "type": value_type, "computed": computed});
        json!({"name": name, "columns": [column], "statement": {"statement": statement}})
    };
    for driver in [POSTGRESQL, MARIADB] {
        let target = created(driver, "namespace=sb_types", &Schema::default());
        let answered = |operation: Json| {
            let schema = schema_of(json!({"operations": [operation]}));
            let connector = connector(target.as_ref(), &schema);
            session(connector.as_ref(), LONG)
                .and_then(|mut session| execute(session.as_mut(), 0, &[]))
                .map_err(|error| error.to_string())
        };
        let decimal = answered(question("decimal", "double", false, "SELECT CAST(1.5 AS DECIMAL(3, 1))")).unwrap_err();
        assert!(
            decimal.starts_with("operation.decimal.statement: column c should be a double, but the driver returns"),
            "{decimal}"
        );
        let average = answered(question("average", "double", true, "SELECT CAST(1.5 AS DECIMAL(3, 1))"));
        assert_eq!(average.unwrap(), [[Value::Double(1.5)]]);
        let cut = answered(question("cut", "integer", false, "SELECT CAST(1.5 AS DECIMAL(3, 1))")).unwrap_err();
        assert!(cut.contains("CAST(… AS BIGINT)"), "{cut}");
        let misspelt = answered(question("misspelt", "integer", false, "SELEKT 1")).unwrap_err();
        assert!(misspelt.starts_with("operation.misspelt.statement: "), "{misspelt}");
        let more = answered(question("more", "integer", false, "SELECT 1, 2")).unwrap_err();
        assert!(more.starts_with("operation.more.statement: the statement returns 2 columns; the operation has 1 (c)"), "{more}");
        target.guard(&owner()).remove().unwrap();
    }
    let target =
        created(SQLITE, "namespace=sb_types", &schema_of(json!({"create": {"statements": ["CREATE TABLE {t} (c DOUBLE)"]}})));
    let schema = schema_of(json!({"operations": [question("rounded", "double", false, "SELECT c FROM {t}")]}));
    let connector = connector(target.as_ref(), &schema);
    let rounded = session(connector.as_ref(), LONG).err().expect("refused").to_string();
    assert!(rounded.contains("with 15 digits; return CASE WHEN c IS NOT NULL THEN quote(c) END"), "{rounded}");
    target.guard(&owner()).remove().unwrap();
}
