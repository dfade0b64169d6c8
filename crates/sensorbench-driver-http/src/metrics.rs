//! A server's metrics of itself, as Prometheus writes them.

use std::collections::BTreeMap;

use sensorbench_driver::DriverError;

use crate::connection::Call;
use crate::control::Control;

/// A line of metrics.
#[derive(Debug, PartialEq)]
pub struct Sample {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub value: f64,
}

impl Sample {
    /// Name and labels as they are shown.
    pub fn shown(&self) -> String {
        let labels: Vec<_> = self.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if labels.is_empty() { self.name.clone() } else { format!("{}{{{}}}", self.name, labels.join(",")) }
    }
}

pub fn read(control: &Control) -> Result<Vec<Sample>, DriverError> {
    let reply = control.answer(Call::get("/metrics"))?;
    Ok(String::from_utf8_lossy(&reply.body).lines().filter_map(sample).collect())
}

/// All samples that are numbers by their names, summed over buckets, shards and the like.
pub fn sums(control: &Control) -> Result<BTreeMap<String, f64>, DriverError> {
    let mut sums = BTreeMap::new();
    for sample in read(control)?.into_iter().filter(|sample| sample.value.is_finite()) {
        *sums.entry(sample.name).or_insert(0.0) += sample.value;
    }
    Ok(sums)
}

/// A line, or None if it is none.
fn sample(line: &str) -> Option<Sample> {
    if line.starts_with('#') {
        return None;
    }
    let (before, value) = line.trim().rsplit_once(' ')?;
    let (name, labels) =
        before.split_once('{').map_or((before, ""), |(name, rest)| (name, rest.strip_suffix('}').unwrap_or(rest)));
    let mut read = BTreeMap::new();
    let mut rest = labels;
    while let Some((label, after)) = rest.split_once("=\"") {
        let end = closing_quote(after)?;
        let value = after[..end].replace("\\\"", "\"").replace("\\n", "\n").replace("\\\\", "\\");
        read.insert(label.trim_start_matches([',', ' ']).to_owned(), value);
        rest = &after[end + 1..];
    }
    Some(Sample { name: name.trim().to_owned(), labels: read, value: value.parse().ok()? })
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        match byte {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let read = sample("vm_rows{type=\"storage/small\", x=\"a \\\"b\\\", {c}\"} 1.5e3").unwrap();
        assert_eq!((read.name.as_str(), read.value), ("vm_rows", 1500.0));
        assert_eq!(read.shown(), "vm_rows{type=storage/small,x=a \"b\", {c}}");
        assert_eq!(sample("process_open_fds 7").unwrap().shown(), "process_open_fds");
        assert!(sample("# HELP x").is_none() && sample("").is_none() && sample("x{a=\"b} 1").is_none());
    }
}
