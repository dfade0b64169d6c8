//! How a row becomes a point: a line of the line protocol, with tags, fields and a time.

use std::collections::BTreeMap;

use sensorbench_driver::{ConversionError, DriverError, Parameter, SchemaError, Type, ValueRef};
use serde::Deserialize;

use crate::line::{Limits, PointForm, append_field, append_tag, escaped};

/// `[create.points.TABLE]` of a schema file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointsText {
    /// The table's name if not given.
    measurement: Option<String>,
    #[serde(default)]
    tags: Columns,
    #[serde(default)]
    fields: Columns,
    /// A column whose text is the name of the field that has the value of another one.
    named: Option<NamedText>,
    /// A column, or one time for all points in µs since 1970; the column `time` if not given.
    time: Option<TimeText>,
    /// Points have the time at which the server takes them.
    #[serde(default)]
    server_time: bool,
    /// Columns of bytes, which become text.
    #[serde(default)]
    base64: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedText {
    name: String,
    value: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum TimeText {
    Column(String),
    Constant(i64),
}

/// Columns under their own names, or under others.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Columns {
    Same(Vec<String>),
    Other(BTreeMap<String, String>),
}

impl Default for Columns {
    fn default() -> Self {
        Self::Same(Vec::new())
    }
}

impl Columns {
    /// Names at the server with the names of the columns.
    fn pairs(&self) -> Vec<(String, String)> {
        match self {
            Columns::Same(names) => names.iter().map(|name| (name.clone(), name.clone())).collect(),
            Columns::Other(names) => names.iter().map(|(name, column)| (name.clone(), column.clone())).collect(),
        }
    }
}

impl PointsText {
    /// The columns of a table that the schema does not fill: what its points are made of, of types that they can have.
    pub fn columns(&self) -> Vec<Parameter> {
        let column = |name: &str, value_type| Parameter { name: name.to_owned(), value_type };
        let mut columns: Vec<_> = self.tags.pairs().iter().map(|(_, name)| column(name, Type::Text)).collect();
        columns.extend(self.fields.pairs().iter().map(|(_, name)| column(name, Type::Double)));
        columns.extend(self.named.iter().flat_map(|named| [column(&named.name, Type::Text), column(&named.value, Type::Double)]));
        if let Some(TimeText::Column(name)) = &self.time {
            columns.push(column(name, Type::Timestamp));
        } else if self.time.is_none() && !self.server_time {
            columns.push(column("time", Type::Timestamp));
        }
        columns
    }
}

/// How the rows of a table become points.
#[derive(Clone, Debug)]
pub struct Points {
    /// The columns of the rows, in order.
    pub columns: Vec<Parameter>,
    /// The name at the server, without what a namespace puts before it.
    pub measurement: String,
    /// Names of the fields that every point has; none where rows name their field themselves.
    pub fields: Vec<String>,
    pub limits: Limits,
    /// Names of tags, escaped, and the columns that have them.
    pub tags: Vec<(String, usize)>,
    /// Fields: name, column, and whether it is written as base64.
    pub values: Vec<(Name, usize, bool)>,
    time: Time,
}

/// Where the time of a point is.
#[derive(Clone, Copy, Debug)]
enum Time {
    Column(usize),
    Constant(i64),
    /// The server's own, when it takes the point.
    Server,
}

/// The name of a field, as it is written.
#[derive(Clone, Debug)]
pub enum Name {
    Literal(String),
    Column(usize),
}

