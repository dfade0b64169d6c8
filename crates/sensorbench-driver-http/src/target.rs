//! Where a server is, how it is reached and how one logs in there.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use sensorbench_driver::{DriverError, Server, TargetUrl, TlsMode};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Options of a URL besides those of every server.
const OPTIONS: [&str; 2] = ["auth", "gzip"];

/// A server, and how one talks to it.
pub struct Target {
    /// Host and port, as they stand in messages.
    pub shown: String,
    /// The same for requests.
    pub host_header: HeaderValue,
    /// sensorbench's own part of the server.
    pub namespace: String,
    /// Connections of one client thread, if the URL says so.
    pub connections: Option<usize>,
    /// Whether bodies are compressed, both ways. It pays where the network is slower than the compression.
    pub gzip: bool,
    /// What the URL says for the protocol's own options.
    pub options: BTreeMap<&'static str, String>,
    /// What each request says of who sends it.
    pub authorization: Option<HeaderValue>,
    /// What to say of what runs there.
    product: &'static str,
    host: String,
    port: u16,
    tls: Option<Arc<ClientConfig>>,
}

/// A connection: encrypted or not.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Target {
    /// Reads a URL.
    pub fn of(
        url: &TargetUrl,
        product: &'static str,
        default_port: u16,
        own_options: &[&'static str],
    ) -> Result<Self, DriverError> {
        let server = Server::of(url, default_port, &[OPTIONS.as_slice(), own_options].concat())?;
        let [(host, port)] = server.hosts.as_slice() else { return Err(url.error("expected one host")) };
        if server.database.is_some() {
            return Err(url.error("nothing follows the host; name sensorbench's own part of the server with namespace="));
        }
        let gzip = match url.option("gzip") {
            None | Some("off") => false,
            Some("on") => true,
            Some(other) => return Err(url.error(format!("option gzip={other}: expected on or off"))),
        };
        let is_encrypted = server.tls.mode != TlsMode::Off;
        let shown = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let host_header = HeaderValue::from_str(&shown).map_err(|_| url.error("the host has characters that no name has"))?;
        Ok(Self {
            shown,
            host_header,
            connections: server.connections,
            gzip,
            options: own_options.iter().filter_map(|name| Some((*name, url.option(name)?.to_owned()))).collect(),
            authorization: authorization(url, &server)?,
            product,
            host: host.clone(),
            port: *port,
            tls: is_encrypted.then(|| server.tls.client_config(url).map(Arc::new)).transpose()?,
            namespace: server.namespace,
        })
    }

    /// Opens a connection.
    pub async fn open(&self) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(self.host.clone()).map_err(io::Error::other)?;
        Ok(Box::new(TlsConnector::from(tls.clone()).connect(name, stream).await?))
    }

    /// An error of the connection, and what to do.
    pub fn unreachable(&self, problem: impl fmt::Display) -> DriverError {
        let Self { shown, product, .. } = self;
        DriverError::Connection(format!(
            "the server at {shown}: {problem}; check that {product} runs there, the port, and whether it wants tls=on"
        ))
    }

    /// What the server says of somebody whom it does not let in, and what to do.
    pub fn not_let_in(&self, problem: impl fmt::Display) -> DriverError {
        DriverError::Connection(format!(
            "the server at {}: {problem}; give user and password in the URL, by its option credentials, or in the environment; a token \
             goes in the place of the password, with auth=token or auth=bearer",
            self.shown
        ))
    }
}

/// The header that user and password, or a token in the password's place, become.
fn authorization(url: &TargetUrl, server: &Server) -> Result<Option<HeaderValue>, DriverError> {
    let missing = |what: &str| url.error(format!("auth={what}: expected a token in the place of the password"));
    let text = match (url.option("auth").unwrap_or("basic"), &server.user, &server.password) {
        ("basic", None, None) => return Ok(None),
        ("basic", user, password) => {
            let both = format!("{}:{}", user.as_deref().unwrap_or(""), password.as_deref().unwrap_or(""));
            format!("Basic {}", STANDARD.encode(both))
        }
        ("token", _, Some(token)) => format!("Token {token}"),
        ("bearer", _, Some(token)) => format!("Bearer {token}"),
        (kind @ ("token" | "bearer"), _, None) => return Err(missing(kind)),
        (other, _, _) => return Err(url.error(format!("option auth={other}: expected basic, token or bearer"))),
    };
    // The text itself is a secret and stays out of the message.
    let mut header = HeaderValue::from_str(&text).map_err(|_| url.error("the token has characters that no header can have"))?;
    header.set_sensitive(true);
    Ok(Some(header))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Result<Target, DriverError> {
        Target::of(&TargetUrl::parse(url).unwrap(), "it", 80, &[])
    }

    #[test]
    fn a_url_says_where_the_server_is_and_who_asks() {
        let header = |url: &str| target(url).unwrap().authorization.map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(header("influxdb://host"), None);
        assert_eq!(header("influxdb://me:secret@host").as_deref(), Some("Basic bWU6c2VjcmV0"));
        assert_eq!(header("influxdb://:secret@host?auth=token").as_deref(), Some("Token secret"));
        assert_eq!(header("influxdb://:secret@host?auth=bearer").as_deref(), Some("Bearer secret"));
        assert_eq!(target("influxdb://[::1]:8086").unwrap().shown, "[::1]:8086");
        assert!(target("influxdb://host?gzip=on").unwrap().gzip);
    }

    #[test]
    fn what_makes_no_sense_is_refused_without_the_secret() {
        for (url, expected) in [
            ("influxdb://a,b", "expected one host"),
            ("influxdb://:secret@host/db", "namespace="),
            ("influxdb://:secret@host?gzip=maybe", "expected on or off"),
            ("influxdb://:secret@host?auth=digest", "expected basic, token or bearer"),
            ("influxdb://host?auth=token", "expected a token in the place of the password"),
            ("influxdb://:secret%0A@host?auth=token", "no header can have"),
        ] {
            let message = target(url).err().expect(url).to_string();
            assert!(message.contains(expected) && !message.contains("secret"), "{message}");
        }
    }
}
