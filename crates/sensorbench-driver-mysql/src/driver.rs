//! Control of a MySQL or MariaDB target. Each call makes a connection of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatchReader;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use sensorbench_driver::{
    Admission, Description, Driver, DriverError, KeptSchema, Marker, Occupant, Operation, Progress, Schema, Sessions, Size,
    SqlSchema,
};

use crate::link::Link;
use crate::names::quoted;
use crate::namespace::Namespace;
use crate::schema::{check_tables, run};
use crate::session::Connector;
use crate::{load, size};

/// Settings that matter to speed and durability. Those that a server does not have are passed over.
const SETTINGS: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version_comment', 'innodb_buffer_pool_size', \
    'innodb_doublewrite', 'innodb_flush_log_at_trx_commit', 'innodb_flush_method', 'innodb_io_capacity', 'innodb_log_file_size', \
    'innodb_page_size', 'innodb_redo_log_capacity', 'log_bin', 'max_connections', 'query_cache_size', 'query_cache_type', \
    'sync_binlog', 'thread_handling', 'transaction_isolation', 'tx_isolation')";

/// Tables whose changed pages can be written to their files by FLUSH TABLES.
const INNODB_TABLES: &str =
    "SELECT table_name FROM information_schema.tables WHERE table_schema = ? AND table_type = 'BASE TABLE' AND engine = 'InnoDB'";

/// The user may not flush or lock tables.
const NOT_ALLOWED: [u16; 3] = [1044, 1142, 1227];

pub struct MysqlDriver {
    link: Arc<Link>,
    schema: KeptSchema<SqlSchema>,
}

impl MysqlDriver {
    pub fn new(link: Arc<Link>) -> Self {
        Self { link, schema: KeptSchema::default() }
    }

    fn schema(&self) -> Result<SqlSchema, DriverError> {
        self.schema.get(self.link.server.shown())
    }

    /// Does something on a connection of its own.
    fn control<T>(&self, work: impl AsyncFnOnce(&mut Conn) -> Result<T, DriverError>) -> Result<T, DriverError> {
        self.runtime()?.block_on(async { with(self.link.connect().await?, work).await })
    }

    /// Does something inside sensorbench's own database.
    fn inside<T>(&self, work: impl AsyncFnOnce(&mut Conn) -> Result<T, DriverError>) -> Result<T, DriverError> {
        self.runtime()?.block_on(async { with(self.link.connect_inside().await?, work).await })
    }

    fn runtime(&self) -> Result<tokio::runtime::Runtime, DriverError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|error| self.link.connection_error(format!("an asynchronous runtime: {error}")))
    }

    fn own<'a>(&'a self, connection: &'a mut Conn) -> Namespace<'a> {
        Namespace { link: &self.link, connection }
    }

    /// Names and values that the server shows.
    async fn shown(&self, statement: &str, connection: &mut Conn) -> Result<Vec<(String, String)>, DriverError> {
        let pairs: Vec<(String, Option<String>)> = connection.query(statement).await.map_err(|error| self.link.error(error))?;
        Ok(pairs.into_iter().map(|(name, value)| (name, value.unwrap_or_default())).collect())
    }

    /// Writes what is only in memory to the tables' files. Where the user may not ask for it, the server does it in its own time.
    async fn flush(&self, connection: &mut Conn) -> Result<(), DriverError> {
        let tables = connection.exec(INNODB_TABLES, (&self.link.server.namespace,)).await;
        let tables: Vec<String> = tables.map_err(|error| self.link.error(error))?;
        if tables.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = tables.iter().map(|table| quoted(table)).collect();
        match connection.query_drop(format!("FLUSH TABLES {} FOR EXPORT", names.join(", "))).await {
            Err(Error::Server(error)) if NOT_ALLOWED.contains(&error.code) => Ok(()),
            Err(error) => Err(self.link.error(error)),
            Ok(()) => connection.query_drop("UNLOCK TABLES").await.map_err(|error| self.link.error(error)),
        }
    }
}

