//! sensorbench's keyspace in the cluster: whose it is, and the mark in it.

use scylla::client::session::Session;
use scylla::response::query_result::QueryRowsResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::Consistency;
use scylla::statement::unprepared::Statement;
use sensorbench_driver::{Admission, DriverError, Marker, Occupant, quoted};

use crate::errors;
use crate::target::Target;

const KEYSPACE: &str = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?";
/// Is there a table that could hold our marker?
const MARKED: &str = "\
    SELECT type FROM system_schema.columns WHERE keyspace_name = ? AND table_name = 'sensorbench' AND column_name = 'mark'";

/// Keyspaces with such a table.
const CANDIDATES: &str = "\
    SELECT keyspace_name FROM system_schema.columns WHERE table_name = 'sensorbench' AND column_name = 'mark' ALLOW FILTERING";

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
    /// Creates the namespace, empty but for the marker, and has statements find it.
    pub async fn create(&self, marker: &Marker, admission: &Admission) -> Result<(), DriverError> {
        self.check_replication()?;
        if admission.replaces() {
            self.remove().await?;
        }
        let name = quoted(&self.target.server.namespace);
        let (copies, durable) = (self.target.replication, self.target.durable_writes);
        self.run(format!(
            "CREATE KEYSPACE {name} WITH replication = {{'class': 'NetworkTopologyStrategy', 'replication_factor': {copies}}} \
             AND durable_writes = {durable}"
        ))
        .await?;
        self.run(format!("CREATE TABLE {name}.sensorbench (id int PRIMARY KEY, mark text)")).await?;
        self.write_marker(marker).await?;
        self.enter().await
    }

    pub async fn write_marker(&self, marker: &Marker) -> Result<(), DriverError> {
        let statement = format!("INSERT INTO {}.sensorbench (id, mark) VALUES (0, ?)", quoted(&self.target.server.namespace));
        let written = self.session.query_unpaged(statement, (marker.to_text(),)).await;
        written.map(|_| ()).map_err(|error| errors::execution_error(&self.target.shown, error))
    }

    pub async fn occupant(&self) -> Result<Occupant, DriverError> {
        let namespace = &self.target.server.namespace;
        if self.ask(of_catalogue(KEYSPACE), (namespace,)).await?.rows_num() == 0 {
            return Ok(Occupant::Absent);
        }
        let is_marked = self.ask(of_catalogue(MARKED), (namespace,)).await?.rows_num() > 0;
        let text = if is_marked { self.marker_text(namespace).await? } else { None };
        Ok(Occupant::by_text(text.as_deref(), || "it is somebody's keyspace".to_owned()))
    }

    /// Names of all keyspaces with a marker of ours.
    pub async fn all(&self) -> Result<Vec<String>, DriverError> {
        let unreadable = |error: String| DriverError::Data(error);
        let rows = self.ask(of_catalogue(CANDIDATES), ()).await?;
        let names = rows.rows::<(String,)>().map_err(|error| unreadable(error.to_string()))?;
        let names: Vec<String> =
            names.map(|row| row.map(|(name,)| name).map_err(|error| unreadable(error.to_string()))).collect::<Result<_, _>>()?;
        let mut ours = Vec::new();
        for name in names {
            if self.marker_text(&name).await?.is_some_and(|text| Marker::parse(&text).is_some()) {
                ours.push(name);
            }
        }
        ours.sort_unstable();
        Ok(ours)
    }

    /// The text where a marker would be; None also where somebody's table of that name has other columns.
    async fn marker_text(&self, namespace: &str) -> Result<Option<String>, DriverError> {
        let query = format!("SELECT mark FROM {}.sensorbench WHERE id = 0", quoted(namespace));
        let rows = match self.ask(query, ()).await {
            Err(DriverError::Statement(_)) => return Ok(None),
            rows => rows?,
        };
        Ok(rows.maybe_first_row::<(Option<String>,)>().ok().flatten().and_then(|(text,)| text))
    }

    /// Has statements find the tables of the namespace.
    pub async fn enter(&self) -> Result<(), DriverError> {
        let entered = self.session.use_keyspace(&self.target.server.namespace, false).await;
        entered.map_err(|error| self.namespace_error(error.to_string()))
    }

    pub async fn remove(&self) -> Result<(), DriverError> {
        self.run(format!("DROP KEYSPACE {}", quoted(&self.target.server.namespace))).await
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

    async fn ask(&self, query: impl Into<Statement>, values: impl SerializeRow) -> Result<QueryRowsResult, DriverError> {
        let answer = self.session.query_unpaged(query, values).await;
        let answer = answer.map_err(|error| errors::execution_error(&self.target.shown, error))?;
        answer.into_rows_result().map_err(|error| DriverError::Data(error.to_string()))
    }

    async fn run(&self, statement: String) -> Result<(), DriverError> {
        let done = self.session.query_unpaged(statement, ()).await;
        done.map(|_| ()).map_err(|error| match errors::execution_error(&self.target.shown, error) {
            DriverError::Statement(message) => self.namespace_error(message),
            other => other,
        })
    }

    fn namespace_error(&self, message: String) -> DriverError {
        DriverError::Namespace(format!(
            "Cassandra at {}: the keyspace {}: {message}",
            self.target.shown, self.target.server.namespace
        ))
    }
}
