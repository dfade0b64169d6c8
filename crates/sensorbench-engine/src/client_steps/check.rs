//! Refuses declared steps that cannot be taken, with their place in the schema file.

use sensorbench_driver::{Operation, SchemaError, Type};

use super::declared::ClientSteps;
use super::parts::Parts;
use crate::reduction::Reduction;

impl ClientSteps {
    pub(super) fn check_writing(&self, with_derived: &Operation) -> Result<(), SchemaError> {
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

    pub(super) fn check_parts(&self, operation: &Operation, parts: &Parts) -> Result<(), SchemaError> {
        let error = |message: &str| Err(schema_error(operation, "for_each", message));
        if operation.columns.is_empty() {
            return error("is only for operations that return rows");
        }
        match parts {
            Parts::TimeBuckets { from, to, every } => {
                if !is_time(operation, *from) || !is_time(operation, *to) || !every.is_above_zero() {
                    return error("from and to must be timestamps, the time buckets above zero");
                }
            }
            Parts::Listed(listed) => {
                let column_is = |column: usize, expected: Option<Type>| {
                    listed.returns.get(column).is_some_and(|found| expected.is_none_or(|expected| found.value_type == expected))
                };
                if !is_time(operation, listed.from) || !is_time(operation, listed.to) || !listed.every.is_above_zero() {
                    return error("from and to must be timestamps, the time buckets above zero");
                }
                let own = |(column, parameter): &(usize, usize)| {
                    operation.parameters.get(*parameter).is_some_and(|found| column_is(*column, Some(found.value_type)))
                };
                if !column_is(listed.start, Some(Type::Timestamp)) || !listed.own.iter().all(own) {
                    return error(
                        "what is listed must have the start of a stretch, a timestamp, and the columns that distinguish its own rows",
                    );
                }
            }
            Parts::Rows(rows) if rows.column >= rows.returns.len() => {
                return error("what is listed must have the column that distinguishes its rows");
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

    pub(super) fn check_columns(&self, operation: &Operation) -> Result<(), SchemaError> {
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
}

pub(super) fn schema_error(operation: &Operation, key: &str, message: impl Into<String>) -> SchemaError {
    SchemaError::at(format!("operation.{}.{key}", operation.name), message)
}

pub(super) fn is_time(operation: &Operation, parameter: usize) -> bool {
    operation.parameters.get(parameter).is_some_and(|found| found.value_type == Type::Timestamp)
}

#[cfg(test)]
mod tests {
    use sensorbench_dataset::Every;
    use sensorbench_driver::{Direction, Order};

    use super::*;
    use crate::client_steps::declared::Reduce;
    use crate::client_steps::examples::{DAY, DAYS, column, for_each, operation, rows_of, steps};

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
            let steps = ClientSteps { returns: vec![column("counted", returned)], reduce, ..ClientSteps::default() };
            let error = steps.statement_of(&operation(&[("all", returned)])).err().map(|error| error.path);
            assert_eq!(error, is_refused.then(|| "operation.read.reduce.column".to_owned()), "{returned:?}");
        }
    }

    #[test]
    fn work_that_does_not_give_the_operations_columns_is_refused() {
        let error = steps(Some(Reduction::Count)).statement_of(&operation(&[("peak", Type::Double)])).unwrap_err();
        assert_eq!(error.path, "operation.read.returns");
        let no_bytes = ClientSteps { returns: vec![column("readings", Type::Text)], ..steps(None) };
        let error = no_bytes.statement_of(&operation(&[("time", Type::Timestamp), ("value", Type::Double)])).unwrap_err();
        assert_eq!(error.path, "operation.read.decode.column");
    }

    #[test]
    fn parts_that_make_no_sense_are_refused() {
        let refused = |steps: ClientSteps, operation: &Operation| {
            let error = steps.statement_of(operation).unwrap_err();
            assert_eq!(error.path, "operation.read.for_each");
            error.message
        };
        let read = operation(&[("time", Type::Timestamp), ("value", Type::Double)]);
        assert!(refused(for_each("to", DAYS), &read).contains("parameter :to already"));
        assert!(refused(for_each("from_day", DAYS), &read).contains("parameter :from_day already"));
        let no_time = Parts::TimeBuckets { from: 0, to: 2, every: DAY };
        assert!(refused(for_each("day", no_time), &read).contains("must be timestamps"));
        let no_length = Parts::TimeBuckets { from: 0, to: 1, every: Every::Months(0) };
        assert!(refused(for_each("day", no_length), &read).contains("above zero"));
        assert!(refused(for_each("shard", Parts::Shards(0)), &read).contains("at least one shard"));
        assert!(refused(for_each("key", rows_of(2)), &read).contains("the column that distinguishes its rows"));
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
        let reduced = ClientSteps { reduce: steps(Some(Reduction::Max)).reduce, ..for_each("shard", Parts::Shards(2)) };
        assert!(reduced.statement_of(&peak).is_ok());
    }
}
