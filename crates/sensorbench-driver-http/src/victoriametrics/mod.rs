//! VictoriaMetrics on one server: metrics with labels, written by the line protocol and read by PromQL or as they were written. A field of
//! a measurement is the metric `MEASUREMENT_FIELD`; sensorbench's namespace is all metrics that begin with `<namespace>:`.
//!
//! Values are doubles, times whole ms since 1970. What is written is visible when `settle` has flushed it, or after some seconds. A point
//! that is written again with the same labels and time is there twice, unless the server runs with `-dedup.minScrapeInterval`. What is older
//! than `-retentionPeriod`, or more than two days in the future, is dropped without a word: counts that are compared after loading show it.
//!
//! ```toml
//! [operation.get_sensor_data]                # the readings themselves: times from a parameter on until before another
//! export = "::readings_value{site=:site, sensor=:sensor}"
//! from = ":from"
//! to = ":to"
//!
//! [operation.get_peak_data]                  # PromQL, evaluated at the last ms before :to; [:range] is the stretch since :from
//! query = "max_over_time(::readings_value{site=:site}[:range])"
//! from = ":from"
//! to = ":to"
//! ```
//!
//! `at = ":time"` asks for one time. `::name` is the namespace's metric of this name. `:name` is a parameter as a text between quotes, which is what labels are compared with.
//! Rows have labels by their names, `time` and `value`; `row` says which column is which, in this order.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::utf8_percent_encode;
use sensorbench_driver::{About, Description, DriverError, Marker, Occupant, Operation, Schema, Size};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::connection::{Call, ENCODED, Reply};
use crate::control::Control;
use crate::line::{Limits, PointForm};
use crate::metrics;
use crate::points::Points;
use crate::promql::{Export, MetricsReading};
use crate::protocol::{Protocol, Reading, Scope};
use crate::target::Target;
use crate::times::now_ms;

/// The measurement with the marker, which makes a namespace ours, and the metric that it becomes.
const MARK_MEASUREMENT: &str = "sensorbench";
const MARK_METRIC: &str = "sensorbench_value";
/// What labels are cut to without a word (-maxLabelValueLen is 16 KiB).
const MAX_LABEL_BYTES: usize = 16_384;
/// The last ms of the year 2200; what counts is the two days that the server looks ahead, which it does not report.
const LAST_US: i64 = 7_258_118_399_999_000;
/// The server answers with the same metrics for a second.
const LONGER_THAN_METRICS_ARE_KEPT: Duration = Duration::from_millis(1100);
/// Flags that matter to speed, durability and what is kept.
const SETTINGS: [&str; 8] = [
    "dedup.minScrapeInterval",
    "inmemoryDataFlushInterval",
    "memory.allowedBytes",
    "memory.allowedPercent",
    "retentionPeriod",
    "search.latencyOffset",
    "search.maxUniqueTimeseries",
    "storage.minFreeDiskSpaceBytes",
];

pub struct Victoriametrics;

/// A selector of everything that begins like this, as a parameter of a request.
fn everything(namespace: &str) -> String {
    utf8_percent_encode(&format!("{{__name__=~\"{namespace}:.+\"}}"), ENCODED).to_string()
}

fn selector(metric: &str) -> String {
    utf8_percent_encode(&format!("{{__name__=\"{metric}\"}}"), ENCODED).to_string()
}

/// A series as it is exported.
#[derive(Deserialize)]
struct Series {
    metric: BTreeMap<String, String>,
    timestamps: Vec<i64>,
}

fn export(control: &Control, encoded_selector: &str) -> Result<Vec<Series>, DriverError> {
    let end = now_ms() / 1000 + 3 * 86_400;
    let reply = control.answer(Call::get(format!("/api/v1/export?match%5B%5D={encoded_selector}&start=0&end={end}")))?;
    let lines = reply.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).map_err(|error| other_answer(control, error))).collect()
}

fn other_answer(control: &Control, problem: impl std::fmt::Display) -> DriverError {
    control.target.unreachable(format!("it does not answer as VictoriaMetrics does: {problem}"))
}

/// The names of the metrics that are selected, each once. (Lists of the values of a label have what was deleted, too.)
fn metric_names(control: &Control, encoded_selector: &str) -> Result<BTreeSet<String>, DriverError> {
    #[derive(Deserialize)]
    struct Answer {
        data: Vec<Labels>,
    }
    #[derive(Deserialize)]
    struct Labels {
        #[serde(rename = "__name__")]
        name: String,
    }
    let end = now_ms() / 1000 + 3 * 86_400;
    let reply = control.answer(Call::get(format!("/api/v1/series?match%5B%5D={encoded_selector}&start=1&end={end}")))?;
    let answer: Answer = serde_json::from_slice(&reply.body).map_err(|error| other_answer(control, error))?;
    Ok(answer.data.into_iter().map(|labels| labels.name).collect())
}

