//! How a connection is made, and what it means when it fails.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{ClientIdentity, Conn, Error, IoError, Opts, OptsBuilder, SslOpts};
use sensorbench_driver::{DriverError, Server, TargetUrl, Tls, TlsMode};
use tokio::time::timeout;

use crate::dialect::Dialect;

/// How long a server may take to let us in.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Errors of the server after which there is no connection any more: shut down, killed, idle for too long.
const ENDS_CONNECTION: [u16; 5] = [1053, 1080, 1927, 3169, 4031];

const ACCESS_DENIED: u16 = 1045;
const TOO_MANY_CONNECTIONS: u16 = 1040;
const UNKNOWN_DATABASE: u16 = 1049;

/// The way to a server.
pub struct Link {
    /// Which database answers there.
    pub dialect: &'static dyn Dialect,
    pub server: Server,
    /// Whether the URL names the namespace.
    names_namespace: bool,
    opts: Opts,
    /// Who answered first.
    identity: OnceLock<String>,
    leads_to_several: AtomicBool,
}

impl Link {
    pub fn of(dialect: &'static dyn Dialect, url: &TargetUrl) -> Result<Self, DriverError> {
        let server = Server::of(url, dialect.default_port(), dialect.options())?;
        let [(host, port)] = server.hosts.as_slice() else {
            return Err(url.error("expected one host, not several"));
        };
        let opts = OptsBuilder::default()
            .ip_or_hostname(host)
            .tcp_port(*port)
            .user(server.user.as_ref())
            .pass(server.password.as_ref())
            .db_name(server.database.as_ref())
            .ssl_opts(ssl_opts(&server.tls))
            // The library would change over to a socket of this machine unasked, and prepare statements behind our back.
            .prefer_socket(false)
            .stmt_cache_size(0)
            .into();
        let names_namespace = url.option("namespace").is_some();
        Ok(Self { dialect, server, names_namespace, opts, identity: OnceLock::new(), leads_to_several: AtomicBool::new(false) })
    }

    /// Logs in.
    pub async fn connect(&self) -> Result<Conn, DriverError> {
        self.connect_with(self.dialect.session_settings()).await
    }

    /// Logs in as any client does. Statements find the tables of the namespace where the URL names it, else those of its database.
    pub async fn connect_as_recorded(&self, read_only: bool) -> Result<Conn, DriverError> {
        let mut connection = self.connect_with(self.dialect.replay_settings()).await?;
        if self.names_namespace {
            self.enter(&mut connection).await?;
        }
        if read_only {
            connection.query_drop(self.dialect.read_only()).await.map_err(|error| self.error(error))?;
        }
        Ok(connection)
    }

    async fn connect_with(&self, settings: &str) -> Result<Conn, DriverError> {
        let connecting = async {
            let mut connection = Conn::new(self.opts.clone()).await?;
            connection.query_drop(settings).await?;
            self.recognize(connection.query_first(self.dialect.identity()).await?.unwrap_or_default());
            Ok(connection)
        };
        match timeout(CONNECT_LIMIT, connecting).await {
            Ok(connected) => connected.map_err(|error| self.refusal(error)),
            Err(_) => Err(self.connection_error(format!(
                "no answer within {} s; check host and port, and whether a firewall is between",
                CONNECT_LIMIT.as_secs()
            ))),
        }
    }

    fn recognize(&self, identity: String) {
        if *self.identity.get_or_init(|| identity.clone()) != identity {
            self.leads_to_several.store(true, Ordering::Relaxed);
        }
    }

    /// True when different servers answered at the address, so that the number of a connection says nothing without its server.
    pub fn leads_to_several(&self) -> bool {
        self.leads_to_several.load(Ordering::Relaxed)
    }

    /// Logs in and enters sensorbench's own database.
    pub async fn connect_inside(&self) -> Result<Conn, DriverError> {
        let mut connection = self.connect().await?;
        self.enter(&mut connection).await?;
        Ok(connection)
    }

    async fn enter(&self, connection: &mut Conn) -> Result<(), DriverError> {
        let namespace = &self.server.namespace;
        match connection.query_drop(self.dialect.enter(namespace)).await {
            Ok(()) => Ok(()),
            Err(Error::Server(error)) if error.code == UNKNOWN_DATABASE => Err(DriverError::Namespace(format!(
                "{}: there is no database {namespace}; nothing was created there yet",
                self.server.shown()
            ))),
            Err(error) => Err(self.error(error)),
        }
    }

