//! The tree model: a table of a schema is what lies below a path, whose next nodes are columns; each of the other columns is a measurement.
//! Statements are those of the tree model's SQL, and answers come by columns.

use std::collections::BTreeMap;

use sensorbench_driver::{Column, ConversionError, DriverError, Parameter, Rows, Type, ValueRef, place_tables};

use super::answer::refusal;
use super::precision::Precision;
use crate::answer::push;
use crate::connection::{Call, Reply};
use crate::json::{Reader, Scalar};
use crate::template::{append_number, quoted, tag_text};

/// The rows of an answer, more than which are an error of the server.
const MAX_ROWS: i32 = i32::MAX;
const TIME: &str = "time";
/// The column that answers have first where they are aligned by device: a path, which is left out.
const DEVICE: &str = "Device";

/// For each table the columns that are nodes of its paths, in their order.
pub type Paths = BTreeMap<String, Vec<String>>;

/// The database for a namespace. It has a name of its own: 2.0.1-beta deletes a database's tables with the tree model's database of the same name.
pub fn database(namespace: &str) -> String {
    format!("{namespace}_tree")
}

/// Where all that is sensorbench's lies.
pub fn root(namespace: &str) -> String {
    format!("root.{}", database(namespace))
}

/// A statement with the paths of the tables between braces.
pub fn placed(statement: &str, namespace: &str) -> String {
    place_tables(statement, |table| format!("{}.{table}", root(namespace)))
}

/// A node of a path, between the quotes that the server has for names.
pub fn node(value: ValueRef) -> Result<String, ConversionError> {
    Ok(format!("`{}`", tag_text(value)?.replace('`', "``")))
}

/// A call for rows.
pub fn reading(statement: &str) -> Call {
    let body = format!("{{\"sql\":{},\"row_limit\":{MAX_ROWS}}}", quoted(statement));
    Call::post_json("/rest/v2/query", body.into_bytes())
}

/// A call that returns nothing.
pub fn running(statement: &str) -> Call {
    Call::post_json("/rest/v2/nonQuery", format!("{{\"sql\":{}}}", quoted(statement)).into_bytes())
}

/// Appends the rows of an answer of these columns. Where there is one more of them than the answer has, the first one is the time.
pub fn read(reply: &Reply, columns: &[Column], precision: Precision, rows: &mut Rows) -> Result<(), DriverError> {
    if !reply.status.is_success() {
        return Err(DriverError::Statement(reply.shown()));
    }
    let (mut times, mut values, mut has_device) = (Vec::new(), None, false);
    let read = Reader::new(&reply.body).object(|reader, key| match key.as_ref() {
        "expressions" => {
            has_device = scalars(reader)?.first() == Some(&Scalar::Text(DEVICE.into()));
            Ok(())
        }
        "timestamps" => {
            times = scalars(reader)?;
            Ok(())
        }
        "values" => {
            let mut of_columns = Vec::new();
            reader.list(|reader| {
                of_columns.push(scalars(reader)?);
                Ok(())
            })?;
            values = Some(of_columns);
            Ok(())
        }
        _ => reader.skip(),
    });
    let values = match (read, values) {
        (Ok(()), Some(values)) => values,
        (Err(error), Some(_)) => return Err(DriverError::Data(error.to_string())),
        (_, None) => {
            let said = refusal(reply).unwrap_or_else(|| "the statement returns no rows".to_owned());
            return Err(DriverError::Statement(said));
        }
    };
    append(&times, &values[usize::from(has_device)..], columns, precision, rows)
        .map_err(|error| DriverError::Data(error.to_string()))
}

/// The values of a list; none where there is null in its place.
fn scalars<'a>(reader: &mut Reader<'a>) -> Result<Vec<Scalar<'a>>, ConversionError> {
    let mut found = Vec::new();
    reader.list_or_null(|reader| {
        found.push(reader.scalar()?);
        Ok(())
    })?;
    Ok(found)
}

