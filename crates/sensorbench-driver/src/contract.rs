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

mod client;
mod ownership;
mod subject;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use arrow_array::RecordBatchIterator;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use self::client::{Client, NO_LIMIT};
use self::subject::{Reading, further_rows, load, many_rows, open, place, reading_rows, readings, schema};
use crate::{Driver, ErrorKind, Intent, Progress, Rows, TargetUrl, Value};

pub use ownership::owner;
pub use subject::{Keeps, Subject};

const NOTE: &str = "what lies there, ' \" \\ {} 日本";
/// How many large texts and bytes come at a time.
const LARGE_ROWS: i64 = 16;

/// Runs the whole suite; panics with the name of the promise that was broken.
pub fn check(subject: &Subject) {
    prepare(subject);
    ownership::keeps_to_the_table_of_occupants_and_intents(subject);
    let driver = loaded(subject);
    counts_sizes_and_notes(subject, driver.as_ref());
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
    refuses_or_keeps_what_may_stand_for_null(subject);
    refuses_rows_that_do_not_fit(subject);
    stops_loading_when_requested(subject);
    removes_what_it_created(subject);
}

fn created(subject: &Subject) -> Box<dyn Driver> {
    let driver = open(subject);
    subject.database.check(&schema(subject)).expect("the schema of the contract is valid");
    driver.guard(&owner()).create(&schema(subject), NOTE, Intent::Replace).expect("the tables are created");
    driver
}

