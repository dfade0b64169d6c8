//! Where a Redis is, and how to log in there.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use sensorbench_driver::pipeline::Stream;
use sensorbench_driver::{DriverError, Server, TargetUrl, TlsMode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::resp::{Item, next_item, packed};

const DEFAULT_PORT: u16 = 6379;

/// What follows the namespace in the key of the marker.
pub const MARK_KEY_END: &str = ":mark";

/// How long it may take to connect and log in.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A target's URL, read.
pub struct Target {
    pub server: Server,
    /// Whether it is a cluster, whose masters are asked for.
    pub is_cluster: bool,
    /// Whether the URL says which namespace is meant.
    names_namespace: bool,
    /// Number of the database at the server.
    database: u32,
    tls: Option<Arc<ClientConfig>>,
}

/// A server's host and port.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Address {
    pub host: String,
    pub port: u16,
}

impl Target {
    pub fn of(url: &TargetUrl, is_cluster: bool) -> Result<Self, DriverError> {
        let server = Server::of(url, DEFAULT_PORT, &[])?;
        if !is_cluster && server.hosts.len() > 1 {
            return Err(url.error("expected one host; redis+cluster:// takes more"));
        }
        let database = match server.database.as_deref() {
            None => 0,
            Some(_) if is_cluster => {
                return Err(url.error("a cluster has no numbered databases; leave out what follows the host"));
            }
            Some(number) => {
                number.parse().map_err(|_| url.error(format!("database {number}: expected a number, for example /0")))?
            }
        };
        let is_encrypted = server.tls.mode != TlsMode::Off;
        let tls = is_encrypted.then(|| server.tls.client_config(url).map(Arc::new)).transpose()?;
        let names_namespace = url.option("namespace").is_some();
        Ok(Self { server, is_cluster, names_namespace, database, tls })
    }

    /// The namespace, where the URL names it.
    pub fn named_namespace(&self) -> Option<&str> {
        self.names_namespace.then_some(self.server.namespace.as_str())
    }

    /// What all keys of a namespace begin with.
    pub fn prefix_of(namespace: &str) -> String {
        format!("{namespace}:")
    }

    /// The key of a namespace's ownership marker.
    pub fn marker_key_of(namespace: &str) -> String {
        format!("{namespace}{MARK_KEY_END}")
    }

    /// The hosts that the URL names.
    pub fn addresses(&self) -> Vec<Address> {
        self.server.hosts.iter().map(|(host, port)| Address { host: host.clone(), port: *port }).collect()
    }

    /// Connects to a server and logs in.
    pub async fn connect(&self, address: &Address) -> Result<Box<dyn Stream>, DriverError> {
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, async {
            let mut stream = self.open(address).await.map_err(|error| address.unreachable(error))?;
            self.log_in(&mut stream, address).await?;
            Ok(stream)
        });
        connected.await.unwrap_or_else(|_| Err(address.unreachable(format!("no answer within {} s", CONNECT_TIMEOUT.as_secs()))))
    }

    async fn open(&self, address: &Address) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect((address.host.as_str(), address.port)).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(address.host.clone()).map_err(io::Error::other)?;
        Ok(Box::new(TlsConnector::from(tls.clone()).connect(name, stream).await?))
    }

    /// Gives user and password, chooses the database, and asks for a sign of life.
    async fn log_in(&self, stream: &mut (impl Stream + ?Sized), address: &Address) -> Result<(), DriverError> {
        let commands = self.greeting();
        stream.write_all(&commands.concat()).await.map_err(|error| address.unreachable(error))?;
        let mut received = Vec::new();
        for _ in commands {
            let length = loop {
                match next_item(&received).map_err(|error| address.unreachable(error))? {
                    Some((Item::Error(text), _)) => return Err(address.refused(&String::from_utf8_lossy(text))),
                    Some((_, length)) => break length,
                    None => match stream.read_buf(&mut received).await {
                        Ok(0) => return Err(address.unreachable("it closed the connection")),
                        Ok(_) => {}
                        Err(error) => return Err(address.unreachable(error)),
                    },
                }
            };
            received.drain(..length);
        }
        Ok(())
    }

    fn greeting(&self) -> Vec<Vec<u8>> {
        let mut commands = Vec::new();
        match (&self.server.user, &self.server.password) {
            (Some(user), Some(password)) => commands.push(packed(&[b"AUTH", user.as_bytes(), password.as_bytes()])),
            (None, Some(password)) => commands.push(packed(&[b"AUTH", password.as_bytes()])),
            (_, None) => {}
        }
        if self.database != 0 {
            commands.push(packed(&[b"SELECT", self.database.to_string().as_bytes()]));
        }
        commands.push(packed(&[b"PING"]));
        commands
    }
}

impl Address {
    /// An error of the connection to this server, and what to do.
    pub fn unreachable(&self, problem: impl fmt::Display) -> DriverError {
        DriverError::Connection(format!("{self}: {problem}; check that Redis runs there, the port, and whether it wants tls=on"))
    }

    /// What to say when a server that is to be a single one redirects.
    pub fn part_of_cluster(&self) -> DriverError {
        DriverError::Connection(format!("{self} is part of a cluster; give its URL as redis+cluster://{self}"))
    }

    /// What the server says when one logs in, and what to do.
    fn refused(&self, text: &str) -> DriverError {
        let advice = match text.split(' ').next() {
            Some("NOAUTH" | "WRONGPASS" | "NOPERM") => {
                "; give user and password in the URL, by its option credentials, or in the environment"
            }
            _ => "",
        };
        DriverError::Connection(format!("{self}: {text}{advice}"))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str, is_cluster: bool) -> String {
        Target::of(&TargetUrl::parse(url).unwrap(), is_cluster).err().expect(url).to_string()
    }

    #[test]
    fn a_url_names_a_server_and_a_database_or_a_cluster() {
        let target = |url: &str, is_cluster| Target::of(&TargetUrl::parse(url).unwrap(), is_cluster).unwrap();
        assert_eq!(target("redis://:p@host/3", false).greeting().len(), 3);
        assert_eq!(target("redis+cluster://a,b:7000", true).addresses()[1].to_string(), "b:7000");
        assert_eq!(target("redis://host?tls=on", false).addresses()[0].port, 6379);
        assert!(refused("redis://a,b", false).contains("expected one host"));
        assert!(refused("redis://:secret@host/db", false).contains("expected a number"));
        assert!(refused("redis+cluster://host/1", true).contains("no numbered databases"));
        assert!(refused("redis://host?tls=on&ca=Cargo.toml", false).contains("there is no certificate in it; expected PEM"));
    }
}
