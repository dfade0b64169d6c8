//! Names and contents of records, as key-value benchmarks have them: functions of a record's number, so that nothing is kept.

use sensorbench_driver::Value;
use sensorbench_workload::{Choice, Chooser, Stream, WorkloadError, ycsb};
use serde::{Deserialize, Serialize};

/// How records are named.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RecordNames {
    /// What every name begins with.
    pub prefix: String,
    /// Numbers are hashed as YCSB does it, so that neighbours are far apart in the order of names.
    #[serde(default)]
    pub hashed: bool,
    /// Numbers have at least this many digits.
    #[serde(default)]
    pub digits: usize,
}

impl RecordNames {
    /// The name of a record.
    pub fn name(&self, record: u64) -> Value {
        let number = if self.hashed { ycsb::hash(record) } else { record };
        Value::Text(format!("{}{number:0digits$}", self.prefix, digits = self.digits).into())
    }
}

/// What adds records while others are chosen.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GrownBy {
    /// Number of the operation.
    pub operation: usize,
    /// Number of its parameter that is the name of the record.
    pub parameter: usize,
    /// How many operations the choice stays behind.
    pub window: u64,
}

/// Random texts, as long as is chosen from the shortest to the longest.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TextLengths {
    /// Fewest characters.
    pub min: u32,
    /// Most characters.
    pub max: u32,
    /// How the length is chosen among them; the first of a skewed choice is the shortest.
    #[serde(default)]
    pub choice: Choice,
}

/// The same, made ready.
#[derive(Clone, Copy, Debug)]
pub struct RandomText {
    min: u32,
    lengths: Chooser,
}

/// Characters that need no quotation marks anywhere: so many that six bits choose one.
const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BITS: u32 = 6;
const A_NUMBER: usize = (u64::BITS / BITS) as usize;

impl RandomText {
    /// Texts of these lengths.
    pub fn of(lengths: TextLengths) -> Result<Self, WorkloadError> {
        let TextLengths { min, max, choice } = lengths;
        Ok(Self { min, lengths: choice.among(u64::from(max.saturating_sub(min)) + 1)? })
    }

    /// One of several texts of a number of a stream; another one for each.
    pub fn text(&self, stream: Stream, number: u64, place: usize) -> Value {
        let own = stream.split(number).split(place as u64);
        let length = self.min as usize + self.lengths.row(own, 0) as usize;
        let characters = own.split(0);
        let mut text = String::with_capacity(length);
        for word in 0..length.div_ceil(A_NUMBER) {
            let mut bits = characters.number(word as u64);
            for _ in 0..A_NUMBER.min(length - text.len()) {
                text.push(char::from(CHARACTERS[(bits & 63) as usize]));
                bits >>= BITS;
            }
        }
        Value::Text(text.into())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn as_text(value: &Value) -> &str {
        match value {
            Value::Text(text) => text,
            _ => panic!("{value:?}"),
        }
    }

    #[test]
    fn names_are_those_of_ycsb() {
        let names = |hashed, digits| RecordNames { prefix: "user".to_owned(), hashed, digits };
        assert_eq!(as_text(&names(true, 1).name(0)), "user6284781860667377211");
        assert_eq!(as_text(&names(false, 1).name(17)), "user17");
        assert_eq!(as_text(&names(false, 8).name(17)), "user00000017");
    }

    #[test]
    fn texts_have_all_lengths_and_differ() {
        let texts = RandomText::of(TextLengths { min: 3, max: 25, choice: Choice::Uniform }).unwrap();
        let all: Vec<Value> = (0..500)
            .flat_map(|number| [(0, 0), (0, 1), (1, 0)].map(|(seed, place)| texts.text(Stream::new(seed), number, place)))
            .collect();
        let lengths: HashSet<usize> = all.iter().map(|text| as_text(text).len()).collect();
        assert_eq!(lengths, (3..=25).collect());
        let long: Vec<&str> = all.iter().map(as_text).filter(|text| text.len() > 10).collect();
        assert_eq!(long.iter().collect::<HashSet<_>>().len(), long.len());
        assert_eq!(texts.text(Stream::new(1), 7, 1), texts.text(Stream::new(1), 7, 1));
        let fixed = RandomText::of(TextLengths { min: 100, max: 100, choice: Choice::Uniform }).unwrap();
        assert_eq!(as_text(&fixed.text(Stream::new(1), 1, 0)).len(), 100);
    }
}
