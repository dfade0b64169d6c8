//! Where the server is, and how connections to it are made.

use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use sensorbench_driver::pipeline::Stream;
use sensorbench_driver::{DriverError, Server, TargetUrl, TlsMode};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{CancelToken, Client, Config, Connection, Error};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::lent::{Encrypted, Encrypting, Lent, Loan};
use super::stream::{Move, PortableStream, connected_to};
use super::{errors, password_file};
use crate::dialect::Dialect;

/// How long connecting may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// What connections are called that nothing is measured on.
pub const CONTROL: &str = "sensorbench";

/// A server, and sensorbench's schema in one of its databases.
pub struct Target {
    /// Which database answers there.
    pub dialect: &'static dyn Dialect,
    /// The server as messages name it: the database, hosts and ports.
    pub place: String,
    /// Name of sensorbench's schema.
    pub namespace: String,
    /// Connections of one client thread, if the URL says so.
    pub connections: Option<usize>,
    /// What the URL says of the server, for what a dialect has besides this protocol.
    pub server: Server,
    /// The URL, for the options of a dialect.
    pub url: TargetUrl,
    /// What sets the statements of this target apart from those of earlier ones.
    nonce: Option<u64>,
    /// Why the password file was not read.
    ignored: Option<String>,
    config: Config,
    tls: MakeRustlsConnect,
}

impl Target {
    pub fn of(dialect: &'static dyn Dialect, url: &TargetUrl) -> Result<Self, DriverError> {
        let mut server = Server::of(url, dialect.default_port(), dialect.options())?;
        let ignored = add_password(&mut server, dialect.default_database())?;
        Ok(Self {
            dialect,
            ignored,
            place: format!("{} at {}", dialect.product(), server.shown()),
            config: config(&server, dialect.default_database(), &dialect.session_settings(url, &server.namespace)?),
            // Where encryption is off it is never asked to.
            tls: MakeRustlsConnect::new(server.tls.client_config(url)?),
            namespace: server.namespace.clone(),
            nonce: dialect.remembers_statements().then(|| RandomState::new().hash_one(())),
            connections: server.connections,
            server,
            url: url.clone(),
        })
    }

    /// Words for the server that it was never given before, where it would take the statement for an earlier one otherwise.
    pub fn fresh(&self, statement: &str) -> String {
        match self.nonce {
            Some(nonce) => format!("{statement} /* {nonce:016x} */"),
            None => statement.to_owned(),
        }
    }

    /// Opens a connection whose statements find sensorbench's tables, and that the server lists under this name. It is kept going
    /// by a task of its own.
    pub async fn connect(&self, name: &str) -> Result<Client, DriverError> {
        self.connected(name, self.config.clone()).await
    }

    /// Opens one for whoever asks on another thread, who has to call [`Opened::moved`]. Like [`Self::connect`], but with the tables that the
    /// database's own search path finds, unless the URL names a namespace. `settings` are added.
    pub async fn open_as_recorded(&self, name: &str, settings: &str) -> Result<Opened, DriverError> {
        let mut config = self.config.clone();
        let of_url = if self.url.option("namespace").is_some() { config.get_options().unwrap_or_default() } else { "" };
        let options = format!("{of_url} {settings}");
        config.options(options.trim()).application_name(name);
        self.at_first_host(|host, port| self.open_at(host, port, &config)).await
    }

    async fn open_at(&self, host: &str, port: u16, config: &Config) -> Result<Opened, DriverError> {
        let (stream, place) = self.stream_to(host, port).await?;
        let (stream, moved) = PortableStream::of(stream);
        let logged_in = config.connect_raw(stream, self.encryption(host)).await;
        let (client, connection) = logged_in.map_err(|error| self.not_connected(&error))?;
        Ok(Opened { client, connection, moved, place })
    }

    /// Opens a connection like [`Self::connect`] whose stream the library gives back.
    pub async fn lend(&self, name: &str) -> Result<Lending, DriverError> {
        let mut config = self.config.clone();
        config.application_name(name);
        self.at_first_host(|host, port| self.lend_at(host, port, &config)).await
    }

