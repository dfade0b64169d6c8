//! Points as samples of Prometheus' remote write 1.0: protobuf (`prompb/remote.proto`, `prompb/types.proto`), compressed by Snappy. The four
//! messages that are needed are written here by themselves, straight from the columns of a row:
//!
//! ```proto
//! message WriteRequest { repeated TimeSeries timeseries = 1; }
//! message TimeSeries { repeated Label labels = 1; repeated Sample samples = 2; }
//! message Label { string name = 1; string value = 2; }
//! message Sample { double value = 1; int64 timestamp = 2; }
//! ```
//!
//! A request is all its series, one after the other: what is appended for each point needs no frame around it.

use std::borrow::Cow;

use sensorbench_driver::{ConversionError, ValueRef};

use crate::line::exact_in_double;
use crate::points::{Name, Points, all_or_nothing};
use crate::times::next_ms;

pub const METRIC_LABEL: &str = "__name__";
/// The NaN that is a value. Another one, of all NaN, is the mark of a series that has ended, and would not be a sample.
const NAN_BITS: u64 = 0x7ff8_0000_0000_0001;
/// Tags of fields in protobuf: the number of a field, and whether it has a length, eight bytes or a varint.
const FIRST_WITH_LENGTH: u8 = 1 << 3 | 2;
const SECOND_WITH_LENGTH: u8 = 2 << 3 | 2;
const FIRST_OF_EIGHT_BYTES: u8 = 1 << 3 | 1;
const SECOND_VARINT: u8 = 2 << 3;

/// Appends the samples of a row, one for each of its fields, whose metrics are `<prefix>MEASUREMENT_FIELD`.
///
/// Fails with what a sample cannot hold; nothing is then appended.
pub fn append<'a>(
    points: &Points,
    data: &mut Vec<u8>,
    prefix: &str,
    value: impl Fn(usize) -> ValueRef<'a>,
) -> Result<(), ConversionError> {
    all_or_nothing(data, |data| for_each(points, prefix, value, |labels, time, value| append_series(data, labels, time, value)))
}

/// Visits the samples of a row, one for each of its fields: labels in the order of their names, the metric's own among them, the time in ms,
/// and the value. Fails with what a sample cannot hold.
pub fn for_each<'a>(
    points: &Points,
    prefix: &str,
    value: impl Fn(usize) -> ValueRef<'a>,
    mut visit: impl FnMut(&[(&str, Cow<str>)], i64, f64),
) -> Result<(), ConversionError> {
    let time = points.time(&value)?.unwrap_or_else(next_ms);
    let mut labels = Vec::with_capacity(points.tags.len() + 1);
    for (name, place) in &points.tags {
        labels.push((name.as_str(), label(value(*place), points.limits.max_tag_bytes).map_err(points.at(*place))?));
    }
    // The server wants them in the order of their names, and the metric's own is one of them.
    labels.push((METRIC_LABEL, Cow::Borrowed("")));
    labels.sort_unstable_by_key(|(name, _)| *name);
    let metric_place = labels.iter().position(|(name, _)| *name == METRIC_LABEL).expect("it was just added");
    for (name, place, _, field) in points.fields_of(&value)? {
        let field_name = match name {
            Name::Literal(name) => Cow::Borrowed(name.as_str()),
            Name::Column(name) => part_of_metric(value(*name)).map_err(points.at(*name))?,
        };
        labels[metric_place].1 = Cow::Owned(format!("{prefix}{}_{field_name}", points.measurement));
        visit(&labels, time, double(field).map_err(points.at(place))?);
    }
    Ok(())
}

/// One series with one sample.
pub fn append_series(data: &mut Vec<u8>, labels: &[(&str, Cow<str>)], time_ms: i64, value: f64) {
    let label_length =
        |name: &str, text: &str| 2 + varint_length(name.len()) + name.len() + varint_length(text.len()) + text.len();
    let sample_length = 10 + varint_length(time_ms as u64 as usize);
    let of_labels: usize =
        labels.iter().map(|(name, text)| label_length(name, text)).map(|length| 1 + varint_length(length) + length).sum();
    data.push(FIRST_WITH_LENGTH);
    push_varint(data, (of_labels + 2 + sample_length) as u64);
    for (name, text) in labels {
        data.push(FIRST_WITH_LENGTH);
        push_varint(data, label_length(name, text) as u64);
        for (tag, part) in [(FIRST_WITH_LENGTH, *name), (SECOND_WITH_LENGTH, text.as_ref())] {
            data.push(tag);
            push_varint(data, part.len() as u64);
            data.extend_from_slice(part.as_bytes());
        }
    }
    data.push(SECOND_WITH_LENGTH);
    push_varint(data, sample_length as u64);
    data.push(FIRST_OF_EIGHT_BYTES);
    data.extend_from_slice(&if value.is_nan() { NAN_BITS } else { value.to_bits() }.to_le_bytes());
    data.push(SECOND_VARINT);
    push_varint(data, time_ms as u64);
}

