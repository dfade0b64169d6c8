//! Recorded commands, executed again: one connection for each session, literals sent as words of their own.
//!
//! The server has no connections that may only read. What a command does, it says itself (COMMAND INFO), and where only reads may be sent,
//! nothing else is. The keys of a trace are not those of sensorbench's namespace, so that writes go there only by the owner's word.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;

use futures::future::LocalBoxFuture;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value};
use sensorbench_driver::{
    DriverError, Literal, ReplayConnection, ReplayConnector, ReplayRequest, Rows, ValueRef, WriteCheck, WriteQuestion,
    check_literals,
};

use crate::control_connection::{ask, connect_with};
use crate::target::{Address, Target};

/// Begin and end transactions, and change nothing by themselves.
const CONTROL: [&str; 3] = ["MULTI", "EXEC", "DISCARD"];
/// The server answers to these more than once, or not at all.
const UNANSWERED: [&str; 5] = ["MONITOR", "PSUBSCRIBE", "PSYNC", "SSUBSCRIBE", "SUBSCRIBE"];
/// What the server calls commands that change nothing.
const READ_FLAG: &str = "readonly";
/// Where COMMAND INFO has the flags of a command, and its subcommands.
const FLAGS: usize = 2;
const SUBCOMMANDS: usize = 9;
/// With these words a reply has pairs.
const PAIRS: [&str; 3] = ["HGETALL", "WITHSCORES", "WITHVALUES"];

/// Makes connections to one server.
pub struct Replayer(Arc<Setup>);

struct Setup {
    target: Arc<Target>,
    address: Address,
    /// In the order of their numbers.
    templates: Vec<Template>,
    read_only: bool,
    keeps_answers: bool,
}

impl Replayer {
    pub fn of(target: Arc<Target>, request: ReplayRequest) -> Result<Self, DriverError> {
        let address = only_address(&target)?;
        let ReplayRequest { templates, read_only, keeps_answers } = request;
        let templates = templates.iter().map(|template| Template::of(&template.statement)).collect();
        Ok(Self(Arc::new(Setup { target, address, templates, read_only, keeps_answers })))
    }
}

fn only_address(target: &Target) -> Result<Address, DriverError> {
    target.addresses().into_iter().next().ok_or_else(|| DriverError::Url("the URL names no host".to_owned()))
}

impl ReplayConnector for Replayer {
    fn connect(&self) -> LocalBoxFuture<'_, Result<Box<dyn ReplayConnection>, DriverError>> {
        Box::pin(async move {
            let mut connection = connect_with(&self.0.target, &self.0.address, None).await?;
            let reads = if self.0.read_only {
                Some(reads(&mut connection, &self.0.address, self.0.templates.iter()).await?)
            } else {
                None
            };
            let session = Session { setup: self.0.clone(), connection, reads, is_lost: Cell::new(false) };
            Ok(Box::new(session) as Box<dyn ReplayConnection>)
        })
    }
}

struct Session {
    setup: Arc<Setup>,
    connection: MultiplexedConnection,
    /// Commands that the server calls reads, where nothing else may be sent.
    reads: Option<HashSet<String>>,
    is_lost: Cell<bool>,
}

impl ReplayConnection for Session {
    fn execute<'a>(
        &'a self,
        template: usize,
        literals: &'a [Literal],
        rows: &'a mut Rows,
    ) -> LocalBoxFuture<'a, Result<u64, DriverError>> {
        let template = &self.setup.templates[template];
        Box::pin(async move {
            if let Some(problem) = self.problem_of(template) {
                return Err(DriverError::Statement(format!("not sent: {problem}")));
            }
            let command = template.command(literals)?;
            let replied = ask(&mut self.connection.clone(), &self.setup.address, &command).await;
            if let Err(DriverError::Connection(_)) = replied {
                self.is_lost.set(true);
            }
            read(&replied?, template.columns, self.setup.keeps_answers, rows);
            Ok(rows.len())
        })
    }

    /// Redis cannot cancel a command. Where it does not answer in time, its connection is closed.
    fn cancel(&self) -> LocalBoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn is_lost(&self) -> bool {
        self.is_lost.get()
    }
}

