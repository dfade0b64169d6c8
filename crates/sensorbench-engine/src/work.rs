//! What the client does besides the statement, as schema files declare it: derived parameters, one statement for each stretch
//! of time, each shard or each row of another answer, looking up first what there is, telling others what was written, encoding and
//! decoding of byte-array batches, reduction of rows to one value or to those that differ. It counts as service time, because a
//! user of that schema waits for it.

use std::collections::HashSet;
use std::num::NonZeroU32;

use sensorbench_dataset::Every;
use sensorbench_dataset::encoding::{BatchEncoding, append_record, decode_batch};
use sensorbench_driver::{Column, DriverError, Operation, Parameter, Rows, SchemaError, Type, Value, ValueRef};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::reduction::{Reduced, Reduction};

/// The declared work of one operation; nothing if empty.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// Parameters that the statement gets besides those of the operation.
    #[serde(default)]
    pub derive: Vec<Derive>,
    /// How many readings that follow one another the operation writes, where it is more than one: each by a statement of its own,
    /// all at the same time, unless they are encoded.
    pub readings: Option<NonZeroU32>,
    /// The readings become a byte-array batch, which the one statement gets as a parameter.
    pub encode: Option<Encode>,
    /// What the operation asks for before it writes.
    pub first: Option<First>,
    /// Statements that are issued, too.
    #[serde(default)]
    pub also: Vec<Also>,
    /// The data are spread over several tables.
    pub tables: Option<Tables>,
    /// The statement is issued for each of several parts of the data.
    pub for_each: Option<ForEach>,
    /// Columns that the statement returns, where they are not those of the operation.
    #[serde(default)]
    pub returns: Vec<Column>,
    /// Numbers of the returned columns that are kept, of equal rows once; all rows as they are if empty.
    #[serde(default)]
    pub distinct: Vec<usize>,
    /// Readings are taken out of byte-array batches.
    pub decode: Option<Decode>,
    /// Rows are reduced to one.
    pub reduce: Option<Reduce>,
}

/// A parameter made from another one: the start of the stretch of time that it lies in.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Derive {
    /// Name of the new parameter.
    pub name: String,
    /// Number of the operation's parameter that it is made from, a timestamp.
    pub floor: usize,
    /// Length of the stretches.
    pub every: Every,
}

/// Readings become one batch.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Encode {
    /// Name of the parameter with the bytes.
    pub name: String,
    /// How they are written.
    pub encoding: BatchEncoding,
    /// Number of the operation's parameter that is the time of a reading.
    pub time: usize,
    /// Number of the operation's parameter that is its value, a double.
    pub value: usize,
}

/// A statement that is answered before the operation's own is issued, as in read-modify-write. Its rows are fetched, and not used but
/// for what is appended to.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct First {
    /// The statement. It gets the parameters of the operation and those derived.
    pub statement: Json,
    /// What it returns.
    pub returns: Vec<Column>,
    /// The operation's own statement writes back what was found, and something more.
    pub append: Option<Append>,
}

/// A text becomes longer on its way from one statement to the next.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Append {
    /// Name of the parameter with the longer text.
    pub name: String,
    /// Number of the returned column with the text that there is, in the only row.
    pub column: usize,
    /// What is appended.
    pub text: String,
}

impl Append {
    /// The longer text. An error where there is none, or where there are several.
    pub fn to(&self, found: &Rows) -> Result<Value, DriverError> {
        let problem = |what: &str| DriverError::Data(format!("there is {what} to append to, where one was expected"));
        if found.len() > 1 {
            return Err(problem(&format!("not one text but {}", found.len())));
        }
        match found.iter().next().map(|row| row.value(self.column)) {
            Some(ValueRef::Text(text)) => Ok(Value::Text([text, &self.text].concat().into())),
            _ => Err(problem("no text")),
        }
    }
}

/// A statement that is issued together with the operation's own.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Also {
    /// The statement.
    pub statement: Json,
    /// Names of parameters: where the client has issued the statement with the same values of these before, it need not do so again.
    /// Each time if empty.
    #[serde(default)]
    pub once: Vec<String>,
}

/// The data are spread over tables that are alike: in statements, `{table}` stands for the number of one of them.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    /// How many there are.
    pub count: NonZeroU32,
    /// Number of the operation's parameter whose remainder is the number of the table, an integer.
    pub by: usize,
}

