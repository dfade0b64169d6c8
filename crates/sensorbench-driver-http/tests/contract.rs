//! The drivers of databases that speak HTTP keep the driver contract, and their servers do what this project says of them.

mod clickhouse;
mod influxdb;
mod influxdb2;
mod influxdb3;
mod iotdb;
mod opentsdb;
mod points;
mod prometheus;
mod server;
mod victoriametrics;

#[test]
fn the_server_keeps_the_contract() {
    match server::scheme().as_str() {
        "influxdb" => influxdb::keeps_the_contract(),
        "influxdb2" => influxdb2::keeps_the_contract(),
        "influxdb3" => influxdb3::keeps_the_contract(),
        "victoriametrics" => victoriametrics::keeps_the_contract(),
        "prometheus" => prometheus::keeps_the_contract(),
        "opentsdb" => opentsdb::keeps_the_contract(),
        "clickhouse" => clickhouse::keeps_the_contract(),
        "iotdb" => iotdb::keeps_the_contract(),
        other => panic!("no server is called {other}"),
    }
}

#[test]
fn what_the_server_does_with_writes_is_as_stated() {
    match server::scheme().as_str() {
        "influxdb" => influxdb::does_as_stated(),
        "influxdb2" => influxdb2::does_as_stated(),
        // Nothing but what its documentation says is stated of it.
        "influxdb3" => {}
        "victoriametrics" => victoriametrics::does_as_stated(),
        "prometheus" => prometheus::does_as_stated(),
        "opentsdb" => opentsdb::does_as_stated(),
        "clickhouse" => clickhouse::does_as_stated(),
        "iotdb" => iotdb::does_as_stated(),
        other => panic!("no server is called {other}"),
    }
}
