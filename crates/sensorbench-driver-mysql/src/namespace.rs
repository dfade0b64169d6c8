//! sensorbench's own database at the server, with a table that tells it from others.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use sensorbench_driver::DriverError;

use crate::link::Link;
use crate::quoted;

/// The table that holds the mark, and its comment, which nobody else's table has.
pub const TABLE: &str = "sensorbench";
const COMMENT: &str = "sensorbench made this database and may drop it";

/// The namespace of a link, seen through a connection.
pub struct Namespace<'a> {
    pub link: &'a Link,
    pub connection: &'a mut Conn,
}

/// What the namespace's name stands for at the server.
#[derive(Debug, PartialEq)]
enum Occupant {
    Nobody,
    Sensorbench,
    Other,
}

impl Namespace<'_> {
    /// Creates the database with its mark, and enters it.
    pub async fn create(&mut self, mark: &str, replace: bool) -> Result<(), DriverError> {
        self.make_room(replace).await?;
        let (name, table) = (quoted(&self.link.server.namespace), self.table());
        self.run(format!("CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")).await?;
        self.run(format!("CREATE TABLE {table} (mark LONGTEXT NOT NULL) COMMENT = '{COMMENT}'")).await?;
        let inserted = self.connection.exec_drop(format!("INSERT INTO {table} (mark) VALUES (?)"), (mark,)).await;
        inserted.map_err(|error| self.link.error(error))?;
        self.run(format!("USE {name}")).await
    }

    /// The mark, or None when there is no database of ours.
    pub async fn mark(&mut self) -> Result<Option<String>, DriverError> {
        if self.occupant().await? != Occupant::Sensorbench {
            return Ok(None);
        }
        let mark: Result<Option<String>, _> = self.connection.query_first(format!("SELECT mark FROM {}", self.table())).await;
        // A database that was created no further than its table has no mark, but is ours.
        mark.map(|mark| Some(mark.unwrap_or_default())).map_err(|error| self.link.error(error))
    }

    pub async fn set_mark(&mut self, mark: &str) -> Result<(), DriverError> {
        let updated = self.connection.exec_drop(format!("UPDATE {} SET mark = ?", self.table()), (mark,)).await;
        updated.map_err(|error| self.link.error(error))
    }

    /// Drops the database when it is ours.
    pub async fn remove(&mut self) -> Result<(), DriverError> {
        match self.occupant().await? {
            Occupant::Sensorbench => self.run(format!("DROP DATABASE {}", quoted(&self.link.server.namespace))).await,
            Occupant::Nobody | Occupant::Other => Ok(()),
        }
    }

    async fn make_room(&mut self, replace: bool) -> Result<(), DriverError> {
        let (server, name) = (self.link.server.shown(), &self.link.server.namespace);
        match self.occupant().await? {
            Occupant::Nobody => Ok(()),
            Occupant::Other => Err(DriverError::Namespace(format!(
                "{server}: sensorbench did not create the database {name} and does not touch it; \
                 name another one with namespace= in the URL"
            ))),
            Occupant::Sensorbench if !replace => Err(DriverError::Namespace(format!(
                "{server}: the database {name} holds data of an earlier run of sensorbench; \
                 give --replace to load it again, or name another one with namespace= in the URL"
            ))),
            Occupant::Sensorbench => self.remove().await,
        }
    }

    async fn occupant(&mut self) -> Result<Occupant, DriverError> {
        let question = "SELECT (SELECT count(*) FROM information_schema.schemata WHERE schema_name = ?), \
            (SELECT count(*) FROM information_schema.tables WHERE table_schema = ? AND table_name = ? AND table_comment = ?)";
        let name = &self.link.server.namespace;
        let counts = self.connection.exec_first(question, (name, name, TABLE, COMMENT)).await;
        Ok(match counts.map_err(|error| self.link.error(error))?.unwrap_or((0, 0)) {
            (0, _) => Occupant::Nobody,
            (_, 0) => Occupant::Other,
            (_, 1_u64..) => Occupant::Sensorbench,
        })
    }

    fn table(&self) -> String {
        format!("{}.{}", quoted(&self.link.server.namespace), quoted(TABLE))
    }

    async fn run(&mut self, statement: String) -> Result<(), DriverError> {
        self.connection.query_drop(statement).await.map_err(|error| self.link.error(error))
    }
}
