//! Operations and steps that the unit tests of this folder share.

use sensorbench_dataset::Every;
use sensorbench_dataset::encoding::BatchEncoding;
use sensorbench_driver::{Column, Operation, Parameter, Type};

use super::declared::{ClientSteps, Decode, Derive, Reduce};
use super::parts::{ForEach, ListedRows, Parts};
use crate::reduction::Reduction;

pub const DAY: Every = Every::Microseconds(10);
pub const DAYS: Parts = Parts::TimeBuckets { from: 0, to: 1, every: DAY };

pub fn column(name: &str, value_type: Type) -> Column {
    Column { name: name.to_owned(), value_type, computed: false }
}

pub fn operation(columns: &[(&str, Type)]) -> Operation {
    let parameter = |name: &str| Parameter { name: name.to_owned(), value_type: Type::Timestamp };
    Operation {
        name: "read".to_owned(),
        parameters: vec![parameter("from"), parameter("to")],
        columns: columns.iter().map(|(name, value_type)| column(name, *value_type)).collect(),
        order: Vec::new(),
        statement: serde_json::Value::Null,
    }
}

pub fn steps(reduce: Option<Reduction>) -> ClientSteps {
    ClientSteps {
        derive: vec![Derive { name: "from_day".to_owned(), floor: 0, every: DAY }],
        returns: vec![column("readings", Type::Bytes)],
        decode: Some(Decode { column: 0, encoding: BatchEncoding::Packed, from: Some(0), to: Some(1) }),
        reduce: reduce.map(|function| Reduce { function, column: 1 }),
        ..ClientSteps::default()
    }
}

pub fn for_each(name: &str, parts: Parts) -> ClientSteps {
    ClientSteps { for_each: Some(ForEach { name: name.to_owned(), parts }), ..steps(None) }
}

pub fn rows_of(of: usize) -> Parts {
    let returns = vec![column("id", Type::Integer), column("key", Type::Text)];
    Parts::Rows(ListedRows { statement: serde_json::Value::Null, returns, column: of })
}
