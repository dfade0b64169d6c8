//! InfluxDB 1: databases and measurements, written by the line protocol and read by InfluxQL. sensorbench's namespace is a database.
//!
//! Times are µs, exactly; InfluxDB itself counts ns in 64 bits, which end in 1677 and 2262. A point that is written again with the same
//! tags and time gets the new fields. Of a batch that is partly refused InfluxDB keeps the rest, and says how many points it dropped.
//!
//! `[create] shard_duration = "30d"` is the stretch of time that shares a shard, in InfluxQL's words. In `query`, `:name` in a condition is
//! bound by the server; a tag is text, so a number is compared with it as `:site@text`; a time is compared with `time`, or as `:at@us` with a
//! field; `":sensor"` is a name of a field or measurement that a parameter brings.

mod reading;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use percent_encoding::utf8_percent_encode;
use sensorbench_driver::{About, Description, DriverError, Marker, Occupant, Operation, Schema, SchemaError, Size, parse_part};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use self::reading::InfluxReading;
use crate::connection::{Call, ENCODED, Reply};
use crate::control::Control;
use crate::line::{Limits, PointForm};
use crate::points::Points;
use crate::protocol::{Protocol, Reading, Scope};
use crate::target::Target;

/// The measurement with the marker, which makes a database ours, and its field.
const MARK_MEASUREMENT: &str = "sensorbench";
const MARK_FIELD: &str = "mark";
/// InfluxDB's own database.
const SERVER_DATABASES: [&str; 1] = ["_internal"];
/// The part of the diagnostics that has the settings of the store; and which of them says when points that lie in memory and log become files.
const STORE: &str = "config-data";
const COLD_AFTER: &str = "cache-snapshot-write-cold-duration";
/// Who has set it shorter than this wants points to be in files, and that is waited for; it is looked at each second whether a shard is cold.
const LONGEST_COLD: Duration = Duration::from_secs(5);
const COLD_TIMES: u32 = 3;
/// Writing the files of what fits into memory takes some seconds at most.
const LONGEST_SNAPSHOT: Duration = Duration::from_secs(60);
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
/// Settings that matter to speed and durability, and the part of the diagnostics that has them.
const SETTINGS: [(&str, &str); 8] = [
    (STORE, "wal-fsync-delay"),
    (STORE, "cache-max-memory-size"),
    (STORE, "cache-snapshot-memory-size"),
    (STORE, COLD_AFTER),
    (STORE, "compact-full-write-cold-duration"),
    (STORE, "max-concurrent-compactions"),
    (STORE, "max-series-per-database"),
    (STORE, "max-values-per-tag"),
];

pub struct Influxdb;

/// `[create]` of a schema file, besides the points.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Create {
    #[serde(rename = "points")]
    _points: Option<Json>,
    shard_duration: Option<String>,
}

/// A series of an answer to a question of control.
#[derive(Deserialize)]
struct Series {
    name: Option<String>,
    columns: Vec<String>,
    #[serde(default)]
    values: Vec<Vec<Json>>,
}

impl Series {
    fn column(&self, name: &str) -> impl Iterator<Item = &Json> {
        let place = self.columns.iter().position(|column| column == name);
        self.values.iter().filter_map(move |row| row.get(place?))
    }
}

/// A form with a query.
fn form(database: Option<&str>, query: &str) -> Call {
    let mut text = format!("epoch=u&q={}", utf8_percent_encode(query, ENCODED));
    if let Some(database) = database {
        text.push_str(&format!("&db={database}"));
    }
    Call::form("/query", text)
}

/// Asks, and takes the whole answer.
fn ask(control: &Control, database: Option<&str>, query: &str) -> Result<Vec<Series>, DriverError> {
    #[derive(Deserialize)]
    struct Answer {
        results: Vec<Outcome>,
    }
    #[derive(Deserialize)]
    struct Outcome {
        error: Option<String>,
        #[serde(default)]
        series: Vec<Series>,
    }
    let reply = control.answer(form(database, query))?;
    let other =
        |problem: &dyn std::fmt::Display| control.target.unreachable(format!("it does not answer as InfluxDB does: {problem}"));
    let answer: Answer = serde_json::from_slice(&reply.body).map_err(|error| other(&error))?;
    let outcome = answer.results.into_iter().next().ok_or_else(|| other(&"no result"))?;
    match outcome.error {
        Some(error) => Err(DriverError::Statement(error)),
        None => Ok(outcome.series),
    }
}

/// A refusal that is about the namespace.
pub fn in_namespace(control: &Control, error: DriverError) -> DriverError {
    match error {
        DriverError::Statement(text) => DriverError::Namespace(format!("the server at {}: {text}", control.target.shown)),
        other => other,
    }
}

