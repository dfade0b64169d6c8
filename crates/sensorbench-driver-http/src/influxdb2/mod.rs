//! InfluxDB 2: buckets, written by the line protocol at `/api/v2/write` and read by InfluxQL, which it keeps from InfluxDB 1. sensorbench's
//! namespace is a bucket of the organisation that the option `org` names; a bucket is found as a database of its name without more.
//!
//! Its contract test runs by hand, because the server takes too long to build for each run of the tests.
//!
//! The token is in the place of the password, with `auth=token`. Schema files are those of InfluxDB 1; what points are and what is done with them is
//! as there. `influxdb2+flux://` reads by Flux instead, and has schema files of its own ([`flux`]): the bucket is `::bucket` in them.

mod flux;

use std::collections::BTreeMap;
use std::time::Duration;

use percent_encoding::utf8_percent_encode;
use sensorbench_driver::{About, Description, DriverError, Marker, Occupant, Operation, Schema, Size};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use self::flux::FluxReading;
use crate::connection::{Call, ENCODED, Reply};
use crate::control::Control;
use crate::influxdb::{Influxdb, await_files, in_namespace, marker_line, marker_text, seconds, shard_seconds};
use crate::line::Limits;
use crate::metrics;
use crate::points::Points;
use crate::protocol::{Protocol, Reading, Scope};
use crate::target::Target;

/// The organisation that has the buckets.
const ORGANISATION: &str = "org";
/// Buckets of a page of their list.
const PAGE: usize = 100;
/// How long a shard is not written to until the server writes its points to files.
const COLD_AFTER: &str = "storage-cache-snapshot-write-cold-duration";
/// The gauge of a shard's size, its log included, is renewed this often (DefaultMetricInterval of tsdb/shard.go).
const SIZES_EVERY: Duration = Duration::from_secs(10);
/// Settings that matter to speed and durability.
const SETTINGS: [&str; 7] = [
    "storage-wal-fsync-delay",
    "storage-wal-max-concurrent-writes",
    "storage-cache-max-memory-size",
    "storage-cache-snapshot-memory-size",
    COLD_AFTER,
    "storage-compact-full-write-cold-duration",
    "storage-max-concurrent-compactions",
];

/// InfluxDB 2, by the language that it is read in.
pub struct Influxdb2 {
    /// Flux, and else InfluxQL.
    pub reads_flux: bool,
}

#[derive(Deserialize)]
struct Bucket {
    id: String,
    name: String,
    #[serde(rename = "type", default)]
    kind: String,
}

fn organisation(target: &Target) -> Result<String, DriverError> {
    let named = target.options.get(ORGANISATION).filter(|name| !name.is_empty());
    let named =
        named.ok_or_else(|| DriverError::Url("influxdb2 needs the option org=, the organisation of the token".to_owned()))?;
    Ok(utf8_percent_encode(named, ENCODED).to_string())
}

/// The answer to a question in JSON.
fn parsed_answer<T: DeserializeOwned>(control: &Control, reply: &Reply) -> Result<T, DriverError> {
    serde_json::from_slice(&reply.body)
        .map_err(|error| control.target.unreachable(format!("it does not answer as InfluxDB 2 does: {error}")))
}

fn organisation_id(control: &Control) -> Result<String, DriverError> {
    #[derive(Deserialize)]
    struct Organisations {
        orgs: Vec<Organisation>,
    }
    #[derive(Deserialize)]
    struct Organisation {
        id: String,
    }
    let found: Organisations =
        parsed_answer(control, &control.answer(Call::get(format!("/api/v2/orgs?org={}", organisation(&control.target)?)))?)?;
    let first = found.orgs.into_iter().next();
    Ok(first.ok_or_else(|| DriverError::Statement("there is no such organisation".to_owned()))?.id)
}

/// Buckets of the organisation, of one name or all.
fn buckets(control: &Control, name: Option<&str>) -> Result<Vec<Bucket>, DriverError> {
    #[derive(Deserialize)]
    struct Listed {
        buckets: Vec<Bucket>,
    }
    let organisation = organisation(&control.target)?;
    let wanted = name.map_or(String::new(), |name| format!("&name={name}"));
    let mut all = Vec::new();
    loop {
        let path = format!("/api/v2/buckets?org={organisation}&limit={PAGE}&offset={}{wanted}", all.len());
        let reply = control.ask(Call::get(path))?;
        if name.is_some() && reply.status.as_u16() == 404 {
            return Ok(all);
        }
        if !reply.status.is_success() {
            return Err(DriverError::Statement(reply.shown()));
        }
        let Listed { buckets } = parsed_answer(control, &reply)?;
        let is_last = buckets.len() < PAGE || name.is_some();
        all.extend(buckets);
        if is_last {
            return Ok(all);
        }
    }
}

