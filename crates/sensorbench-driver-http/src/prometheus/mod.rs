//! Prometheus on one server: metrics with labels, written by remote write and read by PromQL. A field of a measurement is the metric
//! `MEASUREMENT_FIELD`; sensorbench's namespace is all metrics that begin with `<namespace>:` (`marker` says which of them hold). The server
//! needs `--web.enable-remote-write-receiver`, and `--web.enable-admin-api` for what is removed.
//!
//! Values are doubles, times whole ms since 1970. What is written is visible at once. Of two samples of one series and time the first
//! stays: a batch with another value is refused as a whole, or, within a batch and among late samples, dropped without a word, which the
//! count after loading shows. Late samples are taken within `out_of_order_time_window`.
//!
//! Statements are those of VictoriaMetrics; the readings themselves (`export`) are the answer to a selector with a stretch of time, and
//!
//! ```toml
//! [operation.hourly_means]                   # the answer for each stretch of an hour, with the time at which it begins
//! query = "avg_over_time(::readings_value{sensor=:sensor}[:range])"
//! from = ":from"
//! to = ":to"
//! step = "1h"
//! ```

mod api;
mod marker;
mod open_metrics;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use arrow_array::RecordBatchReader;
use percent_encoding::utf8_percent_encode;
use sensorbench_driver::{About, Description, DriverError, Marker, Occupant, Operation, Progress, Schema, Size};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::connection::{Call, ENCODED, Reply};
use crate::control::Control;
use crate::line::{Limits, PointForm};
use crate::metrics;
use crate::points::Points;
use crate::promql::{Export, MetricsReading};
use crate::protocol::{Protocol, Reading, Scope};
use crate::samples;
use crate::target::Target;

/// The server has no limit to labels of its own; this one keeps a batch of them small.
const MAX_LABEL_BYTES: usize = 1 << 16;
/// The last ms of the year 2200. Versions from 2.5x on refuse what is more than 10 minutes ahead.
const LAST_US: i64 = 7_258_118_399_999_000;
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);
/// Flags that matter to speed, durability and what is kept.
const SETTINGS: [&str; 10] = [
    "query.lookback-delta",
    "query.max-concurrency",
    "query.max-samples",
    "query.timeout",
    "storage.tsdb.head-chunks-write-queue-size",
    "storage.tsdb.max-block-duration",
    "storage.tsdb.min-block-duration",
    "storage.tsdb.retention.size",
    "storage.tsdb.retention.time",
    "storage.tsdb.wal-compression",
];
const LATE_WINDOW: &str = "out_of_order_time_window";

pub struct Prometheus;

impl Protocol for Prometheus {
    fn about(&self) -> About {
        About::server("prometheus", "metrics with labels: Prometheus on one server, remote write and PromQL")
    }

