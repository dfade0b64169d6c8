//! The drivers of databases that speak HTTP keep the driver contract, and their servers do what this project says of them.

mod influxdb;
mod server;
mod victoriametrics;

#[test]
fn the_server_keeps_the_contract() {
    match server::scheme().as_str() {
        "influxdb" => influxdb::keeps_the_contract(),
        "victoriametrics" => victoriametrics::keeps_the_contract(),
        other => panic!("no server is called {other}"),
    }
}

#[test]
fn what_the_server_does_with_writes_is_as_stated() {
    match server::scheme().as_str() {
        "influxdb" => influxdb::does_as_stated(),
        "victoriametrics" => victoriametrics::does_as_stated(),
        other => panic!("no server is called {other}"),
    }
}
