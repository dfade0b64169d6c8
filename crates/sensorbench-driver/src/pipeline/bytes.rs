//! The two directions of a connection, as bytes that wait to be sent and bytes that wait to be read.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Stream;

/// Room for bytes that arrive, at first. Small replies touch only its beginning; it grows when an element is longer.
const ROOM: usize = 64 << 10;

/// Bytes that wait to be sent.
#[derive(Default)]
pub struct Outgoing {
    /// What to send; forgotten when all of it is sent.
    pub bytes: Vec<u8>,
    sent: usize,
}

impl Outgoing {
    /// Sends as much as the connection takes; ready when all is sent.
    ///
    /// # Errors
    /// The connection was lost.
    #[inline]
    pub fn poll_send(&mut self, stream: &mut Box<dyn Stream>, context: &mut Context) -> Poll<io::Result<()>> {
        while self.sent < self.bytes.len() {
            match ready!(Pin::new(&mut *stream).poll_write(context, &self.bytes[self.sent..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => self.sent += sent,
            }
        }
        ready!(Pin::new(stream).poll_flush(context))?;
        self.clear();
        Poll::Ready(Ok(()))
    }

    /// Whether nothing of what waits was sent.
    #[inline]
    pub fn is_untouched(&self) -> bool {
        self.sent == 0
    }

    /// Forgets what was not sent.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.sent = 0;
    }
}

/// Bytes that arrived and wait to be read: those from `start` to `end`.
#[derive(Default)]
pub struct Incoming {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Incoming {
    /// What waits to be read.
    #[inline]
    pub fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Notes that this many bytes were read.
    #[inline]
    pub fn consume(&mut self, length: usize) {
        self.start += length;
        if self.start == self.end {
            self.clear();
        }
    }

    /// Takes in what arrived; an error when the other side closed the connection.
    #[inline]
    pub fn poll_receive(&mut self, stream: &mut Box<dyn Stream>, context: &mut Context) -> Poll<io::Result<()>> {
        self.make_room();
        let mut room = ReadBuf::new(&mut self.bytes[self.end..]);
        ready!(Pin::new(stream).poll_read(context, &mut room))?;
        match room.filled().len() {
            0 => Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"))),
            length => {
                self.end += length;
                Poll::Ready(Ok(()))
            }
        }
    }

    #[inline]
    fn make_room(&mut self) {
        if self.end < self.bytes.len() {
            return;
        }
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end > self.bytes.len() / 2 || self.bytes.is_empty() {
            self.bytes.resize((self.bytes.len() * 2).max(ROOM), 0);
        }
    }

    /// Forgets what was not read.
    pub fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }
}
