//! Words of commands, and elements of replies: both are written in the same way, so that a schema says only once how a
//! reading lies in Redis.

use std::fmt;

use sensorbench_dataset::encoding::{EncodingError, KeyPart, append_key, append_record, read_key, read_record};
use sensorbench_driver::{DriverError, Parameter, SchemaError, Type, ValueRef};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::text::{append_text, read_text};

/// A word as it stands in a schema file.
#[derive(Clone)]
pub enum WordText {
    /// Text with `{name}` in the place of values.
    Template(String),
    /// Bytes that sort like their values.
    Encoded(EncodedText),
    /// Words that are left out together when a value in them is null.
    Together(Vec<WordText>),
}

/// A prefix, the order-preserving encoding of some values, and the record of others.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncodedText {
    #[serde(default)]
    prefix: String,
    #[serde(default)]
    key: Vec<String>,
    #[serde(default)]
    record: Vec<String>,
}

/// As it stands in the file, for messages.
impl fmt::Debug for WordText {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            WordText::Template(text) => write!(formatter, "{text:?}"),
            WordText::Together(words) => write!(formatter, "{words:?}"),
            WordText::Encoded(EncodedText { prefix, key, record }) => {
                write!(formatter, "{{ prefix = {prefix:?}, key = {key:?}, record = {record:?} }}")
            }
        }
    }
}

impl<'de> Deserialize<'de> for WordText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfAnyForm;

        impl<'de> Visitor<'de> for OfAnyForm {
            type Value = WordText;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("a text with {name} in the place of values, or { prefix, key, record }")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<WordText, E> {
                Ok(WordText::Template(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WordText, A::Error> {
                EncodedText::deserialize(MapAccessDeserializer::new(map)).map(WordText::Encoded)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, words: A) -> Result<WordText, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(words)).map(WordText::Together)
            }
        }

        deserializer.deserialize_any(OfAnyForm)
    }
}

/// The named values that words are made of, or give: columns of a table, parameters or columns of an operation.
#[derive(Clone, Debug)]
pub struct Fields {
    /// Whose they are, for messages.
    pub owner: String,
    /// What they are there.
    pub kind: &'static str,
    pub list: Vec<Parameter>,
}

/// A value whose place among the fields is known.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    place: usize,
    value_type: Type,
}

/// Why a word cannot be written. Turned into a message by the fields, who know the names.
#[derive(Debug)]
pub enum WordError {
    /// The value in this place is null.
    Null(usize),
    /// A value cannot be encoded.
    Encoding(EncodingError),
}

impl Fields {
    fn field(&self, path: &str, name: &str) -> Result<Field, SchemaError> {
        let place = self.list.iter().position(|field| field.name == name).ok_or_else(|| {
            let known: Vec<_> = self.list.iter().map(|field| field.name.as_str()).collect();
            let known = if known.is_empty() { "it has none".to_owned() } else { format!("expected one of {}", known.join(", ")) };
            SchemaError::at(path, format!("{} has no {} {name}; {known}", self.owner, self.kind))
        })?;
        Ok(Field { place, value_type: self.list[place].value_type })
    }

    /// What a word that cannot be written means to the user.
    #[cold]
    pub fn error(&self, error: WordError) -> DriverError {
        DriverError::Data(match error {
            WordError::Null(place) => format!(
                "{}: {} {} is null, which a word of a command cannot be; leave such rows out, or put the words that belong to it \
                 between [ ]",
                self.owner, self.kind, self.list[place].name
            ),
            WordError::Encoding(error) => format!("{}: {error}", self.owner),
        })
    }
}

/// A word that is ready to be written from values, or an element to be read into values.
#[derive(Clone, Debug)]
pub enum Word {
    Template(Template),
    Encoded(Encoded),
}

/// Literal text and values in turn.
#[derive(Clone, Debug, Default)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
enum Piece {
    Literal(Vec<u8>),
    Value(Field),
}

/// Values as bytes that sort like them, then values as a record.
#[derive(Clone, Debug)]
pub struct Encoded {
    prefix: Vec<u8>,
    key: Vec<Field>,
    record: Vec<Field>,
}

impl Word {
    pub fn of(path: &str, text: &WordText, fields: &Fields) -> Result<Self, SchemaError> {
        match text {
            WordText::Template(text) => Template::of(path, text, fields).map(Word::Template),
            WordText::Encoded(text) => Encoded::of(path, text, fields).map(Word::Encoded),
            WordText::Together(_) => Err(SchemaError::at(path, "a list of words has no place here")),
        }
    }

    /// Whether two values stand side by side, so that it is unknown where one ends.
    pub fn is_ambiguous(&self) -> bool {
        let side_by_side = |pair: &[Piece]| matches!(pair, [Piece::Value(_), Piece::Value(_)]);
        matches!(self, Word::Template(template) if template.pieces.windows(2).any(side_by_side))
    }

