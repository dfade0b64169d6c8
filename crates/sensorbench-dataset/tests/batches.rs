//! Batches of any readings, in any encoding, give back what the rule says: sorted by time, of equal times the last one, bit for
//! bit. Bytes that are not a batch do no harm.

use std::collections::BTreeMap;

use arrow_array::{RecordBatch, RecordBatchIterator};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use sensorbench_dataset::encoding::{BatchEncoding, BatchError, decode_batch, encode_batch};
use sensorbench_dataset::{BatchedRows, Batching, Column, Every, Type, ValueRef, array_of};

const ENCODINGS: [BatchEncoding; 3] = [BatchEncoding::Text, BatchEncoding::Packed, BatchEncoding::Gorilla];
const MAX_READINGS: usize = 400;

/// What a batch stores: the bits of the values by time. A later reading takes the place of an earlier one.
type Stored = BTreeMap<i64, u64>;

fn stored(readings: &[(i64, f64)]) -> Stored {
    readings.iter().map(|(time, value)| (*time, value.to_bits())).collect()
}

fn encoded(encoding: BatchEncoding, readings: &[(i64, f64)]) -> Vec<u8> {
    let (times, values): (Vec<_>, Vec<_>) = readings.iter().copied().unzip();
    let mut bytes = Vec::new();
    encode_batch(encoding, &times, &values, &mut bytes).unwrap();
    bytes
}

fn decoded(encoding: BatchEncoding, bytes: &[u8]) -> Result<Vec<(i64, u64)>, BatchError> {
    let mut readings = Vec::new();
    decode_batch(encoding, bytes, |time, value| readings.push((time, value.to_bits()))).map(|()| readings)
}

/// Bytes that may not be a batch give fewer readings than they have bits, or an error.
fn decodes_without_harm(encoding: BatchEncoding, bytes: &[u8]) {
    let mut readings = 0;
    let _ = decode_batch(encoding, bytes, |_, _| readings += 1);
    assert!(readings <= bytes.len() * 8, "{readings} readings out of {} bytes", bytes.len());
}

fn value() -> impl Strategy<Value = f64> {
    let nan = (1u64..1 << 52, select(vec![0x7ffu64, 0xfff])).prop_map(|(payload, sign)| f64::from_bits(sign << 52 | payload));
    prop_oneof![
        4 => (2_100..2_120).prop_map(|hundredths| f64::from(hundredths) / 100.0),
        4 => any::<u64>().prop_map(f64::from_bits),
        2 => (0u64..8).prop_map(|units| f64::from_bits(1.0f64.to_bits() + units)),
        2 => select(vec![0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, f64::MIN_POSITIVE, f64::EPSILON]),
        1 => nan,
        1 => (0u64..1 << 52).prop_map(f64::from_bits),
    ]
}

fn times() -> impl Strategy<Value = Vec<i64>> {
    let count = 0..=MAX_READINGS;
    let evenly = |(start, step, count): (i64, i64, usize)| -> Vec<i64> {
        (0..count as i64).map(|number| start.wrapping_add(number * step)).collect()
    };
    let regular = (any::<i64>(), 1..=86_400_000_000i64, count.clone()).prop_map(evenly);
    let late = |(start, max, noise): (i64, u64, Vec<u64>)| -> Vec<i64> {
        let time = |(number, noise): (usize, &u64)| start.wrapping_add(number as i64 * 60_000_000 + (noise % max) as i64);
        noise.iter().enumerate().map(time).collect()
    };
    let jitter = select(vec![10, 1_000, 1_000_000, 10_000_000_000]);
    let jittered = (any::<i64>(), jitter, vec(any::<u64>(), count.clone())).prop_map(late);
    let extreme = select(vec![i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX]);
    let arbitrary = vec(prop_oneof![9 => any::<i64>(), 1 => extreme], count.clone());
    let often_equal = vec(0..100i64, count);
    prop_oneof![regular, jittered, arbitrary, often_equal]
}

fn readings() -> impl Strategy<Value = Vec<(i64, f64)>> {
    let ordered = times().prop_map(|mut times| {
        times.sort_unstable();
        times
    });
    prop_oneof![ordered, times(), times().prop_shuffle()]
        .prop_flat_map(|times| (vec(value(), times.len()), Just(times)))
        .prop_map(|(values, times)| times.into_iter().zip(values).collect())
}

