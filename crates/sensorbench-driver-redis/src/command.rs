//! Commands, packed from values straight into the buffer that is sent.

use std::ops::Range;

use sensorbench_driver::{SchemaError, ValueRef};

use crate::resp::{append_command, append_word, make_word};
use crate::word::{Fields, Template, Word, WordError, WordText};

/// Commands that a schema may use: those that touch only the key that is their second word. Nothing outside the namespace
/// is ever read or written, and a cluster routes them by that key.
const COMMANDS: &str = "\
    APPEND EXPIRE GET GETRANGE HDEL HEXISTS HGET HGETALL HINCRBY HINCRBYFLOAT HKEYS HLEN HMGET HSET HVALS INCRBY \
    INCRBYFLOAT LINDEX LLEN LPUSH LRANGE RPUSH SADD SCARD SET SETRANGE SISMEMBER SMEMBERS SREM STRLEN TS.ADD TS.GET \
    TS.RANGE TS.REVRANGE TTL XADD XLEN XRANGE XREVRANGE ZADD ZCARD ZCOUNT ZINCRBY ZLEXCOUNT ZMSCORE ZRANGE ZRANGEBYLEX \
    ZRANGEBYSCORE ZRANK ZREM ZREMRANGEBYLEX ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE \
    ZREVRANK ZSCORE";

/// A command that is ready to be packed but for the values in it. Its second word, the key, comes from a template.
#[derive(Clone, Debug)]
pub struct Command {
    /// Its name, packed.
    name: Vec<u8>,
    key: Template,
    parts: Vec<Part>,
    /// Number of words after the key, where it does not depend on values.
    length: Option<usize>,
}

#[derive(Clone, Debug)]
enum Part {
    One(PackedWord),
    /// Words that are left out together when a value that one of them needs is null.
    Together(Vec<PackedWord>),
}

#[derive(Clone, Debug)]
enum PackedWord {
    /// A word without values, packed.
    Literal(Vec<u8>),
    Word(Word),
}

impl Command {
    /// Reads a command from a schema file: its name, then its words without the key.
    pub fn of(path: &str, texts: &[WordText], key: Template, fields: &Fields) -> Result<Self, SchemaError> {
        let (name, texts) = named(path, texts)?;
        let part = |(number, text): (usize, &WordText)| Part::of(&format!("{path}[{}]", number + 1), text, fields);
        let parts = texts.iter().enumerate().map(part).collect::<Result<Vec<_>, _>>()?;
        let varies = parts.iter().any(|part| matches!(part, Part::Together(_)));
        let mut packed_name = Vec::new();
        append_word(&mut packed_name, name.as_bytes());
        Ok(Self { name: packed_name, key, length: (!varies).then_some(parts.len()), parts })
    }

    /// Appends the whole command; returns where its key lies.
    #[inline]
    pub fn append<'v>(
        &self,
        bytes: &mut Vec<u8>,
        value: impl Fn(usize) -> ValueRef<'v> + Copy,
    ) -> Result<Range<usize>, WordError> {
        let words = self.length.unwrap_or_else(|| self.parts.iter().map(|part| part.words(value)).sum());
        append_command(bytes, 2 + words);
        bytes.extend_from_slice(&self.name);
        let start = bytes.len();
        self.append_key(bytes, value)?;
        let length = bytes.len() - start;
        let start = start + make_word(bytes, start);
        self.append_words(bytes, value)?;
        Ok(start..start + length)
    }

    /// Appends the key alone, not packed.
    #[inline]
    pub fn append_key<'v>(&self, bytes: &mut Vec<u8>, value: impl Fn(usize) -> ValueRef<'v>) -> Result<(), WordError> {
        self.key.append(bytes, value)
    }

    /// Appends the words after the key; returns how many they are.
    #[inline]
    pub fn append_words<'v>(
        &self,
        bytes: &mut Vec<u8>,
        value: impl Fn(usize) -> ValueRef<'v> + Copy,
    ) -> Result<usize, WordError> {
        let mut words = 0;
        for part in &self.parts {
            words += part.append(bytes, value)?;
        }
        Ok(words)
    }

    /// Appends what stands before the words, when their number and the key are known.
    pub fn append_head(&self, bytes: &mut Vec<u8>, key: &[u8], words: usize) {
        append_command(bytes, 2 + words);
        bytes.extend_from_slice(&self.name);
        append_word(bytes, key);
    }
}

/// The name of a command that is allowed, and the words after it.
pub fn named<'a>(path: &str, texts: &'a [WordText]) -> Result<(&'static str, &'a [WordText]), SchemaError> {
    let known = match texts.first() {
        Some(WordText::Template(name)) => COMMANDS.split(' ').find(|command| command.eq_ignore_ascii_case(name)),
        _ => None,
    };
    let known = known.ok_or_else(|| {
        let message =
            format!("expected a command that touches only the key after its name, one of {}", COMMANDS.replace(' ', ", "));
        SchemaError::at(format!("{path}[0]"), message)
    })?;
    Ok((known, &texts[1..]))
}

