//! An operation that reads by SQL: its parameters are bound by the server, and its answer comes as JSON Lines, a row each.

use sensorbench_driver::{
    Column, ConversionError, DriverError, Operation, Parameter, Rows, Type, Value, ValueRef, calendar, parse_part,
    quoted as quoted_name,
};
use serde::Deserialize;

use crate::answer::push;
use crate::connection::Call;
use crate::json::{Reader, Scalar};
use crate::protocol::{AnswerState, Reading};
use crate::schema::row_names;
use crate::template::{Form, Language, Piece, Template, append_number, identifier, quoted, tag_text};

const LANGUAGE: Language = Language { identifiers: true, own: false };
pub const QUERY_PATH: &str = "/api/v3/query_sql";

/// `[operation.NAME]` of a schema file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadText {
    query: String,
    row: Option<Vec<String>>,
}

pub struct SqlReading {
    name: String,
    database: String,
    /// The query; what the server binds is `$p0`, `$p1`, ….
    pieces: Vec<Piece>,
    /// What is bound, in order.
    bound: Vec<(usize, Form)>,
    parameters: Vec<Parameter>,
    columns: Vec<Column>,
    /// Where each column is in the answer.
    row: Vec<String>,
}

impl SqlReading {
    pub fn of(database: &str, operation: &Operation) -> Result<Self, DriverError> {
        let path = format!("operation.{}", operation.name);
        let text: ReadText = parse_part(&path, &operation.statement)?;
        let template = Template::of(operation, &format!("{path}.query"), &text.query, LANGUAGE)?;
        let (pieces, bound) = template.bound();
        Ok(Self {
            name: operation.name.clone(),
            database: database.to_owned(),
            pieces,
            bound,
            parameters: operation.parameters.clone(),
            columns: operation.columns.clone(),
            row: row_names(operation, text.row)?,
        })
    }

    fn parameter_refused(&self, place: usize, error: ConversionError) -> DriverError {
        let error = error.at("parameter", &self.parameters[place].name);
        DriverError::Data(format!("{}: {error}", self.name))
    }

    fn query(&self, parameters: &[Value]) -> Result<String, DriverError> {
        let mut query = String::with_capacity(256);
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => query.push_str(text),
                Piece::Identifier(place) => {
                    let value = parameters[*place].as_ref();
                    identifier(value).map_err(|error| self.parameter_refused(*place, error))?;
                    if let ValueRef::Text(name) = value {
                        query.push_str(&quoted_name(name));
                    }
                }
                Piece::Value(..) | Piece::Own(_) => unreachable!("bound, or left as it is"),
            }
        }
        Ok(query)
    }

    /// A row of the answer. A null is not in it.
    fn read_row(&self, line: &[u8], rows: &mut Rows) -> Result<(), ConversionError> {
        let mut cells: Vec<Scalar> = vec![Scalar::Null; self.row.len()];
        Reader::new(line).object(|reader, key| match self.row.iter().position(|name| *name == key) {
            Some(place) => {
                cells[place] = reader.scalar()?;
                Ok(())
            }
            None => reader.skip(),
        })?;
        for (column, cell) in self.columns.iter().zip(&cells) {
            push_cell(rows, column.value_type, cell).map_err(|error| error.at("column", &column.name))?;
        }
        rows.end_row();
        Ok(())
    }
}

/// Times come as texts of the calendar.
fn push_cell(rows: &mut Rows, value_type: Type, cell: &Scalar) -> Result<(), ConversionError> {
    match cell {
        Scalar::Text(text) if value_type == Type::Timestamp => {
            let time = calendar::read(text);
            let time = time.ok_or_else(|| ConversionError(format!("expected a time in whole µs, found {text}")))?;
            rows.push(ValueRef::Timestamp(time));
            Ok(())
        }
        cell => push(rows, value_type, cell, 1),
    }
}

/// The request of a query with what is bound, as JSON.
pub fn call(database: &str, query: &str, bound: &str) -> Call {
    let body = format!("{{\"db\":{},\"q\":{},\"format\":\"jsonl\",\"params\":{{{bound}}}}}", quoted(database), quoted(query));
    Call::post_json(QUERY_PATH, body.into_bytes())
}

fn append_bound(json: &mut String, value: ValueRef, bound_as: Form) -> Result<(), ConversionError> {
    match (value, bound_as) {
        (ValueRef::Null, _) => return Err(ConversionError("null cannot be compared with anything".to_owned())),
        (value, Form::Text) => json.push_str(&quoted(&tag_text(value)?)),
        (ValueRef::Text(text), _) => json.push_str(&quoted(text)),
        (ValueRef::Boolean(value), _) => json.push_str(if value { "true" } else { "false" }),
        (ValueRef::Timestamp(time), Form::Micros) => append_number(json, ValueRef::Integer(time))?,
        (ValueRef::Timestamp(time), _) => json.push_str(&quoted(&calendar::written(time))),
        (value, _) => append_number(json, value)?,
    }
    Ok(())
}

