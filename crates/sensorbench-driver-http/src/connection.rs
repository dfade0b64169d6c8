//! HTTP: requests over connections that stay open, and their answers as they come.

use std::io::{self, Write};
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::{GzDecoder, GzEncoder};
use futures::TryFutureExt;
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT};
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};
use sensorbench_driver::DriverError;

use crate::driven::DrivenConnection;
use crate::target::Target;

/// What does not go into a form or a query string as it is.
pub const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'-').remove(b'.');

/// How long it may take to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// This many headers have room in the memory of a request's, in which hyper keeps those of the answer afterwards.
const HEADERS: usize = 12;

/// Bodies below this size are not worth compressing.
const MIN_COMPRESSED_BYTES: usize = 1 << 10;

/// What of a refusal goes into messages.
const MAX_SHOWN_BYTES: usize = 1000;

/// A request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    /// Path and query, encoded. Requests of one operation share it.
    pub path: Bytes,
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
    headers: HeaderMap,
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
    pub fn get(path: impl Into<Bytes>) -> Self {
        Self { path: path.into(), body: None }
    }

    /// Sends data.
    pub fn post(path: impl Into<Bytes>, data: Vec<u8>) -> Self {
        Self { path: path.into(), body: Some(Body::Data(data)) }
    }

    /// Sends JSON.
    pub fn post_json(path: impl Into<Bytes>, json: Vec<u8>) -> Self {
        Self { path: path.into(), body: Some(Body::Json(json)) }
    }

    /// Deletes something.
    pub fn delete(path: impl Into<Bytes>) -> Self {
        Self { path: path.into(), body: Some(Body::Delete) }
    }

    /// Sends keys and values, encoded.
    pub fn form(path: impl Into<Bytes>, text: String) -> Self {
        Self { path: path.into(), body: Some(Body::Form(text)) }
    }

    /// Sends series, compressed.
    pub fn remote_write(path: impl Into<Bytes>, series: Vec<u8>) -> Self {
        Self { path: path.into(), body: Some(Body::RemoteWrite(series)) }
    }

    /// The request for a server.
    pub fn request(self, target: &Target) -> Result<Request<Full<Bytes>>, DriverError> {
        let mut headers = HeaderMap::with_capacity(HEADERS);
        headers.insert(HOST, target.host_header.clone());
        headers.insert(USER_AGENT, HeaderValue::from_static("sensorbench"));
        if let Some(authorization) = &target.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        if target.gzip {
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let mut says = |name: HeaderName, value: &'static str| headers.insert(name, HeaderValue::from_static(value));
        let (method, body) = match self.body {
            None => (Method::GET, Bytes::new()),
            Some(Body::Form(text)) => {
                says(CONTENT_TYPE, "application/x-www-form-urlencoded");
                (Method::POST, Bytes::from(text))
            }
            Some(Body::Data(data)) if target.gzip && data.len() >= MIN_COMPRESSED_BYTES => {
                says(CONTENT_ENCODING, "gzip");
                (Method::POST, Bytes::from(compressed(&data)))
            }
            Some(Body::RemoteWrite(data)) => {
                says(CONTENT_TYPE, "application/x-protobuf");
                says(CONTENT_ENCODING, "snappy");
                says(HeaderName::from_static("x-prometheus-remote-write-version"), "0.1.0");
                (Method::POST, Bytes::from(data))
            }
            Some(Body::Data(data)) => (Method::POST, Bytes::from(data)),
            Some(Body::Json(json)) => {
                says(CONTENT_TYPE, "application/json");
                (Method::POST, Bytes::from(json))
            }
            Some(Body::Delete) => (Method::DELETE, Bytes::new()),
        };
        let uri = Uri::from_maybe_shared(self.path);
        let mut request = Request::new(Full::new(body));
        *request.uri_mut() = uri.map_err(|error| DriverError::Data(format!("no request can be made of it: {error}")))?;
        *request.method_mut() = method;
        *request.headers_mut() = headers;
        Ok(request)
    }
}

fn compressed(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(data.len() / 4), Compression::fast());
    encoder.write_all(data).and_then(|()| encoder.finish()).expect("memory takes everything")
}

/// A connection, which carries one request at a time. Dropping it ends what the server still does.
pub struct Connection(DrivenConnection);

/// A request that was not sent, and why.
pub struct Unsent {
    pub error: DriverError,
    /// The request, where nothing of it was written: it may go another way. None if the server may have seen some of it.
    pub request: Option<Request<Full<Bytes>>>,
}

impl Connection {
    pub async fn open(target: &Target) -> Result<Self, DriverError> {
        let opened = tokio::time::timeout(CONNECT_TIMEOUT, target.open()).await;
        let stream = opened
            .unwrap_or_else(|_| Err(io::Error::other(format!("no answer within {} s", CONNECT_TIMEOUT.as_secs()))))
            .map_err(|error| target.unreachable(error))?;
        DrivenConnection::over(stream).await.map(Self).map_err(|error| target.unreachable(error))
    }

    /// Sends a request and waits for the head of its answer.
    pub fn send(
        &mut self,
        target: &Target,
        request: Request<Full<Bytes>>,
    ) -> impl Future<Output = Result<Response<Incoming>, Box<Unsent>>> {
        self.0.send(request).map_err(|mut error| {
            let request = error.take_message();
            Box::new(Unsent { error: target.unreachable(describe(error.error())), request })
        })
    }

    /// Hands on the body of an answer piece by piece, which is decompressed where it has to be. A body of a status that is not a success is
    /// given back instead.
    pub async fn receive(
        &mut self,
        target: &Target,
        response: Response<Incoming>,
        mut take: impl FnMut(&[u8]) -> Result<(), DriverError>,
    ) -> Result<Reply, DriverError> {
        let (parts, mut body) = response.into_parts();
        let mut reply = Reply { status: parts.status, body: Vec::new(), headers: parts.headers };
        let is_success = reply.status.is_success();
        let mut decoder =
            reply.headers.get(CONTENT_ENCODING).is_some_and(|value| value == "gzip").then(|| GzDecoder::new(Vec::new()));
        // The end of a body whose length the head states is known without looking for it.
        while !body.is_end_stream()
            && let Some(frame) = self.0.frame(&mut body).await
        {
            let frame = frame.map_err(|error| target.unreachable(describe(&error)))?;
            // What is not data is trailers, in which nothing is looked for.
            let Ok(data) = frame.into_data() else { continue };
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
                    decoded.map_err(|error| target.unreachable(format!("its answer is not gzip: {error}")))?;
                    hand_on(decoder.get_ref())?;
                    decoder.get_mut().clear();
                }
            }
        }
        Ok(reply)
    }
}

/// An error with its cause, which says more.
fn describe(error: &hyper::Error) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}