/// The text of the marker that was written last.
fn marker_text(control: &Control, namespace: &str) -> Result<Option<String>, DriverError> {
    let found = export(control, &selector(&format!("{namespace}:{MARK_METRIC}")))?;
    let last = found.into_iter().max_by_key(|series| series.timestamps.iter().copied().max());
    let encoded = last.and_then(|mut series| series.metric.remove("mark"));
    Ok(encoded.and_then(|text| STANDARD.decode(text).ok()).and_then(|text| String::from_utf8(text).ok()))
}

fn flush(control: &Control) -> Result<(), DriverError> {
    control.answer(Call::get("/internal/force_flush")).map(drop)
}

/// The rows that queries can find, of samples and of their index.
fn shown_rows(control: &Control) -> Result<f64, DriverError> {
    Ok(metrics::read(control)?.iter().filter(|sample| sample.name == "vm_rows").map(|sample| sample.value).sum())
}

/// Flushes until the server shows no more rows. A flush leaves out what the server's own flusher has taken a moment before and has not
/// shown yet; such rows appear in its metrics soon after.
fn flush_all(control: &Control) -> Result<(), DriverError> {
    flush(control)?;
    let mut before = shown_rows(control)?;
    loop {
        std::thread::sleep(LONGER_THAN_METRICS_ARE_KEPT);
        flush(control)?;
        let shown = shown_rows(control)?;
        // Merges make them fewer.
        if shown <= before {
            return Ok(());
        }
        before = shown;
    }
}

impl Protocol for Victoriametrics {
    fn about(&self) -> About {
        About::server("victoriametrics", "metrics with labels: VictoriaMetrics on one server, line protocol and PromQL")
    }

