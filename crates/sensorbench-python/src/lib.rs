//! The engine as the Python module `sensorbench._engine`. Only conversion happens here: what a function does is said in
//! the crate that it calls, what it takes and gives in `python/sensorbench/_engine.pyi`.

mod arrow_tables;
#[cfg(feature = "chdb")]
mod chdb_library;
mod digest;
#[cfg(feature = "duckdb")]
mod duckdb_library;
mod encodings;
mod errors;
mod freshness;
mod generate;
mod interval_log;
mod load;
mod merge;
mod plan;
mod prepared;
mod registry;
mod run;
mod target;
mod toml_lines;

use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pymodule]
fn _engine(module: &Bound<PyModule>) -> PyResult<()> {
    errors::add_to(module)?;
    module.add_class::<target::Target>()?;
    module.add_class::<load::Load>()?;
    module.add_class::<run::Run>()?;
    module.add_class::<prepared::Prepared>()?;
    module.add_class::<freshness::Freshness>()?;
    module.add_class::<merge::Merge>()?;
    module.add_class::<generate::Generator>()?;
    for function in [
        wrap_pyfunction!(registry::databases, module)?,
        wrap_pyfunction!(registry::check_schema, module)?,
        wrap_pyfunction!(registry::no_op_schema, module)?,
        wrap_pyfunction!(generate::generate_building, module)?,
        wrap_pyfunction!(generate::generate_fitted, module)?,
        wrap_pyfunction!(generate::generate_machine_log, module)?,
        wrap_pyfunction!(generate::generate_articles, module)?,
        wrap_pyfunction!(generate::generate_walks, module)?,
        wrap_pyfunction!(generate::generate_hosts, module)?,
        wrap_pyfunction!(generate::generate_telemetry, module)?,
        wrap_pyfunction!(generate::generate_stations, module)?,
        wrap_pyfunction!(generate::generate_devices, module)?,
        wrap_pyfunction!(generate::generate_trucks, module)?,
        wrap_pyfunction!(generate::batch_rows, module)?,
        wrap_pyfunction!(encodings::batch_cost, module)?,
        wrap_pyfunction!(digest::digest, module)?,
        wrap_pyfunction!(digest::row_hashes, module)?,
        wrap_pyfunction!(plan::statement_operations, module)?,
        wrap_pyfunction!(plan::parameters, module)?,
        wrap_pyfunction!(interval_log::read_interval_log, module)?,
        wrap_pyfunction!(interval_log::summed_interval_log, module)?,
        wrap_pyfunction!(toml_lines::toml_lines, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
