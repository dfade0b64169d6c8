//! Keys and names of collections in which whole numbers are put: `hours.:time@hour.:time@minute`, `readings_:month@day`.

use std::fmt::Write;

use sensorbench_driver::{Parameter, SchemaError, Type, ValueRef};
use serde::Deserialize;

use crate::conversion::FieldConversionError;

const MINUTE_US: i64 = 60_000_000;
const HOUR_US: i64 = 60 * MINUTE_US;
const DAY_US: i64 = 24 * HOUR_US;

/// Which number of a time is meant.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Days since 1970.
    Day,
    /// Hours since midnight.
    Hour,
    /// Minutes since the hour began.
    Minute,
}

impl Unit {
    fn of(word: &str) -> Option<Self> {
        match word {
            "day" => Some(Unit::Day),
            "hour" => Some(Unit::Hour),
            "minute" => Some(Unit::Minute),
            _ => None,
        }
    }

    /// How long one is, in microseconds.
    pub fn length_us(self) -> i64 {
        match self {
            Unit::Day => DAY_US,
            Unit::Hour => HOUR_US,
            Unit::Minute => MINUTE_US,
        }
    }

    /// How many there are, from 0 on, in the next longer one; None for days, of which there is no end.
    pub fn count(self) -> Option<i64> {
        match self {
            Unit::Day => None,
            Unit::Hour => Some(24),
            Unit::Minute => Some(60),
        }
    }

    /// The number for a time.
    pub fn number(self, time_us: i64) -> i64 {
        let number = time_us.div_euclid(self.length_us());
        self.count().map_or(number, |count| number.rem_euclid(count))
    }
}

/// A text in which numbers are put.
#[derive(Clone, Debug, PartialEq)]
pub enum Name {
    /// No number is in it.
    Literal(String),
    /// Literal text and numbers in turn.
    Pieces(Vec<Piece>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Literal(String),
    Number(usize),
    OfTime(usize, Unit),
}

impl Name {
    /// Reads a text, in which `::` stands for a colon and `:name` for a number.
    pub fn of(path: &str, text: &str, fields: &[Parameter]) -> Result<Self, SchemaError> {
        let (mut pieces, mut literal, mut rest) = (Vec::new(), String::new(), text);
        while let Some((before, after)) = rest.split_once(':') {
            literal.push_str(before);
            if let Some(after) = after.strip_prefix(':') {
                literal.push(':');
                rest = after;
                continue;
            }
            let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '@')).unwrap_or(after.len());
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::of(path, &after[..end], fields)?);
            rest = &after[end..];
        }
        literal.push_str(rest);
        if pieces.is_empty() {
            return Ok(Name::Literal(literal));
        }
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Ok(Name::Pieces(pieces))
    }

    /// What it begins with, whatever the numbers are.
    pub fn prefix(&self) -> &str {
        match self {
            Name::Literal(text) => text,
            Name::Pieces(pieces) => match pieces.first() {
                Some(Piece::Literal(text)) => text,
                _ => "",
            },
        }
    }

    /// Appends the text with the numbers of these values.
    pub fn write<'v>(&self, out: &mut String, value: impl Fn(usize) -> ValueRef<'v>) -> Result<(), FieldConversionError> {
        match self {
            Name::Literal(text) => out.push_str(text),
            Name::Pieces(pieces) => {
                for piece in pieces {
                    piece.write(out, &value)?;
                }
            }
        }
        Ok(())
    }

    /// The same as a key, which keeps no more of a time than its numbers: the time has to be the beginning of what they say.
    pub fn write_key<'v>(&self, out: &mut String, value: impl Fn(usize) -> ValueRef<'v>) -> Result<(), FieldConversionError> {
        if let Some(Piece::OfTime(place, unit)) = self.pieces().last()
            && let ValueRef::Timestamp(time) = value(*place)
            && time % unit.length_us() != 0
        {
            return Err(FieldConversionError::BetweenSlots(*place, time));
        }
        self.write(out, value)
    }

    /// Its pieces; none where no number is in it.
    pub fn pieces(&self) -> &[Piece] {
        if let Name::Pieces(pieces) = self { pieces } else { &[] }
    }
}

