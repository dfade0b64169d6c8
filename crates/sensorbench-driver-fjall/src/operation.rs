//! Operations in fjall's words: one contiguous range of keys, or one write.

use std::collections::BTreeMap;

use sensorbench_driver::{KeyRange, KeyRangeNames, Operation, OperationPlace, Parameter, SchemaError};
use serde::Deserialize;

use crate::table::{FjallSchema, Table};

/// `[operation.NAME]` of a schema file: `scan` or `put`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    scan: Option<Scan>,
    put: Option<Put>,
}

/// Rows whose key begins with the values of `prefix`, and whose next key column lies in `from`..`to` (`to` excluded), or between
/// `after` and `to` (both excluded).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scan {
    table: String,
    #[serde(default)]
    prefix: Vec<String>,
    from: Option<String>,
    after: Option<String>,
    to: Option<String>,
    /// Largest key first.
    #[serde(default)]
    reverse: bool,
    /// The parameter that says how many rows there are at most.
    limit: Option<String>,
}

/// Writes one row; a row with the same key is replaced, or changed by `merge`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Put {
    table: String,
    /// The parameter for each column. Columns of the value that are not named become null.
    values: BTreeMap<String, String>,
    /// Columns of the value that are not named stay as they are stored. Of the operations of a run, no other write of the row comes
    /// between the reading and the writing.
    #[serde(default)]
    merge: bool,
}

/// An operation made ready: every name is a number.
#[derive(Clone, Debug)]
pub enum Prepared {
    Scan(PreparedScan),
    Put(PreparedPut),
}

#[derive(Clone, Debug)]
pub struct PreparedScan {
    pub table_name: String,
    pub table: Table,
    /// Parameters of the prefix.
    pub prefix: Vec<usize>,
    pub from: Option<usize>,
    pub after: Option<usize>,
    pub to: Option<usize>,
    pub reverse: bool,
    pub limit: Option<usize>,
    /// For each column of the answer, its place in the table.
    pub columns: Vec<usize>,
}

#[derive(Clone, Debug)]
pub struct PreparedPut {
    pub table_name: String,
    pub table: Table,
    /// For each column of the table, the parameter that it is written from.
    pub values: Vec<Option<usize>>,
    /// Whether the others are kept.
    pub merge: bool,
}

impl Prepared {
    pub fn of(schema: &FjallSchema, operation: &Operation) -> Result<Self, SchemaError> {
        let place = OperationPlace::of(operation);
        let statement: Statement = place.statement()?;
        match (statement.scan, statement.put) {
            (Some(scan), None) => scan.prepare(&place, schema).map(Prepared::Scan),
            (None, Some(put)) => put.prepare(&place, schema).map(Prepared::Put),
            _ => Err(place.error("expected either scan or put")),
        }
    }

    pub fn table_name(&self) -> &str {
        match self {
            Prepared::Scan(scan) => &scan.table_name,
            Prepared::Put(put) => &put.table_name,
        }
    }

    pub fn merges(&self) -> bool {
        matches!(self, Prepared::Put(put) if put.merge)
    }
}

impl Scan {
    fn prepare(self, place: &OperationPlace, schema: &FjallSchema) -> Result<PreparedScan, SchemaError> {
        if self.from.is_some() && self.after.is_some() {
            return Err(place.error_at("scan", "expected either from (included) or after (excluded)"));
        }
        let table = place.table(schema, "scan", &self.table)?;
        if self.limit.is_some() && self.prefix.len() == table.key.len() {
            return Err(place.error_at("scan.limit", "a whole key is one row; expected no limit"));
        }
        let (from, after, to, limit) = (self.from.as_deref(), self.after.as_deref(), self.to.as_deref(), self.limit.as_deref());
        let range = place.key_range(&table.key, &KeyRangeNames { prefix: &self.prefix, from, after, to, limit })?;
        let mut columns = Vec::new();
        for column in &place.operation.columns {
            let found = table
                .place(&column.name)
                .filter(|place| table.columns().nth(*place).map(|found| found.value_type) == Some(column.value_type));
            columns.push(found.ok_or_else(|| {
                let message = format!(
                    "table {} has no column {} of type {}, which the operation returns",
                    self.table,
                    column.name,
                    column.value_type.name()
                );
                place.error_at("scan.table", message)
            })?);
        }
        let KeyRange { prefix, from, after, to, limit } = range;
        let (table, table_name, reverse) = (table.clone(), self.table, self.reverse);
        Ok(PreparedScan { table, table_name, prefix, from, after, to, reverse, limit, columns })
    }
}

impl Put {
    fn prepare(self, place: &OperationPlace, schema: &FjallSchema) -> Result<PreparedPut, SchemaError> {
        let table = place.table(schema, "put", &self.table)?;
        if let Some(unknown) = self.values.keys().find(|name| table.place(name).is_none()) {
            return Err(place.error_at(&format!("put.values.{unknown}"), format!("table {} has no column {unknown}", self.table)));
        }
        if let Some(missing) = table.key.iter().find(|column| !self.values.contains_key(&column.name)) {
            return Err(place.error_at("put.values", format!("the key column {} is missing", missing.name)));
        }
        let value = |column: &Parameter| {
            let parameter = self.values.get(&column.name);
            parameter
                .map(|parameter| place.parameter(&format!("put.values.{}", column.name), parameter, Some(column.value_type)))
                .transpose()
        };
        let values = table.columns().map(value).collect::<Result<_, _>>()?;
        Ok(PreparedPut { table: table.clone(), table_name: self.table, values, merge: self.merge })
    }
}
