//! What the templates of a trace could change, found out before anything of it is sent.
//!
//! In a session that may only read, the server itself refuses what changes tables; a query that writes a file it lets pass, so that
//! reads are also looked at word by word here. Where the namespace may be written to, a write must be of a form that names the one table
//! that it changes. That must be a table of the namespace which keeps its rows there and has no triggers, and no stored function may be
//! called. Whatever is not decided by this is refused.

use std::collections::HashSet;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use sensorbench_driver::{DriverError, Positional, Quotes, WriteCheck, WriteQuestion};

use super::link::Link;
use crate::dialect::MARKER_TABLE;

/// What a read begins with.
const READS: [&str; 5] = ["select", "show", "table", "values", "with"];
/// What may stand before the table's name.
const MODIFIERS: [&str; 6] = ["low_priority", "delayed", "high_priority", "quick", "ignore", "into"];
/// What may follow the name where a single table's rows are deleted.
const AFTER_DELETED: [&str; 4] = ["where", "order", "limit", "returning"];
/// Settings of the session itself that clients send as a matter of course.
const OWN_SETTINGS: [&str; 4] = ["set names", "set autocommit", "set session transaction", "set transaction"];
const UNKNOWN_FORM: &str = "it is not an INSERT, REPLACE, UPDATE or DELETE that names a single table";

/// The server knows the statement and prepares none like it. It has read its text as one statement before it says so.
pub const NOT_PREPARED: u16 = 1295;

/// Checks templates. The connection is in the namespace where the URL names one.
pub async fn check_writes(
    link: &Link,
    connection: &mut Conn,
    question: WriteQuestion<'_>,
) -> Result<Vec<WriteCheck>, DriverError> {
    let catalogue = if question.read_only {
        Catalogue::default()
    } else {
        Catalogue::read(link, connection).await.map_err(|error| link.error(error))?
    };
    let mut checks = Vec::with_capacity(question.writes.len() + question.reads.len());
    for template in question.writes {
        let statement = question.templates[*template].statement.as_str();
        let problem = match catalogue.problem_of_write(statement) {
            Some(problem) => Some(problem),
            None => problem_at_server(connection, statement).await.map_err(|error| link.error(error))?,
        };
        checks.push(WriteCheck { template: *template, problem });
    }
    for template in question.reads {
        let statement = question.templates[*template].statement.as_str();
        let problem = problem_of_read(statement).map(str::to_owned).or_else(|| catalogue.problem_of_calls(statement));
        checks.push(WriteCheck { template: *template, problem });
    }
    Ok(checks)
}

/// Has the server prepare a statement, which it does with one alone, however many the text may have. Nothing is executed.
async fn problem_at_server(connection: &mut Conn, statement: &str) -> mysql_async::Result<Option<String>> {
    match connection.prep(Positional::of_template(statement, Quotes::Escaped).text).await {
        Ok(prepared) => connection.close(prepared).await.map(|()| None),
        Err(Error::Server(error)) if error.code == NOT_PREPARED => Ok(None),
        Err(Error::Server(error)) => Ok(Some(format!("the server does not prepare it: {error}"))),
        Err(error) => Err(error),
    }
}

/// What the server knows of the namespace and of functions.
#[derive(Default)]
struct Catalogue {
    namespace: String,
    /// Tables that keep their rows in the namespace.
    tables: HashSet<String>,
    /// Tables and their triggers.
    triggers: Vec<(String, String)>,
    /// Names of stored functions, in small letters.
    functions: Vec<String>,
}

impl Catalogue {
    async fn read(link: &Link, connection: &mut Conn) -> mysql_async::Result<Self> {
        let (dialect, namespace) = (link.dialect, link.server.namespace.clone());
        let tables: Vec<String> = connection.exec(dialect.own_tables(), (&namespace,)).await?;
        let triggers = connection.exec(dialect.triggers(), (&namespace,)).await?;
        let functions: Vec<String> = connection.query(dialect.stored_functions()).await?;
        let tables = tables.into_iter().filter(|table| table != MARKER_TABLE).collect();
        Ok(Self { namespace, tables, triggers, functions: functions.iter().map(|name| name.to_lowercase()).collect() })
    }

    /// Why a statement may change anything else than a table of the namespace.
    fn problem_of_write(&self, statement: &str) -> Option<String> {
        if is_own_setting(statement) {
            return None;
        }
        let Some((database, table)) = changed_table(statement) else { return Some(UNKNOWN_FORM.to_owned()) };
        let namespace = &self.namespace;
        if let Some(database) = database.filter(|database| database != namespace) {
            return Some(format!("it changes {database}.{table}, which is outside the database {namespace}"));
        }
        if !self.tables.contains(&table) {
            return Some(format!("the database {namespace} has no table {table} of its own"));
        }
        if let Some((_, trigger)) = self.triggers.iter().find(|(of, _)| *of == table) {
            return Some(format!("the table {table} has the trigger {trigger}, which may change other tables"));
        }
        self.problem_of_calls(statement)
    }

