//! An operation that reads by Flux: its values are literals of Flux, and its answer comes as annotated CSV, tables one after the other.

use std::borrow::Cow;

use sensorbench_driver::{
    Column, ConversionError, DriverError, Operation, Parameter, Rows, SchemaError, Type, Value, ValueRef, calendar, parse_part,
};
use serde::Deserialize;

use crate::answer::push;
use crate::connection::Call;
use crate::json::Scalar;
use crate::protocol::{AnswerState, Reading};
use crate::schema::row_names;
use crate::template::{Form, Language, Piece, Template, quoted, tag_text};

const LANGUAGE: Language = Language { identifiers: false, own: true };
/// Stands for sensorbench's bucket.
const BUCKET: &str = "bucket";
/// Stands before the names of columns, and says that a table begins.
const ANNOTATION: &[u8] = b"#datatype";
/// The column of a table that says why the server gave up.
const ERROR: &str = "error";
const ANSWER_FORM: &str = r##"{"annotations":["datatype"],"header":true,"delimiter":",","commentPrefix":"#"}"##;

/// `[operation.NAME]` of a schema file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadText {
    query: String,
    row: Option<Vec<String>>,
}

pub struct FluxReading {
    name: String,
    path: String,
    pieces: Vec<Piece>,
    parameters: Vec<Parameter>,
    columns: Vec<Column>,
    /// Where each column is in the answer.
    row: Vec<String>,
}

impl FluxReading {
    /// `path` is where queries are sent, the organisation included.
    pub fn of(path: String, bucket: &str, operation: &Operation) -> Result<Self, DriverError> {
        let at = format!("operation.{}", operation.name);
        let text: ReadText = parse_part(&at, &operation.statement)?;
        let at = format!("{at}.query");
        let template = Template::of(operation, &at, &text.query, LANGUAGE)?;
        let piece = |piece| match piece {
            Piece::Own(name) if name == BUCKET => Ok(Piece::Text(literal_text(bucket))),
            Piece::Own(name) => Err(SchemaError::at(&at, format!("::{name}: expected ::{BUCKET}, the bucket of the target"))),
            other => Ok(other),
        };
        Ok(Self {
            name: operation.name.clone(),
            path,
            pieces: template.0.into_iter().map(piece).collect::<Result<_, _>>()?,
            parameters: operation.parameters.clone(),
            columns: operation.columns.clone(),
            row: row_names(operation, text.row)?,
        })
    }

    fn refused(&self, error: ConversionError) -> DriverError {
        DriverError::Data(format!("{}: {error}", self.name))
    }

    /// What the lines after the names of a table's columns are.
    fn after_names(&self, names: &[Cow<str>]) -> Result<AnswerState, ConversionError> {
        let place = |name: &str| names.iter().position(|found| found == name);
        if place(ERROR).is_some_and(|place| place <= 1) {
            return Ok(AnswerState::Refusal);
        }
        let found = |name: &String| {
            place(name).ok_or_else(|| ConversionError(format!("the answer has no column {name}; it has {}", names.join(","))))
        };
        self.row.iter().map(found).collect::<Result<_, _>>().map(AnswerState::Rows)
    }

    fn read_row(&self, cells: &[Cow<str>], places: &[usize], rows: &mut Rows) -> Result<(), ConversionError> {
        for (column, place) in self.columns.iter().zip(places) {
            let cell = cells.get(*place).ok_or_else(|| ConversionError("a line of the answer ends early".to_owned()))?;
            push_cell(rows, column.value_type, cell).map_err(|error| error.at("column", &column.name))?;
        }
        rows.end_row();
        Ok(())
    }
}

/// Nothing stands for null. Times are texts of the calendar.
fn push_cell(rows: &mut Rows, value_type: Type, cell: &str) -> Result<(), ConversionError> {
    if cell.is_empty() {
        rows.push(ValueRef::Null);
        return Ok(());
    }
    if value_type == Type::Timestamp {
        let time = calendar::read(cell);
        let time = time.ok_or_else(|| ConversionError(format!("expected a time in whole µs, found {cell}")))?;
        rows.push(ValueRef::Timestamp(time));
        return Ok(());
    }
    push(rows, value_type, &Scalar::Text(Cow::Borrowed(cell)), 1)
}

