//! HTTP: requests over connections that stay open, and their answers as they come.

use std::future::{Future, poll_fn};
use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::{GzDecoder, GzEncoder};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, USER_AGENT};
use hyper::rt::{Read, ReadBufCursor, Write as HyperWrite};
use hyper::{Method, Request, Response, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};
use sensorbench_driver::DriverError;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::target::{Stream, Target};

/// What does not go into a form or a query string as it is.
pub const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'-').remove(b'.');

/// How long it may take to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes that are read from the system at a time.
const READ_BYTES: usize = 32 << 10;

/// Bodies below this size are not worth compressing.
const MIN_COMPRESSED_BYTES: usize = 1 << 10;

/// What of a refusal goes into messages.
const MAX_SHOWN_BYTES: usize = 1000;

/// A request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    /// Path and query, encoded.
    pub path: String,
    /// What is sent. A request without a body is a GET, one with data a POST.
    pub body: Option<Body>,
}

/// What a request sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// Keys and values, encoded.
    Form(String),
    /// Data in the server's own form.
    Data(Vec<u8>),
    /// A request of remote write, compressed.
    RemoteWrite(Vec<u8>),
    /// JSON, for servers that need its content type.
    Json(Vec<u8>),
    /// Nothing, where something is to be deleted.
    Delete,
}

/// What a server answered, all of it.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub body: Vec<u8>,
    /// What the server says of itself in the header of this name.
    headers: hyper::HeaderMap,
}

impl Reply {
    /// The text of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The body as it stands in messages.
    pub fn shown(&self) -> String {
        shown(self.status, &self.body)
    }
}

/// A refusal as it stands in messages.
pub fn shown(status: StatusCode, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(MAX_SHOWN_BYTES)]);
    let text = text.trim();
    if text.is_empty() { format!("status {status}") } else { text.to_owned() }
}

impl Call {
    /// Reads something.
    pub fn get(path: impl Into<String>) -> Self {
        Self { path: path.into(), body: None }
    }

    /// Sends data.
    pub fn post(path: impl Into<String>, data: Vec<u8>) -> Self {
        Self { path: path.into(), body: Some(Body::Data(data)) }
    }

    /// Sends JSON.
    pub fn post_json(path: impl Into<String>, json: Vec<u8>) -> Self {
        Self { path: path.into(), body: Some(Body::Json(json)) }
    }

    /// Deletes something.
    pub fn delete(path: impl Into<String>) -> Self {
        Self { path: path.into(), body: Some(Body::Delete) }
    }

    fn request(self, target: &Target) -> Result<Request<Full<Bytes>>, DriverError> {
        let mut builder = Request::builder().uri(self.path).header(HOST, &target.shown).header(USER_AGENT, "sensorbench");
        if let Some(authorization) = &target.authorization {
            builder = builder.header(AUTHORIZATION, authorization);
        }
        if target.gzip {
            builder = builder.header(ACCEPT_ENCODING, "gzip");
        }
        let (method, body) = match self.body {
            None => (Method::GET, Bytes::new()),
            Some(Body::Form(text)) => {
                builder = builder.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
                (Method::POST, Bytes::from(text))
            }
            Some(Body::Data(data)) if target.gzip && data.len() >= MIN_COMPRESSED_BYTES => {
                builder = builder.header(CONTENT_ENCODING, "gzip");
                (Method::POST, Bytes::from(compressed(&data)))
            }
            Some(Body::RemoteWrite(data)) => {
                builder = builder.header(CONTENT_TYPE, "application/x-protobuf").header(CONTENT_ENCODING, "snappy");
                builder = builder.header("X-Prometheus-Remote-Write-Version", "0.1.0");
                (Method::POST, Bytes::from(data))
            }
            Some(Body::Data(data)) => (Method::POST, Bytes::from(data)),
            Some(Body::Json(json)) => {
                builder = builder.header(CONTENT_TYPE, "application/json");
                (Method::POST, Bytes::from(json))
            }
            Some(Body::Delete) => (Method::DELETE, Bytes::new()),
        };
        let built = builder.method(method).body(Full::new(body));
        built.map_err(|error| DriverError::Data(format!("no request can be made of it: {error}")))
    }
}

fn compressed(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(data.len() / 4), Compression::fast());
    encoder.write_all(data).and_then(|()| encoder.finish()).expect("memory takes everything")
}

/// A connection, which carries one request at a time. It is polled together with what is awaited of it, so that nothing runs when
/// nobody waits, and dropping it ends what the server still does.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    exchange: Pin<Box<dyn Future<Output = hyper::Result<()>>>>,
}

