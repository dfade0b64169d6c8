//! What a line of the line protocol is made of: names, tags, fields and times, as a server takes them.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sensorbench_driver::{ConversionError, ValueRef};

/// How a point is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PointForm {
    /// A line of the line protocol.
    Line,
    /// Samples of remote write, one for each field.
    Samples,
    /// Points of OpenTSDB in JSON, one for each field.
    Json,
}

/// What a server's points can hold, where servers differ.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The units of the server's times in a microsecond's place: 1 for microseconds, 1,000 for milliseconds.
    pub time_unit_us: i64,
    /// The first and the last time in µs.
    pub times_us: (i64, i64),
    /// How a point is written.
    pub form: PointForm,
    /// Whether fields are numbers alone.
    pub only_numbers: bool,
    /// Whether a backslash in a tag is written as two; else it stands for itself where nothing follows that it would escape.
    pub escapes_backslash: bool,
    /// The longest value of a tag in bytes, beyond which a server cuts it without a word.
    pub max_tag_bytes: usize,
    /// How many tags a point has at least and at most.
    pub tags: (usize, usize),
}

impl Limits {
    /// A time that is in the server's unit already.
    pub fn own_time(&self, time: i64) -> Result<i64, ConversionError> {
        let (first, last) = (self.times_us.0 / self.time_unit_us, self.times_us.1 / self.time_unit_us);
        if time < first || time > last {
            return Err(ConversionError(format!("{time} is none of the server's times, {first} to {last}")));
        }
        Ok(time)
    }

    /// A time in the server's unit, exactly.
    pub fn time(&self, time_us: i64) -> Result<i64, ConversionError> {
        let (first, last) = self.times_us;
        if time_us < first || time_us > last {
            return Err(ConversionError(format!("{time_us} µs since 1970 is none of the server's times, {first} to {last}")));
        }
        if time_us % self.time_unit_us != 0 {
            return Err(ConversionError(format!(
                "{time_us} µs since 1970 is not a whole number of milliseconds, which is all that the server keeps of a time"
            )));
        }
        Ok(time_us / self.time_unit_us)
    }
}

/// A name with what the protocol would take for its end escaped.
pub fn escaped(name: &str) -> String {
    let mut written = String::with_capacity(name.len());
    for character in name.chars() {
        if matches!(character, ',' | '=' | ' ') {
            written.push('\\');
        }
        written.push(character);
    }
    written
}

/// A value as a tag, or as the name of a field. What the protocol cannot say is refused, because servers would take it for something else.
pub fn append_tag(line: &mut Vec<u8>, value: ValueRef, limits: Limits) -> Result<(), ConversionError> {
    match value {
        ValueRef::Integer(value) => line.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
        ValueRef::Boolean(value) => line.extend_from_slice(if value { b"true" } else { b"false" }),
        ValueRef::Text(text) => {
            let refused = |why: &str| Err(ConversionError(format!("{} cannot be a tag: {why}", shortened(text))));
            let bytes = text.as_bytes();
            if bytes.is_empty() {
                return refused("an empty one is the same as none");
            }
            if bytes.len() > limits.max_tag_bytes {
                return refused(&format!("it is longer than {} bytes", limits.max_tag_bytes));
            }
            if bytes.iter().any(|byte| *byte < b' ') {
                return refused("line ends and other control characters cannot be written in one");
            }
            let is_ambiguous = text.ends_with('\\') || ["\\,", "\\=", "\\ "].iter().any(|pair| text.contains(pair));
            if is_ambiguous && !limits.escapes_backslash {
                return refused(
                    "a backslash at the end, or before a comma, a space or an equals sign, would be read as another value",
                );
            }
            for byte in bytes {
                if matches!(byte, b',' | b'=' | b' ') || (*byte == b'\\' && limits.escapes_backslash) {
                    line.push(b'\\');
                }
                line.push(*byte);
            }
        }
        other => return Err(ConversionError(format!("{other} cannot be a tag"))),
    }
    Ok(())
}

/// A value as a field.
pub fn append_field(line: &mut Vec<u8>, value: ValueRef, is_base64: bool, only_numbers: bool) -> Result<(), ConversionError> {
    match value {
        ValueRef::Double(value) if !value.is_finite() => {
            return Err(ConversionError(format!("{value} (NaN and the infinities cannot be written); load null instead")));
        }
        ValueRef::Double(value) => line.extend_from_slice(ryu::Buffer::new().format_finite(value).as_bytes()),
        ValueRef::Boolean(value) if only_numbers => line.push(b'0' + u8::from(value)),
        ValueRef::Boolean(value) => line.extend_from_slice(if value { b"true" } else { b"false" }),
        ValueRef::Integer(value) | ValueRef::Timestamp(value) if only_numbers => {
            line.extend_from_slice(itoa::Buffer::new().format(exact_in_double(value)?).as_bytes());
        }
        ValueRef::Integer(value) | ValueRef::Timestamp(value) => write!(line, "{value}i").expect("memory takes everything"),
        ValueRef::Text(text) => append_quoted(line, text),
        ValueRef::Bytes(bytes) if is_base64 => append_quoted(line, &STANDARD.encode(bytes)),
        other => return Err(ConversionError(format!("{other} cannot be a field"))),
    }
    Ok(())
}

/// A whole number that a double holds exactly.
pub fn exact_in_double(value: i64) -> Result<i64, ConversionError> {
    if value.unsigned_abs() > 1 << 53 {
        return Err(ConversionError(format!("{value} is beyond 2^53, up to which the server's numbers, doubles, are exact")));
    }
    Ok(value)
}

fn append_quoted(line: &mut Vec<u8>, text: &str) {
    line.push(b'"');
    for byte in text.bytes() {
        if matches!(byte, b'"' | b'\\') {
            line.push(b'\\');
        }
        line.push(byte);
    }
    line.push(b'"');
}

/// A text as messages show it.
fn shortened(text: &str) -> String {
    format!("{:?}", text.chars().take(40).collect::<String>())
}
