//! A connection to a gateway, whose waiting ends when an operation's time has passed.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sensorbench_driver::{Deadline, DriverError};
use thrift::protocol::{TBinaryInputProtocol, TBinaryOutputProtocol};
use thrift::transport::{TBufferedReadTransport, TBufferedWriteTransport, TFramedReadTransport, TFramedWriteTransport};

use crate::bindings::THBaseServiceSyncClient;
use crate::errors;
use crate::target::Target;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How often limits are looked at while a gateway is silent: the most by which an operation outlasts its own.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);
/// How long a gateway may be silent where no operation has a limit. Gateways retry by themselves for minutes.
const SILENCE_MAX: Duration = Duration::from_secs(300);
const BUFFER_BYTES: usize = 64 << 10;

type Input = TBinaryInputProtocol<Box<dyn Read + Send>>;
type Output = TBinaryOutputProtocol<Box<dyn Write + Send>>;

/// The calls of one gateway.
pub type Calls = THBaseServiceSyncClient<Input, Output>;

/// A connection to one gateway. After an error of kind connection, timeout or cancelled it must not be used any more.
pub struct Gateway {
    /// Host and port, as they stand in messages.
    pub shown: String,
    calls: Calls,
    limit: Arc<Mutex<Option<Arc<Deadline>>>>,
}

impl Gateway {
    /// Connects to the gateway with this number.
    pub fn connect(target: &Target, number: usize) -> Result<Self, DriverError> {
        let (host, port) = &target.hosts[number];
        let shown = format!("{host}:{port}");
        let limit = Arc::default();
        let wires = dial(host, *port).and_then(|stream| Wire::pair(stream, &limit));
        let (reading, writing) = wires.map_err(|error| {
            DriverError::Connection(format!(
                "the gateway at {shown}: {error}; check host and port, and that hbase thrift2 runs there"
            ))
        })?;
        let (reading, writing): (Box<dyn Read + Send>, Box<dyn Write + Send>) = if target.framed {
            (
                Box::new(TFramedReadTransport::with_capacity(BUFFER_BYTES, reading)),
                Box::new(TFramedWriteTransport::with_capacity(BUFFER_BYTES, writing)),
            )
        } else {
            (
                Box::new(TBufferedReadTransport::with_capacity(BUFFER_BYTES, reading)),
                Box::new(TBufferedWriteTransport::with_capacity(BUFFER_BYTES, writing)),
            )
        };
        let calls = Calls::new(TBinaryInputProtocol::new(reading, true), TBinaryOutputProtocol::new(writing, true));
        Ok(Self { shown, calls, limit })
    }

    /// Makes a call.
    pub fn call<T>(&mut self, call: impl FnOnce(&mut Calls) -> thrift::Result<T>) -> Result<T, DriverError> {
        call(&mut self.calls).map_err(|error| errors::driver_error(&self.shown, error))
    }

    /// What the following calls are limited by.
    pub fn set_limit(&self, deadline: Option<Arc<Deadline>>) {
        *self.limit.lock().unwrap_or_else(PoisonError::into_inner) = deadline;
    }
}

fn dial(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut outcome = Err(io::Error::new(io::ErrorKind::NotFound, "the host has no address"));
    for address in (host, port).to_socket_addrs()? {
        outcome = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// One direction of a connection.
struct Wire {
    stream: Arc<TcpStream>,
    limit: Arc<Mutex<Option<Arc<Deadline>>>>,
}

impl Wire {
    fn pair(stream: TcpStream, limit: &Arc<Mutex<Option<Arc<Deadline>>>>) -> io::Result<(Self, Self)> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(BETWEEN_LOOKS))?;
        stream.set_write_timeout(Some(BETWEEN_LOOKS))?;
        let stream = Arc::new(stream);
        Ok((Self { stream: stream.clone(), limit: limit.clone() }, Self { stream, limit: limit.clone() }))
    }

    /// Does something with the stream until it succeeds, fails, or its time has passed.
    fn until_limit(&self, mut work: impl FnMut(&TcpStream) -> io::Result<usize>) -> io::Result<usize> {
        let mut silent_since = None;
        loop {
            match work(&self.stream) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    let since = *silent_since.get_or_insert_with(Instant::now);
                    self.check(since)?;
                }
                outcome => return outcome,
            }
        }
    }

    fn check(&self, silent_since: Instant) -> io::Result<()> {
        let limit = self.limit.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let has_passed = match limit {
            Some(deadline) => deadline.passed().is_some(),
            None => silent_since.elapsed() > SILENCE_MAX,
        };
        if has_passed { Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time")) } else { Ok(()) }
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.until_limit(|mut stream| stream.read(buffer))
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.until_limit(|mut stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
