//! A stream that the library logs in and prepares statements over, and gives back.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use sensorbench_driver::pipeline::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

/// A stream that is in use until somebody takes it.
pub struct Lent<S>(Arc<Mutex<Option<S>>>);

impl<S> Lent<S> {
    pub fn of(stream: S) -> Self {
        Self(Arc::new(Mutex::new(Some(stream))))
    }

    /// The same stream, for its user.
    pub fn handle(&self) -> Self {
        Self(self.0.clone())
    }

    fn stream(&self) -> MutexGuard<'_, Option<S>> {
        self.0.lock().expect("nothing panics under this lock")
    }
}

impl<S: Unpin> Lent<S> {
    fn with<T>(&self, work: impl FnOnce(Pin<&mut S>) -> Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match &mut *self.stream() {
            Some(stream) => work(Pin::new(stream)),
            None => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Lent<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_read(context, buffer))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Lent<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.with(|stream| stream.poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_shutdown(context))
    }
}

impl<S: TlsStream + Unpin> TlsStream for Lent<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.stream().as_ref().map_or_else(ChannelBinding::none, TlsStream::channel_binding)
    }
}

/// Encrypts a stream, and keeps what the library gets of it.
pub struct Encrypting<E> {
    encryption: E,
    encrypted: Encrypted,
}

/// Where an encrypted stream is found, if there is one.
pub type Encrypted = Arc<Mutex<Option<Box<dyn Loan>>>>;

/// A stream that can be taken away from its user, whatever it is.
pub trait Loan: Send {
    /// The stream; None if it was taken before.
    fn taken(&self) -> Option<Box<dyn Stream>>;
}

impl<S: Stream + 'static> Loan for Lent<S> {
    fn taken(&self) -> Option<Box<dyn Stream>> {
        self.stream().take().map(|stream| Box::new(stream) as Box<dyn Stream>)
    }
}

impl<E> Encrypting<E> {
    pub fn by(encryption: E) -> Self {
        Self { encryption, encrypted: Arc::default() }
    }

    /// Where the encrypted stream will be found.
    pub fn encrypted(&self) -> Encrypted {
        self.encrypted.clone()
    }
}

impl<S, E> TlsConnect<S> for Encrypting<E>
where
    E: TlsConnect<S> + Send + 'static,
    E::Stream: Stream + 'static,
    E::Future: Send,
    E::Error: Send,
    S: Send + 'static,
{
    type Stream = Lent<E::Stream>;
    type Error = E::Error;
    type Future = BoxFuture<'static, Result<Self::Stream, Self::Error>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let lent = Lent::of(self.encryption.connect(stream).await?);
            *self.encrypted.lock().expect("nothing panics under this lock") = Some(Box::new(lent.handle()));
            Ok(lent)
        })
    }
}