fn databases(control: &Control) -> Result<Vec<String>, DriverError> {
    let listed = ask(control, None, "SHOW DATABASES")?;
    Ok(listed.iter().flat_map(|series| series.column("name")).filter_map(|name| name.as_str().map(str::to_owned)).collect())
}

/// The text where a marker would be.
pub fn marker_text(control: &Control, database: &str) -> Result<Option<String>, DriverError> {
    let query = format!("SELECT \"{MARK_FIELD}\" FROM \"{MARK_MEASUREMENT}\" WHERE time = 0");
    // Of a database that is not ours, the name may be any.
    let quoted = utf8_percent_encode(database, ENCODED).to_string();
    let found = ask(control, Some(&quoted), &query)?;
    let text = found.iter().flat_map(|series| series.column(MARK_FIELD)).next().and_then(|text| text.as_str());
    Ok(text.map(str::to_owned))
}

/// The line of the marker.
pub fn marker_line(marker: &Marker) -> Vec<u8> {
    let text = marker.to_text().replace('\\', "\\\\").replace('"', "\\\"");
    format!("{MARK_MEASUREMENT} {MARK_FIELD}=\"{text}\" 0\n").into_bytes()
}

/// The stretch of time that shares a shard, in seconds; None if the schema leaves it to the server.
pub fn shard_seconds(schema: &Schema) -> Result<Option<u64>, DriverError> {
    let create: Create = parse_part("create", &schema.create)?;
    let Some(text) = create.shard_duration else { return Ok(None) };
    check_duration(&text)?;
    let (digits, unit) = text.split_at(text.len() - 1);
    let seconds = match unit {
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => 7 * 86_400,
    };
    Ok(Some(digits.parse::<u64>().expect("digits, as was checked") * seconds))
}

/// A duration as InfluxQL writes it: 30d.
fn check_duration(text: &str) -> Result<(), SchemaError> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let is_number = !digits.is_empty() && digits.len() < 10 && digits.chars().all(|c| c.is_ascii_digit());
    if is_number && ["m", "h", "d", "w"].contains(&&text[digits.len()..]) {
        Ok(())
    } else {
        Err(SchemaError::at("create.shard_duration", format!("{text:?}: expected a number of m, h, d or w, for example \"30d\"")))
    }
}

impl Protocol for Influxdb {
    fn about(&self) -> About {
        About::server("influxdb", "time series with tags and fields: InfluxDB 1, line protocol and InfluxQL")
    }

