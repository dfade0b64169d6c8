//! OpenTSDB over HBase: metrics with tags, put as JSON and read as they were written or through aggregators and downsampling. A field of a
//! measurement is the metric `MEASUREMENT.FIELD`; sensorbench's namespace is all metrics that begin with `<namespace>.` (`marker` says which of
//! them hold). The server needs `tsd.core.auto_create_metrics=true`, `tsd.http.request.enable_chunked=true` with a `max_chunk` of 16 MB, and
//! `tsd.http.query.allow_delete=true` for what is removed.
//!
//! Values are doubles, times whole ms from April 1970 until January 2106 (`api::TIMES_MS`). A point that is written again with the same tags and
//! time replaces the one before; the server needs `tsd.storage.fix_duplicates=true` for that once it has compacted the row. Every point has one
//! to eight tags.
//!
//! Options of the URL: `sync` (on: a write is answered when HBase has it, which takes up to the server's `hbase.rpcs.buffered_flush_interval`; off: as soon
//! as the server has taken it, as OpenTSDB itself does; what loads is always synced), `admin` (the administration of the lab's HBase).
//!
//! ```toml
//! [create]
//! salt_width = 1                             # the server's tsd.storage.salt.width, where the schema is about it
//!
//! [operation.get_sensor_data]                # points as they were written
//! metric = "readings.value"                  # or readings.:sensor, with a parameter for a part of the name
//! tags = { site = ":site", zone = ":zone", sensor = ":sensor" }
//! from = ":from"
//! to = ":to"
//!
//! [operation.get_peak_data]                  # one value for the stretch, or for each "1h"
//! metric = "readings.value"
//! tags = { site = ":site" }
//! downsample = "all-max"                     # of the points of each series
//! aggregate = "mimmax"                       # of the series: zimsum, mimmin or mimmax; if not given, each series is in the answer
//! group_by = ["zone"]                        # an answer for each of its values
//! from = ":from"
//! to = ":to"
//! ```
//!
//! `at = ":time"` asks for one time. Rows have tags by their names, `time` and `value`; `row` says which column is which, in this order.

mod api;
mod marker;
mod reading;

use std::collections::BTreeMap;
use std::time::Duration;

use sensorbench_driver::{
    About, Administration, Description, DriverError, Marker, Occupant, Operation, Schema, SchemaError, Size, TargetUrl,
    parse_part,
};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use self::reading::PointsReading;
use crate::connection::{Call, Reply};
use crate::control::Control;
use crate::json_points::list;
use crate::line::{Limits, PointForm};
use crate::points::Points;
use crate::protocol::{Protocol, Reading, Scope};
use crate::target::Target;

/// Rows of HBase have keys of up to 32 KiB, and the text of a tag is one.
const MAX_TAG_BYTES: usize = 32_000;
/// tsd.storage.max_tags, unless somebody changed it.
const MAX_TAGS: usize = 8;
const SYNC: &str = "sync";
const ADMIN: &str = "admin";
/// How durable the table of points is.
const DURABILITY: &str = "durability";
const SALT_WIDTH: &str = "tsd.storage.salt.width";
/// How long the server's client of HBase collects points, and how many ms that is where nobody set it.
const FLUSH_INTERVAL: &str = "hbase.rpcs.buffered_flush_interval";
const FLUSH_INTERVAL_MS: u64 = 1000;
const BETWEEN_LOOKS: Duration = Duration::from_millis(300);
/// This many polls in which the server compacts nothing more.
const LOOKS_ALIKE: u32 = 2;
/// Settings that matter to speed, durability and what is kept.
const SETTINGS: [&str; 14] = [
    SALT_WIDTH,
    FLUSH_INTERVAL,
    "tsd.query.enable_fuzzy_filter",
    "tsd.query.multi_get.enable",
    "tsd.storage.compaction.flush_interval",
    "tsd.storage.compaction.flush_speed",
    "tsd.storage.compaction.min_flush_threshold",
    "tsd.storage.enable_appends",
    "tsd.storage.enable_compaction",
    "tsd.storage.fix_duplicates",
    "tsd.storage.hbase.scanner.maxNumRows",
    "tsd.storage.salt.buckets",
    "tsd.storage.use_otsdb_timestamp",
    "tsd.uid.lru.enable",
];

