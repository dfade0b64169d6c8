//! The connections of one thread: this many at most, each for one request at a time.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response};
use sensorbench_driver::DriverError;
use tokio::sync::Semaphore;

use crate::connection::{Call, Connection, Reply};
use crate::target::Target;

/// Connections of one thread. More requests wait until one of them is free.
pub struct Pool {
    target: Arc<Target>,
    permits: Semaphore,
    idle: RefCell<Vec<Connection>>,
}

impl Pool {
    pub fn new(target: Arc<Target>, connections: usize) -> Self {
        Self { target, permits: Semaphore::new(connections), idle: RefCell::default() }
    }

    /// Opens all connections, so that no request pays for it.
    pub async fn fill(&self, connections: usize) -> Result<(), DriverError> {
        for _ in 0..connections {
            let connection = Connection::open(&self.target).await?;
            self.idle.borrow_mut().push(connection);
        }
        Ok(())
    }

    /// Sends a request and takes its answer as it comes. A connection whose request is given up, or failed, is closed. A request is sent
    /// once: of what failed nobody knows what the server has done.
    pub async fn exchange(&self, call: Call, take: impl FnMut(&[u8]) -> Result<(), DriverError>) -> Result<Reply, DriverError> {
        let _permit = self.permits.acquire().await.expect("the semaphore is never closed");
        let (mut connection, response) = self.send(call.request(&self.target)?).await?;
        let reply = connection.receive(&self.target, response, take).await?;
        if reply.status == hyper::StatusCode::UNAUTHORIZED || reply.status == hyper::StatusCode::FORBIDDEN {
            return Err(self.target.not_let_in(reply.shown()));
        }
        self.idle.borrow_mut().push(connection);
        Ok(reply)
    }

    async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<(Connection, Response<Incoming>), DriverError> {
        loop {
            let idle = self.idle.borrow_mut().pop();
            let was_idle = idle.is_some();
            let mut connection = match idle {
                Some(connection) => connection,
                // Boxed, because there is hardly ever a need for the room that it takes.
                None => Box::pin(Connection::open(&self.target)).await?,
            };
            match connection.send(&self.target, request).await {
                Ok(response) => return Ok((connection, response)),
                Err(unsent) => match unsent.request {
                    // The server had closed it while nobody looked, so that the request is still here.
                    Some(whole) if was_idle => request = whole,
                    _ => return Err(unsent.error),
                },
            }
        }
    }

    /// Sends a request and takes its whole answer.
    pub async fn ask(&self, call: Call) -> Result<Reply, DriverError> {
        let mut body = Vec::new();
        let mut reply = self
            .exchange(call, |data| {
                body.extend_from_slice(data);
                Ok(())
            })
            .await?;
        if reply.status.is_success() {
            reply.body = body;
        }
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Future, poll_fn};
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::pin::pin;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use sensorbench_driver::{TargetUrl, runtime};

    use super::*;

    /// What a server does with a request: it answers with these bytes, or closes the connection.
    type Step = Option<&'static [u8]>;

