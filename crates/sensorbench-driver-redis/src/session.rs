//! Executing operations: a command is packed from the parameters, sent to the master that has its key, and the reply read
//! straight into the request's rows.
//!
//! The `redis` library's own connections are not used here: they pass each command and each reply through channels, and
//! allocate every value of a reply, which costs more of the client than the operation itself (see `benches/overhead.rs`).

use std::cell::RefCell;
use std::future::ready;
use std::iter::repeat_with;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{LocalBoxFuture, try_join_all};
use sensorbench_driver::{AsyncConnector, AsyncSession, DriverError, Executing, Request};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::cluster::{Redirection, Topology};
use crate::connection::{Connection, Outcome};
use crate::operation::Prepared;
use crate::pool::Pool;
use crate::resp::packed;
use crate::target::{Address, Target};

/// Most connections to a server, unless the URL says otherwise: as many as redis-benchmark opens.
const MAX_CONNECTIONS: usize = 50;

/// How often an operation follows a cluster's word that its key is elsewhere.
const MAX_REDIRECTIONS: u32 = 5;

/// How long to wait before a cluster that is changing is asked who has which slots.
const REFRESH_PAUSE: Duration = Duration::from_millis(20);

pub struct Connector {
    pub target: Arc<Target>,
    pub operations: Vec<Prepared>,
}

impl AsyncConnector for Connector {
    fn connect(&self, concurrency: usize) -> LocalBoxFuture<'_, Result<Box<dyn AsyncSession>, DriverError>> {
        Box::pin(async move {
            let topology = Topology::ask(&self.target, &self.target.addresses()).await?;
            let mut router = Router::new(self.target.clone(), self.operations.clone(), topology, concurrency);
            try_join_all(router.connections.iter_mut().map(Connection::connect)).await?;
            Ok(Box::new(Session { router: RefCell::new(router) }) as Box<dyn AsyncSession>)
        })
    }
}

struct Session {
    router: RefCell<Router>,
}

/// The connections to every master, and who has which keys.
struct Router {
    target: Arc<Target>,
    runtime: Handle,
    operations: Vec<Prepared>,
    topology: Topology,
    /// This many of each master, one master after the other.
    connections: Vec<Connection>,
    pools: Vec<Pool>,
    connections_a_master: usize,
    /// Operations that a connection has in flight when all have equally many.
    share: usize,
    /// The newest word on who has what, on its way.
    refresh: Option<JoinHandle<Result<Topology, DriverError>>>,
    /// The command that is being packed.
    command: Vec<u8>,
}

/// Where an operation in flight is.
#[derive(Clone, Copy)]
struct Ticket {
    connection: usize,
    number: u64,
}

impl Router {
    fn new(target: Arc<Target>, operations: Vec<Prepared>, topology: Topology, concurrency: usize) -> Self {
        let connections_a_master = target.server.connections.unwrap_or(concurrency.clamp(1, MAX_CONNECTIONS));
        let share = concurrency.div_ceil(connections_a_master * topology.masters.len()).max(1);
        let mut router = Self {
            target,
            runtime: Handle::current(),
            operations,
            topology,
            connections: Vec::new(),
            pools: Vec::new(),
            connections_a_master,
            share,
            refresh: None,
            command: Vec::new(),
        };
        router.add_new_masters();
        router
    }

    fn add_new_masters(&mut self) {
        for address in &self.topology.masters[self.pools.len()..] {
            let connection = || Connection::new(self.target.clone(), address.clone(), self.runtime.clone(), self.share > 1);
            self.connections.extend(repeat_with(connection).take(self.connections_a_master));
            self.pools.push(Pool::new(self.connections_a_master, self.share));
        }
    }

    /// Sends an operation to the master that has its key.
    #[inline]
    fn start(&mut self, request: Box<Request>) -> Result<Ticket, (Box<Request>, DriverError)> {
        if self.refresh.is_some() {
            self.adopt_refreshed();
        }
        match self.pack(&request).and_then(|key| self.topology.master_of(&self.command[key])) {
            Ok(master) => Ok(self.submit(request, master, false)),
            Err(error) => Err((request, error)),
        }
    }

    /// Packs an operation's command; returns where its key lies.
    #[inline]
    fn pack(&mut self, request: &Request) -> Result<Range<usize>, DriverError> {
        let operation = &self.operations[request.operation];
        self.command.clear();
        let key = operation.command.append(&mut self.command, |place| request.parameters[place].as_ref());
        key.map_err(|error| operation.parameters.error(error))
    }

