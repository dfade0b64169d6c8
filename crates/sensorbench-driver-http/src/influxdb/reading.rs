//! An operation that reads by InfluxQL: its parameters are bound by the server, and its answer comes in chunks, a line each.

use std::borrow::Cow;

use percent_encoding::utf8_percent_encode;
use sensorbench_driver::{Column, ConversionError, DriverError, Operation, Parameter, Rows, Value, ValueRef, parse_part};
use serde::Deserialize;

use crate::answer::push;
use crate::connection::{Call, ENCODED};
use crate::json::{Reader, Scalar};
use crate::protocol::{AnswerState, Reading};
use crate::schema::row_names;
use crate::template::{Form, Language, Piece, Template, append_number, identifier, quoted, tag_text};

const LANGUAGE: Language = Language { identifiers: true, own: false };

/// `[operation.NAME]` of a schema file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadText {
    query: String,
    row: Option<Vec<String>>,
}

/// What is bound to a name.
struct Bound {
    /// What stands before the value in the form: the name, and what comes before it.
    key: String,
    /// The parameter that has the value.
    place: usize,
    form: Form,
}

impl Bound {
    fn of(number: usize, (place, form): (usize, Form)) -> Self {
        let (begin, before) = if number == 0 { ("&params=", "{") } else { ("", ",") };
        let name = format!("{before}\"p{number}\":");
        Self { key: format!("{begin}{}", utf8_percent_encode(&name, ENCODED)), place, form }
    }
}

/// A brace, encoded.
const END_OF_BOUND: &str = "%7D";

pub struct InfluxReading {
    name: String,
    /// The form up to the query: which database, and how the answer is to come.
    head: String,
    /// The query, encoded for the form; what the server binds is `$p0`, `$p1`, ….
    pieces: Vec<Piece>,
    /// What is bound, in order.
    bound: Vec<Bound>,
    parameters: Vec<Parameter>,
    columns: Vec<Column>,
    /// Where each column is in the answer.
    row: Vec<String>,
}

impl InfluxReading {
    pub fn of(namespace: &str, operation: &Operation) -> Result<Self, DriverError> {
        let path = format!("operation.{}", operation.name);
        let text: ReadText = parse_part(&path, &operation.statement)?;
        let template = Template::of(operation, &format!("{path}.query"), &text.query, LANGUAGE)?;
        let (pieces, bound) = template.bound();
        let pieces = pieces.into_iter().map(|piece| match piece {
            Piece::Text(text) => Piece::Text(utf8_percent_encode(&text, ENCODED).to_string()),
            other => other,
        });
        let row = row_names(operation, text.row)?;
        Ok(Self {
            name: operation.name.clone(),
            head: format!("db={namespace}&epoch=u&chunked=true&q="),
            pieces: pieces.collect(),
            bound: bound.into_iter().enumerate().map(|(number, bound)| Bound::of(number, bound)).collect(),
            parameters: operation.parameters.clone(),
            columns: operation.columns.clone(),
            row,
        })
    }

    fn refused(&self, error: ConversionError) -> DriverError {
        DriverError::Data(format!("{}: {error}", self.name))
    }

    fn parameter_refused(&self, place: usize, error: ConversionError) -> DriverError {
        self.refused(error.at("parameter", &self.parameters[place].name))
    }

    /// What is bound, as JSON.
    fn append_bound(&self, form: &mut String, parameters: &[Value]) -> Result<(), DriverError> {
        let mut json = String::with_capacity(32);
        for Bound { key, place, form: bound_as } in &self.bound {
            form.push_str(key);
            json.clear();
            append_bound(&mut json, parameters[*place].as_ref(), *bound_as)
                .map_err(|error| self.parameter_refused(*place, error))?;
            form.extend(utf8_percent_encode(&json, ENCODED));
        }
        form.push_str(END_OF_BOUND);
        Ok(())
    }

    /// One chunk of the answer.
    fn read_chunk(&self, reader: &mut Reader, rows: &mut Rows, refusal: &mut Option<String>) -> Result<(), ConversionError> {
        reader.object(|reader, key| match key.as_ref() {
            "results" => reader.list(|reader| {
                reader.object(|reader, key| match key.as_ref() {
                    "series" => reader.list(|reader| self.read_series(reader, rows)),
                    "error" => {
                        *refusal = Some(reader.string()?.into_owned());
                        Ok(())
                    }
                    _ => reader.skip(),
                })
            }),
            "error" => {
                *refusal = Some(reader.string()?.into_owned());
                Ok(())
            }
            _ => reader.skip(),
        })
    }

