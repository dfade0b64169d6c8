//! A file of samples in the text of OpenMetrics, of which `promtool tsdb create-blocks-from openmetrics` makes blocks.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use arrow_array::RecordBatchReader;
use sensorbench_dataset::Column;
use sensorbench_driver::{ConversionError, DriverError, Progress};

use crate::points::Points;
use crate::samples::{METRIC_LABEL, for_each};
use crate::times::now_ms;

/// What is younger may be in the server's head, beside which no blocks may be put (Prometheus documentation, Storage > Backfilling).
const HEAD_MS: i64 = 3 * 3_600_000;
const END: &[u8] = b"# EOF\n";

pub fn write(
    points: &Points,
    prefix: &str,
    rows: Box<dyn RecordBatchReader + Send>,
    file: &Path,
    progress: &Progress,
) -> Result<(), DriverError> {
    let failed = |error: std::io::Error| DriverError::Data(format!("{}: {error}", file.display()));
    let refused = |error: ConversionError| DriverError::Data(format!("{}: {error}", points.measurement));
    let mut output = BufWriter::with_capacity(1 << 20, File::create(file).map_err(failed)?);
    let last_ms = now_ms() - HEAD_MS;
    let mut lines = Vec::new();
    for batch in rows {
        progress.check()?;
        let (batch, start) = (batch.map_err(|error| DriverError::Data(error.to_string()))?, Instant::now());
        let column = |name: &String| Column::of(&batch, name).map_err(|error| DriverError::Data(error.to_string()));
        let columns: Vec<Column> = points.columns.iter().map(|named| column(&named.name)).collect::<Result<_, _>>()?;
        for row in 0..batch.num_rows() {
            lines.clear();
            let mut latest = i64::MIN;
            let visited = for_each(
                points,
                prefix,
                |place| columns[place].value(row),
                |labels, time, value| {
                    latest = time;
                    append_line(&mut lines, labels, time, value);
                },
            );
            visited.map_err(refused)?;
            if latest > last_ms {
                let message = "a reading is less than 3 hours old, and blocks of such readings would lie beside the server's head; leave load=blocks out";
                return Err(refused(ConversionError(message.to_owned())));
            }
            output.write_all(&lines).map_err(failed)?;
        }
        progress.add_batch(batch.num_rows() as u64, start.elapsed());
    }
    output.write_all(END).map_err(failed)?;
    output.flush().map_err(failed)
}

fn append_line(line: &mut Vec<u8>, labels: &[(&str, Cow<str>)], time_ms: i64, value: f64) {
    let metric = labels.iter().find(|(name, _)| *name == METRIC_LABEL).map_or("", |(_, name)| name);
    line.extend_from_slice(metric.as_bytes());
    let mut separator = b'{';
    for (name, text) in labels.iter().filter(|(name, _)| *name != METRIC_LABEL) {
        line.push(separator);
        separator = b',';
        line.extend_from_slice(name.as_bytes());
        line.extend_from_slice(b"=\"");
        append_escaped(line, text);
        line.push(b'"');
    }
    if separator == b',' {
        line.push(b'}');
    }
    line.push(b' ');
    let written = match value {
        _ if value.is_nan() => line.write_all(b"NaN"),
        f64::INFINITY => line.write_all(b"+Inf"),
        f64::NEG_INFINITY => line.write_all(b"-Inf"),
        // The shortest text that is this double again.
        _ => write!(line, "{value:e}"),
    };
    // A time is a number of seconds that promtool multiplies by 1,000 as a double, and cuts to whole ms: the half ms keeps the product from falling
    // short of the ms that is meant.
    let timed = writeln!(line, " {}.{:03}5", time_ms / 1000, time_ms % 1000);
    written.and(timed).expect("memory takes all that is written");
}

fn append_escaped(line: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'\\' => line.extend_from_slice(b"\\\\"),
            b'"' => line.extend_from_slice(b"\\\""),
            b'\n' => line.extend_from_slice(b"\\n"),
            _ => line.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(labels: &[(&str, &str)], time_ms: i64, value: f64) -> String {
        let labels: Vec<_> = labels.iter().map(|(name, text)| (*name, Cow::Borrowed(*text))).collect();
        let mut line = Vec::new();
        append_line(&mut line, &labels, time_ms, value);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn labels_cannot_end_a_line() {
        let hostile = "x\"} 1\n\\ # EOF";
        assert_eq!(
            line(&[(METRIC_LABEL, "ours:m_v"), ("sensor", hostile), ("site", "5")], 1_600_000_000_123, 0.1),
            "ours:m_v{sensor=\"x\\\"} 1\\n\\\\ # EOF\",site=\"5\"} 1e-1 1600000000.1235\n"
        );
        assert_eq!(line(&[(METRIC_LABEL, "m")], 5, f64::NEG_INFINITY), "m -Inf 0.0055\n");
        assert_eq!(line(&[(METRIC_LABEL, "m")], 0, f64::NAN), "m NaN 0.0005\n");
    }

    #[test]
    fn every_ms_is_read_as_promtool_reads_it() {
        for time in (1_600_000_000_000..1_600_000_010_000_i64).chain([0, 1, 7_258_118_399_999]) {
            let text = line(&[(METRIC_LABEL, "m")], time, 1.0);
            let seconds: f64 = text.trim_end().rsplit(' ').next().unwrap().parse().unwrap();
            assert_eq!((seconds * 1000.0) as i64, time);
        }
    }
}
