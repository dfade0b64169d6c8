//! An operation that reads by PromQL: what a query answers at one time or at the end of each step, or the readings as they were written.
//! VictoriaMetrics and Prometheus share it; what they differ in is an [`Export`] and the [`Scope`].

use std::borrow::Cow;

use percent_encoding::utf8_percent_encode;
use sensorbench_driver::{
    Column, ConversionError, DriverError, Operation, Parameter, Rows, SchemaError, Type, Value, ValueRef, parse_part,
};
use serde::Deserialize;

use crate::answer::push;
use crate::connection::{Call, ENCODED};
use crate::json::{Reader, Scalar};
use crate::protocol::{AnswerState, Reading, Scope};
use crate::schema::{row_names, time_parameter};
use crate::series_columns::{InSeries, Source};
use crate::template::{Language, Piece, Template, quoted, tag_text};
use crate::times::{Times, ms, now_ms, seconds, step_ms};

const LANGUAGE: Language = Language { identifiers: false, own: true };
/// Stands for the stretch of time between `from` and `to`.
const RANGE: &str = "[:range]";
/// The unit of times: ms in µs.
const UNIT_US: i64 = 1000;

/// How a server gives away readings as they were written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Export {
    /// By a request of its own, which answers with a line for each series.
    Lines,
    /// As PromQL's answer to a selector with a stretch of time, which is a matrix.
    Matrix,
}

/// `[operation.NAME]` of a schema file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadText {
    query: Option<String>,
    export: Option<String>,
    from: Option<String>,
    to: Option<String>,
    at: Option<String>,
    step: Option<String>,
    row: Option<Vec<String>>,
}

pub struct MetricsReading {
    name: String,
    exports: bool,
    export: Export,
    ranges_include_start: bool,
    /// The query or selector, whose text is encoded for the form; None stands for the stretch of time.
    pieces: Vec<Option<Piece>>,
    from: Option<usize>,
    to: Option<usize>,
    /// The one time that is asked for.
    at: Option<usize>,
    /// The stretches between `from` and `to` that have an answer each, in ms.
    step: Option<i64>,
    parameters: Vec<Parameter>,
    columns: Vec<Column>,
    /// Where each column is in the answer.
    row: Vec<Source>,
}

impl MetricsReading {
    pub fn of(scope: &Scope, export: Export, operation: &Operation) -> Result<Self, DriverError> {
        let path = format!("operation.{}", operation.name);
        let text: ReadText = parse_part(&path, &operation.statement)?;
        let (statement, key) = match (&text.query, &text.export) {
            (Some(query), None) => (query, "query"),
            (None, Some(selector)) => (selector, "export"),
            _ => return Err(SchemaError::at(path, "expected query or export, and not both; or write").into()),
        };
        let at = format!("{path}.{key}");
        let mut pieces = Vec::new();
        for (number, part) in statement.split(RANGE).enumerate() {
            if number > 0 {
                pieces.push(None);
            }
            let template = Template::of(operation, &at, part, LANGUAGE)?;
            pieces.extend(template.0.into_iter().map(|piece| match piece {
                Piece::Own(name) => Some(encoded(&format!("{}{name}", scope.prefix))),
                Piece::Text(text) => Some(encoded(&text)),
                other => Some(other),
            }));
        }
        let time = |key: &str, text: &Option<String>| time_parameter(operation, key, text.as_deref());
        let (from, to, only) = (time("from", &text.from)?, time("to", &text.to)?, time("at", &text.at)?);
        if only.is_some() && (from.is_some() || to.is_some()) {
            return Err(SchemaError::at(format!("{path}.at"), "expected either at, or from and to").into());
        }
        if pieces.contains(&None) && (from.is_none() || to.is_none()) {
            return Err(SchemaError::at(at, "[:range] is the stretch between from and to; expected both").into());
        }
        let step = text.step.as_deref().map(|text| step_ms(&path, text)).transpose()?;
        if step.is_some() && (export == Export::Lines || key == "export" || !pieces.contains(&None)) {
            let message = "expected no step, or a query of Prometheus with [:range], from and to";
            return Err(SchemaError::at(format!("{path}.step"), message).into());
        }
        let row = row_names(operation, text.row)?;
        Ok(Self {
            name: operation.name.clone(),
            exports: text.export.is_some(),
            export,
            ranges_include_start: scope.ranges_include_start,
            pieces,
            from,
            to,
            at: only,
            step,
            parameters: operation.parameters.clone(),
            columns: operation.columns.clone(),
            row: row.into_iter().map(Source::of).collect(),
        })
    }

