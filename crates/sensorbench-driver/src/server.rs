//! Where a server is and how to log in there: `scheme://user:password@host:port/database?option=value`.

use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use serde::Deserialize;

use crate::{DriverError, TargetUrl};

/// Options that every driver of a server knows.
pub const SERVER_OPTIONS: [&str; 7] = ["ca", "certificate", "connections", "credentials", "key", "namespace", "tls"];

/// The namespace where none is named.
const NAMESPACE: &str = "sensorbench";

/// What a URL says of a server. Not shown anywhere, because it holds the password.
#[derive(Clone)]
pub struct Server {
    /// Hosts with ports; more than one for clusters.
    pub hosts: Vec<(String, u16)>,
    /// The user, if one is named in the URL, the file of credentials or the environment.
    pub user: Option<String>,
    /// The password, from the same places.
    pub password: Option<String>,
    /// What follows the host in the URL.
    pub database: Option<String>,
    /// sensorbench's own database, schema or key prefix at the server: a word.
    pub namespace: String,
    /// How many connections each client thread keeps; the driver's own choice if not given.
    pub connections: Option<usize>,
    /// Encryption.
    pub tls: Tls,
}

/// Whether and how connections are encrypted.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// Off, on with the server's certificate verified, or on without looking at it.
    pub mode: TlsMode,
    /// Certificates of authorities (PEM), instead of the well-known ones.
    pub ca: Option<PathBuf>,
    /// The client's certificate and key (PEM).
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// How far encryption goes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum TlsMode {
    /// Not encrypted.
    #[default]
    Off,
    /// Encrypted, the server's certificate verified.
    Verified,
    /// Encrypted, the server's certificate not verified.
    Unverified,
}

/// Who logs in; also the form of a file of credentials (TOML). Not shown anywhere, because it holds the password.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// The user.
    pub user: Option<String>,
    /// The password.
    pub password: Option<String>,
}

impl Login {
    /// User and password: those that are given, else from the file that the option `credentials` names, else from the environment
    /// (`SENSORBENCH_<SCHEME>_USER`, `SENSORBENCH_<SCHEME>_PASSWORD`).
    pub fn of(url: &TargetUrl, given: Login) -> Result<Self, DriverError> {
        let file = url.option("credentials").map(|path| read_credentials(url, Path::new(path))).transpose()?.unwrap_or_default();
        let from_environment = |what: &str| std::env::var(variable(&url.scheme, what)).ok();
        Ok(Self {
            user: given.user.or(file.user).or_else(|| from_environment("USER")),
            password: given.password.or(file.password).or_else(|| from_environment("PASSWORD")),
        })
    }
}

impl Server {
    /// Reads a URL. `more_options` are those of the driver besides [`SERVER_OPTIONS`].
    ///
    /// User and password come from the URL, else from where [`Login`] finds them.
    pub fn of(url: &TargetUrl, default_port: u16, more_options: &[&str]) -> Result<Self, DriverError> {
        let mut known = [&SERVER_OPTIONS, more_options].concat();
        known.sort_unstable();
        url.check_options(&known)?;
        let expected = || url.error(format!("expected {}://HOST[:PORT][/DATABASE]", url.scheme));
        let rest = url.rest.strip_prefix("//").ok_or_else(expected)?;
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (user_info, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = user_info.split_once(':').map_or((user_info, None), |(user, password)| (user, Some(password)));
        let decode = |text: &str| {
            let decoded = percent_decode_str(text).decode_utf8();
            decoded
                .map(|text| text.into_owned())
                .map_err(|_| url.error("a part is not UTF-8 after its percent signs are decoded"))
        };
        let given = |text: &str| (!text.is_empty()).then(|| decode(text)).transpose();
        let login = Login::of(url, Login { user: given(user)?, password: password.map(decode).transpose()? })?;
        Ok(Self {
            hosts: hosts
                .split(',')
                .map(|host| host_and_port(host, default_port).ok_or_else(expected))
                .collect::<Result<_, _>>()?,
            user: login.user,
            password: login.password,
            database: given(database)?,
            namespace: namespace_of(url)?,
            connections: url.parsed_option("connections", "a number above zero")?.map(std::num::NonZeroUsize::get),
            tls: tls(url)?,
        })
    }

    /// Hosts and ports as they stand in messages.
    pub fn shown(&self) -> String {
        self.hosts.iter().map(|(host, port)| format!("{host}:{port}")).collect::<Vec<_>>().join(",")
    }
}

fn variable(scheme: &str, what: &str) -> String {
    format!("SENSORBENCH_{}_{what}", scheme.to_ascii_uppercase().replace('+', "_"))
}

fn host_and_port(text: &str, default_port: u16) -> Option<(String, u16)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            (host, after.strip_prefix(':'))
        }
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Some(default_port), |port| port.parse().ok())?;
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

