//! Opens connections on a thread of its own, for a thread that keeps time: logging in with a password (SCRAM) takes about a millisecond of
//! computing, and encryption takes more, during which no statement could start.

use std::sync::Arc;

use sensorbench_driver::{DriverError, runtime};
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::Client;

use super::target::{CONTROL, Opened, Place, Target};

type Answer = oneshot::Sender<Result<Opened, DriverError>>;

/// The thread. It ends with this.
pub struct Opener(mpsc::UnboundedSender<Answer>);

impl Opener {
    /// Starts the thread, which opens connections with the recorded tables; `settings` are added.
    pub fn start(target: Arc<Target>, settings: &'static str) -> Result<Self, DriverError> {
        let (sender, mut requests) = mpsc::unbounded_channel::<Answer>();
        let runtime = runtime()?;
        let open_all = move || {
            runtime.block_on(async {
                while let Some(answer) = requests.recv().await {
                    let target = target.clone();
                    // Nobody takes it where the replay has ended meanwhile.
                    tokio::spawn(async move { answer.send(target.open_as_recorded(CONTROL, settings).await).is_ok() });
                }
            });
        };
        let started = std::thread::Builder::new().name("connecting".to_owned()).spawn(open_all);
        started.map(|_| Self(sender)).map_err(|error| DriverError::Connection(format!("a thread: {error}")))
    }

    /// Opens a connection that the calling runtime keeps going, by a task of its own.
    pub async fn open(&self) -> Result<(Client, Place), DriverError> {
        let (answer, opened) = oneshot::channel();
        let ended = || DriverError::Connection("the thread that opens connections has ended".to_owned());
        self.0.send(answer).map_err(|_| ended())?;
        let Opened { client, connection, moved, place } = opened.await.map_err(|_| ended())??;
        moved.to_whoever_polls();
        // Whoever waits for an answer learns when it ends; nobody else needs to.
        tokio::spawn(connection);
        Ok((client, place))
    }
}