    fn refused(&self, error: ConversionError) -> DriverError {
        DriverError::Data(format!("{}: {error}", self.name))
    }

    /// The ms of a request: from a time on, until before another one. A time between two ms is after the first.
    fn times(&self, parameters: &[Value]) -> Result<Times, DriverError> {
        let time = |place: Option<usize>| {
            let Some(place) = place else { return Ok(None) };
            match parameters[place].as_ref() {
                ValueRef::Timestamp(time) => Ok(Some(time.div_euclid(UNIT_US) + i64::from(time.rem_euclid(UNIT_US) != 0))),
                other => {
                    Err(self
                        .refused(ConversionError(format!("{other} is not a time")).at("parameter", &self.parameters[place].name)))
                }
            }
        };
        if self.at.is_some() {
            let first = time(self.at)?.unwrap_or(0);
            // Between two ms there is nothing.
            let is_whole = self.at.is_some_and(|place| parameters[place] == Value::Timestamp(first * UNIT_US));
            return Ok(Times { first, last: if is_whole { first } else { first - 1 } });
        }
        // Negative times mean nothing to the server.
        let first = time(self.from)?.unwrap_or(0).max(0);
        let last = time(self.to)?.map_or_else(|| now_ms() + 2 * 86_400_000, |to| to - 1);
        Ok(Times { first, last })
    }

    /// Appends the query or selector, encoded.
    fn append_statement(&self, form: &mut String, parameters: &[Value], times: Times) -> Result<(), DriverError> {
        for piece in &self.pieces {
            match piece {
                None => append_range(form, self.range_ms(times)?),
                Some(Piece::Text(text)) => form.push_str(text),
                Some(Piece::Value(place, _)) => {
                    let text = tag_text(parameters[*place].as_ref());
                    let text = text.map_err(|error| self.refused(error.at("parameter", &self.parameters[*place].name)))?;
                    form.extend(utf8_percent_encode(&quoted(&text), ENCODED));
                }
                Some(Piece::Identifier(_) | Piece::Own(_)) => unreachable!("the language has no identifiers, and ours are texts"),
            }
        }
        if self.exports && self.export == Export::Matrix {
            append_range(form, times.last - times.first + 1);
        }
        Ok(())
    }

    /// The stretch of time that a query reads, which ends at the time that is asked for.
    fn range_ms(&self, times: Times) -> Result<i64, DriverError> {
        let length = self.step.unwrap_or(times.last - times.first + 1) - i64::from(self.ranges_include_start);
        if length == 0 {
            let message = "a stretch of 1 ms is shorter than what this server's PromQL can ask for, which is 2 ms";
            return Err(self.refused(ConversionError(message.to_owned())));
        }
        Ok(length)
    }

