//! Recorded statements, executed again: one connection for each session, literals bound in text form.

use std::cell::RefCell;
use std::collections::HashMap;
use std::error::Error as StdError;
use std::pin::pin;
use std::sync::Arc;

use bytes::BytesMut;
use futures::TryStreamExt;
use futures::future::LocalBoxFuture;
use postgres_types::{Format, FromSql, IsNull, ToSql, Type as ServerType};
use sensorbench_driver::{
    DriverError, Literal, ReplayConnection, ReplayConnector, ReplayRequest, Rows, StatementTemplate, ValueRef, WriteCheck,
    check_literals,
};
use serde_json::Value as Json;
use tokio_postgres::{Client, Error, Row, Statement};

use super::errors;
use super::opener::Opener;
use super::target::{Place, Target};

/// The server then refuses what changes data, whatever a statement looks like.
const READ_ONLY: &str = "-c default_transaction_read_only=on";

/// Makes connections that see the tables that the recorded ones saw: those of the database's own search path, or of the namespace
/// where the URL names one.
pub struct Replayer {
    target: Arc<Target>,
    request: Arc<ReplayRequest>,
    opener: Opener,
}

impl Replayer {
    pub fn of(target: Arc<Target>, request: ReplayRequest) -> Result<Self, DriverError> {
        let opener = Opener::start(target.clone(), if request.read_only { READ_ONLY } else { "" })?;
        Ok(Self { target, request: Arc::new(request), opener })
    }
}

impl ReplayConnector for Replayer {
    fn connect(&self) -> LocalBoxFuture<'_, Result<Box<dyn ReplayConnection>, DriverError>> {
        Box::pin(async move {
            let (client, place) = self.opener.open().await?;
            let (target, request) = (self.target.clone(), self.request.clone());
            let session = Session { target, request, client, place, prepared: RefCell::default() };
            Ok(Box::new(session) as Box<dyn ReplayConnection>)
        })
    }
}

struct Session {
    target: Arc<Target>,
    request: Arc<ReplayRequest>,
    client: Client,
    place: Place,
    /// Statements of the templates that the session has used.
    prepared: RefCell<HashMap<usize, Statement>>,
}

impl ReplayConnection for Session {
    fn execute<'a>(
        &'a self,
        template: usize,
        literals: &'a [Literal],
        rows: &'a mut Rows,
    ) -> LocalBoxFuture<'a, Result<u64, DriverError>> {
        Box::pin(async move {
            let statement = self.prepared(template).await?;
            check_literals(statement.params().len(), literals)?;
            let answered = self.answered(&statement, literals, rows).await;
            answered.map_err(|error| errors::statement_error(&self.target.place, error))
        })
    }

    fn cancel(&self) -> LocalBoxFuture<'_, ()> {
        Box::pin(self.target.cancel_at(self.client.cancel_token(), &self.place))
    }

    fn is_lost(&self) -> bool {
        self.client.is_closed()
    }
}

impl Session {
    async fn prepared(&self, template: usize) -> Result<Statement, DriverError> {
        if let Some(statement) = self.prepared.borrow().get(&template) {
            return Ok(statement.clone());
        }
        let prepared = self.client.prepare(&self.request.templates[template].statement).await;
        let statement = prepared.map_err(|error| errors::statement_error(&self.target.place, error))?;
        self.prepared.borrow_mut().insert(template, statement.clone());
        Ok(statement)
    }

    async fn answered(&self, statement: &Statement, literals: &[Literal], rows: &mut Rows) -> Result<u64, Error> {
        let bound = literals.iter().map(|literal| Bound(literal.text()));
        let mut answer = pin!(self.client.query_raw(statement, bound).await?);
        let columns = statement.columns().len();
        while let Some(row) = answer.try_next().await? {
            if !self.request.keeps_answers {
                rows.count_row();
                continue;
            }
            for column in 0..columns {
                let value: Option<Raw> = row.try_get(column)?;
                rows.push(value.map_or(ValueRef::Null, |Raw(bytes)| ValueRef::Bytes(bytes)));
            }
            rows.end_row();
        }
        Ok(if columns > 0 { rows.len() } else { answer.rows_affected().unwrap_or(0) })
    }
}

/// A literal in the text form of whichever type the server takes it for.
#[derive(Debug)]
struct Bound<'a>(Option<&'a str>);

impl ToSql for Bound<'_> {
    fn to_sql(&self, _: &ServerType, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        let Some(text) = self.0 else { return Ok(IsNull::Yes) };
        out.extend_from_slice(text.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &ServerType) -> bool {
        true
    }

    fn to_sql_checked(&self, server: &ServerType, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        self.to_sql(server, out)
    }

    fn encode_format(&self, _: &ServerType) -> Format {
        Format::Text
    }
}