/// One statement for each of several parts of the data. Their rows together are the answer, in the order of the parts.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ForEach {
    /// Name of the parameter that each statement gets besides those of the operation: which part it is for.
    pub name: String,
    /// What the parts are.
    pub parts: Parts,
}

/// Parts of the data that statements are issued for one by one.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Parts {
    /// The stretches of time that meet `from`..`to` (`to` excluded); the parameter is the start of a stretch.
    Stretches {
        /// Number of the operation's parameter with the first time wanted.
        from: usize,
        /// Number of the operation's parameter with the first time not wanted any more.
        to: usize,
        /// Length of the stretches.
        every: Every,
    },
    /// So many shards; the parameter is the number of a shard, from 0.
    Shards(u32),
    /// Of the stretches of time that another statement lists, those that meet `from`..`to` (`to` excluded).
    Listed(Listed),
    /// The rows of another statement, in their order.
    Rows(ListedRows),
}

/// Stretches of time that are looked up first, by a statement of its own.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// The statement. It gets the parameters of the operation and those derived.
    pub statement: Json,
    /// What it returns.
    pub returns: Vec<Column>,
    /// Number of the returned column with the start of a stretch.
    pub start: usize,
    /// Which of the rows are meant, where the statement lists others, too: those with the value of a parameter of the operation (the
    /// second number) in a returned column (the first).
    #[serde(default)]
    pub own: Vec<(usize, usize)>,
    /// Number of the operation's parameter with the first time wanted.
    pub from: usize,
    /// Number of the operation's parameter with the first time not wanted any more.
    pub to: usize,
    /// Length of the stretches.
    pub every: Every,
}

/// Rows that are looked up first, by a statement of its own.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ListedRows {
    /// The statement. It gets the parameters of the operation and those derived.
    pub statement: Json,
    /// What it returns.
    pub returns: Vec<Column>,
    /// Number of the returned column that tells the rows apart: the parameter has its value.
    pub column: usize,
}

impl ListedRows {
    fn parts(&self, listed: &Rows) -> Vec<Value> {
        listed.iter().map(|row| row.value(self.column).to_value()).collect()
    }
}

impl Listed {
    /// The starts that an operation with these parameters is about, in order, each once.
    fn starts(&self, parameters: &[Value], listed: &Rows) -> Vec<Value> {
        let (Value::Timestamp(from), Value::Timestamp(to)) = (&parameters[self.from], &parameters[self.to]) else {
            return Vec::new();
        };
        let wanted = self.every.floor(*from)..*to;
        let mut starts: Vec<i64> = listed
            .iter()
            .filter(|row| self.own.iter().all(|(column, parameter)| row.value(*column) == parameters[*parameter].as_ref()))
            .filter_map(|row| match row.value(self.start) {
                ValueRef::Timestamp(start) if wanted.contains(&start) => Some(start),
                _ => None,
            })
            .collect();
        starts.sort_unstable();
        starts.dedup();
        starts.into_iter().map(Value::Timestamp).collect()
    }
}

impl Parts {
    /// The parts that an operation with these parameters is about, in order; `listed` is what was looked up, if something must be. A
    /// bound of time that is null has none.
    pub fn of(&self, parameters: &[Value], listed: &Rows) -> Vec<Value> {
        match self {
            Parts::Stretches { from, to, every } => {
                let (from, to) = match (&parameters[*from], &parameters[*to]) {
                    (Value::Timestamp(from), Value::Timestamp(to)) => (*from, *to),
                    _ => (0, 0),
                };
                every.starts(from, to).map(Value::Timestamp).collect()
            }
            Parts::Shards(shards) => (0..*shards).map(|shard| Value::Integer(shard.into())).collect(),
            Parts::Listed(stretches) => stretches.starts(parameters, listed),
            Parts::Rows(rows) => rows.parts(listed),
        }
    }

    /// The statement that looks the parts up, and what it returns, if one must.
    fn list(&self) -> Option<(&Json, &[Column])> {
        match self {
            Parts::Stretches { .. } | Parts::Shards(_) => None,
            Parts::Listed(Listed { statement, returns, .. }) | Parts::Rows(ListedRows { statement, returns, .. }) => {
                Some((statement, returns))
            }
        }
    }

    /// True when they are in the order of time, oldest first, whatever the order of the answer.
    pub fn are_stretches(&self) -> bool {
        matches!(self, Parts::Stretches { .. } | Parts::Listed(_))
    }

