//! InfluxDB 3: databases and tables, written by the line protocol at `/api/v3/write_lp` and read by SQL at `/api/v3/query_sql`, whose answers come
//! as JSON Lines. sensorbench's namespace is a database. The token is in the place of the password; `auth=bearer`.
//!
//! An acknowledged write is in the object store, which takes it once a second, and queries find it then; with the option `sync=off` it is acknowledged before that. Of a
//! batch that is partly refused the rest stays, and the answer names each refused line.
//!
//! In `query`, `:name` in a condition is bound by the server; a tag is text, so that a number is compared with it as `:site@text`; `":sensor"` is
//! the name of a column that a parameter brings.
//!
//! No such server could be started where this was written: requests and answers follow its documentation of 3.11 alone.

mod reading;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use sensorbench_driver::{
    About, Description, DriverError, Marker, Occupant, Operation, Schema, Size, TargetUrl, quoted as quoted_name,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use self::reading::{SqlReading, call};
use crate::connection::{Call, Reply};
use crate::control::Control;
use crate::influxdb::{Influxdb, in_namespace};
use crate::line::Limits;
use crate::metrics;
use crate::points::Points;
use crate::protocol::{Protocol, Reading, Scope};
use crate::target::Target;
use crate::times::next_ms;

const DATABASES_PATH: &str = "/api/v3/configure/database";
const MARK_TABLE: &str = "sensorbench";
const SYNC: &str = "sync";

pub struct Influxdb3;

#[derive(Deserialize)]
struct Database {
    #[serde(rename = "iox::database")]
    name: String,
}

/// What the server says of a batch that it took in part: the lines that it did not take.
#[derive(Deserialize)]
struct PartialWrite {
    data: Vec<RefusedLine>,
}

#[derive(Deserialize)]
struct RefusedLine {
    #[serde(rename = "line_number")]
    _line_number: u64,
}

#[derive(Deserialize)]
struct TableName {
    table_name: String,
}

fn waits_for_store(target: &Target) -> bool {
    target.options.get(SYNC).is_none_or(|word| word != "off")
}

/// Where lines go that are acknowledged when they are in the object store.
fn write_path(target: &Target) -> String {
    format!("/api/v3/write_lp?db={}&precision=microsecond", target.namespace)
}

/// The rows of an answer to a question of control.
fn ask<T: DeserializeOwned>(control: &Control, database: &str, query: &str) -> Result<Vec<T>, DriverError> {
    let reply = control.answer(call(database, query, ""))?;
    let lines = reply.body.split(|byte| *byte == b'\n').filter(|line| !line.iter().all(u8::is_ascii_whitespace));
    lines.map(|line| parsed(control, line)).collect()
}

fn parsed<T: DeserializeOwned>(control: &Control, json: &[u8]) -> Result<T, DriverError> {
    serde_json::from_slice(json)
        .map_err(|error| control.target.unreachable(format!("it does not answer as InfluxDB 3 does: {error}")))
}

fn databases(control: &Control) -> Result<Vec<Database>, DriverError> {
    let reply = control.answer(Call::get(format!("{DATABASES_PATH}?format=json")))?;
    parsed(control, &reply.body)
}

/// The tables that users made, among them the marker's.
fn tables(control: &Control, database: &str) -> Result<Vec<String>, DriverError> {
    let query = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'iox' ORDER BY table_name";
    let found: Vec<TableName> = ask(control, database, query)?;
    Ok(found.into_iter().map(|table| table.table_name).collect())
}

/// The text where a marker would be.
fn marker_text(control: &Control, database: &str) -> Result<Option<String>, DriverError> {
    #[derive(Deserialize)]
    struct Found {
        mark: Option<Json>,
    }
    let columns = format!(
        "SELECT table_name FROM information_schema.columns \
         WHERE table_schema = 'iox' AND table_name = '{MARK_TABLE}' AND column_name = 'mark'"
    );
    let found: Vec<TableName> = ask(control, database, &columns)?;
    if found.is_empty() {
        return Ok(None);
    }
    // A marker that is written again is a later row: which of two rows of the same time stays is not certain for a while.
    let newest = format!("SELECT mark FROM {MARK_TABLE} WHERE mark IS NOT NULL ORDER BY time DESC LIMIT 1");
    let found: Vec<Found> = ask(control, database, &newest)?;
    Ok(found.into_iter().next().and_then(|row| row.mark).and_then(|mark| mark.as_str().map(str::to_owned)))
}

impl Protocol for Influxdb3 {
    fn about(&self) -> About {
        About::server("influxdb3", "time series with tags and fields: InfluxDB 3, line protocol and SQL")
    }

