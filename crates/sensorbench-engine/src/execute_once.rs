//! One operation executed once, outside of any run: nothing of it is measured.

use std::sync::Arc;
use std::time::Instant;

use sensorbench_driver::{
    AsyncConnector, BlockingConnector, Deadline, Driver, DriverError, Operation, Request, Rows, Sessions, Value, runtime,
};

/// Executes an operation with the values of its parameters and returns the rows of its statement as the database gives them.
///
/// Fails where no session can be made or the database refuses the statement. There is no time limit.
pub fn execute_once(driver: &dyn Driver, operation: Operation, parameters: Vec<Value>) -> Result<Rows, DriverError> {
    let request = Request { operation: 0, parameters, rows: Rows::new() };
    match driver.sessions(&[operation])? {
        Sessions::Asynchronous(connector) => execute_asynchronously(connector.as_ref(), request),
        Sessions::Blocking(connector) => execute_blocking(connector.as_ref(), request),
    }
}

fn execute_asynchronously(connector: &dyn AsyncConnector, request: Request) -> Result<Rows, DriverError> {
    runtime()?.block_on(async {
        let session = connector.connect(1).await?;
        let (request, outcome) = session.execute(Box::new(request)).await;
        outcome.map(|()| request.rows)
    })
}

fn execute_blocking(connector: &dyn BlockingConnector, mut request: Request) -> Result<Rows, DriverError> {
    let no_limit = Deadline::new(Instant::now(), Arc::default());
    let mut session = connector.connect(Arc::new(no_limit))?;
    session.execute(&mut request).map(|()| request.rows)
}
