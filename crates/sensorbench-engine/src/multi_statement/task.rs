//! Which statements a request takes, and with which parameters.

use std::collections::HashSet;

use sensorbench_dataset::encoding::{append_record, encode_batch};
use sensorbench_driver::{DriverError, Request, Rows, Type, Value};

use crate::client_steps::{ClientSteps, Encode, StatementNumbers};
use crate::ready_plan::ReadyPlan;

/// One statement of an operation: its number, and its parameters.
pub(super) struct Statement {
    pub number: usize,
    pub parameters: Set,
}

/// The parameters of one statement: those of the operation, and what makes it another one than its neighbours.
pub(super) enum Set {
    /// As they are.
    Own,
    /// With one more: a part of the data, a batch, or a text that became longer.
    With(Value),
    /// Those of a later reading with this number, from 0, and what follows from them.
    OfLater(usize),
    /// Those of all readings, one reading after the other, each with what follows from it.
    OfAll,
}

/// A statement that goes with the operation's own.
pub(super) struct Accompanying {
    pub statement: Statement,
    /// By what it is remembered, if it need not be issued again.
    pub key: Option<Vec<u8>>,
}

/// What a request of several statements is about: parameters of the operation and those derived, and of its later readings.
pub(super) struct Task<'a, 'r> {
    plan: &'a ReadyPlan,
    operation: usize,
    work: &'a ClientSteps,
    pub own: &'r [Value],
    later_readings: &'r [Value],
    table: usize,
}

impl<'a, 'r> Task<'a, 'r> {
    pub fn of(plan: &'a ReadyPlan, operation: usize, parameters: &'r [Value]) -> Self {
        let work = &plan.work[operation];
        let declared = plan.operations[operation].parameters.len() + work.derive.len();
        let (own, later_readings) = parameters.split_at(declared);
        Self { plan, operation, work, own, later_readings, table: work.table_of(own) }
    }