fn own_bucket(control: &Control) -> Result<Option<Bucket>, DriverError> {
    let namespace = &control.target.namespace;
    Ok(buckets(control, Some(namespace))?.into_iter().find(|bucket| bucket.name == *namespace))
}

impl Protocol for Influxdb2 {
    fn about(&self) -> About {
        if self.reads_flux {
            let summary = "time series with tags and fields: InfluxDB 2, line protocol and Flux";
            return About::server("influxdb2+flux", summary);
        }
        About {
            schemas: "influxdb",
            ..About::server("influxdb2", "time series with tags and fields: InfluxDB 2, line protocol and InfluxQL")
        }
    }

    fn product(&self) -> &'static str {
        "InfluxDB 2"
    }

    fn port(&self) -> u16 {
        Influxdb.port()
    }

    fn options(&self) -> &'static [&'static str] {
        &[ORGANISATION]
    }

    fn limits(&self) -> Limits {
        Influxdb.limits()
    }

    fn namespace(&self, control: &Control) -> String {
        format!("bucket {}", control.target.namespace)
    }

    fn check(&self, schema: &Schema) -> Result<(), DriverError> {
        Influxdb.check(schema)
    }

    fn describe(&self, control: &Control) -> Result<Description, DriverError> {
        let reply = control.answer(Call::get("/ping"))?;
        let version = reply.header("x-influxdb-version");
        let version = version
            .ok_or_else(|| control.target.unreachable("it does not answer as InfluxDB does"))?
            .trim_start_matches('v')
            .to_owned();
        // /ping answers everybody: this asks who may come in.
        organisation_id(control)?;
        Ok(Description { database: "InfluxDB".to_owned(), version, settings: settings(control)? })
    }

    fn occupant(&self, control: &Control) -> Result<Occupant, DriverError> {
        let refused = |error| in_namespace(control, error);
        if own_bucket(control).map_err(refused)?.is_none() {
            return Ok(Occupant::Absent);
        }
        let text = marker_text(control, &control.target.namespace).map_err(refused)?;
        Ok(Occupant::by_text(text.as_deref(), || "it is somebody's bucket".to_owned()))
    }

    fn create(&self, control: &Control, schema: &Schema, marker: &Marker) -> Result<(), DriverError> {
        let rules = match shard_seconds(schema)? {
            None => json!([]),
            Some(seconds) => json!([{"type": "expire", "everySeconds": 0, "shardGroupDurationSeconds": seconds}]),
        };
        let organisation = organisation_id(control).map_err(|error| in_namespace(control, error))?;
        let bucket = json!({"orgID": organisation, "name": control.target.namespace, "retentionRules": rules});
        let made = control.answer(Call::post("/api/v2/buckets", bucket.to_string().into_bytes()));
        made.map_err(|error| in_namespace(control, error))?;
        self.write_marker(control, marker)
    }

    fn write_marker(&self, control: &Control, marker: &Marker) -> Result<(), DriverError> {
        let written = control.answer(self.write(&control.target, marker_line(marker)));
        written.map(drop).map_err(|error| in_namespace(control, error))
    }

    fn remove(&self, control: &Control) -> Result<(), DriverError> {
        let refused = |error| in_namespace(control, error);
        let Some(bucket) = own_bucket(control).map_err(refused)? else { return Ok(()) };
        control.answer(Call::delete(format!("/api/v2/buckets/{}", bucket.id))).map(drop).map_err(refused)
    }

    fn namespaces(&self, control: &Control) -> Result<Vec<String>, DriverError> {
        let mut ours = Vec::new();
        for bucket in buckets(control, None)?.into_iter().filter(|bucket| bucket.kind != "system") {
            if marker_text(control, &bucket.name)?.is_some_and(|text| Marker::parse(&text).is_some()) {
                ours.push(bucket.name);
            }
        }
        ours.sort_unstable();
        Ok(ours)
    }

    fn write(&self, target: &Target, lines: Vec<u8>) -> Call {
        // That the URL names an organisation was made sure of before anything is written.
        let organisation = organisation(target).unwrap_or_default();
        Call::post(format!("/api/v2/write?org={organisation}&bucket={}&precision=us", target.namespace), lines)
    }

    fn kept_of_refused(&self, rows: u64, reply: &Reply) -> Option<u64> {
        Influxdb.kept_of_refused(rows, reply)
    }

    /// Waits until what was written is in files, as InfluxDB 1 does, and until the sizes of shards are those of then.
    fn settle(&self, control: &Control) -> Result<(), DriverError> {
        let cold_after = settings(control)?.get(COLD_AFTER).and_then(|text| seconds(text));
        await_files(cold_after, || bytes_of_bucket(control, "storage_wal_size"))?;
        std::thread::sleep(SIZES_EVERY);
        Ok(())
    }

    /// What InfluxDB has answered, it shows.
    fn show(&self, _: &Control) -> Result<(), DriverError> {
        Ok(())
    }

    fn count(&self, control: &Control, points: &Points, field: Option<&str>) -> Result<u64, DriverError> {
        Influxdb.count(control, points, field)
    }

    /// The files of the bucket's shards, their log included, as the server counts them.
    fn size(&self, control: &Control) -> Result<Size, DriverError> {
        let mut size = Size::default();
        for (shard, bytes) in shards_of_bucket(control, "storage_shard_disk_size")? {
            size.total_bytes += bytes;
            size.parts.insert(format!("shard {shard}"), bytes);
        }
        Ok(size)
    }

    fn status(&self, control: &Control) -> Result<BTreeMap<String, f64>, DriverError> {
        metrics::sums(control)
    }

    fn reading(&self, scope: &Scope, operation: &Operation) -> Result<Box<dyn Reading>, DriverError> {
        if !self.reads_flux {
            return Influxdb.reading(scope, operation);
        }
        Ok(Box::new(FluxReading::of(scope.queries.clone(), &scope.namespace, operation)?))
    }

    /// The names of measurements need no prefix; queries of Flux need the organisation.
    fn scope(&self, control: &Control) -> Result<Scope, DriverError> {
        let queries = format!("/api/v2/query?org={}", organisation(&control.target)?);
        Ok(Scope { queries, ..Scope::new(&control.target.namespace, "") })
    }

    fn no_op(&self) -> Json {
        if !self.reads_flux {
            return Influxdb.no_op();
        }
        json!({
            "name": "nothing",
            "columns": [{"name": "one", "type": "double"}],
            "statement": {"query": "import \"array\"\narray.from(rows: [{one: 1.0}])"},
        })
    }
}