    fn product(&self) -> &'static str {
        "VictoriaMetrics"
    }

    fn port(&self) -> u16 {
        8428
    }

    fn limits(&self) -> Limits {
        Limits {
            time_unit_us: 1000,
            form: PointForm::Line,
            times_us: (0, LAST_US),
            only_numbers: true,
            escapes_backslash: true,
            max_tag_bytes: MAX_LABEL_BYTES,
            tags: (0, usize::MAX),
        }
    }

    fn namespace(&self, control: &Control) -> String {
        format!("metrics that begin with {}:", control.target.namespace)
    }

    fn describe(&self, control: &Control) -> Result<Description, DriverError> {
        let listed = metrics::read(control)?;
        let version = listed.iter().find(|sample| sample.name == "vm_app_version");
        let version = version.ok_or_else(|| other_answer(control, "there is no vm_app_version in its metrics"))?;
        let named = ["short_version", "version"].iter().filter_map(|key| version.labels.get(*key));
        let version = named.into_iter().find(|text| !text.is_empty()).cloned();
        let flag = |sample: &metrics::Sample| {
            let name = sample.labels.get("name").filter(|name| SETTINGS.contains(&name.as_str()))?;
            Some((name.clone(), sample.labels.get("value").cloned().unwrap_or_default()))
        };
        Ok(Description {
            database: "VictoriaMetrics".to_owned(),
            // Builds of distributions do not say their version.
            version: version.unwrap_or_else(|| "unknown".to_owned()),
            settings: listed.iter().filter(|sample| sample.name == "flag").filter_map(flag).collect(),
        })
    }

    fn occupant(&self, control: &Control) -> Result<Occupant, DriverError> {
        let namespace = &control.target.namespace;
        // What was written a moment ago may not be visible yet.
        flush(control)?;
        if metric_names(control, &everything(namespace))?.is_empty() {
            return Ok(Occupant::Absent);
        }
        let text = marker_text(control, namespace)?;
        Ok(Occupant::by_text(text.as_deref(), || "somebody has metrics of such names".to_owned()))
    }

    fn create(&self, control: &Control, _: &Schema, marker: &Marker) -> Result<(), DriverError> {
        self.write_marker(control, marker)
    }

    /// The marker that was written last holds; those before stay until the namespace is removed.
    fn write_marker(&self, control: &Control, marker: &Marker) -> Result<(), DriverError> {
        // Letters and digits: nothing that a label would have to escape.
        let text = STANDARD.encode(marker.to_text());
        if text.len() > MAX_LABEL_BYTES {
            let message = format!("the marker is {} bytes long, and a label can have {MAX_LABEL_BYTES}", text.len());
            return Err(DriverError::Namespace(message));
        }
        let namespace = &control.target.namespace;
        let before = export(control, &selector(&format!("{namespace}:{MARK_METRIC}")))?;
        let last = before.iter().flat_map(|series| series.timestamps.iter().copied()).max().unwrap_or(0);
        let text = text.replace('=', "\\=");
        let line = format!("{namespace}:{MARK_MEASUREMENT},mark={text} value=1 {}\n", now_ms().max(last + 1));
        control.answer(self.write(&control.target, line.into_bytes()))?;
        flush(control)?;
        let shown = marker_text(control, namespace)?;
        // The next question must find it.
        if shown.as_deref() == Some(marker.to_text().as_str()) { Ok(()) } else { flush_all(control) }
    }

    fn remove(&self, control: &Control) -> Result<(), DriverError> {
        let path = "/api/v1/admin/tsdb/delete_series?match%5B%5D=";
        // The marker goes last, so that what is left of a removal that was cut short is still ours.
        let namespace = &control.target.namespace;
        let mark = format!("{namespace}:{MARK_METRIC}");
        let data = utf8_percent_encode(&format!("{{__name__=~\"{namespace}:.+\",__name__!=\"{mark}\"}}"), ENCODED).to_string();
        for selected in [data, selector(&mark)] {
            control.answer(Call::post(format!("{path}{selected}"), Vec::new()))?;
        }
        Ok(())
    }

    fn namespaces(&self, control: &Control) -> Result<Vec<String>, DriverError> {
        let end = format!(":{MARK_METRIC}");
        let mut ours = Vec::new();
        let marks = utf8_percent_encode(&format!("{{__name__=~\".+{end}\"}}"), ENCODED).to_string();
        for name in metric_names(control, &marks)? {
            let Some(namespace) = name.strip_suffix(&end).filter(|namespace| sensorbench_driver::is_namespace(namespace)) else {
                continue;
            };
            if marker_text(control, namespace)?.is_some_and(|text| Marker::parse(&text).is_some()) {
                ours.push(namespace.to_owned());
            }
        }
        ours.sort_unstable();
        Ok(ours)
    }

    fn write(&self, _: &Target, lines: Vec<u8>) -> Call {
        Call::post("/write?precision=ms", lines)
    }

    fn scope(&self, control: &Control) -> Result<Scope, DriverError> {
        let namespace = &control.target.namespace;
        Ok(Scope::new(namespace, format!("{namespace}:")))
    }

    fn kept_of_refused(&self, _: u64, _: &Reply) -> Option<u64> {
        None
    }

    /// Makes what was written visible. It is not on the disk then.
    fn settle(&self, control: &Control) -> Result<(), DriverError> {
        flush_all(control)
    }

    /// Reads the samples, as queries see them.
    fn count(&self, control: &Control, points: &Points, field: Option<&str>) -> Result<u64, DriverError> {
        flush(control)?;
        let prefix = format!("{}:{}_", control.target.namespace, points.measurement);
        let selected = match field {
            Some(field) => selector(&format!("{prefix}{field}")),
            None => utf8_percent_encode(&format!("{{__name__=~\"{prefix}.+\"}}"), ENCODED).to_string(),
        };
        Ok(export(control, &selected)?.iter().map(|series| series.timestamps.len() as u64).sum())
    }

    /// What the server reports of all its data, if all of them are ours.
    fn size(&self, control: &Control) -> Result<Size, DriverError> {
        let prefix = format!("{}:", control.target.namespace);
        let all = utf8_percent_encode("{__name__!=\"\"}", ENCODED).to_string();
        if metric_names(control, &all)?.iter().any(|name| !name.starts_with(&prefix)) {
            let unknown =
                Some("the server reports the size of all its data together, and others have data there, too".to_owned());
            return Ok(Size { unknown, ..Size::default() });
        }
        let sizes = metrics::read(control)?.into_iter().filter(|sample| sample.name == "vm_data_size_bytes");
        let mut size = Size::default();
        for mut sample in sizes {
            let bytes = sample.value as u64;
            size.total_bytes += bytes;
            size.parts.insert(sample.labels.remove("type").unwrap_or_default(), bytes);
        }
        Ok(size)
    }

    /// Its metrics by their names with their labels, without flags and the parts of histograms.
    fn status(&self, control: &Control) -> Result<BTreeMap<String, f64>, DriverError> {
        let listed = metrics::read(control)?.into_iter();
        let counted = listed.filter(|sample| sample.name != "flag" && !sample.labels.contains_key("vmrange"));
        Ok(counted.map(|sample| (sample.shown(), sample.value)).collect())
    }

    fn reading(&self, scope: &Scope, operation: &Operation) -> Result<Box<dyn Reading>, DriverError> {
        Ok(Box::new(MetricsReading::of(scope, Export::Lines, operation)?))
    }

    /// A metric that is not there.
    fn no_op(&self) -> Json {
        json!({
            "name": "nothing",
            "columns": [{"name": "value", "type": "double"}],
            "statement": {"query": "::nothing"},
        })
    }
}
