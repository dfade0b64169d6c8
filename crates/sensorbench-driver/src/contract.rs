//! What every driver promises, as one suite that each driver's tests run against its database.
//!
//! A driver brings a schema, in its own words, for the tables and operations named here:
//!
//! | table | columns |
//! |---|---|
//! | `readings` | `id` integer (key), `flag` boolean, `number` integer, `value` double, `time` timestamp, `name` text, `data` bytes |
//! | `many` | `id` integer (key), `value` double |
//!
//! A schema may declare further tables, with columns of `readings`; they are filled from it, sorted by their columns.
//!
//! | operation | what it does |
//! |---|---|
//! | `all` | every reading: all columns |
//! | `by_id(id)` | the reading with this id: all columns |
//! | `in_time_range(from, to)` | `id`, `time` of readings with from ≤ time < to, sorted by time |
//! | `insert(id, flag, number, value, time, name, data)` | writes a reading |
//! | `slow` | takes much longer than 20 ms, for example by reading all of `many` |
//! | `broken(id)` | is refused by the database when it is executed with id null |

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arrow_array::{RecordBatch, RecordBatchIterator};
use sensorbench_dataset::array_of;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    AsyncSession, BlockingConnector, BlockingSession, Database, Deadline, Driver, DriverError, ErrorKind, Intent, Progress,
    Request, Rows, Schema, Sessions, TargetUrl, Type, Value, ValueRef,
};

mod ownership;

pub use ownership::owner;

/// A driver and its database, ready for the suite.
pub struct Subject<'a> {
    /// The driver.
    pub database: &'a dyn Database,
    /// Where the database is. What sensorbench created there is replaced.
    pub url: String,
    /// The contract's tables and operations in the driver's words.
    pub schema: Schema,
    /// Whether the database stores NaN. If not, loading it must be refused, not turned into something else.
    pub stores_nan: bool,
    /// Whether the database stores the two infinities. If not, the suite goes without them.
    pub stores_infinity: bool,
    /// Puts something with rows at the target that sensorbench did not create.
    pub put_foreign: &'a dyn Fn(),
    /// The rows of it, read past the driver.
    pub foreign_rows: &'a dyn Fn() -> Vec<String>,
    /// Removes it again.
    pub remove_foreign: &'a dyn Fn(),
}

const READINGS: [(&str, Type); 7] = [
    ("id", Type::Integer),
    ("flag", Type::Boolean),
    ("number", Type::Integer),
    ("value", Type::Double),
    ("time", Type::Timestamp),
    ("name", Type::Text),
    ("data", Type::Bytes),
];
const TIME: usize = 4;
const NAME: usize = 5;
const DATA: usize = 6;
const MANY_ROWS: i64 = 300_000;
/// How large texts and bytes are that every driver keeps, and how many of them come at a time.
const LARGE_BYTES: usize = 1 << 20;
const LARGE_ROWS: i64 = 16;
const NOTE: &str = "what lies there, ' \" \\ {} 日本";

type Reading = [Value; 7];

/// Runs the whole suite; panics with the name of the promise that was broken.
pub fn check(subject: &Subject) {
    prepare(subject);
    ownership::keeps_to_the_table_of_occupants_and_intents(subject);
    let driver = loaded(subject);
    counts_sizes_and_notes(driver.as_ref());
    reads_back_every_type(subject, driver.as_ref());
    answers_with_nothing_when_there_is_nothing(subject, driver.as_ref());
    includes_range_starts_and_excludes_range_ends(subject, driver.as_ref());
    writes_what_is_then_read(subject, driver.as_ref());
    reports_refused_statements_and_goes_on(subject, driver.as_ref());
    gives_up_at_the_time_limit_and_goes_on(subject, driver.as_ref());
    gives_up_when_cancelled_and_goes_on(subject, driver.as_ref());
    drop(driver);
    finds_its_tables_again(subject);
    keeps_large_values(subject);
    refuses_or_keeps_nan(subject);
    refuses_rows_that_do_not_fit(subject);
    stops_loading_when_asked(subject);
    removes_what_it_created(subject);
}