pub struct Opentsdb;

/// `[create]` of a schema file, besides the points.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Create {
    #[serde(rename = "points")]
    _points: Option<Json>,
    salt_width: Option<u8>,
}

/// The administration of the HBase below, if the URL names one.
fn administration(target: &Target) -> Option<(String, u16)> {
    target.options.get(ADMIN).and_then(|text| Administration::address(text))
}

/// The tables with points and names.
fn tables(settings: &BTreeMap<String, String>) -> Vec<String> {
    let keys = ["tsd.storage.hbase.data_table", "tsd.storage.hbase.uid_table"];
    keys.iter().filter_map(|key| settings.get(*key).cloned()).collect()
}

fn is_synced(target: &Target) -> bool {
    target.options.get(SYNC).is_none_or(|word| word == "on")
}

impl Protocol for Opentsdb {
    fn about(&self) -> About {
        About::server("opentsdb", "metrics with tags: OpenTSDB over HBase, HTTP API")
    }

    fn product(&self) -> &'static str {
        "OpenTSDB"
    }

    fn port(&self) -> u16 {
        4242
    }

    fn options(&self) -> &'static [&'static str] {
        &[ADMIN, SYNC]
    }

    fn check_options(&self, url: &TargetUrl) -> Result<(), DriverError> {
        if let Some(word) = url.option(SYNC).filter(|word| !["on", "off"].contains(word)) {
            return Err(url.error(format!("option {SYNC}={word}: expected on or off")));
        }
        match url.option(ADMIN) {
            Some(text) if Administration::address(text).is_none() => {
                Err(url.error(format!("option {ADMIN}={text}: expected HOST:PORT of the lab's administration")))
            }
            _ => Ok(()),
        }
    }

    fn limits(&self) -> Limits {
        let (first, last) = api::TIMES_MS;
        Limits {
            form: PointForm::Json,
            time_unit_us: 1000,
            times_us: (first * 1000, last * 1000),
            only_numbers: true,
            escapes_backslash: false,
            max_tag_bytes: MAX_TAG_BYTES,
            tags: (1, MAX_TAGS),
        }
    }

    fn namespace(&self, control: &Control) -> String {
        format!("metrics that begin with {}.", control.target.namespace)
    }

    fn scope(&self, control: &Control) -> Result<Scope, DriverError> {
        Ok(Scope::new(&control.target.namespace, marker::prefix(control)?))
    }

    fn check(&self, schema: &Schema) -> Result<(), DriverError> {
        let _: Create = parse_part("create", &schema.create)?;
        Ok(())
    }

    fn describe(&self, control: &Control) -> Result<Description, DriverError> {
        #[derive(Deserialize)]
        struct Build {
            version: String,
            #[serde(default)]
            short_revision: String,
        }
        let build: Build = api::read(control, "version")?;
        let all = api::settings(control)?;
        let tables = tables(&all);
        let mut settings: BTreeMap<_, _> = all.into_iter().filter(|(name, _)| SETTINGS.contains(&name.as_str())).collect();
        settings.insert(SYNC.to_owned(), if is_synced(&control.target) { "on" } else { "off" }.to_owned());
        if let Some(address) = administration(&control.target) {
            let below = Administration::at(&address).describe()?;
            settings.insert("HBase".to_owned(), below.version);
            let of_points = tables.first().and_then(|table| below.settings.get(&format!("{DURABILITY} of {table}")));
            settings.extend(of_points.map(|durability| (DURABILITY.to_owned(), durability.clone())));
            let of_tables = |name: &String| name.starts_with(DURABILITY);
            settings.extend(
                below.settings.iter().filter(|(name, _)| !of_tables(name)).map(|(name, text)| (name.clone(), text.clone())),
            );
        }
        // The archives of 2.4.1 have no number of a version.
        let is_number = build.version.starts_with(|c: char| c.is_ascii_digit());
        let version = if is_number { build.version } else { format!("revision {}", build.short_revision) };
        Ok(Description { database: "OpenTSDB".to_owned(), version, settings })
    }

    fn occupant(&self, control: &Control) -> Result<Occupant, DriverError> {
        marker::occupant(control)
    }

    /// Row keys are salted or not for all of a server's data: what a schema is about must be so.
    fn create(&self, control: &Control, schema: &Schema, marker: &Marker) -> Result<(), DriverError> {
        let create: Create = parse_part("create", &schema.create)?;
        if let Some(wanted) = create.salt_width {
            let settings = api::settings(control)?;
            let found = settings.get(SALT_WIDTH).map_or("0", String::as_str);
            if found != wanted.to_string() {
                let message = format!(
                    "the server's {SALT_WIDTH} is {found}; expected {wanted}: use a server that was set so before its first data (in the lab, --server-setting {SALT_WIDTH}={wanted})"
                );
                return Err(SchemaError::at("create.salt_width", message).into());
            }
        }
        marker::write(control, marker, true)
    }

    fn write_marker(&self, control: &Control, marker: &Marker) -> Result<(), DriverError> {
        marker::write(control, marker, false)
    }

    fn remove(&self, control: &Control) -> Result<(), DriverError> {
        marker::remove(control)
    }

    fn namespaces(&self, control: &Control) -> Result<Vec<String>, DriverError> {
        marker::namespaces(control)
    }

    fn write(&self, target: &Target, points: Vec<u8>) -> Call {
        Call::post_json(if is_synced(target) { api::WRITE_SYNCED } else { api::WRITE }, list(&points))
    }

    /// Without `sync` the server answers before it knows whether HBase takes the points.
    fn write_batch(&self, _: &Target, points: Vec<u8>) -> Call {
        Call::post_json(api::WRITE_SYNCED, list(&points))
    }

    fn refusal(&self, reply: &Reply) -> Option<String> {
        api::put_refusal(reply)
    }

    /// Where each row is one point, as many as the server counts.
    fn kept_of_refused(&self, rows: u64, reply: &Reply) -> Option<u64> {
        api::put_answer(reply).filter(|answer| answer.success + answer.failed == rows).map(|answer| answer.success)
    }

    /// Waits until the server has compacted the rows that it is going to, then has HBase flush and compact the tables if it accepts commands.
    fn settle(&self, control: &Control) -> Result<(), DriverError> {
        let settings = api::settings(control)?;
        let seconds = settings.get("tsd.storage.compaction.flush_interval").and_then(|text| text.parse::<u64>().ok());
        let Some(seconds) = seconds else {
            return Err(api::other_answer(control, "it has no tsd.storage.compaction.flush_interval"));
        };
        // Rows of the last hour stay where they are, so that their number says nothing, but it stops falling when all is done.
        let (mut before, mut looks_alike) = (waiting_rows(control)?.unwrap_or(0.0), 0);
        while before > 0.0 && looks_alike < LOOKS_ALIKE {
            std::thread::sleep(Duration::from_secs(seconds) + BETWEEN_LOOKS);
            let waiting = waiting_rows(control)?.unwrap_or(0.0);
            looks_alike = if waiting < before { 0 } else { looks_alike + 1 };
            before = waiting;
        }
        match administration(&control.target) {
            Some(address) => Administration::at(&address).compact(&tables(&settings)),
            None => Ok(()),
        }
    }

    /// Without `sync`, points are on their way to HBase until the next flush begins and ends.
    fn show(&self, control: &Control) -> Result<(), DriverError> {
        if !is_synced(&control.target) {
            let settings = api::settings(control)?;
            let described = settings.get(FLUSH_INTERVAL).and_then(|text| text.parse().ok());
            std::thread::sleep(Duration::from_millis(described.unwrap_or(FLUSH_INTERVAL_MS)) * 2 + BETWEEN_LOOKS);
        }
        Ok(())
    }

    /// Has the server count the points.
    fn count(&self, control: &Control, points: &Points, field: Option<&str>) -> Result<u64, DriverError> {
        let beginning = format!("{}{}.", marker::prefix(control)?, points.measurement);
        let metrics = match field {
            Some(field) => vec![format!("{beginning}{field}")],
            None => api::names(control, &beginning)?,
        };
        api::count(control, &metrics)
    }

    /// The files of HBase's tables, where all metrics are ours.
    fn size(&self, control: &Control) -> Result<Size, DriverError> {
        let unknown = |why: &str| Ok(Size { unknown: Some(why.to_owned()), ..Size::default() });
        let Some(address) = administration(&control.target) else {
            return unknown("OpenTSDB does not report it; the option admin= names who does");
        };
        let prefix = format!("{}.", control.target.namespace);
        if api::names(control, "")?.iter().any(|name| !name.starts_with(&prefix)) {
            return unknown("HBase reports the size of all metrics together, and there are others, too");
        }
        let ours = tables(&api::settings(control)?);
        let bare = |name: String| name.rsplit(':').next().unwrap_or(&name).to_owned();
        let described = Administration::at(&address).size("default")?.into_iter().map(|(name, bytes)| (bare(name), bytes));
        let parts: BTreeMap<_, _> = described.filter(|(name, _)| ours.contains(name)).collect();
        Ok(Size { total_bytes: parts.values().sum(), parts, ..Size::default() })
    }

    /// What OpenTSDB counts by its names with their tags, and what HBase does, summed over its servers.
    fn status(&self, control: &Control) -> Result<BTreeMap<String, f64>, DriverError> {
        let figures = api::figures(control)?.into_iter();
        let mut status: BTreeMap<_, _> =
            figures.filter_map(|figure| Some((figure.shown(), figure.value.parse::<f64>().ok()?))).collect();
        if let Some(address) = administration(&control.target) {
            for figures in Administration::at(&address).status()?.into_values() {
                for (name, value) in figures {
                    *status.entry(name).or_insert(0.0) += value;
                }
            }
        }
        Ok(status)
    }

    fn reading(&self, scope: &Scope, operation: &Operation) -> Result<Box<dyn Reading>, DriverError> {
        Ok(Box::new(PointsReading::of(scope, operation)?))
    }

    /// A metric that is not there.
    fn no_op(&self) -> Json {
        json!({
            "name": "nothing",
            "columns": [{"name": "value", "type": "double"}],
            "statement": {"metric": "nothing.value"},
        })
    }
}

