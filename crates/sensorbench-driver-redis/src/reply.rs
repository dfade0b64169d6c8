//! Reading replies as their bytes arrive: each row as soon as it is there, nothing twice.

use sensorbench_driver::{DriverError, Rows};

use crate::answer::{Answer, MAX_ELEMENTS};
use crate::resp::{Item, Malformed, next_item};

/// Where the reading of a connection's replies stands. Arrays within arrays are read as one long array.
#[derive(Debug, Default)]
pub struct ReplyReader {
    /// Items that are still to come; none between replies.
    remaining: usize,
    /// What was wrong with the reply; the rest of it is skipped.
    wrong: Option<DriverError>,
}

/// How a reply ended.
#[derive(Debug)]
pub enum Reply {
    /// It was read.
    Whole(Result<(), DriverError>),
    /// It is this error of the server.
    Refused(String),
}

impl ReplyReader {
    /// Reads on at `at`, which moves past what was read. Returns None when more bytes are needed. Without `into`, the reply
    /// is looked through only.
    #[inline]
    pub fn read(
        &mut self,
        bytes: &[u8],
        at: &mut usize,
        mut into: Option<(&Answer, &mut Rows)>,
    ) -> Result<Option<Reply>, Malformed> {
        if self.remaining == 0 {
            match bytes.get(*at) {
                None => return Ok(None),
                Some(b'-') => return refused(bytes, at),
                Some(_) => self.remaining = 1,
            }
        }
        while self.remaining > 0 {
            let is_there = match &mut into {
                Some((answer, rows)) if self.wrong.is_none() && answer.elements() > 0 => match answer.elements() {
                    1 => self.read_row::<1>(bytes, at, answer, rows)?,
                    _ => self.read_row::<MAX_ELEMENTS>(bytes, at, answer, rows)?,
                },
                _ => self.skip(bytes, at)?,
            };
            if !is_there {
                return Ok(None);
            }
        }
        Ok(Some(Reply::Whole(self.wrong.take().map_or(Ok(()), Err))))
    }

    /// Reads the elements of one row; false when some of them are still to come.
    #[inline]
    fn read_row<const MAX: usize>(
        &mut self,
        bytes: &[u8],
        at: &mut usize,
        answer: &Answer,
        rows: &mut Rows,
    ) -> Result<bool, Malformed> {
        let mut elements = [None; MAX];
        let mut found = 0;
        let (mut end, mut remaining) = (*at, self.remaining);
        while found < answer.elements() && remaining > 0 {
            let Some((item, length)) = next_item(&bytes[end..])? else { return Ok(false) };
            end += length;
            remaining -= 1;
            match item {
                Item::Array(items) => remaining += items,
                Item::Element(element) => {
                    elements[found] = element;
                    found += 1;
                }
                Item::Error(text) => self.wrong = Some(DriverError::Statement(String::from_utf8_lossy(text).into_owned())),
            }
        }
        (*at, self.remaining) = (end, remaining);
        if found == answer.elements() {
            self.wrong = answer.read_row(&elements[..found], rows).err().or(self.wrong.take());
        } else if elements[..found].iter().any(Option::is_some) {
            self.wrong = Some(answer.unfinished(found));
        }
        Ok(true)
    }

    /// Passes over one item; false when it is still to come.
    #[inline]
    fn skip(&mut self, bytes: &[u8], at: &mut usize) -> Result<bool, Malformed> {
        let Some((item, length)) = next_item(&bytes[*at..])? else { return Ok(false) };
        *at += length;
        self.remaining -= 1;
        if let Item::Array(items) = item {
            self.remaining += items;
        }
        Ok(true)
    }
}

#[cold]
fn refused(bytes: &[u8], at: &mut usize) -> Result<Option<Reply>, Malformed> {
    let Some((Item::Error(text), length)) = next_item(&bytes[*at..])? else { return Ok(None) };
    *at += length;
    Ok(Some(Reply::Refused(String::from_utf8_lossy(text).into_owned())))
}

#[cfg(test)]
mod tests {
    use sensorbench_driver::{Operation, Value};
    use serde_json::json;

    use super::*;
    use crate::word::WordText;

    fn answer(row: serde_json::Value) -> Answer {
        let operation: Operation = serde_json::from_value(json!({
            "name": "o",
            "columns": [{"name": "time", "type": "integer"}, {"name": "value", "type": "double"}],
        }))
        .unwrap();
        let row: Option<Vec<WordText>> = serde_json::from_value(row).unwrap();
        Answer::of(&operation, row.as_deref()).unwrap()
    }

