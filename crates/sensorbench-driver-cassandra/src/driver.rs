//! Control of a Cassandra target.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatchReader;
use scylla::client::session::Session;
use sensorbench_driver::{
    Admission, Description, Driver, DriverError, KeptSchema, Marker, Occupant, Operation, Progress, ReplayConnector,
    ReplayRequest, Schema, Sessions, Size, SqlSchema, WriteCheck, WriteQuestion, quoted,
};

use crate::control::Control;
use crate::count::count;
use crate::encode::TableForm;
use crate::namespace::Namespace;
use crate::observe::Observed;
use crate::replay::Replayer;
use crate::schema::OperationStatement;
use crate::session::Connector;
use crate::sstables::Described;
use crate::target::Target;
use crate::written::check_writes;
use crate::{copy_file, errors, load, nodetool, sstables};

/// Compactions are done when nothing was seen of them for this long: the next may begin when one ends.
const QUIET_FOR: Duration = Duration::from_millis(1500);
const LOOK_EVERY: Duration = Duration::from_millis(250);

pub struct CassandraDriver {
    target: Arc<Target>,
    control: Control,
    schema: KeptSchema<SqlSchema>,
}

impl CassandraDriver {
    pub fn new(target: Arc<Target>) -> Self {
        Self { control: Control::new(target.clone()), target, schema: KeptSchema::default() }
    }

    fn schema(&self) -> Result<SqlSchema, DriverError> {
        self.schema.get(format_args!("Cassandra at {}", self.target.shown))
    }

    fn in_namespace<T>(&self, work: impl AsyncFnOnce(Namespace<'_>) -> Result<T, DriverError>) -> Result<T, DriverError> {
        self.control.with(async |session| work(Namespace { target: &self.target, session }).await)
    }

    fn observed<T>(&self, work: impl AsyncFnOnce(Observed<'_>) -> Result<T, DriverError>) -> Result<T, DriverError> {
        self.control.with(async |session| work(Observed { target: &self.target, session }).await)
    }

    /// Runs statements, each with its place in the schema file.
    async fn run<'a>(&self, statements: impl Iterator<Item = (String, &'a str)>, session: &Session) -> Result<(), DriverError> {
        for (place, statement) in statements {
            let done = session.query_unpaged(statement, ()).await;
            done.map_err(|error| errors::schema_error(&self.target.shown, place, error))?;
        }
        Ok(())
    }

    /// Every table that is filled exists, with columns that hold the values of its fill.
    async fn check_tables(&self, schema: &SqlSchema, session: &Session) -> Result<(), DriverError> {
        for (table, columns) in schema.tables() {
            TableForm::of(session, &self.target, table, columns).await?;
        }
        Ok(())
    }

    /// The definition of a table, as the server writes it.
    async fn described(&self, form: TableForm, session: &Session) -> Result<Described, DriverError> {
        let statement = format!("DESCRIBE TABLE {}.{}", quoted(&self.target.server.namespace), quoted(&form.table));
        let answer = session.query_unpaged(statement, ()).await;
        let answer = answer.map_err(|error| errors::execution_error(&self.target.shown, error))?;
        let unreadable = |error: String| DriverError::Data(format!("table {}: {error}", form.table));
        let rows = answer.into_rows_result().map_err(|error| unreadable(error.to_string()))?;
        let described = rows.first_row::<(String, String, String, String)>();
        let (_, _, _, create) = described.map_err(|error| unreadable(error.to_string()))?;
        Ok(Described { create, form })
    }