impl Connection {
    pub async fn open(target: &Target) -> Result<Self, DriverError> {
        let opened = tokio::time::timeout(CONNECT_TIMEOUT, target.open()).await;
        let stream = opened
            .unwrap_or_else(|_| Err(io::Error::other(format!("no answer within {} s", CONNECT_TIMEOUT.as_secs()))))
            .map_err(|error| target.unreachable(error))?;
        let (sender, exchange) = handshake(HyperStream::new(stream)).await.map_err(|error| target.unreachable(error))?;
        Ok(Self { sender, exchange: Box::pin(exchange) })
    }

    /// Whether it can carry a request: a server may have closed it while nobody looked.
    pub async fn is_usable(&mut self) -> bool {
        let ended = poll_fn(|context| Poll::Ready(self.exchange.as_mut().poll(context).is_ready())).await;
        !ended && self.sender.is_ready()
    }

    /// Sends a request and hands on its body piece by piece, which is decompressed where it has to be. A body of a status that is no
    /// success is given back instead.
    pub async fn exchange(
        &mut self,
        target: &Target,
        call: Call,
        mut take: impl FnMut(&[u8]) -> Result<(), DriverError>,
    ) -> Result<Reply, DriverError> {
        let request = call.request(target)?;
        let sent = self.sender.send_request(request);
        let response = with_exchange(&mut self.exchange, sent).await.map_err(|error| target.unreachable(describe(&error)))?;
        let (parts, mut body) = Response::into_parts(response);
        let mut reply = Reply { status: parts.status, body: Vec::new(), headers: parts.headers };
        let is_success = reply.status.is_success();
        let mut decoder =
            reply.headers.get(CONTENT_ENCODING).is_some_and(|value| value == "gzip").then(|| GzDecoder::new(Vec::new()));
        while let Some(data) = self.next_data(target, &mut body).await? {
            let mut hand_on = |data: &[u8]| {
                if is_success {
                    take(data)
                } else {
                    reply.body.extend_from_slice(data);
                    Ok(())
                }
            };
            match &mut decoder {
                None => hand_on(&data)?,
                Some(decoder) => {
                    let decoded = decoder.write_all(&data).and_then(|()| decoder.flush());
                    decoded.map_err(|error| target.unreachable(format!("its answer is no gzip: {error}")))?;
                    hand_on(decoder.get_ref())?;
                    decoder.get_mut().clear();
                }
            }
        }
        Ok(reply)
    }

    async fn next_data(&mut self, target: &Target, body: &mut Incoming) -> Result<Option<Bytes>, DriverError> {
        loop {
            let frame = with_exchange(&mut self.exchange, body.frame()).await;
            match frame.transpose().map_err(|error| target.unreachable(describe(&error)))? {
                None => return Ok(None),
                Some(frame) => {
                    // What is no data is trailers, in which nothing is looked for.
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }
}

/// What a request waits for, while the connection does its part.
async fn with_exchange<T>(
    exchange: &mut Pin<Box<dyn Future<Output = hyper::Result<()>>>>,
    awaited: impl Future<Output = T>,
) -> T {
    let mut awaited = std::pin::pin!(awaited);
    let mut is_over = false;
    poll_fn(|context| {
        if let Poll::Ready(output) = awaited.as_mut().poll(context) {
            return Poll::Ready(output);
        }
        // What the connection has done may be what is awaited. Why it ended is told by what is awaited.
        is_over = is_over || exchange.as_mut().poll(context).is_ready();
        awaited.as_mut().poll(context)
    })
    .await
}

/// An error with its cause, which says more.
fn describe(error: &hyper::Error) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}

/// A stream as hyper wants it.
struct HyperStream {
    stream: Box<dyn Stream>,
    /// What was read, on its way into hyper's own buffer, whose memory is not initialized.
    read: Box<[u8]>,
}

impl HyperStream {
    fn new(stream: Box<dyn Stream>) -> Self {
        Self { stream, read: vec![0; READ_BYTES].into_boxed_slice() }
    }
}

impl Read for HyperStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, mut buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let Self { stream, read } = self.get_mut();
        let length = read.len().min(buffer.remaining());
        let mut filled = ReadBuf::new(&mut read[..length]);
        ready!(Pin::new(stream).poll_read(context, &mut filled))?;
        buffer.put_slice(filled.filled());
        Poll::Ready(Ok(()))
    }
}

impl HyperWrite for HyperStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
