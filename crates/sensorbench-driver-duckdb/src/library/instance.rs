//! Open databases. DuckDB locks a file for a process, so that everybody in the process shares what was opened.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use super::api::{Handle, SUCCESS, kind};
use super::{Library, Refusal, text};

/// Settings by DuckDB's own names.
pub type Settings = BTreeMap<&'static str, String>;

/// An open database. It is closed when nobody has it any more.
pub struct Instance {
    pub(super) library: &'static Library,
    pub(super) handle: Handle,
    /// Where it is, if others may share it.
    shared_as: Option<PathBuf>,
    settings: Settings,
}

// SAFETY: a database may be used by any thread; connections are what only one may use at a time.
unsafe impl Send for Instance {}
// SAFETY: as above.
unsafe impl Sync for Instance {}

/// What is open, by where it is.
type Shared = BTreeMap<PathBuf, Weak<Instance>>;

static SHARED: Mutex<Shared> = Mutex::new(BTreeMap::new());
static CLOSED: Condvar = Condvar::new();

impl Instance {
    /// The database in a file, which is made if it is not there.
    pub fn shared(library: &'static Library, path: &Path, settings: &Settings) -> Result<Arc<Self>, Refusal> {
        let key = key(path);
        let (mut shared, open) = find(&key);
        if let Some(open) = open {
            drop(shared);
            return if open.settings == *settings {
                Ok(open)
            } else {
                Err(Refusal::new(kind::INVALID, "the database is open in this process with other settings"))
            };
        }
        let opened = Arc::new(Self::open(library, Some(path), settings, Some(key.clone()))?);
        shared.insert(key, Arc::downgrade(&opened));
        Ok(opened)
    }

    /// Looks at the database in a file and changes nothing. Where it is open in this process already, that is what is looked at.
    pub fn look<T>(library: &'static Library, path: &Path, look: impl FnOnce(&Arc<Self>) -> T) -> Result<T, Refusal> {
        let (shared, open) = find(&key(path));
        if let Some(open) = open {
            drop(shared);
            return Ok(look(&open));
        }
        let settings = Settings::from([("access_mode", "READ_ONLY".to_owned())]);
        let opened = Arc::new(Self::open(library, Some(path), &settings, None)?);
        let seen = look(&opened);
        // Nobody may open the file before this look at it is over.
        drop(opened);
        drop(shared);
        Ok(seen)
    }

    /// Whether somebody in this process has the file open. As long as this is so, nobody may open or close the file past DuckDB: the system
    /// would take DuckDB's lock away.
    pub fn is_open(path: &Path) -> bool {
        find(&key(path)).1.is_some()
    }

    /// A database in memory, or in a file that nobody shares.
    pub fn alone(library: &'static Library, path: Option<&Path>, settings: &Settings) -> Result<Arc<Self>, Refusal> {
        Self::open(library, path, settings, None).map(Arc::new)
    }

    fn open(
        library: &'static Library,
        path: Option<&Path>,
        settings: &Settings,
        shared_as: Option<PathBuf>,
    ) -> Result<Self, Refusal> {
        let functions = &library.functions;
        let path = path.map_or(Ok(c":memory:".to_owned()), |path| CString::new(path.as_os_str().as_encoded_bytes()));
        let path = path.map_err(|_| Refusal::new(kind::INVALID, "a path cannot have a zero byte"))?;
        let mut config = null_mut();
        // SAFETY: both take the place of a handle, and set_config one that was made.
        unsafe { (functions.create_config)(&mut config) };
        // Nothing is fetched from the network.
        let own = [("autoinstall_known_extensions", "false"), ("autoload_known_extensions", "false")];
        let given = settings.iter().map(|(name, value)| (*name, value.as_str()));
        let refused = own.into_iter().chain(given).find(|(name, value)| {
            let (name, value) = (c_text(name), c_text(value));
            // SAFETY: the handle was made above, and the texts live until the call is over.
            unsafe { (functions.set_config)(config, name.as_ptr(), value.as_ptr()) != SUCCESS }
        });
        let (mut handle, mut error) = (null_mut(), null_mut());
        let opened = refused.is_none()
            // SAFETY: all are handles and places of handles made above.
            && unsafe { (functions.open_ext)(path.as_ptr(), &mut handle, config, &mut error) } == SUCCESS;
        // SAFETY: the error is a text or null, is copied and freed once, and the configuration is used no more.
        let message = unsafe {
            (functions.destroy_config)(&mut config);
            let message = text(error);
            (functions.free)(error.cast());
            message
        };
        if opened {
            return Ok(Self { library, handle, shared_as, settings: settings.clone() });
        }
        Err(Refusal::new(
            kind::INVALID,
            match refused {
                Some((name, value)) => format!("DuckDB has no setting {name}={value}"),
                None => message.unwrap_or_else(|| "DuckDB does not say why it cannot open the file".to_owned()),
            },
        ))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: connections have a share of this, so that none is left.
        unsafe { (self.library.functions.close)(&mut self.handle) };
        if let Some(path) = &self.shared_as {
            lock().remove(path);
            CLOSED.notify_all();
        }
    }
}

fn lock() -> MutexGuard<'static, Shared> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is open at a place. One that is being closed is waited for.
fn find(key: &Path) -> (MutexGuard<'static, Shared>, Option<Arc<Instance>>) {
    let mut shared = lock();
    while let Some(open) = shared.get(key) {
        if let Some(open) = open.upgrade() {
            return (shared, Some(open));
        }
        shared = CLOSED.wait(shared).unwrap_or_else(PoisonError::into_inner);
    }
    (shared, None)
}

/// One name for a file, whether it is there or not.
fn key(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = absolute.parent().and_then(|folder| folder.canonicalize().ok());
    folder.zip(absolute.file_name()).map_or(absolute.clone(), |(folder, name)| folder.join(name))
}

/// A text for C. Texts of ours have no zero bytes; one of a user's ends there.
pub fn c_text(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).expect("no zero is left")
}