/// A failing input is printed, not kept in a file.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn readings_come_back_as_the_rule_says(readings in readings()) {
        for encoding in ENCODINGS {
            let expected: Vec<_> = stored(&readings).into_iter().collect();
            prop_assert_eq!(decoded(encoding, &encoded(encoding, &readings)).unwrap(), expected, "{:?}", encoding);
        }
    }

    #[test]
    fn prefixes_and_changed_bytes_do_no_harm(readings in readings(), at in any::<Index>(), flip in 1u8..) {
        for encoding in ENCODINGS {
            let mut bytes = encoded(encoding, &readings);
            if bytes.is_empty() {
                continue;
            }
            let at = at.index(bytes.len());
            decodes_without_harm(encoding, &bytes[..at]);
            if encoding != BatchEncoding::Text {
                prop_assert_eq!(decoded(encoding, &bytes[..at]), Err(BatchError::Malformed));
            }
            bytes[at] ^= flip;
            decodes_without_harm(encoding, &bytes);
        }
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in vec(any::<u8>(), 0..200), letters in "[0-9+:,.einfa-]{0,40}") {
        for encoding in ENCODINGS {
            decodes_without_harm(encoding, &bytes);
            decodes_without_harm(encoding, letters.as_bytes());
        }
    }
}

/// A row of several sensors' readings.
#[derive(Clone, Debug)]
struct Row {
    site: &'static str,
    sensor: i64,
    time: i64,
    value: f64,
}

/// What makes a batch: site, sensor, start of the time bucket.
type Group = (String, i64, i64);

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let time = prop_oneof![8 => -5_000_000..5_000_000i64, 1 => any::<i64>()];
    let row = (select(vec!["", "north", "süd"]), 0..3i64, time, value());
    let unsorted = vec(row.prop_map(|(site, sensor, time, value)| Row { site, sensor, time, value }), 0..2_500).boxed();
    let by_group = unsorted.clone().prop_map(|mut rows| {
        rows.sort_by_key(|row| (row.site, row.sensor, row.time.div_euclid(1_000_000)));
        rows
    });
    let sorted = unsorted.clone().prop_map(|mut rows| {
        rows.sort_by_key(|row| (row.site, row.sensor, row.time));
        rows
    });
    prop_oneof![sorted, by_group, unsorted]
}

fn every() -> impl Strategy<Value = Every> {
    prop_oneof![
        (1..3_000_000i64).prop_map(Every::Microseconds),
        Just(Every::Microseconds(1_000)),
        (1..20u32).prop_map(Every::Months),
    ]
}

/// Rows of one group and time bucket that follow one another are a batch.
fn expected_batches(rows: &[Row], every: Every) -> Vec<(Group, Stored)> {
    let mut batches: Vec<(Group, Stored)> = Vec::new();
    for row in rows {
        let group = (row.site.to_owned(), row.sensor, every.floor(row.time));
        if batches.last().is_none_or(|(last, _)| *last != group) {
            batches.push((group, Stored::new()));
        }
        batches.last_mut().unwrap().1.insert(row.time, row.value.to_bits());
    }
    batches
}

fn record_batch(rows: &[Row]) -> RecordBatch {
    RecordBatch::try_from_iter([
        ("site", array_of(Type::Text, rows.iter().map(|row| ValueRef::Text(row.site)))),
        ("sensor", array_of(Type::Integer, rows.iter().map(|row| ValueRef::Integer(row.sensor)))),
        ("time", array_of(Type::Timestamp, rows.iter().map(|row| ValueRef::Timestamp(row.time)))),
        ("value", array_of(Type::Double, rows.iter().map(|row| ValueRef::Double(row.value)))),
    ])
    .unwrap()
}

/// What rows become that come `input` at a time.
fn batches_of(rows: &[Row], input: usize, every: Every, encoding: BatchEncoding) -> Vec<(Group, Stored)> {
    let batching = Batching {
        encoding,
        group: vec!["site".to_owned(), "sensor".to_owned()],
        time: "time".to_owned(),
        value: "value".to_owned(),
        every,
        start_column: "start".to_owned(),
        bytes_column: "readings".to_owned(),
    };
    let input: Vec<_> = rows.chunks(input).map(|rows| Ok(record_batch(rows))).collect();
    let input = RecordBatchIterator::new(input, record_batch(&[]).schema());
    let mut batches = Vec::new();
    for output in BatchedRows::new(input, batching).unwrap() {
        let output = output.unwrap();
        let columns = ["site", "sensor", "start", "readings"].map(|name| Column::of(&output, name).unwrap());
        for row in 0..output.num_rows() {
            let [ValueRef::Text(site), ValueRef::Integer(sensor), ValueRef::Timestamp(start), ValueRef::Bytes(bytes)] =
                columns.map(|column| column.value(row))
            else {
                panic!("unexpected types")
            };
            let readings = decoded(encoding, bytes).unwrap();
            assert!(readings.is_sorted_by(|earlier, later| earlier.0 < later.0));
            batches.push(((site.to_owned(), sensor, start), readings.into_iter().collect()));
        }
    }
    batches
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..config() })]

    #[test]
    fn batched_rows_keep_all_readings(rows in rows(), input in 1..700usize, every in every(), encoding in select(&ENCODINGS)) {
        prop_assert_eq!(batches_of(&rows, input, every, encoding), expected_batches(&rows, every));
    }
}
