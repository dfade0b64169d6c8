//! Control of a target. Each call makes a connection of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatchReader;
use sensorbench_driver::{
    Administration, Admission, Described, Description, Driver, DriverError, KeptSchema, Marker, Occupant, Operation, Progress,
    Schema, Sessions, Size,
};

use crate::bindings::TTHBaseServiceSyncClient;
use crate::load;
use crate::namespace::Namespace;
use crate::operation::Prepared;
use crate::pool::{Pool, any_gateway};
use crate::requests;
use crate::scanning::each_page;
use crate::session::Connector;
use crate::table::HbaseSchema;
use crate::target::Target;
use crate::wire::Gateway;

/// Rows of a table with a cell for each reading that are counted at a time, at most.
const WIDE_PAGE_ROWS: i32 = 100;
/// Why nobody knows the size of tables.
const NO_ADMIN: &str = "gateways do not report it; the option admin= names who does";

pub struct HbaseDriver {
    target: Target,
    schema: KeptSchema<HbaseSchema>,
}

impl HbaseDriver {
    pub fn new(target: Target) -> Self {
        Self { target, schema: KeptSchema::default() }
    }

    fn gateway(&self) -> Result<Gateway, DriverError> {
        any_gateway(&self.target, 0).map(|(_, gateway)| gateway)
    }

    fn schema(&self) -> Result<HbaseSchema, DriverError> {
        self.schema.get(&self.target.shown)
    }

    fn admin(&self) -> Option<Administration<'_>> {
        self.target.admin.as_ref().map(Administration::at)
    }

    fn with_namespace<T>(&self, work: impl FnOnce(Namespace) -> Result<T, DriverError>) -> Result<T, DriverError> {
        work(Namespace { target: &self.target, gateway: &mut self.gateway()? })
    }

    /// How the cluster is used.
    fn settings(&self) -> BTreeMap<String, String> {
        let target = &self.target;
        let settings = [
            ("gateways", target.shown.clone()),
            ("durability", target.durability.name.to_owned()),
            ("load_durability", target.load_durability.name.to_owned()),
            ("page", target.page.to_string()),
            ("scanner_caching", target.caching.to_string()),
            ("transport", if target.framed { "framed" } else { "buffered" }.to_owned()),
        ];
        settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

impl Driver for HbaseDriver {
    fn describe(&self) -> Result<Description, DriverError> {
        // A cluster that does not answer is reported here, not later.
        self.gateway()?.call(|calls| calls.list_namespaces())?;
        let mut settings = self.settings();
        let Some(admin) = self.admin() else {
            settings
                .insert("settling".to_owned(), "tables are neither flushed nor compacted after loading: no admin=".to_owned());
            return Ok(Description { database: "HBase".to_owned(), version: "not reported (no admin=)".to_owned(), settings });
        };
        let Described { version, settings: reported } = admin.describe()?;
        settings.extend(reported);
        Ok(Description { database: "HBase".to_owned(), version, settings })
    }

    fn namespace(&self) -> String {
        format!("the cluster at {}, namespace {}", self.target.shown, self.target.namespace)
    }

    fn occupant(&self) -> Result<Occupant, DriverError> {
        self.with_namespace(|mut namespace| namespace.occupant())
    }

    fn create(&self, schema: &Schema, marker: &Marker, admission: &Admission) -> Result<(), DriverError> {
        let parsed = HbaseSchema::of(schema)?;
        self.with_namespace(|mut namespace| namespace.create(&parsed, marker, admission))?;
        self.schema.keep(parsed);
        Ok(())
    }

    fn attach(&self, schema: &Schema) -> Result<(), DriverError> {
        let parsed = HbaseSchema::of(schema)?;
        let there = self.with_namespace(|mut namespace| namespace.tables())?;
        if let Some(missing) = parsed.tables.keys().find(|name| !there.contains(name)) {
            let Target { shown, namespace, .. } = &self.target;
            let message = format!("the cluster at {shown}: there is no table {namespace}:{missing}; load it first");
            return Err(DriverError::Namespace(message));
        }
        self.schema.keep(parsed);
        Ok(())
    }

    fn write_marker(&self, marker: &Marker, _: &Admission) -> Result<(), DriverError> {
        self.with_namespace(|mut namespace| namespace.write_marker(marker))
    }

    fn remove(&self, _: &Admission) -> Result<(), DriverError> {
        self.with_namespace(|mut namespace| namespace.remove())
    }

    fn namespaces(&self) -> Result<Vec<String>, DriverError> {
        self.with_namespace(|mut namespace| namespace.all())
    }

    fn load(&self, table: &str, rows: Box<dyn RecordBatchReader + Send>, progress: &Progress) -> Result<(), DriverError> {
        let schema = self.schema()?;
        let columns = schema.table(table).map_err(|error| DriverError::Data(error.message))?;
        load::load(&self.target, table, columns, rows, progress)
    }

    /// Writes memstores to files and merges the files of each region into one. Gateways cannot ask for that.
    fn settle(&self) -> Result<(), DriverError> {
        let Some(admin) = self.admin() else { return Ok(()) };
        let tables: Vec<String> = self.schema()?.tables.keys().map(|name| format!("{}:{name}", self.target.namespace)).collect();
        if tables.is_empty() { Ok(()) } else { admin.compact(&tables) }
    }

    /// Rows are counted at the client, which gets one cell of each, without its value.
    fn count(&self, table: &str) -> Result<u64, DriverError> {
        let schema = self.schema()?;
        let known = schema.table(table).map_err(|error| DriverError::Data(error.message))?;
        let is_cell_each = known.offset().is_some();
        let page = if is_cell_each { self.target.page.min(WIDE_PAGE_ROWS) } else { self.target.page };
        let mut count = 0;
        each_page(&mut self.gateway()?, &self.target.table(table), requests::counting_scan(known, page), page, |rows| {
            count += if is_cell_each { rows.iter().map(|row| row.column_values.len()).sum() } else { rows.len() } as u64;
            Ok(())
        })?;
        Ok(count)
    }

    fn size(&self) -> Result<Size, DriverError> {
        let Some(admin) = self.admin() else { return Ok(Size { unknown: Some(NO_ADMIN.to_owned()), ..Size::default() }) };
        let prefix = format!("{}:", self.target.namespace);
        let bare = |name: String| name.strip_prefix(&prefix).map_or(name.clone(), str::to_owned);
        let parts: BTreeMap<String, u64> =
            admin.size(&self.target.namespace)?.into_iter().map(|(name, bytes)| (bare(name), bytes)).collect();
        Ok(Size { total_bytes: parts.values().sum(), parts, ..Size::default() })
    }

    /// What each region server counts, by `HOST.NAME`.
    fn status(&self) -> Result<BTreeMap<String, f64>, DriverError> {
        let Some(admin) = self.admin() else { return Ok(BTreeMap::new()) };
        let named = |(host, status): (String, BTreeMap<String, f64>)| {
            status.into_iter().map(move |(name, value)| (format!("{host}.{name}"), value))
        };
        Ok(admin.status()?.into_iter().flat_map(named).collect())
    }

    fn sessions(&self, operations: &[Operation]) -> Result<Sessions, DriverError> {
        let schema = self.schema()?;
        let operations = operations.iter().map(|operation| Prepared::of(&schema, operation)).collect::<Result<Vec<_>, _>>()?;
        let connector = Connector { pool: Pool::new(self.target.clone()), operations: Arc::new(operations) };
        Ok(Sessions::Blocking(Box::new(connector)))
    }
}