/// The fields of a line, without the quotes around them.
fn fields(line: &[u8]) -> Result<Vec<Cow<'_, str>>, ConversionError> {
    let text = std::str::from_utf8(line).map_err(|error| ConversionError(error.to_string()))?;
    let mut rest = text.trim_end_matches('\r');
    let mut fields = Vec::with_capacity(8);
    loop {
        let (field, after) = match rest.strip_prefix('"') {
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (Cow::Borrowed(&rest[..end]), &rest[end..])
            }
            Some(quoted) => {
                let end = closing_quote(quoted).ok_or_else(|| {
                    ConversionError("a text of the answer has a line end, which this driver does not read from Flux".to_owned())
                })?;
                let inner = &quoted[..end];
                let field = if inner.contains('"') { Cow::Owned(inner.replace("\"\"", "\"")) } else { Cow::Borrowed(inner) };
                (field, &quoted[end + 1..])
            }
        };
        fields.push(field);
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None => return Ok(fields),
        }
    }
}

/// Where the quote is that ends a field; two are one that stands for itself.
fn closing_quote(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match (byte, bytes.get(at + 1)) {
            (b'"', Some(b'"')) => at += 2,
            (b'"', _) => return Some(at),
            _ => at += 1,
        }
    }
    None
}

/// A text as Flux writes it. What could end it, or begin something within it, is written by its number.
fn literal_text(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' | '$' => literal.push_str(&format!("\\x{:02x}", u32::from(character))),
            other if other.is_ascii_control() => literal.push_str(&format!("\\x{:02x}", u32::from(other))),
            other => literal.push(other),
        }
    }
    literal.push('"');
    literal
}

/// A value as Flux writes it.
fn literal(value: ValueRef, form: Form) -> Result<String, ConversionError> {
    Ok(match (value, form) {
        (ValueRef::Null, _) => return Err(ConversionError("null cannot be compared with anything".to_owned())),
        (value, Form::Text) => literal_text(&tag_text(value)?),
        (ValueRef::Text(text), _) => literal_text(text),
        (ValueRef::Timestamp(time), Form::Micros) => time.to_string(),
        (ValueRef::Timestamp(time), _) => format!("{}Z", calendar::written(time)),
        (ValueRef::Boolean(value), _) => value.to_string(),
        // Its digits stand without a sign, which is an operator of its own.
        (ValueRef::Integer(i64::MIN), _) => return Err(ConversionError("the smallest integer cannot be written".to_owned())),
        (ValueRef::Integer(value), _) => value.to_string(),
        // Flux knows no exponents, and neither does this way of writing.
        (ValueRef::Double(value), _) if value.is_finite() => {
            let digits = value.to_string();
            if digits.contains('.') { digits } else { format!("{digits}.0") }
        }
        (other, _) => return Err(ConversionError(format!("{other} cannot be written"))),
    })
}

