//! What the templates of a trace could change, found out before anything of it is sent.
//!
//! The server has no sessions that may only read, so that what is not a SELECT is never sent in theirs. A name without a keyspace means the
//! namespace, so that a write can only go elsewhere by a name with another one, which is refused; the server says besides to which
//! keyspace the placeholders belong.

use scylla::client::session::Session;
use scylla::statement::batch::BatchType;
use sensorbench_driver::{DriverError, Positional, Quotes, StatementTemplate, WriteCheck, WriteQuestion};

use crate::errors;
use crate::schema::{CONSISTENCIES, consistency_of};
use crate::target::Target;

/// Why statements other than SELECT are refused where only reads may be sent.
pub const NO_READ: &str = "it is not a SELECT, and the server has no sessions that may only read";
const MARKER_TABLE: &str = "sensorbench";
/// BEGIN UNLOGGED BATCH USING TIMESTAMP $1 has six pieces: one more is of something else.
const LONGEST_BEGINNING: usize = 7;

/// Checks templates.
pub async fn check_writes(target: &Target, question: WriteQuestion<'_>) -> Result<Vec<WriteCheck>, DriverError> {
    let mut checks = Vec::with_capacity(question.writes.len() + question.reads.len());
    if !question.writes.is_empty() {
        let session = target.connect(1, target.named_keyspace()).await?;
        for number in question.writes {
            let template = &question.templates[*number];
            let problem = match problem_of_level(template).or_else(|| problem_of_write(template, &target.server.namespace)) {
                Some(problem) => Some(problem),
                // What begins and ends a batch changes nothing by itself, and is not prepared.
                None if matches!(role_of(&template.statement), Role::BeginsBatch(_) | Role::EndsBatch) => None,
                None => problem_at_server(&session, target, template).await?,
            };
            checks.push(WriteCheck { template: *number, problem });
        }
    }
    for number in question.reads {
        let template = &question.templates[*number];
        let problem =
            problem_of_level(template).or_else(|| (role_of(&template.statement) != Role::Reads).then(|| NO_READ.to_owned()));
        checks.push(WriteCheck { template: *number, problem });
    }
    Ok(checks)
}

/// What a statement is in its session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Role {
    Reads,
    /// The statements that follow are of one batch, until its end.
    BeginsBatch(BatchType),
    EndsBatch,
    Other,
}

/// The role of a statement, by its words.
pub fn role_of(statement: &str) -> Role {
    if !statement.trim_start().starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Role::Other;
    }
    let pieces: Vec<_> = pieces(statement).take(LONGEST_BEGINNING).collect();
    let words: Vec<_> =
        pieces.iter().filter_map(|piece| if let Piece::Name(word) = piece { Some(word.as_str()) } else { None }).collect();
    match words[..] {
        ["select", ..] => Role::Reads,
        ["apply", "batch"] => Role::EndsBatch,
        ["begin", "batch"] | ["begin", "batch", "using", "timestamp"] => Role::BeginsBatch(BatchType::Logged),
        ["begin", "unlogged", "batch"] | ["begin", "unlogged", "batch", "using", "timestamp"] => {
            Role::BeginsBatch(BatchType::Unlogged)
        }
        ["begin", "counter", "batch"] | ["begin", "counter", "batch", "using", "timestamp"] => {
            Role::BeginsBatch(BatchType::Counter)
        }
        _ => Role::Other,
    }
}

fn problem_of_level(template: &StatementTemplate) -> Option<String> {
    let word = template.consistency.as_deref()?;
    let is_known = consistency_of(&word.to_lowercase()).is_some();
    (!is_known).then(|| format!("its consistency level is {word}, which is none of {}", CONSISTENCIES.join(", ")))
}

/// Why a statement may change anything else than a table of the namespace, by its words.
fn problem_of_write(template: &StatementTemplate, namespace: &str) -> Option<String> {
    let pieces: Vec<_> = pieces(&template.statement).collect();
    let words: Vec<_> =
        pieces.iter().take(3).map(|piece| if let Piece::Name(word) = piece { word.as_str() } else { "" }).collect();
    if !matches!(
        words[..],
        ["insert" | "update" | "delete", ..]
            | ["begin", "batch", ..]
            | ["begin", "unlogged" | "counter", "batch"]
            | ["apply", "batch"]
    ) {
        return Some("it is not an INSERT, UPDATE, DELETE or BATCH".to_owned());
    }
    if pieces.contains(&Piece::Other) {
        return Some("it has a comment, or a text between $$, in which a name could hide".to_owned());
    }
    let is_qualified = |place: usize| pieces.get(place + 1) == Some(&Piece::Mark('.'));
    for (place, piece) in pieces.iter().enumerate() {
        let Piece::Name(name) = piece else { continue };
        if is_qualified(place) && name != namespace {
            return Some(format!("it names {name}.…, which is outside the keyspace {namespace}"));
        }
        if !is_qualified(place) && name == MARKER_TABLE {
            return Some(format!("it names {MARKER_TABLE}, the table by which the keyspace is known as sensorbench's"));
        }
    }
    None
}

/// Has the server prepare a statement, which it does with one alone. Nothing is executed.
async fn problem_at_server(
    session: &Session,
    target: &Target,
    template: &StatementTemplate,
) -> Result<Option<String>, DriverError> {
    let text = Positional::of_template(&template.statement, Quotes::Doubled).text;
    let prepared = match session.prepare(text).await.map_err(|error| errors::unprepared(&target.shown, &error)) {
        Err(DriverError::Statement(message)) => return Ok(Some(format!("the server does not prepare it: {message}"))),
        prepared => prepared?,
    };
    let namespace = &target.server.namespace;
    let specs = prepared.get_variable_col_specs();
    let elsewhere = specs.iter().map(|spec| spec.table_spec()).find(|table| table.ks_name() != namespace);
    Ok(elsewhere
        .map(|table| format!("it changes {}.{}, which is outside the keyspace {namespace}", table.ks_name(), table.table_name())))
}

