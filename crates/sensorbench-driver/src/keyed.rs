//! Tables of key-value databases: a row is found by a key of several columns, which sorts like them.

use std::collections::BTreeMap;

use sensorbench_dataset::Type;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::schema::{Operation, Parameter, Schema, SchemaError, parse_part};

/// `[create.table.NAME]` of a schema file, in the words of one database.
pub trait KeyedTable: DeserializeOwned {
    /// Refuses a table that the database cannot have.
    fn check(&self, name: &str) -> Result<(), SchemaError>;

    /// The columns that a row is loaded with.
    fn row_columns(&self) -> Vec<Parameter>;
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Create<T> {
    #[serde(default = "BTreeMap::new")]
    table: BTreeMap<String, T>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settle {}

/// A schema whose tables are known.
#[derive(Clone, Debug)]
pub struct KeyedSchema<T> {
    /// The tables by their names.
    pub tables: BTreeMap<String, T>,
}

impl<T: KeyedTable> KeyedSchema<T> {
    /// The tables that a schema creates, each of which has what it is filled with.
    pub fn of(schema: &Schema) -> Result<Self, SchemaError> {
        let create: Create<T> = parse_part("create", &schema.create)?;
        let Settle {} = parse_part("settle", &schema.settle)?;
        create.table.iter().try_for_each(|(name, table)| table.check(name))?;
        let parsed = Self { tables: create.table };
        for (name, columns) in &schema.tables {
            let table = parsed.table(name).map_err(|error| SchemaError::at(format!("fill.{name}"), error.message))?;
            check_fill(name, &table.row_columns(), columns)?;
        }
        Ok(parsed)
    }

    /// A table by its name.
    pub fn table(&self, name: &str) -> Result<&T, SchemaError> {
        self.tables.get(name).ok_or_else(|| {
            let known: Vec<_> = self.tables.keys().map(String::as_str).collect();
            SchemaError::at("create.table", format!("there is no table {name}; expected one of {}", known.join(", ")))
        })
    }
}

/// The fill of a table has all of its columns.
fn check_fill(name: &str, columns: &[Parameter], filled: &[Parameter]) -> Result<(), SchemaError> {
    for column in columns {
        let message = match filled.iter().find(|candidate| candidate.name == column.name) {
            Some(found) if found.value_type == column.value_type => continue,
            Some(found) => format!(
                "column {} is a {} in the fill and a {} in the table",
                column.name,
                found.value_type.name(),
                column.value_type.name()
            ),
            None => format!("the fill has no column {}", column.name),
        };
        return Err(SchemaError::at(format!("fill.{name}.query"), message));
    }
    Ok(())
}

/// An operation and its place in the schema file, for its errors.
pub struct OperationPlace<'a> {
    path: String,
    /// The operation.
    pub operation: &'a Operation,
}

/// The parameters that a range of keys is written with.
pub struct KeyRangeNames<'a> {
    /// Of the first columns of the key.
    pub prefix: &'a [String],
    /// Of the column after those: the first value wanted.
    pub from: Option<&'a str>,
    /// Of the same column: the last value not wanted.
    pub after: Option<&'a str>,
    /// Of the same column: the first value not wanted any more.
    pub to: Option<&'a str>,
    /// How many rows there are at most.
    pub limit: Option<&'a str>,
}

/// The numbers of these parameters.
pub struct KeyRange {
    /// Of the first columns of the key.
    pub prefix: Vec<usize>,
    /// Of the column after those: the first value wanted.
    pub from: Option<usize>,
    /// Of the same column: the last value not wanted.
    pub after: Option<usize>,
    /// Of the same column: the first value not wanted any more.
    pub to: Option<usize>,
    /// How many rows there are at most.
    pub limit: Option<usize>,
}

impl<'a> OperationPlace<'a> {
    /// The place of an operation.
    pub fn of(operation: &'a Operation) -> Self {
        Self { path: format!("operation.{}", operation.name), operation }
    }

    /// The statement of the operation in the database's words.
    pub fn statement<T: DeserializeOwned>(&self) -> Result<T, SchemaError> {
        parse_part(&self.path, &self.operation.statement)
    }

    /// An error about the whole operation.
    pub fn error(&self, message: impl Into<String>) -> SchemaError {
        SchemaError::at(&self.path, message)
    }

    /// An error about one key of the operation.
    pub fn error_at(&self, key: &str, message: impl Into<String>) -> SchemaError {
        SchemaError::at(format!("{}.{key}", self.path), message)
    }

