//! QuestDB keeps the driver contract, and what else is promised of its dialect. Run by the name of this module, against a QuestDB.

use std::time::Duration;

use arrow_array::{RecordBatch, RecordBatchIterator};
use futures::StreamExt;
use sensorbench_dataset::array_of;
use sensorbench_driver::contract::{Keeps, Subject, check, owner};
use sensorbench_driver::{Database, Driver, DriverError, ErrorKind, Intent, Progress, Schema, TargetUrl, Value};
use sensorbench_driver_postgresql::{PostgresqlWire, Questdb};
use tokio_postgres::{Client, Config, NoTls};

use crate::common::{TestSession, runtime, schema};

const QUESTDB: PostgresqlWire = PostgresqlWire(&Questdb);

/// The server that SENSORBENCH_TEST_URL names, and a namespace that one test has there.
struct Server {
    url: String,
    namespace: &'static str,
    config: Config,
}

impl Server {
    fn with_namespace(namespace: &'static str) -> Self {
        let base = std::env::var("SENSORBENCH_TEST_URL").expect("SENSORBENCH_TEST_URL names the server");
        let config = base.replacen("questdb://", "postgresql://", 1).split('?').next().unwrap_or_default().parse();
        let mut config: Config = config.expect("SENSORBENCH_TEST_URL is a URL");
        config.dbname("qdb");
        let joint = if base.contains('?') { '&' } else { '?' };
        let server = Self { url: format!("{base}{joint}namespace={namespace}"), namespace, config };
        server.remove_tables();
        server
    }

    /// Does something as somebody who is not sensorbench.
    fn as_somebody<T>(&self, work: impl AsyncFnOnce(&Client) -> T) -> T {
        runtime().block_on(async {
            let (client, connection) = self.config.connect(NoTls).await.expect("the server of SENSORBENCH_TEST_URL answers");
            tokio::spawn(connection);
            work(&client).await
        })
    }

    fn run(&self, statement: &str) {
        self.as_somebody(async |client| client.batch_execute(statement).await.expect(statement));
    }

    fn texts(&self, query: &str) -> Vec<String> {
        let rows = self.as_somebody(async |client| client.query(query, &[]).await.expect(query));
        rows.iter().map(|row| row.get(0)).collect()
    }

    fn remove_tables(&self) {
        let names = self.texts("SELECT table_name FROM tables()");
        let prefix = format!("{}.", self.namespace);
        for name in names.iter().filter(|name| name.starts_with(&prefix)) {
            self.drop_table(name);
        }
    }

