//! chDB's library, which the lab gets from its npm package when it is first needed.

use std::path::PathBuf;

use pyo3::prelude::*;

/// Where the library is. It is not loaded here.
pub fn find() -> Result<PathBuf, String> {
    let find = |python: Python| python.import("sensorbench.lab.databases.chdb")?.call_method0("library")?.extract();
    Python::attach(|python| find(python).map_err(|error: PyErr| error.value(python).to_string()))
}