    /// Its text when no value is in it.
    pub fn literal(&self) -> Option<&[u8]> {
        match self {
            Word::Template(template) => template.literal(),
            Word::Encoded(_) => None,
        }
    }

    /// The places of the values in it, in their order.
    pub fn places(&self) -> Box<dyn Iterator<Item = usize> + '_> {
        match self {
            Word::Template(template) => Box::new(template.pieces.iter().filter_map(|piece| match piece {
                Piece::Value(field) => Some(field.place),
                Piece::Literal(_) => None,
            })),
            Word::Encoded(encoded) => Box::new(encoded.key.iter().chain(&encoded.record).map(|field| field.place)),
        }
    }

    /// Whether a value that it cannot do without is null.
    pub fn lacks<'v>(&self, value: impl Fn(usize) -> ValueRef<'v>) -> bool {
        match self {
            Word::Template(_) => self.places().any(|place| value(place) == ValueRef::Null),
            Word::Encoded(encoded) => encoded.key.iter().any(|field| value(field.place) == ValueRef::Null),
        }
    }

    #[inline]
    pub fn append<'v>(&self, bytes: &mut Vec<u8>, value: impl Fn(usize) -> ValueRef<'v>) -> Result<(), WordError> {
        match self {
            Word::Template(template) => template.append(bytes, value),
            Word::Encoded(encoded) => encoded.append(bytes, value),
        }
    }

    /// Reads an element and gives each value with its place to `visit`; false when the element is not of this form.
    #[inline]
    pub fn read<'a>(&self, element: &'a [u8], visit: impl FnMut(usize, KeyPart<'a>)) -> bool {
        match self {
            Word::Template(template) => template.read(element, visit).is_some(),
            Word::Encoded(encoded) => encoded.read(element, visit).is_some(),
        }
    }
}

impl Template {
    pub fn of(path: &str, text: &str, fields: &Fields) -> Result<Self, SchemaError> {
        let mut template = Self::default();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            template.push_literal(&rest.as_bytes()[..at]);
            let (brace, after) = (&rest[at..=at], &rest[at + 1..]);
            if let Some(after) = after.strip_prefix(brace) {
                template.push_literal(brace.as_bytes());
                rest = after;
                continue;
            }
            let name = after.find('}').filter(|_| brace == "{").ok_or_else(|| {
                SchemaError::at(path, format!("{text:?}: expected {{name}}, or {{{{ and }}}} for the braces themselves"))
            })?;
            template.pieces.push(Piece::Value(fields.field(path, &after[..name])?));
            rest = &after[name + 1..];
        }
        template.push_literal(rest.as_bytes());
        Ok(template)
    }

    /// The same with `prefix` before it.
    pub fn after(mut self, prefix: &str) -> Self {
        match self.pieces.first_mut() {
            Some(Piece::Literal(literal)) => drop(literal.splice(..0, prefix.bytes())),
            _ => self.pieces.insert(0, Piece::Literal(prefix.as_bytes().to_vec())),
        }
        self
    }

    fn push_literal(&mut self, text: &[u8]) {
        match self.pieces.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Literal(literal)) => literal.extend_from_slice(text),
            _ => self.pieces.push(Piece::Literal(text.to_vec())),
        }
    }

    fn literal(&self) -> Option<&[u8]> {
        match self.pieces.as_slice() {
            [] => Some(b""),
            [Piece::Literal(literal)] => Some(literal),
            _ => None,
        }
    }

    #[inline]
    pub fn append<'v>(&self, bytes: &mut Vec<u8>, value: impl Fn(usize) -> ValueRef<'v>) -> Result<(), WordError> {
        for piece in &self.pieces {
            match piece {
                Piece::Literal(literal) => bytes.extend_from_slice(literal),
                Piece::Value(field) if append_text(bytes, value(field.place)) => {}
                Piece::Value(field) => return Err(WordError::Null(field.place)),
            }
        }
        Ok(())
    }

    #[inline]
    fn read<'a>(&self, element: &'a [u8], mut visit: impl FnMut(usize, KeyPart<'a>)) -> Option<()> {
        let mut rest = element;
        let mut pieces = self.pieces.iter().peekable();
        while let Some(piece) = pieces.next() {
            match piece {
                Piece::Literal(literal) => rest = rest.strip_prefix(literal.as_slice())?,
                Piece::Value(field) => {
                    let end = match pieces.peek() {
                        Some(Piece::Literal(literal)) => position(rest, literal)?,
                        _ => rest.len(),
                    };
                    visit(field.place, KeyPart::Borrowed(read_text(field.value_type, &rest[..end])?));
                    rest = &rest[end..];
                }
            }
        }
        rest.is_empty().then_some(())
    }
}

#[inline]
fn position(bytes: &[u8], literal: &[u8]) -> Option<usize> {
    match literal {
        [byte] => bytes.iter().position(|candidate| candidate == byte),
        _ => bytes.windows(literal.len()).position(|window| window == literal),
    }
}

