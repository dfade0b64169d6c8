//! Points of OpenTSDB: an object of JSON for each field of a row, whose metric is `<prefix>MEASUREMENT.FIELD`.
//!
//! Names are made of letters, digits and `-_.` at the server; everything else, and the slash, is written as a slash and two hexadecimal digits
//! for each of its bytes, which is read back as it was. Values are doubles and always written as such, because OpenTSDB keeps a whole number
//! that is written as one in another column, beside an earlier value of the same time. Times are whole seconds where they can be, which take
//! two bytes in the place of four.

use std::borrow::Cow;
use std::io::Write;

use sensorbench_driver::{ConversionError, ValueRef};

use crate::points::{Name, Points, all_or_nothing};
use crate::samples::double;
use crate::times::next_ms;

/// Stands before the two digits of a byte.
const ESCAPE: char = '/';

/// Appends the points of a row, each followed by a comma.
///
/// Fails with what a point cannot hold; nothing is then appended.
pub fn append<'a>(
    points: &Points,
    data: &mut Vec<u8>,
    prefix: &str,
    value: impl Fn(usize) -> ValueRef<'a>,
) -> Result<(), ConversionError> {
    all_or_nothing(data, |data| append_fields(points, data, prefix, value))
}

fn append_fields<'a>(
    points: &Points,
    data: &mut Vec<u8>,
    prefix: &str,
    value: impl Fn(usize) -> ValueRef<'a>,
) -> Result<(), ConversionError> {
    let time_ms = points.time(&value)?.unwrap_or_else(next_ms);
    let time = if time_ms % 1000 == 0 { time_ms / 1000 } else { time_ms };
    for (name, place, _, field) in points.fields_of(&value)? {
        let field_name = match name {
            Name::Literal(name) => Cow::Borrowed(name.as_str()),
            Name::Column(name) => tag(value(*name), points.limits.max_tag_bytes).map_err(points.at(*name))?,
        };
        let written = double(field).and_then(finite).map_err(points.at(place))?;
        write!(data, "{{\"metric\":\"{prefix}{}.{field_name}\",\"timestamp\":{time},\"value\":", points.measurement)
            .expect("memory takes everything");
        data.extend_from_slice(ryu::Buffer::new().format_finite(written).as_bytes());
        data.extend_from_slice(b",\"tags\":{");
        for (number, (name, place)) in points.tags.iter().enumerate() {
            let text = tag(value(*place), points.limits.max_tag_bytes).map_err(points.at(*place))?;
            let separator = if number == 0 { "" } else { "," };
            write!(data, "{separator}\"{name}\":\"{text}\"").expect("memory takes everything");
        }
        data.extend_from_slice(b"}},");
    }
    Ok(())
}

/// The points of a request, as a list.
pub fn list(points: &[u8]) -> Vec<u8> {
    let mut list = Vec::with_capacity(points.len() + 1);
    list.push(b'[');
    list.extend_from_slice(points.strip_suffix(b",").unwrap_or(points));
    list.push(b']');
    list
}

fn finite(value: f64) -> Result<f64, ConversionError> {
    if value.is_finite() {
        return Ok(value);
    }
    Err(ConversionError(format!("{value} (NaN and the infinities cannot be written); load null instead")))
}

/// A value as a tag has it.
pub fn tag(value: ValueRef<'_>, max_bytes: usize) -> Result<Cow<'_, str>, ConversionError> {
    let text = match value {
        ValueRef::Text("") => return Err(ConversionError("an empty text cannot be a tag".to_owned())),
        ValueRef::Text(text) => encoded(text),
        ValueRef::Integer(_) | ValueRef::Boolean(_) => Cow::Owned(value.to_string()),
        other => return Err(ConversionError(format!("{other} cannot be a tag"))),
    };
    if text.len() > max_bytes {
        return Err(ConversionError(format!("a tag of {} bytes: expected at most {max_bytes} as the server has it", text.len())));
    }
    Ok(text)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

/// A text as a name of the server's.
pub fn encoded(text: &str) -> Cow<'_, str> {
    if text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut name = String::with_capacity(text.len() + 16);
    for byte in text.bytes() {
        if is_plain(byte) {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("{ESCAPE}{byte:02X}"));
        }
    }
    Cow::Owned(name)
}

