//! Parts of generated rows, made by any number of threads and given in order.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, RecordBatch, RecordBatchReader, StringArray, TimestampMicrosecondArray,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};

/// Rows in parts. The bytes of a part depend on nothing but its number and what the generator was made with.
pub trait Parts: Send + Sync {
    /// Number of parts.
    fn parts(&self) -> usize;

    /// The rows of one part.
    fn part(&self, number: usize) -> RecordBatch;

    /// The columns of all parts: those of measurements, where a generator does not say otherwise.
    fn schema(&self) -> SchemaRef {
        measurement_schema()
    }
}

/// The columns of measurements: site, zone, sensor, time, value.
pub fn measurement_schema() -> SchemaRef {
    let sensor = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    Arc::new(Schema::new(vec![
        Field::new("site", DataType::Int32, false),
        Field::new("zone", DataType::Int32, false),
        Field::new("sensor", sensor, false),
        Field::new("time", DataType::Timestamp(TimeUnit::Microsecond, None), false),
        Field::new("value", DataType::Float64, false),
    ]))
}

/// Measurements of one sensor as an Arrow batch: `times` in µs and as many `values`.
pub(super) fn measurements(site: i32, zone: i32, sensor: &str, times: Vec<i64>, values: Vec<f64>) -> RecordBatch {
    let rows = times.len();
    let sensors = DictionaryArray::<Int32Type>::new(Int32Array::from(vec![0; rows]), Arc::new(StringArray::from(vec![sensor])));
    let columns: [ArrayRef; 5] = [
        Arc::new(Int32Array::from(vec![site; rows])),
        Arc::new(Int32Array::from(vec![zone; rows])),
        Arc::new(sensors),
        Arc::new(TimestampMicrosecondArray::from(times)),
        Arc::new(Float64Array::from(values)),
    ];
    RecordBatch::try_new(measurement_schema(), columns.to_vec()).expect("columns of the schema, of one length")
}

/// Gives parts of a generator in order. `threads` of them are made at a time.
pub struct GeneratedRows {
    parts: Arc<dyn Parts>,
    threads: usize,
    numbers: Range<usize>,
    ready: VecDeque<RecordBatch>,
}

impl GeneratedRows {
    /// All parts, made by at least one thread.
    pub fn new(parts: Arc<dyn Parts>, threads: usize) -> Self {
        let numbers = 0..parts.parts();
        Self::range(parts, numbers, threads)
    }

    /// The parts with these numbers, of which those that there are not have no rows.
    pub fn range(parts: Arc<dyn Parts>, numbers: Range<usize>, threads: usize) -> Self {
        let numbers = numbers.start..numbers.end.min(parts.parts());
        Self { parts, threads: threads.max(1), numbers, ready: VecDeque::new() }
    }

    fn make_ready(&mut self) {
        let numbers = self.numbers.start..self.numbers.end.min(self.numbers.start + self.threads);
        self.numbers.start = numbers.end;
        if numbers.len() <= 1 {
            self.ready.extend(numbers.map(|number| self.parts.part(number)));
            return;
        }
        let parts = &self.parts;
        let made: Vec<RecordBatch> = std::thread::scope(|scope| {
            let threads: Vec<_> = numbers.map(|number| scope.spawn(move || parts.part(number))).collect();
            threads.into_iter().map(|thread| thread.join().expect("a part is made without panic")).collect()
        });
        self.ready.extend(made);
    }
}

impl Iterator for GeneratedRows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty() {
            self.make_ready();
        }
        self.ready.pop_front().map(Ok)
    }
}

impl RecordBatchReader for GeneratedRows {
    fn schema(&self) -> SchemaRef {
        self.parts.schema()
    }
}
