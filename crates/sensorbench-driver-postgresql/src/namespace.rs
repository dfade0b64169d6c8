//! sensorbench's schema in the database: whose it is, and the marker in it.

use sensorbench_driver::{Admission, DriverError, Marker, Occupant, quoted};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error};

use crate::errors;
use crate::target::Target;

/// Is there a schema of this name, and is there a table that could hold our marker?
const WHO_IS_THERE: &str = "\
    SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1), EXISTS (\
        SELECT FROM pg_catalog.pg_attribute a \
        JOIN pg_catalog.pg_class c ON c.oid = a.attrelid \
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
        WHERE n.nspname = $1 AND c.relname = 'sensorbench' AND c.relkind = 'r' AND a.attname = 'mark' AND NOT a.attisdropped)";

/// Schemas with such a table.
const CANDIDATES: &str = "\
    SELECT DISTINCT n.nspname::text FROM pg_catalog.pg_attribute a \
    JOIN pg_catalog.pg_class c ON c.oid = a.attrelid \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relname = 'sensorbench' AND c.relkind = 'r' AND a.attname = 'mark' AND NOT a.attisdropped \
    AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid, 'SELECT') ORDER BY 1";

/// How long removing waits for others to be done with the tables.
const LOCK_TIMEOUT: &str = "30s";

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
        let name = quoted(&self.target.namespace);
        let created = format!("BEGIN; CREATE SCHEMA {name}; CREATE TABLE {name}.sensorbench (mark text NOT NULL)");
        self.run(&created).await?;
        self.set(&format!("INSERT INTO {name}.sensorbench (mark) VALUES ($1)"), marker).await?;
        self.run("COMMIT").await
    }

    pub async fn write_marker(&self, marker: &Marker) -> Result<(), DriverError> {
        self.set(&format!("UPDATE {}.sensorbench SET mark = $1", quoted(&self.target.namespace)), marker).await
    }

    pub async fn occupant(&self) -> Result<Occupant, DriverError> {
        let seen = async {
            let row = self.client.query_one(WHO_IS_THERE, &[&self.target.namespace]).await?;
            Ok((row.try_get(0)?, row.try_get(1)?))
        };
        let text = match seen.await.map_err(|error| self.refused(error))? {
            (false, _) => return Ok(Occupant::Absent),
            (true, false) => None,
            (true, true) => self.marker_text(&self.target.namespace).await?,
        };
        Ok(Occupant::by_text(text.as_deref(), || "it is somebody's schema".to_owned()))
    }

    /// Names of all schemas of the database with a marker of ours, of those that the user may read.
    pub async fn all(&self) -> Result<Vec<String>, DriverError> {
        let mut ours = Vec::new();
        for row in self.client.query(CANDIDATES, &[]).await.map_err(|error| self.refused(error))? {
            let name: String = row.try_get(0).map_err(|error| self.refused(error))?;
            if self.marker_text(&name).await?.is_some_and(|text| Marker::parse(&text).is_some()) {
                ours.push(name);
            }
        }
        Ok(ours)
    }

    /// The text where a marker would be. Somebody's column of that name may have another type.
    async fn marker_text(&self, namespace: &str) -> Result<Option<String>, DriverError> {
        let query = format!("SELECT mark::text FROM {}.sensorbench LIMIT 1", quoted(namespace));
        let row = self.client.query_opt(&query, &[]).await.map_err(|error| self.refused(error))?;
        Ok(row.map(|row| row.try_get(0)).transpose().map_err(|error| self.refused(error))?.flatten())
    }

    pub async fn remove(&self) -> Result<(), DriverError> {
        let name = quoted(&self.target.namespace);
        self.run(&format!("BEGIN; SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'; DROP SCHEMA {name} CASCADE; COMMIT")).await
    }

    async fn run(&self, statements: &str) -> Result<(), DriverError> {
        self.client.batch_execute(statements).await.map_err(|error| self.refused(error))
    }

    async fn set(&self, statement: &str, marker: &Marker) -> Result<(), DriverError> {
        self.client.execute(statement, &[&marker.to_text()]).await.map(|_| ()).map_err(|error| self.refused(error))
    }

    fn refused(&self, error: Error) -> DriverError {
        let advice = match error.code() {
            Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                "; grant the user CREATE on the database, or name another user or database"
            }
            Some(&SqlState::LOCK_NOT_AVAILABLE) => "; somebody else uses its tables",
            _ => "",
        };
        let Target { shown, namespace, .. } = self.target;
        match errors::statement_error(shown, error) {
            DriverError::Statement(told) => {
                DriverError::Namespace(format!("PostgreSQL at {shown}: the schema {namespace}: {told}{advice}"))
            }
            other => other,
        }
    }
}
