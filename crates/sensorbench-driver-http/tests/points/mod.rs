//! What the tests of databases of points share: readings with a tag, and what all of them do with late points, ranges and texts.

use sensorbench_driver::{Driver, DriverError, ErrorKind, Schema, Value};
use serde_json::{Value as Json, json};

use crate::server::{Asking, request, schema, text};

pub const SECOND_US: i64 = 1_000_000;
/// A day in 2023.
pub const DAY_US: i64 = 19_500 * 86_400 * SECOND_US;

pub fn column(name: &str, value_type: &str) -> Json {
    json!({"name": name, "type": value_type})
}

/// The parameters of a question about a range of a sensor.
pub fn range() -> Json {
    json!([column("sensor", "text"), column("from", "timestamp"), column("to", "timestamp")])
}

/// Readings with a tag and a value: how all of a sensor are read, how the greatest of a range is, and further operations.
pub fn readings(read: &Json, peak: &Json, further: &[Json]) -> Schema {
    let parameters = json!([column("sensor", "text"), column("time", "timestamp"), column("value", "double")]);
    let shared = [
        json!({
            "name": "read",
            "parameters": [column("sensor", "text")],
            "columns": [column("time", "timestamp"), column("value", "double")],
            "statement": read,
        }),
        json!({"name": "peak", "parameters": range(), "columns": [column("value", "double")], "statement": peak}),
        json!({"name": "write", "parameters": parameters, "statement": {"write": "t"}}),
    ];
    let operations = [&shared, further].concat();
    schema(json!({
        "create": {"points": {"t": {"tags": ["sensor"], "fields": ["value"]}}},
        "tables": {"t": parameters},
        "operations": operations,
    }))
}

/// Of databases that are asked in PromQL.
pub fn readings_in_promql(further: &[Json]) -> Schema {
    let peak =
        json!({"query": "max_over_time(::t_value{sensor=:sensor}[:range])", "from": ":from", "to": ":to", "row": ["value"]});
    readings(&json!({"export": "::t_value{sensor=:sensor}"}), &peak, further)
}

/// Removes the series of a namespace, where they are asked for in PromQL.
pub fn remove_series(namespace: &str) {
    let path = format!("/api/v1/admin/tsdb/delete_series?match%5B%5D=%7B__name__%3D~%22{namespace}%3A.%2B%22%7D");
    assert_eq!(request(&path, Some("")).0, 204);
}

pub fn row(time: i64, value: f64) -> Vec<Value> {
    vec![Value::Timestamp(time), Value::Double(value)]
}

/// Readings at a server.
pub struct Readings {
    pub asking: Asking,
}

impl Readings {
    pub fn of(driver: &dyn Driver, schema: &Schema) -> Self {
        Self { asking: Asking::of(driver, schema) }
    }

    pub fn write(&self, sensor: &str, time: i64, value: f64) -> Result<(), DriverError> {
        self.asking.execute("write", &[text(sensor), Value::Timestamp(time), Value::Double(value)]).map(drop)
    }

    pub fn read(&self, sensor: &str) -> Vec<Vec<Value>> {
        self.asking.execute("read", &[text(sensor)]).unwrap()
    }

    /// Asks about a range of the sensor `a`, in µs of the day.
    pub fn ask(&self, operation: &str, from: i64, to: i64) -> Result<Vec<Vec<Value>>, DriverError> {
        self.asking.execute(operation, &[text("a"), Value::Timestamp(DAY_US + from), Value::Timestamp(DAY_US + to)])
    }

    /// Late points are taken; whole ms are exact, and what is finer is refused. A range begins with its start, and ends before its end, to the
    /// ms. `read` reads a sensor as soon as it has this many rows.
    pub fn are_exact_to_the_ms(&self, read: impl Fn(&str, usize) -> Vec<Vec<Value>>) {
        self.write("a", DAY_US + 2 * SECOND_US, 2.5).unwrap();
        self.write("a", DAY_US + 1000, 0.1).unwrap();
        assert_eq!(read("a", 2), [row(DAY_US + 1000, 0.1), row(DAY_US + 2 * SECOND_US, 2.5)]);
        self.refuse(DAY_US + 1, "not a whole number of milliseconds");
        let peak = |from: i64, to: i64| self.ask("peak", from, to).unwrap();
        assert_eq!(peak(1000, 2 * SECOND_US), [[Value::Double(0.1)]]);
        assert_eq!(peak(1000, 2 * SECOND_US + 1000), [[Value::Double(2.5)]]);
        assert!(peak(2000, 2 * SECOND_US).is_empty());
    }

    /// A time that the driver refuses.
    pub fn refuse(&self, time: i64, expected: &str) {
        let refused = self.write("a", time, 1.0).unwrap_err();
        assert!(refused.kind() == ErrorKind::Data && refused.to_string().contains(expected), "{refused}");
    }

    /// Whatever a tag has comes back as it was, and nothing that was never written is found.
    pub fn have_any_text(&self, texts: &[&str], read: impl Fn(&str, usize) -> Vec<Vec<Value>>) {
        for sensor in texts {
            assert!(self.read(sensor).is_empty(), "{sensor}");
            self.write(sensor, DAY_US, 7.0).unwrap();
            assert_eq!(read(sensor, 1), [row(DAY_US, 7.0)], "{sensor}");
        }
    }
}