impl Points {
    /// Reads how a table's rows become points.
    pub fn of(table: &str, text: &PointsText, columns: &[Parameter], limits: Limits) -> Result<Self, SchemaError> {
        let path = format!("create.points.{table}");
        let place = |key: &str, name: &str| {
            columns.iter().position(|column| column.name == name).ok_or_else(|| {
                let known: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
                SchemaError::at(
                    format!("{path}.{key}"),
                    format!("the table has no column {name}; expected one of {}", known.join(", ")),
                )
            })
        };
        let measurement = text.measurement.clone().unwrap_or_else(|| table.to_owned());
        check_name(&format!("{path}.measurement"), &measurement)?;
        let mut tags = Vec::new();
        for (name, column) in text.tags.pairs() {
            check_name(&format!("{path}.tags"), &name)?;
            let at = place("tags", &column)?;
            if !matches!(columns[at].value_type, Type::Text | Type::Integer | Type::Boolean) {
                let message = format!(
                    "{column} is a {}; expected text, integer or boolean, because tags are text",
                    columns[at].value_type.name()
                );
                return Err(SchemaError::at(format!("{path}.tags"), message));
            }
            tags.push((escaped(&name), at));
        }
        let (fewest, largest) = limits.tags;
        if !(fewest..=largest).contains(&tags.len()) {
            let message = format!("a point has {} tags; the server takes from {fewest} to {largest}", tags.len());
            return Err(SchemaError::at(format!("{path}.tags"), message));
        }
        let mut fields = Vec::new();
        let mut values = Vec::new();
        for (name, column) in text.fields.pairs() {
            check_name(&format!("{path}.fields"), &name)?;
            let at = place("fields", &column)?;
            let is_base64 = text.base64.contains(&column);
            check_field(&format!("{path}.fields"), &columns[at], is_base64, limits)?;
            values.push((Name::Literal(escaped(&name)), at, is_base64));
            fields.push(name);
        }
        if let Some(NamedText { name, value }) = &text.named {
            if !fields.is_empty() {
                return Err(SchemaError::at(format!("{path}.named"), "expected either fields or named, not both"));
            }
            let (name, value) = (place("named.name", name)?, place("named.value", value)?);
            if columns[name].value_type != Type::Text {
                return Err(SchemaError::at(format!("{path}.named.name"), "expected a column of text"));
            }
            check_field(&format!("{path}.named.value"), &columns[value], false, limits)?;
            values.push((Name::Column(name), value, false));
        }
        if values.is_empty() {
            return Err(SchemaError::at(path, "a point has at least one field; expected fields or named"));
        }
        for name in &text.base64 {
            place("base64", name)?;
        }
        let time = match &text.time {
            Some(_) if text.server_time => {
                return Err(SchemaError::at(format!("{path}.server_time"), "expected either time or server_time, not both"));
            }
            None if text.server_time => Time::Server,
            Some(TimeText::Constant(time)) => {
                Time::Constant(limits.time(*time).map_err(|error| SchemaError::at(format!("{path}.time"), error.to_string()))?)
            }
            column => {
                let name = if let Some(TimeText::Column(name)) = column { name } else { "time" };
                let at = place("time", name)?;
                if !matches!(columns[at].value_type, Type::Timestamp | Type::Integer) {
                    return Err(SchemaError::at(
                        format!("{path}.time"),
                        "expected a timestamp, or an integer in the server's own unit",
                    ));
                }
                Time::Column(at)
            }
        };
        Ok(Self { columns: columns.to_vec(), measurement, fields, limits, tags, values, time })
    }