/// The schema with what the suite itself knows: columns of tables, parameters and columns of operations.
fn schema(subject: &Subject) -> Schema {
    let mut schema = subject.schema.clone();
    let fields = |names: &[(&str, Type)]| {
        let field = |(name, value_type): &(&str, Type)| crate::Parameter { name: (*name).to_owned(), value_type: *value_type };
        names.iter().map(field).collect::<Vec<_>>()
    };
    let columns = |names: &[(&str, Type)]| {
        let column = |(name, value_type): &(&str, Type)| crate::Column {
            name: (*name).to_owned(),
            value_type: *value_type,
            computed: false,
        };
        names.iter().map(column).collect::<Vec<_>>()
    };
    schema.tables.insert("readings".to_owned(), fields(&READINGS));
    schema.tables.insert("many".to_owned(), fields(&[("id", Type::Integer), ("value", Type::Double)]));
    for operation in &mut schema.operations {
        let id = [("id", Type::Integer)];
        (operation.parameters, operation.columns) = match operation.name.as_str() {
            "all" => (Vec::new(), columns(&READINGS)),
            "by_id" => (fields(&id), columns(&READINGS)),
            "in_time_range" => (
                fields(&[("from", Type::Timestamp), ("to", Type::Timestamp)]),
                columns(&[("id", Type::Integer), ("time", Type::Timestamp)]),
            ),
            "insert" => (fields(&READINGS), Vec::new()),
            "slow" => (Vec::new(), columns(&[("value", Type::Double)])),
            "broken" => (fields(&id), columns(&READINGS)),
            other => panic!("the contract has no operation {other}"),
        };
    }
    schema
}

fn readings(subject: &Subject) -> Vec<Reading> {
    let infinity = if subject.stores_infinity { f64::INFINITY } else { f64::MAX };
    let text = |text: &str| Value::Text(text.into());
    let bytes = |bytes: &[u8]| Value::Bytes(bytes.into());
    let second = 1_000_000;
    let reading = |id: i64, flag: Value, number: i64, value: f64, time: i64, name: Value, data: Value| {
        [Value::Integer(id), flag, Value::Integer(number), Value::Double(value), Value::Timestamp(time), name, data]
    };
    let nulls =
        [Value::Integer(3), Value::Null, Value::Null, Value::Null, Value::Timestamp(3 * second), Value::Null, Value::Null];
    vec![
        reading(1, Value::Boolean(true), i64::MAX, 0.1 + 0.2, second, text("AC1"), bytes(b"\0\x01\xff")),
        reading(2, Value::Boolean(false), i64::MIN, f64::MIN_POSITIVE, 2 * second, text("日本 été 🌡 ' \" \\ ;--"), bytes(b"")),
        nulls,
        reading(4, Value::Boolean(true), 0, -1.797e308, 3 * second + 1, text(""), bytes(&[0; 3])),
        reading(
            5,
            Value::Boolean(true),
            -1,
            infinity,
            1_546_300_800_123_456,
            text(&"x".repeat(1_000_000)),
            bytes(&vec![0xab; 1_000_000]),
        ),
        reading(6, Value::Boolean(false), 7, -infinity, -123_456_789, text("\u{10ffff}"), bytes(b"'")),
    ]
}

fn reading_rows(readings: &[Reading]) -> RecordBatch {
    let columns = READINGS.iter().enumerate().map(|(number, (name, value_type))| {
        let values = readings.iter().map(|reading| reading[number].as_ref());
        (*name, array_of(*value_type, values), true)
    });
    RecordBatch::try_from_iter_with_nullable(columns).expect("columns of one length")
}