fn append(
    times: &[Scalar],
    values: &[Vec<Scalar>],
    columns: &[Column],
    precision: Precision,
    rows: &mut Rows,
) -> Result<(), ConversionError> {
    let Some(count) = values.first().map(Vec::len) else { return Ok(()) };
    let has_time = columns.len() == values.len() + 1;
    if !has_time && columns.len() != values.len() {
        let expected = columns.len();
        return Err(ConversionError(format!("the statement returns {} columns; the operation has {expected}", values.len())));
    }
    let of_answer = has_time.then_some(times).into_iter().chain(values.iter().map(Vec::as_slice));
    let all: Vec<_> = columns.iter().zip(of_answer).collect();
    for row in 0..count {
        for (column, values) in &all {
            let unit = if column.value_type == Type::Timestamp { precision.unit_us() } else { 1 };
            let value =
                values.get(row).ok_or_else(|| ConversionError("the columns of the answer differ in length".to_owned()))?;
            push(rows, column.value_type, value, unit).map_err(|error| error.at("column", &column.name))?;
        }
        rows.end_row();
    }
    Ok(())
}

/// A measurement: where it is among the columns, and what it is at the server.
#[derive(Clone, Debug)]
struct Measurement {
    place: usize,
    value_type: &'static str,
}

/// What lies below a path, with the columns that are written, in their order.
#[derive(Clone, Debug)]
pub struct Series {
    /// The path that the nodes follow.
    path: String,
    columns: Vec<String>,
    nodes: Vec<usize>,
    measurements: Vec<Measurement>,
    time: usize,
    /// Names and types of the measurements, as every row of a request has them.
    names: String,
    types: String,
    precision: Precision,
}

impl Series {
    /// What a table is at the server; `server_names` are those of columns that are called otherwise there.
    pub fn of(
        (namespace, table): (&str, &str),
        nodes: &[String],
        columns: &[Parameter],
        server_names: &BTreeMap<String, String>,
        precision: Precision,
    ) -> Result<Self, String> {
        let name = |column: &Parameter| server_names.get(&column.name).unwrap_or(&column.name).clone();
        let place = |wanted: &str| {
            let listed = || columns.iter().map(name).collect::<Vec<_>>().join(", ");
            let found = columns.iter().position(|column| name(column) == wanted);
            found.ok_or_else(|| format!("no column becomes {wanted}; there are {}", listed()))
        };
        let places = nodes.iter().map(|node| place(node)).collect::<Result<Vec<_>, _>>()?;
        let time = place(TIME)?;
        let others = (0..columns.len()).filter(|column| *column != time && !places.contains(column));
        let measurement = |place: usize| {
            let column = &columns[place];
            type_at_server(column.value_type)
                .map(|value_type| Measurement { place, value_type })
                .ok_or_else(|| format!("column {}: bytes cannot be written over REST", column.name))
        };
        let measurements = others.map(measurement).collect::<Result<Vec<_>, _>>()?;
        if measurements.is_empty() {
            return Err("no column becomes a measurement: all are nodes or the time".to_owned());
        }
        let of_measurements =
            |text: &dyn Fn(&Measurement) -> String| format!("[{}]", measurements.iter().map(text).collect::<Vec<_>>().join(","));
        Ok(Self {
            path: format!("{}.{table}", root(namespace)),
            columns: columns.iter().map(|column| column.name.clone()).collect(),
            names: of_measurements(&|measurement| quoted(&name(&columns[measurement.place]))),
            types: of_measurements(&|measurement| quoted(measurement.value_type)),
            nodes: places,
            measurements,
            time,
            precision,
        })
    }

    /// How many rows there are, in a statement: each has the first measurement.
    pub fn count(&self) -> String {
        let names: Vec<String> = serde_json::from_str(&self.names).expect("was written as a list of texts");
        format!("SELECT count(`{}`) FROM {}.** GROUP BY LEVEL = 1", names[0].replace('`', "``"), self.path)
    }