    const OK: Step = Some(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    const CHUNKED: Step = Some(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nin\r\n7\r\n chunks\r\n0\r\n\r\n");
    const EMPTY: Step = Some(b"HTTP/1.1 204 No Content\r\n\r\n");
    const REFUSED: Step = Some(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 3\r\n\r\nno!");
    const LAST: Step = Some(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nlast");
    const CLOSE: Step = None;

    /// A server that closes each connection after its last step. What it was sent comes back: the number of the connection, and the body.
    fn serve(connections: Vec<Vec<Step>>) -> (Arc<Target>, Receiver<(usize, String)>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let url = format!("victoriametrics://{}", listener.local_addr().expect("an address"));
        let (sent, received) = channel();
        std::thread::spawn(move || {
            for (number, steps) in connections.into_iter().enumerate() {
                let (stream, _) = listener.accept().expect("a client");
                let mut reader = BufReader::new(stream);
                for step in steps {
                    let Some(body) = read(&mut reader) else { break };
                    let _ = sent.send((number, body));
                    let Some(answer) = step else { break };
                    reader.get_mut().write_all(answer).expect("the client is there");
                }
            }
        });
        (Arc::new(Target::of(&TargetUrl::parse(&url).unwrap(), "it", 80, &[]).unwrap()), received)
    }

    fn read(reader: &mut impl BufRead) -> Option<String> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line.trim_end().is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        String::from_utf8(body).ok()
    }

    /// The body of the answer, or what went wrong.
    async fn answered(pool: &Pool, body: &str) -> Result<String, String> {
        let reply = pool.ask(Call::post("/", body.as_bytes().to_vec())).await.map_err(|error| error.to_string())?;
        Ok(String::from_utf8(reply.body).unwrap())
    }

    fn with_pool<T>(target: Arc<Target>, work: impl AsyncFnOnce(&Pool) -> T) -> T {
        runtime().unwrap().block_on(async { work(&Pool::new(target, 1)).await })
    }

    fn bodies(received: &Receiver<(usize, String)>) -> Vec<(usize, String)> {
        received.try_iter().collect()
    }

    #[test]
    fn a_connection_carries_one_request_after_the_other() {
        let (target, received) = serve(vec![vec![OK, CHUNKED, EMPTY, REFUSED, OK, LAST], vec![OK]]);
        let answers = with_pool(target, async |pool| {
            let mut answers = Vec::new();
            for number in 0..7 {
                answers.push(answered(pool, &number.to_string()).await.unwrap());
            }
            answers
        });
        assert_eq!(answers, ["ok", "in chunks", "", "no!", "ok", "last", "ok"]);
        let expected: Vec<_> = (0..7).map(|number| (number / 6, number.to_string())).collect();
        assert_eq!(bodies(&received), expected, "the seventh request alone needs another connection");
    }

    #[test]
    fn a_request_goes_another_way_where_its_connection_was_closed_before() {
        let (target, received) = serve(vec![vec![OK], vec![OK]]);
        with_pool(target, async |pool| {
            assert_eq!(answered(pool, "first").await.as_deref(), Ok("ok"));
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert_eq!(answered(pool, "second").await.as_deref(), Ok("ok"));
        });
        assert_eq!(bodies(&received), [(0, "first".to_owned()), (1, "second".to_owned())]);
    }

    #[test]
    fn a_request_that_the_server_may_have_seen_is_not_sent_again() {
        let (target, received) = serve(vec![vec![OK, CLOSE], vec![OK]]);
        with_pool(target, async |pool| {
            assert_eq!(answered(pool, "first").await.as_deref(), Ok("ok"));
            let lost = answered(pool, "lost").await.unwrap_err();
            assert!(lost.contains("connection closed before message completed"), "{lost}");
            assert_eq!(answered(pool, "third").await.as_deref(), Ok("ok"));
        });
        assert_eq!(bodies(&received), [(0, "first".to_owned()), (0, "lost".to_owned()), (1, "third".to_owned())]);
    }

    /// Whoever is polled for what he has seen already costs as much as a small answer.
    #[test]
    fn an_answer_wakes_whoever_awaits_it_once() {
        let (target, _received) = serve(vec![vec![OK, OK, CHUNKED, EMPTY]]);
        with_pool(target, async |pool| {
            answered(pool, "opens the connection").await.unwrap();
            for expected in ["ok", "in chunks", ""] {
                let mut polls = 0;
                let mut answer = pin!(answered(pool, "is counted"));
                let answer = poll_fn(|context| {
                    polls += 1;
                    answer.as_mut().poll(context)
                });
                assert_eq!(answer.await.as_deref(), Ok(expected));
                assert_eq!(polls, 2, "to send the request, and to take the answer {expected:?}");
            }
        });
    }
}