    fn problem_of_calls(&self, statement: &str) -> Option<String> {
        let statement = statement.to_lowercase();
        let function = self.functions.iter().find(|function| calls(&statement, function))?;
        Some(format!("it calls the stored function {function}, which may change other tables"))
    }
}

/// Whether a statement sets something of its session alone, by constants.
fn is_own_setting(statement: &str) -> bool {
    let words: Vec<_> = statement.split_whitespace().map(str::to_lowercase).collect();
    let (begin, is_plain) = (words.join(" "), !statement.contains([',', '(', ';', '/', '#']));
    is_plain && OWN_SETTINGS.iter().any(|known| begin.strip_prefix(known).is_some_and(|rest| !rest.starts_with(is_of_word)))
}

/// Whether a statement calls a function; both in small letters.
fn calls(statement: &str, function: &str) -> bool {
    statement.match_indices(function).any(|(place, _)| {
        let after = &statement[place + function.len()..];
        let is_whole = !statement[..place].ends_with(is_of_word);
        is_whole && after.strip_prefix('`').unwrap_or(after).trim_start().starts_with('(')
    })
}

fn is_of_word(found: char) -> bool {
    found.is_alphanumeric() || matches!(found, '_' | '$')
}

/// Why a statement that seems to read may change something after all. Texts and comments count, too: nothing hides there.
fn problem_of_read(statement: &str) -> Option<&'static str> {
    let statement = statement.to_lowercase();
    let begin = statement.trim_start_matches(|c: char| c == '(' || c.is_whitespace());
    let first = &begin[..begin.find(|c: char| !is_of_word(c)).unwrap_or(begin.len())];
    if !READS.contains(&first) {
        return Some("it begins with none of SELECT, WITH, VALUES, TABLE and SHOW, as reads do");
    }
    let words: Vec<&str> = statement.split(|c: char| !is_of_word(c)).filter(|word| !word.is_empty()).collect();
    let follow = |pair: [&str; 2]| words.windows(2).any(|found| found == pair);
    if words.contains(&"into") {
        Some("INTO stores what it selects")
    } else if follow(["for", "update"]) || follow(["for", "share"]) || follow(["lock", "in"]) {
        Some("it locks rows")
    } else if first == "with" && (words.contains(&"update") || words.contains(&"delete")) {
        Some("it changes what WITH selects")
    } else if words.contains(&"nextval") || words.contains(&"setval") || follow(["next", "value"]) {
        Some("it advances a sequence")
    } else {
        None
    }
}

/// Database, where it is named, and name of the one table that a statement changes; None if its form does not show it.
fn changed_table(statement: &str) -> Option<(Option<String>, String)> {
    let mut tokens = Tokens { rest: statement }.peekable();
    let Token::Word(verb) = tokens.next()? else { return None };
    let verb = verb.to_lowercase();
    while tokens.next_if(|token| token.is_one_of(&MODIFIERS)).is_some() {}
    if verb == "delete" {
        tokens.next_if(|token| token.is_one_of(&["from"]))?;
    }
    let mut table = tokens.next()?.into_name()?;
    let mut database = None;
    if tokens.next_if_eq(&Token::Mark('.')).is_some() {
        database = Some(table);
        table = tokens.next()?.into_name()?;
    }
    let next = tokens.peek();
    let is_single = match verb.as_str() {
        "insert" | "replace" => true,
        "update" => next.is_some_and(|token| token.is_one_of(&["set"])),
        "delete" => next.is_none_or(|token| token.is_one_of(&AFTER_DELETED)),
        _ => false,
    };
    is_single.then_some((database, table))
}

#[derive(Debug, PartialEq)]
enum Token<'a> {
    Word(&'a str),
    /// A name between backticks.
    Name(String),
    Mark(char),
}

impl Token<'_> {
    fn is_one_of(&self, words: &[&str]) -> bool {
        matches!(self, Token::Word(word) if words.iter().any(|known| known.eq_ignore_ascii_case(word)))
    }

    fn into_name(self) -> Option<String> {
        match self {
            Token::Word(word) => Some(word.to_owned()),
            Token::Name(name) => Some(name),
            Token::Mark(_) => None,
        }
    }
}

