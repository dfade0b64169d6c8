//! How a database that speaks PostgreSQL's protocol words what the driver wants of it.
//!
//! Everything has a default, which is PostgreSQL's own, so that a [`Dialect`] states what it is called and what it does in another way.
//! How a dialect is asked for the plan of a statement is data of the control plane, by [`About::schemas`].

mod catalog;
mod cratedb;
mod greptimedb;
mod postgresql;
pub mod questdb;
mod timescaledb;

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::LocalBoxFuture;
use postgres_types::Type as ServerType;
use sensorbench_driver::{About, Description, DriverError, Size, TargetUrl, Type, quoted};
use tokio::time::{Instant, sleep};
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::{Client, Error};

use crate::statement::OperationStatement;
use crate::wire::values::Limits;

pub use self::cratedb::Cratedb;
pub use self::greptimedb::Greptimedb;
pub use self::postgresql::Postgresql;
pub use self::questdb::Questdb;
pub use self::timescaledb::Timescaledb;

/// How long removing waits for others to be done with the tables.
const LOCK_TIMEOUT: &str = "30s";

const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// For how long refusals that pass by themselves are waited out. Whoever reads longer is not a query of ours that is just ending.
const LONGEST_BUSY: Duration = Duration::from_secs(30);

/// A relational server with schemas of its own.
pub const fn relational(name: &'static str, summary: &'static str) -> About {
    About { relational: true, bulk_load: Some("binary COPY"), replays: Some("postgresql"), ..About::server(name, summary) }
}

/// How much data at once is loaded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BulkLoad {
    /// By COPY in its binary form.
    Copy,
    /// By lines over HTTP, as QuestDB takes them.
    Lines,
    /// By inserts of many rows each, where there is no COPY.
    Inserts,
}

/// One database that speaks PostgreSQL's protocol. Texts are SQL; `namespace` is the name of sensorbench's schema, not quoted.
pub trait Dialect: Send + Sync {
    /// What the database is: [`relational`] with a name and a line, or more.
    fn about(&self) -> About;

    /// The database as messages name it.
    fn product(&self) -> &'static str;

    /// The port where the URL names none.
    fn default_port(&self) -> u16 {
        5432
    }

