//! DuckDB's library for tests and benchmarks, which run in no Python.

use std::path::PathBuf;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LAZY};
use sensorbench_driver_duckdb::DuckdbDatabase;

/// The driver with the library that the environment names: `SENSORBENCH_TEST_DUCKDB` is DuckDB's extension of Python, and
/// `SENSORBENCH_TEST_PYTHON` the library of the Python that it is for, whose symbols it wants.
pub const DUCKDB: DuckdbDatabase = DuckdbDatabase { find_library };

fn find_library() -> Result<PathBuf, String> {
    let place = |name: &str| std::env::var_os(name).map(PathBuf::from).ok_or_else(|| format!("{name} is not set"));
    // SAFETY: the library of Python does nothing when it is loaded.
    let python = unsafe { Library::open(Some(place("SENSORBENCH_TEST_PYTHON")?), RTLD_LAZY | RTLD_GLOBAL) };
    std::mem::forget(python.map_err(|error| format!("{error:?}"))?);
    place("SENSORBENCH_TEST_DUCKDB")
}
