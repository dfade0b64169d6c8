//! chDB's library, opened at run time, and the functions of its C API that are called, as in chdb.h of 26.7.

use std::error::Error as _;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;

use libloading::os::unix::{Library as Loaded, RTLD_LOCAL, RTLD_NOW};
use sensorbench_driver::OpenedOnce;

/// The main versions whose C API this is.
const MAIN_VERSIONS: [&str; 2] = ["26.7", "26.9"];

/// `chdb_connection`, `chdb_result *` and `chdb_insert_stream`.
pub type Handle = *mut c_void;
/// `CHDBSuccess`.
pub const SUCCESS: c_int = 0;

macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $returned:ty)?;)*) => {
        /// The functions that are called, found by their names when the library was opened: each is called `chdb_` and its name here.
        #[derive(Clone, Copy)]
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $returned)?,)*
        }

        impl Functions {
            /// Finds every function.
            ///
            /// # Safety
            ///
            /// The library must be chDB of a version that the signatures are of.
            unsafe fn of(library: &Loaded) -> Result<Self, libloading::Error> {
                // SAFETY: the caller vouches for the signatures.
                unsafe { Ok(Self { $($name: *library.get(concat!("chdb_", stringify!($name), "\0"))?,)* }) }
            }
        }
    };
}

functions! {
    set_signal_handlers_enabled(c_int);
    connect(c_int, *const *const c_char) -> *mut Handle;
    close_conn(*mut Handle);
    query_n(Handle, *const c_char, usize, *const c_char, usize) -> Handle;
    result_buffer(Handle) -> *const u8;
    result_length(Handle) -> usize;
    result_error(Handle) -> *const c_char;
    destroy_query_result(Handle);
    stream_insert_n(Handle, *const c_char, usize, *const c_char, usize) -> Handle;
    stream_insert_error(Handle) -> *const c_char;
    stream_append(Handle, *const c_void, usize) -> c_int;
    stream_done(Handle) -> Handle;
    destroy_insert_stream(Handle);
}

/// A library that is open. It stays so until the process ends.
pub struct Library {
    pub functions: Functions,
    version: String,
}

static OPENED: OpenedOnce<Library> = OpenedOnce::new();

impl Library {
    /// Opens the library at a path, once in a process. The error says why it cannot be used.
    pub fn open(path: &Path) -> Result<&'static Self, String> {
        OPENED.get(path, Self::new)
    }

    fn new(path: &Path) -> Result<Self, String> {
        // SAFETY: what libraries do when they are opened is theirs; this one is made to be opened.
        let loaded = unsafe { Loaded::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
        let loaded = loaded.map_err(|error| format!("the library of chDB cannot be opened: {}", reason(&error)))?;
        // SAFETY: the function has had this signature in all versions that have it.
        let version = unsafe { loaded.get::<unsafe extern "C" fn() -> *const c_char>(c"chdb_version") };
        let version = version.map_err(|error| format!("the file exports no C API of chDB: {}", reason(&error)))?;
        // SAFETY: it returns a text that is never freed.
        let version = unsafe { text(version()) }.unwrap_or_default();
        if !MAIN_VERSIONS.iter().any(|known| version.starts_with(&format!("{known}."))) {
            return Err(format!("chDB {version} is there; expected {}", MAIN_VERSIONS.join(" or ")));
        }
        // SAFETY: of these versions, the functions have these signatures.
        let functions = unsafe { Functions::of(&loaded) };
        let functions = functions.map_err(|error| format!("chDB {version} lacks a function: {}", reason(&error)))?;
        // Signals are this process' own.
        // SAFETY: nothing is connected yet.
        unsafe { (functions.set_signal_handlers_enabled)(0) };
        std::mem::forget(loaded);
        Ok(Self { functions, version })
    }

    /// The library's version, for example "26.7.3".
    pub fn version(&self) -> &str {
        &self.version
    }
}

/// A C text, copied; None if there is none.
///
/// # Safety
///
/// The pointer must be null or lead to a text that ends with a zero.
pub unsafe fn text(pointer: *const c_char) -> Option<String> {
    // SAFETY: the caller vouches for it.
    (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}

/// What the system's loader says.
fn reason(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}