    /// Reads replies that arrive byte by byte; every row of each.
    fn read(answer: &Answer, bytes: &[u8]) -> Vec<Result<Vec<(Value, Value)>, String>> {
        let (mut reader, mut at, mut rows, mut replies) = (ReplyReader::default(), 0, Rows::new(), Vec::new());
        for end in 1..=bytes.len() {
            while let Some(reply) = reader.read(&bytes[..end], &mut at, Some((answer, &mut rows))).unwrap() {
                let values = rows.iter().map(|row| (row.value(0).to_value(), row.value(1).to_value())).collect();
                replies.push(match reply {
                    Reply::Whole(outcome) => outcome.map(|()| values).map_err(|error| error.to_string()),
                    Reply::Refused(text) => Err(format!("refused: {text}")),
                });
                rows.clear();
            }
        }
        assert_eq!(at, bytes.len());
        replies
    }

    fn row(time: i64, value: f64) -> (Value, Value) {
        (Value::Integer(time), Value::Double(value))
    }

    #[test]
    fn rows_are_read_from_chunks_of_elements() {
        let one = answer(json!(["{time}:{value}"]));
        let replies = b"*2\r\n$3\r\n1:2\r\n$6\r\n-3:4.5\r\n$3\r\n5:6\r\n$-1\r\n*0\r\n-ERR no\r\n";
        let expected = [
            Ok(vec![row(1, 2.0), row(-3, 4.5)]),
            Ok(vec![row(5, 6.0)]),
            Ok(vec![]),
            Ok(vec![]),
            Err("refused: ERR no".to_owned()),
        ];
        assert_eq!(read(&one, replies), expected);
        let nested = answer(json!(null));
        assert_eq!(
            read(&nested, b"*2\r\n*2\r\n:1\r\n+2.5\r\n*2\r\n:3\r\n+4\r\n"),
            [Ok(vec![row(1, 2.5), row(3, 4.0)])],
            "as TS.RANGE answers"
        );
        let swapped = answer(json!(["value", "{value}", "time", "{time}"]));
        assert_eq!(
            read(&swapped, b"*4\r\n$5\r\nvalue\r\n$1\r\n2\r\n$4\r\ntime\r\n$1\r\n1\r\n"),
            [Ok(vec![row(1, 2.0)])],
            "as HGETALL answers"
        );
    }

    #[test]
    fn nil_is_null_beside_others_and_no_row_alone() {
        let fields = answer(json!(null));
        let replies = read(&fields, b"*2\r\n$1\r\n1\r\n$-1\r\n*2\r\n$-1\r\n$-1\r\n");
        assert_eq!(replies, [Ok(vec![(Value::Integer(1), Value::Null)]), Ok(vec![])], "as HMGET answers");
    }

    #[test]
    fn what_does_not_fit_is_told_and_the_next_reply_is_read() {
        let one = answer(json!(["{time}:{value}"]));
        let replies = read(&one, b"*2\r\n$1\r\nx\r\n$3\r\n1:2\r\n$3\r\n1:2\r\n");
        assert!(replies[0].as_ref().unwrap_err().contains("the reply has \"x\" (1 bytes) where \"{time}:{value}\" was expected"));
        assert_eq!(replies[1], Ok(vec![row(1, 2.0)]));
        let two = answer(json!(null));
        let replies = read(&two, b"*3\r\n:1\r\n:2\r\n:3\r\n");
        assert!(replies[0].as_ref().unwrap_err().contains("a row is 2 elements, but the reply ends with 1"));
    }

    #[test]
    fn replies_that_nobody_wants_are_passed_over_but_for_errors() {
        let bytes = b"*2\r\n*1\r\n:1\r\n$2\r\nab\r\n-ERR no\r\n+OK\r\n-ERR more\r\n";
        let (mut reader, mut at, mut replies) = (ReplyReader::default(), 0, Vec::new());
        for end in 1..=bytes.len() {
            while let Some(reply) = reader.read(&bytes[..end], &mut at, None).unwrap() {
                replies.push(match reply {
                    Reply::Whole(outcome) => outcome.map_err(|error| error.to_string()),
                    Reply::Refused(text) => Err(format!("refused: {text}")),
                });
            }
        }
        let refused = |text: &str| Err(format!("refused: {text}"));
        assert_eq!(replies, [Ok(()), refused("ERR no"), Ok(()), refused("ERR more")]);
        assert_eq!(at, bytes.len());
    }
}
