//! An operation that reads: the points of series as they were written, or what is made of them by an aggregator and stretches of time.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

use sensorbench_driver::{
    Column, ConversionError, DriverError, Operation, Parameter, Rows, SchemaError, Type, Value, ValueRef, parse_part,
};
use serde::Deserialize;

use super::api::{TIMES_MS, says_unknown_name};
use crate::answer::push;
use crate::connection::{Call, Reply};
use crate::json::{Reader, Scalar};
use crate::json_points::{decoded, encoded, tag};
use crate::protocol::{AnswerState, Reading, Scope};
use crate::schema::{row_names, time_parameter};
use crate::series_columns::Source;
use crate::template::quoted;
use crate::times::step_ms;

/// The unit of times: ms in µs.
const UNIT_US: i64 = 1000;
/// Stands for any value of a tag.
const ANY: &str = "*";
/// Gives each series as it is.
const RAW: &str = "none";
/// The stretch of a downsampling that is the whole question.
const ALL: &str = "all";
const ALL_OF_OPENTSDB: &str = "0all";
/// What OpenTSDB makes of points that it does not interpolate between series, by the names of its aggregators.
const AGGREGATORS: [&str; 4] = [RAW, "zimsum", "mimmin", "mimmax"];
const FUNCTIONS: [&str; 7] = ["avg", "count", "dev", "last", "max", "min", "sum"];

/// `[operation.NAME]` of a schema file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadText {
    metric: String,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    #[serde(default)]
    group_by: Vec<String>,
    aggregate: Option<String>,
    downsample: Option<String>,
    from: Option<String>,
    to: Option<String>,
    at: Option<String>,
    row: Option<Vec<String>>,
}

/// A text of the schema file, or a parameter.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Literal(String),
    Parameter(usize),
}

/// What is made of the points of a series.
#[derive(Clone, Debug, PartialEq)]
struct Downsampling {
    /// As OpenTSDB has it.
    text: String,
    /// The stretches that have a value each; None if that is the whole question.
    step_ms: Option<i64>,
}

pub struct PointsReading {
    name: String,
    prefix: String,
    metric: Vec<Part>,
    tags: Vec<(String, Part)>,
    group_by: Vec<String>,
    downsampling: Option<Downsampling>,
    /// What follows the filters of a question: what is made of the points.
    end: String,
    from: Option<usize>,
    to: Option<usize>,
    at: Option<usize>,
    parameters: Vec<Parameter>,
    columns: Vec<Column>,
    row: Vec<Source>,
}

/// The ms that are asked for, both included.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Times {
    first: i64,
    last: i64,
}

impl PointsReading {
    pub fn of(scope: &Scope, operation: &Operation) -> Result<Self, DriverError> {
        let path = format!("operation.{}", operation.name);
        let text: ReadText = parse_part(&path, &operation.statement)?;
        let part = |text: &str| match text.strip_prefix(':') {
            Some(name) => operation.require_parameter(name).map(Part::Parameter),
            None => Ok(Part::Literal(text.to_owned())),
        };
        let metric = text.metric.split('.').map(part).collect::<Result<_, _>>()?;
        let tags = text.tags.iter().map(|(name, value)| Ok((name.clone(), part(value)?))).collect::<Result<_, SchemaError>>()?;
        let time = |key: &str, text: &Option<String>| time_parameter(operation, key, text.as_deref());
        let (from, to, at) = (time("from", &text.from)?, time("to", &text.to)?, time("at", &text.at)?);
        if at.is_some() && (from.is_some() || to.is_some()) {
            return Err(SchemaError::at(format!("{path}.at"), "expected either at, or from and to").into());
        }
        let aggregator = text.aggregate.unwrap_or_else(|| RAW.to_owned());
        if !AGGREGATORS.contains(&aggregator.as_str()) {
            let message = format!(
                "{aggregator:?}: expected one of {}; others interpolate between the points of series",
                AGGREGATORS.join(", ")
            );
            return Err(SchemaError::at(format!("{path}.aggregate"), message).into());
        }
        let downsampling = text.downsample.as_deref().map(|text| Downsampling::of(&path, text)).transpose()?;
        if aggregator != RAW && downsampling.is_none() {
            let message = "expected downsample, so that the points of series have the same times";
            return Err(SchemaError::at(format!("{path}.aggregate"), message).into());
        }
        if aggregator == RAW && !text.group_by.is_empty() {
            let message = "expected an aggregate besides it, because without one each series is in the answer";
            return Err(SchemaError::at(format!("{path}.group_by"), message).into());
        }
        let row = row_names(operation, text.row)?.into_iter().map(Source::of).collect();
        let made = downsampling.as_ref().map(|downsampling| format!(",\"downsample\":{}", quoted(&downsampling.text)));
        let end = format!("],\"aggregator\":{}{}}}]}}", quoted(&aggregator), made.unwrap_or_default());
        Ok(Self {
            name: operation.name.clone(),
            prefix: scope.prefix.clone(),
            metric,
            tags,
            group_by: text.group_by,
            downsampling,
            end,
            from,
            to,
            at,
            parameters: operation.parameters.clone(),
            columns: operation.columns.clone(),
            row,
        })
    }