/// The text of a name; None of a name that `encoded` never gives.
pub fn decoded(name: &str) -> Option<Cow<'_, str>> {
    if !name.contains(ESCAPE) {
        return Some(Cow::Borrowed(name));
    }
    let mut parts = name.split(ESCAPE);
    let mut text = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        text.push(u8::from_str_radix(digits, 16).ok()?);
        text.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(text).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use sensorbench_driver::{Parameter, Type};
    use serde_json::json;

    use super::*;
    use crate::line::{Limits, PointForm};

    const LIMITS: Limits = Limits {
        form: PointForm::Json,
        time_unit_us: 1000,
        times_us: (0, i64::MAX),
        only_numbers: true,
        escapes_backslash: false,
        max_tag_bytes: 12,
        tags: (1, 8),
    };

    fn points(text: serde_json::Value) -> Result<Points, String> {
        let columns = [("site", Type::Integer), ("sensor", Type::Text), ("time", Type::Timestamp), ("value", Type::Double)]
            .map(|(name, value_type)| Parameter { name: name.to_owned(), value_type });
        Points::of("t", &serde_json::from_value(text).unwrap(), &columns, LIMITS).map_err(|error| error.to_string())
    }

    fn written(points: &Points, sensor: &str, time_us: i64, value: f64) -> Result<String, String> {
        let row = [ValueRef::Integer(5), ValueRef::Text(sensor), ValueRef::Timestamp(time_us), ValueRef::Double(value)];
        let mut data = b"x,".to_vec();
        append(points, &mut data, "ours.", |place| row[place]).map_err(|error| error.to_string())?;
        Ok(String::from_utf8(list(&data[2..])).unwrap())
    }

    #[test]
    fn a_point_is_an_object() {
        let fields = points(json!({"tags": ["site", "sensor"], "fields": ["value"]})).unwrap();
        assert_eq!(
            written(&fields, "a b", 1_700_000_000_000_000, 3.0).unwrap(),
            r#"[{"metric":"ours.t.value","timestamp":1700000000,"value":3.0,"tags":{"site":"5","sensor":"a/20b"}}]"#
        );
        let named = points(json!({"tags": ["site"], "named": {"name": "sensor", "value": "value"}})).unwrap();
        assert_eq!(
            written(&named, "CO", 1_700_000_000_001_000, 1e300).unwrap(),
            r#"[{"metric":"ours.t.CO","timestamp":1700000000001,"value":1e300,"tags":{"site":"5"}}]"#
        );
    }

    #[test]
    fn what_a_point_cannot_hold_is_refused() {
        let fields = points(json!({"tags": ["site", "sensor"], "fields": ["value"]})).unwrap();
        for (sensor, time, value, expected) in [
            ("", 0, 1.0, "column sensor: an empty text"),
            ("aaaaaaaaaaaaa", 0, 1.0, "column sensor: a tag of 13 bytes"),
            ("ééé", 0, 1.0, "column sensor: a tag of 18 bytes"),
            ("a", 1, 1.0, "not a whole number of milliseconds"),
            ("a", 0, f64::NAN, "column value: NaN"),
            ("a", 0, f64::INFINITY, "column value: inf"),
        ] {
            let refused = written(&fields, sensor, time, value).unwrap_err();
            assert!(refused.contains(expected), "{refused}");
        }
        assert!(points(json!({"fields": ["value"]})).unwrap_err().contains("a point has 0 tags; the server takes from 1 to 8"));
    }

    #[test]
    fn names_are_read_back_as_they_were() {
        for text in ["", "plain-1_2.x", "a/b", "/2F", "a|b*", "é\"\\\n\0", "%20", "…"] {
            let name = encoded(text);
            assert!(name.bytes().all(|byte| is_plain(byte) || byte == b'/'), "{name}");
            assert_eq!(decoded(&name).as_deref(), Some(text), "{name}");
        }
        for other in ["/", "a/2", "a/zz", "/FF", "/é"] {
            assert_eq!(decoded(other), None, "{other}");
        }
    }
}
