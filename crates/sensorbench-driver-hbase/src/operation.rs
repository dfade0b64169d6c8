//! Operations in HBase's words: rows in a range of keys, rows by their keys, or the writing of one row.

use std::collections::BTreeMap;

use sensorbench_driver::{KeyRange, KeyRangeNames, KeyedTable, Operation, OperationPlace, Parameter, SchemaError, Type};
use serde::Deserialize;

use crate::filter::Comparison;
use crate::table::{HbaseSchema, Table};

/// `[operation.NAME]` of a schema file: `scan`, `get` or `put`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    scan: Option<Scan>,
    get: Option<Get>,
    put: Option<Put>,
}

/// Rows whose key begins with the values of `prefix`, and whose next key column lies in `from`..`to` (`to` excluded), or between
/// `after` and `to` (both excluded). Region servers leave out rows that `where` does not let through.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scan {
    table: String,
    #[serde(default)]
    prefix: Vec<String>,
    from: Option<String>,
    after: Option<String>,
    to: Option<String>,
    /// The parameter that says how many rows there are at most.
    limit: Option<String>,
    /// Bounds of columns of the value.
    #[serde(default, rename = "where")]
    bounds: BTreeMap<String, Bounds>,
    #[serde(default)]
    narrow: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    from: Option<String>,
    after: Option<String>,
    to: Option<String>,
}

/// The row with this key. Where the time is kept apart: the row of each period that `from`..`to` meets (`to` excluded), without
/// what is outside; or the one reading that is `at` a time.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Get {
    table: String,
    key: Vec<String>,
    from: Option<String>,
    to: Option<String>,
    at: Option<String>,
    /// Only the cells of columns that the operation returns are read; a row without any of them is not found.
    #[serde(default)]
    narrow: bool,
}

/// Writes one row. Columns that are not named stay as they are stored; those whose parameter is null are deleted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Put {
    table: String,
    /// The parameter for each column.
    values: BTreeMap<String, String>,
}

/// An operation made ready: every name is a number.
#[derive(Clone, Debug)]
pub enum Prepared {
    Scan(PreparedScan),
    Get(PreparedGet),
    Put(PreparedPut),
}

/// Where the value of a column of an answer comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
    /// A parameter, which the row has in its key.
    Parameter(usize),
    /// A column of the row key.
    Key(usize),
    /// The time that is kept apart.
    Time,
    /// A column of the value.
    Column(usize),
    /// A column of the value that holds integers, as a double.
    Number(usize),
}

/// What is read of rows.
#[derive(Clone, Debug)]
pub struct Reading {
    pub table_name: String,
    pub table: Table,
    /// For each column of the answer, where it comes from.
    pub sources: Vec<Source>,
    /// Whether cells of other columns are left out.
    pub narrow: bool,
}

#[derive(Clone, Debug)]
pub struct PreparedScan {
    pub reading: Reading,
    /// Parameters of the prefix.
    pub prefix: Vec<usize>,
    pub from: Option<usize>,
    pub after: Option<usize>,
    pub to: Option<usize>,
    pub limit: Option<usize>,
    /// Columns of the value, how their cells must compare, and with which parameter.
    pub bounds: Vec<(usize, Comparison, usize)>,
}

#[derive(Clone, Debug)]
pub struct PreparedGet {
    pub reading: Reading,
    /// Parameters of the key.
    pub key: Vec<usize>,
    pub times: Times,
}

/// Which times a get is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Times {
    /// The row has no time apart.
    None,
    /// From one parameter to another, which is excluded.
    Range(usize, usize),
    /// That of a parameter.
    At(usize),
}

#[derive(Clone, Debug)]
pub struct PreparedPut {
    pub table_name: String,
    pub table: Table,
    /// The parameter of each key column that is given.
    pub key: Vec<usize>,
    /// The parameter of the time that is kept apart.
    pub time: Option<usize>,
    /// Columns of the value that are written, and from which parameter.
    pub columns: Vec<(usize, usize)>,
}

