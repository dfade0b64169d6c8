//! Recorded statements, executed again. The sessions of a trace share the connections of one client, as those of an application do; each
//! executes one statement after the other.
//!
//! The statements of a batch stand in a trace between its beginning and its end, as the full query log has them. They are kept until its
//! end, and sent together then.

use std::cell::RefCell;
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
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use sensorbench_driver::{
    DriverError, Literal, Positional, Quotes, ReplayConnection, ReplayConnector, ReplayRequest, Rows, StatementTemplate, ValueRef,
};
use tokio::sync::OnceCell;

use crate::errors;
use crate::literals::{encoded, timestamp_us};
use crate::schema::consistency_of;
use crate::session::MAX_CONNECTIONS;
use crate::target::Target;
use crate::written::{NO_READ, Role, role_of};

/// Makes the sessions of a replay.
pub struct Replayer(Arc<Client>);

struct Client {
    target: Arc<Target>,
    read_only: bool,
    keeps_answers: bool,
    /// In the order of their numbers.
    templates: Vec<Template>,
    /// The library's sessions with the keyspace of each, opened when they are first needed.
    sessions: Vec<(Option<String>, OnceCell<Session>)>,
}

struct Template {
    text: String,
    positional: Positional,
    role: Role,
    consistency: Option<Consistency>,
    /// Number of the library's session that it is executed in.
    session: usize,
    prepared: OnceCell<PreparedStatement>,
}

impl Replayer {
    /// Refuses levels of consistency that there are not.
    pub fn of(target: Arc<Target>, request: ReplayRequest) -> Result<Self, DriverError> {
        let ReplayRequest { templates, read_only, keeps_answers } = request;
        let mut client = Client { target, read_only, keeps_answers, templates: Vec::new(), sessions: Vec::new() };
        for template in templates {
            let known = client.known(template)?;
            client.templates.push(known);
        }
        Ok(Self(Arc::new(client)))
    }
}

impl ReplayConnector for Replayer {
    fn connect(&self) -> LocalBoxFuture<'_, Result<Box<dyn ReplayConnection>, DriverError>> {
        Box::pin(async move {
            self.0.session(0).await?;
            let session = RecordedSession { client: self.0.clone(), batch: RefCell::default() };
            Ok(Box::new(session) as Box<dyn ReplayConnection>)
        })
    }
}

/// A session of the trace.
struct RecordedSession {
    client: Arc<Client>,
    /// What has begun and is not at its end.
    batch: RefCell<Option<OpenBatch>>,
}

struct OpenBatch {
    batch: Batch,
    values: Vec<Cells>,
    session: usize,
    /// A statement of it could not be added: without it, it is another one.
    is_broken: bool,
}

impl ReplayConnection for RecordedSession {
    fn execute<'a>(
        &'a self,
        template: usize,
        literals: &'a [Literal],
        rows: &'a mut Rows,
    ) -> LocalBoxFuture<'a, Result<u64, DriverError>> {
        let template = &self.client.templates[template];
        Box::pin(async move {
            match template.role {
                Role::BeginsBatch(kind) => self.begin(template, kind, literals).map(|()| 0),
                Role::EndsBatch => self.end().await.map(|()| 0),
                Role::Reads | Role::Other => match self.batch.take() {
                    Some(batch) => self.add(batch, template, literals).await.map(|()| 0),
                    None => self.client.execute(template, literals, rows).await,
                },
            }
        })
    }

    /// The protocol has no way to end a statement: the server gives it up by its own limits of time.
    fn cancel(&self) -> LocalBoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// The library reconnects lost connections by itself.
    fn is_lost(&self) -> bool {
        false
    }
}

impl RecordedSession {
    fn begin(&self, template: &Template, kind: BatchType, literals: &[Literal]) -> Result<(), DriverError> {
        let mut batch = Batch::new(kind);
        batch.set_timestamp(timestamp_us(&template.text, literals));
        if let Some(consistency) = self.client.target.write_consistency.or(template.consistency) {
            batch.set_consistency(consistency);
        }
        *self.batch.borrow_mut() = Some(OpenBatch { batch, values: Vec::new(), session: template.session, is_broken: false });
        Ok(())
    }