#[derive(Debug, PartialEq)]
enum Piece {
    /// A word in small letters, or what stands between double quotes.
    Name(String),
    Mark(char),
    /// What is not looked into: a comment or a text between two dollar signs.
    Other,
}

/// A statement in pieces, without white space, texts and numbers.
fn pieces(statement: &str) -> impl Iterator<Item = Piece> {
    let mut rest = statement;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start();
            let first = rest.chars().next()?;
            let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
            if matches!(first, '"' | '\'') {
                let (text, after) = between(rest, first);
                rest = after;
                if first == '"' {
                    return Some(Piece::Name(text));
                }
            } else if is_of_word(first) {
                let length = rest.find(|c: char| !is_of_word(c)).unwrap_or(rest.len());
                let word = rest[..length].to_lowercase();
                rest = &rest[length..];
                if !first.is_ascii_digit() {
                    return Some(Piece::Name(word));
                }
                // A number's point is none between names.
                rest = rest.strip_prefix('.').unwrap_or(rest);
            } else if ["--", "//", "/*", "$$"].iter().any(|begin| rest.starts_with(begin)) {
                rest = &rest[2..];
                return Some(Piece::Other);
            } else {
                rest = &rest[first.len_utf8()..];
                return Some(Piece::Mark(first));
            }
        }
    })
}

/// What stands between quotes, with quotes in it once, and what follows.
fn between(text: &str, quote: char) -> (String, &str) {
    let mut inside = String::new();
    let mut signs = text.char_indices().skip(1).peekable();
    while let Some((place, sign)) = signs.next() {
        if sign == quote && signs.next_if(|(_, next)| *next == quote).is_none() {
            return (inside, &text[place + 1..]);
        }
        inside.push(sign);
    }
    (inside, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(statement: &str) -> StatementTemplate {
        StatementTemplate { name: "t".to_owned(), statement: statement.to_owned(), keyspace: None, consistency: None }
    }

    #[test]
    fn only_a_select_reads_and_batches_have_a_beginning_and_an_end() {
        for (statement, expected) in [
            ("SELECT v FROM t", Role::Reads),
            (" select\nv", Role::Reads),
            ("-- SELECT\nDELETE FROM t", Role::Other),
            ("\"select\" v", Role::Other),
            ("'x' SELECT", Role::Other),
            ("SELECTED", Role::Other),
            ("INSERT INTO t (k) VALUES (1)", Role::Other),
            ("BEGIN BATCH", Role::BeginsBatch(BatchType::Logged)),
            ("begin unlogged batch using timestamp $1", Role::BeginsBatch(BatchType::Unlogged)),
            ("BEGIN COUNTER BATCH USING TIMESTAMP 17", Role::BeginsBatch(BatchType::Counter)),
            ("BEGIN UNLOGGED BATCH USING TIMESTAMP $1 DELETE FROM t", Role::Other),
            ("BEGIN BATCH DELETE FROM t WHERE k = 1; APPLY BATCH", Role::Other),
            ("APPLY BATCH;", Role::EndsBatch),
        ] {
            assert_eq!(role_of(statement), expected, "{statement}");
        }
    }

    #[test]
    fn a_write_names_no_other_keyspace() {
        for (statement, expected) in [
            ("INSERT INTO t (k, v) VALUES ($1, 1.5) USING TTL 3", None),
            ("UPDATE Mine.t SET v = 'other.t' WHERE k = $1", None),
            ("BEGIN UNLOGGED BATCH INSERT INTO t (k) VALUES (1); DELETE FROM \"mine\".\"T\" WHERE k = 2; APPLY BATCH", None),
            ("INSERT INTO other.t (k) VALUES ($1)", Some("it names other.…")),
            ("INSERT INTO \"Mine\" . t (k) VALUES ($1)", Some("it names Mine.…")),
            ("BEGIN BATCH INSERT INTO t (k) VALUES (1); DELETE FROM other.t WHERE k = 2; APPLY BATCH", Some("it names other.…")),
            ("DELETE FROM other/* */.t WHERE k = 1", Some("a comment")),
            ("DELETE FROM t WHERE v = $$a$$", Some("a text between $$")),
            ("UPDATE sensorbench SET mark = '' WHERE id = 0", Some("known as sensorbench's")),
            ("TRUNCATE t", Some("not an INSERT")),
            ("BEGIN TRANSACTION", Some("not an INSERT")),
            ("", Some("not an INSERT")),
        ] {
            let problem = problem_of_write(&template(statement), "mine");
            assert_eq!(problem.is_some(), expected.is_some(), "{statement}: {problem:?}");
            assert!(problem.unwrap_or_default().contains(expected.unwrap_or_default()), "{statement}");
        }
    }

    #[test]
    fn an_unknown_level_is_named() {
        let with_level = |level: &str| StatementTemplate { consistency: Some(level.to_owned()), ..template("SELECT 1") };
        assert_eq!(problem_of_level(&with_level("LOCAL_QUORUM")), None);
        assert!(problem_of_level(&with_level("most")).unwrap().starts_with("its consistency level is most"));
    }
}
