//! One operation asked once, outside of any run: nothing of it is measured.

use std::sync::Arc;
use std::time::Instant;

use sensorbench_driver::{
    AsyncConnector, BlockingConnector, Deadline, Driver, DriverError, Operation, Request, Rows, Sessions, Value, runtime,
};

/// Asks an operation with the values of its parameters and returns the rows of its statement as the database gives them.
pub fn ask(driver: &dyn Driver, operation: Operation, parameters: Vec<Value>) -> Result<Rows, DriverError> {
    let request = Request { operation: 0, parameters, rows: Rows::new() };
    match driver.sessions(&[operation])? {
        Sessions::Asynchronous(connector) => ask_asynchronously(connector.as_ref(), request),
        Sessions::Blocking(connector) => ask_blocking(connector.as_ref(), request),
    }
}

fn ask_asynchronously(connector: &dyn AsyncConnector, request: Request) -> Result<Rows, DriverError> {
    runtime()?.block_on(async {
        let session = connector.connect(1).await?;
        let (request, outcome) = session.execute(Box::new(request)).await;
        outcome.map(|()| request.rows)
    })
}

fn ask_blocking(connector: &dyn BlockingConnector, mut request: Request) -> Result<Rows, DriverError> {
    let no_limit = Deadline::new(Instant::now(), Arc::default());
    let mut session = connector.connect(Arc::new(no_limit))?;
    session.execute(&mut request).map(|()| request.rows)
}