/// A value of an answer as the server sent it.
struct Raw<'a>(&'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &ServerType, bytes: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Raw(bytes))
    }

    fn accepts(_: &ServerType) -> bool {
        true
    }
}

/// Has the server make plans of writes, without executing them, and checks which tables they change.
pub async fn check_writes(
    client: &Client,
    namespace: &str,
    templates: &[StatementTemplate],
    numbers: &[usize],
) -> Result<Vec<WriteCheck>, Error> {
    let problem = |planned: Result<Json, Error>| match planned {
        Ok(plan) => match written(&plan) {
            tables if tables.is_empty() => Some("its plan does not say which table it changes".to_owned()),
            tables => elsewhere(&tables, namespace),
        },
        Err(error) => Some(format!("the server makes no plan for it: {}", errors::describe(&error))),
    };
    check_plans(client, templates, numbers, problem).await
}

/// Checks in the same way what statements change that seem to read. What has no plan changes no table.
pub async fn check_reads(
    client: &Client,
    namespace: &str,
    templates: &[StatementTemplate],
    numbers: &[usize],
) -> Result<Vec<WriteCheck>, Error> {
    let problem = |planned: Result<Json, Error>| planned.map_or(None, |plan| elsewhere(&written(&plan), namespace));
    check_plans(client, templates, numbers, problem).await
}

async fn check_plans(
    client: &Client,
    templates: &[StatementTemplate],
    numbers: &[usize],
    problem: impl Fn(Result<Json, Error>) -> Option<String>,
) -> Result<Vec<WriteCheck>, Error> {
    let mut checks = Vec::with_capacity(numbers.len());
    for template in numbers {
        let planned = match plan(client, &templates[*template]).await {
            Err(error) if errors::is_loss(&error) => return Err(error),
            planned => planned,
        };
        checks.push(WriteCheck { template: *template, problem: problem(planned) });
    }
    Ok(checks)
}

/// The plan that the server makes for a template; null where it cannot be read. As a prepared statement: the server then takes one
/// statement alone, however many the text may have.
async fn plan(client: &Client, template: &StatementTemplate) -> Result<Json, Error> {
    let explain = format!("EXPLAIN (GENERIC_PLAN, VERBOSE, FORMAT JSON) {}", template.statement);
    let statement = client.prepare(&explain).await?;
    // A generic plan does not look at values.
    let nulls = statement.params().iter().map(|_| Bound(None));
    let rows: Vec<Row> = client.query_raw(&statement, nulls).await?.try_collect().await?;
    let shown = rows.first().and_then(|row| row.try_get(0).ok());
    Ok(shown.and_then(|Raw(bytes)| serde_json::from_slice(bytes).ok()).unwrap_or(Json::Null))
}

/// A table that a plan changes: its schema and name.
type WrittenTable = (String, String);

fn written(plan: &Json) -> Vec<WrittenTable> {
    let mut tables = Vec::new();
    collect_written(plan, &mut tables);
    tables
}

/// What is wrong where one of some tables is not of the namespace.
fn elsewhere(tables: &[WrittenTable], namespace: &str) -> Option<String> {
    let (schema, name) = tables.iter().find(|(schema, _)| schema != namespace)?;
    Some(format!("it changes {schema}.{name}, which is outside the schema {namespace}"))
}

/// Schema and name of each table that a node of the plan changes.
fn collect_written(node: &Json, found: &mut Vec<WrittenTable>) {
    match node {
        Json::Array(items) => items.iter().for_each(|item| collect_written(item, found)),
        Json::Object(keys) => {
            let text = |key: &str| keys.get(key).and_then(Json::as_str).unwrap_or_default().to_owned();
            if text("Node Type") == "ModifyTable" {
                found.push((text("Schema"), text("Relation Name")));
            }
            keys.values().for_each(|value| collect_written(value, found));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan_of_change(schema: &str) -> Json {
        let change = json!({"Node Type": "ModifyTable", "Operation": "Update", "Schema": schema, "Relation Name": "readings"});
        json!([{"Plan": {"Node Type": "CTE Scan", "Plans": [change]}}])
    }

    #[test]
    fn a_plan_says_which_tables_it_changes() {
        assert_eq!(elsewhere(&written(&plan_of_change("mine")), "mine"), None);
        let problem = elsewhere(&written(&plan_of_change("public")), "mine").unwrap();
        assert!(problem.contains("public.readings") && problem.contains("schema mine"), "{problem}");
        assert!(written(&json!([{"Plan": {"Node Type": "Seq Scan", "Schema": "mine"}}])).is_empty());
        assert!(written(&Json::Null).is_empty());
    }
}