    #[inline]
    fn submit(&mut self, request: Box<Request>, master: usize, asking: bool) -> Ticket {
        let first = master * self.connections_a_master;
        let chosen = self.pools[master].choose(|connection| self.connections[first + connection].in_flight());
        let connection = &mut self.connections[first + chosen];
        if asking {
            connection.precede(&packed(&[b"ASKING"]));
        }
        Ticket { connection: first + chosen, number: connection.submit(request, &self.command) }
    }

    /// Goes on with an operation; ready when it ended.
    #[inline]
    fn poll(&mut self, ticket: Ticket, context: &mut Context) -> Poll<(Box<Request>, Outcome)> {
        let connection = &mut self.connections[ticket.connection];
        let before = connection.in_flight();
        let polled = connection.poll(ticket.number, &self.operations, context);
        let left = connection.in_flight();
        if left < before {
            let (master, number) = (ticket.connection / self.connections_a_master, ticket.connection % self.connections_a_master);
            self.pools[master].note_ended(number, left);
            if self.connections[ticket.connection].is_down() {
                self.note_loss(master);
            }
        }
        polled
    }

    /// A server that closed one connection has most probably closed the others, too: those that nobody waits for are not
    /// tried.
    #[cold]
    fn note_loss(&mut self, master: usize) {
        let first = master * self.connections_a_master;
        self.connections[first..first + self.connections_a_master].iter_mut().for_each(Connection::close_if_idle);
        self.start_refresh();
    }

    /// Sends an operation to where the cluster says.
    fn redirect(&mut self, request: Box<Request>, redirection: Redirection) -> Result<Ticket, (Box<Request>, DriverError)> {
        if !self.target.is_cluster {
            return Err((request, self.topology.masters[0].part_of_cluster()));
        }
        if let Err(error) = self.pack(&request) {
            return Err((request, error));
        }
        let (master, asking) = match redirection.moved {
            Some(slot) => (self.topology.move_slot(slot, redirection.address), false),
            None => (self.topology.place(redirection.address), true),
        };
        self.add_new_masters();
        if !asking {
            self.start_refresh();
        }
        Ok(self.submit(request, master, asking))
    }

    fn start_refresh(&mut self) {
        if !self.target.is_cluster || self.refresh.is_some() {
            return;
        }
        let (target, addresses) = (self.target.clone(), [self.topology.masters.clone(), self.target.addresses()].concat());
        self.refresh = Some(self.runtime.spawn(async move {
            tokio::time::sleep(REFRESH_PAUSE).await;
            Topology::ask(&target, &addresses).await
        }));
    }

    /// Takes over who has what, if the answer is there. Without one the old word stands.
    #[cold]
    fn adopt_refreshed(&mut self) {
        let Some(refresh) = self.refresh.take_if(|refresh| refresh.is_finished()) else { return };
        if let Some(Ok(Ok(topology))) = refresh.now_or_never() {
            self.topology.adopt(topology);
            self.add_new_masters();
        }
    }
}

impl AsyncSession for Session {
    fn execute(&self, request: Box<Request>) -> Executing<'_> {
        match self.router.borrow_mut().start(request) {
            Ok(ticket) => Box::pin(InFlight { session: self, ticket: Some(ticket), redirections: 0 }),
            Err((request, error)) => Box::pin(ready((request, Err(error)))),
        }
    }
}

/// An operation in flight.
struct InFlight<'a> {
    session: &'a Session,
    /// None when it ended.
    ticket: Option<Ticket>,
    redirections: u32,
}

impl Future for InFlight<'_> {
    type Output = (Box<Request>, Result<(), DriverError>);

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<Self::Output> {
        let mut router = self.session.router.borrow_mut();
        loop {
            let ticket = self.ticket.expect("an operation is not polled after it ended");
            let (request, outcome) = ready!(router.poll(ticket, context));
            self.ticket = None;
            let redirection = match outcome {
                Outcome::Done(result) => return Poll::Ready((request, result)),
                Outcome::Redirected(redirection) => redirection,
            };
            self.redirections += 1;
            if self.redirections > MAX_REDIRECTIONS {
                return Poll::Ready((request, Err(redirected_too_often(&redirection.address))));
            }
            match router.redirect(request, *redirection) {
                Ok(ticket) => self.ticket = Some(ticket),
                Err((request, error)) => return Poll::Ready((request, Err(error))),
            }
        }
    }
}

fn redirected_too_often(address: &Address) -> DriverError {
    DriverError::Connection(format!(
        "{address}: the servers of the cluster do not agree on who has the key; see what CLUSTER INFO says there"
    ))
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.session.router.borrow_mut().connections[ticket.connection].abandon(ticket.number);
        }
    }
}
