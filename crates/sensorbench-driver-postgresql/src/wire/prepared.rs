//! Operations prepared on a connection: parameters are bound, and answers read, in binary form.

use std::error::Error as StdError;

use bytes::BytesMut;
use postgres_types::{IsNull, ToSql, Type as ServerType};
use sensorbench_driver::{Column, ConversionError, DriverError, Request, Rows, Value, ValueRef};
use tokio_postgres::{Client, Error, Statement};

use super::errors;
use super::messages::{Execution, Fields, put_parse};
use super::target::Target;
use super::values::{Encoded, Form, Limits};
use crate::statement::OperationStatement;

/// An operation's statement with the forms of its parameters and columns.
pub struct Prepared {
    execution: Execution,
    /// For each placeholder the parameter that it stands for.
    parameters: Vec<BoundParameter>,
    columns: Vec<AnswerColumn>,
    limits: Limits,
    /// What says that a write can be read, where that is waited for.
    after_write: Option<Execution>,
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

impl Prepared {
    /// Has the library find out the types of a statement, and appends what prepares it on the same connection under a name of ours: the library does
    /// not expose its own. `number` distinguishes the operations of the connection.
    pub async fn of(
        client: &Client,
        target: &Target,
        operation: &OperationStatement,
        number: usize,
        preparing: &mut Vec<u8>,
    ) -> Result<Self, DriverError> {
        let refused = |error| errors::schema_error(&target.place, &operation.path, error);
        let text = target.fresh(&target.dialect.place(&target.namespace, &operation.positional.text));
        let (statement, declared) = prepare(client, target, operation, &text).await.map_err(refused)?;
        let parameters = bound_parameters(target, operation, &statement)?;
        let columns = answer_columns(target, operation, &statement)?;
        let name = format!("operation{number}");
        put_parse(preparing, &name, &text, &declared);
        let after_write = target.dialect.after_write(&target.url, &target.namespace, operation).map(|query| {
            let name = format!("after{number}");
            put_parse(preparing, &name, &query, &[]);
            Execution::of(&name, 0)
        });
        let execution = Execution::of(&name, parameters.len());
        Ok(Self { execution, parameters, columns, limits: target.dialect.limits(), after_write })
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

    /// Appends what executes the statement with values that were checked.
    #[inline]
    pub fn put(&self, request: &Request, bytes: &mut Vec<u8>) {
        let value = |parameter: &BoundParameter| {
            parameter.form.encode(request.parameters[parameter.place].as_ref()).unwrap_or(Encoded::Null)
        };
        self.execution.put(bytes, self.parameters.iter().map(value));
        if let Some(after_write) = &self.after_write {
            after_write.put(bytes, std::iter::empty());
        }
    }

    /// How often the server says that it is ready until the operation is over.
    #[inline]
    pub fn answers(&self) -> usize {
        if self.after_write.is_some() { 2 } else { 1 }
    }

    /// Reads a row of the answer.
    #[inline]
    pub fn read(&self, mut fields: Fields, rows: &mut Rows) -> Result<(), DriverError> {
        if fields.count != self.columns.len() {
            return Err(DriverError::Data(format!("a row has {} columns, not {}", fields.count, self.columns.len())));
        }
        for column in &self.columns {
            let unreadable = |problem: ConversionError| DriverError::Data(format!("column {}: {problem}", column.name));
            let value = match fields.next_field().map_err(unreadable)? {
                Some(bytes) => column.form.read(bytes).map_err(unreadable)?,
                None => ValueRef::Null,
            };
            rows.push(value);
        }
        rows.end_row();
        Ok(())
    }
}

/// Prepares a statement, with the types of its parameters if the dialect has names for them; with the types that were given. `QuestDB` is slower at a
/// filter for which it found out the type itself, and guesses some of them wrong. What is refused so is prepared without.
async fn prepare(
    client: &Client,
    target: &Target,
    operation: &OperationStatement,
    text: &str,
) -> Result<(Statement, Vec<u32>), Error> {
    let canonical = operation.positional.parameters.iter().map(|place| operation.parameters[*place].value_type);
    let declared: Vec<ServerType> = canonical.map_while(|canonical| target.dialect.declared(canonical)).collect();
    if !declared.is_empty()
        && let Ok(prepared) = client.prepare_typed(text, &declared).await
    {
        return Ok((prepared, declared.iter().map(ServerType::oid).collect()));
    }
    Ok((client.prepare(text).await?, Vec::new()))
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