    fn product(&self) -> &'static str {
        "InfluxDB"
    }

    fn port(&self) -> u16 {
        8086
    }

    fn limits(&self) -> Limits {
        // The first and the last ns that InfluxDB takes, in whole µs.
        Limits {
            time_unit_us: 1,
            form: PointForm::Line,
            times_us: (-9_223_372_036_854_775, 9_223_372_036_854_775),
            only_numbers: false,
            escapes_backslash: false,
            max_tag_bytes: usize::MAX,
            tags: (0, usize::MAX),
        }
    }

    fn namespace(&self, control: &Control) -> String {
        format!("database {}", control.target.namespace)
    }

    fn check(&self, schema: &Schema) -> Result<(), DriverError> {
        let create: Create = parse_part("create", &schema.create)?;
        create.shard_duration.as_deref().map_or(Ok(()), check_duration)?;
        Ok(())
    }

    fn describe(&self, control: &Control) -> Result<Description, DriverError> {
        let reply = control.answer(Call::get("/ping"))?;
        let version = reply.header("x-influxdb-version");
        let version = version.ok_or_else(|| control.target.unreachable("it does not answer as InfluxDB does"))?;
        // What the server is built from, and how far it is let in, is asked of it: /ping answers everybody.
        let diagnostics = ask(control, None, "SHOW DIAGNOSTICS")?;
        let mut settings = BTreeMap::new();
        for (part, key) in SETTINGS {
            if let Some(value) = setting(&diagnostics, part, key) {
                settings.insert(key.to_owned(), value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            }
        }
        Ok(Description { database: "InfluxDB".to_owned(), version: version.trim_start_matches('v').to_owned(), settings })
    }

    fn occupant(&self, control: &Control) -> Result<Occupant, DriverError> {
        let namespace = &control.target.namespace;
        let refused = |error| in_namespace(control, error);
        if !databases(control).map_err(refused)?.contains(namespace) {
            return Ok(Occupant::Absent);
        }
        let text = marker_text(control, namespace).map_err(refused)?;
        Ok(Occupant::by_text(text.as_deref(), || "it is somebody's database".to_owned()))
    }

    fn create(&self, control: &Control, schema: &Schema, marker: &Marker) -> Result<(), DriverError> {
        let create: Create = parse_part("create", &schema.create)?;
        let shards = match &create.shard_duration {
            None => String::new(),
            Some(duration) => format!(" WITH SHARD DURATION {duration}"),
        };
        let query = format!("CREATE DATABASE \"{}\"{shards}", control.target.namespace);
        ask(control, None, &query).map_err(|error| in_namespace(control, error))?;
        self.write_marker(control, marker)
    }

    fn write_marker(&self, control: &Control, marker: &Marker) -> Result<(), DriverError> {
        let written = control.answer(self.write(&control.target, marker_line(marker)));
        written.map(drop).map_err(|error| in_namespace(control, error))
    }

    fn remove(&self, control: &Control) -> Result<(), DriverError> {
        let removed = ask(control, None, &format!("DROP DATABASE \"{}\"", control.target.namespace));
        removed.map(drop).map_err(|error| in_namespace(control, error))
    }

    fn namespaces(&self, control: &Control) -> Result<Vec<String>, DriverError> {
        let mut ours = Vec::new();
        for database in databases(control)?.into_iter().filter(|name| !SERVER_DATABASES.contains(&name.as_str())) {
            if marker_text(control, &database)?.is_some_and(|text| Marker::parse(&text).is_some()) {
                ours.push(database);
            }
        }
        ours.sort_unstable();
        Ok(ours)
    }

    fn write(&self, target: &Target, lines: Vec<u8>) -> Call {
        Call::post(format!("/write?db={}&precision=u", target.namespace), lines)
    }

    /// A batch is refused in part where the answer says how many points were dropped.
    fn kept_of_refused(&self, rows: u64, reply: &Reply) -> Option<u64> {
        let text = String::from_utf8_lossy(&reply.body);
        let (_, after) = text.split_once("partial write")?;
        let (_, number) = after.rsplit_once("dropped=")?;
        let digits = number.len() - number.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        rows.checked_sub(number[..digits].parse().ok()?)
    }

    /// Waits until what was written is in files, compressed, and no longer in the log: where the server does that soon.
    fn settle(&self, control: &Control) -> Result<(), DriverError> {
        await_files(cold_after(control)?, || log_bytes(control))
    }

    /// What InfluxDB has answered, it shows.
    fn show(&self, _: &Control) -> Result<(), DriverError> {
        Ok(())
    }

    fn count(&self, control: &Control, points: &Points, field: Option<&str>) -> Result<u64, DriverError> {
        let counted = field.map_or("*".to_owned(), |field| format!("\"{field}\""));
        let query = format!("SELECT count({counted}) FROM \"{}\"", points.measurement);
        let found = ask(control, Some(&control.target.namespace), &query)?;
        let counts = found.iter().flat_map(|series| series.values.iter().flat_map(|row| row.iter().skip(1)));
        Ok(counts.filter_map(Json::as_u64).sum())
    }

    /// The files of the database's shards, their log included, as the server counts them.
    fn size(&self, control: &Control) -> Result<Size, DriverError> {
        let mut size = Size::default();
        for statistic in statistics(control)?.values().filter(|statistic| statistic["name"] == "shard") {
            if statistic["tags"]["database"] == control.target.namespace.as_str() {
                let bytes = statistic["values"]["diskBytes"].as_u64().unwrap_or(0);
                size.total_bytes += bytes;
                size.parts.insert(format!("shard {}", statistic["tags"]["id"].as_str().unwrap_or("?")), bytes);
            }
        }
        Ok(size)
    }

    /// Statistics by their group, summed over databases, shards and the like.
    fn status(&self, control: &Control) -> Result<BTreeMap<String, f64>, DriverError> {
        let mut status = BTreeMap::new();
        for (key, statistic) in statistics(control)? {
            let (group, values) = match (statistic["name"].as_str(), &statistic["values"]) {
                (Some(name), Json::Object(values)) => (name.to_owned(), values.clone()),
                _ if key == "memstats" => (key, statistic.as_object().cloned().unwrap_or_default()),
                _ => continue,
            };
            for (name, value) in values {
                if let Some(value) = value.as_f64() {
                    *status.entry(format!("{group}.{name}")).or_insert(0.0) += value;
                }
            }
        }
        Ok(status)
    }

    fn reading(&self, scope: &Scope, operation: &Operation) -> Result<Box<dyn Reading>, DriverError> {
        Ok(Box::new(InfluxReading::of(&scope.namespace, operation)?))
    }

    /// A measurement that is not there.
    fn no_op(&self) -> Json {
        json!({
            "name": "nothing",
            "columns": [{"name": "value", "type": "double"}],
            "statement": {"query": "SELECT value FROM nothing"},
        })
    }
}

/// A setting, as a part of the diagnostics has it.
fn setting<'a>(diagnostics: &'a [Series], part: &str, key: &str) -> Option<&'a Json> {
    diagnostics.iter().filter(|series| series.name.as_deref() == Some(part)).flat_map(|series| series.column(key)).next()
}

