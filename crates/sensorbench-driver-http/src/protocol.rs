//! What servers differ in: the seam between HTTP and what a server makes of it.

use std::collections::BTreeMap;

use sensorbench_driver::{About, Description, DriverError, Marker, Occupant, Operation, Rows, Schema, Size, Value};

use crate::connection::{Call, Reply};
use crate::control::Control;
use crate::points::{Limits, Points};

/// What a server makes of HTTP.
pub trait Protocol: Send + Sync {
    /// What it is.
    fn about(&self) -> About;

    /// The server's name in messages.
    fn product(&self) -> &'static str;

    /// The port where none is named.
    fn port(&self) -> u16;

    /// What its line protocol can hold.
    fn limits(&self) -> Limits;

    /// What messages call sensorbench's own part of the server.
    fn namespace(&self, control: &Control) -> String;

    /// See [`sensorbench_driver::Driver::describe`].
    fn describe(&self, control: &Control) -> Result<Description, DriverError>;

    /// See [`sensorbench_driver::Driver::occupant`].
    fn occupant(&self, control: &Control) -> Result<Occupant, DriverError>;

    /// Creates the namespace with its marker, and nothing else.
    fn create(&self, control: &Control, schema: &Schema, marker: &Marker) -> Result<(), DriverError>;

    /// See [`sensorbench_driver::Driver::write_marker`].
    fn write_marker(&self, control: &Control, marker: &Marker) -> Result<(), DriverError>;

    /// See [`sensorbench_driver::Driver::remove`].
    fn remove(&self, control: &Control) -> Result<(), DriverError>;

    /// See [`sensorbench_driver::Driver::namespaces`].
    fn namespaces(&self, control: &Control) -> Result<Vec<String>, DriverError>;

    /// The request that writes lines.
    fn write(&self, namespace: &str, lines: Vec<u8>) -> Call;

    /// What stands before a measurement in lines.
    fn prefix(&self, namespace: &str) -> String;

    /// How many rows of a refused batch are in all the same; None where the server does not tell.
    fn kept_of_refused(&self, rows: u64, reply: &Reply) -> Option<u64>;

    /// Waits until what was written is visible.
    fn settle(&self, control: &Control) -> Result<(), DriverError>;

    /// See [`sensorbench_driver::Driver::count`].
    fn count(&self, control: &Control, points: &Points) -> Result<u64, DriverError>;

    /// See [`sensorbench_driver::Driver::size`].
    fn size(&self, control: &Control) -> Result<Size, DriverError>;

    /// See [`sensorbench_driver::Driver::status`].
    fn status(&self, control: &Control) -> Result<BTreeMap<String, f64>, DriverError>;

    /// An operation that reads, in the namespace.
    fn reading(&self, namespace: &str, operation: &Operation) -> Result<Box<dyn Reading>, DriverError>;

    /// An operation that does as little as the server can.
    fn no_op(&self) -> serde_json::Value;

    /// The parts of a schema file besides the points that tables have, checked.
    fn check(&self, schema: &Schema) -> Result<(), DriverError>;
}

/// An operation that reads.
pub trait Reading: Send + Sync {
    /// The request for some parameters; None where the answer is known to be empty without one.
    fn call(&self, parameters: &[Value]) -> Result<Option<Call>, DriverError>;

    /// Appends the rows of a line of the answer.
    fn read(&self, line: &[u8], parameters: &[Value], rows: &mut Rows) -> Result<(), DriverError>;
}
