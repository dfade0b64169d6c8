//! The folder of a target that is one: whose it is, and what of it is sensorbench's.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::{DriverError, Marker, Occupant};

const MARK_FILE: &str = "sensorbench-mark";
const UNFINISHED_MARK_FILE: &str = "sensorbench-mark.new";
const DATABASE_FOLDER: &str = "database";

/// The unit of st_blocks, whatever the file system's own is.
const BYTES_A_BLOCK: u64 = 512;

/// A folder with a marker in it, and a database in a folder of its own beside the marker.
#[derive(Clone, Debug)]
pub struct Folder {
    /// Where it is.
    pub path: PathBuf,
}

impl Folder {
    /// Where the database is.
    pub fn database(&self) -> PathBuf {
        self.path.join(DATABASE_FOLDER)
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

    /// Bytes on disk, of everything in the folder.
    pub fn bytes(&self) -> Result<u64, DriverError> {
        folder_bytes(&self.path).map_err(|error| self.error(error))
    }

    /// An error of the system, with the folder that it is about.
    pub fn error(&self, error: std::io::Error) -> DriverError {
        DriverError::Namespace(format!("{}: {error}", self.path.display()))
    }
}

/// Bytes that are allocated on disk: journals may be mostly a hole. Files that are removed meanwhile count as nothing.
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
