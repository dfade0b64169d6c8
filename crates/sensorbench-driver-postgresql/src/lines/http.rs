//! As much of HTTP as sending lines needs: one connection, one request at a time, nothing read but whether it was taken.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sensorbench_driver::DriverError;
use serde::Deserialize;

use crate::wire::Target;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long one request may take: a server that is behind makes clients wait.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// No more of an answer is read: it is an error of a line or so.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// What QuestDB says of lines that it does not take; none of a request are kept then.
#[derive(Debug, Default, Deserialize)]
pub struct Refusal {
    /// What is wrong.
    #[serde(default)]
    pub message: String,
    /// The first line that is wrong, from 1.
    pub line: Option<u64>,
}

/// How a request ended.
#[derive(Debug)]
pub enum Outcome {
    Taken,
    Refused(Refusal),
}

/// A connection to QuestDB's HTTP server.
pub struct LineConnection {
    place: String,
    stream: BufReader<TcpStream>,
    head: String,
}

impl LineConnection {
    pub fn open(target: &Target, port: u16) -> Result<Self, DriverError> {
        let host = &target.server.hosts[0].0;
        let place = format!("{}, HTTP port {port}", target.place);
        let unreachable = |error: io::Error| {
            DriverError::Connection(format!(
                "{place}: {error}; name the port with http=, and check that the server listens there"
            ))
        };
        let address = (host.as_str(), port).to_socket_addrs().map_err(unreachable)?.next();
        let address = address.ok_or_else(|| unreachable(io::Error::other("the host has no address")))?;
        let stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).map_err(unreachable)?;
        stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(ANSWER_TIMEOUT))).map_err(unreachable)?;
        let login = target.server.user.as_ref().map_or_else(String::new, |user| {
            let password = target.server.password.as_deref().unwrap_or_default();
            format!("Authorization: Basic {}\r\n", STANDARD.encode(format!("{user}:{password}")))
        });
        let head = format!("POST /write?precision=u HTTP/1.1\r\nHost: {host}:{port}\r\n{login}Content-Length: ");
        Ok(Self { place, stream: BufReader::new(stream), head })
    }

    /// Sends lines; they are all taken or none of them.
    pub fn send(&mut self, lines: &[u8]) -> Result<Outcome, DriverError> {
        let (status, body) = self.exchange(lines).map_err(|error| {
            DriverError::Connection(format!("{}: the connection was lost: {error}; the server's log may say why", self.place))
        })?;
        let text = String::from_utf8_lossy(&body).trim().to_owned();
        match status {
            200 | 204 => Ok(Outcome::Taken),
            401 | 403 => Err(DriverError::Connection(format!(
                "{}: {text}; check user and password (in the URL or in the file that credentials= names)",
                self.place
            ))),
            // What only shows when a line is written is an internal error for it, and yet one of that line.
            _ => match serde_json::from_str::<Refusal>(&text) {
                Ok(refusal) if refusal.line.is_some() || status == 400 => Ok(Outcome::Refused(refusal)),
                _ => Err(DriverError::Connection(format!("{}: the server answers with status {status}: {text}", self.place))),
            },
        }
    }

    fn exchange(&mut self, body: &[u8]) -> io::Result<(u16, Vec<u8>)> {
        let stream = self.stream.get_mut();
        stream.write_all(format!("{}{}\r\n\r\n", self.head, body.len()).as_bytes())?;
        stream.write_all(body)?;
        read_answer(&mut self.stream)
    }
}

/// Reads the status and the body of an answer.
fn read_answer(stream: &mut impl BufRead) -> io::Result<(u16, Vec<u8>)> {
    let status_line = read_line(stream)?;
    let status = status_line.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.ok_or_else(|| invalid(format!("“{status_line}” is not a status")))?;
    let (mut length, mut is_chunked) = (0, false);
    loop {
        let header = read_line(stream)?.to_ascii_lowercase();
        match header.split_once(':').map(|(name, value)| (name, value.trim())) {
            Some(("content-length", value)) => length = value.parse().map_err(|_| invalid(header.clone()))?,
            Some(("transfer-encoding", value)) => is_chunked = value.contains("chunked"),
            _ if header.is_empty() => break,
            _ => {}
        }
    }
    let mut body = Vec::new();
    if !is_chunked {
        take(stream, length, &mut body)?;
        return Ok((status, body));
    }
    loop {
        let size = read_line(stream)?;
        let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16).map_err(|_| invalid(size))?;
        take(stream, size, &mut body)?;
        read_line(stream)?;
        if size == 0 {
            return Ok((status, body));
        }
    }
}

fn read_line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if stream.take(MAX_ANSWER_BYTES as u64).read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

fn take(stream: &mut impl Read, length: usize, body: &mut Vec<u8>) -> io::Result<()> {
    if body.len() + length > MAX_ANSWER_BYTES {
        return Err(invalid(format!("an answer of {length} bytes")));
    }
    let start = body.len();
    body.resize(start + length, 0);
    stream.read_exact(&mut body[start..])
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("no answer of HTTP: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> io::Result<(u16, Vec<u8>)> {
        read_answer(&mut text.as_bytes())
    }

    #[test]
    fn answers_are_read_to_their_ends() {
        assert_eq!(answer("HTTP/1.1 204 OK\r\nServer: x\r\n\r\n").unwrap(), (204, vec![]));
        assert_eq!(answer("HTTP/1.1 400 Bad request\r\nContent-Length: 2\r\n\r\n{}").unwrap(), (400, b"{}".to_vec()));
        let chunked = "HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n";
        assert_eq!(answer(chunked).unwrap(), (400, b"abcd".to_vec()));
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for text in ["", "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"] {
            assert!(answer(text).is_err(), "{text}");
        }
        assert!(answer("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n").is_err());
    }

    #[test]
    fn a_refusal_says_which_line() {
        let text = r#"{"code":"invalid","message":"cast error","line":2,"errorId":"f"}"#;
        let refusal: Refusal = serde_json::from_str(text).unwrap();
        assert_eq!((refusal.message.as_str(), refusal.line), ("cast error", Some(2)));
    }
}