/// The rows of a further table: some columns of the readings, sorted by them.
fn further_rows(subject: &Subject, columns: &[crate::Parameter]) -> RecordBatch {
    let place =
        |column: &crate::Parameter| READINGS.iter().position(|(name, _)| *name == column.name).expect("a column of readings");
    let places: Vec<usize> = columns.iter().map(place).collect();
    let mut readings = readings(subject);
    let number = |value: &Value| match value {
        Value::Integer(number) | Value::Timestamp(number) => *number,
        other => panic!("further tables are sorted by numbers and times, not by {other:?}"),
    };
    readings.sort_by_key(|reading| places.iter().map(|place| number(&reading[*place])).collect::<Vec<_>>());
    let arrays = places.iter().zip(columns).map(|(place, column)| {
        (column.name.as_str(), array_of(column.value_type, readings.iter().map(|reading| reading[*place].as_ref())))
    });
    RecordBatch::try_from_iter(arrays).expect("columns of one length")
}

fn many_rows() -> Vec<RecordBatch> {
    let chunk = |start: i64| {
        let ids = start..(start + 10_000).min(MANY_ROWS);
        RecordBatch::try_from_iter([
            ("id", array_of(Type::Integer, ids.clone().map(ValueRef::Integer))),
            ("value", array_of(Type::Double, ids.map(|id| ValueRef::Double(id as f64)))),
        ])
        .expect("columns of one length")
    };
    (0..MANY_ROWS).step_by(10_000).map(chunk).collect()
}

fn load(driver: &dyn Driver, table: &str, batches: Vec<RecordBatch>) -> Result<u64, DriverError> {
    let schema = batches[0].schema();
    let progress = Progress::default();
    driver.load(table, Box::new(RecordBatchIterator::new(batches.into_iter().map(Ok), schema)), &progress)?;
    Ok(progress.rows())
}

fn open(subject: &Subject) -> Box<dyn Driver> {
    subject.database.open(&TargetUrl::parse(&subject.url).unwrap()).expect("the target opens")
}

fn created(subject: &Subject) -> Box<dyn Driver> {
    let driver = open(subject);
    subject.database.check(&schema(subject)).expect("the schema of the contract is valid");
    driver.guard(&owner()).create(&schema(subject), NOTE, Intent::Replace).expect("the tables are created");
    driver
}

fn loaded(subject: &Subject) -> Box<dyn Driver> {
    let driver = created(subject);
    let batches = readings(subject).chunks(4).map(reading_rows).collect();
    assert_eq!(load(driver.as_ref(), "readings", batches).expect("readings load"), 6, "rows loaded are counted");
    assert_eq!(load(driver.as_ref(), "many", many_rows()).expect("many rows load"), MANY_ROWS as u64);
    for (table, columns) in &subject.schema.tables {
        load(driver.as_ref(), table, vec![further_rows(subject, columns)]).expect("a further table loads");
    }
    driver.settle().expect("the load settles");
    driver
}

/// One session of whichever kind, and the means to end an operation.
struct Client {
    session: Session,
    operations: Vec<String>,
    cancelled: Arc<AtomicBool>,
}

enum Session {
    Asynchronous(tokio::runtime::Runtime, Box<dyn AsyncSession>),
    Blocking(Box<dyn BlockingSession>, Arc<Deadline>, Instant),
}

const NO_LIMIT: Duration = Duration::from_secs(600);

