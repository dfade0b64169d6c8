//! Commands of a trace, and what the server says of them (COMMAND INFO): which of their words are keys, and whether they only read.

use std::collections::HashMap;

use redis::Value;
use sensorbench_driver::{DriverError, Literal, check_literals};

/// Begin and end transactions, and change nothing by themselves.
const CONTROL: [&str; 3] = ["MULTI", "EXEC", "DISCARD"];
/// The server answers to these more than once, or not at all.
const UNANSWERED: [&str; 5] = ["MONITOR", "PSUBSCRIBE", "PSYNC", "SSUBSCRIBE", "SUBSCRIBE"];
/// With these words a reply has pairs.
const PAIRS: [&str; 3] = ["HGETALL", "WITHSCORES", "WITHVALUES"];
/// Name no key, and change nothing but what the server knows of the connection.
const WITHOUT_EFFECT: [&str; 11] = [
    "client|getname",
    "client|id",
    "client|setinfo",
    "client|setname",
    "dbsize",
    "echo",
    "info",
    "ping",
    "time",
    "unwatch",
    "command",
];
/// What the server calls commands that change nothing, and those whose keys depend on their values.
const READ_FLAG: &str = "readonly";
const MOVABLE_FLAG: &str = "movablekeys";
/// Where COMMAND INFO has the flags of a command, the places of its keys (first, last, distance), and its subcommands.
const FLAGS: usize = 2;
const KEYS: usize = 3;
const SUBCOMMANDS: usize = 9;

/// A command with the places of its literals.
pub struct Template {
    words: Vec<Word>,
    /// Elements of a reply that belong together.
    pub columns: usize,
}

enum Word {
    Own(String),
    /// The place of a literal, from 0.
    Literal(usize),
}

/// What a command does for transactions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Role {
    Begins,
    Ends,
    Other,
}

impl Template {
    pub fn of(statement: &str) -> Self {
        let place = |word: &str| word.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1);
        let words: Vec<_> = statement
            .split_whitespace()
            .map(|word| place(word).map_or_else(|| Word::Own(word.to_owned()), Word::Literal))
            .collect();
        let has_pairs = words.iter().any(|word| matches!(word, Word::Own(word) if PAIRS.contains(&word.as_str())));
        Self { words, columns: if has_pairs { 2 } else { 1 } }
    }

    /// The name of the command.
    pub fn name(&self) -> &str {
        match self.words.first() {
            Some(Word::Own(name)) => name,
            _ => "",
        }
    }

    pub fn role(&self) -> Role {
        match self.name().to_uppercase().as_str() {
            "MULTI" => Role::Begins,
            "EXEC" | "DISCARD" => Role::Ends,
            _ => Role::Other,
        }
    }

    /// Why it is never sent, if it is not.
    pub fn problem(&self) -> Option<String> {
        self.is_one_of(&UNANSWERED).then(|| format!("{} has no single answer", self.name()))
    }

    fn is_one_of(&self, names: &[&str]) -> bool {
        names.iter().any(|name| name.eq_ignore_ascii_case(self.name()))
    }

    fn has_word(&self, expected: &str) -> bool {
        self.words.iter().any(|word| matches!(word, Word::Own(word) if word.eq_ignore_ascii_case(expected)))
    }

    /// What the server may call it: the name with that of the subcommand, or alone.
    fn names(&self) -> impl Iterator<Item = String> {
        let name = self.name().to_lowercase();
        let whole = match self.words.get(1) {
            Some(Word::Own(subcommand)) => Some(format!("{name}|{}", subcommand.to_lowercase())),
            _ => None,
        };
        whole.into_iter().chain([name])
    }

    /// The words of the command with literals in their places.
    pub fn words(&self, literals: &[Literal]) -> Result<Vec<Vec<u8>>, DriverError> {
        let last = self.words.iter().filter_map(|word| if let Word::Literal(place) = word { Some(*place) } else { None }).max();
        check_literals(last.map_or(0, |place| place + 1), literals)?;
        let written = |word: &Word| match word {
            Word::Own(word) => word.clone().into_bytes(),
            Word::Literal(place) => bytes_of(literals[*place].text().unwrap_or_default()),
        };
        Ok(self.words.iter().map(written).collect())
    }
}

