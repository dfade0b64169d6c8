//! What the client does besides the statement, as schema files declare it.

use std::num::NonZeroU32;

use sensorbench_dataset::Every;
use sensorbench_dataset::encoding::BatchEncoding;
use sensorbench_driver::{Column, DriverError, Rows, Value, ValueRef};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::parts::ForEach;
use crate::reduction::Reduction;

/// What the client does for one operation; nothing if empty.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ClientSteps {
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

/// A parameter made from another one: the start of the time bucket that it lies in.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Derive {
    /// Name of the new parameter.
    pub name: String,
    /// Number of the operation's parameter that it is made from, a timestamp.
    pub floor: usize,
    /// Length of the time buckets.
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

impl ClientSteps {
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

    /// Appends the derived parameters to the operation's own. What is derived from null is null.
    #[inline]
    pub fn derive_parameters(&self, parameters: &mut Vec<Value>) {
        self.derive_parameters_from(0, parameters);
    }

    /// The same where the operation's own begin at `start`.
    #[inline]
    pub fn derive_parameters_from(&self, start: usize, parameters: &mut Vec<Value>) {
        for derive in &self.derive {
            parameters.push(match parameters[start + derive.floor] {
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
}
