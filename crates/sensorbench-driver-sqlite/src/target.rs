//! The file of a target, and how it is opened.

use std::path::PathBuf;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};
use sensorbench_driver::{DriverError, Marker, Occupant, TargetUrl};

use crate::errors::statement_error;

/// "SBCH": SQLite's own field for telling whose file it is.
pub const APPLICATION_ID: i32 = 0x5342_4348;

/// How long SQLite waits for another connection's lock before the session looks at its deadline again.
const BUSY_SLICE: Duration = Duration::from_millis(20);

/// Where the file is and with which settings it is opened.
#[derive(Clone, Debug)]
pub struct Target {
    pub path: PathBuf,
    journal_mode: String,
    synchronous: String,
    cache_mib: u32,
    mmap_mib: u32,
}

impl Target {
    pub fn of(url: &TargetUrl) -> Result<Self, DriverError> {
        url.check_options(&["cache_mib", "journal_mode", "mmap_mib", "synchronous"])?;
        if url.rest.is_empty() || url.rest == ":memory:" {
            return Err(url.error(
                "expected the path of a file, for example sqlite:data.db (a database in memory cannot be shared by sessions)",
            ));
        }
        let word = |key: &str, default: &str, known: &[&str]| match url.option(key).unwrap_or(default).to_ascii_lowercase() {
            word if known.contains(&word.as_str()) => Ok(word),
            word => Err(url.error(format!("option {key}={word}: expected one of {}", known.join(", ")))),
        };
        Ok(Self {
            path: PathBuf::from(&url.rest),
            journal_mode: word("journal_mode", "wal", &["wal", "delete", "truncate", "persist", "memory", "off"])?,
            synchronous: word("synchronous", "normal", &["off", "normal", "full", "extra"])?,
            cache_mib: url.parsed_option("cache_mib", "a whole number of MiB")?.unwrap_or(64),
            mmap_mib: url.parsed_option("mmap_mib", "a whole number of MiB")?.unwrap_or(0),
        })
    }

    /// The file and the files that SQLite keeps beside it.
    pub fn files(&self) -> [PathBuf; 4] {
        ["", "-wal", "-shm", "-journal"].map(|suffix| {
            let mut name = self.path.clone().into_os_string();
            name.push(suffix);
            PathBuf::from(name)
        })
    }

    /// What is at the path, seen without changing it.
    pub fn occupant(&self) -> Result<Occupant, DriverError> {
        match std::fs::metadata(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(self.without_database()),
            Err(error) => return Err(DriverError::Connection(format!("{}: {error}", self.path.display()))),
            Ok(metadata) if !metadata.is_file() => return Ok(Occupant::Foreign("it is not a file".to_owned())),
            Ok(_) => {}
        }
        let connection = Connection::open_with_flags(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(statement_error)?;
        let application: Result<i32, _> = connection.pragma_query_value(None, "application_id", |row| row.get(0));
        match application {
            Ok(APPLICATION_ID) => Ok(Occupant::Ours(marker(&connection)?)),
            Ok(_) => Ok(Occupant::Foreign("it is somebody's SQLite database".to_owned())),
            Err(rusqlite::Error::SqliteFailure(failure, _)) if failure.code == ErrorCode::NotADatabase => {
                Ok(Occupant::Foreign("it is a file, and no SQLite database".to_owned()))
            }
            Err(error) => Err(DriverError::Connection(format!("{}: {error}", self.path.display()))),
        }
    }

    /// A journal without its database belongs to somebody, and SQLite would remove it.
    fn without_database(&self) -> Occupant {
        let rest = self.files().into_iter().skip(1).find(|file| file.exists());
        rest.map_or(Occupant::Absent, |file| Occupant::Foreign(format!("{} is there without its database", file.display())))
    }

    /// Opens the file with the target's settings; it must be there.
    pub fn connect(&self) -> Result<Connection, DriverError> {
        self.connect_with(OpenFlags::SQLITE_OPEN_READ_WRITE)
    }

    /// Opens the file with the target's settings, and makes it when it is not there.
    pub fn create(&self) -> Result<Connection, DriverError> {
        self.connect_with(OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)
    }

    fn connect_with(&self, flags: OpenFlags) -> Result<Connection, DriverError> {
        let open = || -> rusqlite::Result<Connection> {
            let connection = Connection::open_with_flags(&self.path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
            connection.busy_timeout(BUSY_SLICE)?;
            connection.pragma_update(None, "synchronous", &self.synchronous)?;
            connection.pragma_update(None, "cache_size", -i64::from(self.cache_mib) * 1024)?;
            connection.pragma_update(None, "mmap_size", i64::from(self.mmap_mib) << 20)?;
            connection.pragma_update(None, "temp_store", "memory")?;
            Ok(connection)
        };
        open().map_err(|error| DriverError::Connection(format!("{}: {error}", self.path.display())))
    }

    /// Turns on the journal that the target asks for; it stays with the file.
    pub fn set_journal_mode(&self, connection: &Connection) -> Result<(), DriverError> {
        let mode: String = connection
            .pragma_update_and_check(None, "journal_mode", &self.journal_mode, |row| row.get(0))
            .map_err(statement_error)?;
        if mode.eq_ignore_ascii_case(&self.journal_mode) {
            return Ok(());
        }
        Err(DriverError::Statement(format!("SQLite keeps journal_mode {mode} instead of {}", self.journal_mode)))
    }
}

/// The marker of a database of ours; an empty one where creating it was cut short.
fn marker(connection: &Connection) -> Result<Marker, DriverError> {
    let tables = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'sensorbench'";
    if connection.query_row(tables, [], |row| row.get::<_, i64>(0)).map_err(statement_error)? == 0 {
        return Ok(Marker::default());
    }
    let text: Option<String> =
        connection.query_row("SELECT mark FROM sensorbench", [], |row| row.get(0)).optional().map_err(statement_error)?;
    Ok(text.and_then(|text| Marker::parse(&text)).unwrap_or_default())
}