/// After how long without a write the server writes a shard's points from memory and log to files.
fn cold_after(control: &Control) -> Result<Option<Duration>, DriverError> {
    let diagnostics = ask(control, None, "SHOW DIAGNOSTICS")?;
    Ok(setting(&diagnostics, STORE, COLD_AFTER).and_then(Json::as_str).and_then(seconds))
}

/// A time below a minute, as Go writes it: `1s`.
pub fn seconds(text: &str) -> Option<Duration> {
    text.strip_suffix('s')?.parse().ok().map(Duration::from_secs_f64)
}

/// Waits until a server's log is empty, where it empties logs soon after the last write: its points are in files then.
///
/// # Errors
/// The log does not become shorter any more.
pub fn await_files(cold_after: Option<Duration>, log_bytes: impl Fn() -> Result<u64, DriverError>) -> Result<(), DriverError> {
    match cold_after.filter(|cold| *cold <= LONGEST_COLD) {
        Some(cold) => await_empty(cold * COLD_TIMES + LONGEST_SNAPSHOT, log_bytes),
        None => Ok(()),
    }
}

/// Waits until a log is empty, as long as it becomes shorter within `patience`.
fn await_empty(patience: Duration, log_bytes: impl Fn() -> Result<u64, DriverError>) -> Result<(), DriverError> {
    let (mut bytes, mut since) = (log_bytes()?, Instant::now());
    while bytes > 0 {
        if since.elapsed() > patience {
            let waited_s = patience.as_secs_f64();
            return Err(DriverError::Statement(format!(
                "its log still has {bytes} bytes, and did not become shorter in {waited_s} s: the server does not write them to files, so that the \
                 size of the data is unknown; what it reports itself says why"
            )));
        }
        std::thread::sleep(BETWEEN_LOOKS);
        let left = log_bytes()?;
        if left < bytes {
            since = Instant::now();
        }
        bytes = left;
    }
    Ok(())
}

/// Bytes of the logs of the namespace's shards.
fn log_bytes(control: &Control) -> Result<u64, DriverError> {
    let own = control.target.namespace.as_str();
    let statistics = statistics(control)?;
    let logs = statistics.values().filter(|one| one["name"] == "tsm1_wal" && one["tags"]["database"] == own);
    let bytes =
        |one: &Json| ["currentSegmentDiskBytes", "oldSegmentsDiskBytes"].map(|key| one["values"][key].as_u64().unwrap_or(0));
    Ok(logs.flat_map(bytes).sum())
}

fn statistics(control: &Control) -> Result<serde_json::Map<String, Json>, DriverError> {
    let reply = control.answer(Call::get("/debug/vars"))?;
    let parsed = serde_json::from_slice(&reply.body);
    parsed.map_err(|error| control.target.unreachable(format!("its statistics are not as InfluxDB has them: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_awaited_as_long_as_it_becomes_shorter() {
        let patience = BETWEEN_LOOKS * 3;
        let lengths = |found: &'static [u64]| {
            let place = std::cell::Cell::new(0);
            move || {
                let bytes = found[place.get().min(found.len() - 1)];
                place.set(place.get() + 1);
                Ok(bytes)
            }
        };
        await_empty(patience, lengths(&[5, 4, 4, 3, 3, 2, 2, 1, 0])).unwrap();
        let stuck = await_empty(patience, lengths(&[5, 4, 6])).unwrap_err().to_string();
        assert!(stuck.contains("still has 6 bytes"), "{stuck}");
        // Where the server keeps points in its log for long, nothing is awaited.
        for cold in [None, seconds("10m0s"), Some(LONGEST_COLD * 2)] {
            await_files(cold, || panic!("nobody looks")).unwrap();
        }
        assert_eq!(seconds("1.5s"), Some(Duration::from_millis(1500)));
    }

    #[test]
    fn shards_have_seconds() {
        let seconds = |create| shard_seconds(&serde_json::from_value(json!({"create": create})).unwrap());
        assert_eq!(seconds(json!({})).unwrap(), None);
        for (text, expected) in [("30m", 1800), ("1h", 3600), ("364d", 31_449_600), ("2w", 1_209_600)] {
            assert_eq!(seconds(json!({"shard_duration": text})).unwrap(), Some(expected), "{text}");
        }
        assert!(seconds(json!({"shard_duration": "1y"})).is_err());
    }

    #[test]
    fn durations_are_numbers_of_a_unit() {
        assert!(["1h", "30d", "52w"].iter().all(|text| check_duration(text).is_ok()));
        for text in ["", "d", "30", "30x", "1d; DROP DATABASE x", "-1d", "1d2h", "9999999999d"] {
            assert!(check_duration(text).unwrap_err().to_string().contains("expected a number of"), "{text}");
        }
    }
}
