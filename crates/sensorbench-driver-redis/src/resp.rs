//! The protocol, RESP2 (<https://redis.io/docs/latest/develop/reference/protocol-spec/>): packing words of commands, and
//! taking replies apart.

use std::fmt;

use crate::text::append_integer;

/// Appends the head of a command of this many words.
#[inline]
pub fn append_command(bytes: &mut Vec<u8>, words: usize) {
    append_head(bytes, b'*', words);
}

/// Appends a word.
#[inline]
pub fn append_word(bytes: &mut Vec<u8>, word: &[u8]) {
    append_head(bytes, b'$', word.len());
    bytes.extend_from_slice(word);
    bytes.extend_from_slice(b"\r\n");
}

/// Makes a word of the bytes from `start` on; returns how far that moved them.
#[inline]
pub fn make_word(bytes: &mut Vec<u8>, start: usize) -> usize {
    let end = bytes.len();
    // The head is appended first, because only then its length is known, and turned to the front.
    append_head(bytes, b'$', end - start);
    let head = bytes.len() - end;
    bytes[start..].rotate_right(head);
    bytes.extend_from_slice(b"\r\n");
    head
}

/// A command of words that are all known.
pub fn packed(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    append_command(&mut bytes, words.len());
    words.iter().for_each(|word| append_word(&mut bytes, word));
    bytes
}

#[inline]
fn append_head(bytes: &mut Vec<u8>, kind: u8, number: usize) {
    bytes.push(kind);
    append_integer(bytes, number);
    bytes.extend_from_slice(b"\r\n");
}

/// What replies consist of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item<'a> {
    /// A string, an integer (in its decimal form), or nil.
    Element(Option<&'a [u8]>),
    /// The head of an array of this many items.
    Array(usize),
    /// An error; alone, it is the whole reply.
    Error(&'a [u8]),
}

/// Bytes that are not RESP2.
#[derive(Debug, PartialEq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("what came is not in Redis' protocol; is there another server?")
    }
}

/// The item that `bytes` begin with, and its length; None when some of it is still to come.
#[inline]
pub fn next_item(bytes: &[u8]) -> Result<Option<(Item<'_>, usize)>, Malformed> {
    let Some((line, after)) = line(bytes) else { return Ok(None) };
    let (kind, text) = line.split_first().ok_or(Malformed)?;
    let item = match kind {
        b'$' => match length(text)? {
            None => Item::Element(None),
            Some(length) => {
                let whole = after + length + 2;
                return Ok((bytes.len() >= whole).then(|| (Item::Element(Some(&bytes[after..after + length])), whole)));
            }
        },
        b'*' => length(text)?.map_or(Item::Element(None), Item::Array),
        b'+' | b':' => Item::Element(Some(text)),
        b'-' => Item::Error(text),
        _ => return Err(Malformed),
    };
    Ok(Some((item, after)))
}

/// The first line, and where the next one starts.
#[inline]
fn line(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let end = bytes.iter().position(|byte| *byte == b'\r')?;
    (end + 1 < bytes.len()).then(|| (&bytes[..end], end + 2))
}

/// A length, or None for nil, whose length is -1.
#[inline]
fn length(digits: &[u8]) -> Result<Option<usize>, Malformed> {
    if digits == b"-1" {
        return Ok(None);
    }
    let add = |length: usize, digit: &u8| match digit {
        b'0'..=b'9' => length.checked_mul(10)?.checked_add(usize::from(digit - b'0')),
        _ => None,
    };
    // Redis itself allows no more than 512 MB by default.
    let length = digits.iter().try_fold(0, add).filter(|length| !digits.is_empty() && *length < 1 << 40);
    length.map(Some).ok_or(Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_packed() {
        assert_eq!(packed(&[b"GET", b"a\r\n"]), b"*2\r\n$3\r\nGET\r\n$3\r\na\r\n\r\n");
        let mut bytes = b"before".to_vec();
        bytes.extend_from_slice(b"0123456789");
        assert_eq!(make_word(&mut bytes, 6), 5);
        assert_eq!(bytes, b"before$10\r\n0123456789\r\n");
    }

    #[test]
    fn replies_are_taken_apart_and_awaited() {
        for (bytes, item) in [
            (&b"$3\r\na\r\n\r\n"[..], Item::Element(Some(b"a\r\n"))),
            (b"$0\r\n\r\n", Item::Element(Some(b""))),
            (b"$-1\r\n", Item::Element(None)),
            (b"*-1\r\n", Item::Element(None)),
            (b"*12\r\n", Item::Array(12)),
            (b":-7\r\n", Item::Element(Some(b"-7"))),
            (b"+OK\r\n", Item::Element(Some(b"OK"))),
            (b"-ERR no\r\n", Item::Error(b"ERR no")),
        ] {
            let more = [bytes, b"+"].concat();
            assert_eq!(next_item(&more), Ok(Some((item, bytes.len()))));
            for end in 0..bytes.len() {
                assert_eq!(next_item(&bytes[..end]), Ok(None), "{:?}", &bytes[..end]);
            }
        }
        for bytes in [&b"HTTP/1.1 400\r\n"[..], b"\r\n", b"$x\r\n", b"*-2\r\n", b"$99999999999999999999\r\n"] {
            assert_eq!(next_item(bytes), Err(Malformed));
        }
    }
}
