//! A target: a database at an address.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;
use sensorbench_driver::{
    Driver, DriverError, Intent, Marker, Operation, Owner, RowRef, Schema, StatementTemplate, TargetUrl, ValueRef, WriteQuestion,
};
use sensorbench_engine::{FreshnessPlan, Plan, ReplayPlan, TraceReader};
use serde_json::json;

use crate::arrow_tables::parameter_tables;
use crate::errors::{UsageError, driver_error, parsed, run_error, written};
use crate::freshness::Freshness;
use crate::load::{Load, SharedRows};
use crate::prepared::Prepared;
use crate::registry::database;
use crate::run::Run;

#[pyclass(frozen, module = "sensorbench._engine")]
pub struct Target {
    driver: Arc<dyn Driver>,
    url: TargetUrl,
    /// The URL as it was given, with secrets.
    address: String,
    /// The schema that it was last created or attached with.
    schema: Mutex<Option<String>>,
}

impl Target {
    fn keep_schema(&self, schema: &str) {
        *self.schema.lock().expect("nothing panics under this lock") = Some(schema.to_owned());
    }

    fn marker_of(&self, python: Python) -> PyResult<Option<Marker>> {
        self.call(python, |driver| driver.guard(&nobody()).marker())
    }

    /// Calls the driver without holding up Python's other threads.
    fn call<T: Send>(&self, python: Python, call: impl FnOnce(&dyn Driver) -> Result<T, DriverError> + Send) -> PyResult<T> {
        python.detach(|| call(self.driver.as_ref())).map_err(driver_error)
    }
}

#[pymethods]
impl Target {
    #[new]
    fn new(python: Python, url: &str) -> PyResult<Self> {
        let address = url.to_owned();
        let url = TargetUrl::parse(url).map_err(driver_error)?;
        let database = database(&url.scheme)?;
        let driver = python.detach(|| database.open(&url)).map_err(driver_error)?;
        Ok(Self { driver: driver.into(), url, address, schema: Mutex::default() })
    }

    /// The URL without user info and secrets.
    #[getter]
    fn url(&self) -> String {
        self.url.to_string()
    }

    fn describe(&self, python: Python) -> PyResult<String> {
        self.call(python, |driver| driver.describe()).map(|description| written(&description))
    }

    #[pyo3(signature = (*, intent, owner))]
    fn check(&self, python: Python, intent: &str, owner: &str) -> PyResult<()> {
        let (intent, owner): (Intent, Owner) = (word(intent)?, parsed(owner)?);
        self.call(python, |driver| driver.guard(&owner).check(intent))
    }

    #[pyo3(signature = (schema, fingerprint, *, intent, owner))]
    fn create(&self, python: Python, schema: &str, fingerprint: &str, intent: &str, owner: &str) -> PyResult<()> {
        let (tables, intent, owner): (Schema, Intent, Owner) = (parsed(schema)?, word(intent)?, parsed(owner)?);
        self.call(python, |driver| driver.guard(&owner).create(&tables, fingerprint, intent))?;
        self.keep_schema(schema);
        Ok(())
    }

    #[pyo3(signature = (schema, *, intent, owner))]
    fn attach(&self, python: Python, schema: &str, intent: &str, owner: &str) -> PyResult<()> {
        let (tables, intent, owner): (Schema, Intent, Owner) = (parsed(schema)?, word(intent)?, parsed(owner)?);
        self.call(python, |driver| driver.guard(&owner).attach(&tables, intent))?;
        self.keep_schema(schema);
        Ok(())
    }

    /// What another process needs to take part: the URL with its secrets, and the schema that it was last created or attached with.
    fn admission(&self) -> PyResult<(String, String)> {
        let schema = self.schema.lock().expect("nothing panics under this lock").clone();
        let schema = schema.ok_or_else(|| UsageError::new_err("nothing was created or attached to take part in"))?;
        Ok((self.address.clone(), schema))
    }