/// Does something and takes leave of the server.
async fn with<T>(mut connection: Conn, work: impl AsyncFnOnce(&mut Conn) -> Result<T, DriverError>) -> Result<T, DriverError> {
    let outcome = work(&mut connection).await;
    // Whether the server hears the farewell does not matter any more.
    let _ = connection.disconnect().await;
    outcome
}

impl Driver for MysqlDriver {
    fn describe(&self) -> Result<Description, DriverError> {
        self.control(async |connection| {
            let version: Option<String> =
                connection.query_first("SELECT version()").await.map_err(|error| self.link.error(error))?;
            let version = version.unwrap_or_default();
            let database = if version.contains("MariaDB") { "MariaDB" } else { "MySQL" };
            let settings = self.shown(SETTINGS, connection).await?.into_iter().collect();
            Ok(Description { database: database.to_owned(), version, settings })
        })
    }

    fn namespace(&self) -> String {
        format!("{}, database {}", self.link.server.shown(), self.link.server.namespace)
    }

    fn occupant(&self) -> Result<Occupant, DriverError> {
        self.control(async |connection| self.own(connection).occupant().await)
    }

    fn create(&self, schema: &Schema, marker: &Marker, admission: &Admission) -> Result<(), DriverError> {
        let parsed = SqlSchema::of(schema)?;
        self.control(async |connection| {
            self.own(connection).create(marker, admission).await?;
            run(parsed.create(), &self.link, connection).await?;
            check_tables(&parsed, &self.link, connection).await
        })?;
        self.schema.keep(parsed);
        Ok(())
    }

    fn attach(&self, schema: &Schema) -> Result<(), DriverError> {
        let parsed = SqlSchema::of(schema)?;
        self.inside(async |connection| check_tables(&parsed, &self.link, connection).await)?;
        self.schema.keep(parsed);
        Ok(())
    }

    fn write_marker(&self, marker: &Marker, _: &Admission) -> Result<(), DriverError> {
        self.control(async |connection| self.own(connection).write_marker(marker).await)
    }

    fn remove(&self, _: &Admission) -> Result<(), DriverError> {
        self.control(async |connection| self.own(connection).remove().await)
    }

    fn namespaces(&self) -> Result<Vec<String>, DriverError> {
        self.control(async |connection| self.own(connection).all().await)
    }

    fn load(&self, table: &str, rows: Box<dyn RecordBatchReader + Send>, progress: &Progress) -> Result<(), DriverError> {
        let schema = self.schema()?;
        let columns = schema.table(table)?;
        self.inside(async |connection| load::load(&self.link, connection, table, columns, rows, progress).await)
    }

    /// Runs the schema's statements, then writes everything to disk.
    fn settle(&self) -> Result<(), DriverError> {
        let schema = self.schema()?;
        self.inside(async |connection| {
            run(schema.settle(), &self.link, connection).await?;
            self.flush(connection).await
        })
    }

    fn count(&self, table: &str) -> Result<u64, DriverError> {
        self.inside(async |connection| {
            let count = connection.query_first(format!("SELECT count(*) FROM {}", quoted(table))).await;
            Ok(count.map_err(|error| self.link.error(error))?.unwrap_or(0))
        })
    }

    fn size(&self) -> Result<Size, DriverError> {
        self.inside(async |connection| size::size(&self.link, connection).await)
    }

    fn status(&self) -> Result<BTreeMap<String, f64>, DriverError> {
        self.control(async |connection| {
            let number = |text: String| text.parse().ok().filter(|number: &f64| number.is_finite());
            let status = self.shown("SHOW GLOBAL STATUS", connection).await?.into_iter();
            Ok(status.filter_map(|(name, value)| Some((name, number(value)?))).collect())
        })
    }

    fn sessions(&self, operations: &[Operation]) -> Result<Sessions, DriverError> {
        Ok(Sessions::Asynchronous(Box::new(Connector::of(self.link.clone(), operations)?)))
    }
}
