//! What the client makes of the rows that a statement returned: decoding, reduction, rows that differ.

use std::collections::HashSet;

use sensorbench_dataset::encoding::{append_record, decode_batch};
use sensorbench_driver::{DriverError, Rows, Value, ValueRef};

use super::declared::ClientSteps;
use crate::reduction::Reduced;

impl ClientSteps {
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

#[cfg(test)]
mod tests {
    use sensorbench_dataset::encoding::{BatchEncoding, encode_batch};
    use sensorbench_driver::Type;

    use super::*;
    use crate::client_steps::declared::Reduce;
    use crate::client_steps::examples::{column, operation, steps};
    use crate::reduction::Reduction;

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

    fn applied(steps: &ClientSteps, parameters: [i64; 2], returned: &Rows) -> Vec<Vec<Value>> {
        let mut rows = Rows::new();
        steps.apply(&parameters.map(Value::Timestamp), returned, &mut rows).unwrap();
        rows.iter().map(|row| (0..row.columns()).map(|column| row.value(column).to_value()).collect()).collect()
    }

    #[test]
    fn batches_become_the_rows_of_the_range() {
        let returned = batches(&[&[(1, 0.1), (9, 0.9)], &[(10, 1.0), (12, 1.2)]]);
        let rows = applied(&steps(None), [9, 12], &returned);
        assert_eq!(rows, [[Value::Timestamp(9), Value::Double(0.9)], [Value::Timestamp(10), Value::Double(1.0)]]);
    }

    #[test]
    fn rows_are_reduced_to_one() {
        let returned = batches(&[&[(1, -1.5), (9, -7.0)]]);
        assert_eq!(applied(&steps(Some(Reduction::Max)), [0, 99], &returned), [[Value::Double(-1.5)]]);
        assert_eq!(applied(&steps(Some(Reduction::Min)), [0, 99], &returned), [[Value::Double(-7.0)]]);
        assert_eq!(applied(&steps(Some(Reduction::Count)), [0, 99], &returned), [[Value::Integer(2)]]);
        assert_eq!(applied(&steps(Some(Reduction::Max)), [50, 99], &returned), [[Value::Null]]);
        assert_eq!(applied(&steps(Some(Reduction::Count)), [50, 99], &returned), [[Value::Integer(0)]]);
    }

    /// The sum of one column of rows, as an answer or an error.
    fn sum(values: &[Value]) -> Result<Value, String> {
        let steps = ClientSteps { reduce: Some(Reduce { function: Reduction::Sum, column: 0 }), ..ClientSteps::default() };
        let mut returned = Rows::new();
        for value in values {
            returned.push(value.as_ref());
            returned.end_row();
        }
        let mut rows = Rows::new();
        steps.apply(&[], &returned, &mut rows).map_err(|error| error.to_string())?;
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
    fn of_equal_rows_one_is_kept() {
        let returns = [("floor", Type::Integer), ("sensor", Type::Text), ("zone", Type::Integer)];
        let returns = returns.map(|(name, value_type)| column(name, value_type)).to_vec();
        let steps = ClientSteps { returns, distinct: vec![2, 0], ..ClientSteps::default() };
        let mut returned = Rows::new();
        for (floor, sensor, zone) in [(1, "AC1", 7), (1, "AC2", 7), (2, "AC1", 7), (1, "Light", 7)] {
            returned.push(ValueRef::Integer(floor));
            returned.push(ValueRef::Text(sensor));
            returned.push(ValueRef::Integer(zone));
            returned.end_row();
        }
        assert_eq!(applied(&steps, [0, 0], &returned), [[7, 1], [7, 2]].map(|row| row.map(Value::Integer)));
        let two_integers = operation(&[("zone", Type::Integer), ("floor", Type::Integer)]);
        assert_eq!(steps.statement_of(&two_integers).unwrap().columns.len(), 3);
        let error = ClientSteps { distinct: vec![3], ..steps }.statement_of(&two_integers).unwrap_err();
        assert_eq!(error.path, "operation.read.distinct");
    }
}
