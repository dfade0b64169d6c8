//! Recorded statements, executed again: one connection for each session, literals bound to prepared statements.

use std::cell::Cell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use futures::future::LocalBoxFuture;
use mysql_async::prelude::{Protocol, Queryable};
use mysql_async::{Conn, Error, Params, QueryResult, Statement, Value as MysqlValue};
use sensorbench_driver::{
    DriverError, Literal, Positional, Quotes, ReplayConnection, ReplayConnector, ReplayRequest, Rows, ValueRef,
};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::link::Link;
use super::written::NOT_PREPARED;

/// How long asking a server to end a statement may take.
const CANCEL_LIMIT: Duration = Duration::from_secs(10);

/// What the connections of a replay share.
struct Setup {
    link: Arc<Link>,
    /// In the order of their numbers.
    templates: Vec<Positional>,
    read_only: bool,
    keeps_answers: bool,
}

/// Makes connections that see the tables that the recorded ones saw: those of the database in the URL, or of the namespace where the
/// URL names one.
pub struct Replayer(Arc<Setup>);

impl Replayer {
    pub fn of(link: Arc<Link>, request: ReplayRequest) -> Self {
        let ReplayRequest { templates, read_only, keeps_answers } = request;
        let templates = templates.iter().map(|template| Positional::of_template(&template.statement, Quotes::Escaped)).collect();
        Self(Arc::new(Setup { link, templates, read_only, keeps_answers }))
    }
}

impl ReplayConnector for Replayer {
    fn connect(&self) -> LocalBoxFuture<'_, Result<Box<dyn ReplayConnection>, DriverError>> {
        Box::pin(async move {
            let connection = self.0.link.connect_as_recorded(self.0.read_only).await?;
            let session = Session {
                setup: self.0.clone(),
                connection_id: connection.id(),
                line: Mutex::new(Line { connection, prepared: HashMap::new() }),
                is_lost: Cell::new(false),
                was_cancelled: Cell::new(false),
            };
            Ok(Box::new(session) as Box<dyn ReplayConnection>)
        })
    }
}

struct Session {
    setup: Arc<Setup>,
    connection_id: u32,
    /// Whoever executes has it; nobody else waits for it.
    line: Mutex<Line>,
    is_lost: Cell<bool>,
    was_cancelled: Cell<bool>,
}

struct Line {
    connection: Conn,
    /// Statements of the templates that the session has used; None for one that is not prepared.
    prepared: HashMap<usize, Option<Statement>>,
}

impl ReplayConnection for Session {
    fn execute<'a>(
        &'a self,
        template: usize,
        literals: &'a [Literal],
        rows: &'a mut Rows,
    ) -> LocalBoxFuture<'a, Result<u64, DriverError>> {
        Box::pin(async move {
            let parameters = bound(&self.setup.templates[template], literals)?;
            let executed = self.executed(template, parameters, rows).await.map_err(|error| self.setup.link.error(error));
            if let Err(DriverError::Connection(_)) = executed {
                self.is_lost.set(true);
            }
            executed
        })
    }

    fn cancel(&self) -> LocalBoxFuture<'_, ()> {
        Box::pin(async {
            self.was_cancelled.set(true);
            // That the server could not be reached is not an error: then the connection is lost, too.
            let _ = timeout(CANCEL_LIMIT, self.kill()).await;
        })
    }

    fn is_lost(&self) -> bool {
        self.is_lost.get()
    }
}

impl Session {
    async fn executed(&self, template: usize, parameters: Params, rows: &mut Rows) -> mysql_async::Result<u64> {
        let Line { connection, prepared } = &mut *self.line.lock().await;
        if self.was_cancelled.take() {
            // A cancellation that came too late would meet the next statement: let it be one that does nothing.
            let cleared = connection.query_drop("DO 0").await;
            cleared.or_else(|error| if let Error::Server(_) = error { Ok(()) } else { Err(error) })?;
        }
        let text = self.setup.templates[template].text.as_str();
        let statement = match prepared.entry(template) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(prepare(connection, text).await?),
        };
        match statement {
            Some(statement) => self.read(connection.exec_iter(&*statement, parameters).await?, rows).await,
            None => self.read(connection.query_iter(text).await?, rows).await,
        }
    }

    /// Reads an answer to its end. Where a procedure gives several, the values of the first are kept, and the rows of all are counted.
    async fn read<P: Protocol>(&self, mut answer: QueryResult<'_, 'static, P>, rows: &mut Rows) -> mysql_async::Result<u64> {
        let has_columns = !answer.columns_ref().is_empty();
        let mut keeps = self.setup.keeps_answers;
        while !answer.is_empty() {
            let take = |row: mysql_async::Row| {
                if keeps {
                    (0..row.len()).for_each(|column| push(row.as_ref(column).unwrap_or(&MysqlValue::NULL), rows));
                    rows.end_row();
                } else {
                    rows.count_row();
                }
            };
            answer.for_each(take).await?;
            keeps = false;
        }
        let changed = answer.affected_rows();
        answer.drop_result().await?;
        Ok(if has_columns { rows.len() } else { changed })
    }

    /// Has the server end what the connection executes.
    async fn kill(&self) -> Result<(), DriverError> {
        let link = &self.setup.link;
        let mut connection = link.connect().await?;
        // Where the address leads to several servers, the number could be that of somebody's connection.
        if !link.leads_to_several() {
            let killed = connection.query_drop(link.dialect.kill_statement(self.connection_id)).await;
            killed.map_err(|error| link.error(error))?;
        }
        connection.disconnect().await.map_err(|error| link.error(error))
    }
}