    fn wait_for_compactions(&self) -> Result<(), DriverError> {
        let mut quiet_since = Instant::now();
        while quiet_since.elapsed() < QUIET_FOR {
            if self.observed(async |cluster| cluster.compactions().await)? > 0 {
                quiet_since = Instant::now();
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
}

impl Driver for CassandraDriver {
    fn describe(&self) -> Result<Description, DriverError> {
        self.observed(async |cluster| cluster.describe().await)
    }

    fn namespace(&self) -> String {
        format!("Cassandra at {}, keyspace {}", self.target.shown, self.target.server.namespace)
    }

    fn occupant(&self) -> Result<Occupant, DriverError> {
        self.in_namespace(async |namespace| namespace.occupant().await)
    }

    fn create(&self, schema: &Schema, marker: &Marker, admission: &Admission) -> Result<(), DriverError> {
        let parsed = SqlSchema::of(schema)?;
        self.in_namespace(async |namespace| {
            namespace.create(marker, admission).await?;
            self.run(parsed.create(), namespace.session).await?;
            self.check_tables(&parsed, namespace.session).await
        })?;
        self.schema.keep(parsed);
        Ok(())
    }

    fn attach(&self, schema: &Schema) -> Result<(), DriverError> {
        let parsed = SqlSchema::of(schema)?;
        self.in_namespace(async |namespace| {
            namespace.enter().await?;
            self.check_tables(&parsed, namespace.session).await
        })?;
        self.schema.keep(parsed);
        Ok(())
    }

    fn write_marker(&self, marker: &Marker, _: &Admission) -> Result<(), DriverError> {
        self.in_namespace(async |namespace| namespace.write_marker(marker).await)
    }

    fn remove(&self, _: &Admission) -> Result<(), DriverError> {
        self.in_namespace(async |namespace| namespace.remove().await)
    }

    fn namespaces(&self) -> Result<Vec<String>, DriverError> {
        self.in_namespace(async |namespace| namespace.all().await)
    }

    fn load(&self, table: &str, rows: Box<dyn RecordBatchReader + Send>, progress: &Progress) -> Result<(), DriverError> {
        let schema = self.schema()?;
        let columns = schema.table(table)?;
        let form = self.control.with(async |session| TableForm::of(session, &self.target, table, columns).await)?;
        // Cassandra's writer of SSTables cannot write counters.
        let Some(program) = self.target.sstable_loader.as_ref().filter(|_| !form.counts) else {
            return load::load(&self.control, &self.target, &form, rows, progress);
        };
        let described = self.control.with(async |session| self.described(form, session).await)?;
        sstables::load(program, &self.target, &described, rows, progress)
    }

    /// CSV, for COPY of cqlsh.
    fn write_load_file(
        &self,
        table: &str,
        rows: Box<dyn RecordBatchReader + Send>,
        file: &Path,
        progress: &Progress,
    ) -> Result<(), DriverError> {
        let schema = self.schema()?;
        let columns = schema.table(table)?;
        let form = self.control.with(async |session| TableForm::of(session, &self.target, table, columns).await)?;
        copy_file::write(&form, rows, file, progress)
    }

    /// Runs the schema's statements, has the nodes write everything to SSTables where there is nodetool, compacts them to one where
    /// that is wanted, and waits until the nodes compact nothing any more.
    fn settle(&self) -> Result<(), DriverError> {
        let schema = self.schema()?;
        self.control.with(async |session| self.run(schema.settle(), session).await)?;
        if let Some(program) = &self.target.nodetool {
            let (nodes, keyspace) = (self.observed(async |cluster| Ok(cluster.addresses()))?, &self.target.server.namespace);
            nodetool::call_each(program, &nodes, &["flush", keyspace])?;
            if self.target.compacts {
                nodetool::call_each(program, &nodes, &["compact", keyspace])?;
            }
        }
        self.wait_for_compactions()
    }

    fn count(&self, table: &str) -> Result<u64, DriverError> {
        self.control.with(async |session| count(session, &self.target, table).await)
    }

    fn size(&self) -> Result<Size, DriverError> {
        self.observed(async |cluster| cluster.size().await)
    }

    fn status(&self) -> Result<BTreeMap<String, f64>, DriverError> {
        self.observed(async |cluster| cluster.status().await)
    }

    fn sessions(&self, operations: &[Operation]) -> Result<Sessions, DriverError> {
        let operations = operations.iter().map(OperationStatement::of).collect::<Result<_, _>>()?;
        Ok(Sessions::Asynchronous(Box::new(Connector { target: self.target.clone(), operations })))
    }

    fn replayer(&self, request: ReplayRequest) -> Result<Box<dyn ReplayConnector>, DriverError> {
        Ok(Box::new(Replayer::of(self.target.clone(), request)?))
    }

    fn check_writes(&self, question: WriteQuestion) -> Result<Vec<WriteCheck>, DriverError> {
        self.control.with(async |_| check_writes(&self.target, question).await)
    }
}
