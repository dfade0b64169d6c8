//! Operations prepared in a session: parameters are bound, and answers read, in binary form.

use scylla::client::session::Session;
use scylla::deserialize::row::ColumnIterator;
use scylla::errors::ExecutionError;
use scylla::frame::response::result::ColumnSpec;
use scylla::response::query_result::QueryResult;
use scylla::response::{PagingState, PagingStateResponse};
use scylla::serialize::SerializationError;
use scylla::serialize::row::{RowSerializationContext, SerializeRow};
use scylla::serialize::writers::RowWriter;
use scylla::statement::prepared::PreparedStatement;
use sensorbench_driver::{Column, DriverError, Request, Rows, Value, ValueRef};

use crate::errors;
use crate::schema::OperationStatement;
use crate::target::Target;
use crate::wire::{Form, server_types, type_name};

/// An operation's statement with the forms of its parameters and columns.
pub struct Prepared {
    statement: PreparedStatement,
    is_paged: bool,
    /// For each placeholder the parameter that it stands for.
    parameters: Vec<BoundParameter>,
    columns: Vec<(String, Form)>,
}

struct BoundParameter {
    name: String,
    /// Its place among the operation's parameters.
    place: usize,
    form: Form,
}

impl Prepared {
    pub async fn of(session: &Session, target: &Target, operation: &OperationStatement) -> Result<Self, DriverError> {
        let prepared = session.prepare(operation.positional.text.as_str()).await;
        let mut statement = prepared.map_err(|error| errors::prepare_error(&target.shown, &operation.path, &error))?;
        let columns = answer_columns(operation, &statement)?;
        statement.set_is_idempotent(!columns.is_empty());
        // Columns are then not described again with every answer. Conditional writes describe theirs only there.
        statement.set_use_cached_result_metadata(!columns.is_empty());
        // What has no columns writes. The target's word for one of both counts before the schema's.
        let of_target = if columns.is_empty() { target.write_consistency } else { target.read_consistency };
        if let Some(consistency) = of_target.or(operation.consistency) {
            statement.set_consistency(consistency);
        }
        let page_size = operation.page_size.or(target.page_size).filter(|size| *size > 0);
        if let Some(page_size) = page_size {
            statement.set_page_size(page_size);
        }
        let parameters = bound_parameters(operation, &statement)?;
        Ok(Self { statement, is_paged: page_size.is_some() && !columns.is_empty(), parameters, columns })
    }

    /// Executes the statement and drains its answer, page by page.
    pub async fn execute(&self, session: &Session, server: &str, request: &mut Request) -> Result<(), DriverError> {
        let failed = |error: ExecutionError| errors::execution_error(server, error);
        let values = Bound { parameters: &self.parameters, values: &request.parameters };
        if !self.is_paged {
            let answer = session.execute_unpaged(&self.statement, values).await.map_err(failed)?;
            return self.read(answer, &mut request.rows);
        }
        let mut page = PagingState::start();
        loop {
            let (answer, next) = session.execute_single_page(&self.statement, &values, page).await.map_err(failed)?;
            self.read(answer, &mut request.rows)?;
            match next {
                PagingStateResponse::HasMorePages { state } => page = state,
                PagingStateResponse::NoMorePages => return Ok(()),
            }
        }
    }

    fn read(&self, answer: QueryResult, into: &mut Rows) -> Result<(), DriverError> {
        if self.columns.is_empty() {
            return Ok(());
        }
        let unreadable = |error: &dyn std::fmt::Display| DriverError::Data(format!("an answer cannot be read: {error}"));
        let answer = answer.into_rows_result().map_err(|error| unreadable(&error))?;
        for row in answer.rows::<ColumnIterator>().map_err(|error| unreadable(&error))? {
            for ((name, form), column) in self.columns.iter().zip(row.map_err(|error| unreadable(&error))?) {
                let column = column.map_err(|error| unreadable(&error))?;
                let value = match column.slice {
                    None => ValueRef::Null,
                    Some(slice) => form.read(slice.as_slice()).map_err(|refused| unreadable(&refused.at("column", name)))?,
                };
                into.push(value);
            }
            into.end_row();
        }
        Ok(())
    }
}

/// The values of a request, in the order of the placeholders.
struct Bound<'a> {
    parameters: &'a [BoundParameter],
    values: &'a [Value],
}

impl SerializeRow for Bound<'_> {
    #[inline]
    fn serialize(&self, _: &RowSerializationContext, writer: &mut RowWriter) -> Result<(), SerializationError> {
        for parameter in self.parameters {
            let value = self.values[parameter.place].as_ref();
            let written = parameter.form.write(value, writer);
            written.map_err(|refused| SerializationError::new(refused.at("parameter", &parameter.name)))?;
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.parameters.is_empty()
    }
}

fn bound_parameters(operation: &OperationStatement, statement: &PreparedStatement) -> Result<Vec<BoundParameter>, DriverError> {
    let bound = |(place, found): (&usize, &ColumnSpec)| {
        let declared = &operation.parameters[*place];
        let form = Form::of(declared.value_type, found.typ()).ok_or_else(|| {
            operation.error(format!(
                "Cassandra takes :{} for {}, but it is declared as {}; compare it with a column of type {}",
                declared.name,
                type_name(found.typ()),
                declared.value_type.name(),
                server_types(declared.value_type)
            ))
        })?;
        Ok(BoundParameter { name: declared.name.clone(), place: *place, form })
    };
    operation.positional.parameters.iter().zip(statement.get_variable_col_specs().iter()).map(bound).collect()
}

fn answer_columns(operation: &OperationStatement, statement: &PreparedStatement) -> Result<Vec<(String, Form)>, DriverError> {
    let found = statement.get_current_result_set_col_specs();
    let found = found.get();
    if operation.columns.is_empty() {
        return Ok(Vec::new());
    }
    if found.len() != operation.columns.len() {
        return Err(operation.error(format!(
            "it returns {} columns; the operation has {}",
            found.len(),
            operation.columns.len()
        )));
    }
    let column = |(declared, found): (&Column, &ColumnSpec)| {
        let form = Form::of(declared.value_type, found.typ()).ok_or_else(|| {
            operation.error(format!(
                "column {} should be {} ({}), but Cassandra returns {}",
                declared.name,
                declared.value_type.name(),
                server_types(declared.value_type),
                type_name(found.typ())
            ))
        })?;
        Ok((declared.name.clone(), form))
    };
    operation.columns.iter().zip(found.iter()).map(column).collect()
}
