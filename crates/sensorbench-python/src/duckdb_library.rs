//! DuckDB's library: the extension of its Python package, which this package depends on.

use std::path::PathBuf;

use pyo3::prelude::*;

/// Where the library is. It is not loaded here, and loading it in this process runs no Python.
pub fn find() -> Result<PathBuf, String> {
    let find = |python: Python| -> PyResult<PathBuf> {
        let spec = python.import("importlib.util")?.call_method1("find_spec", ("_duckdb",))?;
        spec.getattr("origin")?.extract()
    };
    Python::attach(find).map_err(|error| format!("DuckDB's Python package is not there (pip install duckdb): {error}"))
}
