//! Where the server is, and how it is talked to.

use std::time::Duration;

use bson::{Bson, Document, doc};
use mongodb::options::{
    AuthMechanism, ClientOptions, Credential, ReadPreference, SelectionCriteria, ServerAddress, Tls, TlsOptions, WriteConcern,
};
use mongodb::{Client, Database};
use sensorbench_driver::{DriverError, Server, TargetUrl, TlsMode};

const PORT: u16 = 27017;
/// What the schemes begin with by which FerretDB is named.
const FERRETDB: &str = "ferretdb";
/// How long a server is looked for.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const OPTIONS: [&str; 7] =
    ["auth_mechanism", "direct", "journal", "read_concern", "read_preference", "replica_set", "write_concern"];
const READ_CONCERNS: [&str; 5] = ["local", "available", "majority", "linearizable", "snapshot"];

/// A server, replica set or sharded cluster, and sensorbench's database there.
pub struct Target {
    /// Hosts and ports, as they stand in messages.
    pub shown: String,
    /// Name of sensorbench's database.
    pub namespace: String,
    /// Connections of one client thread, if the URL says so.
    pub connections: Option<usize>,
    /// What every write says of how safe it is to be; empty if the URL says nothing.
    pub write_concern: Document,
    /// What every read says of what it may see; empty if the URL says nothing.
    pub read_concern: Document,
    /// Which members of a replica set are read from.
    pub read_preference: Option<SelectionCriteria>,
    /// The same as people say it.
    pub read_from: String,
    options: ClientOptions,
}

impl Target {
    pub fn of(url: &TargetUrl) -> Result<Self, DriverError> {
        let server = Server::of(url, PORT, &OPTIONS)?;
        Ok(Self {
            shown: server.shown(),
            write_concern: write_concern(url)?,
            read_concern: word_of(url, "read_concern", &READ_CONCERNS)?.map_or_else(Document::new, |level| doc! {"level": level}),
            read_preference: read_preference(url)?.map(SelectionCriteria::ReadPreference),
            read_from: url.option("read_preference").unwrap_or("primary").to_owned(),
            options: options(url, &server)?,
            namespace: server.namespace,
            connections: server.connections,
        })
    }

    /// A client with this many connections at most, which are opened as they are needed.
    pub fn client(&self, connections: usize) -> Result<Client, DriverError> {
        let mut options = self.options.clone();
        let connections = connections as u32;
        (options.max_pool_size, options.max_connecting) = (Some(connections), Some(connections));
        Client::with_options(options).map_err(|error| DriverError::Url(format!("the server at {}: {error}", self.shown)))
    }

    /// What writes say of how safe they are to be, in the library's words; None if the URL says nothing.
    pub fn library_write_concern(&self) -> Option<WriteConcern> {
        if self.write_concern.is_empty() { None } else { bson::deserialize_from_document(self.write_concern.clone()).ok() }
    }

    /// sensorbench's own database.
    pub fn database(&self, client: &Client) -> Database {
        client.database(&self.namespace)
    }
}

fn options(url: &TargetUrl, server: &Server) -> Result<ClientOptions, DriverError> {
    let host = |(host, port): &(String, u16)| ServerAddress::Tcp { host: host.clone(), port: Some(*port) };
    let mut options = ClientOptions::default();
    options.hosts = server.hosts.iter().map(host).collect();
    options.app_name = Some("sensorbench".to_owned());
    options.connect_timeout = Some(CONNECT_TIMEOUT);
    options.server_selection_timeout = Some(CONNECT_TIMEOUT);
    options.repl_set_name = url.option("replica_set").map(str::to_owned);
    options.direct_connection = switch(url, "direct")?;
    options.credential = credential(url, server)?;
    options.tls = tls(url, server)?;
    // Each operation is one attempt, whose outcome counts.
    (options.retry_reads, options.retry_writes) = (Some(false), Some(false));
    Ok(options)
}

fn credential(url: &TargetUrl, server: &Server) -> Result<Option<Credential>, DriverError> {
    let mechanism = match word_of(url, "auth_mechanism", &["scram-sha-1", "scram-sha-256", "plain", "x509"])? {
        Some("scram-sha-1") => Some(AuthMechanism::ScramSha1),
        Some("scram-sha-256") => Some(AuthMechanism::ScramSha256),
        Some("plain") => Some(AuthMechanism::Plain),
        Some(_) => Some(AuthMechanism::MongoDbX509),
        // Of itself FerretDB 1 knows no other: it hands passwords on to what is behind it.
        None if url.scheme.starts_with(FERRETDB) && server.user.is_some() => Some(AuthMechanism::Plain),
        None => None,
    };
    if server.user.is_none() && mechanism.is_none() {
        return Ok(None);
    }
    let mut credential = Credential::default();
    credential.username = server.user.clone();
    credential.password = server.password.clone();
    credential.source = server.database.clone();
    credential.mechanism = mechanism;
    Ok(Some(credential))
}

fn tls(url: &TargetUrl, server: &Server) -> Result<Option<Tls>, DriverError> {
    if server.tls.mode == TlsMode::Off {
        return Ok(None);
    }
    sensorbench_driver::Tls::choose_ciphers();
    let identity = match &server.tls.identity {
        Some((certificate, key)) if certificate != key => {
            return Err(url.error("options certificate and key: expected the same file, with both in it (PEM)"));
        }
        identity => identity.as_ref().map(|(certificate, _)| certificate.clone()),
    };
    let mut options = TlsOptions::default();
    options.ca_file_path = server.tls.ca.clone();
    options.cert_key_file_path = identity;
    options.allow_invalid_certificates = Some(server.tls.mode == TlsMode::Unverified);
    Ok(Some(Tls::Enabled(options)))
}

