//! Open folders, and connections to them. The engine has one folder open in a process.

use std::ffi::{CString, c_char, c_int};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sensorbench_driver::{Column, DriverError, Folder, Interrupt, Rows, TargetUrl};
use sensorbench_driver_http::clickhouse::{Answer, FORMAT, name};

use crate::library::{Functions, Handle, Library, SUCCESS, text};

/// Options of a URL, which ClickHouse has by the same names as settings.
const SETTINGS: [&str; 3] = ["async_insert", "max_memory_usage", "max_threads"];
/// The database in the folder.
pub const DATABASE: &str = "sensorbench";
/// How answers come.
const ANSWER_FORMAT: &str = "Native";
/// What the engine says of a query that was ended.
const ENDED: &str = "(QUERY_WAS_CANCELLED)";
/// How long a folder waits for another one to be left.
const WAITS_FOR_ANOTHER: Duration = Duration::from_secs(10);

/// The settings that a URL names, as arguments of a connection.
pub fn settings(url: &TargetUrl) -> Result<Vec<CString>, DriverError> {
    url.check_options(&SETTINGS)?;
    if url.rest.is_empty() || url.rest == ":memory:" {
        return Err(url.error("expected the path of a folder, for example chdb:data (what is in memory is gone after a command)"));
    }
    let mut settings = Vec::new();
    for key in SETTINGS {
        if let Some(value) = url.parsed_option::<u64>(key, "a whole number, as ClickHouse's setting of this name")? {
            settings.push(c_text(&format!("--{key}={value}")));
        }
    }
    Ok(settings)
}

/// The folder of a target, and the library that opens it.
#[derive(Clone)]
pub struct Store {
    pub library: &'static Library,
    pub folder: Folder,
    settings: Vec<CString>,
}

/// What is open in this process.
struct Open {
    path: PathBuf,
    /// The engine runs as long as there is a connection, and this one is there.
    _keeper: Raw,
    /// Further connections.
    uses: usize,
}

static OPEN: Mutex<Option<Open>> = Mutex::new(None);
static LEFT: Condvar = Condvar::new();
static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

fn lock() -> MutexGuard<'static, Option<Open>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    pub fn of(url: &TargetUrl, library: &'static Library, settings: Vec<CString>) -> Self {
        Self { library, folder: Folder { path: PathBuf::from(&url.rest) }, settings }
    }

    /// A connection to the folder, which becomes the one that is open.
    pub fn connect(&self) -> Result<Arc<Connection>, DriverError> {
        let path = std::path::absolute(self.folder.database()).map_err(|error| self.folder.error(error))?;
        let is_taken = |open: &mut Option<Open>| open.as_ref().is_some_and(|open| open.path != path && open.uses > 0);
        let waited = LEFT.wait_timeout_while(lock(), WAITS_FOR_ANOTHER, is_taken);
        let (mut open, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if is_taken(&mut open) {
            let other = open.as_ref().map_or_else(String::new, |open| open.path.display().to_string());
            return Err(self.unreachable(&format!(
                "chDB opens one folder in a process at a time, and {other} is in use; measure them one after another"
            )));
        }
        if open.as_ref().is_some_and(|open| open.path != path) {
            *open = None;
        }
        if open.is_none() {
            *open = Some(Open { _keeper: self.raw(&path, &[])?, path: path.clone(), uses: 0 });
        }
        let id = format!("sensorbench-{}", CONNECTIONS.fetch_add(1, Ordering::Relaxed));
        let raw = self.raw(&path, &[c_text(&format!("--log_comment={id}"))])?;
        open.as_mut().expect("was just opened").uses += 1;
        Ok(Arc::new(Connection { raw: Some(raw), store: self.clone(), id }))
    }

    /// Closes the folder if nobody uses it. Whether it is closed now.
    pub fn close(&self) -> bool {
        let path = std::path::absolute(self.folder.database()).unwrap_or_else(|_| self.folder.database());
        let mut open = lock();
        match &*open {
            Some(found) if found.path == path && found.uses > 0 => false,
            Some(found) if found.path == path => {
                *open = None;
                true
            }
            _ => true,
        }
    }

    fn raw(&self, path: &Path, arguments: &[CString]) -> Result<Raw, DriverError> {
        let own = [c_text("clickhouse"), c_text(&format!("--path={}", path.display()))];
        let all: Vec<*const c_char> = own.iter().chain(&self.settings).chain(arguments).map(|text| text.as_ptr()).collect();
        let functions = &self.library.functions;
        // SAFETY: the texts live until the call is over.
        let connection = unsafe { (functions.connect)(all.len() as c_int, all.as_ptr()) };
        if connection.is_null() {
            return Err(self.unreachable("chDB does not open it, and does not say why; is it open in another process?"));
        }
        Ok(Raw { connection, functions })
    }

    fn unreachable(&self, problem: &str) -> DriverError {
        DriverError::Connection(format!("{}: {problem}", self.folder.path.display()))
    }
}