    fn device<'v>(&self, value: &impl Fn(usize) -> ValueRef<'v>) -> Result<String, ConversionError> {
        let mut device = self.path.clone();
        for place in &self.nodes {
            device.push('.');
            device.push_str(&node(value(*place)).map_err(|error| error.at("column", &self.columns[*place]))?);
        }
        Ok(quoted(&device))
    }

    fn values<'v>(&self, value: &impl Fn(usize) -> ValueRef<'v>) -> Result<String, ConversionError> {
        let mut text = String::from("[");
        for Measurement { place, .. } in &self.measurements {
            if text.len() > 1 {
                text.push(',');
            }
            let appended = match value(*place) {
                ValueRef::Boolean(value) => {
                    text.push_str(if value { "true" } else { "false" });
                    Ok(())
                }
                ValueRef::Timestamp(time_us) => self.precision.time(time_us).map(|time| text.push_str(&time.to_string())),
                ValueRef::Text(value) => {
                    text.push_str(&quoted(value));
                    Ok(())
                }
                value => append_number(&mut text, value),
            };
            appended.map_err(|error| error.at("column", &self.columns[*place]))?;
        }
        text.push(']');
        Ok(text)
    }
}

fn type_at_server(value_type: Type) -> Option<&'static str> {
    match value_type {
        Type::Boolean => Some("BOOLEAN"),
        Type::Integer => Some("INT64"),
        Type::Double => Some("DOUBLE"),
        Type::Timestamp => Some("TIMESTAMP"),
        Type::Text => Some("STRING"),
        Type::Bytes => None,
    }
}

/// Ends each of the three parts of a row: texts in JSON have no such byte.
const END: u8 = b'\n';

impl Series {
    /// Names of the columns of a row, in order.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(String::as_str)
    }

    /// Appends the row's time, its device and its values.
    pub fn append<'v>(&self, data: &mut Vec<u8>, value: impl Fn(usize) -> ValueRef<'v>) -> Result<(), ConversionError> {
        let time = match value(self.time) {
            ValueRef::Timestamp(time_us) => self.precision.time(time_us),
            ValueRef::Integer(number) => Ok(number),
            _ => Err(ConversionError("the time of a row cannot be null".to_owned())),
        };
        let time = time.map_err(|error| error.at("column", &self.columns[self.time]))?;
        for part in [time.to_string(), self.device(&value)?, self.values(&value)?] {
            data.extend_from_slice(part.as_bytes());
            data.push(END);
        }
        Ok(())
    }

    /// The request that writes rows.
    pub fn call(&self, data: Vec<u8>) -> Call {
        let parts: Vec<&[u8]> = data.split(|byte| *byte == END).collect();
        let rows = parts.len() / 3;
        let every_third = |first: usize| parts[first..].iter().step_by(3).take(rows).copied().collect::<Vec<_>>().join(&b","[..]);
        let repeated = |text: &str| vec![text; rows].join(",").into_bytes();
        let body = [
            b"{\"is_aligned\":false,\"timestamps\":[".to_vec(),
            every_third(0),
            b"],\"devices\":[".to_vec(),
            every_third(1),
            b"],\"values_list\":[".to_vec(),
            every_third(2),
            b"],\"measurements_list\":[".to_vec(),
            repeated(&self.names),
            b"],\"data_types_list\":[".to_vec(),
            repeated(&self.types),
            b"]}".to_vec(),
        ];
        Call::post_json("/rest/v2/insertRecords", body.concat())
    }
}

#[cfg(test)]
mod tests {
    use sensorbench_driver::Value;
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::connection::Body;

    fn series(columns: &[(&str, Type)]) -> Result<Series, String> {
        let columns: Vec<_> =
            columns.iter().map(|(name, value_type)| Parameter { name: (*name).to_owned(), value_type: *value_type }).collect();
        let names = BTreeMap::from([("measured".to_owned(), "time".to_owned())]);
        Series::of(("d", "r"), &["site".to_owned(), "sensor".to_owned()], &columns, &names, Precision::Millis)
    }

