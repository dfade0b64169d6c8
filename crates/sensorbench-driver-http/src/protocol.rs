//! What servers differ in: the seam between HTTP and what a server makes of it.

use std::collections::BTreeMap;
use std::path::Path;

use arrow_array::RecordBatchReader;
use sensorbench_driver::{
    About, Description, DriverError, Marker, Occupant, Operation, Progress, Rows, Schema, Size, TargetUrl, Value, parse_part,
};
use serde::Deserialize;

use crate::connection::{Call, Reply};
use crate::control::Control;
use crate::line::Limits;
use crate::points::Points;
use crate::target::Target;

/// What requests must know of the server. It is found out when rows are loaded or operations are prepared.
#[derive(Clone, Debug)]
pub struct Scope {
    /// sensorbench's own part of the server.
    pub namespace: String,
    /// What stands before the names of measurements.
    pub prefix: String,
    /// Where queries are sent, where that depends on the target.
    pub queries: String,
    /// Whether a stretch of time in PromQL has both of its ends; else it begins after its start.
    pub ranges_include_start: bool,
}

impl Scope {
    /// A namespace with the names of its measurements.
    pub fn new(namespace: impl Into<String>, prefix: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), prefix: prefix.into(), queries: String::new(), ranges_include_start: false }
    }
}

/// `[create]` of a schema file of a protocol that has nothing to create.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PointsAlone {
    #[serde(rename = "points")]
    _points: Option<serde_json::Value>,
}

/// What a server makes of HTTP.
pub trait Protocol: Send + Sync {
    /// What it is.
    fn about(&self) -> About;

    /// The server's name in messages.
    fn product(&self) -> &'static str;

    /// The port where none is named.
    fn port(&self) -> u16;

    /// Options of its URL besides those of all servers that speak HTTP.
    fn options(&self) -> &'static [&'static str] {
        &[]
    }

    /// Refuses values of these options that make no sense.
    fn check_options(&self, _: &TargetUrl) -> Result<(), DriverError> {
        Ok(())
    }

    /// What its points can hold.
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

    /// The request that writes points, in the form that its limits name.
    fn write(&self, target: &Target, points: Vec<u8>) -> Call;

    /// What requests must know of the server.
    fn scope(&self, control: &Control) -> Result<Scope, DriverError> {
        Ok(Scope::new(&control.target.namespace, ""))
    }

    /// Whether batches are sent one after the other, because the server refuses what is older than what it has.
    fn loads_in_order(&self) -> bool {
        false
    }

    /// What the server says where it refused a write, which some servers do with a status of success.
    fn refusal(&self, reply: &Reply) -> Option<String> {
        (!reply.status.is_success()).then(|| reply.shown())
    }

    /// How many rows of a refused batch are in all the same; None if the server does not report it.
    fn kept_of_refused(&self, rows: u64, reply: &Reply) -> Option<u64>;

    /// The request that writes the points of a batch while tables are loaded.
    fn write_batch(&self, target: &Target, points: Vec<u8>) -> Call {
        self.write(target, points)
    }

    /// Waits until what was written is visible, and whatever the server does after a load is over.
    fn settle(&self, control: &Control) -> Result<(), DriverError>;

    /// Waits until what was written is visible.
    fn show(&self, control: &Control) -> Result<(), DriverError> {
        self.settle(control)
    }

    /// Counts the values of a field by looking at them, or of all fields where rows name theirs.
    fn count(&self, control: &Control, points: &Points, field: Option<&str>) -> Result<u64, DriverError>;

    /// See [`sensorbench_driver::Driver::size`].
    fn size(&self, control: &Control) -> Result<Size, DriverError>;

    /// See [`sensorbench_driver::Driver::status`].
    fn status(&self, control: &Control) -> Result<BTreeMap<String, f64>, DriverError>;

    /// See [`sensorbench_driver::Driver::write_load_file`].
    fn write_load_file(
        &self,
        _control: &Control,
        _points: &Points,
        _rows: Box<dyn RecordBatchReader + Send>,
        _file: &Path,
        _progress: &Progress,
    ) -> Result<(), DriverError> {
        Err(DriverError::Data(format!("no other loader of {} takes files", self.product())))
    }

    /// An operation that reads.
    fn reading(&self, scope: &Scope, operation: &Operation) -> Result<Box<dyn Reading>, DriverError>;

    /// An operation that does as little as the server can.
    fn no_op(&self) -> serde_json::Value;

    /// The parts of a schema file besides the points that tables have, checked.
    fn check(&self, schema: &Schema) -> Result<(), DriverError> {
        let _: PointsAlone = parse_part("create", &schema.create)?;
        Ok(())
    }
}

/// An operation that reads.
pub trait Reading: Send + Sync {
    /// The request for some parameters; None if the answer is known to be empty without one.
    fn call(&self, parameters: &[Value]) -> Result<Option<Call>, DriverError>;

    /// Whether a refusal says that there is nothing of the kind that was asked for: then the answer is empty.
    fn finds_nothing(&self, _: &Reply) -> bool {
        false
    }

    /// Appends the rows of a line of the answer. `state` is what earlier lines of the same answer said.
    fn read(&self, line: &[u8], parameters: &[Value], state: &mut AnswerState, rows: &mut Rows) -> Result<(), DriverError>;
}

/// What the lines of an answer say of those that follow, where a line alone does not say everything.
#[derive(Debug, Default)]
pub enum AnswerState {
    /// Nothing was said yet.
    #[default]
    Begins,
    /// A line follows that has the names of columns.
    Names,
    /// Rows follow, in which the columns of the operation are in these places.
    Rows(Vec<usize>),
    /// What follows says why the server gave up.
    Refusal,
}
