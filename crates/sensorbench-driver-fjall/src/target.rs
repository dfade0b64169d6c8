//! The folder of a target, and how it is opened.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fjall::PersistMode;
use sensorbench_driver::{DriverError, Marker, Occupant, TargetUrl};

use crate::errors::fjall_error;

const MARK_FILE: &str = "sensorbench-mark";
const UNFINISHED_MARK_FILE: &str = "sensorbench-mark.new";
const DATABASE_FOLDER: &str = "database";

/// The unit of st_blocks, whatever the file system's own is.
const BYTES_A_BLOCK: u64 = 512;

/// Where the folder is and with which settings it is opened.
#[derive(Clone, Debug)]
pub struct Target {
    pub path: PathBuf,
    pub cache_mib: u64,
    /// What each write waits for; None leaves it to the operating system, as is fjall's default.
    pub durability: Option<PersistMode>,
}

impl Target {
    pub fn of(url: &TargetUrl) -> Result<Self, DriverError> {
        url.check_options(&["cache_mib", "durability"])?;
        if url.rest.is_empty() {
            return Err(url.error("expected the path of a folder, for example fjall:data"));
        }
        let durability = match url.option("durability") {
            None | Some("buffer") => None,
            Some("sync_data") => Some(PersistMode::SyncData),
            Some("sync_all") => Some(PersistMode::SyncAll),
            Some(other) => {
                return Err(url.error(format!("option durability={other}: expected one of buffer, sync_data, sync_all")));
            }
        };
        let cache_mib = url.parsed_option("cache_mib", "a whole number of MiB")?.unwrap_or(64);
        Ok(Self { path: PathBuf::from(&url.rest), cache_mib, durability })
    }

    /// The word of the URL's option for what each write waits for.
    pub fn durability_word(&self) -> &'static str {
        match self.durability {
            None | Some(PersistMode::Buffer) => "buffer",
            Some(PersistMode::SyncData) => "sync_data",
            Some(PersistMode::SyncAll) => "sync_all",
        }
    }

    pub fn open(&self) -> Result<fjall::Database, DriverError> {
        let open = fjall::Database::builder(self.path.join(DATABASE_FOLDER)).cache_size(self.cache_mib << 20).open();
        open.map_err(|error| DriverError::Connection(format!("{}: {}", self.path.display(), fjall_error(error))))
    }

    /// What is at the path.
    pub fn occupant(&self) -> Result<Occupant, DriverError> {
        match std::fs::read_to_string(self.path.join(MARK_FILE)) {
            Ok(text) => return Ok(Occupant::Ours(Marker::parse(&text).unwrap_or_default())),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => return Err(self.error(error)),
        }
        let foreign = |found: &str| Ok(Occupant::Foreign(found.to_owned()));
        match std::fs::read_dir(&self.path) {
            Ok(mut entries) => match entries.next() {
                None => Ok(Occupant::Absent),
                Some(_) => foreign("it is a folder with somebody's files in it"),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Occupant::Absent),
            Err(error) if error.kind() == ErrorKind::NotADirectory => foreign("it is a file"),
            Err(error) => Err(self.error(error)),
        }
    }

    /// Leaves a marker in the folder, all of it or none.
    pub fn write_marker(&self, marker: &Marker) -> Result<(), DriverError> {
        let write = || -> std::io::Result<()> {
            std::fs::create_dir_all(&self.path)?;
            let unfinished = self.path.join(UNFINISHED_MARK_FILE);
            std::fs::write(&unfinished, marker.to_text())?;
            std::fs::rename(unfinished, self.path.join(MARK_FILE))
        };
        write().map_err(|error| self.error(error))
    }

    /// Removes what sensorbench put into the folder, the marker last, and the folder where nothing else is left in it.
    pub fn remove(&self) -> Result<(), DriverError> {
        let removed = |outcome: std::io::Result<()>| match outcome {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.error(error)),
            _ => Ok(()),
        };
        removed(std::fs::remove_dir_all(self.path.join(DATABASE_FOLDER)))?;
        removed(std::fs::remove_file(self.path.join(UNFINISHED_MARK_FILE)))?;
        removed(std::fs::remove_file(self.path.join(MARK_FILE)))?;
        match std::fs::remove_dir(&self.path) {
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => Err(self.error(error)),
            _ => Ok(()),
        }
    }

    pub fn bytes(&self) -> Result<u64, DriverError> {
        folder_bytes(&self.path).map_err(|error| self.error(error))
    }

    pub fn error(&self, error: std::io::Error) -> DriverError {
        DriverError::Namespace(format!("{}: {error}", self.path.display()))
    }
}

/// Bytes that are allocated on disk: fjall's journal is mostly a hole. Files that it removes meanwhile count as nothing.
fn folder_bytes(folder: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        bytes += match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path())?,
            Ok(metadata) => metadata.blocks() * BYTES_A_BLOCK,
            Err(error) if error.kind() == ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
    }
    Ok(bytes)
}
