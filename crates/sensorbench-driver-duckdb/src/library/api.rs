//! The functions of DuckDB's C API that are called, its numbers and its layouts, as in duckdb.h of 2.0.0.

use std::ffi::{c_char, c_void};

use libloading::os::unix::Library;

/// `duckdb_database`, `duckdb_connection` and all other handles.
pub type Handle = *mut c_void;
/// `duckdb_state`.
pub type State = u32;
/// `DuckDBSuccess`.
pub const SUCCESS: State = 0;

/// `duckdb_timestamp`: microseconds since 1970.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Timestamp {
    pub micros: i64,
}

/// `duckdb_result`, which callers allocate.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawResult {
    deprecated_column_count: u64,
    deprecated_row_count: u64,
    deprecated_rows_changed: u64,
    deprecated_columns: *mut c_void,
    deprecated_error_message: *mut c_char,
    internal_data: *mut c_void,
}

impl RawResult {
    pub const EMPTY: Self = Self {
        deprecated_column_count: 0,
        deprecated_row_count: 0,
        deprecated_rows_changed: 0,
        deprecated_columns: std::ptr::null_mut(),
        deprecated_error_message: std::ptr::null_mut(),
        internal_data: std::ptr::null_mut(),
    };
}

/// `duckdb_string_t`: up to 12 bytes lie in it, of more only the first four and where they all are.
#[repr(C)]
#[derive(Clone, Copy)]
pub union RawText {
    inlined: Inlined,
    pointer: Pointer,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Inlined {
    length: u32,
    bytes: [u8; MAX_INLINED],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Pointer {
    length: u32,
    prefix: [u8; 4],
    bytes: *const u8,
}

const MAX_INLINED: usize = 12;

impl RawText {
    /// The bytes.
    ///
    /// # Safety
    ///
    /// The vector that it lies in must still be there.
    #[inline]
    pub unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: the length is at the same place in both, and says which it is.
        unsafe {
            let length = self.inlined.length as usize;
            if length <= MAX_INLINED {
                &self.inlined.bytes[..length]
            } else {
                std::slice::from_raw_parts(self.pointer.bytes, length)
            }
        }
    }
}

/// `duckdb_error_type`, those that are distinguished.
pub mod kind {
    pub const INVALID: u32 = 0;
    pub const TRANSACTION: u32 = 10;
    pub const CATALOG: u32 = 13;
    pub const CONSTRAINT: u32 = 18;
    pub const BINDER: u32 = 24;
    pub const INTERRUPT: u32 = 29;
    pub const FATAL: u32 = 30;
}

/// `duckdb_type`, those that have a canonical type, and those of columns whose type is known when parameters are.
pub mod duckdb_type {
    pub const INVALID: u32 = 0;
    pub const BOOLEAN: u32 = 1;
    pub const TINYINT: u32 = 2;
    pub const SMALLINT: u32 = 3;
    pub const INTEGER: u32 = 4;
    pub const BIGINT: u32 = 5;
    pub const UTINYINT: u32 = 6;
    pub const USMALLINT: u32 = 7;
    pub const UINTEGER: u32 = 8;
    pub const DOUBLE: u32 = 11;
    pub const TIMESTAMP: u32 = 12;
    pub const VARCHAR: u32 = 17;
    pub const BLOB: u32 = 18;
    pub const ANY: u32 = 34;
    pub const SQLNULL: u32 = 36;
}

/// `duckdb_statement_type` of statements that return a count of changed rows.
pub mod statement_type {
    pub const INSERT: u32 = 2;
    pub const UPDATE: u32 = 3;
    pub const DELETE: u32 = 5;
    pub const MERGE_INTO: u32 = 30;
}

macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $returned:ty)?;)*) => {
        /// The functions that are called, found by their names when the library was opened: each is called `duckdb_` and its name here.
        #[derive(Clone, Copy)]
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $returned)?,)*
        }

        impl Functions {
            /// Finds every function.
            ///
            /// # Safety
            ///
            /// The library must be DuckDB of the version that the signatures are of.
            pub unsafe fn of(library: &Library) -> Result<Self, libloading::Error> {
                // SAFETY: the caller vouches for the signatures.
                unsafe { Ok(Self { $($name: *library.get(concat!("duckdb_", stringify!($name), "\0"))?,)* }) }
            }
        }
    };
}

functions! {
    create_config(*mut Handle) -> State;
    set_config(Handle, *const c_char, *const c_char) -> State;
    destroy_config(*mut Handle);
    open_ext(*const c_char, *mut Handle, Handle, *mut *mut c_char) -> State;
    close(*mut Handle);
    free(*mut c_void);
    connect(Handle, *mut Handle) -> State;
    disconnect(*mut Handle);
    interrupt(Handle);
    query(Handle, *const c_char, *mut RawResult) -> State;
    prepare(Handle, *const c_char, *mut Handle) -> State;
    prepare_error(Handle) -> *const c_char;
    destroy_prepare(*mut Handle);
    nparams(Handle) -> u64;
    prepared_statement_type(Handle) -> u32;
    prepared_statement_column_count(Handle) -> u64;
    prepared_statement_column_type(Handle, u64) -> u32;
    bind_boolean(Handle, u64, bool) -> State;
    bind_int64(Handle, u64, i64) -> State;
    bind_double(Handle, u64, f64) -> State;
    bind_timestamp(Handle, u64, Timestamp) -> State;
    bind_varchar_length(Handle, u64, *const c_char, u64) -> State;
    bind_blob(Handle, u64, *const c_void, u64) -> State;
    bind_null(Handle, u64) -> State;
    execute_prepared(Handle, *mut RawResult) -> State;
    column_count(*mut RawResult) -> u64;
    column_type(*mut RawResult, u64) -> u32;
    result_error(*mut RawResult) -> *const c_char;
    result_error_type(*mut RawResult) -> u32;
    destroy_result(*mut RawResult);
    fetch_chunk(RawResult) -> Handle;
    create_logical_type(u32) -> Handle;
    destroy_logical_type(*mut Handle);
    create_data_chunk(*mut Handle, u64) -> Handle;
    destroy_data_chunk(*mut Handle);
    data_chunk_reset(Handle);
    data_chunk_set_size(Handle, u64);
    data_chunk_get_size(Handle) -> u64;
    data_chunk_get_vector(Handle, u64) -> Handle;
    vector_size() -> u64;
    vector_get_data(Handle) -> *mut c_void;
    vector_get_validity(Handle) -> *mut u64;
    vector_ensure_validity_writable(Handle);
    unsafe_vector_assign_string_element_len(Handle, u64, *const c_char, u64);
    appender_create(Handle, *const c_char, *const c_char, *mut Handle) -> State;
    appender_add_column(Handle, *const c_char) -> State;
    appender_error_data(Handle) -> Handle;
    append_data_chunk(Handle, Handle) -> State;
    appender_clear(Handle) -> State;
    appender_close(Handle) -> State;
    appender_destroy(*mut Handle) -> State;
    error_data_error_type(Handle) -> u32;
    error_data_message(Handle) -> *const c_char;
    destroy_error_data(*mut Handle);
}
