//! Operations prepared on a connection: parameters are bound, and answers read, in binary form.

use std::error::Error as StdError;
use std::pin::pin;

use bytes::BytesMut;
use futures::TryStreamExt;
use postgres_types::{FromSql, IsNull, ToSql, Type as ServerType};
use sensorbench_driver::{Column, DriverError, Rows, Value, ValueRef};
use tokio_postgres::{Client, Error, Row, Statement};

use super::errors;
use super::target::Target;
use super::values::{Encoded, Form, Limits};
use crate::statement::OperationStatement;

/// An operation's statement with the forms of its parameters and columns.
pub struct Prepared {
    statement: Statement,
    /// For each placeholder the parameter that it stands for.
    parameters: Vec<BoundParameter>,
    columns: Vec<AnswerColumn>,
    limits: Limits,
    /// What says that a write can be read, where that is waited for.
    after_write: Option<Statement>,
}

struct BoundParameter {
    name: String,
    /// Its place among the operation's parameters.
    place: usize,
    form: Form,
}

struct AnswerColumn {
    name: String,
    form: Form,
}

/// How an answer did not come.
pub enum Failure {
    /// The server or the library says so.
    Library(Error),
    /// It came and could not be read.
    Data(DriverError),
}

impl Prepared {
    pub async fn of(client: &Client, target: &Target, operation: &OperationStatement) -> Result<Self, DriverError> {
        let refused = |error| errors::schema_error(&target.place, &operation.path, error);
        let text = target.fresh(&target.dialect.place(&target.namespace, &operation.positional.text));
        let statement = prepare(client, target, operation, &text).await.map_err(refused)?;
        let after_write = match target.dialect.after_write(&target.url, &target.namespace, operation) {
            Some(query) => Some(client.prepare(&query).await.map_err(refused)?),
            None => None,
        };
        let parameters = bound_parameters(target, operation, &statement)?;
        let columns = answer_columns(target, operation, &statement)?;
        Ok(Self { statement, parameters, columns, limits: target.dialect.limits(), after_write })
    }

    /// Refuses values that the statement's parameters cannot hold.
    #[inline]
    pub fn check(&self, values: &[Value]) -> Result<(), DriverError> {
        for parameter in &self.parameters {
            let value = values[parameter.place].as_ref();
            let encoded = parameter.form.encode(value).and_then(|_| self.limits.check(parameter.form, value));
            encoded.map_err(|refused| DriverError::Data(format!("parameter {}: {refused}", parameter.name)))?;
        }
        Ok(())
    }

    /// Executes the statement and reads its whole answer.
    #[inline]
    pub async fn answer(&self, client: &Client, values: &[Value], rows: &mut Rows) -> Result<(), Failure> {
        let bound =
            self.parameters.iter().map(|parameter| Bound { value: values[parameter.place].as_ref(), form: parameter.form });
        let mut answer = pin!(client.query_raw(&self.statement, bound).await.map_err(Failure::Library)?);
        let mut read = Ok(());
        // What follows a row that cannot be read is awaited, too: only then the connection is free again.
        while let Some(row) = answer.try_next().await.map_err(Failure::Library)? {
            read = read.and_then(|()| self.read(&row, rows));
        }
        if let Some(query) = &self.after_write {
            client.query(query, &[]).await.map_err(Failure::Library)?;
        }
        read.map_err(Failure::Data)
    }

    #[inline]
    fn read(&self, row: &Row, rows: &mut Rows) -> Result<(), DriverError> {
        for (number, column) in self.columns.iter().enumerate() {
            let unreadable = |message: &dyn std::fmt::Display| DriverError::Data(format!("column {}: {message}", column.name));
            let value = match row.try_get(number).map_err(|error| unreadable(&error))? {
                Some(Raw(bytes)) => column.form.read(bytes).map_err(|refused| unreadable(&refused))?,
                None => ValueRef::Null,
            };
            rows.push(value);
        }
        rows.end_row();
        Ok(())
    }
}

/// Prepares a statement, with the types of its parameters if the dialect has names for them. `QuestDB` is slower at a filter for which it found
/// out the type itself, and guesses some of them wrong. What is refused so is prepared without.
async fn prepare(client: &Client, target: &Target, operation: &OperationStatement, text: &str) -> Result<Statement, Error> {
    let canonical = operation.positional.parameters.iter().map(|place| operation.parameters[*place].value_type);
    let declared: Vec<ServerType> = canonical.map_while(|canonical| target.dialect.declared(canonical)).collect();
    if !declared.is_empty()
        && let Ok(prepared) = client.prepare_typed(text, &declared).await
    {
        return Ok(prepared);
    }
    client.prepare(text).await
}

fn bound_parameters(
    target: &Target,
    operation: &OperationStatement,
    statement: &Statement,
) -> Result<Vec<BoundParameter>, DriverError> {
    let bound = |(place, found): (&usize, &ServerType)| {
        let parameter = &operation.parameters[*place];
        let form = Form::of(parameter.value_type, found).ok_or_else(|| {
            let (_, cast) = target.dialect.type_words(parameter.value_type);
            operation.error(format!(
                "{product} takes :{name} for {found}, but it is declared as {}; write :{name}::{cast}",
                parameter.value_type.name(),
                product = target.dialect.product(),
                name = parameter.name
            ))
        })?;
        Ok(BoundParameter { name: parameter.name.clone(), place: *place, form })
    };
    operation.positional.parameters.iter().zip(statement.params()).map(bound).collect()
}

fn answer_columns(
    target: &Target,
    operation: &OperationStatement,
    statement: &Statement,
) -> Result<Vec<AnswerColumn>, DriverError> {
    let found = statement.columns();
    if found.len() != operation.columns.len() {
        let expected: Vec<_> = operation.columns.iter().map(|column| column.name.as_str()).collect();
        return Err(operation.error(format!(
            "the statement returns {} columns; the operation has {} ({})",
            found.len(),
            expected.len(),
            expected.join(", ")
        )));
    }
    let column = |(column, found): (&Column, &tokio_postgres::Column)| {
        let form = Form::of_answer(column.value_type, column.computed, found.type_()).ok_or_else(|| {
            let (expected, cast) = target.dialect.type_words(column.value_type);
            operation.error(format!(
                "column {} should be {} ({expected}), but {} returns {}; cast it with ::{cast}",
                column.name,
                column.value_type.name(),
                target.dialect.product(),
                found.type_()
            ))
        })?;
        Ok(AnswerColumn { name: column.name.clone(), form })
    };
    operation.columns.iter().zip(found).map(column).collect()
}

/// A parameter's value, for the library.
#[derive(Debug)]
pub struct Bound<'a> {
    pub value: ValueRef<'a>,
    pub form: Form,
}

impl ToSql for Bound<'_> {
    #[inline]
    fn to_sql(&self, _: &ServerType, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        let encoded = self.form.encode(self.value)?;
        encoded.put(out);
        Ok(if matches!(encoded, Encoded::Null) { IsNull::Yes } else { IsNull::No })
    }

    /// The form was chosen for the type when the statement was prepared.
    fn accepts(_: &ServerType) -> bool {
        true
    }

    #[inline]
    fn to_sql_checked(&self, server: &ServerType, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        self.to_sql(server, out)
    }
}

/// A value of an answer where it lies in the library's buffer.
struct Raw<'a>(&'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    #[inline]
    fn from_sql(_: &ServerType, bytes: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Raw(bytes))
    }

    /// The form was chosen for the type when the statement was prepared.
    fn accepts(_: &ServerType) -> bool {
        true
    }
}
