//! The folder of a target, and how it is opened.

use std::path::PathBuf;

use fjall::PersistMode;
use sensorbench_driver::{DriverError, Folder, TargetUrl};

use crate::errors::fjall_error;

/// Where the folder is and with which settings it is opened.
#[derive(Clone, Debug)]
pub struct Target {
    pub folder: Folder,
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
        Ok(Self { folder: Folder { path: PathBuf::from(&url.rest) }, cache_mib, durability })
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
        let open = fjall::Database::builder(self.folder.database()).cache_size(self.cache_mib << 20).open();
        open.map_err(|error| DriverError::Connection(format!("{}: {}", self.folder.path.display(), fjall_error(error))))
    }
}
