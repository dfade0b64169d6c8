//! Recorded commands, executed again: one connection for each session, literals sent as words of their own. In a cluster, a session has a
//! connection to each master that it needs, and a command goes to that of its first key.
//!
//! Where the URL names a namespace, keys are those of the namespace: what it begins with is put before each key that has it not. So writes
//! stay in there. The server has no connections that may only read. What a command does, it says itself (COMMAND INFO), and where only reads
//! may be sent, nothing else is.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use futures::future::LocalBoxFuture;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, Value};
use sensorbench_driver::{
    DriverError, Literal, ReplayConnection, ReplayConnector, ReplayRequest, Rows, WriteCheck, WriteQuestion,
};
use tokio::sync::OnceCell;

use crate::cluster::{Redirection, Topology};
use crate::control_connection::{ask, connect_with, failed};
use crate::recorded_command::{KnownCommands, Role, Template};
use crate::recorded_reply::read;
use crate::target::{Address, Target};

/// So often a cluster may say that a key is elsewhere.
const MAX_REDIRECTIONS: usize = 5;

/// Makes connections to a server, or to the masters of a cluster.
pub struct Replayer(Arc<Setup>);

struct Setup {
    target: Arc<Target>,
    /// In the order of their numbers.
    templates: Vec<Template>,
    read_only: bool,
    keeps_answers: bool,
    /// What the first session has asked for.
    server: OnceCell<AtServer>,
}

/// What the server says of itself, and of the commands.
struct AtServer {
    topology: Mutex<Topology>,
    /// Of each template.
    facts: Vec<Facts>,
}

struct Facts {
    /// The places of its words that are keys.
    keys: Vec<usize>,
    /// Why it is not sent, if it is not.
    problem: Option<String>,
}

impl Replayer {
    pub fn of(target: Arc<Target>, request: ReplayRequest) -> Self {
        let ReplayRequest { templates, read_only, keeps_answers } = request;
        let templates = templates.iter().map(|template| Template::of(&template.statement)).collect();
        Self(Arc::new(Setup { target, templates, read_only, keeps_answers, server: OnceCell::new() }))
    }
}

impl ReplayConnector for Replayer {
    fn connect(&self) -> LocalBoxFuture<'_, Result<Box<dyn ReplayConnection>, DriverError>> {
        Box::pin(async move {
            let server = self.0.server.get_or_try_init(|| self.0.ask_server()).await?;
            let session = Session {
                setup: self.0.clone(),
                connections: RefCell::default(),
                transaction: Cell::new(Transaction::None),
                is_lost: Cell::new(false),
            };
            // Where there are several, they are opened when they are first needed.
            let first = server.topology().masters.first().cloned();
            if let Some(first) = first.filter(|_| !self.0.target.is_cluster) {
                session.connection_to(&first).await?;
            }
            Ok(Box::new(session) as Box<dyn ReplayConnection>)
        })
    }
}

impl Setup {
    async fn ask_server(&self) -> Result<AtServer, DriverError> {
        let topology = Topology::ask(&self.target, &self.target.addresses()).await?;
        let known = known_commands(&self.target, &topology, self.templates.iter()).await?;
        let facts = |template: &Template| Facts {
            keys: known.keys(template),
            problem: template.problem().or_else(|| known.problem_of_read(template).filter(|_| self.read_only)),
        };
        Ok(AtServer { topology: Mutex::new(topology), facts: self.templates.iter().map(facts).collect() })
    }
}

impl AtServer {
    fn topology(&self) -> MutexGuard<'_, Topology> {
        self.topology.lock().expect("nothing panics under this lock")
    }
}

struct Session {
    setup: Arc<Setup>,
    /// By the address of the master.
    connections: RefCell<HashMap<String, MultiplexedConnection>>,
    transaction: Cell<Transaction>,
    is_lost: Cell<bool>,
}

/// A transaction of a cluster, which is one master's: that of its first key.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Transaction {
    None,
    /// It has begun, and no key of it is known yet.
    Begun,
    /// It is that of this master.
    At(usize),
}

impl ReplayConnection for Session {
    fn execute<'a>(
        &'a self,
        template: usize,
        literals: &'a [Literal],
        rows: &'a mut Rows,
    ) -> LocalBoxFuture<'a, Result<u64, DriverError>> {
        Box::pin(async move {
            let replied = self.replied(template, literals).await;
            if let Err(DriverError::Connection(_)) = replied {
                self.is_lost.set(true);
            }
            read(&replied?, self.setup.templates[template].columns, self.setup.keeps_answers, rows);
            Ok(rows.len())
        })
    }

    /// Redis cannot cancel a command. Where it does not answer in time, its connection is closed.
    fn cancel(&self) -> LocalBoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn is_lost(&self) -> bool {
        self.is_lost.get()
    }
}

impl Session {
    async fn replied(&self, number: usize, literals: &[Literal]) -> Result<Value, DriverError> {
        let setup = &*self.setup;
        let server = setup.server.get_or_try_init(|| setup.ask_server()).await?;
        let (template, facts) = (&setup.templates[number], &server.facts[number]);
        if let Some(problem) = &facts.problem {
            return Err(DriverError::Statement(format!("not sent: {problem}")));
        }
        let mut words = template.words(literals)?;
        if let Some(namespace) = setup.target.named_namespace() {
            for place in &facts.keys {
                words[*place] = placed(std::mem::take(&mut words[*place]), namespace)?;
            }
        }
        let key = facts.keys.first().and_then(|place| words.get(*place));
        let mut command = Cmd::new();
        words.iter().for_each(|word| {
            command.arg(word.as_slice());
        });
        if setup.target.is_cluster {
            return self.replied_by_cluster(server, template.role(), key, &command).await;
        }
        let address = server.topology().masters[0].clone();
        ask(&mut self.connection_to(&address).await?, &address, &command).await
    }

