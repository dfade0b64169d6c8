//! Where the gateways are, and how they are talked to.

use sensorbench_driver::{Administration, DriverError, Server, TargetUrl, TlsMode};

use crate::bindings::TDurability;

const PORT: u16 = 9090;
const OPTIONS: [&str; 6] = ["admin", "durability", "load_durability", "page", "scanner_caching", "transport"];
/// Rows that a gateway sends in one answer of a scan.
const PAGE_ROWS: i32 = 1000;

/// The gateways of a cluster, and sensorbench's namespace there.
#[derive(Clone)]
pub struct Target {
    /// Hosts and ports, as they stand in messages.
    pub shown: String,
    /// Host and port of each gateway.
    pub hosts: Vec<(String, u16)>,
    /// sensorbench's namespace.
    pub namespace: String,
    /// The most connections of a run; one for each operation in flight if not given.
    pub connections: Option<usize>,
    /// Whether messages come in frames.
    pub framed: bool,
    /// What a write waits for.
    pub durability: Durability,
    /// What a write waits for while tables are loaded.
    pub load_durability: Durability,
    /// Rows that a gateway sends in one answer.
    pub page: i32,
    /// Rows that a gateway fetches from a region server at a time.
    pub caching: i32,
    /// Where what gateways cannot do is asked for.
    pub admin: Option<(String, u16)>,
}

/// What a write waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Durability {
    /// The word in the URL.
    pub name: &'static str,
    /// The word of the gateway.
    pub word: TDurability,
}

const DURABILITIES: [Durability; 5] = [
    Durability { name: "default", word: TDurability::USE_DEFAULT },
    Durability { name: "skip", word: TDurability::SKIP_WAL },
    Durability { name: "async", word: TDurability::ASYNC_WAL },
    Durability { name: "sync", word: TDurability::SYNC_WAL },
    Durability { name: "fsync", word: TDurability::FSYNC_WAL },
];

impl Target {
    pub fn of(url: &TargetUrl) -> Result<Self, DriverError> {
        let server = Server::of(url, PORT, &OPTIONS)?;
        if server.tls.mode != TlsMode::Off {
            return Err(url.error("option tls: connections to gateways are not encrypted here; expected tls=off"));
        }
        if server.user.is_some() || server.password.is_some() {
            return Err(url.error("user and password: gateways ask for none here; expected hbase://HOST[:PORT]"));
        }
        if server.database.is_some() {
            return Err(url.error("expected hbase://HOST[:PORT][,HOST[:PORT]]…, and the namespace as namespace="));
        }
        let framed = match url.option("transport") {
            None | Some("buffered") => false,
            Some("framed") => true,
            Some(other) => return Err(url.error(format!("option transport={other}: expected buffered or framed"))),
        };
        let durability = durability(url, "durability")?.unwrap_or(DURABILITIES[0]);
        let page = rows(url, "page")?.unwrap_or(PAGE_ROWS);
        Ok(Self {
            shown: server.shown(),
            hosts: server.hosts,
            namespace: server.namespace,
            connections: server.connections,
            framed,
            durability,
            load_durability: self::durability(url, "load_durability")?.unwrap_or(durability),
            page,
            caching: rows(url, "scanner_caching")?.unwrap_or(page),
            admin: url.option("admin").map(|address| admin(url, address)).transpose()?,
        })
    }

    /// The name of a table as the gateway takes it.
    pub fn table(&self, name: &str) -> Vec<u8> {
        format!("{}:{name}", self.namespace).into_bytes()
    }
}

fn durability(url: &TargetUrl, option: &str) -> Result<Option<Durability>, DriverError> {
    let Some(word) = url.option(option) else { return Ok(None) };
    let found = DURABILITIES.into_iter().find(|durability| durability.name == word);
    let expected = || format!("option {option}={word}: expected one of default, skip, async, sync, fsync");
    found.map(Some).ok_or_else(|| url.error(expected()))
}

fn rows(url: &TargetUrl, option: &str) -> Result<Option<i32>, DriverError> {
    const EXPECTED: &str = "a number of rows from 1 to 1000000";
    match url.parsed_option::<i32>(option, EXPECTED)? {
        Some(rows) if !(1..=1_000_000).contains(&rows) => Err(url.error(format!("option {option}={rows}: expected {EXPECTED}"))),
        rows => Ok(rows),
    }
}

fn admin(url: &TargetUrl, address: &str) -> Result<(String, u16), DriverError> {
    Administration::address(address)
        .ok_or_else(|| url.error(format!("option admin={address}: expected HOST:PORT of the lab's administration")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Result<Target, DriverError> {
        Target::of(&TargetUrl::parse(text).unwrap())
    }

    #[test]
    fn a_url_says_where_gateways_are_and_how_they_are_used() {
        let target = target(
            "hbase://a,b:9191?durability=async&load_durability=skip&page=50&transport=framed&admin=a:7777&namespace=mine&connections=4",
        )
        .unwrap();
        assert_eq!(target.shown, "a:9090,b:9191");
        assert_eq!((target.durability.word, target.load_durability.word), (TDurability::ASYNC_WAL, TDurability::SKIP_WAL));
        assert_eq!((target.page, target.caching, target.framed), (50, 50, true));
        assert_eq!((target.admin.clone(), target.connections), (Some(("a".to_owned(), 7777)), Some(4)));
        assert_eq!(target.table("t"), b"mine:t");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, expected) in [
            ("hbase://a?durability=maybe", "expected one of default, skip, async, sync, fsync"),
            ("hbase://a?transport=http", "expected buffered or framed"),
            ("hbase://a?page=0", "a number of rows"),
            ("hbase://a?admin=a", "expected HOST:PORT"),
            ("hbase://a?tls=on", "not encrypted here"),
            ("hbase://me:secret@a", "gateways ask for none"),
            ("hbase://a/mine", "the namespace as namespace="),
        ] {
            let message = target(text).err().expect(text).to_string();
            assert!(message.contains(expected) && !message.contains("secret"), "{message}");
        }
    }
}
