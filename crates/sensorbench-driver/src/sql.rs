//! A schema of a database that speaks SQL: `[create]` and `[settle]` are statements, and so is each operation.

use serde::Deserialize;

use crate::{DriverError, Parameter, Schema, SchemaError, parse_part};

/// A schema whose parts are known to be statements.
#[derive(Clone, Debug)]
pub struct SqlSchema {
    create: Statements,
    settle: Statements,
    tables: Vec<(String, Vec<Parameter>)>,
}

/// `[create]` and `[settle]` of a schema file: statements, one after the other.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Statements {
    #[serde(default)]
    statements: Vec<String>,
}

/// `[operation.NAME]` of a schema file: one statement with `:named` parameters.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SqlStatement {
    /// The statement.
    pub statement: String,
}

impl SqlSchema {
    /// Takes a schema apart.
    pub fn of(schema: &Schema) -> Result<Self, SchemaError> {
        Ok(Self {
            create: parse_part("create", &schema.create)?,
            settle: parse_part("settle", &schema.settle)?,
            tables: schema.tables.clone().into_iter().collect(),
        })
    }

    /// The statements that create the tables, each with its place in the schema file.
    pub fn create(&self) -> impl Iterator<Item = (String, &str)> {
        self.create.with_places("create")
    }

    /// The statements that come after loading, each with its place in the schema file.
    pub fn settle(&self) -> impl Iterator<Item = (String, &str)> {
        self.settle.with_places("settle")
    }

    /// The tables that the schema fills, with the columns of their fills.
    pub fn tables(&self) -> &[(String, Vec<Parameter>)] {
        &self.tables
    }

    /// The columns of a table that the schema fills.
    pub fn table(&self, name: &str) -> Result<&[Parameter], DriverError> {
        let table = self.tables.iter().find(|(table, _)| table == name);
        table.map(|(_, columns)| columns.as_slice()).ok_or_else(|| DriverError::Data(format!("the schema fills no table {name}")))
    }
}

impl Statements {
    fn with_places(&self, part: &'static str) -> impl Iterator<Item = (String, &str)> {
        let place = move |(number, statement)| (format!("{part}.statements[{number}]"), statement);
        self.statements.iter().map(String::as_str).enumerate().map(place)
    }
}

/// A name between double quotes, as the standards of SQL and CQL have it. Quotes within it are doubled.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
