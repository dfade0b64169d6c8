//! The loop that somebody would write who measures with hyper alone: a connection per request in flight, and answers parsed into rows.
//! It is helped by serde_json, whose doubles may be off by the last bit: the driver reads them exactly.

use std::cell::Cell;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::future::join_all;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, HOST, HeaderValue, USER_AGENT};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::{Method, Request};
use sensorbench_engine::overhead::on_own_thread;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// What is sent.
pub struct Message {
    path: String,
    headers: &'static [(&'static str, &'static str)],
    body: Vec<u8>,
}

impl Message {
    /// Keys and values, encoded.
    pub fn form(path: &str, text: String) -> Self {
        let headers = &[("content-type", "application/x-www-form-urlencoded")];
        Self { path: path.to_owned(), headers, body: text.into_bytes() }
    }

    /// Data in the server's own form.
    pub fn data(path: String, body: Vec<u8>) -> Self {
        Self { path, headers: &[], body }
    }

    /// JSON.
    pub fn json(path: &str, text: String) -> Self {
        Self { path: path.to_owned(), headers: &[("content-type", "application/json")], body: text.into_bytes() }
    }

    /// A request of remote write.
    pub fn remote_write(series: &[u8]) -> Self {
        let headers = &[
            ("content-type", "application/x-protobuf"),
            ("content-encoding", "snappy"),
            ("x-prometheus-remote-write-version", "0.1.0"),
        ];
        let body = snap::raw::Encoder::new().compress_vec(series).unwrap();
        Self { path: "/api/v1/write".to_owned(), headers, body }
    }
}

/// A loop over ids, with this many requests in flight.
#[derive(Clone, Copy)]
pub struct Loop {
    pub message: fn(i64) -> Message,
    pub parse: fn(&[u8], i64) -> usize,
    /// What `parse` must have found.
    pub rows_per_answer: usize,
    pub concurrency: usize,
}

impl Loop {
    /// CPU time of a thread that sends a request for each id, in seconds, with connecting.
    pub fn cpu_s(self, url: &str, ids: &[i64]) -> f64 {
        let (server, ids) = (Server::of(url), ids.to_vec());
        on_own_thread(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let next = Cell::new(0);
            runtime.block_on(tokio::task::unconstrained(async {
                join_all((0..self.concurrency).map(|_| self.slot(&server, &ids, &next))).await;
            }));
        })
    }

    async fn slot(&self, server: &Server, ids: &[i64], next: &Cell<usize>) {
        let mut sender = server.connect().await;
        while let Some(id) = ids.get(next.replace(next.get() + 1)) {
            let response = sender.send_request(server.request((self.message)(*id))).await.unwrap();
            let status = response.status();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert!(status.is_success(), "{}", String::from_utf8_lossy(&body));
            assert_eq!((self.parse)(&body, *id), self.rows_per_answer, "{}", String::from_utf8_lossy(&body));
            sender.ready().await.unwrap();
        }
    }
}

/// Where the server is and who asks.
struct Server {
    host: String,
    authorization: Option<HeaderValue>,
}

impl Server {
    fn of(url: &str) -> Self {
        let (_, server) = url.split_once("://").unwrap();
        let (login, host) = server.rsplit_once('@').map_or((None, server), |(login, host)| (Some(login), host));
        let authorization = login.map(|login| {
            let login = percent_encoding::percent_decode_str(login).collect::<Vec<u8>>();
            HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(login))).unwrap()
        });
        Self { host: host.to_owned(), authorization }
    }

    async fn connect(&self) -> SendRequest<Full<Bytes>> {
        let stream = TcpStream::connect(&self.host).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, connection) = handshake(Io { stream, read: vec![0; 32 << 10] }).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    fn request(&self, message: Message) -> Request<Full<Bytes>> {
        let mut builder = Request::builder().method(Method::POST).uri(message.path);
        builder = builder.header(HOST, &self.host).header(USER_AGENT, "by hand");
        if let Some(authorization) = &self.authorization {
            builder = builder.header(AUTHORIZATION, authorization);
        }
        for (name, value) in message.headers {
            builder = builder.header(*name, *value);
        }
        builder.body(Full::new(Bytes::from(message.body))).unwrap()
    }
}

/// Rows of ids and values in chunks, a line each.
pub fn influxql(answer: &[u8]) -> usize {
    #[derive(Deserialize)]
    struct Answer {
        results: Vec<Outcome>,
    }
    #[derive(Deserialize)]
    struct Outcome {
        #[serde(default)]
        series: Vec<Series>,
    }
    #[derive(Deserialize)]
    struct Series {
        values: Vec<(i64, i64, f64)>,
    }
    let mut rows: Vec<(i64, f64)> = Vec::new();
    for chunk in serde_json::Deserializer::from_slice(answer).into_iter::<Answer>() {
        let series = chunk.unwrap().results.into_iter().flat_map(|outcome| outcome.series);
        rows.extend(series.flat_map(|series| series.values).map(|(_, id, value)| (id, value)));
    }
    std::hint::black_box(rows).len()
}

