//! Many values made into one.

use sensorbench_driver::{DriverError, Value, ValueRef};
use serde::{Deserialize, Serialize};

/// A function of many values. Nulls are passed over; of no values, all but the count are null.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reduction {
    /// The greatest.
    Max,
    /// The smallest.
    Min,
    /// How many there are.
    Count,
    /// The sum: of integers exactly, of doubles as they are added up in the order of the rows.
    Sum,
}

/// What has become of the values so far.
pub(crate) enum Reduced {
    Max(Value),
    Min(Value),
    Count(i64),
    Sum(Sum),
}

/// Integers are added up in twice their width, which no number of rows is too much for; only the end must fit.
pub(crate) enum Sum {
    OfNone,
    Integer(i128),
    Double(f64),
}

impl Reduced {
    /// Nothing yet.
    pub(crate) fn by(function: Reduction) -> Self {
        match function {
            Reduction::Max => Reduced::Max(Value::Null),
            Reduction::Min => Reduced::Min(Value::Null),
            Reduction::Count => Reduced::Count(0),
            Reduction::Sum => Reduced::Sum(Sum::OfNone),
        }
    }

    /// Takes one value more; a null is passed over.
    #[inline]
    pub(crate) fn take(&mut self, value: ValueRef) {
        if value == ValueRef::Null {
            return;
        }
        match self {
            Reduced::Max(kept) if *kept == Value::Null || is_greater(value, kept.as_ref()) => *kept = value.to_value(),
            Reduced::Min(kept) if *kept == Value::Null || is_greater(kept.as_ref(), value) => *kept = value.to_value(),
            Reduced::Max(_) | Reduced::Min(_) => {}
            Reduced::Count(count) => *count += 1,
            Reduced::Sum(sum) => sum.add(value),
        }
    }

    /// What has become of all of them.
    pub(crate) fn value(self) -> Result<Value, DriverError> {
        match self {
            Reduced::Max(value) | Reduced::Min(value) => Ok(value),
            Reduced::Count(count) => Ok(Value::Integer(count)),
            Reduced::Sum(sum) => sum.value(),
        }
    }
}

impl Sum {
    #[inline]
    fn add(&mut self, value: ValueRef) {
        match (&mut *self, value) {
            (Sum::OfNone, ValueRef::Integer(value)) => *self = Sum::Integer(value.into()),
            (Sum::OfNone, ValueRef::Double(value)) => *self = Sum::Double(value),
            (Sum::Integer(sum), ValueRef::Integer(value)) => *sum += i128::from(value),
            (Sum::Double(sum), ValueRef::Double(value)) => *sum += value,
            _ => {}
        }
    }

    fn value(self) -> Result<Value, DriverError> {
        match self {
            Sum::OfNone => Ok(Value::Null),
            Sum::Double(sum) => Ok(Value::Double(sum)),
            Sum::Integer(sum) => i64::try_from(sum)
                .map(Value::Integer)
                .map_err(|_| DriverError::Data(format!("the sum of the rows, {sum}, does not fit into an integer of 64 bits"))),
        }
    }
}

#[inline]
fn is_greater(a: ValueRef, b: ValueRef) -> bool {
    match (a, b) {
        (ValueRef::Double(a), ValueRef::Double(b)) => a > b,
        (ValueRef::Integer(a), ValueRef::Integer(b)) | (ValueRef::Timestamp(a), ValueRef::Timestamp(b)) => a > b,
        (ValueRef::Boolean(a), ValueRef::Boolean(b)) => a & !b,
        (ValueRef::Text(a), ValueRef::Text(b)) => a > b,
        (ValueRef::Bytes(a), ValueRef::Bytes(b)) => a > b,
        _ => false,
    }
}