impl Reading for SqlReading {
    fn call(&self, parameters: &[Value]) -> Result<Option<Call>, DriverError> {
        let mut bound = String::new();
        for (number, (place, bound_as)) in self.bound.iter().enumerate() {
            bound.push_str(&format!("{}\"p{number}\":", if number == 0 { "" } else { "," }));
            append_bound(&mut bound, parameters[*place].as_ref(), *bound_as)
                .map_err(|error| self.parameter_refused(*place, error))?;
        }
        Ok(Some(call(&self.database, &self.query(parameters)?, &bound)))
    }

    fn read(&self, line: &[u8], _: &[Value], _: &mut AnswerState, rows: &mut Rows) -> Result<(), DriverError> {
        self.read_row(line, rows).map_err(|error| DriverError::Data(format!("{}: {error}", self.name)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::connection::Body;

    fn reading(query: &str) -> SqlReading {
        let operation = serde_json::from_value(json!({
            "name": "q",
            "parameters": [
                {"name": "site", "type": "integer"}, {"name": "sensor", "type": "text"}, {"name": "from", "type": "timestamp"},
            ],
            "columns": [{"name": "time", "type": "timestamp"}, {"name": "site", "type": "integer"}, {"name": "value", "type": "double"}],
            "statement": {"query": query},
        }));
        SqlReading::of("ours", &operation.unwrap()).unwrap()
    }

    fn sent(reading: &SqlReading, sensor: &str) -> Json {
        let parameters = [Value::Integer(5), Value::Text(sensor.into()), Value::Timestamp(1)];
        let Some(Call { path, body: Some(Body::Json(json)) }) = reading.call(&parameters).unwrap() else { panic!("JSON") };
        assert_eq!(path, "/api/v3/query_sql");
        serde_json::from_slice(&json).unwrap()
    }

    #[test]
    fn values_are_bound_and_names_are_quoted() {
        let bound =
            reading("SELECT value FROM m WHERE site = :site@text AND sensor = :sensor AND time >= :from AND t > :from@us");
        let hostile = "x' OR 'a'='a\" }, \\";
        assert_eq!(
            sent(&bound, hostile),
            json!({
                "db": "ours",
                "q": "SELECT value FROM m WHERE site = $p0 AND sensor = $p1 AND time >= $p2 AND t > $p3",
                "format": "jsonl",
                "params": {"p0": "5", "p1": hostile, "p2": "1970-01-01T00:00:00.000001", "p3": 1},
            })
        );
        let named = reading("SELECT \":sensor\" AS value FROM m");
        assert_eq!(sent(&named, "a\" FROM other --")["q"], "SELECT \"a\"\" FROM other --\" AS value FROM m");
        assert!(named.call(&[Value::Null, Value::Text("a\nb".into()), Value::Null]).is_err());
        assert!(bound.call(&[Value::Null, Value::Null, Value::Null]).is_err());
    }

    /// As InfluxDB 3's documentation shows JSON Lines: times without a zone, and nulls left out.
    #[test]
    fn a_line_is_a_row_and_what_is_not_in_it_is_null() {
        let query = reading("SELECT time, site, value FROM m");
        let mut rows = Rows::new();
        for line in
            [r#"{"time":"2025-01-20T17:01:40.690067","site":"5","value":0.5,"other":[1]}"#, r#"{"time":"2025-01-20T17:01:40"}"#]
        {
            query.read(line.as_bytes(), &[], &mut AnswerState::default(), &mut rows).unwrap();
        }
        let values: Vec<Vec<Value>> =
            rows.iter().map(|row| (0..3).map(|column| row.value(column).to_value()).collect()).collect();
        let time = 1_737_392_500_000_000;
        assert_eq!(
            values,
            [
                [Value::Timestamp(time + 690_067), Value::Integer(5), Value::Double(0.5)],
                [Value::Timestamp(time), Value::Null, Value::Null],
            ]
        );
        for (line, expected) in [("{\"time\":\"now\"}", "column time: expected a time"), ("[1]", "expected")] {
            let refused = query.read(line.as_bytes(), &[], &mut AnswerState::default(), &mut Rows::new()).unwrap_err();
            assert!(refused.to_string().contains(expected), "{refused}");
        }
    }
}
