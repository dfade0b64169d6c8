//! TimescaleDB: PostgreSQL with an extension that parts tables by time into chunks, stores chunks by column, and keeps aggregates up to date.
//!
//! A server without the extension is refused before anything is created. The extension's functions are found as `public.NAME`, since sessions
//! find tables of sensorbench's schema alone.
//!
//! No such server could be started where this was written: what is not PostgreSQL's own was checked against TimescaleDB's documentation alone.

use futures::future::LocalBoxFuture;
use sensorbench_driver::{About, Description, DriverError, Size, TargetUrl};
use tokio_postgres::{Client, Error};

use super::{Dialect, catalog, relational};
use crate::wire::errors;

/// Where the extension's functions have to be.
const SCHEMA: &str = "public";
/// The first version in which hypertables are made by `by_range`.
const MIN_VERSION: (u32, u32) = (2, 13);

/// What every version of the extension has; a server without it says so in its own words.
const PROBE: &str = "SELECT FROM timescaledb_information.hypertables LIMIT 0";

const EXTENSION: &str = "\
    SELECT e.extversion, n.nspname::text FROM pg_catalog.pg_extension e \
    JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'timescaledb'";

/// The version that the server could create.
const OFFERED: &str = "SELECT default_version FROM pg_catalog.pg_available_extensions WHERE name = 'timescaledb'";

/// Hypertables of a schema and those in which its continuous aggregates are kept, with their chunks, which lie in a schema of the extension's
/// own; then the tables that have no chunks.
const PARTS: &str = "\
    SELECT hypertable_name::text, coalesce(public.hypertable_size(\
        pg_catalog.format('%I.%I', hypertable_schema, hypertable_name)::pg_catalog.regclass), 0)::bigint \
    FROM timescaledb_information.hypertables WHERE hypertable_schema = $1 \
    UNION ALL \
    SELECT view_name::text, coalesce(public.hypertable_size(\
        pg_catalog.format('%I.%I', materialization_hypertable_schema, materialization_hypertable_name)::pg_catalog.regclass), 0)::bigint \
    FROM timescaledb_information.continuous_aggregates WHERE view_schema = $1 \
    UNION ALL \
    SELECT c.relname::text, pg_catalog.pg_total_relation_size(c.oid) FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname = $1 AND c.relkind IN ('r', 'm') AND NOT EXISTS (\
        SELECT FROM timescaledb_information.hypertables h WHERE h.hypertable_schema = n.nspname AND h.hypertable_name = c.relname)";

/// TimescaleDB.
pub struct Timescaledb;

impl Dialect for Timescaledb {
    fn about(&self) -> About {
        relational("timescaledb", "PostgreSQL with hypertables, a column store and continuous aggregates")
    }

    fn product(&self) -> &'static str {
        "TimescaleDB"
    }

    fn check_server<'a>(
        &'a self,
        client: &'a Client,
        place: &'a str,
        url: &'a TargetUrl,
    ) -> LocalBoxFuture<'a, Result<(), DriverError>> {
        Box::pin(check_extension(client, place, url))
    }

    fn describe<'a>(&'a self, client: &'a Client, _url: &'a TargetUrl) -> LocalBoxFuture<'a, Result<Description, Error>> {
        Box::pin(async move {
            let mut description = catalog::describe(client).await?;
            let version: String = client.query_one(EXTENSION, &[]).await?.try_get(0)?;
            let server = std::mem::replace(&mut description.version, version);
            description.settings.insert("PostgreSQL".to_owned(), server);
            "TimescaleDB".clone_into(&mut description.database);
            Ok(description)
        })
    }

    fn size<'a>(&'a self, client: &'a Client, namespace: &'a str) -> LocalBoxFuture<'a, Result<Size, Error>> {
        Box::pin(catalog::size_of_parts(client, PARTS, namespace))
    }
}

/// The extension is in the database, where its functions are looked for, and knows what schema files say.
async fn check_extension(client: &Client, place: &str, url: &TargetUrl) -> Result<(), DriverError> {
    let failed = |error: Error| errors::statement_error(place, error);
    if let Err(error) = client.batch_execute(PROBE).await {
        if errors::is_loss(&error) {
            return Err(errors::lost(place, &error));
        }
        let version = offered(client).await.map_err(failed)?;
        return Err(url.error(format!("{place}: {}", missing(&errors::describe(&error), version.as_deref()))));
    }
    let problem = match installed(client).await.map_err(failed)? {
        Some((version, schema)) => unsuitable(&version, &schema),
        None => Some("it has tables of the extension timescaledb, but not the extension".to_owned()),
    };
    problem.map_or(Ok(()), |problem| Err(url.error(format!("{place}: {problem}"))))
}

/// Version and schema of the extension in the database.
async fn installed(client: &Client) -> Result<Option<(String, String)>, Error> {
    let row = client.query_opt(EXTENSION, &[]).await?;
    row.map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).transpose()
}

/// The version that the server has files of.
async fn offered(client: &Client) -> Result<Option<String>, Error> {
    client.query_opt(OFFERED, &[]).await?.map(|row| row.try_get(0)).transpose()
}

/// What to say of a server without the extension.
fn missing(words: &str, offered: Option<&str>) -> String {
    let advice = match offered {
        Some(version) => {
            format!("the server offers it ({version}): have an administrator say CREATE EXTENSION timescaledb there")
        }
        None => "the server has no such extension to create: install TimescaleDB there".to_owned(),
    };
    format!("the extension timescaledb is not in the database: {words}; {advice}, or name PostgreSQL without it as postgresql://")
}

/// Why the extension cannot be used, if so.
fn unsuitable(version: &str, schema: &str) -> Option<String> {
    if schema != SCHEMA {
        return Some(format!(
            "the extension timescaledb is in the schema {schema}; expected {SCHEMA}, where statements look for its functions"
        ));
    }
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    let found: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let (major, minor) = MIN_VERSION;
    (found < MIN_VERSION).then(|| format!("the extension timescaledb has version {version}; expected {major}.{minor} or later"))
}

#[cfg(test)]
mod tests {
    use sensorbench_driver::Database;

    use super::*;
    use crate::PostgresqlWire;

    #[test]
    fn it_is_named_as_itself_and_takes_the_options_of_postgresql() {
        let open = |text: &str| PostgresqlWire(&Timescaledb).open(&TargetUrl::parse(text).unwrap());
        let opened = open("timescaledb://me@host/power?namespace=mine&synchronous_commit=off").unwrap();
        assert_eq!(opened.namespace(), "TimescaleDB at host:5432, schema mine");
        assert!(open("timescaledb://host?synchronous_commit=maybe").is_err());
    }

    #[test]
    fn what_is_missing_is_said_with_what_to_do() {
        let words = "relation \"timescaledb_information.hypertables\" does not exist";
        let offered = missing(words, Some("2.21.1"));
        assert!(offered.contains(words) && offered.contains("(2.21.1)") && offered.contains("CREATE EXTENSION"), "{offered}");
        assert!(missing(words, None).contains("install TimescaleDB there"));
        assert!(unsuitable("2.21.1", "tools").unwrap().contains("in the schema tools; expected public"));
        assert!(unsuitable("2.9.3", "public").unwrap().contains("expected 2.13 or later"));
        for version in ["2.13.0", "2.21.1-dev", "3.0"] {
            assert_eq!(unsuitable(version, "public"), None, "{version}");
        }
    }
}
