//! What the suite is about: a driver, and the schema and rows of the contract.

use arrow_array::{RecordBatch, RecordBatchIterator};
use sensorbench_dataset::{Type, Value, ValueRef, array_of};

use crate::driver::{Database, Driver};
use crate::error::DriverError;
use crate::progress::Progress;
use crate::schema::{Column, Parameter, Schema};
use crate::url::TargetUrl;

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
    /// What the database cannot keep, which the suite goes without.
    pub keeps: Keeps,
    /// Puts something with rows at the target that sensorbench did not create.
    pub put_foreign: &'a dyn Fn(),
    /// The rows of it, read past the driver.
    pub foreign_rows: &'a dyn Fn() -> Vec<String>,
    /// Removes it again.
    pub remove_foreign: &'a dyn Fn(),
}

/// What a database keeps of the suite's readings. What it does not keep its driver refuses; that is for tests of its own.
#[derive(Clone, Copy, Debug)]
pub struct Keeps {
    /// The columns of `readings` that the schema has.
    pub columns: &'static [&'static str],
    /// Whether values may be null.
    pub nulls: bool,
    /// Whether null is distinguished from every integer and boolean. If not, values that would become null, and nulls that would become a value, must
    /// be refused; the suite goes without them otherwise.
    pub nulls_apart: bool,
    /// Whether a double is kept exactly whatever it is; if not, those of few decimal digits are.
    pub all_doubles: bool,
    /// The smallest difference between two times, in µs.
    pub time_step_us: i64,
    /// The first and the last time, in µs since 1970.
    pub times_us: (i64, i64),
    /// By how much all times of the suite are later than the first seconds of 1970, where the database has no such times.
    pub later_us: i64,
    /// Whether an answer can be sorted by time; if not, the suite sorts it.
    pub sorts: bool,
    /// Whether a write is visible when it is answered; if not, when the driver has settled.
    pub shows_at_once: bool,
    /// Whether the size on disk is that of compressed texts and bytes.
    pub compresses: bool,
    /// How large texts and bytes may be, where that is less than what the suite tries.
    pub large_bytes: usize,
    /// Rows of the table `many`: fewer where each of them is a series of its own, and where reading fewer of them takes milliseconds.
    pub many_rows: i64,
}

impl Default for Keeps {
    /// Everything.
    fn default() -> Self {
        let columns = &["id", "flag", "number", "value", "time", "name", "data"];
        Self {
            columns,
            nulls: true,
            nulls_apart: true,
            all_doubles: true,
            time_step_us: 1,
            times_us: (i64::MIN, i64::MAX),
            later_us: 0,
            sorts: true,
            shows_at_once: true,
            compresses: false,
            large_bytes: 1 << 20,
            many_rows: MANY_ROWS,
        }
    }
}

impl Keeps {
    /// A time as the database keeps it.
    pub(super) fn time(&self, time_us: i64) -> i64 {
        let (first, last) = self.times_us;
        time_us.saturating_add(self.later_us).clamp(first, last).div_euclid(self.time_step_us) * self.time_step_us
    }

    fn keeps(&self, column: &str) -> bool {
        self.columns.contains(&column)
    }

    /// How large the long text and the long bytes among the readings are.
    pub(super) fn long_bytes(&self) -> usize {
        self.large_bytes.min(1_000_000)
    }

