//! Which databases are built in. Adding one is one feature in Cargo.toml and one line here.

use pyo3::prelude::*;
use sensorbench_driver::{About, Database, NullDatabase, Schema};
use serde_json::json;

use crate::errors::{UsageError, driver_error, parsed, written};

const DATABASES: &[&dyn Database] = &[
    &NullDatabase,
    #[cfg(feature = "sqlite")]
    &sensorbench_driver_sqlite::SqliteDatabase,
    #[cfg(feature = "fjall")]
    &sensorbench_driver_fjall::FjallDatabase,
    #[cfg(feature = "duckdb")]
    &sensorbench_driver_duckdb::DuckdbDatabase { find_library: crate::duckdb_library::find },
    #[cfg(feature = "chdb")]
    &sensorbench_driver_chdb::ChdbDatabase { find_library: crate::chdb_library::find },
    #[cfg(feature = "cassandra")]
    &sensorbench_driver_cassandra::CassandraDatabase,
    #[cfg(feature = "hbase")]
    &sensorbench_driver_hbase::HbaseDatabase,
    #[cfg(feature = "http")]
    &sensorbench_driver_http::INFLUXDB,
    #[cfg(feature = "http")]
    &sensorbench_driver_http::INFLUXDB2,
    #[cfg(feature = "http")]
    &sensorbench_driver_http::INFLUXDB2_FLUX,
    #[cfg(feature = "http")]
    &sensorbench_driver_http::INFLUXDB3,
    #[cfg(feature = "http")]
    &sensorbench_driver_http::VICTORIAMETRICS,
    #[cfg(feature = "http")]
    &sensorbench_driver_http::PROMETHEUS,
    #[cfg(feature = "http")]
    &sensorbench_driver_http::OPENTSDB,
    #[cfg(feature = "http")]
    &sensorbench_driver_http::CLICKHOUSE,
    #[cfg(feature = "http")]
    &sensorbench_driver_http::IOTDB,
    #[cfg(feature = "mongodb")]
    &sensorbench_driver_mongodb::MongodbWire(sensorbench_driver_mongodb::MONGODB),
    #[cfg(feature = "mongodb")]
    &sensorbench_driver_mongodb::MongodbWire(sensorbench_driver_mongodb::FERRETDB),
    #[cfg(feature = "mongodb")]
    &sensorbench_driver_mongodb::MongodbWire(sensorbench_driver_mongodb::FERRETDB_POSTGRESQL),
    #[cfg(feature = "mysql")]
    &sensorbench_driver_mysql::MysqlWire(&sensorbench_driver_mysql::Mysql),
    #[cfg(feature = "mysql")]
    &sensorbench_driver_mysql::MysqlWire(&sensorbench_driver_mysql::Mariadb),
    #[cfg(feature = "odbc")]
    &sensorbench_driver_odbc::OdbcDatabase,
    #[cfg(feature = "postgresql")]
    &sensorbench_driver_postgresql::PostgresqlWire(&sensorbench_driver_postgresql::Postgresql),
    #[cfg(feature = "postgresql")]
    &sensorbench_driver_postgresql::PostgresqlWire(&sensorbench_driver_postgresql::Questdb),
    #[cfg(feature = "postgresql")]
    &sensorbench_driver_postgresql::PostgresqlWire(&sensorbench_driver_postgresql::Cratedb),
    #[cfg(feature = "postgresql")]
    &sensorbench_driver_postgresql::PostgresqlWire(&sensorbench_driver_postgresql::Greptimedb),
    #[cfg(feature = "postgresql")]
    &sensorbench_driver_postgresql::PostgresqlWire(&sensorbench_driver_postgresql::Timescaledb),
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
        let About { name, schemas, summary, embedded, in_memory, many_processes, relational, bulk_load, replays } =
            database.about();
        json!({
            "name": name,
            "dialect": schemas,
            "summary": summary,
            "embedded": embedded,
            "in_memory": in_memory,
            "many_processes": many_processes,
            "relational": relational,
            "bulk_load": bulk_load,
            "replays": replays,
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