/// A gauge of each shard of the namespace, in bytes.
fn shards_of_bucket(control: &Control, gauge: &str) -> Result<BTreeMap<String, u64>, DriverError> {
    let Some(bucket) = own_bucket(control)? else { return Ok(BTreeMap::new()) };
    let samples = metrics::read(control)?.into_iter();
    let own = samples.filter(|sample| sample.name == gauge && sample.labels.get("bucket") == Some(&bucket.id));
    Ok(own.map(|mut sample| (sample.labels.remove("id").unwrap_or_default(), sample.value as u64)).collect())
}

fn bytes_of_bucket(control: &Control, gauge: &str) -> Result<u64, DriverError> {
    Ok(shards_of_bucket(control, gauge)?.values().sum())
}

/// How the server is set, as far as it shows the owner of the token.
fn settings(control: &Control) -> Result<BTreeMap<String, String>, DriverError> {
    #[derive(Deserialize)]
    struct Answer {
        config: BTreeMap<String, Json>,
    }
    let reply = match control.ask(Call::get("/api/v2/config")) {
        Ok(reply) if reply.status.is_success() => reply,
        // Only operators see it.
        Ok(reply) => return Ok(BTreeMap::from([("settings".to_owned(), format!("not reported: {}", reply.shown()))])),
        Err(DriverError::Connection(words)) => {
            return Ok(BTreeMap::from([("settings".to_owned(), format!("not reported: {words}"))]));
        }
        Err(other) => return Err(other),
    };
    let Answer { mut config } = parsed_answer(control, &reply)?;
    let reported = |name: &str| {
        let value = config.remove(name)?;
        Some((name.to_owned(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
    };
    Ok(SETTINGS.into_iter().filter_map(reported).collect())
}
