//! The connections of a run, spread evenly over the gateways. Each serves one operation at a time.

use std::sync::Arc;

use sensorbench_driver::{Deadline, DriverError, Lender};

use crate::target::Target;
use crate::wire::Gateway;

/// The connections to the gateways of a target.
pub struct Pool {
    pub target: Target,
    clients: Lender<Client>,
}

/// A connection on loan, or the memory of one that was lost.
pub struct Client {
    /// The gateway that it is to, or was.
    number: usize,
    /// None until it is made again.
    gateway: Option<Gateway>,
}

impl Pool {
    /// No connections yet.
    pub fn new(target: Target) -> Arc<Self> {
        Arc::new(Self { clients: Lender::new(target.connections), target })
    }

    /// Makes one more connection, to the next gateway, unless there are as many as there may be.
    pub fn open(&self) -> Result<(), DriverError> {
        self.clients.open(|number| {
            let mut client = Client { number: number % self.target.hosts.len(), gateway: None };
            client.connected(&self.target)?;
            Ok(client)
        })
    }

    /// Does something with a connection that nobody else has meanwhile. What was lost on the way is not done again.
    pub fn with(
        &self,
        deadline: &Arc<Deadline>,
        work: impl FnOnce(&mut Gateway) -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        let mut client = self.clients.lend(deadline)?;
        let outcome = client.connected(&self.target).and_then(|gateway| {
            gateway.set_limit(Some(deadline.clone()));
            work(gateway)
        });
        if matches!(outcome, Err(DriverError::Connection(_) | DriverError::Timeout | DriverError::Cancelled)) {
            // An answer may still come, or a scanner be open.
            client.gateway = None;
        }
        match outcome {
            Err(DriverError::Connection(message)) => Err(deadline.passed().unwrap_or(DriverError::Connection(message))),
            other => other,
        }
    }
}

impl Client {
    /// The connection, made again if it was lost: to the same gateway, or to the next one that answers.
    fn connected(&mut self, target: &Target) -> Result<&mut Gateway, DriverError> {
        if self.gateway.is_none() {
            let (number, gateway) = any_gateway(target, self.number)?;
            (self.number, self.gateway) = (number, Some(gateway));
        }
        Ok(self.gateway.as_mut().expect("was just made"))
    }
}

/// A connection to the first gateway that answers, from the one with this number on.
pub fn any_gateway(target: &Target, first: usize) -> Result<(usize, Gateway), DriverError> {
    let gateways = target.hosts.len();
    let mut refused = None;
    for number in (0..gateways).map(|step| (first + step) % gateways) {
        match Gateway::connect(target, number) {
            Ok(gateway) => return Ok((number, gateway)),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.expect("a URL names a host"))
}