    /// Whether there are texts and bytes, which are what large values are.
    pub(super) fn large_values(&self) -> bool {
        self.keeps("name") && self.keeps("data")
    }
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
const MANY_ROWS: i64 = 300_000;

pub(super) type Reading = Vec<Value>;

/// The place of a column in a reading.
pub(super) fn place(subject: &Subject, column: &str) -> usize {
    columns(subject).iter().position(|(name, _)| *name == column).expect("a column of readings")
}

/// The columns of readings that the database keeps.
fn columns(subject: &Subject) -> Vec<(&'static str, Type)> {
    READINGS.into_iter().filter(|(name, _)| subject.keeps.keeps(name)).collect()
}

/// The schema with what the suite itself knows: columns of tables, parameters and columns of operations.
pub(super) fn schema(subject: &Subject) -> Schema {
    let mut schema = subject.schema.clone();
    let fields = |names: &[(&str, Type)]| {
        let field = |(name, value_type): &(&str, Type)| Parameter { name: (*name).to_owned(), value_type: *value_type };
        names.iter().map(field).collect::<Vec<_>>()
    };
    let readings = columns(subject);
    let columns = |names: &[(&str, Type)]| {
        let column =
            |(name, value_type): &(&str, Type)| Column { name: (*name).to_owned(), value_type: *value_type, computed: false };
        names.iter().map(column).collect::<Vec<_>>()
    };
    schema.tables.insert("readings".to_owned(), fields(&readings));
    schema.tables.insert("many".to_owned(), fields(&[("id", Type::Integer), ("value", Type::Double)]));
    for operation in &mut schema.operations {
        let id = [("id", Type::Integer)];
        (operation.parameters, operation.columns) = match operation.name.as_str() {
            "all" => (Vec::new(), columns(&readings)),
            "by_id" => (fields(&id), columns(&readings)),
            "in_time_range" => (
                fields(&[("from", Type::Timestamp), ("to", Type::Timestamp)]),
                columns(&[("id", Type::Integer), ("time", Type::Timestamp)]),
            ),
            "insert" => (fields(&readings), Vec::new()),
            "slow" => (Vec::new(), columns(&[("value", Type::Double)])),
            "broken" => (fields(&id), columns(&readings)),
            other => panic!("the contract has no operation {other}"),
        };
    }
    schema
}

pub(super) fn readings(subject: &Subject) -> Vec<Reading> {
    let double = |value: f64, of_few_digits: f64| if subject.keeps.all_doubles { value } else { of_few_digits };
    let infinity = if subject.stores_infinity { f64::INFINITY } else { double(f64::MAX, 1.25e10) };
    // Where null is not distinguished from every value, that value is refused.
    let smallest = if subject.keeps.nulls_apart { i64::MIN } else { i64::MIN + 1 };
    let text = |text: &str| Value::Text(text.into());
    let bytes = |bytes: &[u8]| Value::Bytes(bytes.into());
    let second = 1_000_000;
    let reading = |id: i64, flag: Value, number: i64, value: f64, time: i64, name: Value, data: Value| {
        [Value::Integer(id), flag, Value::Integer(number), Value::Double(value), Value::Timestamp(time), name, data]
    };
    let null = |value: Value| if subject.keeps.nulls { Value::Null } else { value };
    let nulls = [
        Value::Integer(3),
        if subject.keeps.nulls_apart { null(Value::Boolean(false)) } else { Value::Boolean(false) },
        null(Value::Integer(0)),
        null(Value::Double(0.5)),
        Value::Timestamp(3 * second),
        null(text("3")),
        null(bytes(b"3")),
    ];
    let all = [
        reading(1, Value::Boolean(true), i64::MAX, double(0.1 + 0.2, 0.3), second, text("AC1"), bytes(b"\0\x01\xff")),
        reading(
            2,
            Value::Boolean(false),
            smallest,
            double(f64::MIN_POSITIVE, 1.5e-9),
            2 * second,
            text("日本 été 🌡 ' \" \\ ;--"),
            bytes(b""),
        ),
        nulls,
        reading(
            4,
            Value::Boolean(true),
            0,
            double(-1.797e308, -0.001),
            3 * second + subject.keeps.time_step_us,
            text(""),
            bytes(&[0; 3]),
        ),
        reading(
            5,
            Value::Boolean(true),
            -1,
            infinity,
            1_546_300_800_123_456,
            text(&"x".repeat(subject.keeps.long_bytes())),
            bytes(&vec![0xab; subject.keeps.long_bytes()]),
        ),
        reading(6, Value::Boolean(false), 7, -infinity, -123_456_789, text("\u{10ffff}"), bytes(b"'")),
    ];
    let kept = |reading: [Value; 7]| {
        let columns = READINGS.into_iter().zip(reading).filter(|((name, _), _)| subject.keeps.keeps(name));
        columns
            .map(|(_, value)| if let Value::Timestamp(time) = value { Value::Timestamp(subject.keeps.time(time)) } else { value })
            .collect()
    };
    all.into_iter().map(kept).collect()
}

pub(super) fn reading_rows(subject: &Subject, readings: &[Reading]) -> RecordBatch {
    let columns = columns(subject).into_iter().enumerate().map(|(number, (name, value_type))| {
        let values = readings.iter().map(|reading| reading[number].as_ref());
        (name, array_of(value_type, values), true)
    });
    RecordBatch::try_from_iter_with_nullable(columns).expect("columns of one length")
}

/// The rows of a further table: some columns of the readings, sorted by them.
pub(super) fn further_rows(subject: &Subject, columns: &[Parameter]) -> RecordBatch {
    let places: Vec<usize> = columns.iter().map(|column| place(subject, &column.name)).collect();
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

pub(super) fn many_rows(subject: &Subject) -> Vec<RecordBatch> {
    let rows = subject.keeps.many_rows;
    let chunk = |start: i64| {
        let ids = start..(start + 10_000).min(rows);
        RecordBatch::try_from_iter([
            ("id", array_of(Type::Integer, ids.clone().map(ValueRef::Integer))),
            ("value", array_of(Type::Double, ids.map(|id| ValueRef::Double(id as f64)))),
        ])
        .expect("columns of one length")
    };
    (0..rows).step_by(10_000).map(chunk).collect()
}

pub(super) fn load(driver: &dyn Driver, table: &str, batches: Vec<RecordBatch>) -> Result<u64, DriverError> {
    let schema = batches[0].schema();
    let progress = Progress::default();
    driver.load(table, Box::new(RecordBatchIterator::new(batches.into_iter().map(Ok), schema)), &progress)?;
    Ok(progress.rows())
}

pub(super) fn open(subject: &Subject) -> Box<dyn Driver> {
    subject.database.open(&TargetUrl::parse(&subject.url).unwrap()).expect("the target opens")
}
