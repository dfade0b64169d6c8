//! The functions of a driver manager and the numbers of the standard, by its names.

use std::ffi::c_void;

use libloading::os::unix::Library;

/// SQLHANDLE.
pub type Handle = *mut c_void;
/// SQLRETURN.
pub type Return = i16;

/// A function that takes a statement and a text, in characters of one width.
pub type OfText<Character> = unsafe extern "system" fn(Handle, *const Character, i32) -> Return;

macro_rules! functions {
    ($($name:ident = $symbol:literal ($($argument:ty),*);)*) => {
        /// The functions that are called, found by their names when the manager was loaded.
        #[derive(Clone, Copy)]
        pub struct Functions {
            $(pub $name: unsafe extern "system" fn($($argument),*) -> Return,)*
        }

        impl Functions {
            /// Finds every function.
            ///
            /// # Safety
            ///
            /// The library must be a driver manager: its functions must be those of the standard.
            pub unsafe fn of(library: &Library) -> Result<Self, libloading::Error> {
                // SAFETY: the caller vouches for the signatures.
                unsafe { Ok(Self { $($name: *library.get(concat!($symbol, "\0"))?,)* }) }
            }
        }
    };
}

functions! {
    allocate = "SQLAllocHandle"(i16, Handle, *mut Handle);
    free = "SQLFreeHandle"(i16, Handle);
    set_environment = "SQLSetEnvAttr"(Handle, i32, *mut c_void, i32);
    set_connection = "SQLSetConnectAttr"(Handle, i32, *mut c_void, i32);
    get_connection = "SQLGetConnectAttr"(Handle, i32, *mut c_void, i32, *mut i32);
    connect_wide = "SQLDriverConnectW"(Handle, *mut c_void, *const u16, i16, *mut u16, i16, *mut i16, u16);
    connect_narrow = "SQLDriverConnect"(Handle, *mut c_void, *const u8, i16, *mut u8, i16, *mut i16, u16);
    disconnect = "SQLDisconnect"(Handle);
    info_wide = "SQLGetInfoW"(Handle, u16, *mut c_void, i16, *mut i16);
    info_narrow = "SQLGetInfo"(Handle, u16, *mut c_void, i16, *mut i16);
    end_transaction = "SQLEndTran"(i16, Handle, i16);
    diagnostic_wide = "SQLGetDiagRecW"(i16, Handle, i16, *mut u16, *mut i32, *mut u16, i16, *mut i16);
    diagnostic_narrow = "SQLGetDiagRec"(i16, Handle, i16, *mut u8, *mut i32, *mut u8, i16, *mut i16);
    prepare_wide = "SQLPrepareW"(Handle, *const u16, i32);
    prepare_narrow = "SQLPrepare"(Handle, *const u8, i32);
    execute_direct_wide = "SQLExecDirectW"(Handle, *const u16, i32);
    execute_direct_narrow = "SQLExecDirect"(Handle, *const u8, i32);
    execute = "SQLExecute"(Handle);
    set_statement = "SQLSetStmtAttr"(Handle, i32, *mut c_void, i32);
    get_statement = "SQLGetStmtAttr"(Handle, i32, *mut c_void, i32, *mut i32);
    bind_parameter = "SQLBindParameter"(Handle, u16, i16, i16, i16, usize, i16, *mut c_void, isize, *mut isize);
    result_columns = "SQLNumResultCols"(Handle, *mut i16);
    describe_wide = "SQLDescribeColW"(Handle, u16, *mut u16, i16, *mut i16, *mut i16, *mut usize, *mut i16, *mut i16);
    describe_narrow = "SQLDescribeCol"(Handle, u16, *mut u8, i16, *mut i16, *mut i16, *mut usize, *mut i16, *mut i16);
    bind_column = "SQLBindCol"(Handle, u16, i16, *mut c_void, isize, *mut isize);
    fetch = "SQLFetch"(Handle);
    get_data = "SQLGetData"(Handle, u16, i16, *mut c_void, isize, *mut isize);
    free_statement = "SQLFreeStmt"(Handle, u16);
    cancel = "SQLCancel"(Handle);
}