/// The body of a request.
pub fn compressed(series: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(series).expect("a batch is smaller than the 4 GiB that Snappy takes")
}

fn varint_length(value: usize) -> usize {
    (64 - (value as u64 | 1).leading_zeros() as usize).div_ceil(7)
}

fn push_varint(data: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        data.push(value as u8 | 0x80);
        value >>= 7;
    }
    data.push(value as u8);
}

fn label(value: ValueRef<'_>, max_bytes: usize) -> Result<Cow<'_, str>, ConversionError> {
    match value {
        ValueRef::Text("") => Err(ConversionError("an empty text cannot be a label: it is the same as none".to_owned())),
        ValueRef::Text(text) if text.len() > max_bytes => {
            Err(ConversionError(format!("a text of {} bytes cannot be a label: expected at most {max_bytes}", text.len())))
        }
        ValueRef::Text(text) => Ok(Cow::Borrowed(text)),
        ValueRef::Integer(_) | ValueRef::Boolean(_) => Ok(Cow::Owned(value.to_string())),
        other => Err(ConversionError(format!("{other} cannot be a label"))),
    }
}

/// A text that becomes the end of a metric's name. The server drops a series without a word whose name has other characters.
fn part_of_metric(value: ValueRef<'_>) -> Result<Cow<'_, str>, ConversionError> {
    match value {
        ValueRef::Text(text) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') => {
            Ok(Cow::Borrowed(text))
        }
        other => Err(ConversionError(format!("{other} cannot be in a metric's name; expected letters, digits and underscores"))),
    }
}

pub fn double(value: ValueRef) -> Result<f64, ConversionError> {
    match value {
        ValueRef::Double(value) => Ok(value),
        ValueRef::Boolean(value) => Ok(f64::from(u8::from(value))),
        ValueRef::Integer(value) | ValueRef::Timestamp(value) => exact_in_double(value).map(|value| value as f64),
        other => Err(ConversionError(format!("{other} cannot be the value of a sample, which is a number"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_written_as_protobuf_has_it() {
        let mut data = Vec::new();
        append_series(&mut data, &[("__name__", "m".into()), ("a", "xy".into())], 300, 1.5);
        // By prometheus/prompb of Prometheus 2.42: WriteRequest of the one series.
        let mut expected = vec![0x0a, 38, 0x0a, 13, 0x0a, 8];
        expected.extend_from_slice(b"__name__");
        expected.extend_from_slice(&[0x12, 1, b'm', 0x0a, 7, 0x0a, 1, b'a', 0x12, 2, b'x', b'y', 0x12, 12, 0x09]);
        expected.extend_from_slice(&1.5_f64.to_le_bytes());
        expected.extend_from_slice(&[0x10, 0xac, 0x02]);
        assert_eq!(data, expected);
        assert_eq!(snap::raw::Decoder::new().decompress_vec(&compressed(&data)).unwrap(), data);
    }

    #[test]
    fn no_nan_is_the_mark_of_a_series_that_has_ended() {
        let bits = |value: f64| {
            let mut data = Vec::new();
            append_series(&mut data, &[], 0, value);
            u64::from_le_bytes(data[5..13].try_into().unwrap())
        };
        assert_eq!(bits(f64::from_bits(0x7ff0_0000_0000_0002)), NAN_BITS);
        assert_eq!(bits(f64::NEG_INFINITY), f64::NEG_INFINITY.to_bits());
        assert_eq!(bits(-0.0), (-0.0_f64).to_bits());
    }

    #[test]
    fn numbers_have_as_many_bytes_as_they_are_said_to() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u32::MAX as usize, usize::MAX] {
            let mut data = Vec::new();
            push_varint(&mut data, value as u64);
            assert_eq!(data.len(), varint_length(value), "{value}");
        }
    }

    #[test]
    fn what_the_server_would_drop_is_refused() {
        assert!(label(ValueRef::Text(""), 10).is_err() && label(ValueRef::Text("12345678901"), 10).is_err());
        assert!(label(ValueRef::Null, 10).is_err() && label(ValueRef::Double(1.0), 10).is_err());
        assert_eq!(label(ValueRef::Integer(-7), 10).unwrap(), "-7");
        assert!(part_of_metric(ValueRef::Text("a-b")).is_err() && part_of_metric(ValueRef::Text("")).is_err());
        assert!(double(ValueRef::Integer((1 << 53) + 1)).is_err() && double(ValueRef::Text("1")).is_err());
        assert_eq!(double(ValueRef::Boolean(true)).unwrap(), 1.0);
    }
}