impl Piece {
    fn of(path: &str, word: &str, fields: &[Parameter]) -> Result<Self, SchemaError> {
        let (name, unit) = word.split_once('@').map_or((word, None), |(name, unit)| (name, Some(unit)));
        let place = place_of(path, name, fields)?;
        let refused = |expected: &str| SchemaError::at(path, format!(":{word} in a name: expected {expected}"));
        match (fields[place].value_type, unit) {
            (Type::Integer, None) => Ok(Piece::Number(place)),
            (Type::Timestamp, Some(unit)) => {
                let unit = Unit::of(unit).ok_or_else(|| refused("@day, @hour or @minute"))?;
                Ok(Piece::OfTime(place, unit))
            }
            (Type::Timestamp, None) => Err(refused("a part of the time, as in :time@hour")),
            _ => Err(refused("an integer, or a part of a time, as in :time@hour; text is never put into names")),
        }
    }

    fn write<'v>(&self, out: &mut String, value: impl Fn(usize) -> ValueRef<'v>) -> Result<(), FieldConversionError> {
        let (place, number) = match self {
            Piece::Literal(text) => {
                out.push_str(text);
                return Ok(());
            }
            Piece::Number(place) => (*place, if let ValueRef::Integer(number) = value(*place) { Some(number) } else { None }),
            Piece::OfTime(place, unit) => {
                (*place, if let ValueRef::Timestamp(time) = value(*place) { Some(unit.number(time)) } else { None })
            }
        };
        let number = number.ok_or(FieldConversionError::NoNumber(place))?;
        write!(out, "{number}").expect("text takes everything");
        Ok(())
    }
}

/// The place of a parameter or column, or an error that lists them.
pub fn place_of(path: &str, name: &str, fields: &[Parameter]) -> Result<usize, SchemaError> {
    fields.iter().position(|field| field.name == name).ok_or_else(|| {
        let known: Vec<_> = fields.iter().map(|field| format!(":{}", field.name)).collect();
        let known = if known.is_empty() { "there is none".to_owned() } else { format!("expected one of {}", known.join(", ")) };
        SchemaError::at(path, format!("there is no :{name}; {known} (a text that begins with a colon is written ::text)"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> Vec<Parameter> {
        let field = |name: &str, value_type| Parameter { name: name.to_owned(), value_type };
        vec![field("time", Type::Timestamp), field("number", Type::Integer), field("text", Type::Text)]
    }

    fn written(text: &str, time: i64) -> String {
        let mut out = String::new();
        let value = |place: usize| [ValueRef::Timestamp(time), ValueRef::Integer(-7), ValueRef::Null][place];
        Name::of("x", text, &fields()).unwrap().write(&mut out, value).unwrap();
        out
    }

    #[test]
    fn numbers_are_put_in() {
        let time = 2 * DAY_US + 13 * HOUR_US + 59 * MINUTE_US;
        assert_eq!(written("hours.:time@hour.:time@minute", time), "hours.13.59");
        assert_eq!(written("readings_:time@day", time), "readings_2");
        assert_eq!(written("readings_:time@day", -1), "readings_-1");
        assert_eq!(written(":time@hour", -1), "23");
        assert_eq!(written("a::b.:number", 0), "a:b.-7");
        assert_eq!(Name::of("x", "plain", &[]).unwrap(), Name::Literal("plain".to_owned()));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        let refused = |text| Name::of("x", text, &fields()).unwrap_err().to_string();
        assert!(refused("a.:text").contains("text is never put into names"));
        assert!(refused("a.:time").contains("as in :time@hour"));
        assert!(refused("a.:time@year").contains("expected @day, @hour or @minute"));
        assert!(refused("a.:nothing").contains("there is no :nothing; expected one of :time, :number"));
        let minute = Name::of("x", "a.:time@minute", &fields()).unwrap();
        let in_between = minute.write_key(&mut String::new(), |_| ValueRef::Timestamp(MINUTE_US + 1));
        assert_eq!(in_between, Err(FieldConversionError::BetweenSlots(0, MINUTE_US + 1)));
        let null = Name::of("x", ":number", &fields()).unwrap().write(&mut String::new(), |_| ValueRef::Null);
        assert_eq!(null, Err(FieldConversionError::NoNumber(1)));
    }
}
