//! Where the columns of an operation are in the series of an answer.

use crate::json::Scalar;

/// Where a column is in an answer.
pub enum Source {
    Value,
    /// The time of a value; of an answer that has none, a label of this name.
    Time,
    Label(String),
}

impl Source {
    pub fn of(name: String) -> Self {
        match name.as_str() {
            "value" => Self::Value,
            "time" => Self::Time,
            _ => Self::Label(name),
        }
    }
}

/// Where a column is in the rows of one series, whose labels are the same in all of them.
pub enum InSeries<'a> {
    Value,
    Time,
    Label(Scalar<'a>),
}
