//! Control of an SQLite target.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;

use arrow_array::RecordBatchReader;
use rusqlite::{Connection, OptionalExtension};
use sensorbench_driver::{
    Admission, Description, Driver, DriverError, KeptSchema, Marker, Occupant, Operation, Progress, Schema, Sessions, Size,
    SqlSchema, quoted,
};

use crate::errors::statement_error;
use crate::load;
use crate::schema::{check_tables, run};
use crate::session::Connector;
use crate::target::{APPLICATION_ID, Target};

pub struct SqliteDriver {
    target: Target,
    schema: KeptSchema<SqlSchema>,
}

impl SqliteDriver {
    pub fn new(target: Target) -> Self {
        Self { target, schema: KeptSchema::default() }
    }

    fn schema(&self) -> Result<SqlSchema, DriverError> {
        self.schema.get(self.target.path.display())
    }

    /// Removes the files. The database goes last, because it alone says whose the others are.
    fn remove_files(&self) -> Result<(), DriverError> {
        for file in self.target.files().iter().rev() {
            match std::fs::remove_file(file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(DriverError::Namespace(format!("{}: {error}", file.display())));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Driver for SqliteDriver {
    fn describe(&self) -> Result<Description, DriverError> {
        let mut settings = BTreeMap::new();
        if matches!(self.target.occupant()?, Occupant::Ours(_)) {
            let connection = self.target.connect()?;
            for pragma in ["journal_mode", "synchronous", "cache_size", "mmap_size", "page_size"] {
                let value: Option<rusqlite::types::Value> =
                    connection.pragma_query_value(None, pragma, |row| row.get(0)).optional().map_err(statement_error)?;
                settings.insert(pragma.to_owned(), shown(value));
            }
        }
        Ok(Description { database: "SQLite".to_owned(), version: rusqlite::version().to_owned(), settings })
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
        let connection = self.target.create()?;
        connection.pragma_update(None, "application_id", APPLICATION_ID).map_err(statement_error)?;
        connection.execute_batch("CREATE TABLE sensorbench (mark TEXT NOT NULL)").map_err(statement_error)?;
        connection.execute("INSERT INTO sensorbench (mark) VALUES (?1)", [marker.to_text()]).map_err(statement_error)?;
        run(parsed.create(), &connection)?;
        check_tables(&parsed, &connection)?;
        self.schema.keep(parsed);
        Ok(())
    }

    fn attach(&self, schema: &Schema) -> Result<(), DriverError> {
        let parsed = SqlSchema::of(schema)?;
        check_tables(&parsed, &self.target.connect()?)?;
        self.schema.keep(parsed);
        Ok(())
    }

    fn write_marker(&self, marker: &Marker, _: &Admission) -> Result<(), DriverError> {
        self.target.connect()?.execute("UPDATE sensorbench SET mark = ?1", [marker.to_text()]).map_err(statement_error)?;
        Ok(())
    }

    fn remove(&self, _: &Admission) -> Result<(), DriverError> {
        self.remove_files()
    }

    fn namespaces(&self) -> Result<Vec<String>, DriverError> {
        Ok(if matches!(self.occupant()?, Occupant::Ours(_)) { vec![self.namespace()] } else { Vec::new() })
    }

    fn load(&self, table: &str, rows: Box<dyn RecordBatchReader + Send>, progress: &Progress) -> Result<(), DriverError> {
        let schema = self.schema()?;
        load::load(&mut self.target.connect()?, table, schema.table(table)?, rows, progress)
    }

    /// Runs the schema's statements, then writes everything to disk under the journal that the target asks for.
    fn settle(&self) -> Result<(), DriverError> {
        let connection = self.target.connect()?;
        run(self.schema()?.settle(), &connection)?;
        self.target.set_journal_mode(&connection)?;
        connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").map_err(statement_error)?;
        let synced = std::fs::File::open(&self.target.path).and_then(|file| file.sync_all());
        synced.map_err(|error| DriverError::Connection(format!("{}: {error}", self.target.path.display())))
    }

    fn count(&self, table: &str) -> Result<u64, DriverError> {
        let count = |row: &rusqlite::Row| row.get::<_, i64>(0);
        let rows = self
            .target
            .connect()?
            .query_row(&format!("SELECT count(*) FROM {}", quoted(table)), [], count)
            .map_err(statement_error)?;
        Ok(rows as u64)
    }

    fn size(&self) -> Result<Size, DriverError> {
        let connection = self.target.connect()?;
        // The unit of st_blocks is 512 bytes, whatever the file system's own is.
        let allocated = |file| std::fs::metadata(file).map_or(0, |metadata| metadata.blocks() * 512);
        let total_bytes = self.target.files().iter().map(allocated).sum();
        Ok(Size { total_bytes, parts: parts(&connection).map_err(statement_error)?, ..Size::default() })
    }

    fn sessions(&self, operations: &[Operation]) -> Result<Sessions, DriverError> {
        Ok(Sessions::Blocking(Box::new(Connector { target: self.target.clone(), operations: operations.to_vec() })))
    }
}

fn parts(connection: &Connection) -> rusqlite::Result<BTreeMap<String, u64>> {
    let mut statement = connection.prepare("SELECT name, pgsize FROM dbstat WHERE aggregate = TRUE AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> 'sensorbench'")?;
    statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))?.collect()
}

fn shown(value: Option<rusqlite::types::Value>) -> String {
    use rusqlite::types::Value;
    match value {
        Some(Value::Integer(value)) => value.to_string(),
        Some(Value::Text(value)) => value,
        Some(Value::Real(value)) => value.to_string(),
        Some(Value::Null | Value::Blob(_)) | None => "not reported".to_owned(),
    }
}
