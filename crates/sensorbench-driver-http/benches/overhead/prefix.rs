//! What stands before the names of metrics, if the driver makes it again each time.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::OnceLock;

use serde_json::Value as Json;

use super::NAMESPACE;

static PREFIX: OnceLock<String> = OnceLock::new();

/// What stands before the names.
pub fn prefix() -> &'static str {
    PREFIX.get().expect("it is looked up after loading")
}

/// Looks it up in a server's list of names, which a path answers with; `pointer` is where the list is, and `metric` what was loaded.
pub fn look_up(url: &str, path: &str, pointer: &str, metric: &str) {
    let host = url.rsplit_once('/').unwrap().1;
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let answer: Json = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let names = answer.pointer(pointer).and_then(Json::as_array).unwrap().iter().filter_map(Json::as_str);
    let ours = names.filter_map(|name| name.strip_suffix(metric)).filter(|name| name.starts_with(NAMESPACE));
    PREFIX.set(ours.max_by_key(|name| (name.len(), *name)).expect("what was loaded has a name").to_owned()).unwrap();
}