fn write_concern(url: &TargetUrl) -> Result<Document, DriverError> {
    let mut concern = Document::new();
    match url.option("write_concern").map(|text| (text, text.parse::<i32>())) {
        None => {}
        Some((_, Ok(members))) if members > 0 => drop(concern.insert("w", members)),
        Some((text, Ok(_))) => {
            return Err(url.error(format!(
                "option write_concern={text}: expected a number above zero, majority or a name; what is not acknowledged cannot be \
                 measured"
            )));
        }
        Some((name, Err(_))) => drop(concern.insert("w", name)),
    }
    concern.extend(switch(url, "journal")?.map(|journal| ("j".to_owned(), Bson::Boolean(journal))));
    Ok(concern)
}

fn read_preference(url: &TargetUrl) -> Result<Option<ReadPreference>, DriverError> {
    let known = ["primary", "primary_preferred", "secondary", "secondary_preferred", "nearest"];
    let options = None;
    Ok(word_of(url, "read_preference", &known)?.map(|word| match word {
        "primary" => ReadPreference::Primary,
        "primary_preferred" => ReadPreference::PrimaryPreferred { options },
        "secondary" => ReadPreference::Secondary { options },
        "secondary_preferred" => ReadPreference::SecondaryPreferred { options },
        _ => ReadPreference::Nearest { options },
    }))
}

fn switch(url: &TargetUrl, key: &str) -> Result<Option<bool>, DriverError> {
    Ok(word_of(url, key, &["on", "off"])?.map(|word| word == "on"))
}

fn word_of<'a>(url: &'a TargetUrl, key: &str, known: &[&str]) -> Result<Option<&'a str>, DriverError> {
    match url.option(key) {
        Some(word) if !known.contains(&word) => {
            Err(url.error(format!("option {key}={word}: expected one of {}", known.join(", "))))
        }
        word => Ok(word),
    }
}

#[cfg(test)]
mod tests {
    use mongodb::options::Acknowledgment;

    use super::*;

    fn target(text: &str) -> Result<Target, DriverError> {
        Target::of(&TargetUrl::parse(text).unwrap())
    }

    #[test]
    fn a_url_says_everything_that_connecting_needs() {
        let url = "mongodb://me:secret@a,b:27018/users?namespace=mine&replica_set=rs0&write_concern=majority&journal=on\
                   &read_concern=majority&read_preference=secondary_preferred&direct=off&auth_mechanism=scram-sha-256";
        let target = target(url).unwrap();
        assert_eq!((target.shown.as_str(), target.namespace.as_str()), ("a:27017,b:27018", "mine"));
        assert_eq!(target.write_concern, doc! {"w": "majority", "j": true});
        let concern = target.library_write_concern().unwrap();
        assert_eq!((concern.w, concern.journal), (Some(Acknowledgment::Majority), Some(true)));
        assert_eq!(target.read_concern, doc! {"level": "majority"});
        let preference = SelectionCriteria::ReadPreference(ReadPreference::SecondaryPreferred { options: None });
        assert_eq!(target.read_preference, Some(preference));
        assert_eq!(target.options.repl_set_name.as_deref(), Some("rs0"));
        assert_eq!(target.options.direct_connection, Some(false));
        let credential = target.options.credential.unwrap();
        assert_eq!((credential.username.as_deref(), credential.source.as_deref()), (Some("me"), Some("users")));
        assert_eq!(credential.mechanism, Some(AuthMechanism::ScramSha256));
    }

    #[test]
    fn what_is_not_said_is_left_to_the_server() {
        let target = target("mongodb://h?write_concern=2").unwrap();
        assert_eq!((target.write_concern, target.read_concern), (doc! {"w": 2}, doc! {}));
        assert!(target.options.credential.is_none() && target.options.tls.is_none() && target.read_preference.is_none());
    }

    #[test]
    fn ferretdb_is_told_passwords_as_it_can_hand_them_on() {
        let mechanism = |url| target(url).unwrap().options.credential.map(|credential| credential.mechanism);
        assert_eq!(mechanism("ferretdb+postgresql://me:secret@h"), Some(Some(AuthMechanism::Plain)));
        assert_eq!(mechanism("ferretdb://me:secret@h?auth_mechanism=scram-sha-256"), Some(Some(AuthMechanism::ScramSha256)));
        assert_eq!(mechanism("mongodb://me:secret@h"), Some(None));
        assert_eq!(mechanism("ferretdb://h"), None);
    }

    #[test]
    fn wrong_options_are_told_without_the_password() {
        for (options, expected) in [
            ("write_concern=0", "not acknowledged cannot be measured"),
            ("journal=yes", "expected one of on, off"),
            ("read_concern=strong", "expected one of local, available"),
            ("read_preference=any", "expected one of primary, primary_preferred"),
            ("auth_mechanism=md5", "expected one of scram-sha-1"),
            ("tls=on&certificate=Cargo.toml&key=src/lib.rs", "expected the same file"),
        ] {
            let message = target(&format!("mongodb://me:secret@h?{options}")).err().expect(options).to_string();
            assert!(message.contains(expected) && !message.contains("secret"), "{message}");
        }
    }
}
