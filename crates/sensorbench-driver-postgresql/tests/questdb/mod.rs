//! QuestDB keeps the driver contract, and what else is promised of its dialect. Run by the name of this module, against a QuestDB.

use sensorbench_driver::contract::{Subject, check};
use sensorbench_driver_postgresql::{PostgresqlWire, Questdb};
use tokio_postgres::{Client, Config, NoTls};

use crate::common::{runtime, schema};

const QUESTDB: PostgresqlWire = PostgresqlWire(&Questdb);

/// The server that SENSORBENCH_TEST_URL names, and a namespace that one test has there.
struct Server {
    url: String,
    namespace: &'static str,
    config: Config,
}

impl Server {
    fn with_namespace(namespace: &'static str) -> Self {
        let base = std::env::var("SENSORBENCH_TEST_URL").expect("SENSORBENCH_TEST_URL names the server");
        let config = base.replacen("questdb://", "postgresql://", 1).split('?').next().unwrap_or_default().parse();
        let mut config: Config = config.expect("SENSORBENCH_TEST_URL is a URL");
        config.dbname("qdb");
        let joint = if base.contains('?') { '&' } else { '?' };
        let server = Self { url: format!("{base}{joint}namespace={namespace}"), namespace, config };
        server.remove_tables();
        server
    }

    /// Does something as somebody who is not sensorbench.
    fn as_somebody<T>(&self, work: impl AsyncFnOnce(&Client) -> T) -> T {
        runtime().block_on(async {
            let (client, connection) = self.config.connect(NoTls).await.expect("the server of SENSORBENCH_TEST_URL answers");
            tokio::spawn(connection);
            work(&client).await
        })
    }

    fn run(&self, statement: &str) {
        self.as_somebody(async |client| client.batch_execute(statement).await.expect(statement));
    }

    fn texts(&self, query: &str) -> Vec<String> {
        let rows = self.as_somebody(async |client| client.query(query, &[]).await.expect(query));
        rows.iter().map(|row| row.get(0)).collect()
    }

    fn remove_tables(&self) {
        let names = self.texts("SELECT table_name FROM tables()");
        let prefix = format!("{}.", self.namespace);
        for name in names.iter().filter(|name| name.starts_with(&prefix)) {
            self.run(&format!("DROP TABLE \"{name}\""));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.remove_tables();
        }
    }
}

#[test]
fn keeps_the_contract() {
    let server = Server::with_namespace("test_contract");
    let foreign = "\"test_contract.sensorbench\"";
    check(&Subject {
        database: &QUESTDB,
        url: server.url.clone(),
        schema: schema(include_str!("contract.toml")),
        stores_nan: false,
        stores_infinity: false,
        nulls_apart: false,
        put_foreign: &|| {
            server.run(&format!("CREATE TABLE {foreign} (mark VARCHAR)"));
            server.run(&format!("INSERT INTO {foreign} VALUES ('mine'), ('too')"));
        },
        foreign_rows: &|| server.texts(&format!("SELECT mark FROM {foreign} ORDER BY 1")),
        remove_foreign: &|| server.run(&format!("DROP TABLE {foreign}")),
    });
}