    /// The table that a statement names.
    pub fn table<'s, T: KeyedTable>(&self, schema: &'s KeyedSchema<T>, key: &str, name: &str) -> Result<&'s T, SchemaError> {
        schema.table(name).map_err(|error| self.error_at(&format!("{key}.table"), error.message))
    }

    /// The number of the parameter written as `:name`, which must have the type of the column that it meets, if there is one.
    pub fn parameter(&self, key: &str, written: &str, expected: Option<Type>) -> Result<usize, SchemaError> {
        let error = |message: String| self.error_at(key, message);
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

    /// The parameters of a scan, `scan` in the file, over a key of these columns.
    pub fn key_range(&self, key: &[Parameter], names: &KeyRangeNames) -> Result<KeyRange, SchemaError> {
        let key_type = |place: usize| key.get(place).map(|column| column.value_type);
        let mut prefix = Vec::new();
        for (number, parameter) in names.prefix.iter().enumerate() {
            prefix.push(self.parameter(&format!("scan.prefix[{number}]"), parameter, key_type(number))?);
        }
        let one = |word: &str, parameter: Option<&str>, expected: Option<Type>| {
            parameter.map(|parameter| self.parameter(&format!("scan.{word}"), parameter, expected)).transpose()
        };
        let next = key_type(names.prefix.len());
        Ok(KeyRange {
            prefix,
            from: one("from", names.from, next)?,
            after: one("after", names.after, next)?,
            to: one("to", names.to, next)?,
            limit: one("limit", names.limit, Some(Type::Integer))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Clone, Debug, Deserialize)]
    struct Table {
        key: Vec<Parameter>,
    }

    impl KeyedTable for Table {
        fn check(&self, name: &str) -> Result<(), SchemaError> {
            if self.key.is_empty() { Err(SchemaError::at(format!("create.table.{name}.key"), "no key")) } else { Ok(()) }
        }

        fn row_columns(&self) -> Vec<Parameter> {
            self.key.clone()
        }
    }

    fn schema(part: serde_json::Value) -> Result<KeyedSchema<Table>, String> {
        let schema: Schema = serde_json::from_value(part).unwrap();
        KeyedSchema::of(&schema).map_err(|error| error.to_string())
    }

    #[test]
    fn tables_have_what_they_are_filled_with() {
        let create = json!({"table": {"t": {"key": [{"name": "id", "type": "integer"}]}}});
        let filled = |table: &str, column: &str, value_type: &str| {
            let error = schema(json!({"create": create, "tables": {table: [{"name": column, "type": value_type}]}}));
            error.err().unwrap_or_default()
        };
        assert_eq!(filled("t", "id", "integer"), "");
        assert_eq!(filled("t", "id", "text"), "fill.t.query: column id is a text in the fill and a integer in the table");
        assert_eq!(filled("t", "number", "integer"), "fill.t.query: the fill has no column id");
        assert_eq!(filled("x", "id", "integer"), "fill.x: there is no table x; expected one of t");
        assert_eq!(schema(json!({"create": {"table": {"t": {"key": []}}}})).unwrap_err(), "create.table.t.key: no key");
        assert!(schema(json!({"settle": {"statements": []}})).unwrap_err().starts_with("settle.statements: unknown field"));
    }

    #[test]
    fn parameters_of_a_range_have_the_types_of_the_key() {
        let parameter = |name: &str, value_type: &str| json!({"name": name, "type": value_type});
        let operation: Operation = serde_json::from_value(json!({
            "name": "read",
            "parameters": [parameter("sensor", "integer"), parameter("from", "timestamp"), parameter("most", "integer")],
        }))
        .unwrap();
        let place = OperationPlace::of(&operation);
        let key = [("sensor", Type::Integer), ("time", Type::Timestamp)]
            .map(|(name, value_type)| Parameter { name: name.to_owned(), value_type });
        let range = |prefix: &[&str], from: Option<&str>| {
            let prefix: Vec<String> = prefix.iter().map(|name| (*name).to_owned()).collect();
            let names = KeyRangeNames { prefix: &prefix, from, after: None, to: None, limit: Some(":most") };
            let range = place.key_range(&key, &names).map_err(|error| error.to_string())?;
            Ok::<_, String>((range.prefix, range.from, range.limit))
        };
        assert_eq!(range(&[":sensor"], Some(":from")), Ok((vec![0], Some(1), Some(2))));
        let refused = |prefix: &[&str], from| range(prefix, from).unwrap_err();
        assert_eq!(
            refused(&["sensor"], None),
            "operation.read.scan.prefix[0]: \"sensor\": expected a parameter, written as :name"
        );
        assert!(refused(&[], Some(":from")).contains("scan.from: parameter :from has type timestamp, expected integer"));
        assert!(refused(&[":sensor", ":from", ":most"], None).contains("the key has no column for parameter :most"));
    }
}