impl Prepared {
    pub fn of(schema: &HbaseSchema, operation: &Operation) -> Result<Self, SchemaError> {
        let place = Place { inner: OperationPlace::of(operation), schema };
        let statement: Statement = place.inner.statement()?;
        match (statement.scan, statement.get, statement.put) {
            (Some(scan), None, None) => place.scan(scan).map(Prepared::Scan),
            (None, Some(get), None) => place.get(get).map(Prepared::Get),
            (None, None, Some(put)) => place.put(put).map(Prepared::Put),
            _ => Err(place.inner.error("expected one of scan, get, put")),
        }
    }
}

/// An operation, where it stands, and the tables that it may be about.
struct Place<'a> {
    inner: OperationPlace<'a>,
    schema: &'a HbaseSchema,
}

impl Place<'_> {
    fn scan(&self, scan: Scan) -> Result<PreparedScan, SchemaError> {
        let table = self.table("scan", &scan.table)?;
        if table.offset().is_some() {
            return Err(self.error("scan.table", format!("the time of table {} is kept apart; expected get", scan.table)));
        }
        if scan.from.is_some() && scan.after.is_some() {
            return Err(self.error("scan", "expected either from (included) or after (excluded)"));
        }
        if scan.prefix.len() == table.key.len() {
            return Err(self.error("scan.prefix", "a whole key is one row; expected get"));
        }
        let (from, after, to, limit) = (scan.from.as_deref(), scan.after.as_deref(), scan.to.as_deref(), scan.limit.as_deref());
        let names = KeyRangeNames { prefix: &scan.prefix, from, after, to, limit };
        let KeyRange { prefix, from, after, to, limit } = self.inner.key_range(&table.key, &names)?;
        let bounds = self.bounds(table, &scan.bounds)?;
        if scan.narrow && !bounds.is_empty() {
            return Err(self.error("scan.narrow", "a column that where looks at must be read; expected no narrow"));
        }
        let reading = self.reading("scan", scan.table, table, &prefix, scan.narrow)?;
        Ok(PreparedScan { reading, prefix, from, after, to, limit, bounds })
    }

    fn bounds(&self, table: &Table, bounds: &BTreeMap<String, Bounds>) -> Result<Vec<(usize, Comparison, usize)>, SchemaError> {
        let mut prepared = Vec::new();
        for (name, given) in bounds {
            let key = format!("scan.where.{name}");
            let column = table.columns.iter().position(|column| column.name == *name);
            let column = column.ok_or_else(|| self.error(&key, format!("the value has no column {name}")))?;
            let comparisons = [
                ("from", &given.from, Comparison::GreaterOrEqual),
                ("after", &given.after, Comparison::Greater),
                ("to", &given.to, Comparison::Less),
            ];
            for (word, parameter, comparison) in comparisons {
                if let Some(parameter) = parameter {
                    let number = self.parameter(&format!("{key}.{word}"), parameter, Some(table.columns[column].value_type))?;
                    prepared.push((column, comparison, number));
                }
            }
        }
        Ok(prepared)
    }

    fn get(&self, get: Get) -> Result<PreparedGet, SchemaError> {
        let table = self.table("get", &get.table)?;
        let given: Vec<&Parameter> = table.given_key().collect();
        if get.key.len() != given.len() {
            let names: Vec<_> = given.iter().map(|column| column.name.as_str()).collect();
            return Err(self.error("get.key", format!("expected a parameter for each of {}", names.join(", "))));
        }
        let mut key = Vec::new();
        for (number, (column, parameter)) in given.iter().zip(&get.key).enumerate() {
            key.push(self.parameter(&format!("get.key[{number}]"), parameter, Some(column.value_type))?);
        }
        let time = |word: &str, parameter: &str| self.parameter(&format!("get.{word}"), parameter, Some(Type::Timestamp));
        let times = match (table.offset(), &get.from, &get.to, &get.at) {
            (None, None, None, None) => Times::None,
            (Some(_), Some(from), Some(to), None) => Times::Range(time("from", from)?, time("to", to)?),
            (Some(_), None, None, Some(at)) => Times::At(time("at", at)?),
            (None, ..) => return Err(self.error("get", "the table keeps no time apart; expected neither from, to nor at")),
            _ => return Err(self.error("get", "expected from and to, or at")),
        };
        if get.narrow && table.offset().is_some() {
            return Err(self.error("get.narrow", "cells are found by their times; expected no narrow"));
        }
        // The places of parameters among columns of the key are those of given columns.
        let reading = self.reading("get", get.table, table, &[], get.narrow)?;
        let reading = with_parameters(reading, &key, times);
        Ok(PreparedGet { reading, key, times })
    }

    fn reading(
        &self,
        statement: &str,
        table_name: String,
        table: &Table,
        prefix: &[usize],
        narrow: bool,
    ) -> Result<Reading, SchemaError> {
        let mut sources = Vec::new();
        for column in &self.inner.operation.columns {
            let is_it = |candidate: &Parameter| candidate.name == column.name && candidate.value_type == column.value_type;
            let is_number = |candidate: &Parameter| {
                candidate.name == column.name && (candidate.value_type, column.value_type) == (Type::Integer, Type::Double)
            };
            let time = table.offset().filter(|offset| offset.name == column.name && column.value_type == Type::Timestamp);
            sources.push(if let Some(place) = table.key.iter().position(is_it) {
                prefix.get(place).map_or(Source::Key(place), |parameter| Source::Parameter(*parameter))
            } else if time.is_some() {
                Source::Time
            } else if let Some(place) = table.columns.iter().position(is_it) {
                Source::Column(place)
            } else if let Some(place) = table.columns.iter().position(is_number).filter(|_| table.offset().is_none()) {
                Source::Number(place)
            } else {
                let (name, value_type) = (&column.name, column.value_type.name());
                let message =
                    format!("table {table_name} has no column {name} of type {value_type}, which the operation returns");
                return Err(self.error(&format!("{statement}.table"), message));
            });
        }
        if narrow && !sources.iter().any(|source| matches!(source, Source::Column(_) | Source::Number(_))) {
            return Err(self.error(&format!("{statement}.narrow"), "the operation returns no column of the value"));
        }
        Ok(Reading { table_name, table: table.clone(), sources, narrow })
    }

    fn put(&self, put: Put) -> Result<PreparedPut, SchemaError> {
        let table = self.table("put", &put.table)?;
        let known = table.row_columns();
        if let Some(unknown) = put.values.keys().find(|name| known.iter().all(|column| column.name != **name)) {
            return Err(self.error(&format!("put.values.{unknown}"), format!("table {} has no column {unknown}", put.table)));
        }
        let value = |name: &str, value_type: Type| {
            let parameter = put.values.get(name);
            parameter.map(|parameter| self.parameter(&format!("put.values.{name}"), parameter, Some(value_type))).transpose()
        };
        let needed = |name: &str, value_type: Type| {
            value(name, value_type)?.ok_or_else(|| self.error("put.values", format!("the column {name} is missing")))
        };
        let key = table.given_key().map(|column| needed(&column.name, column.value_type)).collect::<Result<_, _>>()?;
        let time = table.offset().map(|offset| needed(&offset.name, Type::Timestamp)).transpose()?;
        let mut columns = Vec::new();
        for (place, column) in table.columns.iter().enumerate() {
            if let Some(parameter) = value(&column.name, column.value_type)? {
                columns.push((place, parameter));
            }
        }
        if time.is_some() && columns.is_empty() {
            return Err(self.error("put.values", format!("the column {} is missing", table.columns[0].name)));
        }
        Ok(PreparedPut { table: table.clone(), table_name: put.table, key, time, columns })
    }

    fn table(&self, statement: &str, name: &str) -> Result<&Table, SchemaError> {
        self.inner.table(self.schema, statement, name)
    }

    fn parameter(&self, key: &str, written: &str, expected: Option<Type>) -> Result<usize, SchemaError> {
        self.inner.parameter(key, written, expected)
    }

    fn error(&self, key: &str, message: impl Into<String>) -> SchemaError {
        self.inner.error_at(key, message)
    }
}

/// The same reading, where columns of the key are known from the parameters that found the row.
fn with_parameters(mut reading: Reading, key: &[usize], times: Times) -> Reading {
    let given: Vec<String> = reading.table.given_key().map(|column| column.name.clone()).collect();
    for source in &mut reading.sources {
        if let Source::Key(place) = source {
            let name = &reading.table.key[*place].name;
            if let Some(number) = given.iter().position(|given| given == name) {
                *source = Source::Parameter(key[number]);
            }
        }
        if let (Source::Time, Times::At(parameter)) = (*source, times) {
            *source = Source::Parameter(parameter);
        }
    }
    reading
}