/// A connection of the library's.
struct Raw {
    connection: *mut Handle,
    functions: &'static Functions,
}

// SAFETY: the library locks what a connection is about; one thread uses it at a time all the same.
unsafe impl Send for Raw {}
// SAFETY: as above.
unsafe impl Sync for Raw {}

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: it is closed once, and results are gone before.
        unsafe { (self.functions.close_conn)(self.connection) };
    }
}

/// A connection to an open folder. One thread executes statements on it; `interrupt` may come from any.
pub struct Connection {
    /// None when it is closed.
    raw: Option<Raw>,
    store: Store,
    /// What its statements are found by.
    id: String,
}

impl Connection {
    fn raw(&self) -> &Raw {
        self.raw.as_ref().expect("it is closed at its end alone")
    }

    fn handle(&self) -> Handle {
        // SAFETY: the library's connections lead to their handles.
        unsafe { *self.raw().connection }
    }

    /// Makes sensorbench's database the current one.
    pub fn use_database(&self) -> Result<(), DriverError> {
        self.run(&format!("USE {}", name(DATABASE)))
    }

    /// Executes a statement that returns nothing.
    pub fn run(&self, statement: &str) -> Result<(), DriverError> {
        self.query(statement).map(drop)
    }

    /// Appends the rows of a statement, which have these columns.
    pub fn read(&self, statement: &str, columns: &[Column], rows: &mut Rows) -> Result<(), DriverError> {
        let answer = self.query(statement)?;
        let mut reader = Answer::of(columns);
        reader.take(answer.bytes(), rows)?;
        reader.finish(rows)
    }

    fn query(&self, statement: &str) -> Result<Outcome, DriverError> {
        let functions = self.raw().functions;
        // SAFETY: both texts live until the call is over, and have these lengths.
        let result = unsafe {
            (functions.query_n)(
                self.handle(),
                statement.as_ptr().cast(),
                statement.len(),
                ANSWER_FORMAT.as_ptr().cast(),
                ANSWER_FORMAT.len(),
            )
        };
        Outcome { result, functions }.checked()
    }

    /// Writes rows after a statement. They are passed apart from it: after the word FORMAT the library looks for the ends of statements in them.
    pub fn insert(&self, statement: &str, data: &[u8]) -> Result<(), DriverError> {
        let functions = self.raw().functions;
        // SAFETY: as above; the stream is destroyed once, below, after its outcome was taken.
        unsafe {
            let stream = (functions.stream_insert_n)(
                self.handle(),
                statement.as_ptr().cast(),
                statement.len(),
                FORMAT.as_ptr().cast(),
                FORMAT.len(),
            );
            let stream = Stream { stream, functions };
            if let Some(problem) = text((functions.stream_insert_error)(stream.stream)) {
                return Err(DriverError::Statement(problem));
            }
            let appended = (functions.stream_append)(stream.stream, data.as_ptr().cast(), data.len());
            let outcome = Outcome { result: (functions.stream_done)(stream.stream), functions };
            outcome.checked()?;
            if appended == SUCCESS { Ok(()) } else { Err(DriverError::Statement("chDB did not take the rows".to_owned())) }
        }
    }
}

impl Interrupt for Connection {
    /// The engine ends queries for others. Where that fails it is tried again, as long as the query runs.
    fn interrupt(&self) {
        if let Ok(other) = self.store.connect() {
            let _ = other.run(&format!("KILL QUERY WHERE Settings['log_comment'] = '{}' ASYNC", self.id));
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.raw = None;
        if let Some(open) = lock().as_mut() {
            open.uses -= 1;
        }
        LEFT.notify_all();
    }
}

/// Rows that are being written.
struct Stream {
    stream: Handle,
    functions: &'static Functions,
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: it is destroyed once.
        unsafe { (self.functions.destroy_insert_stream)(self.stream) };
    }
}

/// What a statement ended with.
struct Outcome {
    result: Handle,
    functions: &'static Functions,
}

impl Outcome {
    /// Itself, unless it is an error.
    fn checked(self) -> Result<Self, DriverError> {
        if self.result.is_null() {
            return Err(DriverError::Connection("chDB gives no result".to_owned()));
        }
        // SAFETY: the result is there, and the text is copied.
        match unsafe { text((self.functions.result_error)(self.result)) } {
            None => Ok(self),
            Some(message) if message.contains(ENDED) => Err(DriverError::Timeout),
            Some(message) => Err(DriverError::Statement(message)),
        }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the result has this many bytes as long as it is there.
        unsafe {
            match (self.functions.result_length)(self.result) {
                0 => &[],
                length => std::slice::from_raw_parts((self.functions.result_buffer)(self.result), length),
            }
        }
    }
}

impl Drop for Outcome {
    fn drop(&mut self) {
        if !self.result.is_null() {
            // SAFETY: it is destroyed once.
            unsafe { (self.functions.destroy_query_result)(self.result) };
        }
    }
}

/// A text for C. Texts of ours have no zero bytes; a path of a user's ends there.
fn c_text(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).expect("no zero is left")
}