    fn refused(&self, error: ConversionError) -> DriverError {
        DriverError::Data(format!("{}: {error}", self.name))
    }

    /// The ms of a request: from a time on, until before another one. A time between two ms is after the first.
    fn times(&self, parameters: &[Value]) -> Result<Times, DriverError> {
        let time = |place: usize| match parameters[place].as_ref() {
            ValueRef::Timestamp(time) => Ok(time.div_euclid(UNIT_US) + i64::from(time.rem_euclid(UNIT_US) != 0)),
            other => {
                Err(self.refused(ConversionError(format!("{other} is not a time")).at("parameter", &self.parameters[place].name)))
            }
        };
        let (first, last) = TIMES_MS;
        if let Some(place) = self.at {
            let at = time(place)?;
            // Between two ms, and beyond the server's times, there is nothing.
            let is_there = parameters[place] == Value::Timestamp(at * UNIT_US) && (first..=last).contains(&at);
            return Ok(Times { first: at, last: if is_there { at } else { at - 1 } });
        }
        let from = self.from.map_or(Ok(first), time)?.max(first);
        let to = self.to.map_or(Ok(last + 1), time)?.min(last + 1);
        Ok(Times { first: from, last: to - 1 })
    }

    /// A name or a value of a tag as the server has it; None if nothing there can be of this name.
    fn text<'a>(&self, part: &'a Part, parameters: &'a [Value]) -> Result<Option<Cow<'a, str>>, DriverError> {
        let place = match part {
            Part::Literal(text) => return Ok(Some(Cow::Borrowed(text))),
            Part::Parameter(place) => *place,
        };
        let value = parameters[place].as_ref();
        // What cannot be written is not there.
        if matches!(value, ValueRef::Text("")) {
            return Ok(None);
        }
        tag(value, usize::MAX).map(Some).map_err(|error| self.refused(error.at("parameter", &self.parameters[place].name)))
    }

    /// The question, as JSON; None if nothing can have what is asked for.
    fn request(&self, parameters: &[Value], times: Times) -> Result<Option<String>, DriverError> {
        let mut metric = self.prefix.clone();
        for (number, part) in self.metric.iter().enumerate() {
            let Some(text) = self.text(part, parameters)? else { return Ok(None) };
            metric.push_str(if number == 0 { "" } else { "." });
            metric.push_str(&text);
        }
        // The end of a stretch that is the whole question is not in it; that of others is. A question has an end after its start.
        let mut json = format!(
            "{{\"start\":\"{}ms\",\"end\":\"{}ms\",\"msResolution\":true,\"noAnnotations\":true,\"queries\":[{{\"metric\":{},\"filters\":[",
            times.first,
            times.last + 1,
            quoted(&metric)
        );
        let mut separator = "";
        let mut append = |kind: &str, name: &str, filter: &str, is_grouped: bool| {
            let (name, filter) = (quoted(name), quoted(filter));
            write!(json, "{separator}{{\"type\":\"{kind}\",\"tagk\":{name},\"filter\":{filter},\"groupBy\":{is_grouped}}}")
                .expect("memory takes everything");
            separator = ",";
        };
        for (name, part) in &self.tags {
            let Some(text) = self.text(part, parameters)? else { return Ok(None) };
            match part {
                Part::Literal(text) if text == ANY => append("wildcard", name, text, false),
                Part::Literal(text) => append("literal_or", name, &encoded(text), false),
                Part::Parameter(_) => append("literal_or", name, &text, false),
            }
        }
        self.group_by.iter().for_each(|name| append("wildcard", name, ANY, true));
        json.push_str(&self.end);
        Ok(Some(json))
    }