impl Client {
    fn of(subject: &Subject, driver: &dyn Driver) -> Self {
        let operations = schema(subject).operations;
        let cancelled = Arc::new(AtomicBool::new(false));
        let session = match driver.sessions(&operations).expect("sessions are made") {
            Sessions::Asynchronous(connector) => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                let session = runtime.block_on(connector.connect(1)).expect("a session connects");
                Session::Asynchronous(runtime, session)
            }
            Sessions::Blocking(connector) => blocking_session(connector.as_ref(), cancelled.clone()),
        };
        Self { session, operations: operations.into_iter().map(|operation| operation.name).collect(), cancelled }
    }

    fn execute(&mut self, operation: &str, parameters: &[Value], limit: Duration) -> Result<Rows, DriverError> {
        let operation = self
            .operations
            .iter()
            .position(|name| name == operation)
            .unwrap_or_else(|| panic!("the schema has the operation {operation}"));
        let mut request = Request { operation, parameters: parameters.to_vec(), rows: Rows::new() };
        match &mut self.session {
            Session::Blocking(session, deadline, origin) => {
                deadline.set((origin.elapsed() + limit).as_nanos() as u64);
                session.execute(&mut request)?;
                Ok(request.rows)
            }
            Session::Asynchronous(runtime, session) => {
                let cancelled = self.cancelled.clone();
                let watched = async {
                    while !cancelled.load(Ordering::Relaxed) {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                };
                runtime.block_on(async {
                    tokio::select! {
                        (request, outcome) = session.execute(Box::new(request)) => outcome.map(|()| request.rows),
                        () = tokio::time::sleep(limit) => Err(DriverError::Timeout),
                        () = watched => Err(DriverError::Cancelled),
                    }
                })
            }
        }
    }

    fn ids_in(&mut self, from: i64, to: i64) -> Vec<i64> {
        let rows =
            self.execute("in_time_range", &[Value::Timestamp(from), Value::Timestamp(to)], NO_LIMIT).expect("a range is read");
        rows.iter().map(|row| if let ValueRef::Integer(id) = row.value(0) { id } else { panic!("an id is an integer") }).collect()
    }

    fn still_works(&mut self) {
        assert_eq!(self.ids_in(1_000_000, 2_000_000), [1], "a session is usable after an error");
    }
}

fn blocking_session(connector: &dyn BlockingConnector, cancelled: Arc<AtomicBool>) -> Session {
    let origin = Instant::now();
    let deadline = Arc::new(Deadline::new(origin, cancelled));
    Session::Blocking(connector.connect(deadline.clone()).expect("a session connects"), deadline, origin)
}

fn kept(rows: &Rows) -> Vec<Vec<Value>> {
    rows.iter().map(|row| (0..row.columns()).map(|column| row.value(column).to_value()).collect()).collect()
}

fn sorted_by_id(mut rows: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    rows.sort_by_key(|row| if let Value::Integer(id) = row[0] { id } else { panic!("an id is an integer") });
    rows
}

/// Removes what a run of the suite that was cut short has left.
fn prepare(subject: &Subject) {
    let (driver, owner) = (open(subject), owner());
    if driver.guard(&owner).marker().expect("the target answers").is_some() {
        driver.guard(&owner).clean().expect("what is ours can be removed");
    }
}

fn counts_sizes_and_notes(driver: &dyn Driver) {
    assert_eq!(driver.count("readings").unwrap(), 6);
    assert_eq!(driver.count("many").unwrap(), MANY_ROWS as u64);
    let size = driver.size().unwrap();
    assert!(size.total_bytes > 2_000_000, "the readings alone are two megabytes: {size:?}");
    assert!(size.parts.values().sum::<u64>() <= size.total_bytes, "{size:?}");
    let owner = owner();
    let guard = driver.guard(&owner);
    assert_eq!(guard.fingerprint().unwrap().as_deref(), Some(NOTE));
    guard.set_fingerprint("settled").unwrap();
    assert_eq!(guard.fingerprint().unwrap().as_deref(), Some("settled"));
    let description = driver.describe().unwrap();
    assert!(!description.database.is_empty() && !description.version.is_empty(), "{description:?}");
}

fn reads_back_every_type(subject: &Subject, driver: &dyn Driver) {
    let mut client = Client::of(subject, driver);
    let expected: Vec<Vec<Value>> = readings(subject).into_iter().map(Vec::from).collect();
    let all = client.execute("all", &[], NO_LIMIT).unwrap();
    assert_eq!(all.len(), 6);
    assert_eq!(sorted_by_id(kept(&all)), expected, "types, nulls, unicode and sub-second times read back exactly");
    for reading in expected {
        let rows = client.execute("by_id", &reading[..1], NO_LIMIT).unwrap();
        assert_eq!(kept(&rows), [reading]);
    }
}