/// The namespace that a URL names, else the usual one: a word.
pub fn namespace_of(url: &TargetUrl) -> Result<String, DriverError> {
    let namespace = url.option("namespace").unwrap_or(NAMESPACE);
    let expected = "expected at most 48 small letters, digits and underscores, a letter first";
    if is_namespace(namespace) {
        Ok(namespace.to_owned())
    } else {
        Err(url.error(format!("option namespace={namespace}: {expected}")))
    }
}

/// Whether this can be the name of a namespace.
pub fn is_namespace(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && name.len() <= 48
}

fn tls(url: &TargetUrl) -> Result<Tls, DriverError> {
    let path = |key: &str| url.option(key).map(PathBuf::from);
    let mode = match url.option("tls") {
        None | Some("off") => TlsMode::Off,
        Some("on") => TlsMode::Verified,
        Some("unverified") => TlsMode::Unverified,
        Some(other) => return Err(url.error(format!("option tls={other}: expected off, on or unverified"))),
    };
    let identity = match (path("certificate"), path("key")) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err(url.error("options certificate and key belong together")),
    };
    if mode == TlsMode::Off && (url.option("ca").is_some() || identity.is_some()) {
        return Err(url.error("options ca, certificate and key need tls=on"));
    }
    let named = [path("ca"), identity.clone().map(|(certificate, _)| certificate), identity.clone().map(|(_, key)| key)];
    if let Some(missing) = named.into_iter().flatten().find(|path| !path.is_file()) {
        return Err(url.error(format!("there is no file {}", missing.display())));
    }
    Ok(Tls { mode, ca: path("ca"), identity })
}

fn read_credentials(url: &TargetUrl, path: &Path) -> Result<Login, DriverError> {
    let text = std::fs::read_to_string(path).map_err(|error| url.error(format!("credentials {}: {error}", path.display())))?;
    // The parser's own message would quote the line, which may hold the password.
    toml::from_str(&text)
        .map_err(|_| url.error(format!("credentials {}: expected user = \"…\" and password = \"…\"", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(text: &str) -> Result<Server, DriverError> {
        Server::of(&TargetUrl::parse(text).unwrap(), 5432, &["extra"])
    }

    #[test]
    fn a_url_names_hosts_credentials_and_database() {
        let server = server("postgresql://me:p%40ss@db.example,[::1]:6543/power?namespace=mine&connections=3&extra=1").unwrap();
        assert_eq!(server.hosts, [("db.example".to_owned(), 5432), ("::1".to_owned(), 6543)]);
        assert_eq!((server.user.as_deref(), server.password.as_deref()), (Some("me"), Some("p@ss")));
        assert_eq!((server.database.as_deref(), server.namespace.as_str()), (Some("power"), "mine"));
        assert_eq!((server.connections, server.tls.mode), (Some(3), TlsMode::Off));
    }

    #[test]
    fn credentials_come_from_a_file_too() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("login.toml");
        std::fs::write(&file, "user = 'me'\npassword = 'secret'").unwrap();
        let server = server(&format!("postgresql://host?credentials={}", file.display())).unwrap();
        assert_eq!((server.user.as_deref(), server.password.as_deref()), (Some("me"), Some("secret")));
        std::fs::write(&file, "passwort = 'secret'").unwrap();
        let message =
            super::tests::server(&format!("postgresql://host?credentials={}", file.display())).err().unwrap().to_string();
        assert!(message.contains("expected user") && !message.contains("secret"), "{message}");
    }

    #[test]
    fn what_makes_no_sense_is_refused_without_showing_the_password() {
        for (text, expected) in [
            ("postgresql:me:secret@host", "expected postgresql://HOST"),
            ("postgresql://me:secret@host:port", "expected postgresql://HOST"),
            ("postgresql://me:secret@", "expected postgresql://HOST"),
            ("postgresql://me:secret@host?tls=maybe", "expected off, on or unverified"),
            ("postgresql://me:secret@host?ca=x", "need tls=on"),
            ("postgresql://me:secret@host?tls=on&ca=/nowhere", "no file /nowhere"),
            ("postgresql://me:secret@host?namespace=drop;", "small letters"),
            ("postgresql://me:secret@host?connections=0", "a number above zero"),
            (
                "postgresql://me:secret@host?conections=1",
                "unknown option conections; expected one of ca, certificate, connections",
            ),
        ] {
            let message = server(text).err().expect(text).to_string();
            assert!(message.contains(expected), "{message}");
            assert!(!message.contains("secret"), "{message}");
        }
    }
}