    fn check_steps(&self, times: Times) -> Result<(), DriverError> {
        let Some(step) = self.downsampling.as_ref().and_then(|downsampling| downsampling.step_ms) else { return Ok(()) };
        if times.first % step == 0 && (times.last + 1) % step == 0 {
            return Ok(());
        }
        let message = format!(
            "the server's stretches of {step} ms begin at multiples of it since 1970; from {} ms until before {} ms are not whole ones",
            times.first,
            times.last + 1
        );
        Err(self.refused(ConversionError(message)))
    }

    /// One series of the answer: its tags, then its points by their times.
    fn read_series(&self, reader: &mut Reader, times: Times, rows: &mut Rows) -> Result<(), ConversionError> {
        let mut tags: Vec<(Cow<str>, Cow<str>)> = Vec::new();
        reader.object(|reader, key| match key.as_ref() {
            "tags" => reader.object(|reader, name| {
                tags.push((name, reader.string()?));
                Ok(())
            }),
            "dps" => reader.object(|reader, time| {
                let value = reader.scalar()?;
                let ms: i64 = time.parse().map_err(|_| ConversionError(format!("expected a time in ms, found {time}")))?;
                // The last ms that the server looks at is not asked for.
                if ms < times.first || ms > times.last { Ok(()) } else { self.push_row(&tags, ms, &value, rows) }
            }),
            _ => reader.skip(),
        })
    }

    fn push_row(
        &self,
        tags: &[(Cow<str>, Cow<str>)],
        time_ms: i64,
        value: &Scalar,
        rows: &mut Rows,
    ) -> Result<(), ConversionError> {
        for (column, source) in self.columns.iter().zip(&self.row) {
            let pushed = match source {
                Source::Value => push(rows, column.value_type, value, UNIT_US),
                Source::Time if column.value_type == Type::Timestamp => {
                    // What was asked for is within the times that the server has.
                    rows.push(ValueRef::Timestamp(time_ms * UNIT_US));
                    Ok(())
                }
                Source::Time => push(rows, column.value_type, &Scalar::Number(itoa::Buffer::new().format(time_ms)), UNIT_US),
                Source::Label(name) => match tags.iter().find(|(tag, _)| tag == name) {
                    Some((_, text)) => match decoded(text) {
                        Some(text) => push(rows, column.value_type, &Scalar::Text(text), UNIT_US),
                        None => Err(ConversionError(format!("the tag {name} is {text}, which is nothing that was written"))),
                    },
                    None => Err(ConversionError(format!("the answer has no tag {name}"))),
                },
            };
            pushed.map_err(|error| error.at("column", &column.name))?;
        }
        rows.end_row();
        Ok(())
    }
}

impl Downsampling {
    /// `all-max`, `1h-avg`.
    fn of(path: &str, text: &str) -> Result<Self, SchemaError> {
        let refused = || {
            let message = format!(
                "{text:?}: expected all or a whole number of s, m, h or d, and one of {}, as in \"1h-avg\"",
                FUNCTIONS.join(", ")
            );
            SchemaError::at(format!("{path}.downsample"), message)
        };
        let (bucket, function) = text.split_once('-').ok_or_else(refused)?;
        if !FUNCTIONS.contains(&function) {
            return Err(refused());
        }
        if bucket == ALL {
            return Ok(Self { text: format!("{ALL_OF_OPENTSDB}-{function}"), step_ms: None });
        }
        let step = step_ms(path, bucket).map_err(|_| refused())?;
        Ok(Self { text: text.to_owned(), step_ms: Some(step) })
    }
}

impl Reading for PointsReading {
    fn call(&self, parameters: &[Value]) -> Result<Option<Call>, DriverError> {
        let times = self.times(parameters)?;
        if times.last < times.first {
            return Ok(None);
        }
        self.check_steps(times)?;
        let request = self.request(parameters, times)?;
        Ok(request.map(|request| Call::post_json("/api/query", request.into_bytes())))
    }

