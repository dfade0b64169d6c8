//! What the server's catalogue says of a table.

use scylla::client::session::Session;
use sensorbench_driver::DriverError;

use crate::errors;
use crate::namespace::of_catalogue;
use crate::target::Target;

const COLUMNS: &str = "\
    SELECT column_name, kind, position, type FROM system_schema.columns WHERE keyspace_name = ? AND table_name = ?";

/// A column: `kind` is its part in the key, if it has one, and `position` its place there.
pub struct CatalogueColumn {
    pub name: String,
    pub kind: String,
    pub position: i32,
    pub of_type: String,
}

/// The columns of a table in the namespace; none if there is no such table.
pub async fn columns(session: &Session, target: &Target, table: &str) -> Result<Vec<CatalogueColumn>, DriverError> {
    let unreadable = |error: String| DriverError::Data(format!("table {table}: its columns cannot be read: {error}"));
    let found = session.query_unpaged(of_catalogue(COLUMNS), (&target.server.namespace, table)).await;
    let found = found.map_err(|error| errors::execution_error(&target.shown, error))?;
    let found = found.into_rows_result().map_err(|error| unreadable(error.to_string()))?;
    let rows = found.rows::<(String, String, i32, String)>().map_err(|error| unreadable(error.to_string()))?;
    let column = |row: Result<(String, String, i32, String), _>| {
        row.map(|(name, kind, position, of_type)| CatalogueColumn { name, kind, position, of_type })
    };
    rows.map(column)
        .collect::<Result<_, _>>()
        .map_err(|error: scylla::errors::DeserializationError| unreadable(error.to_string()))
}