impl Encoded {
    fn of(path: &str, text: &EncodedText, fields: &Fields) -> Result<Self, SchemaError> {
        let all = |key: &str, names: &[String]| {
            let field = |(number, name): (usize, &String)| fields.field(&format!("{path}.{key}[{number}]"), name);
            names.iter().enumerate().map(field).collect::<Result<Vec<_>, _>>()
        };
        if text.key.is_empty() && text.record.is_empty() {
            return Err(SchemaError::at(path, "expected names in key, in record or in both"));
        }
        Ok(Self { prefix: text.prefix.clone().into(), key: all("key", &text.key)?, record: all("record", &text.record)? })
    }

    #[inline]
    fn append<'v>(&self, bytes: &mut Vec<u8>, value: impl Fn(usize) -> ValueRef<'v>) -> Result<(), WordError> {
        bytes.extend_from_slice(&self.prefix);
        for field in &self.key {
            match value(field.place) {
                ValueRef::Null => return Err(WordError::Null(field.place)),
                value => append_key(bytes, field.value_type, value).map_err(WordError::Encoding)?,
            }
        }
        for field in &self.record {
            append_record(bytes, field.value_type, value(field.place)).map_err(WordError::Encoding)?;
        }
        Ok(())
    }

    #[inline]
    fn read<'a>(&self, element: &'a [u8], mut visit: impl FnMut(usize, KeyPart<'a>)) -> Option<()> {
        let mut rest = element.strip_prefix(self.prefix.as_slice())?;
        for field in &self.key {
            visit(field.place, read_key(&mut rest, field.value_type).ok()?);
        }
        for field in &self.record {
            visit(field.place, KeyPart::Borrowed(read_record(&mut rest, field.value_type).ok()?));
        }
        rest.is_empty().then_some(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields() -> Fields {
        let field = |name: &str, value_type| Parameter { name: name.to_owned(), value_type };
        Fields {
            owner: "table t".to_owned(),
            kind: "column",
            list: vec![field("time", Type::Timestamp), field("name", Type::Text), field("value", Type::Double)],
        }
    }

    fn word(text: serde_json::Value) -> Result<Word, SchemaError> {
        Word::of("x", &serde_json::from_value(text).unwrap(), &fields())
    }

    const VALUES: [ValueRef; 3] = [ValueRef::Timestamp(-5), ValueRef::Text("a:b"), ValueRef::Double(1.5)];

    fn written(word: &Word) -> Vec<u8> {
        let mut bytes = Vec::new();
        word.append(&mut bytes, |place| VALUES[place]).unwrap();
        bytes
    }

    #[test]
    fn what_was_written_is_read_again() {
        for text in [
            json!("{time}:{value}:{name}"),
            json!("<{value}> {{{time}}} {name}"),
            json!({"key": ["time", "name"], "record": ["value"]}),
            json!({"prefix": "[", "key": ["value", "name", "time"]}),
        ] {
            let word = word(text.clone()).unwrap();
            let bytes = written(&word);
            let mut places = Vec::new();
            let is_read = word.read(&bytes, |place, part| {
                assert_eq!(part.value(), VALUES[place], "{text}");
                places.push(place);
            });
            assert!(is_read, "{text}: {bytes:?}");
            assert_eq!(places, word.places().collect::<Vec<_>>());
        }
        assert_eq!(written(&word(json!("({time}")).unwrap()), b"(-5");
        assert_eq!(written(&word(json!("{{{time}}}")).unwrap()), b"{-5}");
    }

    #[test]
    fn elements_of_another_form_are_refused() {
        let read = |text: serde_json::Value, element: &[u8]| word(text).unwrap().read(element, |_, _| {});
        assert!(!read(json!("{time}:{value}"), b"5"));
        assert!(!read(json!("{time}:{value}"), b"5:x"));
        assert!(!read(json!("time"), b"times"));
        assert!(!read(json!({"record": ["value"]}), b"\x01short"));
    }

    #[test]
    fn nulls_and_unknown_names_are_told_by_name() {
        let null = |text| word(text).unwrap().append(&mut Vec::new(), |_| ValueRef::Null).unwrap_err();
        assert!(fields().error(null(json!("{value}"))).to_string().starts_with("table t: column value is null"));
        assert!(fields().error(null(json!({"key": ["name"]}))).to_string().starts_with("table t: column name is null"));
        assert!(word(json!({"record": ["name"]})).unwrap().append(&mut Vec::new(), |_| ValueRef::Null).is_ok());
        let refused = |text| word(text).unwrap_err().to_string();
        assert_eq!(refused(json!("{tim}")), "x: table t has no column tim; expected one of time, name, value");
        assert_eq!(refused(json!({"key": ["tim"]})), "x.key[0]: table t has no column tim; expected one of time, name, value");
        assert!(refused(json!("{time")).contains("expected {name}"));
        assert!(refused(json!("time}")).contains("expected {name}"));
    }
}