impl Session {
    fn problem_of(&self, template: &Template) -> Option<String> {
        if template.is_one_of(&UNANSWERED) {
            return Some(format!("{} has no single answer", template.name()));
        }
        self.reads.as_ref().and_then(|reads| template.problem_of_read(reads)).filter(|_| !template.is_one_of(&CONTROL))
    }
}

/// A command with the places of its literals.
struct Template {
    words: Vec<Word>,
    /// Elements of a reply that belong together.
    columns: usize,
}

enum Word {
    Own(String),
    /// The place of a literal, from 0.
    Literal(usize),
}

impl Template {
    fn of(statement: &str) -> Self {
        let place = |word: &str| word.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1);
        let words: Vec<_> = statement
            .split_whitespace()
            .map(|word| place(word).map_or_else(|| Word::Own(word.to_owned()), Word::Literal))
            .collect();
        let has_pairs = words.iter().any(|word| matches!(word, Word::Own(word) if PAIRS.contains(&word.as_str())));
        Self { words, columns: if has_pairs { 2 } else { 1 } }
    }

    /// The name of the command.
    fn name(&self) -> &str {
        match self.words.first() {
            Some(Word::Own(name)) => name,
            _ => "",
        }
    }

    fn is_one_of(&self, names: &[&str]) -> bool {
        names.iter().any(|name| name.eq_ignore_ascii_case(self.name()))
    }

    /// What the server may call it: the name alone, or with that of the subcommand.
    fn names(&self) -> impl Iterator<Item = String> {
        let name = self.name().to_lowercase();
        let whole = match self.words.get(1) {
            Some(Word::Own(subcommand)) => Some(format!("{name}|{}", subcommand.to_lowercase())),
            _ => None,
        };
        whole.into_iter().chain([name])
    }

    fn problem_of_read(&self, reads: &HashSet<String>) -> Option<String> {
        let is_read = self.names().any(|name| reads.contains(&name));
        (!is_read).then(|| format!("the server does not call {} a command that only reads", self.name()))
    }

    fn command(&self, literals: &[Literal]) -> Result<Cmd, DriverError> {
        let last = self.words.iter().filter_map(|word| if let Word::Literal(place) = word { Some(*place) } else { None }).max();
        check_literals(last.map_or(0, |place| place + 1), literals)?;
        let mut command = Cmd::new();
        for word in &self.words {
            match word {
                Word::Own(word) => command.arg(word),
                Word::Literal(place) => command.arg(bytes_of(literals[*place].text().unwrap_or_default())),
            };
        }
        Ok(command)
    }
}

/// What a literal says: bytes that are no UTF-8 stand in it as `\xff`.
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

/// Asks the server which of the templates' commands change nothing.
async fn reads(
    connection: &mut MultiplexedConnection,
    address: &Address,
    templates: impl Iterator<Item = &Template>,
) -> Result<HashSet<String>, DriverError> {
    let names: HashSet<&str> = templates.map(Template::name).filter(|name| !name.is_empty()).collect();
    let mut command = redis::cmd("COMMAND");
    command.arg("INFO");
    names.iter().for_each(|name| {
        command.arg(*name);
    });
    let mut found = HashSet::new();
    if let Value::Array(described) = ask(connection, address, &command).await? {
        described.iter().for_each(|one| add_reads(one, &mut found));
    }
    Ok(found)
}

fn add_reads(described: &Value, found: &mut HashSet<String>) {
    let Value::Array(parts) = described else { return };
    let flags: &[Value] = if let Some(Value::Array(flags) | Value::Set(flags)) = parts.get(FLAGS) { flags } else { &[] };
    if let Some(name) = parts.first().and_then(text).filter(|_| flags.iter().any(|flag| text(flag).as_deref() == Some(READ_FLAG)))
    {
        found.insert(name.to_lowercase());
    }
    if let Some(Value::Array(subcommands)) = parts.get(SUBCOMMANDS) {
        subcommands.iter().for_each(|one| add_reads(one, found));
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::SimpleString(text) => Some(text.clone()),
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        _ => None,
    }
}

/// The elements of a reply as rows of so many; nil is no row.
fn read(reply: &Value, columns: usize, keeps_answers: bool, rows: &mut Rows) {
    let elements: &[Value] = match reply {
        Value::Nil => &[],
        Value::Array(elements) | Value::Set(elements) => elements,
        single => std::slice::from_ref(single),
    };
    let columns = if elements.len().is_multiple_of(columns) { columns } else { 1 };
    for row in elements.chunks(columns) {
        if keeps_answers {
            row.iter().for_each(|value| push(value, rows));
            rows.end_row();
        } else {
            rows.count_row();
        }
    }
}