    /// The database where the URL names none: the one that every server has.
    fn default_database(&self) -> &'static str {
        "postgres"
    }

    /// A query that only this database answers, where another one behind the protocol would be taken for it.
    fn identity(&self) -> Option<&'static str> {
        None
    }

    /// Whether the server is the database, and has what it is besides the protocol. Called with the first connection, before anything is created.
    ///
    /// Fails with what is missing, in the server's words, and what to do.
    fn check_server<'a>(
        &'a self,
        client: &'a Client,
        place: &'a str,
        url: &'a TargetUrl,
    ) -> LocalBoxFuture<'a, Result<(), DriverError>> {
        Box::pin(async move {
            match self.identity() {
                Some(query) => catalog::check_product(client, query, place, url, self.product()).await,
                None => Ok(()),
            }
        })
    }

    /// Options of the URL besides those of every server, which [`Dialect::session_settings`] reads.
    fn options(&self) -> &'static [&'static str] {
        &["synchronous_commit"]
    }

    /// What sessions are started with: that tables are found in the namespace and nowhere else, and what the URL's options say.
    ///
    /// Fails where an option has another value than it may have.
    fn session_settings(&self, url: &TargetUrl, namespace: &str) -> Result<String, DriverError> {
        let mut settings = format!("-c search_path={namespace}");
        if let Some(word) = synchronous_commit(url)? {
            settings.push_str(&format!(" -c synchronous_commit={word}"));
        }
        Ok(settings)
    }

    /// Whether a server that takes no connection means user and password by that.
    fn refuses_login(&self, refusal: &DbError) -> bool {
        [SqlState::INVALID_PASSWORD, SqlState::INVALID_AUTHORIZATION_SPECIFICATION].contains(refusal.code())
    }

    /// Whether a refusal passes by itself, because the server is busy with the table for a moment.
    fn passes(&self, _refusal: &DbError) -> bool {
        false
    }

    /// The namespace as messages name it: which kind of thing, and its name.
    fn namespace(&self, namespace: &str) -> String {
        format!("schema {namespace}")
    }

    /// What somebody else has there.
    fn foreign(&self) -> &'static str {
        "it is somebody's schema"
    }

    /// The name of a table of the namespace in a statement.
    fn table(&self, _namespace: &str, name: &str) -> String {
        quoted(name)
    }

    /// A statement of a schema file, in which tables are those of the namespace.
    fn place(&self, _namespace: &str, statement: &str) -> String {
        statement.to_owned()
    }

    /// Whether a statement with the words of an earlier one may be taken for that, though its tables were dropped and recreated since.
    fn remembers_statements(&self) -> bool {
        false
    }

    /// What values cannot be, because the database would change them without a word.
    fn limits(&self) -> Limits {
        Limits::NONE
    }

    /// The query whose answer says that what an operation wrote can be read, where the URL asks for such waiting.
    fn after_write(&self, _url: &TargetUrl, _namespace: &str, _operation: &OperationStatement) -> Option<String> {
        None
    }

    /// A statement that does as little as possible and returns one integer.
    fn no_op(&self) -> &'static str {
        "SELECT 1::bigint"
    }

    /// What a canonical type is called: all types that hold its values exactly, then the one to cast to.
    fn type_words(&self, canonical: Type) -> (&'static str, &'static str) {
        match canonical {
            Type::Boolean => ("boolean", "boolean"),
            Type::Integer => ("smallint, integer or bigint", "bigint"),
            Type::Double => ("double precision", "float8"),
            Type::Timestamp => ("timestamp or timestamptz", "timestamp"),
            Type::Text => ("text, varchar or name", "text"),
            Type::Bytes => ("bytea", "bytea"),
        }
    }

    /// The type that a parameter is declared as where the server would take it for another; none where only a cast helps.
    fn declared(&self, _canonical: Type) -> Option<ServerType> {
        None
    }

    /// For the namespace `$1`: is there such a schema, and is there a table in it that could hold our marker?
    fn occupant(&self) -> &'static str {
        "\
    SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1), EXISTS (\
        SELECT FROM pg_catalog.pg_attribute a \
        JOIN pg_catalog.pg_class c ON c.oid = a.attrelid \
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
        WHERE n.nspname = $1 AND c.relname = 'sensorbench' AND c.relkind = 'r' AND a.attname = 'mark' AND NOT a.attisdropped)"
    }

    /// Names of schemas with such a table, of those that the user may read.
    fn namespaces(&self) -> &'static str {
        "\
    SELECT DISTINCT n.nspname::text FROM pg_catalog.pg_attribute a \
    JOIN pg_catalog.pg_class c ON c.oid = a.attrelid \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relname = 'sensorbench' AND c.relkind = 'r' AND a.attname = 'mark' AND NOT a.attisdropped \
    AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid, 'SELECT') ORDER BY 1"
    }

    /// Statements that create the namespace with an empty table for the marker. Nobody sees it before [`Dialect::end_of_creation`].
    fn create_namespace(&self, namespace: &str) -> String {
        let name = quoted(namespace);
        format!("BEGIN; CREATE SCHEMA {name}; CREATE TABLE {name}.sensorbench (mark text NOT NULL)")
    }

    /// The statement after which others see the new namespace.
    fn end_of_creation(&self) -> &'static str {
        "COMMIT"
    }

    /// Writes the first marker, `$1`.
    fn insert_marker(&self, namespace: &str) -> String {
        format!("INSERT INTO {}.sensorbench (mark) VALUES ($1)", quoted(namespace))
    }

    /// Writes another marker, `$1`.
    fn update_marker(&self, namespace: &str) -> String {
        format!("UPDATE {}.sensorbench SET mark = $1", quoted(namespace))
    }

    /// Reads the text where a marker would be. Somebody's column of that name may have another type.
    fn marker(&self, namespace: &str) -> String {
        format!("SELECT mark::text FROM {}.sensorbench LIMIT 1", quoted(namespace))
    }

    /// Statements that remove the namespace with all that is in it.
    fn remove_namespace(&self, namespace: &str) -> String {
        format!("BEGIN; SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'; DROP SCHEMA {} CASCADE; COMMIT", quoted(namespace))
    }

    /// Removes the namespace with all that is in it.
    fn remove<'a>(&'a self, client: &'a Client, namespace: &'a str) -> LocalBoxFuture<'a, Result<(), Error>> {
        Box::pin(async move { client.batch_execute(&self.remove_namespace(namespace)).await })
    }

    /// How much data at once is loaded.
    fn bulk_load(&self) -> BulkLoad {
        BulkLoad::Copy
    }

    /// The statement that takes in rows in COPY's binary form. Table and columns are quoted.
    fn copy_into(&self, table: &str, columns: &str) -> String {
        format!("COPY {table} ({columns}) FROM STDIN (FORMAT binary)")
    }

    /// Ends the connections that are called `$1` and execute something; none where the server ends what a closed connection executes.
    fn end_connections(&self) -> Option<&'static str> {
        Some(
            "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity \
            WHERE application_name = $1 AND state = 'active'",
        )
    }

    /// Waits until everything that was acknowledged can be read.
    fn catch_up<'a>(
        &'a self,
        _client: &'a Client,
        _place: &'a str,
        _namespace: &'a str,
    ) -> LocalBoxFuture<'a, Result<(), DriverError>> {
        Box::pin(async { Ok(()) })
    }

    /// What answers, and how it is set.
    fn describe<'a>(&'a self, client: &'a Client, _url: &'a TargetUrl) -> LocalBoxFuture<'a, Result<Description, Error>> {
        Box::pin(catalog::describe(client))
    }

    /// Has the server write everything to the files of the namespace's tables, where the user may ask for that.
    fn flush<'a>(&'a self, client: &'a Client, _namespace: &'a str) -> LocalBoxFuture<'a, Result<(), Error>> {
        Box::pin(catalog::flush(client))
    }

    /// Bytes of the tables and indexes of the namespace.
    fn size<'a>(&'a self, client: &'a Client, namespace: &'a str) -> LocalBoxFuture<'a, Result<Size, Error>> {
        Box::pin(catalog::size(client, namespace))
    }

    /// Counters and gauges of the server, by their names there.
    fn status<'a>(&'a self, client: &'a Client) -> LocalBoxFuture<'a, Result<BTreeMap<String, f64>, Error>> {
        Box::pin(catalog::status(client))
    }
}