    /// One series of a matrix: labels, and pairs of a time in seconds and a value.
    fn read_matrix_series(&self, reader: &mut Reader, times: Times, rows: &mut Rows) -> Result<(), ConversionError> {
        let mut labels: Vec<(Cow<str>, Cow<str>)> = Vec::new();
        reader.object(|reader, key| match key.as_ref() {
            "metric" => reader.object(|reader, label| {
                labels.push((label, reader.string()?));
                Ok(())
            }),
            // They come after the labels.
            "values" => {
                let sources = self.sources(&labels, true)?;
                reader.list(|reader| {
                    let mut pair = [Scalar::Null, Scalar::Null];
                    let mut length = 0;
                    reader.list(|reader| {
                        let element = reader.scalar()?;
                        if let Some(place) = pair.get_mut(length) {
                            *place = element;
                        }
                        length += 1;
                        Ok(())
                    })?;
                    let [Scalar::Number(time), value] = &pair else {
                        return Err(ConversionError("a value of the answer has no time".to_owned()));
                    };
                    let time = ms(time).ok_or_else(|| ConversionError(format!("expected a time in seconds, found {time}")))?;
                    // A step's answer is that of its end; rows have its start.
                    let time = time + self.step.map_or(0, |step| 1 - step);
                    // Where ranges have both of their ends, the ms before the first is in the answer.
                    if time < times.first {
                        return Ok(());
                    }
                    self.push_row(&sources, time, value, rows)
                })
            }
            _ => reader.skip(),
        })
    }

    /// One series: labels, and values with their times.
    fn read_series(&self, reader: &mut Reader, times: Times, rows: &mut Rows) -> Result<(), ConversionError> {
        let mut labels: Vec<(Cow<str>, Cow<str>)> = Vec::new();
        let mut values: Vec<Scalar> = Vec::new();
        let mut timestamps: Vec<i64> = Vec::new();
        reader.object(|reader, key| match key.as_ref() {
            "metric" => reader.object(|reader, label| {
                labels.push((label, reader.string()?));
                Ok(())
            }),
            "values" => reader.list(|reader| {
                values.push(reader.scalar()?);
                Ok(())
            }),
            "timestamps" => reader.list(|reader| {
                let Some(time) = reader.whole_number() else {
                    return Err(ConversionError(format!("expected a time in ms, found {}", reader.scalar()?)));
                };
                timestamps.push(time);
                Ok(())
            }),
            // Of a query: the time in seconds, which is the one that was asked for, and the value.
            "value" => reader.list(|reader| {
                values.push(reader.scalar()?);
                Ok(())
            }),
            _ => reader.skip(),
        })?;
        let sources = self.sources(&labels, self.exports)?;
        if !self.exports {
            return match values.as_slice() {
                [_, value] => self.push_row(&sources, 0, value, rows),
                _ => Err(ConversionError("a value of the answer has no time".to_owned())),
            };
        }
        if values.len() != timestamps.len() {
            return Err(ConversionError(format!("there are {} values and {} times", values.len(), timestamps.len())));
        }
        for (value, time) in values.iter().zip(timestamps) {
            // Of a stretch of one ms, or none, the server makes five minutes.
            if time >= times.first && time <= times.last {
                self.push_row(&sources, time, value, rows)?;
            }
        }
        Ok(())
    }