/// Times and values of series, a line each. What the server adds on either side is left out.
pub fn export(answer: &[u8], wanted: Range<i64>) -> usize {
    #[derive(Deserialize)]
    struct Series {
        values: Vec<f64>,
        timestamps: Vec<i64>,
    }
    let mut rows: Vec<(i64, f64)> = Vec::new();
    for series in serde_json::Deserializer::from_slice(answer).into_iter::<Series>() {
        let Series { values, timestamps } = series.unwrap();
        rows.extend(timestamps.into_iter().zip(values).filter(|(time, _)| wanted.contains(time)));
    }
    std::hint::black_box(rows).len()
}

/// The values of a vector, which are text.
pub fn vector(answer: &[u8]) -> usize {
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        data: Data<'a>,
    }
    #[derive(Deserialize)]
    struct Data<'a> {
        #[serde(borrow)]
        result: Vec<Element<'a>>,
    }
    #[derive(Deserialize)]
    struct Element<'a> {
        #[serde(borrow)]
        value: (f64, &'a str),
    }
    let answer: Answer = serde_json::from_slice(answer).unwrap();
    let rows: Vec<f64> = answer.data.result.iter().map(|element| element.value.1.parse().unwrap()).collect();
    std::hint::black_box(rows).len()
}

/// Times and values of a matrix. Times are seconds, values text. What lies before the range, which has both of its ends, is left out.
pub fn matrix(answer: &[u8], wanted: Range<i64>) -> usize {
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        data: Data<'a>,
    }
    #[derive(Deserialize)]
    struct Data<'a> {
        #[serde(borrow)]
        result: Vec<Series<'a>>,
    }
    #[derive(Deserialize)]
    struct Series<'a> {
        #[serde(borrow)]
        values: Vec<(f64, &'a str)>,
    }
    let answer: Answer = serde_json::from_slice(answer).unwrap();
    let values = answer.data.result.into_iter().flat_map(|series| series.values);
    let timed = values.map(|(time, value)| ((time * 1000.0).round() as i64, value.parse().unwrap()));
    let rows: Vec<(i64, f64)> = timed.filter(|(time, _)| wanted.contains(time)).collect();
    std::hint::black_box(rows).len()
}

/// Rows of times and values.
pub fn json_rows(answer: &[u8]) -> usize {
    #[derive(Deserialize)]
    struct Answer {
        values: Vec<(i64, f64)>,
    }
    let answer: Answer = serde_json::from_slice(answer).unwrap();
    std::hint::black_box(answer.values).len()
}

/// One where the answer says that it was done.
pub fn code(answer: &[u8]) -> usize {
    #[derive(Deserialize)]
    struct Answer {
        code: i64,
    }
    let answer: Answer = serde_json::from_slice(answer).unwrap();
    usize::from(answer.code == 200)
}

/// Blocks of the columns id (Int64) and value (Float64). An empty one has no rows.
pub fn native(answer: &[u8]) -> usize {
    let mut rows: Vec<(i64, f64)> = Vec::new();
    let mut rest = answer;
    while !rest.is_empty() {
        let (columns, after) = varint(rest);
        assert_eq!(columns, 2, "{}", String::from_utf8_lossy(answer));
        let (count, after) = varint(after);
        let (ids, after) = eights(skip_text(skip_text(after)), count);
        let (values, after) = eights(skip_text(skip_text(after)), count);
        let pairs = ids.zip(values);
        rows.extend(pairs.map(|(id, value)| (i64::from_le_bytes(id), f64::from_le_bytes(value))));
        rest = after;
    }
    std::hint::black_box(rows).len()
}

fn varint(bytes: &[u8]) -> (usize, &[u8]) {
    let length = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
    let number = bytes[..length].iter().rev().fold(0, |number, byte| number << 7 | usize::from(byte & 0x7f));
    (number, &bytes[length..])
}

fn skip_text(bytes: &[u8]) -> &[u8] {
    let (length, rest) = varint(bytes);
    &rest[length..]
}

fn eights(bytes: &[u8], count: usize) -> (impl Iterator<Item = [u8; 8]> + '_, &[u8]) {
    let (data, rest) = bytes.split_at(8 * count);
    (data.chunks_exact(8).map(|eight| eight.try_into().unwrap()), rest)
}

/// A stream as hyper wants it.
struct Io {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Read for Io {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, mut buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let Self { stream, read } = self.get_mut();
        let length = read.len().min(buffer.remaining());
        let mut filled = ReadBuf::new(&mut read[..length]);
        ready!(Pin::new(stream).poll_read(context, &mut filled))?;
        buffer.put_slice(filled.filled());
        Poll::Ready(Ok(()))
    }
}

impl Write for Io {
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
        true
    }
}
