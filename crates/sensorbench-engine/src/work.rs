//! What the client does besides the statement, as schema files declare it: derived parameters, decoding of byte-array
//! batches, reduction of rows to one value. It counts as service time, because a user of that schema waits for it.

use sensorbench_dataset::encoding::{BatchEncoding, decode_batch};
use sensorbench_dataset::stretch_start;
use sensorbench_driver::{Column, DriverError, Operation, Parameter, Rows, SchemaError, Type, Value, ValueRef};
use serde::{Deserialize, Serialize};

/// The declared work of one operation; nothing if empty.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// Parameters that the statement gets besides those of the operation.
    #[serde(default)]
    pub derive: Vec<Derive>,
    /// Columns that the statement returns, where they are not those of the operation.
    #[serde(default)]
    pub returns: Vec<Column>,
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
    /// Length of the stretches in µs.
    pub every_us: i64,
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

/// A function of many values. Nulls are passed over; of no values, the greatest and the smallest are null.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reduction {
    /// The greatest.
    Max,
    /// The smallest.
    Min,
    /// How many there are.
    Count,
}

impl Work {
    /// True when the client does nothing after the statement.
    #[inline]
    pub fn leaves_rows_as_they_are(&self) -> bool {
        self.decode.is_none() && self.reduce.is_none()
    }

    /// The operation as the statement sees it: with derived parameters, and the columns that it returns.
    pub fn statement_of(&self, operation: &Operation) -> Result<Operation, SchemaError> {
        let mut statement = operation.clone();
        for derive in &self.derive {
            let is_time = operation.parameters.get(derive.floor).is_some_and(|parameter| parameter.value_type == Type::Timestamp);
            if !is_time || derive.every_us <= 0 {
                let message = format!("parameter :{} must be derived from a timestamp, in stretches above zero", derive.name);
                return Err(SchemaError::at(format!("operation.{}.derive", operation.name), message));
            }
            statement.parameters.push(Parameter { name: derive.name.clone(), value_type: Type::Timestamp });
        }
        if !self.leaves_rows_as_they_are() {
            statement.columns = self.returns.clone();
            statement.order.clear();
        }
        self.check_columns(operation)?;
        Ok(statement)
    }

    fn check_columns(&self, operation: &Operation) -> Result<(), SchemaError> {
        let error = |key: &str, message: &str| Err(SchemaError::at(format!("operation.{}.{key}", operation.name), message));
        if self.leaves_rows_as_they_are() {
            return if self.returns.is_empty() {
                Ok(())
            } else {
                error("returns", "is only for operations with decode or reduce")
            };
        }
        let mut types: Vec<Type> = self.returns.iter().map(|column| column.value_type).collect();
        if let Some(decode) = &self.decode {
            if types.get(decode.column) != Some(&Type::Bytes) {
                return error("decode.column", "must name a returned column of type bytes");
            }
            let is_time = |parameter: &Option<usize>| {
                parameter.is_none_or(|parameter| {
                    operation.parameters.get(parameter).is_some_and(|found| found.value_type == Type::Timestamp)
                })
            };
            if !is_time(&decode.from) || !is_time(&decode.to) {
                return error("decode", "from and to must be parameters of type timestamp");
            }
            types = vec![Type::Timestamp, Type::Double];
        }
        if let Some(reduce) = &self.reduce {
            let Some(reduced) = types.get(reduce.column) else { return error("reduce.column", "names no column") };
            types = vec![if reduce.function == Reduction::Count { Type::Integer } else { *reduced }];
        }
        let expected: Vec<Type> = operation.columns.iter().map(|column| column.value_type).collect();
        if types == expected { Ok(()) } else { error("returns", "the work does not give the columns of the operation") }
    }

    /// Appends the derived parameters to the operation's own.
    #[inline]
    pub fn derive_parameters(&self, parameters: &mut Vec<Value>) {
        for derive in &self.derive {
            if let Value::Timestamp(time) = parameters[derive.floor] {
                parameters.push(Value::Timestamp(stretch_start(time, derive.every_us)));
            }
        }
    }

    /// Makes the operation's rows from those that the statement returned.
    pub fn apply(&self, parameters: &[Value], returned: &Rows, rows: &mut Rows) -> Result<(), DriverError> {
        let Some(reduce) = &self.reduce else {
            return self.visit(parameters, returned, |row| {
                row.iter().for_each(|value| rows.push(*value));
                rows.end_row();
            });
        };
        let mut reduced = Reduced { function: reduce.function, value: Value::Null, count: 0 };
        self.visit(parameters, returned, |row| reduced.take(row[reduce.column]))?;
        rows.push(reduced.value());
        rows.end_row();
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

struct Reduced {
    function: Reduction,
    value: Value,
    count: i64,
}

impl Reduced {
    #[inline]
    fn take(&mut self, value: ValueRef) {
        if value == ValueRef::Null {
            return;
        }
        self.count += 1;
        let is_wanted = match (self.function, self.value.as_ref(), value) {
            (Reduction::Count, ..) => false,
            (_, ValueRef::Null, _) => true,
            (Reduction::Max, kept, value) => is_greater(value, kept),
            (Reduction::Min, kept, value) => is_greater(kept, value),
        };
        if is_wanted {
            self.value = value.to_value();
        }
    }

    fn value(&self) -> ValueRef<'_> {
        if self.function == Reduction::Count { ValueRef::Integer(self.count) } else { self.value.as_ref() }
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

#[cfg(test)]
mod tests {
    use sensorbench_dataset::encoding::encode_batch;

    use super::*;

    const DAY: i64 = 10;

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
            derive: vec![Derive { name: "from_day".to_owned(), floor: 0, every_us: DAY }],
            returns: vec![column("readings", Type::Bytes)],
            decode: Some(Decode { column: 0, encoding: BatchEncoding::Packed, from: Some(0), to: Some(1) }),
            reduce: reduce.map(|function| Reduce { function, column: 1 }),
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

    #[test]
    fn the_statement_sees_derived_parameters_and_its_own_columns() {
        let read = operation(&[("time", Type::Timestamp), ("value", Type::Double)]);
        let statement = work(None).statement_of(&read).unwrap();
        assert_eq!(statement.parameters[2].name, "from_day");
        assert_eq!(statement.columns[0].name, "readings");
        let mut parameters = vec![Value::Timestamp(-3), Value::Timestamp(25)];
        work(None).derive_parameters(&mut parameters);
        assert_eq!(parameters[2], Value::Timestamp(-10));
    }

    #[test]
    fn work_that_does_not_give_the_operations_columns_is_refused() {
        let error = work(Some(Reduction::Count)).statement_of(&operation(&[("peak", Type::Double)])).unwrap_err();
        assert_eq!(error.path, "operation.read.returns");
        let no_bytes = Work { returns: vec![column("readings", Type::Text)], ..work(None) };
        let error = no_bytes.statement_of(&operation(&[("time", Type::Timestamp), ("value", Type::Double)])).unwrap_err();
        assert_eq!(error.path, "operation.read.decode.column");
    }
}
