//! Recorded statements, executed again. The sessions of a trace share the connections of one client, as those of an application do; each
//! executes one statement after the other.

use std::sync::Arc;

use futures::future::LocalBoxFuture;
use scylla::client::session::Session;
use scylla::deserialize::row::ColumnIterator;
use scylla::frame::response::result::ColumnSpec;
use scylla::response::query_result::QueryResult;
use scylla::response::{PagingState, PagingStateResponse};
use scylla::serialize::SerializationError;
use scylla::serialize::row::{RowSerializationContext, SerializeRow};
use scylla::serialize::writers::RowWriter;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;
use sensorbench_driver::{
    DriverError, Literal, Positional, Quotes, ReplayConnection, ReplayConnector, ReplayRequest, Rows, ValueRef,
};
use tokio::sync::OnceCell;

use crate::errors;
use crate::literals::encoded;
use crate::schema::consistency_of;
use crate::session::MAX_CONNECTIONS;
use crate::target::Target;
use crate::written::{NO_READ, is_read};

/// Makes the sessions of a replay.
pub struct Replayer(Arc<Client>);

struct Client {
    target: Arc<Target>,
    read_only: bool,
    keeps_answers: bool,
    /// In the order of their numbers.
    templates: Vec<Template>,
    /// Opened by whichever session comes first.
    session: OnceCell<Session>,
}

struct Template {
    positional: Positional,
    is_read: bool,
    consistency: Option<Consistency>,
    prepared: OnceCell<PreparedStatement>,
}

impl Replayer {
    /// Refuses levels of consistency that there are not.
    pub fn of(target: Arc<Target>, request: ReplayRequest) -> Result<Self, DriverError> {
        let ReplayRequest { templates, read_only, keeps_answers } = request;
        let mut known = Vec::with_capacity(templates.len());
        for template in templates {
            let level = |word: String| {
                consistency_of(&word.to_lowercase())
                    .ok_or_else(|| DriverError::Data(format!("{}: there is no consistency level {word}", template.name)))
            };
            known.push(Template {
                positional: Positional::of_template(&template.statement, Quotes::Doubled),
                is_read: is_read(&template.statement),
                consistency: template.consistency.map(level).transpose()?,
                prepared: OnceCell::new(),
            });
        }
        Ok(Self(Arc::new(Client { target, read_only, keeps_answers, templates: known, session: OnceCell::new() })))
    }
}

impl ReplayConnector for Replayer {
    fn connect(&self) -> LocalBoxFuture<'_, Result<Box<dyn ReplayConnection>, DriverError>> {
        Box::pin(async move {
            self.0.session().await?;
            Ok(Box::new(RecordedSession(self.0.clone())) as Box<dyn ReplayConnection>)
        })
    }
}

/// A session of the trace.
struct RecordedSession(Arc<Client>);

impl ReplayConnection for RecordedSession {
    fn execute<'a>(
        &'a self,
        template: usize,
        literals: &'a [Literal],
        rows: &'a mut Rows,
    ) -> LocalBoxFuture<'a, Result<u64, DriverError>> {
        Box::pin(self.0.execute(&self.0.templates[template], literals, rows))
    }

    /// The protocol has no way to end a statement: the server gives it up by its own limits of time.
    fn cancel(&self) -> LocalBoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// The library makes lost connections anew by itself.
    fn is_lost(&self) -> bool {
        false
    }
}

impl Client {
    /// Statements find the tables of the keyspace that the URL names.
    async fn session(&self) -> Result<&Session, DriverError> {
        let connections = self.target.server.connections.unwrap_or(MAX_CONNECTIONS);
        self.session.get_or_try_init(|| self.target.connect(connections, self.target.names_namespace)).await
    }

    async fn prepare(&self, template: &Template) -> Result<PreparedStatement, DriverError> {
        if self.read_only && !template.is_read {
            return Err(DriverError::Statement(format!("not sent: {NO_READ}")));
        }
        let prepared = self.session().await?.prepare(template.positional.text.as_str()).await;
        let mut statement = prepared.map_err(|error| errors::unprepared(&self.target.shown, &error))?;
        statement.set_is_idempotent(template.is_read);
        // Columns are then not described again with every answer. Conditional writes describe theirs only there.
        statement.set_use_cached_result_metadata(template.is_read);
        // The URL's word for one of both counts before the recorded one.
        let of_target = if template.is_read { self.target.read_consistency } else { self.target.write_consistency };
        if let Some(consistency) = of_target.or(template.consistency) {
            statement.set_consistency(consistency);
        }
        if let Some(page_size) = self.target.page_size {
            statement.set_page_size(page_size);
        }
        Ok(statement)
    }

    async fn execute(&self, template: &Template, literals: &[Literal], rows: &mut Rows) -> Result<u64, DriverError> {
        let statement = template.prepared.get_or_try_init(|| self.prepare(template)).await?;
        let cells = bound(template, statement, literals)?;
        let session = self.session().await?;
        let failed = |error| errors::execution_error(&self.target.shown, error);
        if !template.is_read || self.target.page_size.is_none() {
            let answer = session.execute_unpaged(statement, &cells).await.map_err(failed)?;
            self.read(answer, rows)?;
            return Ok(rows.len());
        }
        let mut page = PagingState::start();
        loop {
            let (answer, next) = session.execute_single_page(statement, &cells, page).await.map_err(failed)?;
            self.read(answer, rows)?;
            match next {
                PagingStateResponse::HasMorePages { state } => page = state,
                PagingStateResponse::NoMorePages => return Ok(rows.len()),
            }
        }
    }

    /// Values as the server sent them. Only conditional ones of writes have rows: whether they were applied.
    fn read(&self, answer: QueryResult, rows: &mut Rows) -> Result<(), DriverError> {
        let unreadable = |error: &dyn std::fmt::Display| DriverError::Data(format!("an answer cannot be read: {error}"));
        if !answer.is_rows() {
            return Ok(());
        }
        let answer = answer.into_rows_result().map_err(|error| unreadable(&error))?;
        if !self.keeps_answers {
            (0..answer.rows_num()).for_each(|_| rows.count_row());
            return Ok(());
        }
        for row in answer.rows::<ColumnIterator>().map_err(|error| unreadable(&error))? {
            for column in row.map_err(|error| unreadable(&error))? {
                let column = column.map_err(|error| unreadable(&error))?;
                rows.push(column.slice.map_or(ValueRef::Null, |slice| ValueRef::Bytes(slice.as_slice())));
            }
            rows.end_row();
        }
        Ok(())
    }
}

/// The literals of a statement in the places of its template, encoded.
fn bound(template: &Template, statement: &PreparedStatement, literals: &[Literal]) -> Result<Cells, DriverError> {
    let specs = statement.get_variable_col_specs();
    let cell = |(literal, spec): (&Literal, &ColumnSpec)| {
        encoded(literal, spec.typ()).map_err(|refused| DriverError::Data(refused.at("parameter", spec.name()).to_string()))
    };
    template.positional.placed(literals)?.zip(specs.iter()).map(cell).collect::<Result<_, _>>().map(Cells)
}

/// Encoded values; None for null.
struct Cells(Vec<Option<Vec<u8>>>);

impl SerializeRow for Cells {
    fn serialize(&self, _: &RowSerializationContext, writer: &mut RowWriter) -> Result<(), SerializationError> {
        for value in &self.0 {
            let cell = writer.make_cell_writer();
            match value {
                None => cell.set_null(),
                Some(bytes) => cell.set_value(bytes).map_err(SerializationError::new)?,
            };
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