    async fn add(&self, mut open: OpenBatch, template: &Template, literals: &[Literal]) -> Result<(), DriverError> {
        let added = self.client.prepared(template).await.and_then(|statement| {
            open.values.push(bound(template, statement, literals)?);
            open.batch.append_statement(statement.clone());
            Ok(())
        });
        open.is_broken |= added.is_err();
        *self.batch.borrow_mut() = Some(open);
        added
    }

    async fn end(&self) -> Result<(), DriverError> {
        let not_sent = |why: &str| Err(DriverError::Statement(format!("not sent: {why}")));
        match self.batch.take() {
            None => not_sent("no batch has begun"),
            Some(open) if open.is_broken => not_sent("a statement of the batch could not be added to it"),
            Some(open) if open.values.is_empty() => Ok(()),
            Some(open) => {
                let sent = self.client.session(open.session).await?.batch(&open.batch, &open.values).await;
                sent.map(|_| ()).map_err(|error| errors::execution_error(&self.client.target.shown, error))
            }
        }
    }
}

impl Client {
    fn known(&mut self, template: StatementTemplate) -> Result<Template, DriverError> {
        let level = |word: &String| {
            consistency_of(&word.to_lowercase())
                .ok_or_else(|| DriverError::Data(format!("{}: there is no consistency level {word}", template.name)))
        };
        let consistency = template.consistency.as_ref().map(level).transpose()?;
        // Where the URL names a keyspace, all statements mean its tables, else those of the keyspace that they were recorded in.
        let keyspace = self.target.named_keyspace().map(str::to_owned).or(template.keyspace);
        let session = self.sessions.iter().position(|(known, _)| *known == keyspace).unwrap_or_else(|| {
            self.sessions.push((keyspace, OnceCell::new()));
            self.sessions.len() - 1
        });
        Ok(Template {
            positional: Positional::of_template(&template.statement, Quotes::Doubled),
            role: role_of(&template.statement),
            text: template.statement,
            consistency,
            session,
            prepared: OnceCell::new(),
        })
    }

    async fn session(&self, number: usize) -> Result<&Session, DriverError> {
        let (keyspace, session) = &self.sessions[number];
        let connections = self.target.server.connections.unwrap_or(MAX_CONNECTIONS);
        session.get_or_try_init(|| self.target.connect(connections, keyspace.as_deref())).await
    }

    async fn prepared<'a>(&self, template: &'a Template) -> Result<&'a PreparedStatement, DriverError> {
        template.prepared.get_or_try_init(|| self.prepare(template)).await
    }

    async fn prepare(&self, template: &Template) -> Result<PreparedStatement, DriverError> {
        let is_read = template.role == Role::Reads;
        if self.read_only && !is_read {
            return Err(DriverError::Statement(format!("not sent: {NO_READ}")));
        }
        let prepared = self.session(template.session).await?.prepare(template.positional.text.as_str()).await;
        let mut statement = prepared.map_err(|error| errors::unprepared(&self.target.shown, &error))?;
        statement.set_is_idempotent(is_read);
        // Columns are then not described again with every answer. Conditional writes describe theirs only there.
        statement.set_use_cached_result_metadata(is_read);
        // The URL's word for one of both counts before the recorded one.
        let of_target = if is_read { self.target.read_consistency } else { self.target.write_consistency };
        if let Some(consistency) = of_target.or(template.consistency) {
            statement.set_consistency(consistency);
        }
        if let Some(page_size) = self.target.page_size {
            statement.set_page_size(page_size);
        }
        Ok(statement)
    }

    async fn execute(&self, template: &Template, literals: &[Literal], rows: &mut Rows) -> Result<u64, DriverError> {
        let statement = self.prepared(template).await?;
        let cells = bound(template, statement, literals)?;
        let session = self.session(template.session).await?;
        let failed = |error| errors::execution_error(&self.target.shown, error);
        if template.role != Role::Reads || self.target.page_size.is_none() {
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

    /// Values as the server sent them. Of writes only conditional ones have rows: whether they were applied.
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