impl Part {
    fn of(path: &str, text: &WordText, fields: &Fields) -> Result<Self, SchemaError> {
        let WordText::Together(texts) = text else { return PackedWord::of(path, text, fields).map(Part::One) };
        let word = |(number, text): (usize, &WordText)| PackedWord::of(&format!("{path}[{number}]"), text, fields);
        texts.iter().enumerate().map(word).collect::<Result<_, _>>().map(Part::Together)
    }

    #[inline]
    fn words<'v>(&self, value: impl Fn(usize) -> ValueRef<'v> + Copy) -> usize {
        match self {
            Part::One(_) => 1,
            Part::Together(words) if words.iter().any(|word| word.lacks(value)) => 0,
            Part::Together(words) => words.len(),
        }
    }

    #[inline]
    fn append<'v>(&self, bytes: &mut Vec<u8>, value: impl Fn(usize) -> ValueRef<'v> + Copy) -> Result<usize, WordError> {
        let words = self.words(value);
        match self {
            Part::One(word) => word.append(bytes, value)?,
            Part::Together(together) => together[..words].iter().try_for_each(|word| word.append(bytes, value))?,
        }
        Ok(words)
    }
}

impl PackedWord {
    fn of(path: &str, text: &WordText, fields: &Fields) -> Result<Self, SchemaError> {
        let word = Word::of(path, text, fields)?;
        Ok(match word.literal() {
            None => PackedWord::Word(word),
            Some(literal) => {
                let mut packed = Vec::new();
                append_word(&mut packed, literal);
                PackedWord::Literal(packed)
            }
        })
    }

    fn lacks<'v>(&self, value: impl Fn(usize) -> ValueRef<'v>) -> bool {
        matches!(self, PackedWord::Word(word) if word.lacks(value))
    }

    #[inline]
    fn append<'v>(&self, bytes: &mut Vec<u8>, value: impl Fn(usize) -> ValueRef<'v>) -> Result<(), WordError> {
        match self {
            PackedWord::Literal(packed) => bytes.extend_from_slice(packed),
            PackedWord::Word(word) => {
                let start = bytes.len();
                word.append(bytes, value)?;
                make_word(bytes, start);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use sensorbench_driver::{Parameter, Type};
    use serde_json::json;

    use super::*;

    fn command(texts: serde_json::Value) -> Result<Command, SchemaError> {
        let field = |name: &str| Parameter { name: name.to_owned(), value_type: Type::Integer };
        let fields = Fields { owner: "operation o".to_owned(), kind: "parameter", list: vec![field("id"), field("number")] };
        let texts: Vec<WordText> = serde_json::from_value(texts).unwrap();
        Command::of("operation.o.command", &texts, Template::of("operation.o.key", "t:{id}", &fields)?, &fields)
    }

    fn packed(command: &Command, values: [ValueRef; 2]) -> String {
        let mut bytes = b"earlier".to_vec();
        let key = command.append(&mut bytes, |place| values[place]).unwrap();
        assert_eq!(&bytes[key], b"t:5");
        String::from_utf8(bytes[7..].to_vec()).unwrap().replace("\r\n", " ")
    }

    #[test]
    fn the_key_is_put_in_after_the_name() {
        let values = [ValueRef::Integer(5), ValueRef::Integer(-12)];
        assert_eq!(packed(&command(json!(["get"])).unwrap(), values), "*2 $3 GET $3 t:5 ");
        let zadd = command(json!(["ZADD", "NX", "{number}", "{id}:{number}"])).unwrap();
        assert_eq!(packed(&zadd, values), "*5 $4 ZADD $3 t:5 $2 NX $3 -12 $5 5:-12 ");
    }

    #[test]
    fn words_of_a_list_are_left_out_when_a_value_is_null() {
        let hset = command(json!(["HSET", "id", "{id}", ["number", "{number}"]])).unwrap();
        let with = |number| packed(&hset, [ValueRef::Integer(5), number]);
        assert_eq!(with(ValueRef::Integer(7)), "*6 $4 HSET $3 t:5 $2 id $1 5 $6 number $1 7 ");
        assert_eq!(with(ValueRef::Null), "*4 $4 HSET $3 t:5 $2 id $1 5 ");
    }

    #[test]
    fn other_commands_are_refused() {
        for texts in [json!(["FLUSHALL"]), json!(["EVAL", "x"]), json!([]), json!([{"key": ["id"]}])] {
            let error = command(texts).unwrap_err();
            assert_eq!(error.path, "operation.o.command[0]");
            assert!(error.message.contains("one of APPEND, EXPIRE, GET"), "{error}");
        }
        let error = command(json!(["GET", ["{id}", ["{id}"]]])).unwrap_err();
        assert_eq!(error.to_string(), "operation.o.command[1][1]: a list of words has no place here");
    }
}