    fn product(&self) -> &'static str {
        "InfluxDB 3"
    }

    fn port(&self) -> u16 {
        8181
    }

    fn options(&self) -> &'static [&'static str] {
        &[SYNC]
    }

    fn check_options(&self, url: &TargetUrl) -> Result<(), DriverError> {
        match url.option(SYNC) {
            None | Some("on" | "off") => Ok(()),
            Some(other) => Err(url.error(format!("option {SYNC}={other}: expected on or off"))),
        }
    }

    fn limits(&self) -> Limits {
        Influxdb.limits()
    }

    fn namespace(&self, control: &Control) -> String {
        Influxdb.namespace(control)
    }

    fn describe(&self, control: &Control) -> Result<Description, DriverError> {
        let reply = control.answer(Call::get("/ping"))?;
        let version = reply.header("x-influxdb-version");
        let version = version.ok_or_else(|| control.target.unreachable("it does not answer as InfluxDB 3 does"))?.to_owned();
        let mut settings = BTreeMap::new();
        if let Some(build) = reply.header("x-influxdb-build") {
            settings.insert("build".to_owned(), build.to_owned());
        }
        let place = if waits_for_store(&control.target) { "in the object store" } else { "in memory" };
        settings.insert("a write waits until it is".to_owned(), place.to_owned());
        Ok(Description { database: "InfluxDB 3".to_owned(), version, settings })
    }

    fn occupant(&self, control: &Control) -> Result<Occupant, DriverError> {
        let namespace = &control.target.namespace;
        let refused = |error| in_namespace(control, error);
        if !databases(control).map_err(refused)?.iter().any(|database| database.name == *namespace) {
            return Ok(Occupant::Absent);
        }
        let text = marker_text(control, namespace).map_err(refused)?;
        Ok(Occupant::by_text(text.as_deref(), || "it is somebody's database".to_owned()))
    }

    fn create(&self, control: &Control, _: &Schema, marker: &Marker) -> Result<(), DriverError> {
        let database = json!({"db": control.target.namespace}).to_string();
        let made = control.answer(Call::post_json(DATABASES_PATH, database.into_bytes()));
        made.map_err(|error| in_namespace(control, error))?;
        self.write_marker(control, marker)
    }

    fn write_marker(&self, control: &Control, marker: &Marker) -> Result<(), DriverError> {
        let text = marker.to_text().replace('\\', "\\\\").replace('"', "\\\"");
        let line = format!("{MARK_TABLE} mark=\"{text}\" {}\n", next_ms() * 1000);
        let written = control.answer(Call::post(write_path(&control.target), line.into_bytes()));
        written.map(drop).map_err(|error| in_namespace(control, error))
    }

    /// At once, and not only out of sight.
    fn remove(&self, control: &Control) -> Result<(), DriverError> {
        let path = format!("{DATABASES_PATH}?db={}&hard_delete_at=now", control.target.namespace);
        let removed = control.answer(Call::delete(path));
        removed.map(drop).map_err(|error| in_namespace(control, error))
    }

    fn namespaces(&self, control: &Control) -> Result<Vec<String>, DriverError> {
        let mut ours = Vec::new();
        for database in databases(control)?.into_iter().filter(|database| database.name != "_internal") {
            if marker_text(control, &database.name)?.is_some_and(|text| Marker::parse(&text).is_some()) {
                ours.push(database.name);
            }
        }
        ours.sort_unstable();
        Ok(ours)
    }

    fn write(&self, target: &Target, lines: Vec<u8>) -> Call {
        let no_sync = if waits_for_store(target) { "" } else { "&no_sync=true" };
        Call::post(format!("{}{no_sync}", write_path(target)), lines)
    }

    /// Each line that was refused is named; the others are in.
    fn kept_of_refused(&self, rows: u64, reply: &Reply) -> Option<u64> {
        let PartialWrite { data } = serde_json::from_slice(&reply.body).ok()?;
        rows.checked_sub(data.len() as u64)
    }

    /// What is in the object store, queries find. Where writes do not wait for that, one that does comes after all of them.
    fn settle(&self, control: &Control) -> Result<(), DriverError> {
        if waits_for_store(&control.target) {
            return Ok(());
        }
        let line = format!("{MARK_TABLE} settled=true {}\n", next_ms() * 1000);
        control.answer(Call::post(write_path(&control.target), line.into_bytes())).map(drop)
    }

    fn count(&self, control: &Control, points: &Points, field: Option<&str>) -> Result<u64, DriverError> {
        let table = quoted_name(&points.measurement);
        let counts = match field {
            Some(field) => vec![format!("count({})", quoted_name(field))],
            None => field_columns(control, points)?.iter().map(|field| format!("count({})", quoted_name(field))).collect(),
        };
        if counts.is_empty() {
            return Ok(0);
        }
        #[derive(Deserialize)]
        struct Count {
            n: u64,
        }
        let counted: Vec<Count> =
            ask(control, &control.target.namespace, &format!("SELECT {} AS n FROM {table}", counts.join(" + ")))?;
        Ok(counted.iter().map(|count| count.n).sum())
    }

    /// The files of the tables, as the server lists them. What has not left its log yet is in none.
    fn size(&self, control: &Control) -> Result<Size, DriverError> {
        #[derive(Deserialize)]
        struct File {
            size_bytes: u64,
        }
        let mut size = Size::default();
        let namespace = &control.target.namespace;
        for table in tables(control, namespace)? {
            let query = format!("SELECT size_bytes FROM system.parquet_files WHERE table_name = '{}'", table.replace('\'', "''"));
            let files: Vec<File> = ask(control, namespace, &query)?;
            let bytes = files.iter().map(|file| file.size_bytes).sum();
            size.total_bytes += bytes;
            if table != MARK_TABLE {
                size.parts.insert(table, bytes);
            }
        }
        Ok(size)
    }

    fn status(&self, control: &Control) -> Result<BTreeMap<String, f64>, DriverError> {
        metrics::sums(control)
    }

    fn reading(&self, scope: &Scope, operation: &Operation) -> Result<Box<dyn Reading>, DriverError> {
        Ok(Box::new(SqlReading::of(&scope.namespace, operation)?))
    }

    fn no_op(&self) -> Json {
        json!({
            "name": "nothing",
            "columns": [{"name": "one", "type": "integer"}],
            "statement": {"query": "SELECT 1 AS one"},
        })
    }
}

/// The fields of a table whose rows name theirs: its columns that are neither tags nor the time.
fn field_columns(control: &Control, points: &Points) -> Result<Vec<String>, DriverError> {
    #[derive(Deserialize)]
    struct Field {
        column_name: String,
    }
    let query = format!(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = 'iox' AND table_name = '{}'",
        points.measurement
    );
    let found: Vec<Field> = ask(control, &control.target.namespace, &query)?;
    let is_field = |name: &String| name != "time" && !points.tags.iter().any(|(tag, _)| tag == name);
    Ok(found.into_iter().map(|field| field.column_name).filter(is_field).collect())
}