/// The beginning of a statement in pieces. Whatever else than words, names and white space it has, comments included, comes sign by sign.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let rest = self.rest.trim_start();
        let first = rest.chars().next()?;
        if first == '`' {
            let mut name = String::new();
            let mut signs = rest.char_indices().skip(1).peekable();
            while let Some((place, sign)) = signs.next() {
                if sign == '`' && signs.next_if(|(_, next)| *next == '`').is_none() {
                    self.rest = &rest[place + 1..];
                    return Some(Token::Name(name));
                }
                name.push(sign);
            }
            self.rest = "";
            return Some(Token::Mark('`'));
        }
        let length = rest.find(|c: char| !is_of_word(c)).unwrap_or(rest.len()).max(first.len_utf8());
        self.rest = &rest[length..];
        Some(if is_of_word(first) { Token::Word(&rest[..length]) } else { Token::Mark(first) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_changed_table_is_known_by_the_form_of_the_statement() {
        for (statement, expected) in [
            ("INSERT INTO t VALUES ($1)", Some("t")),
            ("insert ignore t (k) select k from other.u", Some("t")),
            ("REPLACE LOW_PRIORITY INTO `a`.`b``c` VALUES ($1)", Some("a.b`c")),
            ("UPDATE a . t SET v = $1 WHERE k = $2", Some("a.t")),
            ("DELETE QUICK FROM t", Some("t")),
            ("DELETE FROM t WHERE k = $1", Some("t")),
            ("UPDATE t, other.u SET u.v = 1", None),
            ("UPDATE t JOIN other.u USING (k) SET u.v = 1", None),
            ("UPDATE t AS x SET v = 1", None),
            ("DELETE other.u FROM t JOIN other.u USING (k)", None),
            ("DELETE FROM t USING t JOIN other.u", None),
            ("DELETE FROM t, other.u USING t JOIN other.u", None),
            ("WITH x AS (SELECT 1) DELETE FROM t", None),
            ("/*! DELETE FROM other.u */", None),
            ("INSERT /*! INTO other.u */ SELECT 1", None),
            ("INSERT INTO `t", None),
            ("TRUNCATE t", None),
            ("CALL p()", None),
            ("", None),
        ] {
            let found = changed_table(statement)
                .map(|(database, table)| database.map_or_else(|| table.clone(), |database| format!("{database}.{table}")));
            assert_eq!(found.as_deref(), expected, "{statement}");
        }
    }

    #[test]
    fn writes_stay_in_tables_of_the_namespace() {
        let text = str::to_owned;
        let catalogue = Catalogue {
            namespace: text("mine"),
            tables: HashSet::from([text("t"), text("watched")]),
            triggers: vec![(text("watched"), text("spill"))],
            functions: vec![text("hidden")],
        };
        for (statement, expected) in [
            ("INSERT INTO t VALUES ($1)", None),
            ("INSERT INTO mine.t SELECT hidden FROM u", None),
            ("INSERT INTO other.t VALUES ($1)", Some("it changes other.t, which is outside the database mine")),
            ("UPDATE v SET k = 1", Some("has no table v of its own")),
            ("INSERT INTO watched VALUES ($1)", Some("has the trigger spill")),
            ("INSERT INTO t VALUES (other.`Hidden` ($1))", Some("calls the stored function hidden")),
            ("DROP TABLE t", Some(UNKNOWN_FORM)),
            ("SET NAMES 'utf8mb4'", None),
            ("set  autocommit=0", None),
            ("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", None),
            ("SET NAMES utf8mb4, GLOBAL x = 1", Some(UNKNOWN_FORM)),
            ("SET autocommit_all = 1", Some(UNKNOWN_FORM)),
            ("SET GLOBAL autocommit = 1", Some(UNKNOWN_FORM)),
            ("SET autocommit = (SELECT hidden(1))", Some(UNKNOWN_FORM)),
        ] {
            let problem = catalogue.problem_of_write(statement);
            assert_eq!(problem.is_some(), expected.is_some(), "{statement}: {problem:?}");
            assert!(problem.unwrap_or_default().contains(expected.unwrap_or_default()), "{statement}");
        }
    }

    #[test]
    fn what_seems_to_read_and_may_change_something_is_named() {
        for (statement, expected) in [
            ("SELECT v FROM t WHERE k = $1", None),
            ("(SELECT 1) UNION (SELECT 2)", None),
            ("WITH x AS (SELECT 1) SELECT replace(a, b, c) FROM x", None),
            ("SHOW TABLES", None),
            ("SELECT 1 INTO OUTFILE '/tmp/x'", Some("INTO stores")),
            ("SELECT 1 /*!INTO DUMPFILE '/tmp/x' */", Some("INTO stores")),
            ("TABLE t INTO OUTFILE '/tmp/x'", Some("INTO stores")),
            ("SELECT v FROM t FOR UPDATE", Some("locks rows")),
            ("SELECT v FROM t LOCK IN SHARE MODE", Some("locks rows")),
            ("WITH x AS (SELECT 1) DELETE FROM t", Some("changes what WITH")),
            ("SELECT NEXTVAL(s)", Some("a sequence")),
            ("SELECT NEXT VALUE FOR s", Some("a sequence")),
            ("/*! DELETE FROM t */", Some("begins with none")),
            ("ANALYZE UPDATE t SET v = 1", Some("begins with none")),
            ("CALL p()", Some("begins with none")),
            ("selective", Some("begins with none")),
        ] {
            let problem = problem_of_read(statement);
            assert_eq!(problem.is_some(), expected.is_some(), "{statement}: {problem:?}");
            assert!(problem.unwrap_or_default().contains(expected.unwrap_or_default()), "{statement}");
        }
    }
}
