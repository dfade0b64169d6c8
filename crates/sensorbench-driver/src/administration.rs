//! What a server cannot be asked by its clients' protocol, asked of the lab's administration (`admin=`): a line with a command in, a line of JSON
//! out.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::error::DriverError;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer may take: compactions of large tables take their time.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(4 * 3600);

/// Where the administration is.
pub struct Administration<'a> {
    address: &'a (String, u16),
}

/// What the cluster reports about itself.
#[derive(Debug, Default, Deserialize)]
pub struct Described {
    /// The version of the server.
    pub version: String,
    /// Its settings by their names.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
}

impl<'a> Administration<'a> {
    /// Reads an address, HOST:PORT; None of another text.
    pub fn address(text: &str) -> Option<(String, u16)> {
        let (host, port) = text.rsplit_once(':')?;
        if host.is_empty() { None } else { Some((host.to_owned(), port.parse().ok()?)) }
    }

    /// The one at an address.
    pub fn at(address: &'a (String, u16)) -> Self {
        Self { address }
    }

    /// Flushes and compacts tables, and returns when that is over.
    pub fn compact(&self, tables: &[String]) -> Result<(), DriverError> {
        for command in ["flush", "compact"] {
            self.ask::<Json>(&format!("{command} {}", tables.join(" ")))?;
        }
        Ok(())
    }

    /// Bytes of each table of a namespace.
    pub fn size(&self, namespace: &str) -> Result<BTreeMap<String, u64>, DriverError> {
        self.ask(&format!("size {namespace}"))
    }

    /// Counters and gauges of each region server, by its host.
    pub fn status(&self) -> Result<BTreeMap<String, BTreeMap<String, f64>>, DriverError> {
        self.ask("status")
    }

    /// What the cluster reports about itself.
    pub fn describe(&self) -> Result<Described, DriverError> {
        self.ask("describe")
    }

    fn ask<T: DeserializeOwned>(&self, command: &str) -> Result<T, DriverError> {
        let (host, port) = self.address;
        let what = format!("admin={host}:{port}, {}", command.split(' ').next().unwrap_or(command));
        let line = self.exchange(command).map_err(|error| DriverError::Connection(format!("{what}: {error}")))?;
        let refused = |problem: &str| DriverError::Statement(format!("{what}: {problem}"));
        let answer: Json = serde_json::from_str(&line).map_err(|_| refused("the answer is not JSON; expected one line of it"))?;
        if let Some(error) = answer.get("error") {
            return Err(refused(error.as_str().unwrap_or("it failed and does not say why")));
        }
        serde_json::from_value(answer).map_err(|error| refused(&format!("the answer is not as expected: {error}")))
    }

    fn exchange(&self, command: &str) -> std::io::Result<String> {
        let (host, port) = self.address;
        let address = (host.as_str(), *port).to_socket_addrs()?.next().ok_or(std::io::ErrorKind::NotFound)?;
        let mut stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.write_all(format!("{command}\n").as_bytes())?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        if line.is_empty() { Err(std::io::ErrorKind::UnexpectedEof.into()) } else { Ok(line) }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// An administration that gives these answers, one to a connection.
    fn answering(answers: &'static [&'static str]) -> (String, u16) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = ("127.0.0.1".to_owned(), listener.local_addr().unwrap().port());
        std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut command = String::new();
                BufReader::new(&stream).read_line(&mut command).unwrap();
                stream.write_all(answer.replace("COMMAND", command.trim()).as_bytes()).unwrap();
            }
        });
        address
    }

    #[test]
    fn an_answer_is_one_line_of_json() {
        let address = answering(&["{\"COMMAND\": 7}\n", "{\"error\": \"no such table\"}\n", "hello\n", ""]);
        let admin = Administration::at(&address);
        assert_eq!(admin.size("mine").unwrap(), BTreeMap::from([("size mine".to_owned(), 7)]));
        for expected in ["size: no such table", "the answer is not JSON", "size: unexpected end of file"] {
            let error = admin.size("mine").unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