/// A function of iODBC alone, whose wide characters are not those of unixODBC.
pub const IODBC_FUNCTION: &str = "iodbc_version";

pub const SQL_SUCCESS: Return = 0;
pub const SQL_SUCCESS_WITH_INFO: Return = 1;
pub const SQL_NO_DATA: Return = 100;

pub const SQL_HANDLE_ENV: i16 = 1;
pub const SQL_HANDLE_DBC: i16 = 2;
pub const SQL_HANDLE_STMT: i16 = 3;

pub const SQL_NTS: i32 = -3;
pub const SQL_NULL_DATA: isize = -1;
pub const SQL_NO_TOTAL: isize = -4;

pub const SQL_ATTR_ODBC_VERSION: i32 = 200;
pub const SQL_OV_ODBC3: usize = 3;

pub const SQL_ATTR_AUTOCOMMIT: i32 = 102;
pub const SQL_ATTR_LOGIN_TIMEOUT: i32 = 103;
pub const SQL_ATTR_CONNECTION_DEAD: i32 = 1209;
pub const SQL_CD_FALSE: usize = 0;
pub const SQL_DRIVER_NOPROMPT: u16 = 0;
pub const SQL_COMMIT: i16 = 0;
pub const SQL_ROLLBACK: i16 = 1;

pub const SQL_ATTR_ROW_ARRAY_SIZE: i32 = 27;
pub const SQL_ATTR_ROWS_FETCHED_PTR: i32 = 26;
pub const SQL_ATTR_PARAMSET_SIZE: i32 = 22;
pub const SQL_ATTR_PARAMS_PROCESSED_PTR: i32 = 21;
pub const SQL_ATTR_PARAM_STATUS_PTR: i32 = 20;
pub const SQL_PARAM_ERROR: u16 = 5;
pub const SQL_PARAM_INPUT: i16 = 1;
pub const SQL_CLOSE: u16 = 0;
pub const SQL_UNBIND: u16 = 2;
pub const SQL_RESET_PARAMS: u16 = 3;

pub const SQL_C_CHAR: i16 = 1;
pub const SQL_C_DOUBLE: i16 = 8;
pub const SQL_C_TYPE_TIMESTAMP: i16 = 93;
pub const SQL_C_BINARY: i16 = -2;
pub const SQL_C_BIT: i16 = -7;
pub const SQL_C_WCHAR: i16 = -8;
pub const SQL_C_SBIGINT: i16 = -25;

pub const SQL_CHAR: i16 = 1;
pub const SQL_NUMERIC: i16 = 2;
pub const SQL_DECIMAL: i16 = 3;
pub const SQL_INTEGER: i16 = 4;
pub const SQL_SMALLINT: i16 = 5;
pub const SQL_FLOAT: i16 = 6;
pub const SQL_REAL: i16 = 7;
pub const SQL_DOUBLE: i16 = 8;
pub const SQL_TIMESTAMP: i16 = 11;
pub const SQL_VARCHAR: i16 = 12;
pub const SQL_TYPE_TIMESTAMP: i16 = 93;
pub const SQL_LONGVARCHAR: i16 = -1;
pub const SQL_BINARY: i16 = -2;
pub const SQL_VARBINARY: i16 = -3;
pub const SQL_LONGVARBINARY: i16 = -4;
pub const SQL_BIGINT: i16 = -5;
pub const SQL_TINYINT: i16 = -6;
pub const SQL_BIT: i16 = -7;
pub const SQL_WCHAR: i16 = -8;
pub const SQL_WVARCHAR: i16 = -9;
pub const SQL_WLONGVARCHAR: i16 = -10;
// Not of the standard, but of DB2 and those who follow it.
pub const SQL_BLOB: i16 = -98;
pub const SQL_CLOB: i16 = -99;
