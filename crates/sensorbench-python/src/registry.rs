//! Which databases are built in. Adding one is one feature in Cargo.toml and one line here.

use pyo3::prelude::*;
use sensorbench_driver::{Database, NullDatabase, Schema};
use serde_json::json;

use crate::errors::{UsageError, driver_error, parsed, written};

const DATABASES: &[&dyn Database] = &[
    &NullDatabase,
    #[cfg(feature = "sqlite")]
    &sensorbench_driver_sqlite::SqliteDatabase,
    #[cfg(feature = "fjall")]
    &sensorbench_driver_fjall::FjallDatabase,
    #[cfg(feature = "cassandra")]
    &sensorbench_driver_cassandra::CassandraDatabase,
    #[cfg(feature = "hbase")]
    &sensorbench_driver_hbase::HbaseDatabase,
    #[cfg(feature = "mongodb")]
    &sensorbench_driver_mongodb::MongodbDatabase,
    #[cfg(feature = "mongodb")]
    &sensorbench_driver_mongodb::FerretdbDatabase,
    #[cfg(feature = "mongodb")]
    &sensorbench_driver_mongodb::FerretdbPostgresqlDatabase,
    #[cfg(feature = "mysql")]
    &sensorbench_driver_mysql::MysqlWire(&sensorbench_driver_mysql::Mysql),
    #[cfg(feature = "mysql")]
    &sensorbench_driver_mysql::MysqlWire(&sensorbench_driver_mysql::Mariadb),
    #[cfg(feature = "odbc")]
    &sensorbench_driver_odbc::OdbcDatabase,
    #[cfg(feature = "postgresql")]
    &sensorbench_driver_postgresql::PostgresqlWire(&sensorbench_driver_postgresql::Postgresql),
    #[cfg(feature = "redis")]
    &sensorbench_driver_redis::RedisDatabase,
    #[cfg(feature = "redis")]
    &sensorbench_driver_redis::RedisClusterDatabase,
];

pub fn database(name: &str) -> PyResult<&'static dyn Database> {
    DATABASES.iter().copied().find(|database| database.name() == name).ok_or_else(|| {
        let known: Vec<_> = DATABASES.iter().map(|database| database.name()).collect();
        UsageError::new_err(format!("unknown database {name:?}; expected one of {}", known.join(", ")))
    })
}

#[pyfunction]
pub fn databases() -> String {
    let described = |database: &&dyn Database| {
        json!({
            "name": database.name(),
            "dialect": database.dialect(),
            "summary": database.summary(),
            "embedded": database.embedded(),
            "in_memory": database.in_memory(),
            "relational": database.relational(),
            "bulk_load": database.bulk_load(),
        })
    };
    written(&DATABASES.iter().map(described).collect::<Vec<_>>())
}

#[pyfunction]
pub fn check_schema(name: &str, schema: &str) -> PyResult<()> {
    let schema: Schema = parsed(schema)?;
    database(name)?.check(&schema).map_err(driver_error)
}

#[pyfunction]
pub fn no_op_schema(name: &str) -> PyResult<Option<String>> {
    Ok(database(name)?.no_op().map(|schema| written(&schema)))
}