    /// Where the columns are in the rows of a series with these labels.
    fn sources<'a>(&self, labels: &'a [(Cow<str>, Cow<str>)], has_times: bool) -> Result<Vec<InSeries<'a>>, ConversionError> {
        let label = |wanted: &str| match labels.iter().find(|(name, _)| name == wanted) {
            Some((_, text)) => Ok(InSeries::Label(Scalar::Text(Cow::Borrowed(text.as_ref())))),
            None => Err(ConversionError(format!("the answer has no label {wanted}"))),
        };
        let source = |(column, source): (&Column, &Source)| {
            match source {
                Source::Value => Ok(InSeries::Value),
                Source::Time if has_times => Ok(InSeries::Time),
                Source::Time => label("time"),
                Source::Label(name) => label(name),
            }
            .map_err(|error| error.at("column", &column.name))
        };
        self.columns.iter().zip(&self.row).map(source).collect()
    }

    /// A row of a series, with a time in ms.
    #[inline]
    fn push_row(&self, sources: &[InSeries], time: i64, value: &Scalar, rows: &mut Rows) -> Result<(), ConversionError> {
        for (column, source) in self.columns.iter().zip(sources) {
            let pushed = match source {
                InSeries::Value => push(rows, column.value_type, value, UNIT_US),
                InSeries::Time if column.value_type == Type::Timestamp => {
                    // What was asked for is within the times that the server has.
                    rows.push(ValueRef::Timestamp(time * UNIT_US));
                    Ok(())
                }
                InSeries::Time => push(rows, column.value_type, &Scalar::Number(itoa::Buffer::new().format(time)), UNIT_US),
                InSeries::Label(text) => push(rows, column.value_type, text, UNIT_US),
            };
            pushed.map_err(|error| error.at("column", &column.name))?;
        }
        rows.end_row();
        Ok(())
    }

    /// Whether the answer has several times of a series.
    fn has_matrix(&self) -> bool {
        self.step.is_some() || (self.exports && self.export == Export::Matrix)
    }

    /// The answer to a query, which is a vector or a matrix.
    fn read_query(&self, reader: &mut Reader, times: Times, rows: &mut Rows) -> Result<(), ConversionError> {
        reader.object(|reader, key| match key.as_ref() {
            "data" => reader.object(|reader, key| match key.as_ref() {
                "resultType" => {
                    let (found, expected) = (reader.string()?, if self.has_matrix() { "matrix" } else { "vector" });
                    if found == expected {
                        return Ok(());
                    }
                    Err(ConversionError(format!("the query answers with a {found}; expected a {expected}")))
                }
                "result" if self.has_matrix() => reader.list(|reader| self.read_matrix_series(reader, times, rows)),
                "result" => reader.list(|reader| self.read_series(reader, times, rows)),
                _ => reader.skip(),
            }),
            _ => reader.skip(),
        })
    }
}

/// A text of a statement as it stands in a form.
fn encoded(text: &str) -> Piece {
    Piece::Text(utf8_percent_encode(text, ENCODED).to_string())
}

/// Appends a stretch of time between brackets, encoded.
fn append_range(form: &mut String, length_ms: i64) {
    form.push_str("%5B");
    form.push_str(itoa::Buffer::new().format(length_ms));
    form.push_str("ms%5D");
}

/// Appends keys and their values.
fn append(form: &mut String, pairs: &[(&str, &str)]) {
    for (key, value) in pairs {
        form.push_str(key);
        form.push_str(value);
    }
}

impl Reading for MetricsReading {
    fn call(&self, parameters: &[Value]) -> Result<Option<Call>, DriverError> {
        let times = self.times(parameters)?;
        if times.last < times.first {
            return Ok(None);
        }
        let asks_for_lines = self.exports && self.export == Export::Lines;
        let mut form = String::with_capacity(512);
        form.push_str(if asks_for_lines { "match%5B%5D=" } else { "query=" });
        self.append_statement(&mut form, parameters, times)?;
        let end = seconds(times.last);
        let path = match (self.step, self.export) {
            (Some(step), _) => {
                if (times.last - times.first + 1) % step != 0 {
                    let start = seconds(times.first);
                    let message = format!("the stretch from {start} s to {end} s is not a whole number of steps");
                    return Err(self.refused(ConversionError(message)));
                }
                let first_end = seconds(times.first + step - 1);
                append(&mut form, &[("&start=", &first_end), ("&end=", &end), ("&step=", &seconds(step))]);
                "/api/v1/query_range"
            }
            (None, _) if asks_for_lines => {
                append(&mut form, &[("&start=", &seconds(times.first)), ("&end=", &end)]);
                "/api/v1/export"
            }
            (None, export) => {
                append(&mut form, &[("&time=", &end)]);
                if export == Export::Lines {
                    // Without the cache of answers, which knows nothing of late points.
                    form.push_str("&nocache=1");
                }
                "/api/v1/query"
            }
        };
        Ok(Some(Call::form(path, form)))
    }