    /// Uses tables by the admission of a process that was allowed to create or attach them.
    fn take_part(&self, python: Python, schema: &str) -> PyResult<()> {
        let tables: Schema = parsed(schema)?;
        self.call(python, |driver| driver.attach(&tables))
    }

    fn fingerprint(&self, python: Python) -> PyResult<Option<String>> {
        Ok(self.marker_of(python)?.map(|marker| marker.fingerprint))
    }

    fn set_fingerprint(&self, python: Python, fingerprint: &str) -> PyResult<()> {
        self.call(python, |driver| driver.guard(&nobody()).set_fingerprint(fingerprint))
    }

    /// The marker as JSON.
    fn marker(&self, python: Python) -> PyResult<Option<String>> {
        Ok(self.marker_of(python)?.as_ref().map(written))
    }

    fn namespaces(&self, python: Python) -> PyResult<Vec<String>> {
        self.call(python, |driver| driver.namespaces())
    }

    #[pyo3(signature = (table, rows, *, with_targets = Vec::new(), batch_rows = None))]
    fn load(
        &self,
        table: String,
        rows: PyArrowType<RecordBatchStreamReader>,
        with_targets: Vec<PyRef<Self>>,
        batch_rows: Option<usize>,
    ) -> Load {
        let rows: Box<dyn RecordBatchReader + Send> = Box::new(rows.0);
        if with_targets.is_empty() && batch_rows.is_none() {
            return Load::start(self.driver.clone(), move |driver, progress| driver.load(&table, rows, progress));
        }
        let others: Vec<_> = with_targets.iter().map(|target| target.driver.clone()).collect();
        let rows = SharedRows::new(rows, batch_rows.unwrap_or(usize::MAX).max(1));
        Load::start(self.driver.clone(), move |driver, progress| {
            let drivers: Vec<_> = std::iter::once(driver).chain(others.iter().map(|other| other.as_ref())).collect();
            rows.load(&drivers, &table, progress)
        })
    }

    fn write_load_file(&self, table: String, rows: PyArrowType<RecordBatchStreamReader>, file: PathBuf) -> Load {
        let rows: Box<dyn RecordBatchReader + Send> = Box::new(rows.0);
        Load::start(self.driver.clone(), move |driver, progress| driver.write_load_file(&table, rows, &file, progress))
    }

    fn settle(&self, python: Python) -> PyResult<()> {
        self.call(python, |driver| driver.settle())
    }

    fn show(&self, python: Python) -> PyResult<()> {
        self.call(python, |driver| driver.show())
    }

    #[pyo3(signature = (table, missing=BTreeMap::new()))]
    fn count(&self, python: Python, table: &str, missing: BTreeMap<String, u64>) -> PyResult<u64> {
        self.call(python, |driver| driver.count_incomplete(table, &missing))
    }

    fn size(&self, python: Python) -> PyResult<String> {
        self.call(python, |driver| driver.size()).map(|size| written(&size))
    }

    fn status(&self, python: Python) -> PyResult<String> {
        self.call(python, |driver| driver.status()).map(|status| written(&status))
    }

    /// Rows as JSON: times in µs, bytes as numbers.
    fn execute_once(
        &self,
        python: Python,
        operation: &str,
        parameters: PyArrowType<RecordBatchStreamReader>,
    ) -> PyResult<String> {
        let operation: Operation = parsed(operation)?;
        let tables = parameter_tables(vec![parameters])?;
        let values = tables.first().filter(|table| table.rows() > 0).map(|table| table.row(0)).unwrap_or_default();
        let rows = self.call(python, |driver| sensorbench_engine::execute_once(driver, operation, values))?;
        let as_json = |row: RowRef| (0..row.columns()).map(|column| value_as_json(row.value(column))).collect::<Vec<_>>();
        Ok(written(&rows.iter().map(as_json).collect::<Vec<_>>()))
    }