async fn prepare(connection: &mut Conn, text: &str) -> mysql_async::Result<Option<Statement>> {
    match connection.prep(text).await {
        Err(Error::Server(error)) if error.code == NOT_PREPARED => Ok(None),
        prepared => prepared.map(Some),
    }
}

/// The literals of a statement in the places of its template.
fn bound(template: &Positional, literals: &[Literal]) -> Result<Params, DriverError> {
    let values: Vec<_> = template.placed(literals)?.map(value).collect();
    Ok(if values.is_empty() { Params::Empty } else { Params::Positional(values) })
}

/// A literal as the server takes it: of whole numbers, doubles, and everything else in its text form.
fn value(literal: &Literal) -> MysqlValue {
    match literal {
        Literal::Null => MysqlValue::NULL,
        Literal::Boolean(value) => MysqlValue::Int((*value).into()),
        Literal::Number(digits) => number(digits).unwrap_or_else(|| MysqlValue::Bytes(digits.clone().into_bytes())),
        Literal::Text(text) => MysqlValue::Bytes(bytes_of(text).unwrap_or_else(|| text.clone().into_bytes())),
    }
}

fn number(digits: &str) -> Option<MysqlValue> {
    if let Ok(whole) = digits.parse() {
        return Some(MysqlValue::Int(whole));
    }
    if let Ok(whole) = digits.parse() {
        return Some(MysqlValue::UInt(whole));
    }
    digits.parse().ok().filter(|number: &f64| number.is_finite()).map(MysqlValue::Double)
}

/// The bytes of x'4D79' or b'1001101', which traces have as they are written.
fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let (radix, digits_a_byte) = match text.as_bytes().first()? {
        b'x' | b'X' => (16, 2),
        b'b' | b'B' => (2, 8),
        _ => return None,
    };
    let digits = text[1..].strip_prefix('\'')?.strip_suffix('\'')?.as_bytes();
    if !digits.iter().all(|digit| char::from(*digit).is_digit(radix)) {
        return None;
    }
    let byte =
        |digits: &[u8]| digits.iter().fold(0, |byte, digit| byte * radix + char::from(*digit).to_digit(radix).unwrap_or(0)) as u8;
    // The first byte has fewer digits where they do not come out even.
    Some(digits.rchunks(digits_a_byte).map(byte).rev().collect())
}

fn push(value: &MysqlValue, rows: &mut Rows) {
    let written;
    rows.push(match value {
        MysqlValue::NULL => ValueRef::Null,
        MysqlValue::Bytes(bytes) => ValueRef::Bytes(bytes),
        MysqlValue::Int(number) => ValueRef::Integer(*number),
        MysqlValue::UInt(number) if i64::try_from(*number).is_ok() => ValueRef::Integer(*number as i64),
        MysqlValue::Float(number) => ValueRef::Double((*number).into()),
        MysqlValue::Double(number) => ValueRef::Double(*number),
        MysqlValue::UInt(_) | MysqlValue::Date(..) | MysqlValue::Time(..) => {
            written = value.as_sql(true);
            ValueRef::Text(&written)
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_keep_what_they_are() {
        let number = |digits: &str| value(&Literal::Number(digits.to_owned()));
        assert_eq!(number("-5"), MysqlValue::Int(-5));
        assert_eq!(number("18446744073709551615"), MysqlValue::UInt(u64::MAX));
        assert_eq!(number("1.5"), MysqlValue::Double(1.5));
        assert_eq!(number("1e999"), MysqlValue::Bytes(b"1e999".to_vec()));
        let text = |text: &str| value(&Literal::Text(text.to_owned()));
        assert_eq!(text("5"), MysqlValue::Bytes(b"5".to_vec()));
        assert_eq!(text("x'4d79'"), MysqlValue::Bytes(b"My".to_vec()));
        assert_eq!(text("b'101001101'"), MysqlValue::Bytes(vec![1, 0b0100_1101]));
        assert_eq!(text("x'4g'"), MysqlValue::Bytes(b"x'4g'".to_vec()));
        assert_eq!(text("bö"), MysqlValue::Bytes("bö".as_bytes().to_vec()));
    }
}
