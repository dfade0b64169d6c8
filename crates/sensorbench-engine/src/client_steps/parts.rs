//! Parts of the data that an operation has a statement for each of.

use sensorbench_dataset::Every;
use sensorbench_driver::{Column, Rows, Type, Value, ValueRef};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

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
    /// The time buckets that meet `from`..`to` (`to` excluded); the parameter is the start of a time bucket.
    TimeBuckets {
        /// Number of the operation's parameter with the first time wanted.
        from: usize,
        /// Number of the operation's parameter with the first time not wanted any more.
        to: usize,
        /// Length of the time buckets.
        every: Every,
    },
    /// This many shards; the parameter is the number of a shard, from 0.
    Shards(u32),
    /// Of the time buckets that another statement lists, those that meet `from`..`to` (`to` excluded).
    Listed(Listed),
    /// The rows of another statement, in their order.
    Rows(ListedRows),
}

/// Time buckets that are looked up first, by a statement of its own.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// The statement. It gets the parameters of the operation and those derived.
    pub statement: Json,
    /// What it returns.
    pub returns: Vec<Column>,
    /// Number of the returned column with the start of a time bucket.
    pub start: usize,
    /// Which of the rows are meant, where the statement lists others, too: those with the value of a parameter of the operation (the
    /// second number) in a returned column (the first).
    #[serde(default)]
    pub own: Vec<(usize, usize)>,
    /// Number of the operation's parameter with the first time wanted.
    pub from: usize,
    /// Number of the operation's parameter with the first time not wanted any more.
    pub to: usize,
    /// Length of the time buckets.
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
    /// Number of the returned column that distinguishes the rows: the parameter has its value.
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
            Parts::TimeBuckets { from, to, every } => {
                let (from, to) = match (&parameters[*from], &parameters[*to]) {
                    (Value::Timestamp(from), Value::Timestamp(to)) => (*from, *to),
                    _ => (0, 0),
                };
                every.starts(from, to).map(Value::Timestamp).collect()
            }
            Parts::Shards(shards) => (0..*shards).map(|shard| Value::Integer(shard.into())).collect(),
            Parts::Listed(time_buckets) => time_buckets.starts(parameters, listed),
            Parts::Rows(rows) => rows.parts(listed),
        }
    }

    /// The statement that looks the parts up, and what it returns, if one must.
    pub(super) fn list(&self) -> Option<(&Json, &[Column])> {
        match self {
            Parts::TimeBuckets { .. } | Parts::Shards(_) => None,
            Parts::Listed(Listed { statement, returns, .. }) | Parts::Rows(ListedRows { statement, returns, .. }) => {
                Some((statement, returns))
            }
        }
    }

    /// True when they are in the order of time, oldest first, whatever the order of the answer.
    pub fn are_time_buckets(&self) -> bool {
        matches!(self, Parts::TimeBuckets { .. } | Parts::Listed(_))
    }

    /// Type of the parameter that says which part it is.
    pub(super) fn value_type(&self) -> Type {
        match self {
            Parts::TimeBuckets { .. } | Parts::Listed(_) => Type::Timestamp,
            Parts::Shards(_) => Type::Integer,
            Parts::Rows(rows) => rows.returns[rows.column].value_type,
        }
    }
}
