//! A TCP connection that is opened on one thread and used on another one.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};

/// A stream whose readiness is reported by the runtime that opened it, until it moves to another one.
pub struct PortableStream {
    /// None if it could not be registered with the runtime that it moved to.
    stream: Option<TcpStream>,
    moves: Arc<AtomicBool>,
}

/// A connection that sends what is small at once, and notices after a while when nobody answers any more.
pub async fn connected_to(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_keepalive(true)?;
    socket.set_nodelay(true)?;
    socket.connect(address).await
}

/// Has a stream move.
pub struct Move(Arc<AtomicBool>);

impl Move {
    /// From when it is next polled on, the stream is of the runtime that polls it.
    pub fn to_whoever_polls(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl PortableStream {
    pub fn of(stream: TcpStream) -> (Self, Move) {
        let moves = Arc::new(AtomicBool::new(false));
        (Self { stream: Some(stream), moves: moves.clone() }, Move(moves))
    }

    fn here(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        if self.moves.load(Ordering::Acquire) {
            self.moves.store(false, Ordering::Relaxed);
            let moved = self.stream.take().map(|stream| stream.into_std().and_then(TcpStream::from_std)).transpose()?;
            self.stream = moved;
        }
        self.stream.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl AsyncRead for PortableStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.here()?.poll_read(context, buffer)
    }
}

impl AsyncWrite for PortableStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.here()?.poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.here()?.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.here()?.poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.here()?.poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }
}

#[cfg(test)]
mod tests {
    use sensorbench_driver::runtime;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn a_stream_goes_on_where_the_runtime_that_opened_it_is_gone() {
        let first = runtime().unwrap();
        let (mut stream, moved, mut peer) = first.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let (connected, accepted) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
            let (mut stream, moved) = PortableStream::of(connected.unwrap());
            stream.write_all(b"a").await.unwrap();
            (stream, moved, accepted.unwrap().0.into_std().unwrap())
        });
        drop(first);
        moved.to_whoever_polls();
        runtime().unwrap().block_on(async {
            stream.write_all(b"b").await.unwrap();
            peer.set_nonblocking(false).unwrap();
            let mut sent = [0; 2];
            std::io::Read::read_exact(&mut peer, &mut sent).unwrap();
            assert_eq!(&sent, b"ab");
            // What comes after the move is noticed, too.
            let answering = std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(50));
                std::io::Write::write_all(&mut peer, b"c").unwrap();
            });
            assert_eq!(stream.read_u8().await.unwrap(), b'c');
            answering.join().unwrap();
        });
    }
}
