//! Control of a DuckDB target.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatchReader;
use sensorbench_driver::{
    Admission, Description, Driver, DriverError, KeptSchema, Marker, Occupant, Operation, Progress, Schema, Sessions, Size,
    SqlSchema, Type, Value, Watch, quoted,
};

use crate::errors::statement_error;
use crate::library::{Connection, Instance};
use crate::load;
use crate::schema::{check_tables, run};
use crate::session::Connector;
use crate::target::{Target, write_marker};

/// What is reported about a database.
const SETTINGS: &str = "SELECT name, value FROM duckdb_settings() \
    WHERE name IN ('checkpoint_threshold', 'fsync_mode', 'memory_limit', 'threads') ORDER BY name";
/// Our own table is none of the schema's.
const TABLES: &str =
    "SELECT table_name FROM duckdb_tables() WHERE NOT internal AND schema_name = 'main' AND table_name <> 'sensorbench'";
const BLOCK_SIZE: &str = "SELECT block_size FROM pragma_database_size()";

pub struct DuckdbDriver {
    target: Target,
    schema: KeptSchema<SqlSchema>,
    /// Kept from the first use on: closing a database writes its log into it.
    opened: Mutex<Option<Arc<Instance>>>,
}

impl DuckdbDriver {
    pub fn new(target: Target) -> Self {
        Self { target, schema: KeptSchema::default(), opened: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Instance>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn instance(&self) -> Result<Arc<Instance>, DriverError> {
        let mut opened = self.lock();
        if let Some(instance) = &*opened {
            return Ok(instance.clone());
        }
        Ok(opened.insert(self.target.open()?).clone())
    }

    fn connection(&self) -> Result<Arc<Connection>, DriverError> {
        Connection::to(&self.instance()?).map_err(statement_error)
    }

    fn schema(&self) -> Result<SqlSchema, DriverError> {
        self.schema.get(self.target.path.display())
    }

    /// Closes the database and removes its files.
    fn remove_files(&self) -> Result<(), DriverError> {
        *self.lock() = None;
        if Instance::is_open(&self.target.path) {
            return Err(DriverError::Namespace(format!(
                "{}: somebody in this process uses the database",
                self.target.path.display()
            )));
        }
        self.target.remove_files()
    }
}

impl Driver for DuckdbDriver {
    fn describe(&self) -> Result<Description, DriverError> {
        let mut settings = BTreeMap::new();
        if matches!(self.target.occupant()?, Occupant::Ours(_)) {
            let connection = self.connection()?;
            let rows = rows(&connection, SETTINGS, &[Type::Text, Type::Text])?;
            settings.extend(rows.into_iter().filter_map(|row| Some((text(row.first()?)?, text(row.get(1)?)?))));
        }
        Ok(Description { database: "DuckDB".to_owned(), version: self.target.library.version().to_owned(), settings })
    }

    fn namespace(&self) -> String {
        self.target.path.display().to_string()
    }

    fn elsewhere(&self) -> &'static str {
        "name another path"
    }

    fn occupant(&self) -> Result<Occupant, DriverError> {
        self.target.occupant()
    }

    fn create(&self, schema: &Schema, marker: &Marker, admission: &Admission) -> Result<(), DriverError> {
        let parsed = SqlSchema::of(schema)?;
        if admission.replaces() {
            self.remove_files()?;
        }
        self.target.create(marker)?;
        let connection = self.connection()?;
        run(parsed.create(), &connection)?;
        check_tables(&parsed, &connection)?;
        self.schema.keep(parsed);
        Ok(())
    }

    fn attach(&self, schema: &Schema) -> Result<(), DriverError> {
        let parsed = SqlSchema::of(schema)?;
        check_tables(&parsed, &self.connection()?)?;
        self.schema.keep(parsed);
        Ok(())
    }

    fn write_marker(&self, marker: &Marker, _: &Admission) -> Result<(), DriverError> {
        write_marker(&self.connection()?, "UPDATE main.sensorbench SET mark = $1", marker)
    }

    fn remove(&self, _: &Admission) -> Result<(), DriverError> {
        self.remove_files()
    }

    fn namespaces(&self) -> Result<Vec<String>, DriverError> {
        Ok(if matches!(self.occupant()?, Occupant::Ours(_)) { vec![self.namespace()] } else { Vec::new() })
    }

    fn load(&self, table: &str, rows: Box<dyn RecordBatchReader + Send>, progress: &Progress) -> Result<(), DriverError> {
        let schema = self.schema()?;
        load::load(&self.connection()?, self.target.library.chunk_rows(), table, schema.table(table)?, rows, progress)
    }

    /// Runs the schema's statements, then writes the log into the database, and all of it to disk.
    fn settle(&self) -> Result<(), DriverError> {
        let connection = self.connection()?;
        run(self.schema()?.settle(), &connection)?;
        connection.query("CHECKPOINT").map(drop).map_err(statement_error)
    }

    fn count(&self, table: &str) -> Result<u64, DriverError> {
        let connection = self.connection()?;
        let rows = rows(&connection, &format!("SELECT count(*) FROM {}", quoted(table)), &[Type::Integer])?;
        Ok(whole(rows.first().and_then(|row| row.first())))
    }

    fn size(&self) -> Result<Size, DriverError> {
        let connection = self.connection()?;
        let parts = parts(&connection)?;
        // The unit of st_blocks is 512 bytes, whatever the file system's own is.
        let allocated = |file| std::fs::metadata(file).map_or(0, |metadata| metadata.blocks() * 512);
        let total_bytes = self.target.files().iter().map(allocated).sum();
        Ok(Size { total_bytes, parts, ..Size::default() })
    }

    fn sessions(&self, operations: &[Operation]) -> Result<Sessions, DriverError> {
        let (instance, operations) = (self.instance()?, operations.to_vec());
        Ok(Sessions::Blocking(Box::new(Connector { instance, operations, watch: Watch::start()? })))
    }
}

/// The bytes of each table's blocks, without those of its indexes, which DuckDB does not report. Small tables share blocks.
fn parts(connection: &Connection) -> Result<BTreeMap<String, u64>, DriverError> {
    let block_bytes = rows(connection, BLOCK_SIZE, &[Type::Integer])?;
    let block_bytes = whole(block_bytes.first().and_then(|row| row.first()));
    let mut blocks = BTreeMap::new();
    for row in rows(connection, TABLES, &[Type::Text])? {
        let Some(table) = row.first().and_then(text) else { continue };
        let of_table: BTreeSet<u64> =
            rows(connection, &blocks_of(&table), &[Type::Integer])?.iter().map(|row| whole(row.first())).collect();
        blocks.insert(table, of_table);
    }
    let mut sharing: BTreeMap<u64, u64> = BTreeMap::new();
    blocks.values().flatten().for_each(|block| *sharing.entry(*block).or_default() += 1);
    let bytes = |of_table: BTreeSet<u64>| of_table.iter().map(|block| block_bytes / sharing[block]).sum::<u64>();
    Ok(blocks.into_iter().map(|(table, of_table)| (table, bytes(of_table))).collect())
}

fn blocks_of(table: &str) -> String {
    let info = format!("FROM pragma_storage_info('{}') WHERE persistent", quoted(table).replace('\'', "''"));
    format!(
        "SELECT DISTINCT block FROM (SELECT block_id AS block {info} UNION ALL SELECT unnest(additional_block_ids) {info}) WHERE block >= 0"
    )
}

fn rows(connection: &Connection, statement: &str, types: &[Type]) -> Result<Vec<Vec<Value>>, DriverError> {
    connection.query(statement).and_then(|answer| answer.rows(types)).map_err(statement_error)
}

fn text(value: &Value) -> Option<String> {
    if let Value::Text(text) = value { Some(text.to_string()) } else { None }
}

/// A number of things; none where DuckDB says null.
fn whole(value: Option<&Value>) -> u64 {
    if let Some(Value::Integer(number)) = value { *number as u64 } else { 0 }
}