    /// QuestDB refuses to drop a table that it is busy with.
    fn drop_table(&self, name: &str) {
        let statement = format!("DROP TABLE \"{name}\"");
        self.as_somebody(async |client| {
            while let Err(error) = client.batch_execute(&statement).await {
                assert!(error.as_db_error().is_some_and(|refusal| refusal.message().contains("busy")), "{error:?}");
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.remove_tables();
        }
    }
}

#[test]
fn keeps_the_contract() {
    let server = Server::with_namespace("test_contract");
    let foreign = "\"test_contract.sensorbench\"";
    check(&Subject {
        database: &QUESTDB,
        url: server.url.clone(),
        schema: schema(include_str!("contract.toml")),
        stores_nan: false,
        stores_infinity: false,
        keeps: Keeps { nulls_apart: false, ..Keeps::default() },
        put_foreign: &|| {
            server.run(&format!("CREATE TABLE {foreign} (mark VARCHAR)"));
            server.run(&format!("INSERT INTO {foreign} VALUES ('mine'), ('too')"));
        },
        foreign_rows: &|| server.texts(&format!("SELECT mark FROM {foreign} ORDER BY 1")),
        remove_foreign: &|| server.drop_table("test_contract.sensorbench"),
    });
}

const SERIES: &str = r#"
[create]
statements = ["""
CREATE TABLE {series} (time TIMESTAMP, name SYMBOL, flag BOOLEAN, number LONG, small INT, value DOUBLE, text VARCHAR, other TIMESTAMP)
TIMESTAMP(time) PARTITION BY DAY WAL KEYS
"""]
[tables]
series = [
    { name = "name", type = "text" }, { name = "flag", type = "boolean" }, { name = "number", type = "integer" },
    { name = "small", type = "integer" }, { name = "value", type = "double" }, { name = "text", type = "text" },
    { name = "other", type = "timestamp" }, { name = "time", type = "timestamp" },
]
[[operations]]
name = "all"
columns = [
    { name = "name", type = "text" }, { name = "flag", type = "boolean" }, { name = "number", type = "integer" },
    { name = "small", type = "integer" }, { name = "value", type = "double" }, { name = "text", type = "text" },
    { name = "other", type = "timestamp" }, { name = "time", type = "timestamp" },
]
statement.statement = "SELECT name, flag, number, small, value, text, other, time FROM {series} ORDER BY time, name"
[[operations]]
name = "count_before"
parameters = [{ name = "until", type = "timestamp" }]
columns = [{ name = "rows", type = "integer" }]
statement.statement = "SELECT count() FROM {series} WHERE time < :until"
[[operations]]
name = "write"
parameters = [{ name = "time", type = "timestamp" }, { name = "value", type = "double" }]
statement.statement = "INSERT INTO {series} (time, name, value) VALUES (:time, 'written', :value)"
"#;
const DEDUP: &str = "DEDUP UPSERT KEYS(time, name)";
/// 10 July 2026, and a microsecond.
const TIME: i64 = 1_783_641_600_000_001;

/// The columns of the table `series`, in the order of the operation `all`.
type SeriesRow = [Value; 8];

fn row(name: &str, time: i64, value: f64) -> SeriesRow {
    [
        Value::Text(name.into()),
        Value::Boolean(true),
        Value::Integer(i64::MAX),
        Value::Integer(-5),
        Value::Double(value),
        Value::Text("日本 été 🌡 ' \" \\ ,= \n\r;".into()),
        Value::Timestamp(-7),
        Value::Timestamp(time),
    ]
}

/// A driver with the table `series`, deduplicated or not, and the schema.
fn with_series(server: &Server, option: &str, keys: &str) -> (Box<dyn Driver>, Schema) {
    let schema = schema(&SERIES.replace("KEYS", keys));
    let driver = open(&format!("{}{option}", server.url));
    driver.guard(&owner()).create(&schema, "mark", Intent::Replace).expect("the table is created");
    (driver, schema)
}

fn open(url: &str) -> Box<dyn Driver> {
    QUESTDB.open(&TargetUrl::parse(url).unwrap()).expect("a valid URL")
}

fn load(driver: &dyn Driver, schema: &Schema, rows: &[SeriesRow]) -> Result<u64, DriverError> {
    let columns = schema.tables["series"].iter().enumerate().map(|(place, column)| {
        (column.name.as_str(), array_of(column.value_type, rows.iter().map(|row| row[place].as_ref())), true)
    });
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let (arrow, progress) = (batch.schema(), Progress::default());
    driver.load("series", Box::new(RecordBatchIterator::new([Ok(batch)], arrow)), &progress).map(|()| progress.rows())
}

fn all(driver: &dyn Driver, schema: &Schema) -> Vec<Vec<Value>> {
    driver.settle().expect("the log is applied");
    TestSession::connect(driver, schema, 1).unwrap().execute("all", &[]).unwrap()
}

#[test]
fn lines_keep_every_type_and_microseconds() {
    let server = Server::with_namespace("test_lines");
    let (driver, schema) = with_series(&server, "", "");
    let mut nulls = row("", TIME + 1, 0.1 + 0.2);
    for (place, value) in nulls.iter_mut().enumerate() {
        // A boolean has no null, and null is what a row is found by neither.
        if ![1, 4, 7].contains(&place) {
            *value = Value::Null;
        }
    }
    let mut rows =
        vec![row("a b,c=d\"e\\", TIME, f64::MIN_POSITIVE), nulls, row("", TIME + 2, -1.797e308), row("x", TIME + 3, -0.0)];
    rows[2][5] = Value::Text(String::new().into());
    assert_eq!(load(driver.as_ref(), &schema, &rows).unwrap(), 4);
    assert_eq!(all(driver.as_ref(), &schema), rows.into_iter().map(Vec::from).collect::<Vec<_>>());
}

#[test]
fn of_duplicates_the_last_wins_with_keys_and_all_stay_without() {
    let server = Server::with_namespace("test_duplicates");
    for (keys, expected) in [(DEDUP, vec![2.0, 3.0]), ("", vec![1.0, 2.0, 3.0])] {
        let (driver, schema) = with_series(&server, "", keys);
        // Twice in one request, and once more in another.
        load(driver.as_ref(), &schema, &[row("a", TIME, 1.0), row("a", TIME, 2.0)]).unwrap();
        load(driver.as_ref(), &schema, &[row("b", TIME, 3.0)]).unwrap();
        let mut values: Vec<f64> = all(driver.as_ref(), &schema).iter().map(|row| double(&row[4])).collect();
        values.sort_by(f64::total_cmp);
        assert_eq!(values, expected, "{keys}");
    }
    let (driver, schema) = with_series(&server, "", DEDUP);
    let rows: Vec<SeriesRow> = (0..1000).map(|number| row("a", TIME + number, number as f64)).collect();
    for _ in 0..2 {
        load(driver.as_ref(), &schema, &rows).unwrap();
    }
    assert_eq!(driver.count("series").unwrap(), 1000, "a load that is repeated changes nothing");
}

#[test]
fn late_rows_find_their_place_whatever_their_age() {
    let server = Server::with_namespace("test_late");
    let (driver, schema) = with_series(&server, "", DEDUP);
    let years = 1_000_000 * 86_400 * 365;
    for time in [TIME, TIME - 1, TIME - 10 * years, 0] {
        load(driver.as_ref(), &schema, &[row("a", time, 1.0)]).unwrap();
    }
    let times: Vec<Value> = all(driver.as_ref(), &schema).into_iter().map(|row| row[7].clone()).collect();
    assert_eq!(times, [0, TIME - 10 * years, TIME - 1, TIME].map(Value::Timestamp));
}

#[test]
fn of_a_request_with_a_row_that_is_refused_nothing_stays() {
    let server = Server::with_namespace("test_partial");
    let (driver, schema) = with_series(&server, "", "");
    assert_eq!(load(driver.as_ref(), &schema, &[row("before", TIME, 1.0)]).unwrap(), 1);
    // Beyond the year 9999, which the driver leaves to the server.
    let error =
        load(driver.as_ref(), &schema, &[row("good", TIME + 1, 1.0), row("bad", i64::MAX / 2, 1.0)]).expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Data, "{error}");
    let message = error.to_string();
    assert!(message.contains("table series") && message.contains("row 2") && message.contains("not kept"), "{message}");
    for (place, value, words) in [
        (7, Value::Timestamp(-1), "column time: the time -1 µs is before 1970"),
        (7, Value::Null, "column time: null cannot be"),
        (4, Value::Double(f64::NAN), "column value: NaN cannot be stored"),
        (1, Value::Null, "column flag: null cannot be stored"),
        (3, Value::Integer(1 << 31), "column small: 2147483648 does not fit"),
    ] {
        let mut refused = row("bad", TIME + 2, 1.0);
        refused[place] = value;
        let error = load(driver.as_ref(), &schema, &[row("good", TIME + 1, 1.0), refused]).expect_err("refused");
        assert!(error.to_string().contains(words), "{error}");
    }
    assert_eq!(driver.count("series").unwrap(), 1, "what was refused took its request with it");
}

#[test]
fn a_write_can_be_read_when_it_waited_or_the_table_settled() {
    let server = Server::with_namespace("test_visible");
    let written = |session: &TestSession, number: i64| {
        session.execute("write", &[Value::Timestamp(TIME + number), Value::Double(1.0)]).unwrap();
        session.execute("count_before", &[Value::Timestamp(i64::MAX / 2)]).unwrap()[0][0].clone()
    };
    let (driver, schema) = with_series(&server, "&wait=applied", DEDUP);
    let session = TestSession::connect(driver.as_ref(), &schema, 1).unwrap();
    for number in 0..100 {
        assert_eq!(written(&session, number), Value::Integer(number + 1), "what waited can be read");
    }
    assert_eq!(driver.describe().unwrap().settings["a write waits until it is"], "applied");
    let (driver, schema) = with_series(&server, "", DEDUP);
    let session = TestSession::connect(driver.as_ref(), &schema, 1).unwrap();
    let missed = (0..100).filter(|number| written(&session, *number) != Value::Integer(number + 1)).count();
    println!("{missed} of 100 reads right after an acknowledged write missed it");
    driver.settle().unwrap();
    assert_eq!(written(&session, 99), Value::Integer(100), "the last one replaced itself");
}

#[test]
fn who_may_not_log_in_and_what_is_not_there_is_told() {
    let server = Server::with_namespace("test_login");
    let password = std::str::from_utf8(server.config.get_password().unwrap()).unwrap();
    let error = open(&server.url.replacen(&format!(":{password}@"), ":wr0ng-secret@", 1)).describe().expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    let message = format!("{error} {error:?}");
    assert!(message.contains("check user and password") && !message.contains("wr0ng-secret"), "{message}");
    let (driver, schema) = with_series(&server, "&http=1", "");
    let error = load(driver.as_ref(), &schema, &[row("a", TIME, 1.0)]).expect_err("nobody listens there");
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    assert!(error.to_string().contains("name the port with http="), "{error}");
}

#[test]
fn statements_that_do_not_fit_are_refused_before_the_run() {
    let server = Server::with_namespace("test_statements");
    let driver = open(&server.url);
    let refused = |operation: &str| {
        let schema = schema(&format!("[[operations]]\nname = 'q'\n{operation}"));
        let error = TestSession::connect(driver.as_ref(), &schema, 1).err().expect("refused");
        assert_eq!(error.kind(), ErrorKind::Schema, "{error}");
        error.to_string()
    };
    assert!(refused("statement.statement = 'SELEC 1'").contains("operation.q.statement: "));
    assert!(
        refused("statement.statement = 'SELECT 1 FROM {nowhere}'")
            .contains("table does not exist [table=test_statements.nowhere]")
    );
    let column = "columns = [{ name = 'c', type = 'double' }]\n";
    let message = refused(&format!("{column}statement.statement = 'SELECT 1::int'"));
    assert!(message.contains("column c should be double (double), but QuestDB returns int4; cast it with ::double"), "{message}");
}

#[test]
fn a_table_that_was_made_anew_is_not_taken_for_the_earlier_one() {
    let server = Server::with_namespace("test_anew");
    for column in ["DOUBLE", "VARCHAR", "LONG"] {
        let canonical = match column {
            "DOUBLE" => "double",
            "VARCHAR" => "text",
            _ => "integer",
        };
        let schema = schema(&format!(
            "[create]\nstatements = ['CREATE TABLE {{t}} (value {column})']\n[tables]\nt = [{{ name = 'value', type = '{canonical}' }}]\n\
             [[operations]]\nname = 'all'\ncolumns = [{{ name = 'value', type = '{canonical}' }}]\n\
             statement.statement = 'SELECT value FROM {{t}}'"
        ));
        let driver = open(&server.url);
        driver.guard(&owner()).create(&schema, "mark", Intent::Replace).expect("the column is of its type");
        let session = TestSession::connect(driver.as_ref(), &schema, 1).expect("and so is the answer's");
        assert!(session.execute("all", &[]).unwrap().is_empty());
    }
}

fn double(value: &Value) -> f64 {
    let Value::Double(value) = value else { panic!("a double: {value:?}") };
    *value
}

#[test]
fn a_table_that_is_still_read_is_removed_once_its_reader_ends() {
    let server = Server::with_namespace("test_reader");
    let url = TargetUrl::parse(&server.url).unwrap();
    let driver = QUESTDB.open(&url).unwrap();
    let schema = schema(include_str!("contract.toml"));
    driver.guard(&owner()).create(&schema, "", Intent::Replace).unwrap();
    let many: Vec<String> = (0..1000).map(|id| format!("({id}, 0.5)")).collect();
    server.run(&format!("INSERT INTO \"test_reader.many\" VALUES {}", many.join(", ")));
    let (reads, is_read) = std::sync::mpsc::channel();
    let somebody = &server;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            somebody.as_somebody(async |client| {
                let (reader, connection) = somebody.config.connect(NoTls).await.unwrap();
                let connection = tokio::spawn(connection);
                // More rows than fit into the buffers between the two, so that QuestDB reads for as long as nobody takes them.
                let query = "SELECT a.value FROM \"test_reader.many\" a CROSS JOIN \"test_reader.many\" b";
                let rows = reader.query_raw(query, Vec::<i32>::new()).await.unwrap();
                let mut rows = Box::pin(rows);
                assert!(rows.next().await.unwrap().is_ok());
                let refusal = client.batch_execute("DROP TABLE \"test_reader.many\"").await.expect_err("the table is read");
                assert!(refusal.as_db_error().unwrap().message().contains("busyReader"), "{refusal:?}");
                reads.send(()).unwrap();
                tokio::time::sleep(Duration::from_millis(300)).await;
                connection.abort();
            });
        });
        is_read.recv().expect("somebody reads");
        driver.guard(&owner()).remove().unwrap();
    });
    assert!(server.texts("SELECT table_name FROM tables()").iter().all(|name| !name.starts_with("test_reader.")));
}
