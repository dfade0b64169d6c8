//! The driver contract on servers that the lab cannot start. Run by the name of this module, against the server that SENSORBENCH_TEST_URL names:
//! a CrateDB or a GreptimeDB, where the tests may create and drop the namespace `test_contract`.

use sensorbench_driver::contract::{Keeps, Subject, check};
use sensorbench_driver_postgresql::{Cratedb, Greptimedb, PostgresqlWire};
use tokio_postgres::{Client, Config, NoTls};

use crate::common::{runtime, schema};

/// The server as its owner reaches it, past the driver.
struct Server {
    url: String,
    config: Config,
}

impl Server {
    fn named(scheme: &str, database: &str) -> Self {
        let base = std::env::var("SENSORBENCH_TEST_URL").expect("SENSORBENCH_TEST_URL names the server");
        let (address, options) = base.split_once('?').unwrap_or((&base, ""));
        let mut config: Config = address.replacen(scheme, "postgresql", 1).parse().expect("SENSORBENCH_TEST_URL is a URL");
        config.dbname(database);
        Self { url: format!("{address}?namespace=test_contract&{options}").trim_end_matches('&').to_owned(), config }
    }

    fn as_owner<T>(&self, work: impl AsyncFnOnce(&Client) -> T) -> T {
        runtime().block_on(async {
            let (client, connection) = self.config.connect(NoTls).await.expect("the server of SENSORBENCH_TEST_URL answers");
            tokio::spawn(connection);
            work(&client).await
        })
    }

    fn run(&self, statements: &[&str]) {
        self.as_owner(async |client| {
            for statement in statements {
                client.batch_execute(statement).await.expect(statement);
            }
        });
    }

    fn texts(&self, query: &str) -> Vec<String> {
        let rows = self.as_owner(async |client| client.query(query, &[]).await.expect(query));
        rows.iter().map(|row| row.get(0)).collect()
    }
}

const ROWS: &str = "SELECT mark FROM test_contract.sensorbench ORDER BY mark";

#[test]
fn cratedb_keeps_the_contract() {
    let server = Server::named("cratedb", "doc");
    check(&Subject {
        database: &PostgresqlWire(&Cratedb),
        url: format!("{}&wait=refreshed", server.url),
        schema: schema(include_str!("cratedb.toml")),
        stores_nan: true,
        stores_infinity: true,
        keeps: Keeps { columns: &["id", "flag", "number", "value", "time", "name"], time_step_us: 1000, ..Keeps::default() },
        put_foreign: &|| {
            server.run(&[
                "CREATE TABLE test_contract.sensorbench (id TEXT, mark TEXT)",
                "INSERT INTO test_contract.sensorbench (id, mark) VALUES ('mark', 'mine'), ('other', 'too')",
                "REFRESH TABLE test_contract.sensorbench",
            ]);
        },
        foreign_rows: &|| server.texts(ROWS),
        remove_foreign: &|| server.run(&["DROP TABLE test_contract.sensorbench"]),
    });
}

#[test]
fn greptimedb_keeps_the_contract() {
    let server = Server::named("greptimedb", "public");
    check(&Subject {
        database: &PostgresqlWire(&Greptimedb),
        url: server.url.clone(),
        schema: schema(include_str!("greptimedb.toml")),
        stores_nan: true,
        stores_infinity: true,
        keeps: Keeps::default(),
        put_foreign: &|| {
            server.run(&[
                "CREATE DATABASE test_contract",
                "CREATE TABLE test_contract.sensorbench (mark STRING, ts TIMESTAMP(3) TIME INDEX)",
                "INSERT INTO test_contract.sensorbench (mark, ts) VALUES ('mine', 1), ('too', 2)",
            ]);
        },
        foreign_rows: &|| server.texts(ROWS),
        remove_foreign: &|| server.run(&["DROP DATABASE test_contract"]),
    });
}
