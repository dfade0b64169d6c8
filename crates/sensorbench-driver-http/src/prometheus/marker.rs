//! The marker of a namespace, and its generation.
//!
//! What Prometheus has removed it does not take again: samples of the same series and times stay hidden, and late samples are not removed
//! before a compaction. Each time when a namespace is created, its metrics have names that were never used: `<namespace>:g<ms>:NAME`.
//! The samples of `<namespace>:sensorbench` say what holds, the last of them: `mark` and `generation`, or `removed`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sensorbench_driver::{DriverError, Marker, Occupant};

use super::api;
use crate::connection::Call;
use crate::control::Control;
use crate::samples::{append_series, compressed};
use crate::times::now_ms;

const MARK: &str = "sensorbench";
/// What a generation looks like, as a regular expression.
const GENERATION: &str = "g[0-9]{13}";

/// What the last marker says.
#[derive(Debug, PartialEq)]
pub enum State {
    /// There is none.
    Unmarked,
    /// It was removed: what has samples yet is hidden from everybody.
    Removed,
    /// Somebody else's, or ours.
    Marked { text: Option<String>, generation: Option<String> },
}

/// Where the metrics of a namespace are.
pub fn metrics_of(namespace: &str) -> String {
    format!("{{__name__=~\"{namespace}:{GENERATION}:.+\"}}")
}

fn mark_name(namespace: &str) -> String {
    format!("{namespace}:{MARK}")
}

/// The last marker and its time in ms.
fn last(control: &Control, namespace: &str) -> Result<(State, i64), DriverError> {
    let found = api::last_times(control, &format!("{{__name__=\"{}\"}}", mark_name(namespace)))?;
    let Some((series, time_s)) = found.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b)) else {
        return Ok((State::Unmarked, 0));
    };
    let mut labels = series.metric;
    let state = if labels.contains_key("removed") {
        State::Removed
    } else {
        let text =
            labels.remove("mark").and_then(|text| STANDARD.decode(text).ok()).and_then(|text| String::from_utf8(text).ok());
        State::Marked { text, generation: labels.remove("generation") }
    };
    Ok((state, (time_s * 1000.0).round() as i64))
}

pub fn state(control: &Control, namespace: &str) -> Result<State, DriverError> {
    last(control, namespace).map(|(state, _)| state)
}

/// The generation of a namespace that is ours.
pub fn generation(control: &Control) -> Result<String, DriverError> {
    match state(control, &control.target.namespace)? {
        State::Marked { generation: Some(generation), .. } => Ok(generation),
        _ => {
            let message = format!("the metrics of {} have no marker of sensorbench any more", control.target.namespace);
            Err(DriverError::Namespace(message))
        }
    }
}

pub fn occupant(control: &Control) -> Result<Occupant, DriverError> {
    let namespace = &control.target.namespace;
    let foreign = || "somebody has metrics of such names".to_owned();
    let strangers = format!(
        "{{__name__=~\"{namespace}:.+\",__name__!~\"{namespace}:{GENERATION}:.+\",__name__!=\"{}\"}}",
        mark_name(namespace)
    );
    if !api::metric_names(control, &strangers)?.is_empty() {
        return Ok(Occupant::Foreign(foreign()));
    }
    match state(control, namespace)? {
        State::Removed => Ok(Occupant::Absent),
        State::Marked { text, .. } => Ok(Occupant::by_text(text.as_deref(), foreign)),
        State::Unmarked if api::metric_names(control, &metrics_of(namespace))?.is_empty() => Ok(Occupant::Absent),
        State::Unmarked => Ok(Occupant::Foreign(foreign())),
    }
}

/// Writes a marker, with a generation that was never used where none is given.
pub fn write(control: &Control, marker: &Marker, generation: Option<String>) -> Result<(), DriverError> {
    let time = next_time(control)?;
    let generation = generation.unwrap_or_else(|| format!("g{time:013}"));
    // Letters and digits, as all that a label of its own needs.
    let labels = BTreeMap::from([("generation", generation), ("mark", STANDARD.encode(marker.to_text()))]);
    write_sample(control, labels, time)
}

/// Says that what is there was removed.
pub fn write_removed(control: &Control) -> Result<(), DriverError> {
    write_sample(control, BTreeMap::from([("removed", "yes".to_owned())]), next_time(control)?)
}

/// After the last marker, whatever the clock says.
fn next_time(control: &Control) -> Result<i64, DriverError> {
    let (_, last) = last(control, &control.target.namespace)?;
    Ok(now_ms().max(last + 1))
}

fn write_sample(control: &Control, labels: BTreeMap<&str, String>, time_ms: i64) -> Result<(), DriverError> {
    let name = mark_name(&control.target.namespace);
    let mut all = vec![("__name__", Cow::Owned(name))];
    all.extend(labels.into_iter().map(|(label, text)| (label, Cow::Owned(text))));
    let mut series = Vec::new();
    append_series(&mut series, &all, time_ms, 1.0);
    control.answer(Call::remote_write(api::WRITE, compressed(&series))).map(drop)
}

/// The namespaces that are ours.
pub fn namespaces(control: &Control) -> Result<Vec<String>, DriverError> {
    let end = format!(":{MARK}");
    let mut ours = Vec::new();
    for name in api::metric_names(control, &format!("{{__name__=~\".+{end}\"}}"))? {
        let Some(namespace) = name.strip_suffix(&end).filter(|namespace| sensorbench_driver::is_namespace(namespace)) else {
            continue;
        };
        if let State::Marked { text: Some(text), .. } = state(control, namespace)?
            && Marker::parse(&text).is_some()
        {
            ours.push(namespace.to_owned());
        }
    }
    ours.sort_unstable();
    Ok(ours)
}
