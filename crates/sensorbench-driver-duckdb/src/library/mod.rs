//! DuckDB's library, opened at run time: it is the one in DuckDB's Python package, which exports the whole C API.

mod api;
mod appender;
mod connection;
mod instance;
mod prepared;
mod result;

use std::error::Error as _;
use std::ffi::{CStr, c_char};
use std::path::Path;

use libloading::os::unix::{Library as Loaded, RTLD_LOCAL, RTLD_NOW};
use sensorbench_driver::OpenedOnce;

pub use api::kind;
pub use appender::{Appender, Chunk};
pub use connection::Connection;
pub use instance::{Instance, Settings};
pub use prepared::Statement;
pub use result::{Answer, is_unknown, may_be, type_for};

use self::api::Functions;

/// The versions whose C API this is. Layouts and signatures are those of duckdb.h of 2.0.0; they are kept within a major version.
const MAJOR_VERSION: &str = "2";

/// A library that is open. It stays so until the process ends.
pub struct Library {
    functions: Functions,
    version: String,
}

static OPENED: OpenedOnce<Library> = OpenedOnce::new();

impl Library {
    /// Opens the library at a path, once in a process. The error says why it cannot be used.
    pub fn open(path: &Path) -> Result<&'static Self, String> {
        OPENED.get(path, Self::new)
    }

    fn new(path: &Path) -> Result<Self, String> {
        // SAFETY: what libraries do when they are opened is theirs; Python opens this one in the same way.
        let loaded = unsafe { Loaded::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
        let loaded = loaded.map_err(|error| format!("the library of DuckDB cannot be opened: {}", reason(&error)))?;
        // SAFETY: the function has had this signature in all versions.
        let version = unsafe { loaded.get::<unsafe extern "C" fn() -> *const c_char>(c"duckdb_library_version") };
        let version = version.map_err(|error| format!("the file exports no C API of DuckDB: {}", reason(&error)))?;
        // SAFETY: it returns a text that is never freed.
        let version = unsafe { text(version()) }.unwrap_or_default().trim_start_matches('v').to_owned();
        if version.split('.').next() != Some(MAJOR_VERSION) {
            return Err(format!(
                "DuckDB {version} is there; expected version {MAJOR_VERSION}: pip install 'duckdb=={MAJOR_VERSION}.*'"
            ));
        }
        // SAFETY: of this major version, the functions have these signatures.
        let functions = unsafe { Functions::of(&loaded) };
        let functions = functions.map_err(|error| format!("DuckDB {version} lacks a function: {}", reason(&error)))?;
        std::mem::forget(loaded);
        Ok(Self { functions, version })
    }

    /// The library's version, for example "2.0.0".
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Rows of a chunk at most.
    pub fn chunk_rows(&self) -> usize {
        // SAFETY: it takes nothing and returns a constant.
        unsafe { (self.functions.vector_size)() as usize }
    }
}

/// Why DuckDB refused something.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// One of `kind`.
    pub kind: u32,
    pub message: String,
}

impl Refusal {
    fn new(kind: u32, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

/// A C text, copied; None if there is none.
///
/// # Safety
///
/// The pointer must be null or lead to a text that ends with a zero.
unsafe fn text(pointer: *const c_char) -> Option<String> {
    // SAFETY: the caller vouches for it.
    (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}

/// What the system's loader says.
fn reason(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}
