//! A server for tests that answers requests as a test says, and keeps the requests.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A request as it came: method and path, the header that says who asks, and the body.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub line: String,
    pub authorization: String,
    pub body: String,
}

/// What is answered: a status and a body.
pub type Answer = (u16, String);

/// The server. Its thread ends with the process of the tests.
pub struct Stub {
    pub address: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Stub {
    pub fn start(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (kept, answer) = (requests.clone(), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, answer) = (kept.clone(), answer.clone());
                thread::spawn(move || serve(stream, &kept, &*answer));
            }
        });
        Self { address, requests }
    }

    /// What was requested since this was called last.
    pub fn taken(&self) -> Vec<Request> {
        std::mem::take(&mut *self.requests.lock().expect("nothing panics under this lock"))
    }
}

/// Answers until the client closes the connection.
fn serve(stream: TcpStream, kept: &Mutex<Vec<Request>>, answer: &dyn Fn(&Request) -> Answer) {
    let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
    while let Some(request) = read(&mut reader) {
        let (status, body) = answer(&request);
        kept.lock().expect("nothing panics under this lock").push(request);
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} -\r\nContent-Length: {length}\r\nx-influxdb-version: 3.11.2\r\nx-influxdb-build: Core\r\n\r\n"
        );
        let mut stream = &stream;
        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).is_err() {
            return;
        }
    }
}

fn read(reader: &mut impl BufRead) -> Option<Request> {
    let mut request = Request { line: String::new(), authorization: String::new(), body: String::new() };
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        match line.split_once(": ") {
            None => request.line = line.trim_end_matches(" HTTP/1.1").to_owned(),
            Some((name, value)) if name.eq_ignore_ascii_case("authorization") => request.authorization = value.to_owned(),
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse().expect("a length"),
            Some(_) => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    request.body = String::from_utf8(body).expect("text");
    Some(request)
}
