//! Messages of the protocol by which prepared statements are executed
//! (<https://www.postgresql.org/docs/current/protocol-message-formats.html>).

use bytes::BufMut;
use sensorbench_driver::ConversionError;

use super::errors::Refusal;
use super::values::Encoded;

/// The length of a message counts itself and not the byte before it.
const HEAD: usize = 5;
const BINARY: i16 = 1;
/// Bytes of the formats of answers.
const FORMATS: usize = 4;
/// Longer ones there are none: a field has 1 GB at most.
const MAX_LENGTH: usize = 1 << 30;

/// Appends the request to prepare a statement under a name, with the types of its first parameters.
pub fn put_parse(bytes: &mut Vec<u8>, name: &str, text: &str, types: &[u32]) {
    put_message(bytes, b'P', |bytes| {
        put_text(bytes, name);
        put_text(bytes, text);
        bytes.put_i16(types.len() as i16);
        types.iter().for_each(|of_parameter| bytes.put_u32(*of_parameter));
    });
}

/// Appends what makes the server answer, and start over after an error.
pub fn put_sync(bytes: &mut Vec<u8>) {
    put_message(bytes, b'S', |_| {});
}

/// Appends the end of a connection.
pub fn put_terminate(bytes: &mut Vec<u8>) {
    put_message(bytes, b'X', |_| {});
}

/// How a prepared statement is executed, but for the values: parameters and answers are in binary form.
#[derive(Debug)]
pub struct Execution {
    /// What is sent before the values, and after them.
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Execution {
    /// Of the statement that was prepared under a name, which has this many parameters.
    pub fn of(name: &str, parameters: usize) -> Self {
        let (mut before, mut after) = (vec![b'B', 0, 0, 0, 0], Vec::new());
        // The portal has no name.
        put_text(&mut before, "");
        put_text(&mut before, name);
        before.put_i16(1);
        before.put_i16(BINARY);
        before.put_i16(parameters as i16);
        after.put_i16(1);
        after.put_i16(BINARY);
        put_message(&mut after, b'E', |bytes| {
            put_text(bytes, "");
            // All rows.
            bytes.put_i32(0);
        });
        put_sync(&mut after);
        Self { before, after }
    }

    /// Appends one execution with these values.
    #[inline]
    pub fn put<'v>(&self, bytes: &mut Vec<u8>, values: impl Iterator<Item = Encoded<'v>>) {
        let start = bytes.len();
        bytes.extend_from_slice(&self.before);
        for value in values {
            bytes.put_i32(value.length());
            value.put(&mut *bytes);
        }
        // The formats of answers are the end of this message.
        put_length(bytes, start, FORMATS);
        bytes.extend_from_slice(&self.after);
    }
}

fn put_message(bytes: &mut Vec<u8>, kind: u8, content: impl FnOnce(&mut Vec<u8>)) {
    let start = bytes.len();
    bytes.extend_from_slice(&[kind, 0, 0, 0, 0]);
    content(bytes);
    put_length(bytes, start, 0);
}

/// Puts the length into the message that begins at `start` and of which this many bytes are still to be appended.
#[inline]
fn put_length(bytes: &mut [u8], start: usize, missing: usize) {
    let length = bytes.len() + missing - start - 1;
    bytes[start + 1..start + HEAD].copy_from_slice(&(length as i32).to_be_bytes());
}

/// Texts end with a zero, which they do not contain: schema files have none.
fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(0);
}

/// A message of the server.
#[derive(Debug, PartialEq)]
pub enum Message<'a> {
    /// A row of an answer.
    Row(Fields<'a>),
    /// The answer is over, and what comes next is the answer to the next request.
    Ready,
    Refused(Refusal),
    /// Nothing that matters here.
    Other,
}