impl Reading for FluxReading {
    fn call(&self, parameters: &[Value]) -> Result<Option<Call>, DriverError> {
        let mut query = String::with_capacity(512);
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => query.push_str(text),
                Piece::Value(place, form) => {
                    let value = literal(parameters[*place].as_ref(), *form);
                    query.push_str(&value.map_err(|error| self.refused(error.at("parameter", &self.parameters[*place].name)))?);
                }
                Piece::Identifier(_) | Piece::Own(_) => unreachable!("the language has no identifiers, and ours are texts"),
            }
        }
        let body = format!("{{\"type\":\"flux\",\"query\":{},\"dialect\":{ANSWER_FORM}}}", quoted(&query));
        Ok(Some(Call::post_json(self.path.clone(), body.into_bytes())))
    }

    fn read(&self, line: &[u8], _: &[Value], state: &mut AnswerState, rows: &mut Rows) -> Result<(), DriverError> {
        if line.starts_with(ANNOTATION) {
            *state = AnswerState::Names;
            return Ok(());
        }
        let cells = fields(line).map_err(|error| self.refused(error))?;
        match state {
            AnswerState::Begins => Err(self.refused(ConversionError("the answer is not annotated CSV".to_owned()))),
            AnswerState::Names => {
                *state = self.after_names(&cells).map_err(|error| self.refused(error))?;
                Ok(())
            }
            AnswerState::Rows(places) => self.read_row(&cells, places, rows).map_err(|error| self.refused(error)),
            AnswerState::Refusal => Err(DriverError::Statement(cells.iter().filter(|cell| !cell.is_empty()).cloned().collect())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::connection::Body;

    fn operation(query: &str) -> Operation {
        let operation = json!({
            "name": "q",
            "parameters": [
                {"name": "site", "type": "integer"}, {"name": "sensor", "type": "text"}, {"name": "from", "type": "timestamp"},
                {"name": "limit", "type": "double"},
            ],
            "columns": [{"name": "time", "type": "timestamp"}, {"name": "value", "type": "double"}, {"name": "site", "type": "integer"}],
            "statement": {"query": query, "row": ["_time", "_value", "site"]},
        });
        serde_json::from_value(operation).unwrap()
    }

    fn reading(query: &str) -> FluxReading {
        FluxReading::of("/api/v2/query?org=o".to_owned(), "ours", &operation(query)).unwrap()
    }

    fn sent(query: &str, sensor: &str, limit: f64) -> String {
        let parameters = [Value::Integer(-5), Value::Text(sensor.into()), Value::Timestamp(1), Value::Double(limit)];
        let Some(Call { path, body: Some(Body::Json(json)) }) = reading(query).call(&parameters).unwrap() else { panic!("JSON") };
        assert_eq!(path, "/api/v2/query?org=o");
        let body: Json = serde_json::from_slice(&json).unwrap();
        assert_eq!(body["dialect"]["annotations"], json!(["datatype"]));
        body["query"].as_str().unwrap().to_owned()
    }

    #[test]
    fn values_are_literals_and_nothing_is_spliced() {
        let query =
            "from(bucket: ::bucket) |> range(start: :from) |> filter(fn: (r) => r.site == :site@text and r._value < :limit)";
        assert_eq!(
            sent(query, "", 1e21),
            "from(bucket: \"ours\") |> range(start: 1970-01-01T00:00:00.000001Z) |> filter(fn: (r) => r.site == \"-5\" and \
             r._value < 1000000000000000000000.0)"
        );
        let hostile = "x\" or true) //\\ ${r.site}\n";
        assert_eq!(sent("f(r: :sensor)", hostile, 0.0), "f(r: \"x\\x22 or true) //\\x5c \\x24{r.site}\\x0a\")");
        assert_eq!(sent("f(r: :limit, s: :site, t: :from@us)", "", 0.1), "f(r: 0.1, s: -5, t: 1)");
        let refused = FluxReading::of(String::new(), "ours", &operation("from(bucket: ::other)")).err().unwrap().to_string();
        assert!(refused.contains("operation.q.query: ::other: expected ::bucket"), "{refused}");
        assert!(
            literal(ValueRef::Double(f64::NAN), Form::Plain).is_err()
                && literal(ValueRef::Integer(i64::MIN), Form::Plain).is_err()
        );
    }

    fn read(answer: &str) -> Result<Vec<Vec<Value>>, String> {
        let (query, mut state, mut rows) = (reading("x"), AnswerState::default(), Rows::new());
        for line in answer.lines().filter(|line| !line.is_empty()) {
            query.read(line.as_bytes(), &[], &mut state, &mut rows).map_err(|error| error.to_string())?;
        }
        Ok(rows.iter().map(|row| (0..3).map(|column| row.value(column).to_value()).collect()).collect())
    }

    /// As InfluxDB 2's documentation of annotated CSV has it: tables whose columns differ have names of their own.
    #[test]
    fn each_table_says_where_its_columns_are() {
        let answer = "#datatype,string,long,dateTime:RFC3339,double,string\r\n,result,table,_time,_value,site\r\n\
                      ,_result,0,2020-09-13T12:26:40Z,0.5,5\r\n,_result,0,2020-09-13T12:26:40.000001Z,,\"6\"\r\n\r\n\
                      #datatype,string,long,string,double,dateTime:RFC3339\r\n,result,table,site,_value,_time\r\n\
                      ,_result,1,7,1e+21,2020-09-13T12:26:40Z\r\n";
        let time = 1_600_000_000_000_000;
        let row = |time, value, site| vec![Value::Timestamp(time), value, Value::Integer(site)];
        let expected = [row(time, Value::Double(0.5), 5), row(time + 1, Value::Null, 6), row(time, Value::Double(1e21), 7)];
        assert_eq!(read(answer).unwrap(), expected);
        assert!(read("").unwrap().is_empty());
    }

    #[test]
    fn why_the_server_gave_up_is_told_in_its_words() {
        let answer = "#datatype,string,string\r\n,error,reference\r\n,\"Failed to parse \"\"query\"\", again\",897\r\n";
        assert!(read(answer).unwrap_err().contains("Failed to parse \"query\", again"));
        assert!(read("not CSV\r\n").unwrap_err().contains("not annotated CSV"));
        assert!(read("#datatype,x\n,result,table,_time\n").unwrap_err().contains("no column _value; it has ,result,table,_time"));
        let open = "#datatype,x\n,result,table,_time,_value,site\n,_result,0,2020-09-13T12:26:40Z,1,\"a\n";
        assert!(read(open).unwrap_err().contains("a line end"));
    }
}