/// Rows of HBase that the server is going to compact; None if it compacts none.
fn waiting_rows(control: &Control) -> Result<Option<f64>, DriverError> {
    let figures = api::figures(control)?;
    let found = figures.iter().find(|figure| figure.metric == "tsd.compaction.queue.size");
    let parsed = found.map(|figure| figure.value.parse().map_err(|_| api::other_answer(control, &figure.value)));
    parsed.transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OPENTSDB;
    use sensorbench_driver::Database;

    #[test]
    fn options_that_make_no_sense_are_refused() {
        let open = |url: &str| OPENTSDB.open(&TargetUrl::parse(url).unwrap()).map(drop);
        open("opentsdb://host?sync=off&admin=host:7").unwrap();
        for (url, expected) in [
            ("opentsdb://host?sync=yes", "option sync=yes: expected on or off"),
            ("opentsdb://host?admin=host", "option admin=host: expected HOST:PORT"),
        ] {
            let refused = open(url).unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
        }
    }

    #[test]
    fn a_salt_is_a_number() {
        let schema = |create: Json| serde_json::from_value(json!({"create": create})).unwrap();
        OPENTSDB.check(&schema(json!({"salt_width": 1}))).unwrap();
        assert!(OPENTSDB.check(&schema(json!({"salt_width": "x"}))).is_err());
        assert!(OPENTSDB.check(&schema(json!({"salt": 1}))).is_err());
    }
}