    fn read_series(&self, reader: &mut Reader, rows: &mut Rows) -> Result<(), ConversionError> {
        let mut tags: Vec<(Cow<str>, Cow<str>)> = Vec::new();
        let mut names: Vec<Cow<str>> = Vec::new();
        let mut cells: Vec<Scalar> = Vec::new();
        let mut sources: Vec<Source> = Vec::new();
        reader.object(|reader, key| match key.as_ref() {
            "tags" => reader.object(|reader, tag| {
                tags.push((tag, reader.string()?));
                Ok(())
            }),
            "columns" => reader.list(|reader| {
                names.push(reader.string()?);
                Ok(())
            }),
            "values" => {
                sources.clear();
                for name in &self.row {
                    sources.push(Source::of(name, &names, &tags)?);
                }
                reader.list(|reader| {
                    cells.clear();
                    reader.list(|reader| {
                        cells.push(reader.scalar()?);
                        Ok(())
                    })?;
                    for (column, source) in self.columns.iter().zip(&sources) {
                        let cell = match source {
                            Source::Column(place) => cells.get(*place).unwrap_or(&Scalar::Null),
                            Source::Tag(text) => text,
                        };
                        push(rows, column.value_type, cell, 1).map_err(|error| error.at("column", &column.name))?;
                    }
                    rows.end_row();
                    Ok(())
                })
            }
            _ => reader.skip(),
        })
    }
}