    #[test]
    fn rows_become_records_of_their_devices() {
        let series = series(&[
            ("sensor", Type::Text),
            ("measured", Type::Timestamp),
            ("value", Type::Double),
            ("site", Type::Integer),
            ("note", Type::Text),
        ]);
        let series = series.unwrap();
        let mut data = Vec::new();
        for (sensor, time) in [("A\n`.x", 1000), ("b", -2000)] {
            let values = [
                ValueRef::Text(sensor),
                ValueRef::Timestamp(time),
                ValueRef::Double(5.0),
                ValueRef::Integer(7),
                ValueRef::Text("\n"),
            ];
            series.append(&mut data, |place| values[place]).unwrap();
        }
        let Some(Body::Json(body)) = series.call(data).body else { panic!("a body of JSON") };
        let body: Json = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["timestamps"], json!([1, -2]));
        assert_eq!(body["devices"], json!(["root.d_tree.r.`7`.`A\n``.x`", "root.d_tree.r.`7`.`b`"]));
        assert_eq!(body["measurements_list"], json!([["value", "note"], ["value", "note"]]));
        assert_eq!(body["data_types_list"], json!([["DOUBLE", "STRING"], ["DOUBLE", "STRING"]]));
        assert_eq!(body["values_list"], json!([[5.0, "\n"], [5.0, "\n"]]));
        assert_eq!(series.count(), "SELECT count(`value`) FROM root.d_tree.r.** GROUP BY LEVEL = 1");
        let with = |time: ValueRef<'static>, value: ValueRef<'static>| {
            let values = [ValueRef::Text("a"), time, value, ValueRef::Integer(1), ValueRef::Text("")];
            series.append(&mut Vec::new(), |place| values[place]).is_err()
        };
        assert!(with(ValueRef::Timestamp(1), ValueRef::Double(1.0)) && with(ValueRef::Null, ValueRef::Double(1.0)));
        assert!(with(ValueRef::Timestamp(0), ValueRef::Double(f64::NAN)) && with(ValueRef::Timestamp(0), ValueRef::Null));
    }

    #[test]
    fn columns_are_nodes_or_measurements_or_the_time() {
        assert!(
            series(&[("site", Type::Integer), ("measured", Type::Timestamp)]).unwrap_err().contains("no column becomes sensor")
        );
        let nodes = [("site", Type::Integer), ("sensor", Type::Text)];
        assert!(series(&nodes).unwrap_err().contains("no column becomes time; there are site, sensor"));
        let timed = [nodes[0], nodes[1], ("time", Type::Timestamp)];
        assert!(series(&timed).unwrap_err().contains("no column becomes a measurement"));
        assert!(series(&[timed[0], timed[1], timed[2], ("data", Type::Bytes)]).unwrap_err().contains("column data: bytes"));
    }

    #[test]
    fn answers_by_columns_become_rows() {
        let column = |name: &str, value_type| Column { name: name.to_owned(), value_type, computed: false };
        let columns = [column("time", Type::Timestamp), column("value", Type::Double)];
        let (times, values) = ([Scalar::Number("1"), Scalar::Number("2")], [vec![Scalar::Number("0.5"), Scalar::Null]]);
        let mut rows = Rows::new();
        append(&times, &values, &columns, Precision::Millis, &mut rows).unwrap();
        let found: Vec<_> = rows.iter().map(|row| (row.value(0).to_value(), row.value(1).to_value())).collect();
        assert_eq!(found, [(Value::Timestamp(1000), Value::Double(0.5)), (Value::Timestamp(2000), Value::Null)]);
        // A time that the operation does not have is left out, and nothing is known of what has no series.
        let mut rows = Rows::new();
        append(&times[..1], &[vec![Scalar::Number("9")]], &columns[1..], Precision::Millis, &mut rows).unwrap();
        append(&[], &[], &columns, Precision::Millis, &mut rows).unwrap();
        assert_eq!(rows.iter().map(|row| row.value(0).to_value()).collect::<Vec<_>>(), [Value::Double(9.0)]);
        let other = append(&times, &[vec![], vec![]], &columns[1..], Precision::Millis, &mut rows).unwrap_err();
        assert!(other.to_string().contains("returns 2 columns; the operation has 1"), "{other}");
    }
}
