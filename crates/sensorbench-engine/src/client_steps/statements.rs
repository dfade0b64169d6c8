//! The statements that an operation takes, and how each of them sees its parameters and columns.

use sensorbench_driver::{Column, Operation, Parameter, SchemaError, Type};
use serde_json::Value as Json;

use super::check::{is_time, schema_error};
use super::declared::{Also, ClientSteps};

/// The statements of one operation.
#[derive(Clone, Debug)]
pub struct Statements {
    /// Its own.
    pub own: Operation,
    /// The one that must be answered before: it lists the parts of the data, or reads what is to be changed.
    pub before: Option<Operation>,
    /// Those that are issued, too.
    pub also: Vec<Operation>,
}

impl Statements {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Operation> {
        std::iter::once(&self.own).chain(&self.before).chain(&self.also)
    }
}

impl ClientSteps {
    /// Every statement of an operation: its own first, then others that it takes. `{table}` stands in them as it was written.
    pub fn statements_of(&self, operation: &Operation) -> Result<Statements, SchemaError> {
        let with_derived = self.with_derived(operation)?;
        let reading = |statement: &Json, returns: &[Column]| Operation {
            columns: returns.to_vec(),
            order: Vec::new(),
            statement: statement.clone(),
            ..with_derived.clone()
        };
        // Only reads have parts that are listed, and only writes read something first.
        let list = self.for_each.as_ref().and_then(|for_each| for_each.parts.list());
        let first = self.first.as_ref().map(|first| (&first.statement, first.returns.as_slice()));
        let before = list.or(first).map(|(statement, returns)| reading(statement, returns));
        let also = |also: &Also| Operation {
            columns: Vec::new(),
            order: Vec::new(),
            statement: also.statement.clone(),
            ..with_derived.clone()
        };
        self.check_writing(&with_derived)?;
        if let Some(tables) = &self.tables
            && operation.parameters.get(tables.by).is_none_or(|by| by.value_type != Type::Integer)
        {
            return Err(schema_error(operation, "tables", "which table it is must follow from a parameter that is an integer"));
        }
        Ok(Statements { own: self.statement_of(operation)?, before, also: self.also.iter().map(also).collect() })
    }

    /// A statement of the operation for one of the tables that its data are spread over; as it is, where they are not.
    pub fn for_table(&self, statement: &Operation, table: usize) -> Operation {
        match self.tables {
            Some(_) => Operation { statement: with_table(&statement.statement, table), ..statement.clone() },
            None => statement.clone(),
        }
    }

    /// The operation with its derived parameters.
    fn with_derived(&self, operation: &Operation) -> Result<Operation, SchemaError> {
        let mut statement = operation.clone();
        for derive in &self.derive {
            if !is_time(operation, derive.floor) || !derive.every.is_above_zero() {
                let message = format!("parameter :{} must be derived from a timestamp, in stretches above zero", derive.name);
                return Err(schema_error(operation, "derive", message));
            }
            add_parameter(&mut statement, "derive", &derive.name, Type::Timestamp)?;
        }
        Ok(statement)
    }

    /// The operation as its own statement sees it: with derived parameters, and the columns that it returns.
    pub fn statement_of(&self, operation: &Operation) -> Result<Operation, SchemaError> {
        let mut statement = self.with_derived(operation)?;
        if let Some(encode) = &self.encode {
            add_parameter(&mut statement, "encode", &encode.name, Type::Bytes)?;
        }
        if let Some((first, append)) = self.first.as_ref().and_then(|first| Some((first, first.append.as_ref()?))) {
            if first.returns.get(append.column).is_none_or(|column| column.value_type != Type::Text) {
                return Err(schema_error(operation, "first.append", "what is appended to must be a text that is returned"));
            }
            if self.encode.is_some() || self.readings() > 1 {
                return Err(schema_error(operation, "first.append", "is for writes of one row, which are not encoded"));
            }
            add_parameter(&mut statement, "first.append", &append.name, Type::Text)?;
        }
        if let Some(for_each) = &self.for_each {
            self.check_parts(operation, &for_each.parts)?;
            add_parameter(&mut statement, "for_each", &for_each.name, for_each.parts.value_type())?;
        }
        if !self.leaves_rows_as_they_are() {
            statement.columns = self.returns.clone();
            statement.order.clear();
        }
        self.check_columns(operation)?;
        Ok(statement)
    }
}