fn push(value: &Value, rows: &mut Rows) {
    let shown;
    rows.push(match value {
        Value::Nil => ValueRef::Null,
        Value::Int(number) => ValueRef::Integer(*number),
        Value::BulkString(bytes) => ValueRef::Bytes(bytes),
        Value::SimpleString(text) => ValueRef::Text(text),
        Value::Double(number) => ValueRef::Double(*number),
        nested => {
            shown = format!("{nested:?}");
            ValueRef::Text(&shown)
        }
    });
}

/// Checks templates: reads are what the server calls that, and no write can be known to stay in the namespace.
pub async fn check_writes(target: &Target, question: WriteQuestion<'_>) -> Result<Vec<WriteCheck>, DriverError> {
    let address = only_address(target)?;
    let mut connection = connect_with(target, &address, None).await?;
    let of = |number: &usize| (*number, Template::of(&question.templates[*number].statement));
    let reading: Vec<_> = question.reads.iter().map(of).collect();
    let reads = reads(&mut connection, &address, reading.iter().map(|(_, template)| template)).await?;
    let elsewhere = |template: &usize| WriteCheck {
        template: *template,
        problem: Some("its keys are those of the trace, and not of sensorbench's namespace".to_owned()),
    };
    let checked =
        reading.iter().map(|(number, template)| WriteCheck { template: *number, problem: template.problem_of_read(&reads) });
    Ok(question.writes.iter().map(elsewhere).chain(checked).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_stand_in_the_places_of_a_command() {
        let template = Template::of("SET $2 $1 EX $3");
        let literals = [Literal::Text("a b".to_owned()), Literal::Text("k".to_owned()), Literal::Number("5".to_owned())];
        let packed = template.command(&literals).unwrap().get_packed_command();
        assert_eq!(packed, b"*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\na b\r\n$2\r\nEX\r\n$1\r\n5\r\n");
        assert!(template.command(&literals[..2]).is_err());
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
        let word = |word: &str| Value::BulkString(word.into());
        let flag = |flag: &str| Value::SimpleString(flag.to_owned());
        let described = |name: &str, flags: Vec<Value>, subcommands: Vec<Value>| {
            let nothing = std::iter::repeat_n(Value::Nil, SUBCOMMANDS - FLAGS - 1);
            let parts = [word(name), Value::Int(2), Value::Array(flags)].into_iter().chain(nothing);
            Value::Array(parts.chain([Value::Array(subcommands)]).collect())
        };
        let mut reads = HashSet::new();
        add_reads(&described("get", vec![flag("readonly"), flag("fast")], vec![]), &mut reads);
        add_reads(&described("set", vec![flag("write")], vec![]), &mut reads);
        let encoding = described("object|encoding", vec![flag("readonly")], vec![]);
        add_reads(&described("object", vec![], vec![encoding]), &mut reads);
        add_reads(&Value::Nil, &mut reads);
        for (statement, expected) in [
            ("GET $1", true),
            ("get $1", true),
            ("SET $1 $2", false),
            ("OBJECT ENCODING $1", true),
            ("OBJECT $1", false),
            ("", false),
        ] {
            assert_eq!(Template::of(statement).problem_of_read(&reads).is_none(), expected, "{statement}");
        }
    }

    #[test]
    fn replies_become_rows() {
        let word = |word: &str| Value::BulkString(word.into());
        for (reply, columns, expected) in [
            (Value::Nil, 1, 0),
            (Value::Int(5), 1, 1),
            (Value::Array(vec![word("a"), word("b")]), 1, 2),
            (Value::Array(vec![word("a"), word("b")]), 2, 1),
            (Value::Array(vec![word("a")]), 2, 1),
            (Value::Array(vec![Value::Array(vec![word("a")]), Value::Nil]), 1, 2),
        ] {
            for keeps_answers in [true, false] {
                let mut rows = Rows::new();
                read(&reply, columns, keeps_answers, &mut rows);
                assert_eq!(rows.len(), expected, "{reply:?}");
            }
        }
    }
}