    async fn lend_at(&self, host: &str, port: u16, config: &Config) -> Result<Lending, DriverError> {
        let (stream, place) = self.stream_to(host, port).await?;
        let plain = Lent::of(stream);
        let encrypting = Encrypting::by(self.encryption(host));
        let encrypted = encrypting.encrypted();
        let logged_in = config.connect_raw(plain.handle(), encrypting).await;
        let (client, connection) = logged_in.map_err(|error| self.not_connected(&error))?;
        Ok(Lending { client: Arc::new(client), connection, plain, encrypted, place })
    }

    /// Opens at the first host that takes the connection in time.
    async fn at_first_host<'a, T, F>(&'a self, open: impl Fn(&'a str, u16) -> F) -> Result<T, DriverError>
    where
        F: Future<Output = Result<T, DriverError>>,
    {
        let mut refused = None;
        for (host, port) in &self.server.hosts {
            match timeout(CONNECT_TIMEOUT, open(host, *port)).await.unwrap_or_else(|_| Err(self.no_answer(CONNECT_TIMEOUT))) {
                Ok(opened) => return Ok(opened),
                Err(error) => refused = Some(error),
            }
        }
        Err(refused.unwrap_or_else(|| DriverError::Url("the URL names no host".to_owned())))
    }

    async fn stream_to(&self, host: &str, port: u16) -> Result<(TcpStream, Place), DriverError> {
        let unreached = |error| errors::not_reached(&self.place, &error);
        let mut refused = None;
        for address in lookup_host((host, port)).await.map_err(unreached)? {
            match connected_to(address).await {
                Ok(stream) => return Ok((stream, Place { host: host.to_owned(), address })),
                Err(error) => refused = Some(error),
            }
        }
        let nowhere = || std::io::Error::other(format!("{host} has no address"));
        Err(unreached(refused.unwrap_or_else(nowhere)))
    }

    fn encryption(&self, host: &str) -> Encryption {
        let made: Result<_, Infallible> = MakeTlsConnect::<PortableStream>::make_tls_connect(&mut self.tls.clone(), host);
        made.unwrap_or_else(|never| match never {})
    }

    async fn connected(&self, name: &str, mut config: Config) -> Result<Client, DriverError> {
        config.application_name(name);
        let limit = CONNECT_TIMEOUT * config.get_hosts().len() as u32;
        let connected = timeout(limit, config.connect(self.tls.clone())).await.map_err(|_| self.no_answer(limit))?;
        let (client, connection) = connected.map_err(|error| self.not_connected(&error))?;
        // Whoever waits for an answer learns when it ends; nobody else needs to.
        tokio::spawn(connection);
        Ok(client)
    }

    fn not_connected(&self, error: &Error) -> DriverError {
        let is_login = error.as_db_error().is_some_and(|refusal| self.dialect.refuses_login(refusal));
        errors::not_connected(&self.place, self.dialect.about().name, is_login, self.ignored.as_deref(), error)
    }

    /// Asks the server to end what a connection executes. That it could not be reached is not an error: then the connection is lost, too.
    pub async fn cancel_at(&self, token: CancelToken, place: &Place) {
        let cancelled = async {
            let stream = connected_to(place.address).await?;
            Ok::<_, std::io::Error>(token.cancel_query_raw(stream, self.encryption(&place.host)).await)
        };
        let _ = timeout(CONNECT_TIMEOUT, cancelled).await;
    }

    fn no_answer(&self, limit: Duration) -> DriverError {
        DriverError::Connection(format!(
            "{}: no answer within {} s; check host and port, and that nothing on the way drops packets",
            self.place,
            limit.as_secs()
        ))
    }
}

type Encryption = <MakeRustlsConnect as MakeTlsConnect<PortableStream>>::TlsConnect;

/// A connection that is logged in, for another thread.
pub struct Opened {
    pub client: Client,
    /// What keeps it going.
    pub connection: Connection<PortableStream, <MakeRustlsConnect as MakeTlsConnect<PortableStream>>::Stream>,
    /// To be called on the thread that keeps it going.
    pub moved: Move,
    pub place: Place,
}

/// A connection that is logged in, whose stream can be taken from the library.
pub struct Lending {
    pub client: Arc<Client>,
    connection: Connection<Lent<TcpStream>, <Encrypting<Encryption> as TlsConnect<Lent<TcpStream>>>::Stream>,
    plain: Lent<TcpStream>,
    encrypted: Encrypted,
    place: Place,
}

/// A stream on which somebody is logged in, and how what is executed there is cancelled.
pub struct Taken {
    pub stream: Box<dyn Stream>,
    pub token: CancelToken,
    pub place: Place,
}

impl Lending {
    /// Takes the stream when the library has done something with the client. `server` is named where that fails.
    pub async fn taken_after<T>(
        self,
        work: impl Future<Output = Result<T, DriverError>>,
        server: &str,
    ) -> Result<(T, Taken), DriverError> {
        let Self { client, connection, plain, encrypted, place } = self;
        let done = match select(pin!(work), pin!(connection)).await {
            Either::Left((done, _)) => done?,
            Either::Right((Err(error), _)) => return Err(errors::lost(server, &error)),
            Either::Right((Ok(()), _)) => return Err(errors::lost_because(server, &"the server closed it")),
        };
        let encrypted = encrypted.lock().expect("nothing panics under this lock").take();
        let stream = match encrypted {
            Some(loan) => loan.taken(),
            None => plain.taken(),
        };
        let stream = stream.ok_or_else(|| errors::lost_because(server, &"its stream is gone"))?;
        Ok((done, Taken { stream, token: client.cancel_token(), place }))
    }
}

/// Where a connection leads, for a second one that asks the server to end what the first one executes.
pub struct Place {
    host: String,
    address: SocketAddr,
}

/// Takes the password out of PostgreSQL's password file, where nothing else has one. Returns why the file was not read.
fn add_password(server: &mut Server, default_database: &str) -> Result<Option<String>, DriverError> {
    let file = password_file::path(std::env::var_os("PGPASSFILE"), std::env::var_os("HOME"));
    let (None, Some(file)) = (&server.password, file) else { return Ok(None) };
    // Without a user, connections are of the user of this process.
    let user = server.user.clone().or_else(|| std::env::var("USER").ok()).unwrap_or_default();
    let database = server.database.as_deref().unwrap_or(default_database);
    let login = password_file::Login { hosts: &server.hosts, database, user: &user };
    let found = password_file::look_up(&file, &login)?;
    server.password = found.password;
    Ok(found.ignored)
}

fn config(server: &Server, default_database: &str, settings: &str) -> Config {
    let mut config = Config::new();
    for (host, port) in &server.hosts {
        config.host(host).port(*port);
    }
    if let Some(user) = &server.user {
        config.user(user);
    }
    if let Some(password) = &server.password {
        config.password(password);
    }
    if !settings.is_empty() {
        config.options(settings);
    }
    config
        .dbname(server.database.as_deref().unwrap_or(default_database))
        .connect_timeout(CONNECT_TIMEOUT)
        .ssl_mode(if server.tls.mode == TlsMode::Off { SslMode::Disable } else { SslMode::Require });
    config
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Postgresql;

    fn refused(text: &str) -> String {
        Target::of(&Postgresql, &TargetUrl::parse(text).unwrap()).err().expect(text).to_string()
    }

    #[test]
    fn a_url_says_everything_that_connecting_needs() {
        let url = "postgresql://me:secret@[::1]:6543,db.example/power?namespace=mine&synchronous_commit=off";
        let target = Target::of(&Postgresql, &TargetUrl::parse(url).unwrap()).unwrap();
        assert_eq!(target.place, "PostgreSQL at ::1:6543,db.example:5432");
        assert_eq!(target.config.get_ports(), [6543, 5432]);
        assert_eq!(target.config.get_dbname(), Some("power"));
        assert_eq!(target.config.get_options(), Some("-c search_path=mine -c synchronous_commit=off"));
        assert_eq!(target.config.get_ssl_mode(), SslMode::Disable);
    }

    #[test]
    fn wrong_options_and_files_are_told_without_the_password() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let file = file.path().display();
        for (text, expected) in [
            ("postgresql://me:secret@h?synchronous_commit=maybe".to_owned(), "expected one of on, off, local"),
            (format!("postgresql://me:secret@h?tls=on&ca={file}"), "expected PEM"),
            (format!("postgresql://me:secret@h?tls=on&certificate={file}&key={file}"), "expected PEM"),
        ] {
            let message = refused(&text);
            assert!(message.contains(expected) && !message.contains("secret"), "{message}");
        }
    }
}