/// The message that `bytes` begin with, and its length; None when some of it is still to come.
///
/// # Errors
/// They are not a message.
#[inline]
pub fn next_message(bytes: &[u8]) -> Result<Option<(Message<'_>, usize)>, ConversionError> {
    let Some((head, _)) = bytes.split_first_chunk::<HEAD>() else { return Ok(None) };
    let [kind, length @ ..] = *head;
    let length = usize::try_from(i32::from_be_bytes(length)).ok().filter(|length| (HEAD - 1..=MAX_LENGTH).contains(length));
    let Some(length) = length.map(|length| length + 1) else {
        return Err(ConversionError("what came is not in PostgreSQL's protocol; is there another server?".to_owned()));
    };
    let Some(content) = bytes.get(HEAD..length) else { return Ok(None) };
    let message = match kind {
        b'D' => Message::Row(Fields::of(content)?),
        b'Z' => Message::Ready,
        b'E' => Message::Refused(Refusal::of(content)),
        _ => Message::Other,
    };
    Ok(Some((message, length)))
}

/// The fields of a row.
#[derive(Debug, PartialEq)]
pub struct Fields<'a> {
    pub count: usize,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    #[inline]
    fn of(content: &'a [u8]) -> Result<Self, ConversionError> {
        let (count, rest) = content.split_first_chunk::<2>().ok_or_else(cut_off)?;
        Ok(Self { count: u16::from_be_bytes(*count).into(), rest })
    }

    /// The next field; None for null.
    ///
    /// # Errors
    /// There is none, or its end is missing.
    #[inline]
    pub fn next_field(&mut self) -> Result<Option<&'a [u8]>, ConversionError> {
        let (length, rest) = self.rest.split_first_chunk::<4>().ok_or_else(cut_off)?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            self.rest = rest;
            return Ok(None);
        };
        let (field, rest) = rest.split_at_checked(length).ok_or_else(cut_off)?;
        self.rest = rest;
        Ok(Some(field))
    }
}

#[cold]
fn cut_off() -> ConversionError {
    ConversionError("the server sent a row that is cut off".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_is_what_the_protocol_says() {
        let mut bytes = vec![7];
        let values = [Encoded::Int8(1), Encoded::Null, Encoded::Bytes(b"ab")];
        Execution::of("o1", 3).put(&mut bytes, values.into_iter());
        let expected = [
            &[7][..],
            b"B\0\0\0\x28\0o1\0\0\x01\0\x01\0\x03\0\0\0\x08\0\0\0\0\0\0\0\x01\xff\xff\xff\xff\0\0\0\x02ab\0\x01\0\x01",
            b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04",
        ];
        assert_eq!(bytes, expected.concat());
        let mut parse = Vec::new();
        put_parse(&mut parse, "o1", "SELECT $1", &[20]);
        assert_eq!(parse, b"P\0\0\0\x17o1\0SELECT $1\0\0\x01\0\0\0\x14");
    }

    #[test]
    fn messages_are_taken_apart_and_awaited() {
        let row = b"D\0\0\0\x10\0\x02\0\0\0\x02ab\xff\xff\xff\xffZ";
        for end in 0..row.len() - 1 {
            assert_eq!(next_message(&row[..end]), Ok(None));
        }
        let Ok(Some((Message::Row(mut fields), 17))) = next_message(row) else { panic!("a row") };
        assert_eq!((fields.count, fields.next_field(), fields.next_field()), (2, Ok(Some(&b"ab"[..])), Ok(None)));
        assert!(fields.next_field().is_err());
        assert_eq!(next_message(b"Z\0\0\0\x05I"), Ok(Some((Message::Ready, 6))));
        assert_eq!(next_message(b"C\0\0\0\x0dSELECT 1\0"), Ok(Some((Message::Other, 14))));
        for other in [&b"HTTP/"[..], b"E\0\0\0\x01", b"D\0\0\0\x05\0"] {
            assert!(next_message(other).is_err(), "{other:?}");
        }
        let refused = b"E\0\0\0\x26SERROR\0C57014\0Mended\0Hno\0Dwhy\0X?\0\0";
        let Ok(Some((Message::Refused(refusal), 39))) = next_message(refused) else { panic!("{:?}", next_message(refused)) };
        assert_eq!((refusal.code.as_str(), refusal.to_string().as_str()), ("57014", "ended; why; no"));
    }
}