    fn steps(&self) -> &'a StatementNumbers {
        &self.plan.steps[self.operation]
    }

    /// What must be answered before anything else is issued, if anything must.
    pub fn before(&self) -> Option<Statement> {
        self.steps().before.get(self.table).map(|number| Statement { number: *number, parameters: Set::Own })
    }

    /// The operation's own statement, once or once for each part or reading, in the order that its rows must come in. `found` is the
    /// answer to what was asked before; `writes_many` says whether the session writes all readings by a statement.
    pub fn statements(&self, found: &Rows, writes_many: impl Fn(usize) -> bool) -> Result<Vec<Statement>, DriverError> {
        let number = self.steps().own[self.table];
        let statement = |parameters| Statement { number, parameters };
        if let Some(encode) = &self.work.encode {
            return Ok(vec![statement(Set::With(self.batch(encode)?))]);
        }
        if let Some(append) = self.work.first.as_ref().and_then(|first| first.append.as_ref()) {
            return Ok(vec![statement(Set::With(append.to(found)?))]);
        }
        let Some(for_each) = &self.work.for_each else {
            // What goes with each reading follows from it alone.
            if !self.later_readings.is_empty() && self.work.also.is_empty() && writes_many(number) {
                return Ok(vec![statement(Set::OfAll)]);
            }
            let later = self.later_count();
            return Ok(std::iter::once(Set::Own).chain((0..later).map(Set::OfLater)).map(statement).collect());
        };
        let mut parts = for_each.parts.of(self.own, found);
        if for_each.parts.are_time_buckets() && self.plan.is_latest_first(self.operation) {
            parts.reverse();
        }
        Ok(parts.into_iter().map(|part| statement(Set::With(part))).collect())
    }

    fn later_count(&self) -> usize {
        self.later_readings.len() / self.parameters_of_operation().max(1)
    }

    fn parameters_of_operation(&self) -> usize {
        self.own.len() - self.work.derive.len()
    }

    /// The parameters of a later reading.
    fn later(&self, number: usize) -> &'r [Value] {
        let length = self.parameters_of_operation();
        &self.later_readings[number * length..][..length]
    }

    /// The readings as bytes.
    fn batch(&self, encode: &Encode) -> Result<Value, DriverError> {
        let first = &self.own[..self.parameters_of_operation()];
        let readings = std::iter::once(first).chain(self.later_readings.chunks_exact(first.len()));
        let (mut times, mut values) = (Vec::new(), Vec::new());
        for reading in readings {
            let (Value::Timestamp(time), Value::Double(value)) = (&reading[encode.time], &reading[encode.value]) else {
                return Err(DriverError::Data("a reading of a batch has neither a null time nor a null value".to_owned()));
            };
            times.push(*time);
            values.push(*value);
        }
        let mut bytes = Vec::new();
        encode_batch(encode.encoding, &times, &values, &mut bytes).map_err(|error| DriverError::Data(error.to_string()))?;
        Ok(Value::Bytes(bytes.into()))
    }

    /// Statements that go with the operation's own, where they were not issued with the same values before.
    pub fn also(&self, statements: &[Statement], known: &HashSet<Vec<u8>>) -> Result<Vec<Accompanying>, DriverError> {
        let mut wanted: Vec<Accompanying> = Vec::new();
        for (place, also) in self.work.also.iter().enumerate() {
            for statement in statements {
                let parameters = match statement.parameters {
                    Set::OfLater(number) => Set::OfLater(number),
                    _ => Set::Own,
                };
                let key = self.key(place, &also.once, &parameters)?;
                let is_known = |key: &Vec<u8>| {
                    known.contains(key) || wanted.iter().any(|accompanying| accompanying.key.as_ref() == Some(key))
                };
                if !key.as_ref().is_some_and(is_known) {
                    wanted.push(Accompanying {
                        statement: Statement { number: self.steps().also[place][self.table], parameters },
                        key,
                    });
                }
            }
        }
        Ok(wanted)
    }

    /// By what a statement that is issued once is remembered; None for one that is issued each time.
    fn key(&self, place: usize, once: &[String], parameters: &Set) -> Result<Option<Vec<u8>>, DriverError> {
        if once.is_empty() {
            return Ok(None);
        }
        let mut values = Vec::new();
        self.append_parameters(parameters, &mut values);
        let mut key = vec![place as u8];
        for name in once {
            append_value(&mut key, &values[self.place_of(name)])?;
        }
        Ok(Some(key))
    }

    fn place_of(&self, name: &str) -> usize {
        self.plan.statements[self.operation].parameter(name).expect("checked when the plan was made ready")
    }

    /// Appends the parameters of a statement.
    pub fn append_parameters(&self, parameters: &Set, values: &mut Vec<Value>) {
        match parameters {
            Set::Own => values.extend_from_slice(self.own),
            Set::With(value) => {
                values.extend_from_slice(self.own);
                values.push(value.clone());
            }
            Set::OfLater(number) => self.append_later(*number, values),
            Set::OfAll => {
                values.extend_from_slice(self.own);
                (0..self.later_count()).for_each(|number| self.append_later(number, values));
            }
        }
    }

    /// Appends the parameters of a later reading, and what follows from them.
    fn append_later(&self, number: usize, values: &mut Vec<Value>) {
        let start = values.len();
        values.extend_from_slice(self.later(number));
        self.work.derive_parameters_from(start, values);
    }

    /// Makes `request` ask for one statement.
    pub fn put(&self, statement: &Statement, request: &mut Request) {
        request.operation = statement.number;
        request.rows.clear();
        request.parameters.clear();
        self.append_parameters(&statement.parameters, &mut request.parameters);
    }
}

fn append_value(key: &mut Vec<u8>, value: &Value) -> Result<(), DriverError> {
    let value = value.as_ref();
    // A null is written alike whatever type it has.
    let value_type = value.value_type().unwrap_or(Type::Integer);
    append_record(key, value_type, value).map_err(|error| DriverError::Data(error.to_string()))
}