fn answers_with_nothing_when_there_is_nothing(subject: &Subject, driver: &dyn Driver) {
    let mut client = Client::of(subject, driver);
    assert_eq!(client.execute("by_id", &[Value::Integer(99)], NO_LIMIT).unwrap().len(), 0);
    assert!(client.ids_in(10_000_000, 20_000_000).is_empty());
}

fn includes_range_starts_and_excludes_range_ends(subject: &Subject, driver: &dyn Driver) {
    let mut client = Client::of(subject, driver);
    assert_eq!(client.ids_in(1_000_000, 3_000_000), [1, 2]);
    assert_eq!(client.ids_in(1_000_001, 3_000_001), [2, 3]);
    assert_eq!(client.ids_in(3_000_000, 3_000_002), [3, 4], "a microsecond makes the difference");
    assert_eq!(client.ids_in(-200_000_000, 1_000_001), [6, 1], "times before 1970 come first");
    assert!(client.ids_in(2_000_000, 2_000_000).is_empty());
    assert!(client.ids_in(3_000_000, 1_000_000).is_empty());
}

fn writes_what_is_then_read(subject: &Subject, driver: &dyn Driver) {
    let mut client = Client::of(subject, driver);
    let mut reading = readings(subject)[1].clone();
    reading[0] = Value::Integer(-7);
    reading[TIME] = Value::Timestamp(900_000_000_000_000_001);
    assert_eq!(client.execute("insert", &reading, NO_LIMIT).unwrap().len(), 0);
    assert_eq!(kept(&client.execute("by_id", &reading[..1], NO_LIMIT).unwrap()), [reading.to_vec()]);
    assert_eq!(driver.count("readings").unwrap(), 7);
    let mut nulls = readings(subject)[2].clone();
    nulls[0] = Value::Integer(-8);
    client.execute("insert", &nulls, NO_LIMIT).unwrap();
    assert_eq!(kept(&client.execute("by_id", &nulls[..1], NO_LIMIT).unwrap()), [nulls.to_vec()]);
}

fn reports_refused_statements_and_goes_on(subject: &Subject, driver: &dyn Driver) {
    let mut client = Client::of(subject, driver);
    let error = client.execute("broken", &[Value::Null], NO_LIMIT).expect_err("the database refuses it");
    assert!(matches!(error.kind(), ErrorKind::Statement | ErrorKind::Data), "{error:?}");
    assert!(!error.to_string().is_empty());
    client.still_works();
}

fn gives_up_at_the_time_limit_and_goes_on(subject: &Subject, driver: &dyn Driver) {
    let mut client = Client::of(subject, driver);
    let start = Instant::now();
    let error = client.execute("slow", &[], Duration::from_millis(5)).expect_err("it takes longer than its limit");
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(start.elapsed() < Duration::from_secs(2), "gave up only after {:?}", start.elapsed());
    client.still_works();
}

fn gives_up_when_cancelled_and_goes_on(subject: &Subject, driver: &dyn Driver) {
    let mut client = Client::of(subject, driver);
    let cancelled = client.cancelled.clone();
    let canceller = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(5));
        cancelled.store(true, Ordering::Relaxed);
    });
    // A database that answers within the 5 ms was not cancelled, which the contract rules out by `slow`.
    let error = client.execute("slow", &[], NO_LIMIT).expect_err("it is cancelled on the way");
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    canceller.join().unwrap();
    client.cancelled.store(false, Ordering::Relaxed);
    client.still_works();
}

fn finds_its_tables_again(subject: &Subject) {
    let driver = open(subject);
    driver.guard(&owner()).attach(&schema(subject), Intent::Resume).expect("tables are found by a new driver");
    assert_eq!(driver.guard(&owner()).fingerprint().unwrap().as_deref(), Some("settled"));
    assert_eq!(driver.count("many").unwrap(), MANY_ROWS as u64);
    Client::of(subject, driver.as_ref()).still_works();
}