/// Where a column of an answer is.
enum Source {
    Column(usize),
    Tag(Scalar<'static>),
}

impl Source {
    fn of(name: &str, columns: &[Cow<str>], tags: &[(Cow<str>, Cow<str>)]) -> Result<Self, ConversionError> {
        if let Some(place) = columns.iter().position(|column| column == name) {
            return Ok(Self::Column(place));
        }
        match tags.iter().find(|(tag, _)| tag == name) {
            Some((_, value)) => Ok(Self::Tag(Scalar::Text(Cow::Owned(value.clone().into_owned())))),
            None => Err(ConversionError(format!("the answer has no column {name}; it has {}", columns.join(", ")))),
        }
    }
}

/// A value as InfluxDB binds it.
fn append_bound(json: &mut String, value: ValueRef, bound_as: Form) -> Result<(), ConversionError> {
    match (value, bound_as) {
        (ValueRef::Null, _) => return Err(ConversionError("null cannot be compared with anything".to_owned())),
        (value, Form::Text) => json.push_str(&quoted(&tag_text(value)?)),
        (ValueRef::Text(text), _) => json.push_str(&quoted(text)),
        (ValueRef::Boolean(value), _) => json.push_str(if value { "true" } else { "false" }),
        (ValueRef::Timestamp(time), Form::Micros) => append_number(json, ValueRef::Integer(time))?,
        // A bound beyond all times that InfluxDB has is as good as its first or last.
        (ValueRef::Timestamp(time), _) => {
            append_number(json, ValueRef::Integer(time.saturating_mul(1000).clamp(-i64::MAX + 1, i64::MAX - 1)))?
        }
        (value, _) => append_number(json, value)?,
    }
    Ok(())
}

impl Reading for InfluxReading {
    fn call(&self, parameters: &[Value]) -> Result<Option<Call>, DriverError> {
        let mut form = String::with_capacity(512);
        form.push_str(&self.head);
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => form.push_str(text),
                Piece::Identifier(place) => {
                    let name = identifier(parameters[*place].as_ref()).map_err(|error| self.parameter_refused(*place, error))?;
                    form.extend(utf8_percent_encode(&name, ENCODED));
                }
                Piece::Value(..) | Piece::Own(_) => unreachable!("bound, or left as it is"),
            }
        }
        if !self.bound.is_empty() {
            self.append_bound(&mut form, parameters)?;
        }
        Ok(Some(Call::form("/query", form)))
    }

    fn read(&self, line: &[u8], _: &[Value], _: &mut AnswerState, rows: &mut Rows) -> Result<(), DriverError> {
        let mut refusal = None;
        self.read_chunk(&mut Reader::new(line), rows, &mut refusal).map_err(|error| self.refused(error))?;
        refusal.map_or(Ok(()), |text| Err(DriverError::Statement(text)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::connection::Body;

    fn reading(query: &str, row: Option<&[&str]>) -> InfluxReading {
        let mut statement = json!({"query": query});
        if let Some(row) = row {
            statement["row"] = json!(row);
        }
        let operation = serde_json::from_value(json!({
            "name": "q",
            "parameters": [
                {"name": "site", "type": "integer"}, {"name": "sensor", "type": "text"}, {"name": "from", "type": "timestamp"},
            ],
            "columns": [{"name": "site", "type": "integer"}, {"name": "value", "type": "double"}],
            "statement": statement,
        }));
        InfluxReading::of("ours", &operation.unwrap()).unwrap()
    }

    fn sent(reading: &InfluxReading, sensor: &str) -> String {
        let parameters = [Value::Integer(5), Value::Text(sensor.into()), Value::Timestamp(1)];
        let Some(Call { body: Some(Body::Form(form)), .. }) = reading.call(&parameters).unwrap() else { panic!("a form") };
        percent_encoding::percent_decode_str(&form).decode_utf8().unwrap().into_owned()
    }

    #[test]
    fn values_are_bound_and_names_are_quoted() {
        let bound =
            reading("SELECT value FROM m WHERE site = :site@text AND sensor = :sensor AND time >= :from AND t > :from@us", None);
        let hostile = "x' OR 'a'='a\" & db=other\\";
        assert_eq!(
            sent(&bound, hostile),
            "db=ours&epoch=u&chunked=true&q=SELECT value FROM m WHERE site = $p0 AND sensor = $p1 AND time >= $p2 AND t > $p3&params=\
             {\"p0\":\"5\",\"p1\":\"x' OR 'a'='a\\\" & db=other\\\\\",\"p2\":1000,\"p3\":1}"
        );
        let named = reading("SELECT \":sensor\" AS value FROM m", None);
        assert!(sent(&named, "a\" FROM other --").ends_with("q=SELECT \"a\\\" FROM other --\" AS value FROM m"));
        let refused = named.call(&[Value::Null, Value::Text("a\nb".into()), Value::Null]).unwrap_err();
        assert!(
            refused.to_string().contains("q: parameter sensor") && refused.to_string().contains("cannot be a name"),
            "{refused}"
        );
        let null = bound.call(&[Value::Null, Value::Null, Value::Null]).unwrap_err().to_string();
        assert!(null.contains("parameter site: null cannot be compared"), "{null}");
    }

    #[test]
    fn columns_come_from_the_answer_and_from_its_tags() {
        let mut rows = Rows::new();
        let line = br#"{"results":[{"statement_id":0,"series":[{"name":"m","tags":{"site":"5"},"columns":["time","v"],"values":[[1,0.5],[2,null]]},
            {"name":"m","tags":{"site":"6"},"columns":["time","v"],"values":[[1,7]],"partial":true}]}]}"#;
        reading("SELECT v FROM m GROUP BY site", Some(&["site", "v"]))
            .read(line, &[], &mut AnswerState::default(), &mut rows)
            .unwrap();
        let values: Vec<_> = rows.iter().map(|row| [row.value(0).to_value(), row.value(1).to_value()]).collect();
        assert_eq!(
            values,
            [[Value::Integer(5), Value::Double(0.5)], [Value::Integer(5), Value::Null], [Value::Integer(6), Value::Double(7.0)]]
        );
        let missing = reading("SELECT v FROM m", None)
            .read(line, &[], &mut AnswerState::default(), &mut Rows::new())
            .unwrap_err()
            .to_string();
        assert!(missing.contains("the answer has no column value; it has time, v"), "{missing}");
    }

    #[test]
    fn what_the_server_refuses_is_an_error_in_its_words() {
        for line in ["{\"error\":\"no such thing\"}", "{\"results\":[{\"statement_id\":0,\"error\":\"no such thing\"}]}"] {
            let error = reading("SELECT value FROM m", None)
                .read(line.as_bytes(), &[], &mut AnswerState::default(), &mut Rows::new())
                .unwrap_err();
            assert!(matches!(&error, DriverError::Statement(text) if text == "no such thing"), "{error}");
        }
    }
}
