//! Control of a fjall target.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use arrow_array::RecordBatchReader;
use fjall::{Keyspace, PersistMode};
use sensorbench_driver::{
    Admission, Description, Driver, DriverError, Marker, Occupant, Operation, Progress, Schema, Sessions, Size,
};

use crate::errors::fjall_error;
use crate::load;
use crate::locks::RowLocks;
use crate::operation::Prepared;
use crate::session::Connector;
use crate::table::{FjallSchema, Table};
use crate::target::Target;

pub struct FjallDriver {
    target: Target,
    /// A folder is opened once in a process; everybody shares what was opened.
    opened: Mutex<Option<Opened>>,
}

#[derive(Clone)]
struct Opened {
    database: fjall::Database,
    schema: FjallSchema,
    locks: Arc<RowLocks>,
}

impl FjallDriver {
    pub fn new(target: Target) -> Self {
        Self { target, opened: Mutex::new(None) }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Opened>> {
        self.opened.lock().expect("nothing panics under this lock")
    }

    /// The error of the database with the folder that it is about: on whose disk there is no room, for example.
    fn at_path(&self, error: DriverError) -> DriverError {
        match error {
            DriverError::Statement(message) => {
                DriverError::Statement(format!("{}: {message}", self.target.folder.path.display()))
            }
            other => other,
        }
    }

    fn opened(&self) -> Result<Opened, DriverError> {
        let opened = self.lock().clone();
        opened.ok_or_else(|| {
            DriverError::Namespace(format!("{}: no schema was created or attached", self.target.folder.path.display()))
        })
    }
}

impl Opened {
    fn table(&self, name: &str) -> Result<(Keyspace, &Table), DriverError> {
        let table = self.schema.table(name).map_err(|error| DriverError::Data(error.message))?;
        Ok((self.database.keyspace(name, || table.options()).map_err(fjall_error)?, table))
    }

    fn keyspaces(&self) -> Result<Vec<(String, Keyspace)>, DriverError> {
        self.schema.tables.keys().map(|name| Ok((name.clone(), self.table(name)?.0))).collect()
    }
}

impl Driver for FjallDriver {
    fn describe(&self) -> Result<Description, DriverError> {
        let settings = BTreeMap::from([
            ("cache_mib".to_owned(), self.target.cache_mib.to_string()),
            ("durability".to_owned(), self.target.durability_word().to_owned()),
        ]);
        Ok(Description { database: "fjall".to_owned(), version: env!("FJALL_VERSION").to_owned(), settings })
    }

    fn namespace(&self) -> String {
        self.target.folder.path.display().to_string()
    }

    fn elsewhere(&self) -> &'static str {
        "name another path"
    }

    fn occupant(&self) -> Result<Occupant, DriverError> {
        self.target.folder.occupant()
    }

    fn create(&self, schema: &Schema, marker: &Marker, admission: &Admission) -> Result<(), DriverError> {
        let schema = FjallSchema::of(schema)?;
        let mut opened = self.lock();
        if admission.replaces() {
            *opened = None;
            self.target.folder.remove()?;
        }
        self.target.folder.write_marker(marker)?;
        let created = Opened { database: self.target.open()?, schema, locks: Arc::default() };
        created.keyspaces()?;
        *opened = Some(created);
        Ok(())
    }

    fn attach(&self, schema: &Schema) -> Result<(), DriverError> {
        let schema = FjallSchema::of(schema)?;
        let mut opened = self.lock();
        let (database, locks) = match opened.take() {
            Some(opened) => (opened.database, opened.locks),
            None => (self.target.open()?, Arc::default()),
        };
        *opened = Some(Opened { database, schema, locks });
        Ok(())
    }

    fn write_marker(&self, marker: &Marker, _: &Admission) -> Result<(), DriverError> {
        self.target.folder.write_marker(marker)
    }

    fn remove(&self, _: &Admission) -> Result<(), DriverError> {
        *self.lock() = None;
        self.target.folder.remove()
    }

    fn namespaces(&self) -> Result<Vec<String>, DriverError> {
        Ok(if matches!(self.occupant()?, Occupant::Ours(_)) { vec![self.namespace()] } else { Vec::new() })
    }

    fn load(&self, table: &str, rows: Box<dyn RecordBatchReader + Send>, progress: &Progress) -> Result<(), DriverError> {
        let opened = self.opened()?;
        let (keyspace, columns) = opened.table(table)?;
        load::load(&keyspace, table, columns, rows, progress).map_err(|error| self.at_path(error))
    }

    /// Compacts every table into its last level and writes everything to disk.
    fn settle(&self) -> Result<(), DriverError> {
        let opened = self.opened()?;
        for (_, keyspace) in opened.keyspaces()? {
            keyspace.major_compact().map_err(|error| self.at_path(fjall_error(error)))?;
        }
        opened.database.persist(PersistMode::SyncAll).map_err(|error| self.at_path(fjall_error(error)))
    }

    fn count(&self, table: &str) -> Result<u64, DriverError> {
        Ok(self.opened()?.table(table)?.0.len().map_err(fjall_error)? as u64)
    }

    fn size(&self) -> Result<Size, DriverError> {
        // Without a schema nobody knows the tables, but the folder has a size.
        let keyspaces = self.lock().clone().map_or_else(|| Ok(Vec::new()), |opened| opened.keyspaces())?;
        let parts = keyspaces.into_iter().map(|(name, keyspace)| (name, keyspace.disk_space())).collect();
        Ok(Size { total_bytes: self.target.folder.bytes()?, parts, ..Size::default() })
    }

    fn sessions(&self, operations: &[Operation]) -> Result<Sessions, DriverError> {
        let opened = self.opened()?;
        let prepare = |operation: &Operation| {
            let prepared = Prepared::of(&opened.schema, operation)?;
            Ok((opened.table(prepared.table_name())?.0, prepared))
        };
        let operations = operations.iter().map(prepare).collect::<Result<Vec<_>, DriverError>>()?;
        let locks = operations.iter().any(|(_, prepared)| prepared.merges()).then_some(opened.locks);
        let connector = Connector { database: opened.database, operations, locks, durability: self.target.durability };
        Ok(Sessions::Blocking(Box::new(connector)))
    }
}
