//! A connection of hyper's that is driven by whoever awaits something of it. It has no task of its own, so that nothing runs when nobody waits,
//! and an answer wakes the one who awaits it and nobody else.
//!
//! hyper's half and the half that awaits talk over channels. Both are polled together here: what one wakes the other for is looked at before
//! the poll ends (`Nudge`), and whoever awaits is woken by the stream alone (`Waiter`). With the waker of his task in these channels, each
//! answer would have his task polled two or three times more for what it has seen already.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker, ready};

use bytes::Bytes;
use futures::TryFutureExt;
use http_body_util::{BodyExt, Full};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Connection, SendRequest, handshake};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::{Request, Response};
use tokio::io::ReadBuf;

use crate::target::Stream;

/// Why a request failed, with the request where nothing of it was sent.
type Unsent = Box<TrySendError<Request<Full<Bytes>>>>;

/// Bytes that are read from the system at a time.
const READ_BYTES: usize = 32 << 10;
/// How often both halves get their turn before others do: tokio's budget may keep either from going on until its task is polled again.
const MAX_TURNS: u32 = 32;

/// A connection. Dropping it closes it.
pub struct DrivenConnection {
    sender: SendRequest<Full<Bytes>>,
    exchange: Exchange,
}

/// hyper's half, and who is woken.
struct Exchange {
    /// None when it has ended: what was not sent is given back then, and what is awaited fails. It is large, and connections are passed around.
    connection: Option<Box<Connection<WatchedStream, Full<Bytes>>>>,
    waiter: Waiter,
    nudge: Arc<Nudge>,
    nudged: Waker,
}

impl DrivenConnection {
    /// A connection over a stream.
    pub async fn over(stream: Box<dyn Stream>) -> hyper::Result<Self> {
        let waiter = Waiter::default();
        let (sender, connection) = handshake(WatchedStream::new(stream, waiter.clone())).await?;
        let nudge = Arc::new(Nudge::default());
        let nudged = Waker::from(nudge.clone());
        let exchange = Exchange { connection: Some(Box::new(connection)), waiter, nudge, nudged };
        Ok(Self { sender, exchange })
    }

    /// Sends a request and waits for the head of its answer.
    ///
    /// Fails with the request in the error where nothing of it was sent, as when the server had closed the connection before.
    // No async function, whose future would have room for the request, too.
    pub fn send(&mut self, request: Request<Full<Bytes>>) -> impl Future<Output = Result<Response<Incoming>, Unsent>> {
        self.exchange.until(self.sender.try_send_request(request).map_err(Box::new))
    }

    /// The next piece of a body; None if it has ended.
    pub async fn frame(&mut self, body: &mut Incoming) -> Option<hyper::Result<Frame<Bytes>>> {
        self.exchange.until(body.frame()).await
    }
}

impl Exchange {
    /// What is awaited, while hyper's half does its part.
    async fn until<T>(&mut self, awaited: impl Future<Output = T>) -> T {
        let mut awaited = pin!(awaited);
        poll_fn(|context| {
            self.waiter.set(context.waker());
            let mut inner = Context::from_waker(&self.nudged);
            for _ in 0..MAX_TURNS {
                if let Poll::Ready(output) = awaited.as_mut().poll(&mut inner) {
                    return Poll::Ready(output);
                }
                self.nudge.take();
                // What is awaited says why it ended.
                if self.connection.as_mut().is_some_and(|connection| Pin::new(&mut **connection).poll(&mut inner).is_ready()) {
                    self.connection = None;
                }
                if !self.nudge.take() {
                    return Poll::Pending;
                }
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }
}

/// Whether one half of a connection can continue because of the other one.
#[derive(Default)]
struct Nudge(AtomicBool);

impl Nudge {
    /// Whether it can, since this was called last. Both halves are on one thread.
    fn take(&self) -> bool {
        let is_given = self.0.load(Ordering::Relaxed);
        if is_given {
            self.0.store(false, Ordering::Relaxed);
        }
        is_given
    }
}

impl Wake for Nudge {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Who is woken when the stream can continue: the one who awaited something last.
#[derive(Clone)]
struct Waiter(Rc<RefCell<Waker>>);

impl Default for Waiter {
    fn default() -> Self {
        Self(Rc::new(RefCell::new(Waker::noop().clone())))
    }
}

impl Waiter {
    fn set(&self, waker: &Waker) {
        self.0.borrow_mut().clone_from(waker);
    }
}

/// A stream as hyper wants it, which wakes the waiter.
struct WatchedStream {
    stream: Box<dyn Stream>,
    /// What was read, on its way into hyper's own buffer, whose memory is not initialized.
    read: Box<[u8]>,
    waiter: Waiter,
}

impl WatchedStream {
    fn new(stream: Box<dyn Stream>, waiter: Waiter) -> Self {
        Self { stream, read: vec![0; READ_BYTES].into_boxed_slice(), waiter }
    }

    /// Polls the stream on behalf of the waiter.
    fn polled<T>(&mut self, poll: impl FnOnce(Pin<&mut dyn Stream>, &mut Context<'_>, &mut [u8]) -> T) -> T {
        let waker = self.waiter.0.borrow();
        poll(Pin::new(&mut *self.stream), &mut Context::from_waker(&waker), &mut self.read)
    }
}

impl Read for WatchedStream {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, mut buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        self.polled(|stream, context, read| {
            let length = read.len().min(buffer.remaining());
            let mut filled = ReadBuf::new(&mut read[..length]);
            ready!(stream.poll_read(context, &mut filled))?;
            buffer.put_slice(filled.filled());
            Poll::Ready(Ok(()))
        })
    }
}

impl Write for WatchedStream {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.polled(|stream, context, _| stream.poll_write(context, data))
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.polled(|stream, context, _| stream.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.polled(|stream, context, _| stream.poll_shutdown(context))
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, _: &mut Context<'_>, data: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.polled(|stream, context, _| stream.poll_write_vectored(context, data))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
