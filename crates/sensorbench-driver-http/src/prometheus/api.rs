//! What the server answers to questions of the driver's own, none of which is measured.

use std::collections::BTreeMap;

use percent_encoding::utf8_percent_encode;
use sensorbench_driver::DriverError;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::connection::{Call, ENCODED};
use crate::control::Control;

/// Where samples are written.
pub const WRITE: &str = "/api/v1/write";

/// A stretch of time, and its end in s, that have every sample which the driver writes: from before 1970 to the end of 2199. PromQL has no stretch
/// longer than 292 years.
const EVER: &str = "[290y]";
const END_S: i64 = 7_258_118_399;

#[derive(Deserialize)]
struct Envelope<T> {
    data: T,
}

#[derive(Deserialize)]
struct Answer {
    result: Vec<Series>,
}

/// A series of a vector, or of a matrix.
#[derive(Deserialize)]
pub struct Series {
    pub metric: BTreeMap<String, String>,
    /// A time in s, and a value as text.
    #[serde(default)]
    pub value: Option<(f64, String)>,
}

impl Series {
    /// The metric's name.
    pub fn name(&self) -> Option<&str> {
        self.metric.get("__name__").map(String::as_str)
    }
}

/// What a path of the API answers.
pub fn read<T: DeserializeOwned>(control: &Control, path: &str) -> Result<T, DriverError> {
    let reply = control.answer(Call::get(format!("/api/v1/{path}")))?;
    let envelope: Result<Envelope<T>, _> = serde_json::from_slice(&reply.body);
    envelope.map(|envelope| envelope.data).map_err(|error| other_answer(control, error))
}

pub fn other_answer(control: &Control, problem: impl std::fmt::Display) -> DriverError {
    control.target.unreachable(format!("it does not answer as Prometheus does: {problem}"))
}

/// The answer to a query at a time in s.
pub fn query(control: &Control, promql: &str, time_s: i64) -> Result<Vec<Series>, DriverError> {
    let encoded = utf8_percent_encode(promql, ENCODED);
    read::<Answer>(control, &format!("query?query={encoded}&time={time_s}")).map(|answer| answer.result)
}

/// The time in s of the last sample of each series that a selector has.
pub fn last_times(control: &Control, selector: &str) -> Result<Vec<(Series, f64)>, DriverError> {
    // A function drops the name of a metric; `timestamp` of a subquery does, too: so the last samples are asked for as they are.
    #[derive(Deserialize)]
    struct Matrix {
        result: Vec<Samples>,
    }
    #[derive(Deserialize)]
    struct Samples {
        metric: BTreeMap<String, String>,
        values: Vec<(f64, String)>,
    }
    let encoded = utf8_percent_encode(&format!("{selector}{EVER}"), ENCODED).to_string();
    let answer: Matrix = read(control, &format!("query?query={encoded}&time={END_S}"))?;
    let last = |samples: Samples| Some((Series { metric: samples.metric, value: None }, samples.values.last()?.0));
    Ok(answer.result.into_iter().filter_map(last).collect())
}

/// The names of the metrics that have samples, each once.
pub fn metric_names(control: &Control, selector: &str) -> Result<Vec<String>, DriverError> {
    let found = query(control, &format!("group by (__name__) (last_over_time({selector}{EVER}))"), END_S)?;
    Ok(found.iter().filter_map(Series::name).map(str::to_owned).collect())
}

/// How many samples there are.
pub fn count(control: &Control, selector: &str) -> Result<u64, DriverError> {
    let found = query(control, &format!("sum(count_over_time({selector}{EVER}))"), END_S)?;
    // Of no samples it answers nothing.
    let Some((_, counted)) = found.first().and_then(|series| series.value.as_ref()) else { return Ok(0) };
    let counted: f64 = counted.parse().map_err(|_| other_answer(control, format!("it counts {counted} samples")))?;
    Ok(counted as u64)
}

/// The server's flags.
pub fn flags(control: &Control) -> Result<BTreeMap<String, String>, DriverError> {
    read(control, "status/flags")
}

/// A setting of its file, whatever section it is in.
pub fn setting(control: &Control, name: &str) -> Result<Option<String>, DriverError> {
    #[derive(Deserialize)]
    struct Config {
        yaml: String,
    }
    let config: Config = read(control, "status/config")?;
    let found = config.yaml.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
    Ok(found.map(str::to_owned))
}

/// A duration as Prometheus writes it, in ms: `2h`, `1d12h`, `200y`.
pub fn duration_ms(text: &str) -> Option<i64> {
    let day = 86_400_000;
    let units = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", day), ("w", 7 * day), ("y", 365 * day)];
    let mut rest = text;
    let mut total = 0_i64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: i64 = rest[..digits].parse().ok()?;
        let unit_length = rest[digits..].find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len() - digits);
        let (_, ms) = units.iter().find(|(unit, _)| *unit == &rest[digits..digits + unit_length])?;
        total = total.checked_add(number.checked_mul(*ms)?)?;
        rest = &rest[digits + unit_length..];
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        for (text, expected) in [
            ("2h", Some(7_200_000)),
            ("1d12h", Some(129_600_000)),
            ("200y", Some(6_307_200_000_000)),
            ("5ms", Some(5)),
            ("h", None),
            ("3x", None),
        ] {
            assert_eq!(duration_ms(text), expected, "{text}");
        }
    }
}
