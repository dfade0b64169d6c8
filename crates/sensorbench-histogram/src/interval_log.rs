//! The HdrHistogram V2 interval log: one line an interval and tag, readable by HdrHistogram's own log processors.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, LogIteratorError, Tag};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};
use thiserror::Error;

use crate::Latencies;

/// Milliseconds per nanosecond, inverted: the log's "max" column is in milliseconds, as its tools print it.
const MAX_VALUE_DIVISOR: f64 = 1_000_000.0;

/// One line of an interval log.
#[derive(Clone, Debug, PartialEq)]
pub struct TaggedInterval {
    /// What was measured, for example `measure.get_peak_data.response`.
    pub tag: String,
    /// Start of the interval on the run's clock.
    pub start: Duration,
    /// How long the interval lasted.
    pub length: Duration,
    /// What was counted in it.
    pub latencies: Latencies,
}

/// An interval log that cannot be written or read.
#[derive(Debug, Error)]
pub enum IntervalLogError {
    /// A tag with a comma, a blank or a line end, which the format cannot hold.
    #[error("tag {0:?} of an interval log must have no comma, blank or line end")]
    Tag(String),
    /// Text that is not an interval log.
    #[error("not an HdrHistogram interval log: {0}")]
    Format(String),
}

/// The lines with which a log begins.
pub fn interval_log_header() -> String {
    written(|_| Ok(())).expect("a header has no tag")
}

/// One line for one interval.
pub fn interval_log_line(interval: &TaggedInterval) -> Result<String, IntervalLogError> {
    let with_header = written(|writer| {
        let tag = Tag::new(&interval.tag).ok_or_else(|| IntervalLogError::Tag(interval.tag.clone()))?;
        writer
            .write_histogram(&interval.latencies.0, interval.start, interval.length, Some(tag))
            .map_err(|error| IntervalLogError::Format(error.to_string()))
    })?;
    let line_start = with_header.trim_end().rfind('\n').map_or(0, |at| at + 1);
    Ok(with_header[line_start..].to_owned())
}

type Writer<'a, 'b> = hdrhistogram::serialization::interval_log::IntervalLogWriter<'a, 'b, Vec<u8>, V2DeflateSerializer>;

fn written(body: impl FnOnce(&mut Writer) -> Result<(), IntervalLogError>) -> Result<String, IntervalLogError> {
    let mut text = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut writer = IntervalLogWriterBuilder::new()
        .add_comment("[Latencies in nanoseconds; interval max in milliseconds]")
        .with_max_value_divisor(MAX_VALUE_DIVISOR)
        .begin_log_with(&mut text, &mut serializer)
        .expect("writing to memory does not fail");
    body(&mut writer)?;
    Ok(String::from_utf8(text).expect("an interval log is ASCII but for its tags, which are UTF-8"))
}

/// Every interval of a log, in the order of its lines.
pub fn read_interval_log(text: &str) -> Result<Vec<TaggedInterval>, IntervalLogError> {
    let mut deserializer = Deserializer::new();
    let mut intervals = Vec::new();
    for entry in IntervalLogIterator::new(text.as_bytes()) {
        let entry = entry.map_err(|LogIteratorError::ParseError { offset }| {
            IntervalLogError::Format(format!("what begins at byte {offset} cannot be read"))
        })?;
        let LogEntry::Interval(line) = entry else { continue };
        intervals.push(TaggedInterval {
            tag: line.tag().map_or("", |tag| tag.as_str()).to_owned(),
            start: line.start_timestamp(),
            length: line.duration(),
            latencies: Latencies(decoded(line.encoded_histogram(), &mut deserializer)?),
        });
    }
    Ok(intervals)
}

/// A log with one line for each tag of another log: all its intervals together, from the first start to the last end.
pub fn summed_interval_log(text: &str) -> Result<String, IntervalLogError> {
    let mut sums: Vec<TaggedInterval> = Vec::new();
    for interval in read_interval_log(text)? {
        match sums.iter_mut().find(|sum| sum.tag == interval.tag) {
            None => sums.push(interval),
            Some(sum) => {
                let end = (sum.start + sum.length).max(interval.start + interval.length);
                sum.start = sum.start.min(interval.start);
                sum.length = end - sum.start;
                sum.latencies.merge(&interval.latencies);
            }
        }
    }
    sums.iter().map(interval_log_line).try_fold(interval_log_header(), |log, line| Ok(log + &line?))
}

fn decoded(encoded: &str, deserializer: &mut Deserializer) -> Result<hdrhistogram::Histogram<u64>, IntervalLogError> {
    let bytes = BASE64.decode(encoded).map_err(|error| IntervalLogError::Format(error.to_string()))?;
    let mut histogram: hdrhistogram::Histogram<u64> =
        deserializer.deserialize(&mut bytes.as_slice()).map_err(|error| IntervalLogError::Format(error.to_string()))?;
    histogram.auto(true);
    Ok(histogram)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(tag: &str, start_s: u64, values: &[u64]) -> TaggedInterval {
        let mut latencies = Latencies::default();
        values.iter().for_each(|value| latencies.record(*value));
        TaggedInterval { tag: tag.to_owned(), start: Duration::from_secs(start_s), length: Duration::from_secs(1), latencies }
    }

    #[test]
    fn what_was_written_is_read_again() {
        let intervals = [interval("measure.read.response", 0, &[5, 1_000, 1_000_000]), interval("measure.read.service", 1, &[7])];
        let mut text = interval_log_header();
        for interval in &intervals {
            text += &interval_log_line(interval).unwrap();
        }
        assert_eq!(read_interval_log(&text).unwrap(), intervals);
    }

    #[test]
    fn logs_can_be_joined_end_to_end() {
        let part = |start_s| interval_log_header() + &interval_log_line(&interval("a", start_s, &[1])).unwrap();
        assert_eq!(read_interval_log(&(part(0) + &part(1))).unwrap().len(), 2);
    }

    #[test]
    fn intervals_of_a_tag_are_summed_up() {
        let intervals = [interval("b", 2, &[5, 1_000]), interval("a", 0, &[7]), interval("b", 0, &[5]), interval("b", 1, &[])];
        let text = intervals.iter().fold(interval_log_header(), |text, interval| text + &interval_log_line(interval).unwrap());
        let whole =
            |tag, length_s, values: &[u64]| TaggedInterval { length: Duration::from_secs(length_s), ..interval(tag, 0, values) };
        let summed = read_interval_log(&summed_interval_log(&text).unwrap()).unwrap();
        assert_eq!(summed, [whole("b", 3, &[5, 5, 1_000]), whole("a", 1, &[7])]);
        assert!(summed_interval_log("nonsense\n").is_err());
    }

    #[test]
    fn a_tag_that_the_format_cannot_hold_is_refused() {
        assert!(matches!(interval_log_line(&interval("a,b", 0, &[1])), Err(IntervalLogError::Tag(_))));
    }
}