    fn read(&self, line: &[u8], parameters: &[Value], _: &mut AnswerState, rows: &mut Rows) -> Result<(), DriverError> {
        let times = self.times(parameters)?;
        let mut reader = Reader::new(line);
        let is_line = self.exports && self.export == Export::Lines;
        let outcome =
            if is_line { self.read_series(&mut reader, times, rows) } else { self.read_query(&mut reader, times, rows) };
        outcome.map_err(|error| self.refused(error))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::connection::Body;

    fn reading(statement: serde_json::Value) -> Result<MetricsReading, DriverError> {
        reading_by(Export::Lines, false, statement)
    }

    fn reading_by(export: Export, includes_start: bool, statement: serde_json::Value) -> Result<MetricsReading, DriverError> {
        let scope = Scope { ranges_include_start: includes_start, ..Scope::new("ours", "ours:") };
        let operation = json!({
            "name": "q",
            "parameters": [
                {"name": "site", "type": "integer"}, {"name": "sensor", "type": "text"},
                {"name": "from", "type": "timestamp"}, {"name": "to", "type": "timestamp"},
            ],
            "columns": [{"name": "time", "type": "timestamp"}, {"name": "v", "type": "double"}, {"name": "site", "type": "integer"}],
            "statement": statement,
        });
        MetricsReading::of(&scope, export, &serde_json::from_value(operation).unwrap())
    }

    fn parameters(sensor: &str, from: i64, to: i64) -> [Value; 4] {
        [Value::Integer(5), Value::Text(sensor.into()), Value::Timestamp(from), Value::Timestamp(to)]
    }

    fn sent(reading: &MetricsReading, parameters: &[Value]) -> Option<String> {
        let Call { path, body } = reading.call(parameters).unwrap()?;
        let Some(Body::Form(form)) = body else { panic!("a form") };
        Some(format!(
            "{} {}",
            std::str::from_utf8(&path).unwrap(),
            percent_encoding::percent_decode_str(&form).decode_utf8().unwrap()
        ))
    }

    #[test]
    fn values_are_quoted_and_times_are_exact() {
        let row = json!(["time", "value", "site"]);
        let export =
            reading(json!({"export": "::m_v{site=:site,sensor=:sensor}", "from": ":from", "to": ":to", "row": row})).unwrap();
        let hostile = "x\"} or {a=\"b\\\n";
        assert_eq!(
            sent(&export, &parameters(hostile, 1_000, 2_001_000)).unwrap(),
            "/api/v1/export match[]=ours:m_v{site=\"5\",sensor=\"x\\\"} or {a=\\\"b\\\\\\n\"}&start=0.001&end=2.000"
        );
        // Between two ms there is none.
        assert!(sent(&export, &parameters("a", 1_001, 2_001)).unwrap().ends_with("start=0.002&end=0.002"));
        assert_eq!(sent(&export, &parameters("a", 5_000, 5_000)), None);
        assert_eq!(sent(&export, &parameters("a", -5_000_000, -1_000_000)), None);
        let at = reading(json!({"export": "::m_v", "at": ":from", "row": row})).unwrap();
        assert!(sent(&at, &parameters("a", 5_000, 0)).unwrap().ends_with("start=0.005&end=0.005"));
        assert_eq!(sent(&at, &parameters("a", 5_001, 0)), None);
        let peak = reading(json!({"query": "max_over_time(::m_v[:range])", "from": ":from", "to": ":to", "row": row})).unwrap();
        assert_eq!(
            sent(&peak, &parameters("a", 1_000_000, 3_000_000)).unwrap(),
            "/api/v1/query query=max_over_time(ours:m_v[2000ms])&time=2.999&nocache=1"
        );
    }

    #[test]
    fn rows_have_labels_times_and_values() {
        let row = json!(["time", "value", "site"]);
        let export = reading(json!({"export": "::m_v", "from": ":from", "to": ":to", "row": row})).unwrap();
        let mut rows = Rows::new();
        let line = br#"{"metric":{"__name__":"ours:m_v","site":"7"},"values":[1.5,null,9],"timestamps":[1000,2000,3000]}"#;
        export.read(line, &parameters("a", 0, 2_001_000), &mut AnswerState::default(), &mut rows).unwrap();
        let values: Vec<_> =
            rows.iter().map(|row| (0..3).map(|column| row.value(column).to_value()).collect::<Vec<_>>()).collect();
        let row = |time: i64, value| vec![Value::Timestamp(time), value, Value::Integer(7)];
        assert_eq!(
            values,
            [row(1_000_000, Value::Double(1.5)), row(2_000_000, Value::Null)],
            "what is beyond the range is not taken"
        );
        let other = br#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#;
        let query = reading(json!({"query": "::m_v", "row": ["site", "value", "site"]})).unwrap();
        assert!(
            query
                .read(other, &parameters("a", 0, 1), &mut AnswerState::default(), &mut rows)
                .unwrap_err()
                .to_string()
                .contains("expected a vector")
        );
    }

    #[test]
    fn matrices_have_the_times_that_were_asked_for() {
        let row = json!(["time", "value", "site"]);
        let times = json!({"export": "::m_v", "from": ":from", "to": ":to", "row": row});
        let export = reading_by(Export::Matrix, true, times).unwrap();
        let values = parameters("a", 1_000_000, 3_000_000);
        assert_eq!(sent(&export, &values).unwrap(), "/api/v1/query query=ours:m_v[2000ms]&time=2.999");
        let mut rows = Rows::new();
        let answer = br#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"site":"7"},"values":[[0.999,"1"],[1,"2"],[2.5,"+Inf"]]}]}}"#;
        export.read(answer, &values, &mut AnswerState::default(), &mut rows).unwrap();
        let read = |rows: &Rows| rows.iter().map(|row| (row.value(0).to_value(), row.value(1).to_value())).collect::<Vec<_>>();
        let row_of = |ms: i64, value| (Value::Timestamp(ms * 1000), Value::Double(value));
        assert_eq!(read(&rows), [row_of(1000, 2.0), row_of(2500, f64::INFINITY)]);
        let hours = json!({"query": "avg_over_time(::m_v[:range])", "from": ":from", "to": ":to", "step": "1s", "row": row});
        for (includes_start, range) in [(true, 999), (false, 1000)] {
            let means = reading_by(Export::Matrix, includes_start, hours.clone()).unwrap();
            let expected =
                format!("/api/v1/query_range query=avg_over_time(ours:m_v[{range}ms])&start=1.999&end=2.999&step=1.000");
            assert_eq!(sent(&means, &values).unwrap(), expected);
            let mut rows = Rows::new();
            let answer =
                br#"{"data":{"resultType":"matrix","result":[{"metric":{"site":"7"},"values":[[1.999,"1"],[2.999,"2"]]}]}}"#;
            means.read(answer, &values, &mut AnswerState::default(), &mut rows).unwrap();
            assert_eq!(read(&rows), [row_of(1000, 1.0), row_of(2000, 2.0)]);
            let uneven = means.call(&parameters("a", 0, 1_500_000)).unwrap_err().to_string();
            assert!(uneven.contains("not a whole number of steps"), "{uneven}");
        }
        let peak = json!({"query": "max_over_time(::m_v[:range])", "from": ":from", "to": ":to", "row": row});
        let peak = reading_by(Export::Matrix, true, peak).unwrap();
        assert!(peak.call(&parameters("a", 1000, 2000)).unwrap_err().to_string().contains("shorter than"));
    }

    #[test]
    fn schemas_that_cannot_work_are_refused() {
        for (statement, expected) in [
            (json!({}), "operation.q: expected query or export"),
            (json!({"query": "x", "export": "y"}), "operation.q: expected query or export"),
            (json!({"query": "x[:range]", "from": ":from"}), "operation.q.query: [:range] is the stretch between"),
            (json!({"query": "x", "from": ":site"}), "operation.q.from: \":site\": expected a timestamp"),
            (json!({"export": "x", "at": ":to", "to": ":to"}), "operation.q.at: expected either at"),
            (json!({"query": "x", "row": ["time"]}), "operation.q.row: expected 3 names"),
            (json!({"query": "x", "step": "1w"}), "operation.q.step: \"1w\": expected a whole number"),
            (json!({"query": "x", "step": "1h"}), "operation.q.step: expected no step"),
        ] {
            let message = reading(statement).err().unwrap().to_string();
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
