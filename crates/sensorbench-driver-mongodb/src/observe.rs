//! What the server reports about itself: which one it is, settings, sizes, counters.

use std::collections::BTreeMap;

use bson::{Bson, Document, doc};
use mongodb::Database;
use mongodb::error::Error;
use sensorbench_driver::{Description, DriverError, Size};

use crate::documents::Documents;
use crate::target::Target;
use crate::{errors, namespace};

/// Sections of serverStatus whose numbers are of interest; what else there is depends on the server, and is much.
const SECTIONS: [&str; 13] = [
    "asserts",
    "catalogStats",
    "connections",
    "extra_info",
    "flowControl",
    "globalLock",
    "mem",
    "metrics",
    "network",
    "opLatencies",
    "opcounters",
    "uptimeMillis",
    "wiredTiger",
];

/// Which server answers, and how it is set. FerretDB says so itself where it reports which MongoDB it is like.
pub async fn describe(database: &Database, target: &Target) -> Result<Description, Error> {
    let build = database.run_command(doc! {"buildInfo": 1}).await?;
    let hello = database.run_command(doc! {"hello": 1}).await?;
    let text = |document: &Document, key: &str| document.get_str(key).ok().map(str::to_owned);
    let like = text(&build, "version").unwrap_or_else(|| "not reported".to_owned());
    let mut settings = BTreeMap::new();
    let (name, version) = match text(&build, "ferretdbVersion") {
        Some(version) => {
            settings.insert("speaks like MongoDB".to_owned(), like);
            settings.extend(backend(database).await.map(|backend| ("data are in".to_owned(), backend)));
            ("FerretDB", version)
        }
        None => ("MongoDB", like),
    };
    settings.insert("topology".to_owned(), topology(&hello));
    let sharding = match name {
        _ if is_router(&hello) => shard_keys(database, target).await.unwrap_or_else(|error| format!("not reported ({error})")),
        "FerretDB" => "none: FerretDB cannot shard collections".to_owned(),
        _ => "none: the server is not a router of a sharded cluster (mongos)".to_owned(),
    };
    settings.insert("sharding".to_owned(), sharding);
    settings.insert("wire version".to_owned(), hello.get_i32("maxWireVersion").unwrap_or_default().to_string());
    let status = database.run_command(doc! {"serverStatus": 1}).await.unwrap_or_default();
    let engine = status.get_document("storageEngine").ok().and_then(|engine| text(engine, "name"));
    settings.extend(engine.map(|engine| ("storage engine".to_owned(), engine)));
    for (name, concern) in [("write concern", &target.write_concern), ("read concern", &target.read_concern)] {
        let requested = if concern.is_empty() { "the server's own".to_owned() } else { concern.to_string() };
        settings.insert(name.to_owned(), requested);
    }
    settings.insert("read preference".to_owned(), target.read_from.clone());
    Ok(Description { database: name.to_owned(), version: version.trim_start_matches('v').to_owned(), settings })
}

/// Whether the server keeps doubles that are not a number. FerretDB ends the connection over one.
pub async fn keeps_nan(database: &Database) -> Result<bool, Error> {
    let build = database.run_command(doc! {"buildInfo": 1}).await?;
    Ok(!build.contains_key("ferretdbVersion"))
}

/// What FerretDB keeps the data in: it says so in what it reports at the start.
async fn backend(database: &Database) -> Option<String> {
    let reply = database.client().database("admin").run_command(doc! {"getLog": "startupWarnings"}).await.ok()?;
    let lines = reply.get_array("log").ok()?.iter().filter_map(Bson::as_str);
    lines.filter_map(powered_by).next()
}

/// The backend in a line like `Powered by FerretDB v1.24.2 and SQLite 3.46.0.`
fn powered_by(line: &str) -> Option<String> {
    let (_, after) = line.split_once("Powered by FerretDB ")?;
    let (_, backend) = after.split_once(" and ")?;
    let end = backend.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == ' ')).unwrap_or(backend.len());
    Some(backend[..end].trim_end_matches(['.', ' ']).to_owned())
}

/// Whether the server is a router of a sharded cluster.
pub async fn is_sharded(database: &Database) -> Result<bool, Error> {
    Ok(is_router(&database.run_command(doc! {"hello": 1}).await?))
}

fn is_router(hello: &Document) -> bool {
    hello.get_str("msg").is_ok_and(|word| word == "isdbgrid")
}

/// The shard key of each sharded collection in sensorbench's database, as the cluster's own catalog has it.
async fn shard_keys(database: &Database, target: &Target) -> Result<String, Error> {
    let catalog = database.client().database("config").collection::<Document>("collections");
    let (mut found, mut keys) = (catalog.find(doc! {}).await?, Vec::new());
    while found.advance().await? {
        keys.extend(shard_key(&found.deserialize_current()?, &target.namespace));
    }
    keys.sort_unstable();
    Ok(if keys.is_empty() { "none: no collection is sharded".to_owned() } else { keys.join(", ") })
}

/// `articles by { "_id": "hashed" }`, of an entry about a collection of a database.
fn shard_key(entry: &Document, namespace: &str) -> Option<String> {
    let collection = entry.get_str("_id").ok()?.strip_prefix(namespace)?.strip_prefix('.')?;
    Some(format!("{collection} by {}", entry.get_document("key").ok()?))
}

