//! The file of a target, and how it is opened.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sensorbench_driver::{DriverError, Marker, Occupant, TargetUrl, Type, Value};

use crate::errors::{connection_error, statement_error};
use crate::library::{Connection, Instance, Library, Settings, Statement, kind};

/// Where DuckDB's files have these bytes.
const MAGIC: (usize, &[u8]) = (8, b"DUCK");
/// What DuckDB calls the file that it writes before it changes the database, and those it has while it does.
const LOGS: [&str; 3] = [".wal", ".wal.checkpoint", ".wal.recovery"];
/// A database that has no marker yet.
const UNFINISHED: &str = ".sensorbench-new";

/// Options, which DuckDB has by the same names as settings.
const SETTINGS: [&str; 4] = ["checkpoint_threshold", "fsync_mode", "memory_limit", "threads"];
const FSYNC_MODES: [&str; 3] = ["standard", "none", "full"];

/// Where the file is and with which settings it is opened.
#[derive(Clone)]
pub struct Target {
    pub library: &'static Library,
    pub path: PathBuf,
    settings: Settings,
}

impl Target {
    pub fn of(url: &TargetUrl, library: &'static Library) -> Result<Self, DriverError> {
        url.check_options(&SETTINGS)?;
        if url.rest.is_empty() || url.rest == ":memory:" {
            return Err(url.error(
                "expected the path of a file, for example duckdb:data.db (a database in memory is gone after a command)",
            ));
        }
        url.parsed_option::<std::num::NonZeroU16>("threads", "a number of threads")?;
        let mode = url.option("fsync_mode").map(str::to_ascii_lowercase);
        if let Some(mode) = mode.filter(|mode| !FSYNC_MODES.contains(&mode.as_str())) {
            return Err(url.error(format!("option fsync_mode={mode}: expected one of {}", FSYNC_MODES.join(", "))));
        }
        for key in ["checkpoint_threshold", "memory_limit"] {
            if let Some(size) = url.option(key).filter(|size| !is_size(size)) {
                return Err(url.error(format!("option {key}={size}: expected a number and a unit, for example 512MiB")));
            }
        }
        let given = SETTINGS.into_iter().filter_map(|key| Some((key, url.option(key)?.to_owned())));
        Ok(Self { library, path: PathBuf::from(&url.rest), settings: given.collect() })
    }

    /// The file and the files that DuckDB keeps beside it.
    pub fn files(&self) -> Vec<PathBuf> {
        files_of(&self.path)
    }

    /// What is at the path, seen without changing it.
    pub fn occupant(&self) -> Result<Occupant, DriverError> {
        match std::fs::metadata(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(self.without_database()),
            Err(error) => return Err(self.io_error(&error)),
            Ok(metadata) if !metadata.is_file() => return Ok(Occupant::Foreign("it is not a file".to_owned())),
            Ok(_) => {}
        }
        if !Instance::is_open(&self.path) && !self.is_database()? {
            return Ok(Occupant::Foreign("it is a file, and no DuckDB database".to_owned()));
        }
        match Instance::look(self.library, &self.path, occupant_of) {
            Ok(occupant) => occupant,
            Err(refusal) if refusal.message.contains("Could not set lock") => Err(connection_error(&self.path, refusal)),
            Err(refusal) => Ok(Occupant::Foreign(format!(
                "it is a DuckDB database that DuckDB {} cannot open: {}",
                self.library.version(),
                refusal.message
            ))),
        }
    }

    /// Asked only while nobody in this process has the file open.
    fn is_database(&self) -> Result<bool, DriverError> {
        let (place, magic) = MAGIC;
        let mut start = Vec::new();
        let file = std::fs::File::open(&self.path).map_err(|error| self.io_error(&error))?;
        file.take((place + magic.len()) as u64).read_to_end(&mut start).map_err(|error| self.io_error(&error))?;
        Ok(start.get(place..) == Some(magic))
    }