fn loaded(subject: &Subject) -> Box<dyn Driver> {
    let driver = created(subject);
    let batches = readings(subject).chunks(4).map(|rows| reading_rows(subject, rows)).collect();
    assert_eq!(load(driver.as_ref(), "readings", batches).expect("readings load"), 6, "rows loaded are counted");
    assert_eq!(load(driver.as_ref(), "many", many_rows(subject)).expect("many rows load"), subject.keeps.many_rows as u64);
    for (table, columns) in &subject.schema.tables {
        load(driver.as_ref(), table, vec![further_rows(subject, columns)]).expect("a further table loads");
    }
    driver.settle().expect("the load settles");
    driver
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

fn counts_sizes_and_notes(subject: &Subject, driver: &dyn Driver) {
    assert_eq!(driver.count("readings").unwrap(), 6);
    assert_eq!(driver.count("many").unwrap(), subject.keeps.many_rows as u64);
    let size = driver.size().unwrap();
    if subject.keeps.large_values() {
        let long_bytes = subject.keeps.long_bytes() as u64;
        let min_bytes = if subject.keeps.compresses { long_bytes / 4 } else { 2 * long_bytes };
        assert!(size.total_bytes > min_bytes, "the readings alone are nearly two megabytes: {size:?}");
    } else {
        assert!(size.total_bytes > 0 || size.unknown.is_some(), "{size:?}");
    }
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
    let expected: Vec<Vec<Value>> = readings(subject);
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
    let step = subject.keeps.time_step_us;
    assert_eq!(client.ids_in(1_000_000 + step, 3_000_000 + step), [2, 3]);
    assert_eq!(client.ids_in(3_000_000, 3_000_000 + 2 * step), [3, 4], "the smallest difference of times makes the difference");
    assert_eq!(client.ids_in(-200_000_000, 1_000_000 + step), [6, 1], "times before 1970 come first");
    assert!(client.ids_in(2_000_000, 2_000_000).is_empty());
    assert!(client.ids_in(3_000_000, 1_000_000).is_empty());
}

fn writes_what_is_then_read(subject: &Subject, driver: &dyn Driver) {
    let mut client = Client::of(subject, driver);
    let mut reading = readings(subject)[1].clone();
    reading[0] = Value::Integer(-7);
    reading[place(subject, "time")] = Value::Timestamp(subject.keeps.time(900_000_000_000_000_001));
    assert_eq!(client.execute("insert", &reading, NO_LIMIT).unwrap().len(), 0);
    show(subject, driver);
    assert_eq!(kept(&client.execute("by_id", &reading[..1], NO_LIMIT).unwrap()), [reading]);
    assert_eq!(driver.count("readings").unwrap(), 7);
    let mut nulls = readings(subject)[2].clone();
    nulls[0] = Value::Integer(-8);
    client.execute("insert", &nulls, NO_LIMIT).unwrap();
    show(subject, driver);
    assert_eq!(kept(&client.execute("by_id", &nulls[..1], NO_LIMIT).unwrap()), [nulls]);
}

/// Waits until what was written is visible, where that takes more than its answer.
fn show(subject: &Subject, driver: &dyn Driver) {
    if !subject.keeps.shows_at_once {
        driver.settle().expect("the writes settle");
    }
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
    assert_eq!(driver.count("many").unwrap(), subject.keeps.many_rows as u64);
    Client::of(subject, driver.as_ref()).still_works();
}

/// A reading whose text and bytes are large, and none like another's: a database that compresses gains little.
fn large_reading(subject: &Subject, id: i64) -> Reading {
    let (mut reading, large_bytes) = (readings(subject)[0].clone(), subject.keeps.large_bytes);
    let mut random = (0u64..).map(|place| xxh3_64_with_seed(&place.to_le_bytes(), id as u64));
    let bytes: Vec<u8> = random.by_ref().flat_map(u64::to_le_bytes).take(large_bytes).collect();
    // Of one byte to four, and what needs care in many a statement.
    let characters = ['a', 'Z', '7', ' ', '\'', '"', '\\', '\n', '\t', 'é', 'ω', '日', '🌡'];
    let mut text = String::with_capacity(large_bytes + 4);
    while text.len() < large_bytes {
        text.push(characters[random.next().expect("no end") as usize % characters.len()]);
    }
    reading[0] = Value::Integer(id);
    reading[place(subject, "time")] = Value::Timestamp(subject.keeps.time(id));
    reading[place(subject, "name")] = Value::Text(text.into());
    reading[place(subject, "data")] = Value::Bytes(bytes.into());
    reading
}

fn keeps_large_values(subject: &Subject) {
    if !subject.keeps.large_values() {
        return;
    }
    let driver = created(subject);
    let mut large: Vec<Reading> = (1..=LARGE_ROWS).map(|id| large_reading(subject, id)).collect();
    load(driver.as_ref(), "readings", vec![reading_rows(subject, &large)]).expect("large values load");
    driver.settle().expect("the load settles");
    let mut client = Client::of(subject, driver.as_ref());
    let written = large_reading(subject, LARGE_ROWS + 1);
    client.execute("insert", &written, NO_LIMIT).expect("large values are written");
    large.push(written);
    for reading in large {
        let rows = client.execute("by_id", &reading[..1], NO_LIMIT).expect("large values are read");
        // Not shown when they differ, because that would be megabytes.
        assert!(kept(&rows) == [reading.clone()], "large values read back exactly: {:?}", reading[0]);
    }
}

fn refuses_or_keeps_nan(subject: &Subject) {
    let driver = created(subject);
    let mut reading = readings(subject)[0].clone();
    let value = place(subject, "value");
    reading[value] = Value::Double(f64::NAN);
    let outcome = load(driver.as_ref(), "readings", vec![reading_rows(subject, std::slice::from_ref(&reading))]);
    if subject.stores_nan {
        outcome.expect("NaN loads");
        driver.settle().unwrap();
        let rows = Client::of(subject, driver.as_ref()).execute("by_id", &reading[..1], NO_LIMIT).unwrap();
        let Value::Double(value) = kept(&rows)[0][value] else { panic!("a double is read back") };
        assert!(value.is_nan());
    } else {
        let error = outcome.expect_err("NaN is refused where it cannot be stored");
        assert_eq!(error.kind(), ErrorKind::Data, "{error}");
        assert!(error.to_string().contains("NaN"), "{error}");
    }
}

/// What a database keeps as null it must refuse, not change: in loading and in writing.
fn refuses_or_keeps_what_may_stand_for_null(subject: &Subject) {
    if subject.keeps.nulls_apart {
        // The readings of the suite have the smallest integer and a boolean that is null.
        return;
    }
    let driver = created(subject);
    for (column, value) in [(1, Value::Null), (2, Value::Integer(i64::MIN))] {
        let mut reading = readings(subject)[0].clone();
        reading[column] = value;
        let error =
            load(driver.as_ref(), "readings", vec![reading_rows(subject, std::slice::from_ref(&reading))]).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Data, "{error}");
        let error = Client::of(subject, driver.as_ref()).execute("insert", &reading, NO_LIMIT).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Data, "{error}");
    }
    assert_eq!(driver.count("readings").unwrap(), 0);
}

fn refuses_rows_that_do_not_fit(subject: &Subject) {
    let driver = created(subject);
    let error = load(driver.as_ref(), "readings", many_rows(subject)).expect_err("columns are missing");
    assert_eq!(error.kind(), ErrorKind::Data, "{error}");
    let missing =
        subject.keeps.columns.iter().find(|column| !["id", "value"].contains(column)).expect("a column more than many has");
    assert!(error.to_string().contains(missing), "the first missing column is named: {error}");
    let error = load(driver.as_ref(), "unknown", many_rows(subject)).expect_err("there is no such table");
    assert!(error.to_string().contains("unknown"), "the table is named: {error}");
}

fn stops_loading_when_requested(subject: &Subject) {
    let driver = created(subject);
    let (batches, progress) = (many_rows(subject), Progress::default());
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