/// A reading whose text and bytes are large, and none like another's: a database that compresses gains little.
fn large_reading(subject: &Subject, id: i64) -> Reading {
    let mut reading = readings(subject)[0].clone();
    let mut random = (0u64..).map(|place| xxh3_64_with_seed(&place.to_le_bytes(), id as u64));
    let bytes: Vec<u8> = random.by_ref().flat_map(u64::to_le_bytes).take(LARGE_BYTES).collect();
    // Of one byte to four, and what needs care in many a statement.
    let characters = ['a', 'Z', '7', ' ', '\'', '"', '\\', '\n', '\t', 'é', 'ω', '日', '🌡'];
    let mut text = String::with_capacity(LARGE_BYTES + 4);
    while text.len() < LARGE_BYTES {
        text.push(characters[random.next().expect("no end") as usize % characters.len()]);
    }
    reading[0] = Value::Integer(id);
    reading[TIME] = Value::Timestamp(id);
    reading[NAME] = Value::Text(text.into());
    reading[DATA] = Value::Bytes(bytes.into());
    reading
}

fn keeps_large_values(subject: &Subject) {
    let driver = created(subject);
    let mut large: Vec<Reading> = (1..=LARGE_ROWS).map(|id| large_reading(subject, id)).collect();
    load(driver.as_ref(), "readings", vec![reading_rows(&large)]).expect("large values load");
    driver.settle().expect("the load settles");
    let mut client = Client::of(subject, driver.as_ref());
    let written = large_reading(subject, LARGE_ROWS + 1);
    client.execute("insert", &written, NO_LIMIT).expect("large values are written");
    large.push(written);
    for reading in large {
        let rows = client.execute("by_id", &reading[..1], NO_LIMIT).expect("large values are read");
        // Not shown when they differ, because that would be megabytes.
        assert!(kept(&rows) == [reading.to_vec()], "large values read back exactly: {:?}", reading[0]);
    }
}

fn refuses_or_keeps_nan(subject: &Subject) {
    let driver = created(subject);
    let mut reading = readings(subject)[0].clone();
    reading[3] = Value::Double(f64::NAN);
    let outcome = load(driver.as_ref(), "readings", vec![reading_rows(std::slice::from_ref(&reading))]);
    if subject.stores_nan {
        outcome.expect("NaN loads");
        driver.settle().unwrap();
        let rows = Client::of(subject, driver.as_ref()).execute("by_id", &reading[..1], NO_LIMIT).unwrap();
        let Value::Double(value) = kept(&rows)[0][3] else { panic!("a double is read back") };
        assert!(value.is_nan());
    } else {
        let error = outcome.expect_err("NaN is refused where it cannot be stored");
        assert_eq!(error.kind(), ErrorKind::Data, "{error}");
        assert!(error.to_string().contains("NaN"), "{error}");
    }
}

fn refuses_rows_that_do_not_fit(subject: &Subject) {
    let driver = created(subject);
    let error = load(driver.as_ref(), "readings", many_rows()).expect_err("columns are missing");
    assert_eq!(error.kind(), ErrorKind::Data, "{error}");
    assert!(error.to_string().contains("flag"), "the first missing column is named: {error}");
    let error = load(driver.as_ref(), "unknown", many_rows()).expect_err("there is no such table");
    assert!(error.to_string().contains("unknown"), "the table is named: {error}");
}

fn stops_loading_when_asked(subject: &Subject) {
    let driver = created(subject);
    let (batches, progress) = (many_rows(), Progress::default());
    progress.stop();
    let rows = Box::new(RecordBatchIterator::new(batches.clone().into_iter().map(Ok), batches[0].schema()));
    assert_eq!(driver.load("many", rows, &progress).unwrap_err().kind(), ErrorKind::Cancelled);
}

fn removes_what_it_created(subject: &Subject) {
    let driver = created(subject);
    driver.guard(&owner()).remove().expect("what was created is removed");
    drop(driver);
    let opened = subject.database.open(&TargetUrl::parse(&subject.url).unwrap()).unwrap();
    assert_eq!(opened.guard(&owner()).marker().unwrap(), None, "nothing is left");
}
