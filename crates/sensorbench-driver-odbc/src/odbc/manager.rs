//! The driver manager, loaded when the first target needs it. Nothing is linked, so that this crate is built and loaded on
//! machines without one.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::api::{Functions, IODBC_FUNCTION};

/// unixODBC's library, for the system to find.
const SONAME: &str = "libodbc.so.2";

/// A loaded manager. It stays loaded until the process ends, because drivers leave threads and exit handlers behind.
pub struct Manager {
    pub(super) functions: Functions,
    /// Where libraries lie that the system does not find.
    folder: Option<PathBuf>,
}

/// Why there is no manager.
#[derive(Clone, Debug)]
pub struct ManagerError(String);

impl fmt::Display for ManagerError {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

static LOADED: Mutex<BTreeMap<PathBuf, &'static Manager>> = Mutex::new(BTreeMap::new());

impl Manager {
    /// The manager at this path, or the system's own.
    pub fn load(path: Option<&Path>) -> Result<&'static Self, ManagerError> {
        let path = path.unwrap_or(Path::new(SONAME));
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(manager) = loaded.get(path) {
            return Ok(manager);
        }
        let manager = Box::leak(Box::new(Self::new(path)?));
        loaded.insert(path.to_owned(), manager);
        Ok(manager)
    }

    fn new(path: &Path) -> Result<Self, ManagerError> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).map(Path::to_owned);
        let named = || path.display();
        let library = open(path, folder.as_deref()).map_err(|error| {
            ManagerError(format!(
                "there is no ODBC driver manager: {}; install unixODBC (apt-get install libodbc2 libodbcinst2), or name \
                 its library with manager=/path/{SONAME} in the URL or in SENSORBENCH_ODBC_MANAGER",
                reason(&error)
            ))
        })?;
        // SAFETY: only the name is looked for.
        if unsafe { library.get::<*const ()>(IODBC_FUNCTION) }.is_ok() {
            return Err(ManagerError(format!("{} is iODBC; name unixODBC's {SONAME} instead", named())));
        }
        // SAFETY: a library that has all of these names is a driver manager, as far as can be known.
        let functions = unsafe { Functions::of(&library) };
        let functions =
            functions.map_err(|error| ManagerError(format!("{} is not an ODBC driver manager: {}", named(), reason(&error))))?;
        std::mem::forget(library);
        Ok(Self { functions, folder })
    }

    /// Loads a driver before the manager does, so that libraries that it needs are found beside the manager's where the system
    /// has none. Finds out why a driver cannot be loaded, which the manager does not report.
    pub fn load_driver(&self, path: &Path) -> Result<(), ManagerError> {
        let library = open(path, self.folder.as_deref())
            .map_err(|error| ManagerError(format!("the ODBC driver cannot be loaded: {}", reason(&error))))?;
        std::mem::forget(library);
        Ok(())
    }
}

/// Opens a library. One that it needs and that the system does not find is opened first, from the folder.
fn open(path: &Path, folder: Option<&Path>) -> Result<Library, libloading::Error> {
    let mut tried = Vec::new();
    loop {
        // SAFETY: what libraries do when they are loaded is theirs; the user has named them.
        let error = match unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) } {
            Ok(library) => return Ok(library),
            Err(error) => error,
        };
        let missing = folder.zip(missing_library(&error)).map(|(folder, name)| folder.join(name));
        let Some(missing) = missing.filter(|missing| missing != path && missing.is_file() && !tried.contains(missing)) else {
            return Err(error);
        };
        // It must stay: the loader takes it by its name when it is asked for the other once more.
        std::mem::forget(open(&missing, folder)?);
        tried.push(missing);
    }
}

/// The library that is missing, which glibc names first: "libpq.so.5: cannot open shared object file: …".
fn missing_library(error: &libloading::Error) -> Option<String> {
    let message = reason(error);
    let (name, _) = message.split_once(": ")?;
    (name.contains(".so") && !name.contains('/')).then(|| name.to_owned())
}

/// What the system's loader says.
fn reason(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}