fn topology(hello: &Document) -> String {
    if is_router(hello) {
        return "sharded cluster".to_owned();
    }
    match (hello.get_str("setName"), hello.get_array("hosts")) {
        (Ok(name), Ok(hosts)) => format!("replica set {name} of {} members", hosts.len()),
        _ => "one server".to_owned(),
    }
}

/// Counts the rows of a table by looking at its documents.
pub async fn count(database: &Database, target: &Target, documents: &Documents) -> Result<u64, DriverError> {
    let refused = |error| errors::statement_error(&target.shown, error);
    let collections = if documents.collection.pieces().is_empty() {
        vec![documents.collection.prefix().to_owned()]
    } else {
        namespace::collections(database, target, documents.collection.prefix()).await?
    };
    let mut rows = 0;
    for collection in collections {
        let collection = database.collection::<Document>(&collection);
        rows += match documents.slots() {
            None => collection.count_documents(doc! {}).await.map_err(refused)?,
            Some(field) => {
                let mut rows = 0;
                let mut found = collection.find(doc! {}).projection(doc! {field: 1}).await.map_err(refused)?;
                while found.advance().await.map_err(refused)? {
                    let document = found.deserialize_current().map_err(refused)?;
                    rows += document.get(field).map_or(0, values_within);
                }
                rows
            }
        };
    }
    Ok(rows)
}

/// How many values there are within documents, nulls left out.
fn values_within(value: &Bson) -> u64 {
    match value {
        Bson::Null => 0,
        Bson::Document(document) => document.values().map(values_within).sum(),
        _ => 1,
    }
}

/// Bytes of sensorbench's database. What the server logs is the whole server's, and not in it.
pub async fn size(database: &Database, target: &Target) -> Result<Size, DriverError> {
    let refused = |error| errors::statement_error(&target.shown, error);
    let stats = database.run_command(doc! {"dbStats": 1}).await.map_err(refused)?;
    let bytes = |document: &Document, key: &str| document.get(key).and_then(number).map_or(0, |number| number as u64);
    let mut parts = BTreeMap::new();
    for collection in namespace::collections(database, target, "").await? {
        let of_one = database.run_command(doc! {"collStats": &collection}).await.map_err(refused)?;
        for (index, size) in of_one.get_document("indexSizes").into_iter().flatten() {
            parts.insert(format!("{collection}.{index}"), number(size).map_or(0, |size| size as u64));
        }
        parts.insert(collection, bytes(&of_one, "storageSize"));
    }
    let reply = bytes(&stats, "storageSize") + bytes(&stats, "indexSize");
    Ok(Size { total_bytes: reply.max(parts.values().sum()), parts, ..Size::default() })
}

/// Counters and gauges of the server that answers, by their names there.
pub async fn status(database: &Database) -> Result<BTreeMap<String, f64>, Error> {
    let reply = database.run_command(doc! {"serverStatus": 1}).await?;
    let mut status = BTreeMap::new();
    for section in SECTIONS {
        if let Some(value) = reply.get(section) {
            add_numbers(section, value, &mut status);
        }
    }
    Ok(status)
}

fn add_numbers(name: &str, value: &Bson, status: &mut BTreeMap<String, f64>) {
    match value {
        Bson::Document(document) => document.iter().for_each(|(key, value)| add_numbers(&format!("{name}.{key}"), value, status)),
        other => status.extend(number(other).map(|number| (name.to_owned(), number))),
    }
}

fn number(value: &Bson) -> Option<f64> {
    match value {
        Bson::Double(number) => Some(*number),
        Bson::Int32(number) => Some(f64::from(*number)),
        Bson::Int64(number) => Some(*number as f64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_at_every_depth() {
        let mut status = BTreeMap::new();
        let section = doc! {"commands": {"find": {"total": 5_i64, "failed": 0}}, "name": "x", "time": 0.5};
        add_numbers("metrics", &section.into(), &mut status);
        let expected = [("metrics.commands.find.failed", 0.0), ("metrics.commands.find.total", 5.0), ("metrics.time", 0.5)];
        assert_eq!(status, expected.map(|(name, value)| (name.to_owned(), value)).into());
    }

    #[test]
    fn values_are_counted_within_slots() {
        let slots = doc! {"0": {"0": 1.5, "1": null}, "1": {}, "2": null, "3": {"7": 0}};
        assert_eq!(values_within(&slots.into()), 2);
    }

    #[test]
    fn the_topology_is_told() {
        assert_eq!(topology(&doc! {"msg": "isdbgrid"}), "sharded cluster");
        assert_eq!(topology(&doc! {"setName": "rs0", "hosts": ["a", "b", "c"]}), "replica set rs0 of 3 members");
        assert_eq!(topology(&doc! {}), "one server");
    }

    #[test]
    fn shard_keys_are_those_of_the_own_database() {
        let entry = |name: &str| doc! {"_id": name, "key": {"_id": "hashed"}};
        assert_eq!(shard_key(&entry("mine.articles"), "mine").as_deref(), Some(r#"articles by { "_id": "hashed" }"#));
        assert_eq!(
            [entry("mine2.articles"), entry("config.system.sessions"), doc! {"_id": 1}].map(|of| shard_key(&of, "mine")),
            [None, None, None]
        );
    }

    #[test]
    fn the_backend_is_found_in_what_ferretdb_says() {
        let line = r#"{"msg":"Powered by FerretDB v1.24.2 and SQLite 3.46.0."}"#;
        assert_eq!(powered_by(line).as_deref(), Some("SQLite 3.46.0"));
        assert_eq!(powered_by("telemetry is off"), None);
    }
}