    fn product(&self) -> &'static str {
        "Prometheus"
    }

    fn port(&self) -> u16 {
        9090
    }

    fn limits(&self) -> Limits {
        Limits {
            form: PointForm::Samples,
            time_unit_us: 1000,
            times_us: (0, LAST_US),
            only_numbers: true,
            escapes_backslash: false,
            max_tag_bytes: MAX_LABEL_BYTES,
            tags: (0, usize::MAX),
        }
    }

    fn namespace(&self, control: &Control) -> String {
        format!("metrics that begin with {}:", control.target.namespace)
    }

    fn scope(&self, control: &Control) -> Result<Scope, DriverError> {
        let namespace = &control.target.namespace;
        let prefix = format!("{namespace}:{}:", marker::generation(control)?);
        Ok(Scope { ranges_include_start: ranges_include_start(control)?, ..Scope::new(namespace, prefix) })
    }

    /// What is older than the last sample of its series is late.
    fn loads_in_order(&self) -> bool {
        true
    }

    fn describe(&self, control: &Control) -> Result<Description, DriverError> {
        #[derive(Deserialize)]
        struct Build {
            version: String,
        }
        let build: Build = api::read(control, "status/buildinfo")?;
        let flags = api::flags(control)?;
        let mut settings: BTreeMap<_, _> = flags.into_iter().filter(|(name, _)| SETTINGS.contains(&name.as_str())).collect();
        settings.insert(LATE_WINDOW.to_owned(), api::setting(control, LATE_WINDOW)?.unwrap_or_else(|| "0s".to_owned()));
        // A build of one's own does not say its version.
        let version = if build.version.is_empty() { "unknown".to_owned() } else { build.version };
        Ok(Description { database: "Prometheus".to_owned(), version, settings })
    }

    fn occupant(&self, control: &Control) -> Result<Occupant, DriverError> {
        marker::occupant(control)
    }

    fn create(&self, control: &Control, _: &Schema, marker: &Marker) -> Result<(), DriverError> {
        marker::write(control, marker, None)
    }

    fn write_marker(&self, control: &Control, marker: &Marker) -> Result<(), DriverError> {
        let generation = marker::generation(control)?;
        marker::write(control, marker, Some(generation))
    }

    /// Samples that were late, and the room of all, are there until the server compacts them; the marker hides them from everybody.
    fn remove(&self, control: &Control) -> Result<(), DriverError> {
        if marker::state(control, &control.target.namespace)? == marker::State::Unmarked {
            return Ok(());
        }
        let selected = utf8_percent_encode(&marker::metrics_of(&control.target.namespace), ENCODED).to_string();
        let reply = control.ask(Call::post(format!("/api/v1/admin/tsdb/delete_series?match%5B%5D={selected}"), Vec::new()))?;
        if !reply.status.is_success() {
            let message = format!("{}; series can be removed when Prometheus runs with --web.enable-admin-api", reply.shown());
            return Err(DriverError::Statement(message));
        }
        // Last, so that what is left of a removal that was cut short is still ours.
        marker::write_removed(control)
    }

    fn namespaces(&self, control: &Control) -> Result<Vec<String>, DriverError> {
        marker::namespaces(control)
    }

    fn write(&self, _: &Target, points: Vec<u8>) -> Call {
        Call::remote_write(api::WRITE, samples::compressed(&points))
    }

    /// A request is one transaction, which is rolled back.
    fn kept_of_refused(&self, _: u64, _: &Reply) -> Option<u64> {
        Some(0)
    }

    /// Waits until the head is as short as the server keeps it: what is older becomes blocks.
    fn settle(&self, control: &Control) -> Result<(), DriverError> {
        let flags = api::flags(control)?;
        let range = flags.get("storage.tsdb.min-block-duration").and_then(|text| api::duration_ms(text));
        let Some(range) = range else { return Err(api::other_answer(control, "it has no length of blocks")) };
        let failed_before = Head::read(control)?.failed_compactions;
        loop {
            let head = Head::read(control)?;
            // db.Compact: a head of one and a half block's length gives its oldest block away.
            if head.last_ms - head.first_ms <= range as f64 * 1.5 {
                return Ok(());
            }
            if head.failed_compactions > failed_before {
                return Err(DriverError::Statement("the server could not make blocks of its head: its log says why".to_owned()));
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// Counts samples where they lie.
    fn count(&self, control: &Control, points: &Points, field: Option<&str>) -> Result<u64, DriverError> {
        let prefix = format!("{}:{}:{}_", control.target.namespace, marker::generation(control)?, points.measurement);
        let selector = match field {
            Some(field) => format!("{{__name__=\"{prefix}{field}\"}}"),
            None => format!("{{__name__=~\"{prefix}.+\"}}"),
        };
        api::count(control, &selector)
    }

    /// Older versions report the size of blocks alone, where nothing is that was written lately.
    fn size(&self, control: &Control) -> Result<Size, DriverError> {
        let unknown = |why: &str| Ok(Size { unknown: Some(why.to_owned()), ..Size::default() });
        let parts = [
            ("blocks", "prometheus_tsdb_storage_blocks_bytes"),
            ("log", "prometheus_tsdb_wal_storage_size_bytes"),
            ("chunks of the head", "prometheus_tsdb_head_chunks_storage_size_bytes"),
        ];
        let listed = metrics::read(control)?;
        let mut size = Size::default();
        for (part, metric) in parts {
            let Some(sample) = listed.iter().find(|sample| sample.name == metric) else {
                return unknown("this version of the server does not report the size of its log and its head");
            };
            size.total_bytes += sample.value as u64;
            size.parts.insert(part.to_owned(), sample.value as u64);
        }
        let others = format!("{{__name__=~\".+\",__name__!~\"{}:.+\"}}", control.target.namespace);
        if !api::metric_names(control, &others)?.is_empty() {
            return unknown("the server reports the size of all its data together, and others have data there, too");
        }
        Ok(size)
    }

    /// Its metrics by their names with their labels, without the parts of histograms.
    fn status(&self, control: &Control) -> Result<BTreeMap<String, f64>, DriverError> {
        let listed = metrics::read(control)?.into_iter();
        let counted = listed.filter(|sample| sample.value.is_finite() && !sample.labels.contains_key("le"));
        Ok(counted.map(|sample| (sample.shown(), sample.value)).collect())
    }

    /// OpenMetrics, for `promtool tsdb create-blocks-from openmetrics`.
    fn write_load_file(
        &self,
        control: &Control,
        points: &Points,
        rows: Box<dyn RecordBatchReader + Send>,
        file: &Path,
        progress: &Progress,
    ) -> Result<(), DriverError> {
        open_metrics::write(points, &self.scope(control)?.prefix, rows, file, progress)
    }

    fn reading(&self, scope: &Scope, operation: &Operation) -> Result<Box<dyn Reading>, DriverError> {
        Ok(Box::new(MetricsReading::of(scope, Export::Matrix, operation)?))
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

/// Whether a stretch of time has both of its ends, as before 3.0: three of the times in it are ends of a ms then, and two otherwise.
fn ranges_include_start(control: &Control) -> Result<bool, DriverError> {
    let found = api::query(control, "count_over_time(vector(1)[2ms:1ms])", 10)?;
    match found.first().and_then(|series| series.value.as_ref()).map(|(_, value)| value.as_str()) {
        Some("3") => Ok(true),
        Some("2") => Ok(false),
        other => Err(api::other_answer(control, format!("of two ms it counts {}", other.unwrap_or("none")))),
    }
}

/// What is in memory and in the log.
struct Head {
    first_ms: f64,
    last_ms: f64,
    failed_compactions: f64,
}

impl Head {
    fn read(control: &Control) -> Result<Self, DriverError> {
        let listed = metrics::read(control)?;
        let value = |name: &str| {
            let found = listed.iter().find(|sample| sample.name == name).map(|sample| sample.value);
            found.ok_or_else(|| api::other_answer(control, format!("there is no {name} in its metrics")))
        };
        Ok(Self {
            first_ms: value("prometheus_tsdb_head_min_time")?,
            last_ms: value("prometheus_tsdb_head_max_time")?,
            failed_compactions: value("prometheus_tsdb_compactions_failed_total")?,
        })
    }
}