    /// A log without its database belongs to somebody, and DuckDB would take it for the new one's.
    fn without_database(&self) -> Occupant {
        let rest = self.files().into_iter().skip(1).find(|file| file.exists());
        rest.map_or(Occupant::Absent, |file| Occupant::Foreign(format!("{} is there without its database", file.display())))
    }

    /// Opens the file with the target's settings; it must be there.
    pub fn open(&self) -> Result<Arc<Instance>, DriverError> {
        if !self.path.exists() {
            return Err(DriverError::Namespace(format!("{}: there is no database", self.path.display())));
        }
        Instance::shared(self.library, &self.path, &self.settings).map_err(|refusal| connection_error(&self.path, refusal))
    }

    /// Makes the file. It gets its name when the marker is in it, so that nobody ever finds it there without one.
    pub fn create(&self, marker: &Marker) -> Result<(), DriverError> {
        let mut unfinished = self.path.clone().into_os_string();
        unfinished.push(UNFINISHED);
        let unfinished = PathBuf::from(unfinished);
        self.remove(&files_of(&unfinished))?;
        let instance = Instance::alone(self.library, Some(&unfinished), &self.settings);
        let instance = instance.map_err(|refusal| connection_error(&self.path, refusal))?;
        let connection = Connection::to(&instance).map_err(statement_error)?;
        connection.query("CREATE TABLE main.sensorbench (mark VARCHAR NOT NULL)").map_err(statement_error)?;
        write_marker(&connection, "INSERT INTO main.sensorbench (mark) VALUES ($1)", marker)?;
        drop(connection);
        // DuckDB writes its log into the database when it closes it.
        drop(instance);
        std::fs::rename(&unfinished, &self.path).map_err(|error| self.io_error(&error))
    }

    /// Removes the files. The database goes last, because it alone says whose the others are.
    pub fn remove_files(&self) -> Result<(), DriverError> {
        self.remove(&self.files())
    }

    fn remove(&self, files: &[PathBuf]) -> Result<(), DriverError> {
        for file in files.iter().rev() {
            match std::fs::remove_file(file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(DriverError::Namespace(format!("{}: {error}", file.display())));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn io_error(&self, error: &std::io::Error) -> DriverError {
        DriverError::Connection(format!("{}: {error}", self.path.display()))
    }
}

fn files_of(path: &Path) -> Vec<PathBuf> {
    let beside = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    std::iter::once(path.to_owned()).chain(LOGS.map(beside)).collect()
}

/// As DuckDB reads it: a number and a unit.
fn is_size(text: &str) -> bool {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let units = ["b", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib"];
    unit.len() < text.len() && units.contains(&unit.trim().to_ascii_lowercase().as_str())
}

/// Executes a statement whose one parameter is the marker.
pub fn write_marker(connection: &Arc<Connection>, statement: &str, marker: &Marker) -> Result<(), DriverError> {
    let prepared = Statement::of(connection, statement).map_err(statement_error)?;
    prepared.bind(1, Value::Text(marker.to_text().into()).as_ref()).map_err(statement_error)?;
    prepared.execute().map(drop).map_err(statement_error)
}

fn occupant_of(instance: &Arc<Instance>) -> Result<Occupant, DriverError> {
    let found = || "it is somebody's DuckDB database".to_owned();
    let connection = Connection::to(instance).map_err(statement_error)?;
    match connection.query("SELECT CAST(mark AS VARCHAR) FROM main.sensorbench LIMIT 1") {
        Err(refusal) if [kind::CATALOG, kind::BINDER].contains(&refusal.kind) => Ok(Occupant::Foreign(found())),
        Err(refusal) => Err(statement_error(refusal)),
        Ok(answer) => {
            let rows = answer.rows(&[Type::Text]).map_err(statement_error)?;
            let mark = match rows.first().and_then(|row| row.first()) {
                Some(Value::Text(mark)) => Some(mark.to_string()),
                _ => None,
            };
            Ok(Occupant::by_text(mark.as_deref(), found))
        }
    }
}
