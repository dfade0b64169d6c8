//! Operations in fjall's words: one contiguous range of keys, or one write.

use std::collections::BTreeMap;

use sensorbench_driver::{Operation, SchemaError, Type, parse_part};
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
        let path = format!("operation.{}", operation.name);
        let statement: Statement = parse_part(&path, &operation.statement)?;
        let place = Place { path: &path, operation, schema };
        match (statement.scan, statement.put) {
            (Some(scan), None) => place.scan(scan).map(Prepared::Scan),
            (None, Some(put)) => place.put(put).map(Prepared::Put),
            _ => Err(SchemaError::at(path, "expected either scan or put")),
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

/// Where in the file an operation stands, for its errors.
struct Place<'a> {
    path: &'a str,
    operation: &'a Operation,
    schema: &'a FjallSchema,
}

impl Place<'_> {
    fn scan(&self, scan: Scan) -> Result<PreparedScan, SchemaError> {
        if scan.from.is_some() && scan.after.is_some() {
            return Err(SchemaError::at(format!("{}.scan", self.path), "expected either from (included) or after (excluded)"));
        }
        let table = self.table("scan", &scan.table)?;
        if scan.limit.is_some() && scan.prefix.len() == table.key.len() {
            return Err(SchemaError::at(format!("{}.scan.limit", self.path), "a whole key is one row; expected no limit"));
        }
        let key_type = |place: usize| table.key.get(place).map(|column| column.value_type);
        let mut prefix = Vec::new();
        for (number, parameter) in scan.prefix.iter().enumerate() {
            prefix.push(self.parameter(&format!("scan.prefix[{number}]"), parameter, key_type(number))?);
        }
        let bound = |key: &str, parameter: &Option<String>| {
            let next_type = key_type(scan.prefix.len());
            parameter.as_ref().map(|parameter| self.parameter(&format!("scan.{key}"), parameter, next_type)).transpose()
        };
        let (from, after, to) = (bound("from", &scan.from)?, bound("after", &scan.after)?, bound("to", &scan.to)?);
        let limit = scan.limit.as_ref().map(|limit| self.parameter("scan.limit", limit, Some(Type::Integer))).transpose()?;
        let mut columns = Vec::new();
        for column in &self.operation.columns {
            let place = table
                .place(&column.name)
                .filter(|place| table.columns().nth(*place).map(|found| found.value_type) == Some(column.value_type));
            columns.push(place.ok_or_else(|| {
                let message = format!(
                    "table {} has no column {} of type {}, which the operation returns",
                    scan.table,
                    column.name,
                    column.value_type.name()
                );
                SchemaError::at(format!("{}.scan.table", self.path), message)
            })?);
        }
        let (table, table_name, reverse) = (table.clone(), scan.table, scan.reverse);
        Ok(PreparedScan { table, table_name, prefix, from, after, to, reverse, limit, columns })
    }

    fn put(&self, put: Put) -> Result<PreparedPut, SchemaError> {
        let table = self.table("put", &put.table)?;
        if let Some(unknown) = put.values.keys().find(|name| table.place(name).is_none()) {
            return Err(SchemaError::at(
                format!("{}.put.values.{unknown}", self.path),
                format!("table {} has no column {unknown}", put.table),
            ));
        }
        if let Some(missing) = table.key.iter().find(|column| !put.values.contains_key(&column.name)) {
            return Err(SchemaError::at(
                format!("{}.put.values", self.path),
                format!("the key column {} is missing", missing.name),
            ));
        }
        let value = |column: &sensorbench_driver::Parameter| {
            let parameter = put.values.get(&column.name);
            parameter
                .map(|parameter| self.parameter(&format!("put.values.{}", column.name), parameter, Some(column.value_type)))
                .transpose()
        };
        let values = table.columns().map(value).collect::<Result<_, _>>()?;
        Ok(PreparedPut { table: table.clone(), table_name: put.table, values, merge: put.merge })
    }

    fn table(&self, statement: &str, name: &str) -> Result<&Table, SchemaError> {
        self.schema.table(name).map_err(|error| SchemaError::at(format!("{}.{statement}.table", self.path), error.message))
    }

    /// The number of the parameter written as `:name`, which must have the type of the column it meets, if there is one.
    fn parameter(&self, key: &str, written: &str, expected: Option<Type>) -> Result<usize, SchemaError> {
        let error = |message: String| SchemaError::at(format!("{}.{key}", self.path), message);
        let name =
            written.strip_prefix(':').ok_or_else(|| error(format!("{written:?}: expected a parameter, written as :name")))?;
        let number = self.operation.require_parameter(name).map_err(|inner| error(inner.message))?;
        let found = self.operation.parameters[number].value_type;
        match expected {
            Some(expected) if expected == found => Ok(number),
            Some(expected) => Err(error(format!("parameter :{name} has type {}, expected {}", found.name(), expected.name()))),
            None => Err(error(format!("the key has no column for parameter :{name}"))),
        }
    }
}