    async fn replied_by_cluster(
        &self,
        server: &AtServer,
        role: Role,
        key: Option<&Vec<u8>>,
        command: &Cmd,
    ) -> Result<Value, DriverError> {
        // Without a key any master will do.
        let master = || key.map_or(Ok(0), |key| server.topology().master_of(key));
        match (role, self.transaction.get()) {
            (Role::Begins, Transaction::None) => {
                self.transaction.set(Transaction::Begun);
                Ok(Value::Okay)
            }
            (_, Transaction::None) => self.redirected(server, master()?, command).await,
            (_, begun) => {
                let place = match begun {
                    Transaction::At(place) => place,
                    _ => {
                        let place = master()?;
                        self.executed_at(server, place, &redis::cmd("MULTI")).await?;
                        place
                    }
                };
                self.transaction.set(if role == Role::Ends { Transaction::None } else { Transaction::At(place) });
                self.executed_at(server, place, command).await
            }
        }
    }

    async fn executed_at(&self, server: &AtServer, place: usize, command: &Cmd) -> Result<Value, DriverError> {
        let address = server.topology().masters[place].clone();
        ask(&mut self.connection_to(&address).await?, &address, command).await
    }

    /// Asks a master, and whomever it sends to.
    async fn redirected(&self, server: &AtServer, place: usize, command: &Cmd) -> Result<Value, DriverError> {
        let mut address = server.topology().masters[place].clone();
        let mut is_asking = false;
        let mut redirections = 0;
        loop {
            let mut connection = self.connection_to(&address).await?;
            if is_asking {
                ask::<Value>(&mut connection, &address, &redis::cmd("ASKING")).await?;
            }
            let replied: Result<Value, RedisError> = command.query_async(&mut connection).await;
            let error = match replied {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            let said = format!("{} {}", error.code().unwrap_or_default(), error.detail().unwrap_or_default());
            let Some(redirection) = Redirection::of(&said, &address).filter(|_| redirections < MAX_REDIRECTIONS) else {
                return Err(failed(&address, error));
            };
            redirections += 1;
            is_asking = redirection.moved.is_none();
            address = redirection.address;
            if let Some(slot) = redirection.moved {
                server.topology().move_slot(slot, address.clone());
            }
        }
    }

    async fn connection_to(&self, address: &Address) -> Result<MultiplexedConnection, DriverError> {
        let place = address.to_string();
        let known = self.connections.borrow().get(&place).cloned();
        if let Some(connection) = known {
            return Ok(connection);
        }
        let connection = connect_with(&self.setup.target, address, None).await?;
        self.connections.borrow_mut().insert(place, connection.clone());
        Ok(connection)
    }
}

/// A key in the namespace. That of the ownership marker nobody may name.
fn placed(key: Vec<u8>, namespace: &str) -> Result<Vec<u8>, DriverError> {
    let prefix = Target::prefix_of(namespace);
    let placed = if key.starts_with(prefix.as_bytes()) { key } else { [prefix.as_bytes(), &key].concat() };
    if placed == Target::marker_key_of(namespace).as_bytes() {
        let shown = String::from_utf8_lossy(&placed);
        return Err(DriverError::Statement(format!(
            "not sent: {shown} is the key by which the namespace is known as sensorbench's"
        )));
    }
    Ok(placed)
}

/// Asks the server what it knows of the templates' commands.
async fn known_commands(
    target: &Target,
    topology: &Topology,
    templates: impl Iterator<Item = &Template>,
) -> Result<KnownCommands, DriverError> {
    let Some(address) = topology.masters.first() else { return Ok(KnownCommands::default()) };
    let names: HashSet<&str> = templates.map(Template::name).filter(|name| !name.is_empty()).collect();
    let mut command = redis::cmd("COMMAND");
    command.arg("INFO");
    names.iter().for_each(|name| {
        command.arg(*name);
    });
    let mut connection = connect_with(target, address, None).await?;
    Ok(KnownCommands::of(&ask(&mut connection, address, &command).await?))
}

/// Checks templates: reads are what the server calls that, and of a write it must be known which of its words are keys.
pub async fn check_writes(target: &Target, question: WriteQuestion<'_>) -> Result<Vec<WriteCheck>, DriverError> {
    let templates: Vec<_> = question.templates.iter().map(|template| Template::of(&template.statement)).collect();
    let topology = Topology::ask(target, &target.addresses()).await?;
    let queried = question.writes.iter().chain(question.reads).map(|number| &templates[*number]);
    let known = known_commands(target, &topology, queried).await?;
    let of_write = |number: &usize| WriteCheck {
        template: *number,
        problem: match target.named_namespace() {
            Some(_) => known.problem_of_write(&templates[*number]),
            None => Some("its keys are those of the trace, and not of sensorbench's namespace".to_owned()),
        },
    };
    let of_read = |number: &usize| WriteCheck { template: *number, problem: known.problem_of_read(&templates[*number]) };
    Ok(question.writes.iter().map(of_write).chain(question.reads.iter().map(of_read)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_namespace() {
        let placed = |key: &str| placed(key.into(), "mine").map(|key| String::from_utf8(key).unwrap());
        assert_eq!(placed("user:1").unwrap(), "mine:user:1");
        assert_eq!(placed("mine:user:1").unwrap(), "mine:user:1");
        for marker in ["mark", "mine:mark"] {
            assert!(placed(marker).unwrap_err().to_string().contains("not sent: mine:mark is the key"));
        }
    }
}