/// Pauses between attempts at something that takes milliseconds as a rule: each is twice as long as the one before, up to a limit.
pub struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Self {
        Self(FIRST_PAUSE)
    }
}

impl Pauses {
    /// Waits for the next pause.
    pub async fn wait(&mut self) {
        sleep(self.0).await;
        self.0 = (self.0 * 2).min(LONGEST_PAUSE);
    }
}

/// Attempts something again while the server refuses it because it is busy for a moment.
pub async fn retried<T>(dialect: &dyn Dialect, attempt: impl AsyncFn() -> Result<T, Error>) -> Result<T, Error> {
    let deadline = Instant::now() + LONGEST_BUSY;
    let mut pauses = Pauses::default();
    loop {
        match attempt().await {
            Err(error) if error.as_db_error().is_some_and(|refusal| dialect.passes(refusal)) && Instant::now() < deadline => {
                pauses.wait().await;
            }
            other => return other,
        }
    }
}

/// Whether the URL asks writes to wait: `wait=no`, the default, or `wait=WORD`, where the word says until when.
fn waits(url: &TargetUrl, word: &str) -> Result<bool, DriverError> {
    match url.option("wait") {
        None | Some("no") => Ok(false),
        Some(wished) if wished == word => Ok(true),
        Some(other) => Err(url.error(format!("option wait={other}: expected {word} or no"))),
    }
}

fn synchronous_commit(url: &TargetUrl) -> Result<Option<&str>, DriverError> {
    let known = ["on", "off", "local", "remote_write", "remote_apply"];
    match url.option("synchronous_commit") {
        Some(word) if !known.contains(&word) => {
            Err(url.error(format!("option synchronous_commit={word}: expected one of {}", known.join(", "))))
        }
        word => Ok(word),
    }
}
