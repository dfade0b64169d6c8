//! sensorbench's own database at the server, with a table that tells it from others.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use sensorbench_driver::{Admission, DriverError, Marker, Occupant};

use crate::link::Link;
use crate::names::quoted;

/// The table that holds the mark, and its comment, which nobody else's table has.
pub const TABLE: &str = "sensorbench";
const COMMENT: &str = "sensorbench made this database and may drop it";

/// The namespace of a link, seen through a connection.
pub struct Namespace<'a> {
    pub link: &'a Link,
    pub connection: &'a mut Conn,
}

impl Namespace<'_> {
    /// Creates the database with its marker, and enters it.
    pub async fn create(&mut self, marker: &Marker, admission: &Admission) -> Result<(), DriverError> {
        if admission.replaces() {
            self.remove().await?;
        }
        let (name, table) = (quoted(&self.link.server.namespace), self.table());
        self.run(format!("CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")).await?;
        self.run(format!("CREATE TABLE {table} (mark LONGTEXT NOT NULL) COMMENT = '{COMMENT}'")).await?;
        let inserted = self.connection.exec_drop(format!("INSERT INTO {table} (mark) VALUES (?)"), (marker.to_text(),)).await;
        inserted.map_err(|error| self.link.error(error))?;
        self.run(format!("USE {name}")).await
    }

    pub async fn write_marker(&mut self, marker: &Marker) -> Result<(), DriverError> {
        let updated = self.connection.exec_drop(format!("UPDATE {} SET mark = ?", self.table()), (marker.to_text(),)).await;
        updated.map_err(|error| self.link.error(error))
    }

    pub async fn remove(&mut self) -> Result<(), DriverError> {
        self.run(format!("DROP DATABASE {}", quoted(&self.link.server.namespace))).await
    }

    pub async fn occupant(&mut self) -> Result<Occupant, DriverError> {
        let question = "SELECT (SELECT count(*) FROM information_schema.schemata WHERE schema_name = ?), \
            (SELECT count(*) FROM information_schema.tables WHERE table_schema = ? AND table_name = ? AND table_comment = ?)";
        let name = &self.link.server.namespace;
        let counts = self.connection.exec_first(question, (name, name, TABLE, COMMENT)).await;
        Ok(match counts.map_err(|error| self.link.error(error))?.unwrap_or((0_u64, 0_u64)) {
            (0, _) => Occupant::Absent,
            (_, 0) => Occupant::Foreign("it is somebody's database".to_owned()),
            _ => Occupant::Ours(self.marker().await?),
        })
    }

    /// Names of all databases with a marker of ours, of those that the user may see.
    pub async fn all(&mut self) -> Result<Vec<String>, DriverError> {
        let question = "SELECT table_schema FROM information_schema.tables WHERE table_name = ? AND table_comment = ? ORDER BY 1";
        self.connection.exec(question, (TABLE, COMMENT)).await.map_err(|error| self.link.error(error))
    }

    /// The marker; an empty one where creating the database was cut short: its comment alone makes it ours.
    async fn marker(&mut self) -> Result<Marker, DriverError> {
        let text: Result<Option<String>, _> = self.connection.query_first(format!("SELECT mark FROM {}", self.table())).await;
        let text = text.map_err(|error| self.link.error(error))?;
        Ok(text.and_then(|text| Marker::parse(&text)).unwrap_or_default())
    }

    fn table(&self) -> String {
        format!("{}.{}", quoted(&self.link.server.namespace), quoted(TABLE))
    }

    async fn run(&mut self, statement: String) -> Result<(), DriverError> {
        self.connection.query_drop(statement).await.map_err(|error| self.link.error(error))
    }
}
