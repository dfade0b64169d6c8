//! sensorbench's keyspace in the cluster: whose it is, and the mark in it.

use scylla::client::session::Session;
use scylla::response::query_result::QueryRowsResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::Consistency;
use scylla::statement::unprepared::Statement;
use sensorbench_driver::DriverError;

use crate::target::Target;
use crate::{errors, quoted};

/// Who owns the keyspace that the URL names.
#[derive(Debug, PartialEq)]
enum Occupant {
    Nobody,
    Sensorbench,
    Somebody,
}

const KEYSPACE: &str = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?";
/// Is there a table with our mark in it?
const MARKED: &str = "\
    SELECT type FROM system_schema.columns WHERE keyspace_name = ? AND table_name = 'sensorbench' AND column_name = 'mark'";

/// A query of the server's catalogue, of which each node has a copy of its own: no level that needs several can be reached there.
pub fn of_catalogue(query: &str) -> Statement {
    let mut statement = Statement::new(query);
    statement.set_consistency(Consistency::One);
    statement
}

/// The namespace of a target, in a session.
pub struct Namespace<'a> {
    pub target: &'a Target,
    pub session: &'a Session,
}

impl Namespace<'_> {
    /// Makes the namespace anew, empty but for the mark, and has statements find it. What sensorbench did not create is never
    /// removed.
    pub async fn create(&self, mark: &str, replace: bool) -> Result<(), DriverError> {
        let Target { shown, server, .. } = self.target;
        let namespace = &server.namespace;
        self.check_replication()?;
        match self.occupant().await? {
            Occupant::Nobody => {}
            Occupant::Somebody => {
                return Err(DriverError::Namespace(format!(
                    "Cassandra at {shown}: the keyspace {namespace} is there and sensorbench did not create it; name another one \
                     with namespace="
                )));
            }
            Occupant::Sensorbench if !replace => {
                return Err(DriverError::Namespace(format!(
                    "Cassandra at {shown}: the keyspace {namespace} holds data of an earlier run of sensorbench; give --replace \
                     to load it again, or name another one with namespace="
                )));
            }
            Occupant::Sensorbench => self.drop_all().await?,
        }
        let name = quoted(namespace);
        let (copies, durable) = (self.target.replication, self.target.durable_writes);
        self.run(format!(
            "CREATE KEYSPACE {name} WITH replication = {{'class': 'NetworkTopologyStrategy', 'replication_factor': {copies}}} \
             AND durable_writes = {durable}"
        ))
        .await?;
        self.run(format!("CREATE TABLE {name}.sensorbench (id int PRIMARY KEY, mark text)")).await?;
        self.write_mark(mark).await?;
        self.enter().await
    }

    /// Has statements find the tables of the namespace. An error unless sensorbench created it.
    pub async fn require(&self) -> Result<(), DriverError> {
        match self.occupant().await? {
            Occupant::Sensorbench => self.enter().await,
            _ => Err(DriverError::Namespace(format!(
                "Cassandra at {}: sensorbench has no keyspace {} there; load it first",
                self.target.shown, self.target.server.namespace
            ))),
        }
    }

    /// The mark, or None when sensorbench did not create the namespace.
    pub async fn mark(&self) -> Result<Option<String>, DriverError> {
        if self.occupant().await? != Occupant::Sensorbench {
            return Ok(None);
        }
        let query = format!("SELECT mark FROM {}.sensorbench WHERE id = 0", quoted(&self.target.server.namespace));
        let rows = self.ask(query, ()).await?;
        let row = rows.maybe_first_row::<(Option<String>,)>().map_err(|error| DriverError::Data(error.to_string()))?;
        Ok(row.and_then(|(mark,)| mark))
    }

    pub async fn set_mark(&self, mark: &str) -> Result<(), DriverError> {
        self.require().await?;
        self.write_mark(mark).await
    }

    /// Removes the namespace if sensorbench created it.
    pub async fn remove(&self) -> Result<(), DriverError> {
        match self.occupant().await? {
            Occupant::Sensorbench => self.drop_all().await,
            _ => Ok(()),
        }
    }

    fn check_replication(&self) -> Result<(), DriverError> {
        let nodes = self.session.get_cluster_state().get_nodes_info().len();
        let copies = self.target.replication;
        if nodes < copies as usize {
            return Err(DriverError::Url(format!(
                "target {}: replication={copies}: the cluster has {nodes} nodes, and a node holds one copy at most",
                self.target.shown
            )));
        }
        Ok(())
    }

    async fn occupant(&self) -> Result<Occupant, DriverError> {
        let namespace = (&self.target.server.namespace,);
        let is_there = self.ask(of_catalogue(KEYSPACE), namespace).await?.rows_num() > 0;
        let is_marked = self.ask(of_catalogue(MARKED), namespace).await?.rows_num() > 0;
        Ok(match (is_there, is_marked) {
            (false, _) => Occupant::Nobody,
            (true, true) => Occupant::Sensorbench,
            (true, false) => Occupant::Somebody,
        })
    }

    async fn enter(&self) -> Result<(), DriverError> {
        let entered = self.session.use_keyspace(&self.target.server.namespace, false).await;
        entered.map_err(|error| self.namespace_error(error.to_string()))
    }

    async fn drop_all(&self) -> Result<(), DriverError> {
        self.run(format!("DROP KEYSPACE {}", quoted(&self.target.server.namespace))).await
    }

    async fn write_mark(&self, mark: &str) -> Result<(), DriverError> {
        let statement = format!("INSERT INTO {}.sensorbench (id, mark) VALUES (0, ?)", quoted(&self.target.server.namespace));
        let written = self.session.query_unpaged(statement, (mark,)).await;
        written.map(|_| ()).map_err(|error| errors::execution_error(&self.target.shown, error))
    }

    async fn ask(&self, query: impl Into<Statement>, values: impl SerializeRow) -> Result<QueryRowsResult, DriverError> {
        let answer = self.session.query_unpaged(query, values).await;
        let answer = answer.map_err(|error| errors::execution_error(&self.target.shown, error))?;
        answer.into_rows_result().map_err(|error| DriverError::Data(error.to_string()))
    }

    async fn run(&self, statement: String) -> Result<(), DriverError> {
        let done = self.session.query_unpaged(statement, ()).await;
        done.map(|_| ()).map_err(|error| match errors::execution_error(&self.target.shown, error) {
            DriverError::Statement(told) => self.namespace_error(told),
            other => other,
        })
    }

    fn namespace_error(&self, told: String) -> DriverError {
        DriverError::Namespace(format!(
            "Cassandra at {}: the keyspace {}: {told}",
            self.target.shown, self.target.server.namespace
        ))
    }
}