    /// Appends the line of a row. `prefix` is what the namespace puts before the measurement.
    ///
    /// Fails with what a point cannot hold; nothing is then appended.
    pub fn append<'a>(
        &self,
        line: &mut Vec<u8>,
        prefix: &str,
        value: impl Fn(usize) -> ValueRef<'a>,
    ) -> Result<(), ConversionError> {
        all_or_nothing(line, |line| self.append_line(line, prefix, value))
    }

    fn append_line<'a>(
        &self,
        line: &mut Vec<u8>,
        prefix: &str,
        value: impl Fn(usize) -> ValueRef<'a>,
    ) -> Result<(), ConversionError> {
        let at = |place: usize| self.at(place);
        line.extend_from_slice(prefix.as_bytes());
        // A word, in which nothing needs to be escaped.
        line.extend_from_slice(self.measurement.as_bytes());
        for (name, place) in &self.tags {
            line.push(b',');
            line.extend_from_slice(name.as_bytes());
            line.push(b'=');
            append_tag(line, value(*place), self.limits).map_err(at(*place))?;
        }
        let mut separator = b' ';
        for (name, place, is_base64, field) in self.fields_of(&value)? {
            line.push(separator);
            separator = b',';
            match name {
                Name::Literal(name) => line.extend_from_slice(name.as_bytes()),
                Name::Column(name) => append_tag(line, value(*name), self.limits).map_err(at(*name))?,
            }
            line.push(b'=');
            append_field(line, field, is_base64, self.limits.only_numbers).map_err(at(place))?;
        }
        if let Some(time) = self.time(value)? {
            line.push(b' ');
            line.extend_from_slice(itoa::Buffer::new().format(time).as_bytes());
        }
        line.push(b'\n');
        Ok(())
    }

    /// Says in which column an error is.
    pub fn at(&self, place: usize) -> impl Fn(ConversionError) -> ConversionError {
        move |error| error.at("column", &self.columns[place].name)
    }

    /// The fields of a row that have a value: name, column, whether it is written as base64, and the value. A row without any is not a point.
    pub fn fields_of<'a, 'p>(
        &'p self,
        value: &'p impl Fn(usize) -> ValueRef<'a>,
    ) -> Result<impl Iterator<Item = (&'p Name, usize, bool, ValueRef<'a>)>, ConversionError> {
        if self.values.iter().all(|(_, place, _)| matches!(value(*place), ValueRef::Null)) {
            let message = match self.values.as_slice() {
                [_] => "null; a point has a value".to_owned(),
                _ => "null, as all fields of the row are; a point has at least one value".to_owned(),
            };
            return Err(self.at(self.values[0].1)(ConversionError(message)));
        }
        Ok(self.values.iter().filter_map(|(name, place, is_base64)| match value(*place) {
            ValueRef::Null => None,
            field => Some((name, *place, *is_base64, field)),
        }))
    }

    /// How many rows there are at a server that counts the values of a field, or of all fields where rows name theirs (`None`). `missing` says of
    /// how many rows a column has no value.
    ///
    /// A field that every row has is enough. Where there is none, the rows that lack a field are added to its values, and the field by which
    /// there are fewest rows counts.
    pub fn count_rows(
        &self,
        missing: &BTreeMap<String, u64>,
        count: impl Fn(Option<&str>) -> Result<u64, DriverError>,
    ) -> Result<u64, DriverError> {
        if self.fields.is_empty() {
            return count(None);
        }
        let lacking = self.values.iter().map(|(_, place, _)| missing.get(&self.columns[*place].name).copied().unwrap_or(0));
        let fields: Vec<_> = self.fields.iter().zip(lacking).collect();
        if let Some((field, _)) = fields.iter().find(|(_, lacking)| *lacking == 0) {
            return count(Some(field));
        }
        let rows = fields.iter().map(|(field, lacking)| Ok(count(Some(field))? + lacking));
        rows.reduce(|fewest, rows| Ok(fewest?.min(rows?))).expect("there is a field")
    }

    /// The time of a row in the server's unit; None if it is the one at which the point is taken.
    pub fn time<'a>(&self, value: impl Fn(usize) -> ValueRef<'a>) -> Result<Option<i64>, ConversionError> {
        Ok(match self.time {
            Time::Constant(time) => Some(time),
            Time::Column(place) => match value(place) {
                ValueRef::Timestamp(time) => Some(self.limits.time(time).map_err(self.at(place))?),
                ValueRef::Integer(time) => Some(self.limits.own_time(time).map_err(self.at(place))?),
                other => return Err(self.at(place)(ConversionError(format!("{other} is not a time; every point has one")))),
            },
            Time::Server => None,
        })
    }
}

/// Appends what `append` appends, and nothing if that fails.
pub fn all_or_nothing(
    data: &mut Vec<u8>,
    append: impl FnOnce(&mut Vec<u8>) -> Result<(), ConversionError>,
) -> Result<(), ConversionError> {
    let start = data.len();
    append(data).inspect_err(|_| data.truncate(start))
}

