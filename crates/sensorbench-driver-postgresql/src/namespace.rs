//! sensorbench's schema in the database: whose it is, and the mark in it.

use sensorbench_driver::DriverError;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error};

use crate::target::Target;
use crate::{errors, quoted};

/// Who owns the schema that the URL names.
#[derive(Debug, PartialEq)]
enum Occupant {
    Nobody,
    Sensorbench,
    Somebody,
}

/// Is there a schema of this name, and is there a table with our mark in it?
const WHO_IS_THERE: &str = "\
    SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1), EXISTS (\
        SELECT FROM pg_catalog.pg_attribute a \
        JOIN pg_catalog.pg_class c ON c.oid = a.attrelid \
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
        WHERE n.nspname = $1 AND c.relname = 'sensorbench' AND c.relkind = 'r' AND a.attname = 'mark' AND NOT a.attisdropped)";

/// How long removing waits for others to be done with the tables.
const LOCK_TIMEOUT: &str = "30s";

/// The namespace of a target, over a connection.
pub struct Namespace<'a> {
    pub target: &'a Target,
    pub client: &'a Client,
}

impl Namespace<'_> {
    /// Makes the namespace anew, empty but for the mark. What sensorbench did not create is never removed.
    pub async fn create(&self, mark: &str, replace: bool) -> Result<(), DriverError> {
        let Target { shown, namespace, .. } = self.target;
        match self.occupant().await? {
            Occupant::Nobody => {}
            Occupant::Somebody => {
                return Err(DriverError::Namespace(format!(
                    "PostgreSQL at {shown}: the schema {namespace} is there and sensorbench did not create it; name another one \
                     with namespace="
                )));
            }
            Occupant::Sensorbench if !replace => {
                return Err(DriverError::Namespace(format!(
                    "PostgreSQL at {shown}: the schema {namespace} holds data of an earlier run of sensorbench; give --replace to \
                     load it again, or name another one with namespace="
                )));
            }
            Occupant::Sensorbench => self.drop_all().await?,
        }
        let name = quoted(namespace);
        let created = format!("BEGIN; CREATE SCHEMA {name}; CREATE TABLE {name}.sensorbench (mark text NOT NULL)");
        self.run(&created).await?;
        self.set(&format!("INSERT INTO {name}.sensorbench (mark) VALUES ($1)"), mark).await?;
        self.run("COMMIT").await
    }

    /// An error unless sensorbench created the namespace.
    pub async fn require(&self) -> Result<(), DriverError> {
        match self.occupant().await? {
            Occupant::Sensorbench => Ok(()),
            _ => Err(DriverError::Namespace(format!(
                "PostgreSQL at {}: sensorbench has no schema {} there; load it first",
                self.target.shown, self.target.namespace
            ))),
        }
    }

    /// The mark, or None when sensorbench did not create the namespace.
    pub async fn mark(&self) -> Result<Option<String>, DriverError> {
        if self.occupant().await? != Occupant::Sensorbench {
            return Ok(None);
        }
        let query = format!("SELECT mark FROM {}.sensorbench", quoted(&self.target.namespace));
        let row = self.client.query_opt(&query, &[]).await.map_err(|error| self.refused(error))?;
        row.map(|row| row.try_get(0)).transpose().map_err(|error| self.refused(error))
    }

    pub async fn set_mark(&self, mark: &str) -> Result<(), DriverError> {
        self.require().await?;
        self.set(&format!("UPDATE {}.sensorbench SET mark = $1", quoted(&self.target.namespace)), mark).await
    }

    /// Removes the namespace if sensorbench created it.
    pub async fn remove(&self) -> Result<(), DriverError> {
        match self.occupant().await? {
            Occupant::Sensorbench => self.drop_all().await,
            _ => Ok(()),
        }
    }

    async fn occupant(&self) -> Result<Occupant, DriverError> {
        let told = async {
            let row = self.client.query_one(WHO_IS_THERE, &[&self.target.namespace]).await?;
            Ok((row.try_get(0)?, row.try_get(1)?))
        };
        Ok(match told.await.map_err(|error| self.refused(error))? {
            (false, _) => Occupant::Nobody,
            (true, true) => Occupant::Sensorbench,
            (true, false) => Occupant::Somebody,
        })
    }

    async fn drop_all(&self) -> Result<(), DriverError> {
        let name = quoted(&self.target.namespace);
        self.run(&format!("BEGIN; SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'; DROP SCHEMA {name} CASCADE; COMMIT")).await
    }

    async fn run(&self, statements: &str) -> Result<(), DriverError> {
        self.client.batch_execute(statements).await.map_err(|error| self.refused(error))
    }

    async fn set(&self, statement: &str, mark: &str) -> Result<(), DriverError> {
        self.client.execute(statement, &[&mark]).await.map(|_| ()).map_err(|error| self.refused(error))
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
