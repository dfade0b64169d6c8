//! sensorbench's own database at the server, with a table that distinguishes it from others.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use sensorbench_driver::{Admission, DriverError, Marker, Occupant};

use crate::dialect::{MARKER_COMMENT, MARKER_TABLE};
use crate::wire::Link;

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
        let (dialect, namespace) = (self.link.dialect, self.link.server.namespace.as_str());
        for statement in dialect.create_namespace(namespace) {
            self.run(statement).await?;
        }
        self.set(dialect.insert_marker(namespace), marker).await?;
        self.run(dialect.enter(namespace)).await
    }

    pub async fn write_marker(&mut self, marker: &Marker) -> Result<(), DriverError> {
        self.set(self.link.dialect.update_marker(&self.link.server.namespace), marker).await
    }

    pub async fn remove(&mut self) -> Result<(), DriverError> {
        self.run(self.link.dialect.remove_namespace(&self.link.server.namespace)).await
    }

    pub async fn occupant(&mut self) -> Result<Occupant, DriverError> {
        let name = &self.link.server.namespace;
        let counts = self.connection.exec_first(self.link.dialect.occupant(), (name, name, MARKER_TABLE, MARKER_COMMENT)).await;
        Ok(match counts.map_err(|error| self.link.error(error))?.unwrap_or((0_u64, 0_u64)) {
            (0, _) => Occupant::Absent,
            (_, 0) => Occupant::Foreign("it is somebody's database".to_owned()),
            _ => Occupant::Ours(self.marker().await?),
        })
    }

    /// Names of all databases with a marker of ours, of those that the user may see.
    pub async fn all(&mut self) -> Result<Vec<String>, DriverError> {
        self.connection
            .exec(self.link.dialect.namespaces(), (MARKER_TABLE, MARKER_COMMENT))
            .await
            .map_err(|error| self.link.error(error))
    }

    /// The marker; an empty one where creating the database was cut short: its comment alone makes it ours.
    async fn marker(&mut self) -> Result<Marker, DriverError> {
        let text: Result<Option<String>, _> =
            self.connection.query_first(self.link.dialect.marker(&self.link.server.namespace)).await;
        let text = text.map_err(|error| self.link.error(error))?;
        Ok(text.and_then(|text| Marker::parse(&text)).unwrap_or_default())
    }

    async fn set(&mut self, statement: String, marker: &Marker) -> Result<(), DriverError> {
        self.connection.exec_drop(statement, (marker.to_text(),)).await.map_err(|error| self.link.error(error))
    }

    async fn run(&mut self, statement: String) -> Result<(), DriverError> {
        self.connection.query_drop(statement).await.map_err(|error| self.link.error(error))
    }
}