    /// Names that were never written have no points.
    fn finds_nothing(&self, reply: &Reply) -> bool {
        says_unknown_name(reply)
    }

    fn read(&self, line: &[u8], parameters: &[Value], _: &mut AnswerState, rows: &mut Rows) -> Result<(), DriverError> {
        let times = self.times(parameters)?;
        let read = Reader::new(line).list(|reader| self.read_series(reader, times, rows));
        read.map_err(|error| self.refused(error))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::connection::Body;

    const DAY_MS: i64 = 19_500 * 86_400_000;

    fn reading(statement: serde_json::Value) -> Result<PointsReading, DriverError> {
        let operation = json!({
            "name": "q",
            "parameters": [
                {"name": "site", "type": "integer"}, {"name": "sensor", "type": "text"},
                {"name": "from", "type": "timestamp"}, {"name": "to", "type": "timestamp"},
            ],
            "columns": [{"name": "time", "type": "timestamp"}, {"name": "v", "type": "double"}, {"name": "sensor", "type": "text"}],
            "statement": statement,
        });
        PointsReading::of(&Scope::new("ours", "ours.g1."), &serde_json::from_value(operation).unwrap())
    }

    fn parameters(sensor: &str, from: i64, to: i64) -> [Value; 4] {
        [Value::Integer(5), Value::Text(sensor.into()), Value::Timestamp(from), Value::Timestamp(to)]
    }

    fn sent(reading: &PointsReading, parameters: &[Value]) -> Option<serde_json::Value> {
        let Call { path, body } = reading.call(parameters).unwrap()?;
        assert_eq!(path, "/api/query");
        let Some(Body::Json(json)) = body else { panic!("JSON") };
        Some(serde_json::from_slice(&json).unwrap())
    }

    fn raw() -> PointsReading {
        let row = json!(["time", "value", "sensor"]);
        let tags = json!({"site": ":site", "sensor": ":sensor", "zone": "*"});
        reading(json!({"metric": "t.value", "tags": tags, "from": ":from", "to": ":to", "row": row})).unwrap()
    }

    #[test]
    fn values_become_filters_and_times_are_exact() {
        let request = sent(&raw(), &parameters("a|b", DAY_MS * 1000 + 1, DAY_MS * 1000 + 5000)).unwrap();
        assert_eq!(
            (&request["start"], &request["end"]),
            (&json!(format!("{}ms", DAY_MS + 1)), &json!(format!("{}ms", DAY_MS + 5)))
        );
        let query = &request["queries"][0];
        assert_eq!((&query["metric"], &query["aggregator"]), (&json!("ours.g1.t.value"), &json!("none")));
        let filter = |kind: &str, tag: &str, filter: &str| json!({"type": kind, "tagk": tag, "filter": filter, "groupBy": false});
        let expected =
            [filter("literal_or", "sensor", "a/7Cb"), filter("literal_or", "site", "5"), filter("wildcard", "zone", "*")];
        assert_eq!(query["filters"], json!(expected));
        assert_eq!(sent(&raw(), &parameters("a", 5000, 5000)), None);
        assert_eq!(sent(&raw(), &parameters("", DAY_MS * 1000, DAY_MS * 2000)), None);
        let early = sent(&raw(), &parameters("a", -5000, DAY_MS * 1000)).unwrap();
        assert_eq!(early["start"], json!(format!("{}ms", TIMES_MS.0)));
        let named = reading(json!({"metric": "t.:sensor", "at": ":from", "row": ["time", "value", "site"]})).unwrap();
        let request = sent(&named, &parameters("CO", DAY_MS * 1000, 0)).unwrap();
        assert_eq!(
            (&request["queries"][0]["metric"], &request["end"]),
            (&json!("ours.g1.t.CO"), &json!(format!("{}ms", DAY_MS + 1)))
        );
        assert_eq!(sent(&named, &parameters("CO", DAY_MS * 1000 + 1, 0)), None);
    }

    #[test]
    fn buckets_are_whole() {
        let row = json!(["time", "value", "sensor"]);
        let hours = json!({"metric": "t.value", "group_by": ["sensor"], "aggregate": "zimsum", "downsample": "1h-count", "from": ":from", "to": ":to", "row": row});
        let hours = reading(hours).unwrap();
        let request = sent(&hours, &parameters("", DAY_MS * 1000, (DAY_MS + 3_600_000) * 1000)).unwrap();
        assert_eq!(request["queries"][0]["downsample"], json!("1h-count"));
        assert_eq!(request["queries"][0]["filters"][0]["groupBy"], json!(true));
        let uneven = hours.call(&parameters("", DAY_MS * 1000, (DAY_MS + 1_800_000) * 1000)).unwrap_err().to_string();
        assert!(uneven.contains("are not whole ones"), "{uneven}");
        let peak = json!({"metric": "t.value", "downsample": "all-max", "from": ":from", "to": ":to", "row": row});
        let request = sent(&reading(peak).unwrap(), &parameters("", DAY_MS * 1000 + 1, DAY_MS * 1000 + 9_000_000)).unwrap();
        assert_eq!(request["queries"][0]["downsample"], json!("0all-max"));
    }

    #[test]
    fn rows_have_tags_times_and_values() {
        let values = parameters("a", DAY_MS * 1000, (DAY_MS + 2000) * 1000);
        let mut rows = Rows::new();
        let answer = format!(
            r#"[{{"metric":"m","tags":{{"sensor":"a/20b","site":"5"}},"aggregateTags":[],"dps":{{"{DAY_MS}":1.5,"{}":7,"{}":9}}}}]"#,
            DAY_MS + 1999,
            DAY_MS + 2000
        );
        raw().read(answer.as_bytes(), &values, &mut AnswerState::default(), &mut rows).unwrap();
        let read: Vec<_> = rows.iter().map(|row| (0..3).map(|column| row.value(column).to_value()).collect::<Vec<_>>()).collect();
        let row = |ms: i64, value| vec![Value::Timestamp(ms * 1000), Value::Double(value), Value::Text("a b".into())];
        assert_eq!(read, [row(DAY_MS, 1.5), row(DAY_MS + 1999, 7.0)], "what is beyond the range is not taken");
        for (line, expected) in [
            (format!(r#"[{{"tags":{{}},"dps":{{"{DAY_MS}":1}}}}]"#), "the answer has no tag sensor"),
            (format!(r#"[{{"tags":{{"sensor":"/"}},"dps":{{"{DAY_MS}":1}}}}]"#), "nothing that was written"),
            (r#"[{"dps":{"x":1}}]"#.to_owned(), "expected a time in ms"),
        ] {
            let refused =
                raw().read(line.as_bytes(), &values, &mut AnswerState::default(), &mut Rows::new()).unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
        }
    }

    #[test]
    fn schemas_that_cannot_work_are_refused() {
        let row = json!(["time", "value", "sensor"]);
        for (statement, expected) in [
            (json!({}), "missing field `metric`"),
            (json!({"metric": "t", "from": ":site"}), "operation.q.from: \":site\": expected a timestamp"),
            (json!({"metric": "t", "at": ":to", "to": ":to"}), "operation.q.at: expected either at"),
            (json!({"metric": "t", "row": ["time"]}), "operation.q.row: expected 3 names"),
            (
                json!({"metric": "t", "aggregate": "sum", "downsample": "1h-avg"}),
                "operation.q.aggregate: \"sum\": expected one of",
            ),
            (json!({"metric": "t", "aggregate": "zimsum"}), "operation.q.aggregate: expected downsample"),
            (json!({"metric": "t", "group_by": ["site"]}), "operation.q.group_by: expected an aggregate"),
            (json!({"metric": "t", "downsample": "1w-avg"}), "operation.q.downsample: \"1w-avg\": expected all or"),
            (json!({"metric": "t", "downsample": "1h"}), "operation.q.downsample: \"1h\": expected all or"),
            (json!({"metric": "t", "downsample": "1h-median"}), "operation.q.downsample"),
        ] {
            let mut statement = statement;
            if statement.get("row").is_none() {
                statement["row"] = row.clone();
            }
            let message = reading(statement).err().unwrap().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