    /// Why a connection was not made.
    fn refusal(&self, error: Error) -> DriverError {
        let advice = match &error {
            Error::Server(error) => match error.code {
                ACCESS_DENIED => "check user and password",
                TOO_MANY_CONNECTIONS => "lower connections= in the URL, or raise max_connections of the server",
                UNKNOWN_DATABASE => "leave the database out of the URL, or name one that is there",
                _ => "the server refused the connection",
            },
            Error::Io(error) if is_about_tls(error) => {
                "check the certificates (ca=, certificate=, key=) and the host's name in them"
            }
            Error::Driver(mysql_async::DriverError::NoClientSslFlagFromServer) => "set up TLS at the server, or give tls=off",
            _ => "is the server running, and are host and port right?",
        };
        self.connection_error(format!("{}; {advice}", reason(&error)))
    }

    /// What went wrong with a statement: refused by the server, or the connection was lost.
    pub fn error(&self, error: Error) -> DriverError {
        match error {
            Error::Server(error) if !ENDS_CONNECTION.contains(&error.code) => DriverError::Statement(error.to_string()),
            lost => self.connection_error(format!("the connection was lost ({}); is the server still running?", reason(&lost))),
        }
    }

    /// An error of the connection to this server.
    pub fn connection_error(&self, message: String) -> DriverError {
        DriverError::Connection(format!("{}: {message}", self.server.shown()))
    }
}

/// The error without the library's frames around it.
fn reason(error: &Error) -> String {
    match error {
        Error::Server(error) => error.to_string(),
        Error::Driver(error) => error.to_string(),
        Error::Io(IoError::Io(error)) => error.to_string(),
        Error::Io(IoError::Tls(error)) => error.to_string(),
        other => other.to_string(),
    }
}

/// What goes wrong in the handshake comes as data that make no sense.
fn is_about_tls(error: &IoError) -> bool {
    match error {
        IoError::Tls(_) => true,
        IoError::Io(error) => error.kind() == std::io::ErrorKind::InvalidData,
    }
}

fn ssl_opts(tls: &Tls) -> Option<SslOpts> {
    if tls.mode == TlsMode::Off {
        return None;
    }
    Tls::choose_ciphers();
    let unverified = tls.mode == TlsMode::Unverified;
    let identity = tls.identity.clone().map(|(certificate, key)| ClientIdentity::new(certificate.into(), key.into()));
    let options = SslOpts::default()
        .with_root_certs(tls.ca.clone().into_iter().map(Into::into).collect())
        .with_disable_built_in_roots(tls.ca.is_some())
        .with_client_identity(identity)
        .with_danger_accept_invalid_certs(unverified)
        .with_danger_skip_domain_validation(unverified);
    Some(options)
}

#[cfg(test)]
mod tests {
    use mysql_async::ServerError;

    use super::*;
    use crate::dialect::Mysql;

    fn link(url: &str) -> Link {
        Link::of(&Mysql, &TargetUrl::parse(url).unwrap()).unwrap()
    }

    #[test]
    fn errors_say_what_to_do_and_hold_no_password() {
        let link = link("mysql://me:secret@db.example");
        let server = |code: u16| Error::Server(ServerError { code, message: "so it is".into(), state: "HY000".into() });
        let refused = link.refusal(server(ACCESS_DENIED));
        assert_eq!(refused.to_string(), "db.example:3306: ERROR 1045 (HY000): so it is; check user and password");
        assert!(matches!(link.error(server(1062)), DriverError::Statement(message) if message == "ERROR 1062 (HY000): so it is"));
        assert!(matches!(link.error(server(1927)), DriverError::Connection(message) if !message.contains("secret")));
    }

    #[test]
    fn servers_behind_one_address_are_told_apart() {
        let link = link("mysql://host");
        for (identity, leads_to_several) in [("a:3306:1", false), ("a:3306:1", false), ("b:3306:1", true), ("a:3306:1", true)] {
            link.recognize(identity.to_owned());
            assert_eq!(link.leads_to_several(), leads_to_several);
        }
    }

    #[test]
    fn tls_is_as_the_url_says() {
        assert!(link("mysql://host").opts.ssl_opts().is_none());
        let verified = link("mysql://host?tls=on");
        assert!(!verified.opts.ssl_opts().unwrap().accept_invalid_certs());
        assert!(!verified.opts.ssl_opts().unwrap().disable_built_in_roots());
        assert!(link("mysql://host?tls=unverified").opts.ssl_opts().unwrap().accept_invalid_certs());
    }
}