/// What a literal says: bytes that are not UTF-8 stand in it as `\xff`.
fn bytes_of(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find("\\x") {
        bytes.extend_from_slice(&rest.as_bytes()[..place]);
        let byte = rest.get(place + 2..place + 4).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if let Some(byte) = byte.filter(|byte| !byte.is_ascii()) {
            bytes.push(byte);
            rest = &rest[place + 4..];
        } else {
            bytes.extend_from_slice(b"\\x");
            rest = &rest[place + 2..];
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

/// What the server says of commands, by their names in lower case.
#[derive(Default)]
pub struct KnownCommands(HashMap<String, CommandInfo>);

struct CommandInfo {
    only_reads: bool,
    keys: Keys,
}

#[derive(Clone, Copy)]
enum Keys {
    /// From the first to the last, which is counted from the end where it is negative, with this distance.
    At(usize, i64, usize),
    Nowhere,
    /// Which words are keys depends on their values.
    Movable,
}

impl KnownCommands {
    /// Reads the answer to COMMAND INFO.
    pub fn of(described: &Value) -> Self {
        let mut known = Self::default();
        if let Value::Array(described) = described {
            described.iter().for_each(|command| known.add(command));
        }
        known
    }

    fn add(&mut self, described: &Value) {
        let Value::Array(parts) = described else { return };
        let flags: &[Value] = if let Some(Value::Array(flags) | Value::Set(flags)) = parts.get(FLAGS) { flags } else { &[] };
        let has = |flag: &str| flags.iter().any(|found| text(found).as_deref() == Some(flag));
        let number = |place: usize| if let Some(Value::Int(number)) = parts.get(place) { *number } else { 0 };
        let keys = match (usize::try_from(number(KEYS)), usize::try_from(number(KEYS + 2))) {
            _ if has(MOVABLE_FLAG) => Keys::Movable,
            (Ok(first @ 1..), Ok(distance)) => Keys::At(first, number(KEYS + 1), distance.max(1)),
            _ => Keys::Nowhere,
        };
        if let Some(name) = parts.first().and_then(text) {
            self.0.insert(name.to_lowercase(), CommandInfo { only_reads: has(READ_FLAG), keys });
        }
        if let Some(Value::Array(subcommands)) = parts.get(SUBCOMMANDS) {
            subcommands.iter().for_each(|subcommand| self.add(subcommand));
        }
    }

    fn info(&self, template: &Template) -> Option<&CommandInfo> {
        template.names().find_map(|name| self.0.get(&name))
    }

    /// The places of the words of a command that are keys; none where they depend on its values.
    pub fn keys(&self, template: &Template) -> Vec<usize> {
        let Some(Keys::At(first, last, distance)) = self.info(template).map(|info| info.keys) else { return Vec::new() };
        let count = template.words.len() as i64;
        let last = if last < 0 { count + last } else { last.min(count - 1) };
        (first..).step_by(distance).take_while(|place| *place as i64 <= last).collect()
    }

    /// Why a command may not be sent where only reads may.
    pub fn problem_of_read(&self, template: &Template) -> Option<String> {
        let may_be_sent = template.is_one_of(&CONTROL) || self.info(template).is_some_and(|info| info.only_reads);
        (!may_be_sent).then(|| format!("the server does not call {} a command that only reads", template.name()))
    }

    /// Why a command could change another key than those that it names.
    pub fn problem_of_write(&self, template: &Template) -> Option<String> {
        if template.is_one_of(&["MOVE"]) || (template.is_one_of(&["COPY"]) && template.has_word("DB")) {
            return Some("it writes into another database of the server".to_owned());
        }
        match self.info(template).map(|info| info.keys) {
            None => Some(format!("the server does not know {}", template.name())),
            Some(Keys::At(..)) => None,
            Some(Keys::Movable) => Some("which of its words are keys depends on their values".to_owned()),
            Some(Keys::Nowhere) if template.names().any(|name| WITHOUT_EFFECT.contains(&name.as_str())) => None,
            Some(Keys::Nowhere) => Some("it names no key, so that it is not known what it changes".to_owned()),
        }
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::SimpleString(text) => Some(text.clone()),
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(name: &str, flags: &[&str], keys: [i64; 3], subcommands: Vec<Value>) -> Value {
        let flags = flags.iter().map(|flag| Value::SimpleString((*flag).to_owned())).collect();
        let parts = [Value::BulkString(name.into()), Value::Int(2), Value::Array(flags)];
        let nothing = std::iter::repeat_n(Value::Nil, SUBCOMMANDS - KEYS - 3);
        Value::Array(parts.into_iter().chain(keys.map(Value::Int)).chain(nothing).chain([Value::Array(subcommands)]).collect())
    }

    fn known() -> KnownCommands {
        KnownCommands::of(&Value::Array(vec![
            described("get", &["readonly", "fast"], [1, 1, 1], vec![]),
            described("set", &["write"], [1, 1, 1], vec![]),
            described("mset", &["write"], [1, -1, 2], vec![]),
            described("blpop", &["write"], [1, -2, 1], vec![]),
            described("copy", &["write"], [1, 2, 1], vec![]),
            described("eval", &["movablekeys"], [0, 0, 0], vec![]),
            described("flushall", &["write"], [0, 0, 0], vec![]),
            described("ping", &["fast"], [0, 0, 0], vec![]),
            described("object", &[], [0, 0, 0], vec![described("object|encoding", &["readonly"], [2, 2, 1], vec![])]),
            Value::Nil,
        ]))
    }

    #[test]
    fn literals_stand_in_the_places_of_a_command() {
        let template = Template::of("SET $2 $1 EX $3");
        let literals = [Literal::Text("a b".to_owned()), Literal::Text("k".to_owned()), Literal::Number("5".to_owned())];
        let expected: [&[u8]; 5] = [b"SET", b"k", b"a b", b"EX", b"5"];
        assert_eq!(template.words(&literals).unwrap(), expected);
        assert!(template.words(&literals[..2]).is_err());
    }

    #[test]
    fn bytes_that_are_no_text_are_told_apart_from_what_looks_like_them() {
        let as_bytes: [(&str, &[u8]); 4] =
            [(r"a\xffb", b"a\xffb"), (r"\x41", br"\x41"), (r"\x", br"\x"), (r"\xé1", r"\xé1".as_bytes())];
        for (text, bytes) in as_bytes {
            assert_eq!(bytes_of(text), bytes, "{text}");
        }
    }

    #[test]
    fn the_server_says_what_reads() {
        for (statement, expected) in [
            ("GET $1", true),
            ("get $1", true),
            ("SET $1 $2", false),
            ("OBJECT ENCODING $1", true),
            ("OBJECT $1", false),
            ("MULTI", true),
            ("", false),
        ] {
            assert_eq!(known().problem_of_read(&Template::of(statement)).is_none(), expected, "{statement}");
        }
    }

    #[test]
    fn the_server_says_which_words_are_keys() {
        let keys: [(&str, &[usize]); 6] = [
            ("SET $1 $2 EX $3", &[1]),
            ("MSET $1 $2 $3 $4", &[1, 3]),
            ("BLPOP $1 $2 $3", &[1, 2]),
            ("OBJECT ENCODING $1", &[2]),
            ("EVAL $1 $2 $3", &[]),
            ("UNKNOWN $1", &[]),
        ];
        for (statement, expected) in keys {
            assert_eq!(known().keys(&Template::of(statement)), expected, "{statement}");
        }
    }

    #[test]
    fn what_may_change_other_keys_is_refused() {
        for (statement, said) in [
            ("SET $1 $2", None),
            ("GET $1", None),
            ("PING", None),
            ("COPY $1 $2", None),
            ("COPY $1 $2 DB $3", Some("another database")),
            ("EVAL $1 $2 $3", Some("depends on their values")),
            ("FLUSHALL", Some("names no key")),
            ("UNKNOWN $1", Some("does not know")),
        ] {
            let problem = known().problem_of_write(&Template::of(statement));
            assert_eq!(problem.is_some(), said.is_some(), "{statement}: {problem:?}");
            assert!(problem.unwrap_or_default().contains(said.unwrap_or_default()), "{statement}");
        }
    }
}
