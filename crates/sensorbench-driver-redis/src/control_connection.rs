//! Connections for control, with the `redis` library.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, FromRedisValue, RedisConnectionInfo, RedisError};
use sensorbench_driver::DriverError;

use crate::target::{Address, Target};

/// How long a server may take to answer a command of control.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Connects to one server.
pub async fn connect(target: &Target, address: &Address) -> Result<MultiplexedConnection, DriverError> {
    connect_with(target, address, Some(ANSWER_TIMEOUT)).await
}

/// Connects to one server, which may take this long to answer; as long as it wants if None.
pub async fn connect_with(
    target: &Target,
    address: &Address,
    answer_limit: Option<Duration>,
) -> Result<MultiplexedConnection, DriverError> {
    let stream = target.connect(address).await?;
    let logged_in = RedisConnectionInfo::default().set_skip_set_lib_name();
    let config = AsyncConnectionConfig::new().set_response_timeout(answer_limit);
    let connected = MultiplexedConnection::new_with_config(&logged_in, stream, config).await;
    let (connection, driver) = connected.map_err(|error| failed(address, error))?;
    tokio::spawn(driver);
    Ok(connection)
}

/// Asks one server.
pub async fn ask<T: FromRedisValue>(
    connection: &mut MultiplexedConnection,
    address: &Address,
    command: &Cmd,
) -> Result<T, DriverError> {
    command.query_async(connection).await.map_err(|error| failed(address, error))
}

pub fn failed(address: &Address, error: RedisError) -> DriverError {
    match error.code() {
        Some("MOVED") => address.part_of_cluster(),
        Some(_) => DriverError::Statement(format!("{address}: {error}")),
        None => address.unreachable(error),
    }
}
