//! The connections of a run, spread evenly over the gateways. Each serves one operation at a time; where there may be fewer of them
//! than operations in flight, an operation waits for a free one, which is part of its service time.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sensorbench_driver::{Deadline, DriverError};

use crate::target::Target;
use crate::wire::Gateway;

/// How often an operation that waits for a connection looks at its limit.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

pub struct Pool {
    pub target: Target,
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Default)]
struct State {
    free: Vec<Client>,
    made: usize,
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
        Arc::new(Self { target, state: Mutex::default(), returned: Condvar::new() })
    }

    /// Makes one more connection, to the next gateway, unless there are as many as there may be.
    pub fn open(&self) -> Result<(), DriverError> {
        let number = {
            let mut state = self.lock();
            if self.target.connections.is_some_and(|most| state.made >= most) {
                return Ok(());
            }
            state.made += 1;
            (state.made - 1) % self.target.hosts.len()
        };
        let mut client = Client { number, gateway: None };
        client.connected(&self.target).map(drop).inspect_err(|_| self.lock().made -= 1)?;
        self.give_back(client);
        Ok(())
    }

    /// Does something with a connection that nobody else has meanwhile. What was lost on the way is not done again.
    pub fn with(
        &self,
        deadline: &Arc<Deadline>,
        work: impl FnOnce(&mut Gateway) -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        let mut client = self.lend(deadline)?;
        let outcome = client.connected(&self.target).and_then(|gateway| {
            gateway.set_limit(Some(deadline.clone()));
            work(gateway)
        });
        if matches!(outcome, Err(DriverError::Connection(_) | DriverError::Timeout | DriverError::Cancelled)) {
            // An answer may still come, or a scanner be open.
            client.gateway = None;
        }
        let outcome = match outcome {
            Err(DriverError::Connection(message)) => Err(deadline.passed().unwrap_or(DriverError::Connection(message))),
            other => other,
        };
        self.give_back(client);
        outcome
    }

    fn lend(&self, deadline: &Deadline) -> Result<Client, DriverError> {
        deadline.check()?;
        let mut state = self.lock();
        loop {
            if let Some(client) = state.free.pop() {
                return Ok(client);
            }
            state = self.returned.wait_timeout(state, BETWEEN_LOOKS).unwrap_or_else(PoisonError::into_inner).0;
            deadline.check()?;
        }
    }

    fn give_back(&self, client: Client) {
        self.lock().free.push(client);
        self.returned.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