    /// Type of the parameter that says which part it is.
    fn value_type(&self) -> Type {
        match self {
            Parts::Stretches { .. } | Parts::Listed(_) => Type::Timestamp,
            Parts::Shards(_) => Type::Integer,
            Parts::Rows(rows) => rows.returns[rows.column].value_type,
        }
    }
}

/// Readings in `from`..`to` (`to` excluded) become rows of time and value.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Decode {
    /// Number of the returned column with the bytes.
    pub column: usize,
    /// How they are written.
    pub encoding: BatchEncoding,
    /// Number of the operation's parameter with the first time wanted.
    pub from: Option<usize>,
    /// Number of the operation's parameter with the first time not wanted any more.
    pub to: Option<usize>,
}

/// All rows become one.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Reduce {
    /// What becomes of them.
    pub function: Reduction,
    /// Number of the column that is looked at: a returned one, or 0 (time) or 1 (value) after decoding.
    pub column: usize,
}

impl Work {
    /// True when the client does nothing after the statement.
    #[inline]
    pub fn leaves_rows_as_they_are(&self) -> bool {
        self.decode.is_none() && self.reduce.is_none() && self.distinct.is_empty()
    }

    /// How many readings one operation writes.
    pub fn readings(&self) -> u64 {
        self.readings.map_or(1, |readings| u64::from(readings.get()))
    }

    /// True when the operation is one statement with its own parameters and those derived.
    pub fn is_one_statement(&self) -> bool {
        self.readings() == 1
            && self.encode.is_none()
            && self.first.is_none()
            && self.also.is_empty()
            && self.tables.is_none()
            && self.for_each.is_none()
    }

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

