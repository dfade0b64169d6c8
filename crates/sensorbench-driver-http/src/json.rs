//! Reading JSON where it lies, because answers are mostly numbers and go straight to rows. Each double is read exactly as it was written.

use std::borrow::Cow;
use std::fmt;

use sensorbench_driver::ConversionError;

/// Which bytes numbers are made of.
const IN_NUMBERS: [bool; 256] = {
    let mut bytes = [false; 256];
    let mut number = 0;
    while number < 256 {
        bytes[number] = matches!(number as u8, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
        number += 1;
    }
    bytes
};

/// A value that is neither a list nor an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar<'a> {
    Null,
    Boolean(bool),
    /// As it stands there.
    Number(&'a str),
    Text(Cow<'a, str>),
}

impl fmt::Display for Scalar<'_> {
    /// As JSON writes it, for messages.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => formatter.write_str("null"),
            Self::Boolean(value) => write!(formatter, "{value}"),
            Self::Number(text) => formatter.write_str(text),
            Self::Text(text) => write!(formatter, "\"{text}\""),
        }
    }
}

/// A place in a JSON text.
pub struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    #[cold]
    fn unexpected(&self, expected: &str) -> ConversionError {
        let rest = &self.text[self.at.min(self.text.len())..];
        let found = String::from_utf8_lossy(&rest[..rest.len().min(40)]);
        ConversionError(format!(
            "the answer is not as expected: {expected} was expected where \"{}\" stands",
            found.escape_debug()
        ))
    }

    #[inline]
    fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.text.get(self.at) {
            if !byte.is_ascii_whitespace() {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    #[inline]
    fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    #[inline]
    fn expect(&mut self, byte: u8, what: &str) -> Result<(), ConversionError> {
        if self.accept(byte) { Ok(()) } else { Err(self.unexpected(what)) }
    }

    /// Visits the members of an object. Each visit reads or skips its value.
    pub fn object(
        &mut self,
        mut visit: impl FnMut(&mut Self, Cow<'a, str>) -> Result<(), ConversionError>,
    ) -> Result<(), ConversionError> {
        self.expect(b'{', "an object")?;
        if self.accept(b'}') {
            return Ok(());
        }
        loop {
            let key = self.string()?;
            self.expect(b':', "a colon")?;
            visit(self, key)?;
            if !self.accept(b',') {
                return self.expect(b'}', "the end of an object");
            }
        }
    }

    /// Visits the elements of a list. Each visit reads or skips its element.
    #[inline]
    pub fn list(&mut self, mut visit: impl FnMut(&mut Self) -> Result<(), ConversionError>) -> Result<(), ConversionError> {
        self.expect(b'[', "a list")?;
        if self.accept(b']') {
            return Ok(());
        }
        loop {
            visit(self)?;
            if !self.accept(b',') {
                return self.expect(b']', "the end of a list");
            }
        }
    }

    /// The same where null may stand in the place of a list.
    pub fn list_or_null(&mut self, visit: impl FnMut(&mut Self) -> Result<(), ConversionError>) -> Result<(), ConversionError> {
        if self.peek() == Some(b'n') { self.skip() } else { self.list(visit) }
    }

    /// A text.
    pub fn string(&mut self) -> Result<Cow<'a, str>, ConversionError> {
        self.expect(b'"', "a text")?;
        let rest = &self.text[self.at..];
        let plain =
            rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).ok_or_else(|| self.unexpected("the end of a text"))?;
        if rest[plain] == b'"' {
            self.at += plain + 1;
            return std::str::from_utf8(&rest[..plain]).map(Cow::Borrowed).map_err(|_| self.unexpected("UTF-8"));
        }
        let mut at = plain;
        while rest.get(at).is_some_and(|byte| *byte != b'"') {
            at += if rest[at] == b'\\' { 2 } else { 1 };
        }
        let quoted = self.text.get(self.at - 1..=self.at + at).ok_or_else(|| self.unexpected("the end of a text"))?;
        let text: String = serde_json::from_slice(quoted).map_err(|_| self.unexpected("a text"))?;
        self.at += at + 1;
        Ok(Cow::Owned(text))
    }

    /// A value that is neither a list nor an object.
    #[inline]
    pub fn scalar(&mut self) -> Result<Scalar<'a>, ConversionError> {
        match self.peek() {
            Some(b'"') => self.string().map(Scalar::Text),
            Some(b'-' | b'0'..=b'9') => {
                let rest = &self.text[self.at..];
                let length = rest.iter().position(|byte| !IN_NUMBERS[usize::from(*byte)]).unwrap_or(rest.len());
                self.at += length;
                Ok(Scalar::Number(std::str::from_utf8(&rest[..length]).expect("digits are ASCII")))
            }
            _ => {
                for (word, value) in [("null", Scalar::Null), ("true", Scalar::Boolean(true)), ("false", Scalar::Boolean(false))]
                {
                    if self.text[self.at.min(self.text.len())..].starts_with(word.as_bytes()) {
                        self.at += word.len();
                        return Ok(value);
                    }
                }
                Err(self.unexpected("a value"))
            }
        }
    }

    /// A whole number of at most 18 digits. None, and nothing is passed over, where anything else stands.
    #[inline]
    pub fn whole_number(&mut self) -> Option<i64> {
        self.peek()?;
        let rest = &self.text[self.at..];
        let mut value = 0;
        let mut length = 0;
        while let Some(digit) = rest.get(length).filter(|byte| byte.is_ascii_digit()) {
            if length == 18 {
                return None;
            }
            value = value * 10 + i64::from(digit - b'0');
            length += 1;
        }
        if length == 0 || rest.get(length).is_some_and(|byte| IN_NUMBERS[usize::from(*byte)]) {
            return None;
        }
        self.at += length;
        Some(value)
    }

    /// A double, exactly as it is written. None, and nothing is passed over, where anything else stands.
    #[inline]
    pub fn double(&mut self) -> Option<f64> {
        self.peek()?;
        let rest = &self.text[self.at..];
        let unsigned = rest.strip_prefix(b"-").unwrap_or(rest);
        // Else infinity would be a number.
        unsigned.first().filter(|byte| byte.is_ascii_digit())?;
        let (value, length) = fast_float2::parse_partial(rest).ok()?;
        if rest.get(length).is_some_and(|byte| IN_NUMBERS[usize::from(*byte)]) {
            return None;
        }
        self.at += length;
        Some(value)
    }

    /// Passes over a value of any kind.
    pub fn skip(&mut self) -> Result<(), ConversionError> {
        match self.peek() {
            Some(b'{') => self.object(|reader, _| reader.skip()),
            Some(b'[') => self.list(Self::skip),
            _ => self.scalar().map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_read_as_it_stands_there() {
        let mut reader = Reader::new(br#" {"a": [1, -2.5e-3, null,true , "x\"\\\n\u00e9"], "b": {"c": [[], {}]}, "" : "" } "#);
        let mut seen = Vec::new();
        reader
            .object(|reader, key| match key.as_ref() {
                "a" => reader.list(|reader| {
                    seen.push(reader.scalar()?);
                    Ok(())
                }),
                _ => reader.skip(),
            })
            .unwrap();
        let text = Scalar::Text(Cow::Owned("x\"\\\né".to_owned()));
        assert_eq!(seen, [Scalar::Number("1"), Scalar::Number("-2.5e-3"), Scalar::Null, Scalar::Boolean(true), text]);
    }

    #[test]
    fn whole_numbers_are_read_at_once_and_others_are_left() {
        let mut reader = Reader::new(b"[1700000000123, 0,-5,1.5,1e3,999999999999999999,1000000000000000000,null");
        let mut seen = Vec::new();
        let read = reader.list(|reader| {
            seen.push(match reader.whole_number() {
                Some(number) => number.to_string(),
                None => format!("left {}", reader.scalar()?),
            });
            Ok(())
        });
        assert!(read.is_err(), "the list does not end");
        let left = ["left -5", "left 1.5", "left 1e3", "999999999999999999", "left 1000000000000000000", "left null"];
        assert_eq!(seen, [["1700000000123", "0"].as_slice(), left.as_slice()].concat());
    }

    #[test]
    fn doubles_are_read_at_once_as_the_standard_library_reads_them_and_others_are_left() {
        let numbers =
            ["0", "-0.0", "5e-324", "1.7976931348623157e308", "0.30000000000000004", "9007199254740993", "-2.5E+3", "1e999"];
        let text = format!("[{},-inf, null,1.2.3", numbers.join(" , "));
        let mut reader = Reader::new(text.as_bytes());
        let mut seen = Vec::new();
        let read = reader.list(|reader| {
            seen.push(match reader.double() {
                Some(value) => value.to_bits(),
                None => reader.scalar().map(|_| 0)?,
            });
            Ok(())
        });
        assert!(read.is_err(), "-inf is not JSON");
        let expected = numbers.map(|number| number.parse::<f64>().expect(number).to_bits());
        assert_eq!(seen[..numbers.len()], expected);
        for text in ["[-inf]", "[inf]", "[null]", "[1.2.3]", "[1e]", "[+1]", "[nan]"] {
            let mut reader = Reader::new(text.as_bytes());
            assert!(reader.accept(b'['));
            assert_eq!((reader.double(), reader.at), (None, 1), "{text}");
        }
    }

    #[test]
    fn what_is_cut_short_or_no_json_is_refused() {
        for text in
            ["", "{", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":[1,", "{\"a\":\"x", "{\"a\":\"x\\", "{\"a\":nul}", "[1]", "{a:1}"]
        {
            let refused = Reader::new(text.as_bytes()).object(|reader, _| reader.skip()).unwrap_err();
            assert!(refused.0.contains("expected"), "{text}: {refused}");
        }
    }
}
