//! The marker of a namespace, and its generation.
//!
//! What is deleted in HBase hides what is written in the same ms, and names of metrics stay. Each time when a namespace is created, its metrics
//! have names that were never used: `<namespace>.g<ms>.NAME`. The points of `<namespace>.sensorbench` say what holds, the last of them: the tags
//! `mark` and `generation`, or `removed`.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sensorbench_driver::{DriverError, Marker, Occupant};
use serde_json::json;

use super::api;
use crate::connection::Call;
use crate::control::Control;
use crate::times::now_ms;

const MARK: &str = "sensorbench";
const DIGITS: usize = 13;
/// Rows of HBase have keys of up to 32 KiB, and the name of a tag is one.
const MAX_MARK_BYTES: usize = 32_000;

/// What the last marker says.
#[derive(Debug, PartialEq)]
pub enum State {
    /// There is none.
    Unmarked,
    /// It was removed.
    Removed,
    /// Somebody else's, or ours.
    Marked { text: Option<String>, generation: Option<String> },
}

fn mark_name(namespace: &str) -> String {
    format!("{namespace}.{MARK}")
}

/// Whether a metric is one of a generation of a namespace.
fn is_of_generation(metric: &str, namespace: &str) -> bool {
    let rest = metric.strip_prefix(namespace).and_then(|rest| rest.strip_prefix(".g"));
    rest.and_then(|rest| rest.split_once('.'))
        .is_some_and(|(digits, _)| digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The last marker and its time in ms.
fn last(control: &Control, namespace: &str) -> Result<(State, i64), DriverError> {
    let query = json!({"metric": mark_name(namespace), "aggregator": "none"});
    let mut found: Option<(BTreeMap<String, String>, i64)> = None;
    for series in api::ask(control, &api::question(vec![query]))? {
        let times = series.dps.keys().filter_map(|time| time.parse::<i64>().ok());
        if let Some(time) = times.max()
            && found.as_ref().is_none_or(|(_, before)| time > *before)
        {
            found = Some((series.tags, time));
        }
    }
    let Some((mut tags, time)) = found else { return Ok((State::Unmarked, 0)) };
    let state = if tags.contains_key("removed") {
        State::Removed
    } else {
        let text = tags.remove("mark").and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
        State::Marked { text: text.and_then(|text| String::from_utf8(text).ok()), generation: tags.remove("generation") }
    };
    Ok((state, time))
}

pub fn state(control: &Control, namespace: &str) -> Result<State, DriverError> {
    last(control, namespace).map(|(state, _)| state)
}

/// What stands before the names of the namespace's metrics.
pub fn prefix(control: &Control) -> Result<String, DriverError> {
    let namespace = &control.target.namespace;
    match state(control, namespace)? {
        State::Marked { generation: Some(generation), .. } => Ok(format!("{namespace}.{generation}.")),
        _ => Err(DriverError::Namespace(format!("the metrics of {namespace} have no marker of sensorbench any more"))),
    }
}

pub fn occupant(control: &Control) -> Result<Occupant, DriverError> {
    let namespace = &control.target.namespace;
    let foreign = || "somebody has metrics of such names".to_owned();
    let mark = mark_name(namespace);
    let names = api::names(control, &format!("{namespace}."))?.into_iter().filter(|name| *name != mark);
    let (ours, strangers): (Vec<_>, Vec<_>) = names.partition(|name| is_of_generation(name, namespace));
    if api::count(control, &strangers)? > 0 {
        return Ok(Occupant::Foreign(foreign()));
    }
    match state(control, namespace)? {
        State::Removed => Ok(Occupant::Absent),
        State::Marked { text, .. } => Ok(Occupant::by_text(text.as_deref(), foreign)),
        State::Unmarked if api::count(control, &ours)? == 0 => Ok(Occupant::Absent),
        State::Unmarked => Ok(Occupant::Foreign(foreign())),
    }
}

/// Deletes the points of all generations, then says so: what is left of a removal that was cut short is still ours.
pub fn remove(control: &Control) -> Result<(), DriverError> {
    let namespace = &control.target.namespace;
    if state(control, namespace)? == State::Unmarked {
        return Ok(());
    }
    for name in api::names(control, &format!("{namespace}.g"))?.iter().filter(|name| is_of_generation(name, namespace)) {
        api::delete(control, name)?;
    }
    let time = next_time(control)?;
    write_point(control, BTreeMap::from([("removed", "yes".to_owned())]), time)
}

/// Writes a marker; it keeps the generation that there is, unless a new one begins.
pub fn write(control: &Control, marker: &Marker, begins: bool) -> Result<(), DriverError> {
    let time = next_time(control)?;
    let generation = match state(control, &control.target.namespace)? {
        State::Marked { generation: Some(generation), .. } if !begins => generation,
        _ => format!("g{time:0DIGITS$}"),
    };
    let mark = URL_SAFE_NO_PAD.encode(marker.to_text());
    if mark.len() > MAX_MARK_BYTES {
        let message = format!("the marker is {} bytes long, and a tag can have {MAX_MARK_BYTES}", mark.len());
        return Err(DriverError::Namespace(message));
    }
    write_point(control, BTreeMap::from([("generation", generation), ("mark", mark)]), time)
}

/// After the last marker, whatever the clock says.
fn next_time(control: &Control) -> Result<i64, DriverError> {
    let (_, last) = last(control, &control.target.namespace)?;
    Ok(now_ms().max(last + 1))
}

fn write_point(control: &Control, tags: BTreeMap<&str, String>, time_ms: i64) -> Result<(), DriverError> {
    let point = json!({"metric": mark_name(&control.target.namespace), "timestamp": time_ms, "value": 1, "tags": tags});
    let reply = control.ask(Call::post_json(api::WRITE_SYNCED, point.to_string().into_bytes()))?;
    match api::put_refusal(&reply) {
        None => Ok(()),
        Some(refusal) => Err(DriverError::Namespace(format!("the server at {}: {refusal}", control.target.shown))),
    }
}

/// The namespaces that are ours.
pub fn namespaces(control: &Control) -> Result<Vec<String>, DriverError> {
    let end = format!(".{MARK}");
    let mut ours = Vec::new();
    for name in api::names(control, "")? {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_are_known_by_their_names() {
        assert!(is_of_generation("ours.g1700000000000.t.value", "ours"));
        for other in ["ours.g1700000000000", "ours.g170.t", "ours.gauge.t", "other.g1700000000000.t", "ours2.g1700000000000.t"] {
            assert!(!is_of_generation(other, "ours"), "{other}");
        }
    }
}