    fn check_writing(&self, with_derived: &Operation) -> Result<(), SchemaError> {
        let error = |key: &str, message: &str| Err(schema_error(with_derived, key, message));
        if !with_derived.columns.is_empty() {
            let is_of_writes = [
                ("readings", self.readings.is_some()),
                ("encode", self.encode.is_some()),
                ("first", self.first.is_some()),
                ("also", !self.also.is_empty()),
            ];
            return match is_of_writes.iter().find(|(_, is_there)| *is_there) {
                Some((key, _)) => error(key, "is only for operations that write"),
                None => Ok(()),
            };
        }
        if let Some(encode) = &self.encode {
            let is = |number: usize, expected: Type| {
                with_derived.parameters.get(number).is_some_and(|found| found.value_type == expected)
            };
            if !is(encode.time, Type::Timestamp) || !is(encode.value, Type::Double) {
                return error("encode", "the time of a reading must be a timestamp, its value a double");
            }
        }
        for name in self.also.iter().flat_map(|also| &also.once) {
            if with_derived.parameter(name).is_none() {
                return error("also.once", &format!("there is no parameter :{name}, neither of the operation nor derived"));
            }
        }
        Ok(())
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

    fn check_parts(&self, operation: &Operation, parts: &Parts) -> Result<(), SchemaError> {
        let error = |message: &str| Err(schema_error(operation, "for_each", message));
        if operation.columns.is_empty() {
            return error("is only for operations that return rows");
        }
        match parts {
            Parts::Stretches { from, to, every } => {
                if !is_time(operation, *from) || !is_time(operation, *to) || !every.is_above_zero() {
                    return error("from and to must be timestamps, the stretches above zero");
                }
            }
            Parts::Listed(listed) => {
                let column_is = |column: usize, expected: Option<Type>| {
                    listed.returns.get(column).is_some_and(|found| expected.is_none_or(|expected| found.value_type == expected))
                };
                if !is_time(operation, listed.from) || !is_time(operation, listed.to) || !listed.every.is_above_zero() {
                    return error("from and to must be timestamps, the stretches above zero");
                }
                let own = |(column, parameter): &(usize, usize)| {
                    operation.parameters.get(*parameter).is_some_and(|found| column_is(*column, Some(found.value_type)))
                };
                if !column_is(listed.start, Some(Type::Timestamp)) || !listed.own.iter().all(own) {
                    return error(
                        "what is listed must have the start of a stretch, a timestamp, and the columns that tell its own rows",
                    );
                }
            }
            Parts::Rows(rows) if rows.column >= rows.returns.len() => {
                return error("what is listed must have the column that tells its rows apart");
            }
            Parts::Rows(_) => {}
            Parts::Shards(0) => return error("there must be at least one shard"),
            Parts::Shards(_) => {
                if !operation.order.is_empty() && self.reduce.is_none() {
                    return error("rows of several shards are in no order, but the answer to the operation has one");
                }
            }
        }
        Ok(())
    }

    fn check_columns(&self, operation: &Operation) -> Result<(), SchemaError> {
        let error = |key: &str, message: &str| Err(schema_error(operation, key, message));
        if self.leaves_rows_as_they_are() {
            return if self.returns.is_empty() {
                Ok(())
            } else {
                error("returns", "is only for operations with distinct, decode or reduce")
            };
        }
        let mut types: Vec<Type> = self.returns.iter().map(|column| column.value_type).collect();
        if !self.distinct.is_empty() {
            if self.decode.is_some() || self.reduce.is_some() {
                return error("distinct", "does not go with decode or reduce");
            }
            let kept: Option<Vec<Type>> = self.distinct.iter().map(|column| types.get(*column).copied()).collect();
            let Some(kept) = kept else { return error("distinct", "must name returned columns") };
            types = kept;
        }
        if let Some(decode) = &self.decode {
            if types.get(decode.column) != Some(&Type::Bytes) {
                return error("decode.column", "must name a returned column of type bytes");
            }
            if ![decode.from, decode.to].into_iter().flatten().all(|parameter| is_time(operation, parameter)) {
                return error("decode", "from and to must be parameters of type timestamp");
            }
            types = vec![Type::Timestamp, Type::Double];
        }
        if let Some(reduce) = &self.reduce {
            let Some(reduced) = types.get(reduce.column).copied() else { return error("reduce.column", "names no column") };
            if reduce.function == Reduction::Sum && !matches!(reduced, Type::Integer | Type::Double) {
                return error("reduce.column", "only integers and doubles have a sum");
            }
            types = vec![if reduce.function == Reduction::Count { Type::Integer } else { reduced }];
        }
        let expected: Vec<Type> = operation.columns.iter().map(|column| column.value_type).collect();
        if types == expected { Ok(()) } else { error("returns", "the work does not give the columns of the operation") }
    }

    /// Appends the derived parameters to the operation's own. What is derived from null is null.
    #[inline]
    pub fn derive_parameters(&self, parameters: &mut Vec<Value>) {
        for derive in &self.derive {
            parameters.push(match parameters[derive.floor] {
                Value::Timestamp(time) => Value::Timestamp(derive.every.floor(time)),
                _ => Value::Null,
            });
        }
    }

    /// The number of the table that an operation with these parameters is about.
    #[inline]
    pub fn table_of(&self, parameters: &[Value]) -> usize {
        match &self.tables {
            Some(Tables { count, by }) => match parameters[*by] {
                Value::Integer(number) => number.rem_euclid(i64::from(count.get())) as usize,
                _ => 0,
            },
            None => 0,
        }
    }

    /// Makes the operation's rows from those that the statement returned.
    pub fn apply(&self, parameters: &[Value], returned: &Rows, rows: &mut Rows) -> Result<(), DriverError> {
        if !self.distinct.is_empty() {
            return self.keep_distinct(returned, rows);
        }
        let Some(reduce) = &self.reduce else {
            return self.visit(parameters, returned, |row| {
                row.iter().for_each(|value| rows.push(*value));
                rows.end_row();
            });
        };
        let mut reduced = Reduced::by(reduce.function);
        self.visit(parameters, returned, |row| reduced.take(row[reduce.column]))?;
        rows.push(reduced.value()?.as_ref());
        rows.end_row();
        Ok(())
    }

    fn keep_distinct(&self, returned: &Rows, rows: &mut Rows) -> Result<(), DriverError> {
        let mut seen = HashSet::new();
        let mut record = Vec::new();
        for row in returned.iter() {
            record.clear();
            for column in &self.distinct {
                append_record(&mut record, self.returns[*column].value_type, row.value(*column))
                    .map_err(|error| DriverError::Data(error.to_string()))?;
            }
            if !seen.contains(&record) {
                self.distinct.iter().for_each(|column| rows.push(row.value(*column)));
                rows.end_row();
                seen.insert(record.clone());
            }
        }
        Ok(())
    }

    /// Gives every row, decoded if so declared, to `visit`.
    fn visit(&self, parameters: &[Value], returned: &Rows, mut visit: impl FnMut(&[ValueRef])) -> Result<(), DriverError> {
        let Some(decode) = &self.decode else {
            let mut row_values = Vec::new();
            for row in returned.iter() {
                row_values.clear();
                row_values.extend((0..row.columns()).map(|column| row.value(column)));
                visit(&row_values);
            }
            return Ok(());
        };
        let time = |parameter: Option<usize>, otherwise: i64| match parameter.map(|parameter| &parameters[parameter]) {
            Some(Value::Timestamp(time)) => *time,
            _ => otherwise,
        };
        let wanted = time(decode.from, i64::MIN)..time(decode.to, i64::MAX);
        for row in returned.iter() {
            let ValueRef::Bytes(bytes) = row.value(decode.column) else {
                return Err(DriverError::Data("a batch of readings is not bytes".to_owned()));
            };
            let decoded = decode_batch(decode.encoding, bytes, |time, value| {
                if wanted.contains(&time) {
                    visit(&[ValueRef::Timestamp(time), ValueRef::Double(value)]);
                }
            });
            decoded.map_err(|error| DriverError::Data(error.to_string()))?;
        }
        Ok(())
    }
}

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

/// A statement for one of several tables: `{table}` replaced by its number, wherever it stands.
pub(crate) fn with_table(statement: &Json, table: usize) -> Json {
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

fn schema_error(operation: &Operation, key: &str, message: impl Into<String>) -> SchemaError {
    SchemaError::at(format!("operation.{}.{key}", operation.name), message)
}

fn is_time(operation: &Operation, parameter: usize) -> bool {
    operation.parameters.get(parameter).is_some_and(|found| found.value_type == Type::Timestamp)
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
    use sensorbench_dataset::encoding::encode_batch;
    use sensorbench_driver::{Direction, Order};

    use super::*;

    const DAY: Every = Every::Microseconds(10);

    fn column(name: &str, value_type: Type) -> Column {
        Column { name: name.to_owned(), value_type, computed: false }
    }

    fn operation(columns: &[(&str, Type)]) -> Operation {
        let parameter = |name: &str| Parameter { name: name.to_owned(), value_type: Type::Timestamp };
        Operation {
            name: "read".to_owned(),
            parameters: vec![parameter("from"), parameter("to")],
            columns: columns.iter().map(|(name, value_type)| column(name, *value_type)).collect(),
            order: Vec::new(),
            statement: serde_json::Value::Null,
        }
    }

    fn work(reduce: Option<Reduction>) -> Work {
        Work {
            derive: vec![Derive { name: "from_day".to_owned(), floor: 0, every: DAY }],
            returns: vec![column("readings", Type::Bytes)],
            decode: Some(Decode { column: 0, encoding: BatchEncoding::Packed, from: Some(0), to: Some(1) }),
            reduce: reduce.map(|function| Reduce { function, column: 1 }),
            ..Work::default()
        }
    }

    fn batches(batches: &[&[(i64, f64)]]) -> Rows {
        let mut rows = Rows::new();
        for batch in batches {
            let (times, values): (Vec<_>, Vec<_>) = batch.iter().copied().unzip();
            let mut bytes = Vec::new();
            encode_batch(BatchEncoding::Packed, &times, &values, &mut bytes).unwrap();
            rows.push(ValueRef::Bytes(&bytes));
            rows.end_row();
        }
        rows
    }

    fn applied(work: &Work, parameters: [i64; 2], returned: &Rows) -> Vec<Vec<Value>> {
        let mut rows = Rows::new();
        work.apply(&parameters.map(Value::Timestamp), returned, &mut rows).unwrap();
        rows.iter().map(|row| (0..row.columns()).map(|column| row.value(column).to_value()).collect()).collect()
    }

    #[test]
    fn batches_become_the_rows_of_the_range() {
        let returned = batches(&[&[(1, 0.1), (9, 0.9)], &[(10, 1.0), (12, 1.2)]]);
        let rows = applied(&work(None), [9, 12], &returned);
        assert_eq!(rows, [[Value::Timestamp(9), Value::Double(0.9)], [Value::Timestamp(10), Value::Double(1.0)]]);
    }

    #[test]
    fn rows_are_reduced_to_one() {
        let returned = batches(&[&[(1, -1.5), (9, -7.0)]]);
        assert_eq!(applied(&work(Some(Reduction::Max)), [0, 99], &returned), [[Value::Double(-1.5)]]);
        assert_eq!(applied(&work(Some(Reduction::Min)), [0, 99], &returned), [[Value::Double(-7.0)]]);
        assert_eq!(applied(&work(Some(Reduction::Count)), [0, 99], &returned), [[Value::Integer(2)]]);
        assert_eq!(applied(&work(Some(Reduction::Max)), [50, 99], &returned), [[Value::Null]]);
        assert_eq!(applied(&work(Some(Reduction::Count)), [50, 99], &returned), [[Value::Integer(0)]]);
    }

    /// The sum of one column of rows, as an answer or an error.
    fn sum(values: &[Value]) -> Result<Value, String> {
        let work = Work { reduce: Some(Reduce { function: Reduction::Sum, column: 0 }), ..Work::default() };
        let mut returned = Rows::new();
        for value in values {
            returned.push(value.as_ref());
            returned.end_row();
        }
        let mut rows = Rows::new();
        work.apply(&[], &returned, &mut rows).map_err(|error| error.to_string())?;
        assert_eq!(rows.len(), 1);
        Ok(rows.iter().next().unwrap().value(0).to_value())
    }

    #[test]
    fn counts_add_up_exactly() {
        assert_eq!(sum(&[5, 0, 9_007_199_254_740_993].map(Value::Integer)), Ok(Value::Integer(9_007_199_254_740_998)));
        assert_eq!(sum(&[Value::Null, Value::Integer(-2), Value::Null]), Ok(Value::Integer(-2)));
        assert_eq!(sum(&[Value::Null]), Ok(Value::Null));
        assert_eq!(sum(&[]), Ok(Value::Null));
        assert_eq!(sum(&[i64::MAX, i64::MAX, -i64::MAX].map(Value::Integer)), Ok(Value::Integer(i64::MAX)), "on the way it may");
        let error = sum(&[i64::MIN, -1].map(Value::Integer)).unwrap_err();
        assert!(error.contains("-9223372036854775809, does not fit into an integer of 64 bits"), "{error}");
    }

    #[test]
    fn doubles_are_added_up_in_the_order_of_the_rows() {
        assert_eq!(sum(&[1e16, 1.0, 1.0, -1e16].map(Value::Double)), Ok(Value::Double(0.0)));
        assert_eq!(sum(&[1e16, -1e16, 1.0, 1.0].map(Value::Double)), Ok(Value::Double(2.0)));
        assert_eq!(sum(&[Value::Double(0.5), Value::Null]), Ok(Value::Double(0.5)));
    }

    #[test]
    fn what_has_no_sum_is_refused() {
        for (returned, is_refused) in [
            (Type::Integer, false),
            (Type::Double, false),
            (Type::Timestamp, true),
            (Type::Text, true),
            (Type::Bytes, true),
            (Type::Boolean, true),
        ] {
            let reduce = Some(Reduce { function: Reduction::Sum, column: 0 });
            let work = Work { returns: vec![column("counted", returned)], reduce, ..Work::default() };
            let error = work.statement_of(&operation(&[("all", returned)])).err().map(|error| error.path);
            assert_eq!(error, is_refused.then(|| "operation.read.reduce.column".to_owned()), "{returned:?}");
        }
    }

    #[test]
    fn of_equal_rows_one_is_kept() {
        let returns = [("floor", Type::Integer), ("sensor", Type::Text), ("zone", Type::Integer)];
        let returns = returns.map(|(name, value_type)| column(name, value_type)).to_vec();
        let work = Work { returns, distinct: vec![2, 0], ..Work::default() };
        let mut returned = Rows::new();
        for (floor, sensor, zone) in [(1, "AC1", 7), (1, "AC2", 7), (2, "AC1", 7), (1, "Light", 7)] {
            returned.push(ValueRef::Integer(floor));
            returned.push(ValueRef::Text(sensor));
            returned.push(ValueRef::Integer(zone));
            returned.end_row();
        }
        assert_eq!(applied(&work, [0, 0], &returned), [[7, 1], [7, 2]].map(|row| row.map(Value::Integer)));
        let two_integers = operation(&[("zone", Type::Integer), ("floor", Type::Integer)]);
        assert_eq!(work.statement_of(&two_integers).unwrap().columns.len(), 3);
        let error = Work { distinct: vec![3], ..work }.statement_of(&two_integers).unwrap_err();
        assert_eq!(error.path, "operation.read.distinct");
    }

    #[test]
    fn the_statement_sees_derived_parameters_and_its_own_columns() {
        let read = operation(&[("time", Type::Timestamp), ("value", Type::Double)]);
        let statement = work(None).statement_of(&read).unwrap();
        assert_eq!(statement.parameters[2].name, "from_day");
        assert_eq!(statement.columns[0].name, "readings");
        let mut parameters = vec![Value::Timestamp(-3), Value::Timestamp(25)];
        work(None).derive_parameters(&mut parameters);
        assert_eq!(parameters[2], Value::Timestamp(-10));
        let mut parameters = vec![Value::Null, Value::Timestamp(25)];
        work(None).derive_parameters(&mut parameters);
        assert_eq!(parameters[2], Value::Null);
    }

    #[test]
    fn work_that_does_not_give_the_operations_columns_is_refused() {
        let error = work(Some(Reduction::Count)).statement_of(&operation(&[("peak", Type::Double)])).unwrap_err();
        assert_eq!(error.path, "operation.read.returns");
        let no_bytes = Work { returns: vec![column("readings", Type::Text)], ..work(None) };
        let error = no_bytes.statement_of(&operation(&[("time", Type::Timestamp), ("value", Type::Double)])).unwrap_err();
        assert_eq!(error.path, "operation.read.decode.column");
    }

    fn for_each(name: &str, parts: Parts) -> Work {
        Work { for_each: Some(ForEach { name: name.to_owned(), parts }), ..work(None) }
    }

    const DAYS: Parts = Parts::Stretches { from: 0, to: 1, every: DAY };

    /// The last parameter that a statement for one part gets.
    fn part(parts: Parts) -> Parameter {
        let read = operation(&[("time", Type::Timestamp), ("value", Type::Double)]);
        let statement = for_each("part", parts).statement_of(&read).unwrap();
        let names: Vec<_> = statement.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
        assert_eq!(names, ["from", "to", "from_day", "part"]);
        statement.parameters[3].clone()
    }

    #[test]
    fn a_statement_for_each_stretch_gets_its_start_after_all_other_parameters() {
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

    fn rows_of(of: usize) -> Parts {
        let returns = vec![column("id", Type::Integer), column("key", Type::Text)];
        Parts::Rows(ListedRows { statement: serde_json::Value::Null, returns, column: of })
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
    fn parts_that_make_no_sense_are_refused() {
        let refused = |work: Work, operation: &Operation| {
            let error = work.statement_of(operation).unwrap_err();
            assert_eq!(error.path, "operation.read.for_each");
            error.message
        };
        let read = operation(&[("time", Type::Timestamp), ("value", Type::Double)]);
        assert!(refused(for_each("to", DAYS), &read).contains("parameter :to already"));
        assert!(refused(for_each("from_day", DAYS), &read).contains("parameter :from_day already"));
        let no_time = Parts::Stretches { from: 0, to: 2, every: DAY };
        assert!(refused(for_each("day", no_time), &read).contains("must be timestamps"));
        let no_length = Parts::Stretches { from: 0, to: 1, every: Every::Months(0) };
        assert!(refused(for_each("day", no_length), &read).contains("above zero"));
        assert!(refused(for_each("shard", Parts::Shards(0)), &read).contains("at least one shard"));
        assert!(refused(for_each("key", rows_of(2)), &read).contains("the column that tells its rows apart"));
        for parts in [DAYS, Parts::Shards(2)] {
            assert!(refused(for_each("part", parts), &operation(&[])).contains("return rows"));
        }
    }

    #[test]
    fn rows_of_shards_have_no_order_unless_they_are_reduced() {
        let by_time = Order { column: "time".to_owned(), direction: Direction::Ascending };
        let ordered = Operation { order: vec![by_time], ..operation(&[("time", Type::Timestamp), ("value", Type::Double)]) };
        let error = for_each("shard", Parts::Shards(2)).statement_of(&ordered).unwrap_err();
        assert!(error.message.contains("rows of several shards are in no order"), "{error}");
        assert!(for_each("day", DAYS).statement_of(&ordered).is_ok());
        assert!(for_each("key", rows_of(1)).statement_of(&ordered).is_ok());
        let peak = Operation { columns: vec![column("time", Type::Double)], ..ordered };
        let reduced = Work { reduce: work(Some(Reduction::Max)).reduce, ..for_each("shard", Parts::Shards(2)) };
        assert!(reduced.statement_of(&peak).is_ok());
    }
}