fn check_name(path: &str, name: &str) -> Result<(), SchemaError> {
    let is_word = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_word && name != "sensorbench" && name != "time" {
        Ok(())
    } else {
        let message = format!(
            "{name:?}: expected letters, digits and underscores, other than time and sensorbench, which have a meaning of their own"
        );
        Err(SchemaError::at(path, message))
    }
}

fn check_field(path: &str, column: &Parameter, is_base64: bool, limits: Limits) -> Result<(), SchemaError> {
    let Parameter { name, value_type } = column;
    match value_type {
        Type::Bytes if !is_base64 || limits.only_numbers => Err(SchemaError::at(
            path,
            format!(
                "{name}: the server has no type for bytes; expected no such column, or base64 = [\"{name}\"] where fields can be text"
            ),
        )),
        Type::Text if limits.form != PointForm::Line => {
            Err(SchemaError::at(path, format!("{name}: the server keeps numbers alone; expected a tag")))
        }
        Type::Text if limits.only_numbers => Err(SchemaError::at(
            path,
            format!("{name}: the server keeps numbers alone, and would store 0 for a text without a word; make it a tag"),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LIMITS: Limits = Limits {
        time_unit_us: 1,
        form: PointForm::Line,
        times_us: (-9_223_372_036_854_775, 9_223_372_036_854_775),
        only_numbers: false,
        escapes_backslash: false,
        max_tag_bytes: 100,
        tags: (0, usize::MAX),
    };
    const NUMBERS: Limits = Limits {
        time_unit_us: 1000,
        form: PointForm::Line,
        times_us: (0, 4_102_444_800_000_000),
        only_numbers: true,
        escapes_backslash: true,
        max_tag_bytes: 100,
        tags: (0, usize::MAX),
    };

    fn columns() -> Vec<Parameter> {
        [
            ("site", Type::Integer),
            ("sensor", Type::Text),
            ("time", Type::Timestamp),
            ("value", Type::Double),
            ("data", Type::Bytes),
            ("number", Type::Integer),
        ]
        .map(|(name, value_type)| Parameter { name: name.to_owned(), value_type })
        .to_vec()
    }

    fn points(text: serde_json::Value, limits: Limits) -> Result<Points, SchemaError> {
        Points::of("readings", &serde_json::from_value(text).unwrap(), &columns(), limits)
    }

    fn line(points: &Points, row: [ValueRef; 6]) -> Result<String, String> {
        let mut line = b"before".to_vec();
        let appended = points.append(&mut line, "", |place| row[place]);
        if appended.is_err() {
            assert_eq!(line, b"before", "nothing is left of what was refused");
        }
        appended.map(|()| String::from_utf8(line[6..].to_vec()).unwrap()).map_err(|error| error.to_string())
    }

    const ROW: [ValueRef; 6] = [
        ValueRef::Integer(5),
        ValueRef::Text("A C=1,x"),
        ValueRef::Timestamp(-3_001_000),
        ValueRef::Double(0.1),
        ValueRef::Bytes(b"\0\xff"),
        ValueRef::Integer(i64::MIN),
    ];

    fn with(place: usize, value: ValueRef<'static>) -> [ValueRef<'static>; 6] {
        let mut row = ROW;
        row[place] = value;
        row
    }

    #[test]
    fn points_can_have_the_servers_time() {
        let timed = points(json!({"tags": ["site"], "fields": ["value"], "server_time": true}), NUMBERS).unwrap();
        assert_eq!(line(&timed, ROW).unwrap(), "readings,site=5 value=0.1\n");
        let both = points(json!({"fields": ["value"], "server_time": true, "time": "time"}), NUMBERS).unwrap_err().to_string();
        assert!(both.starts_with("create.points.readings.server_time: expected either time or server_time"), "{both}");
        let text: PointsText = serde_json::from_value(json!({"fields": ["value"], "server_time": true})).unwrap();
        assert_eq!(text.columns().iter().map(|column| column.name.as_str()).collect::<Vec<_>>(), ["value"]);
    }

    #[test]
    fn rows_become_lines() {
        let tagged =
            points(json!({"tags": ["site", "sensor"], "fields": ["value", "number", "data"], "base64": ["data"]}), LIMITS)
                .unwrap();
        assert_eq!(
            line(&tagged, ROW).unwrap(),
            "readings,site=5,sensor=A\\ C\\=1\\,x value=0.1,number=-9223372036854775808i,data=\"AP8=\" -3001000\n"
        );
        assert_eq!(line(&tagged, with(5, ValueRef::Null)).unwrap().matches("number").count(), 0);
        let wide =
            points(json!({"measurement": "m", "tags": {"place": "site"}, "named": {"name": "sensor", "value": "value"}}), LIMITS)
                .unwrap();
        assert_eq!(line(&wide, ROW).unwrap(), "m,place=5 A\\ C\\=1\\,x=0.1 -3001000\n");
        let numbers = points(json!({"tags": ["sensor"], "fields": ["value"]}), NUMBERS).unwrap();
        assert_eq!(line(&numbers, with(2, ValueRef::Timestamp(5_000))).unwrap(), "readings,sensor=A\\ C\\=1\\,x value=0.1 5\n");
    }

    /// Text that would end a tag, a field or a line, and begin another, stays text or is refused.
    #[test]
    fn nothing_is_spliced_into_a_line() {
        let fields = [("sensor", Type::Text), ("time", Type::Timestamp)]
            .map(|(name, value_type)| Parameter { name: name.to_owned(), value_type });
        let text: PointsText = serde_json::from_value(json!({"fields": ["sensor"]})).unwrap();
        let points = Points::of("t", &text, &fields, LIMITS).unwrap();
        let mut written = Vec::new();
        let hostile = "x\" 1\nother,a=b v=1 2\n\\\"";
        let row = [ValueRef::Text(hostile), ValueRef::Timestamp(1)];
        points.append(&mut written, "", |place| row[place]).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), "t sensor=\"x\\\" 1\nother,a=b v=1 2\n\\\\\\\"\" 1\n");
        let tagged = super::tests::points(json!({"tags": ["sensor"], "fields": ["value"]}), LIMITS).unwrap();
        for hostile in ["a\nb v=1 1", "a\\", "a\\,b=c", "a\\ v=1", "", "a\rb"] {
            let refused = line(&tagged, with(1, ValueRef::Text(hostile))).unwrap_err();
            assert!(refused.starts_with("column sensor") && refused.contains("cannot be a tag"), "{refused}");
        }
        let escaping =
            super::tests::points(json!({"tags": ["sensor"], "fields": ["value"]}), Limits { escapes_backslash: true, ..LIMITS })
                .unwrap();
        assert!(
            line(&escaping, with(1, ValueRef::Text("a\\, b\\"))).unwrap().starts_with("readings,sensor=a\\\\\\,\\ b\\\\ value=")
        );
        assert!(line(&tagged, with(1, ValueRef::Text("a,b=1 c"))).unwrap().starts_with("readings,sensor=a\\,b\\=1\\ c value="));
    }

    #[test]
    fn what_a_point_cannot_hold_is_refused() {
        let tagged = points(json!({"tags": ["sensor"], "fields": ["value", "number"]}), LIMITS).unwrap();
        for (row, expected) in [
            (with(3, ValueRef::Double(f64::NAN)), "column value: NaN"),
            (with(1, ValueRef::Null), "column sensor: null cannot be a tag"),
            (with(2, ValueRef::Null), "column time: null is not a time"),
            (
                with(2, ValueRef::Timestamp(9_223_372_036_854_776)),
                "column time: 9223372036854776 µs since 1970 is none of the server's times",
            ),
        ] {
            let refused = line(&tagged, row).unwrap_err();
            assert!(refused.starts_with(expected), "{refused}");
        }
        let numbers = points(json!({"tags": ["sensor"], "fields": ["value", "number"]}), NUMBERS).unwrap();
        let early = with(2, ValueRef::Timestamp(5_000));
        let fine = points(json!({"tags": ["sensor"], "fields": ["value"]}), NUMBERS).unwrap();
        assert!(line(&numbers, early).unwrap_err().contains("beyond 2^53"));
        assert!(line(&fine, with(2, ValueRef::Timestamp(5_001))).unwrap_err().contains("not a whole number of milliseconds"));
    }

    #[test]
    fn any_field_can_be_missing_but_not_all() {
        let tagged = points(json!({"tags": ["sensor"], "fields": ["value", "number"]}), LIMITS).unwrap();
        let without = with(3, ValueRef::Null);
        assert!(line(&tagged, without).unwrap().contains(" number=-9223372036854775808i "));
        let mut empty = without;
        empty[5] = ValueRef::Null;
        assert!(line(&tagged, empty).unwrap_err().starts_with("column value: null, as all fields of the row are"));
        let single = points(json!({"tags": ["sensor"], "fields": ["value"]}), LIMITS).unwrap();
        assert!(line(&single, without).unwrap_err().starts_with("column value: null; a point has a value"));
    }

    #[test]
    fn rows_are_counted_by_a_field_that_all_have_or_by_each() {
        let two = points(json!({"tags": ["sensor"], "fields": {"a": "value", "b": "number"}}), LIMITS).unwrap();
        let rows = |missing: &[(&str, u64)]| {
            let missing = missing.iter().map(|(name, rows)| ((*name).to_owned(), *rows)).collect();
            two.count_rows(&missing, |field| Ok(if field == Some("a") { 70 } else { 100 })).unwrap()
        };
        assert_eq!(rows(&[]), 70, "by the first field, which every row is said to have");
        assert_eq!(rows(&[("value", 30)]), 100, "by the field that every row has");
        assert_eq!(rows(&[("value", 31), ("number", 1)]), 101);
        assert_eq!(rows(&[("value", 30), ("number", 1)]), 100, "a value that is lost shows");
        let named = points(json!({"named": {"name": "sensor", "value": "value"}}), LIMITS).unwrap();
        assert_eq!(named.count_rows(&BTreeMap::new(), |field| Ok(if field.is_none() { 5 } else { 0 })).unwrap(), 5);
    }

    #[test]
    fn schemas_that_cannot_work_are_refused() {
        let refused = |text, limits| points(text, limits).unwrap_err().to_string();
        for (text, expected) in [
            (json!({}), "create.points.readings: a point has at least one field"),
            (json!({"tags": ["value"], "fields": ["value"]}), "create.points.readings.tags: value is a double"),
            (
                json!({"tags": ["sit"], "fields": ["value"]}),
                "create.points.readings.tags: the table has no column sit; expected one of site",
            ),
            (json!({"fields": ["data"]}), "create.points.readings.fields: data: the server has no type for bytes"),
            (json!({"fields": {"a b": "value"}}), "create.points.readings.fields: \"a b\": expected letters"),
            (json!({"measurement": "sensorbench", "fields": ["value"]}), "create.points.readings.measurement"),
            (
                json!({"fields": ["value"], "named": {"name": "sensor", "value": "value"}}),
                "create.points.readings.named: expected either",
            ),
            (
                json!({"named": {"name": "site", "value": "value"}}),
                "create.points.readings.named.name: expected a column of text",
            ),
            (json!({"fields": ["value"], "time": "value"}), "create.points.readings.time: expected a timestamp"),
        ] {
            let message = refused(text, LIMITS);
            assert!(message.starts_with(expected), "{message}");
        }
        assert!(refused(json!({"fields": ["sensor"]}), NUMBERS).contains("would store 0 for a text without a word"));
        assert!(refused(json!({"fields": ["data"], "base64": ["data"]}), NUMBERS).contains("no type for bytes"));
    }
}
