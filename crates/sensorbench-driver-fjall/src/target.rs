//! The folder of a target, and how it is opened.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fjall::PersistMode;
use sensorbench_driver::{DriverError, TargetUrl};

use crate::fjall_error;

const MARK_FILE: &str = "sensorbench-mark";
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

    pub fn open(&self) -> Result<fjall::Database, DriverError> {
        let open = fjall::Database::builder(self.path.join(DATABASE_FOLDER)).cache_size(self.cache_mib << 20).open();
        open.map_err(|error| DriverError::Connection(format!("{}: {}", self.path.display(), fjall_error(error))))
    }

    /// The mark that sensorbench left in the folder, or None when it did not make the folder.
    pub fn mark(&self) -> Result<Option<String>, DriverError> {
        match std::fs::read_to_string(self.path.join(MARK_FILE)) {
            Ok(mark) => Ok(Some(mark)),
            Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(self.error(error)),
        }
    }

    /// Leaves a mark in the folder, all of it or none.
    pub fn set_mark(&self, mark: &str) -> Result<(), DriverError> {
        let write = || -> std::io::Result<()> {
            std::fs::create_dir_all(&self.path)?;
            let unfinished = self.path.join("sensorbench-mark.new");
            std::fs::write(&unfinished, mark)?;
            std::fs::rename(unfinished, self.path.join(MARK_FILE))
        };
        write().map_err(|error| self.error(error))
    }

    pub fn is_free(&self) -> Result<bool, DriverError> {
        match std::fs::read_dir(&self.path) {
            Ok(mut entries) => Ok(entries.next().is_none()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Ok(false),
            Err(error) => Err(self.error(error)),
        }
    }

    pub fn remove(&self) -> Result<(), DriverError> {
        std::fs::remove_dir_all(&self.path).map_err(|error| self.error(error))
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
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
    }
    Ok(bytes)
}