    #[pyo3(signature = (*, owner))]
    fn remove(&self, python: Python, owner: &str) -> PyResult<()> {
        let owner: Owner = parsed(owner)?;
        self.call(python, |driver| driver.guard(&owner).remove())
    }

    fn clean(&self, python: Python) -> PyResult<()> {
        self.call(python, |driver| driver.guard(&nobody()).clean())
    }

    /// Starts the replay of a trace: `lengths` has for each copy its sessions with their numbers of statements, `readers` its rows.
    fn replay(
        &self,
        python: Python,
        plan: &str,
        lengths: Vec<Vec<(i32, u32)>>,
        readers: Vec<PyArrowType<RecordBatchStreamReader>>,
    ) -> PyResult<Run> {
        let plan: ReplayPlan = parsed(plan)?;
        let readers: Vec<TraceReader> = readers.into_iter().map(|reader| Box::new(reader.0) as TraceReader).collect();
        let lengths = lengths.into_iter().map(|of_copy| of_copy.into_iter().collect()).collect();
        python
            .detach(|| sensorbench_engine::Run::replay(self.driver.as_ref(), plan, lengths, readers))
            .map(Run::new)
            .map_err(run_error)
    }

    /// Whether templates write only to the namespace, or nowhere (JSON): those that write, and those that seem to read.
    #[pyo3(signature = (templates, writes, reads, *, read_only))]
    fn check_writes(
        &self,
        python: Python,
        templates: &str,
        writes: Vec<usize>,
        reads: Vec<usize>,
        read_only: bool,
    ) -> PyResult<String> {
        let templates: Vec<StatementTemplate> = parsed(templates)?;
        let question = WriteQuestion { templates: &templates, writes: &writes, reads: &reads, read_only };
        self.call(python, |driver| driver.check_writes(question)).map(|checks| written(&checks))
    }

    fn prepare(&self, python: Python, plan: &str, tables: Vec<PyArrowType<RecordBatchStreamReader>>) -> PyResult<Prepared> {
        let plan: Plan = parsed(plan)?;
        let tables = parameter_tables(tables)?;
        python
            .detach(|| sensorbench_engine::Prepared::connect(self.driver.as_ref(), plan, &tables))
            .map(Prepared::new)
            .map_err(run_error)
    }

    /// Starts writing and watching markers.
    fn watch_freshness(
        &self,
        python: Python,
        plan: &str,
        tables: Vec<PyArrowType<RecordBatchStreamReader>>,
    ) -> PyResult<Freshness> {
        let plan: FreshnessPlan = parsed(plan)?;
        let tables = parameter_tables(tables)?;
        python
            .detach(|| sensorbench_engine::Freshness::start(self.driver.as_ref(), plan, &tables))
            .map(Freshness::new)
            .map_err(run_error)
    }

    fn run(&self, python: Python, plan: &str, tables: Vec<PyArrowType<RecordBatchStreamReader>>) -> PyResult<Run> {
        let plan: Plan = parsed(plan)?;
        let tables = parameter_tables(tables)?;
        python.detach(|| sensorbench_engine::Run::start(self.driver.as_ref(), plan, &tables)).map(Run::new).map_err(run_error)
    }
}

/// Whoever asks or tidies up without a results folder: no namespace belongs to it.
fn nobody() -> Owner {
    Owner { id: String::new(), folder: String::new() }
}

/// A word of a closed set, which Python writes without quotes.
fn word<T: serde::de::DeserializeOwned>(word: &str) -> PyResult<T> {
    parsed(&written(&word))
}

fn value_as_json(value: ValueRef) -> serde_json::Value {
    match value {
        ValueRef::Null => serde_json::Value::Null,
        ValueRef::Boolean(value) => json!(value),
        ValueRef::Integer(value) | ValueRef::Timestamp(value) => json!(value),
        ValueRef::Double(value) => json!(value),
        ValueRef::Text(value) => json!(value),
        ValueRef::Bytes(value) => json!(value),
    }
}
