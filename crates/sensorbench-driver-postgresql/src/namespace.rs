//! sensorbench's schema in the database: whose it is, and the marker in it.

use sensorbench_driver::{Admission, DriverError, Marker, Occupant};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error};

use crate::dialect::retried;
use crate::wire::{Target, errors};

/// The namespace of a target, over a connection.
pub struct Namespace<'a> {
    pub target: &'a Target,
    pub client: &'a Client,
}

impl Namespace<'_> {
    /// Creates the namespace, empty but for the marker.
    pub async fn create(&self, marker: &Marker, admission: &Admission) -> Result<(), DriverError> {
        if admission.replaces() {
            self.remove().await?;
        }
        let (dialect, namespace) = (self.target.dialect, &self.target.namespace);
        self.run(&dialect.create_namespace(namespace)).await?;
        self.set(&dialect.insert_marker(namespace), marker).await?;
        self.run(dialect.end_of_creation()).await
    }

    pub async fn write_marker(&self, marker: &Marker) -> Result<(), DriverError> {
        self.set(&self.target.dialect.update_marker(&self.target.namespace), marker).await
    }

    pub async fn occupant(&self) -> Result<Occupant, DriverError> {
        let seen = async {
            let row = self.client.query_one(self.target.dialect.occupant(), &[&self.target.namespace]).await?;
            Ok((row.try_get(0)?, row.try_get(1)?))
        };
        let text = match seen.await.map_err(|error| self.refused(error))? {
            (false, _) => return Ok(Occupant::Absent),
            (true, false) => None,
            (true, true) => self.marker_text(&self.target.namespace).await?,
        };
        Ok(Occupant::by_text(text.as_deref(), || self.target.dialect.foreign().to_owned()))
    }

    /// Names of all schemas of the database with a marker of ours, of those that the user may read.
    pub async fn all(&self) -> Result<Vec<String>, DriverError> {
        let mut ours = Vec::new();
        for name in self.with_markers().await? {
            match self.marker_text(&name).await {
                Ok(text) if text.as_deref().and_then(Marker::parse).is_some() => ours.push(name),
                // Whoever created it may have removed it in the meantime.
                Err(error) if self.with_markers().await?.contains(&name) => return Err(error),
                _ => {}
            }
        }
        Ok(ours)
    }

    /// Names of all schemas with a table that could hold a marker.
    async fn with_markers(&self) -> Result<Vec<String>, DriverError> {
        let names = async {
            let rows = self.client.query(self.target.dialect.namespaces(), &[]).await?;
            rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()
        };
        names.await.map_err(|error| self.refused(error))
    }

    /// The text where a marker would be. Somebody's column of that name may have another type.
    async fn marker_text(&self, namespace: &str) -> Result<Option<String>, DriverError> {
        let query = self.target.dialect.marker(namespace);
        let row = self.client.query_opt(&query, &[]).await.map_err(|error| self.refused(error))?;
        Ok(row.map(|row| row.try_get(0)).transpose().map_err(|error| self.refused(error))?.flatten())
    }

    pub async fn remove(&self) -> Result<(), DriverError> {
        let removed = self.target.dialect.remove(self.client, &self.target.namespace).await;
        removed.map_err(|error| self.refused(error))
    }

    async fn run(&self, statements: &str) -> Result<(), DriverError> {
        self.client.batch_execute(statements).await.map_err(|error| self.refused(error))
    }

    async fn set(&self, statement: &str, marker: &Marker) -> Result<(), DriverError> {
        let text = marker.to_text();
        let written = retried(self.target.dialect, async || self.client.execute(statement, &[&text]).await).await;
        written.map(|_| ()).map_err(|error| self.refused(error))
    }

    fn refused(&self, error: Error) -> DriverError {
        let advice = match error.code() {
            Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                "; grant the user CREATE on the database, or name another user or database"
            }
            Some(&SqlState::LOCK_NOT_AVAILABLE) => "; somebody else uses its tables",
            _ => "",
        };
        let Target { place, namespace, dialect, .. } = self.target;
        match errors::statement_error(place, error) {
            DriverError::Statement(words) => {
                DriverError::Namespace(format!("{place}: the {}: {words}{advice}", dialect.namespace(namespace)))
            }
            other => other,
        }
    }
}