/// The numbers of an operation's statements among all that sessions are made for; of each, one for each table.
#[derive(Clone, Debug)]
pub(crate) struct StatementNumbers {
    pub own: Vec<usize>,
    /// Empty if nothing must be answered before.
    pub before: Vec<usize>,
    pub also: Vec<Vec<usize>>,
}

/// A statement for one of several tables: `{table}` replaced by its number, wherever it stands.
fn with_table(statement: &Json, table: usize) -> Json {
    let replaced = |text: &str| text.replace("{table}", &table.to_string());
    match statement {
        Json::String(text) => Json::String(replaced(text)),
        Json::Array(items) => Json::Array(items.iter().map(|item| with_table(item, table)).collect()),
        Json::Object(entries) => {
            Json::Object(entries.iter().map(|(key, value)| (replaced(key), with_table(value, table))).collect())
        }
        other => other.clone(),
    }
}

/// Gives a statement one more parameter, which `key` declares.
fn add_parameter(statement: &mut Operation, key: &str, name: &str, value_type: Type) -> Result<(), SchemaError> {
    if statement.parameter(name).is_some() {
        return Err(schema_error(statement, key, format!("there is a parameter :{name} already; choose another name")));
    }
    statement.parameters.push(Parameter { name: name.to_owned(), value_type });
    Ok(())
}

#[cfg(test)]
mod tests {
    use sensorbench_driver::{Rows, Value, ValueRef};
    use serde_json::json;

    use super::*;
    use crate::client_steps::examples::{DAYS, for_each, operation, rows_of, steps};
    use crate::client_steps::parts::Parts;

    #[test]
    fn the_statement_sees_derived_parameters_and_its_own_columns() {
        let read = operation(&[("time", Type::Timestamp), ("value", Type::Double)]);
        let statement = steps(None).statement_of(&read).unwrap();
        assert_eq!(statement.parameters[2].name, "from_day");
        assert_eq!(statement.columns[0].name, "readings");
        let mut parameters = vec![Value::Timestamp(-3), Value::Timestamp(25)];
        steps(None).derive_parameters(&mut parameters);
        assert_eq!(parameters[2], Value::Timestamp(-10));
        let mut parameters = vec![Value::Null, Value::Timestamp(25)];
        steps(None).derive_parameters(&mut parameters);
        assert_eq!(parameters[2], Value::Null);
    }

    /// The last parameter that a statement for one part gets.
    fn part(parts: Parts) -> Parameter {
        let read = operation(&[("time", Type::Timestamp), ("value", Type::Double)]);
        let statement = for_each("part", parts).statement_of(&read).unwrap();
        let names: Vec<_> = statement.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
        assert_eq!(names, ["from", "to", "from_day", "part"]);
        statement.parameters[3].clone()
    }

    #[test]
    fn a_statement_for_each_time_bucket_gets_its_start_after_all_other_parameters() {
        assert_eq!(part(DAYS).value_type, Type::Timestamp);
        let starts = |from: Value, to: Value| DAYS.of(&[from, to], &Rows::new());
        assert_eq!(starts(Value::Timestamp(-1), Value::Timestamp(20)), [-10, 0, 10].map(Value::Timestamp));
        assert_eq!(starts(Value::Timestamp(5), Value::Timestamp(5)), []);
        assert_eq!(starts(Value::Timestamp(5), Value::Null), []);
    }

    #[test]
    fn a_statement_for_each_shard_gets_its_number() {
        assert_eq!(part(Parts::Shards(16)).value_type, Type::Integer);
        assert_eq!(Parts::Shards(3).of(&[], &Rows::new()), [0, 1, 2].map(Value::Integer));
    }

    #[test]
    fn a_statement_for_each_listed_row_gets_the_value_of_its_column() {
        assert_eq!(part(rows_of(1)).value_type, Type::Text);
        let mut listed = Rows::new();
        for (id, key) in [(1, "b"), (2, "a"), (3, "b")] {
            listed.push(ValueRef::Integer(id));
            listed.push(ValueRef::Text(key));
            listed.end_row();
        }
        assert_eq!(rows_of(1).of(&[], &listed), ["b", "a", "b"].map(|key| Value::Text(key.into())));
        assert_eq!(rows_of(0).of(&[], &listed), [1, 2, 3].map(Value::Integer));
        assert_eq!(rows_of(1).of(&[], &Rows::new()), []);
    }

    #[test]
    fn statements_of_tables_have_their_numbers() {
        let statement = json!({"scan": {"table_{table}": ["readings_{table}", 3]}});
        assert_eq!(with_table(&statement, 2), json!({"scan": {"table_2": ["readings_2", 3]}}));
    }
}
