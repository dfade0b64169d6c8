//! Loading: rows are packed into batches of commands, which are sent while the replies to earlier ones are read. Rows that
//! follow each other and have the same key share a command.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use arrow_array::{RecordBatch, RecordBatchReader};
use sensorbench_dataset::Column;
use sensorbench_driver::pipeline::{Incoming, Outgoing, Stream};
use sensorbench_driver::{DriverError, Progress};

use crate::cluster::{Redirection, Topology};
use crate::reply::{Reply, ReplyReader};
use crate::schema::Fill;
use crate::target::{Address, Target};

/// Bytes of commands that are sent in one go.
const BATCH_BYTES: usize = 1 << 20;

/// Batches that a server has not answered yet.
const BATCHES_IN_FLIGHT: usize = 2;

/// Rows and bytes that share a command, so that none holds up a server for long.
const ROWS_A_COMMAND: u64 = 512;
const BYTES_A_COMMAND: usize = 256 << 10;

pub async fn load(
    target: &Target,
    fill: &Fill,
    rows: Box<dyn RecordBatchReader + Send>,
    progress: &Progress,
) -> Result<(), DriverError> {
    let mut loader = Loader::connect(target, fill, progress).await?;
    for batch in rows {
        progress.check()?;
        loader.take_in(&batch.map_err(|error| DriverError::Data(error.to_string()))?).await?;
    }
    loader.finish().await
}

struct Loader<'a> {
    fill: &'a Fill,
    progress: &'a Progress,
    topology: Topology,
    /// To each master, in the order of the topology.
    pipes: Vec<Pipe>,
    group: Group,
    /// Key of the row that is being packed.
    key: Vec<u8>,
}

/// Rows with the same key, whose words are packed and will share a command.
#[derive(Default)]
struct Group {
    key: Vec<u8>,
    packed: Vec<u8>,
    words: usize,
    rows: u64,
}

impl<'a> Loader<'a> {
    async fn connect(target: &Target, fill: &'a Fill, progress: &'a Progress) -> Result<Self, DriverError> {
        let topology = Topology::ask(target, &target.addresses()).await?;
        let mut pipes = Vec::new();
        for address in &topology.masters {
            pipes.push(Pipe::new(target.connect(address).await?, address.clone()));
        }
        Ok(Self { fill, progress, topology, pipes, group: Group::default(), key: Vec::new() })
    }

    async fn take_in(&mut self, batch: &RecordBatch) -> Result<(), DriverError> {
        let fields = &self.fill.fields;
        let column =
            |name: &str| Column::of(batch, name).map_err(|error| DriverError::Data(format!("{}: {error}", fields.owner)));
        let columns: Vec<Column> = fields.list.iter().map(|field| column(&field.name)).collect::<Result<_, _>>()?;
        for row in 0..batch.num_rows() {
            let value = |place: usize| columns[place].value(row);
            let error = |error| self.fill.fields.error(error);
            self.key.clear();
            self.fill.command.append_key(&mut self.key, value).map_err(error)?;
            if !self.group.takes(&self.key, self.fill.is_variadic) {
                self.send_group().await?;
                std::mem::swap(&mut self.group.key, &mut self.key);
            }
            self.group.words += self.fill.command.append_words(&mut self.group.packed, value).map_err(error)?;
            self.group.rows += 1;
        }
        Ok(())
    }

    /// Makes a command of the group, and sends the batch when it is large enough.
    async fn send_group(&mut self) -> Result<(), DriverError> {
        if self.group.rows == 0 {
            return Ok(());
        }
        let pipe = &mut self.pipes[self.topology.master_of(&self.group.key)?];
        self.fill.command.append_head(&mut pipe.outgoing.bytes, &self.group.key, self.group.words);
        pipe.outgoing.bytes.append(&mut self.group.packed);
        pipe.commands += 1;
        pipe.rows += std::mem::take(&mut self.group.rows);
        self.group.words = 0;
        if pipe.outgoing.bytes.len() >= BATCH_BYTES {
            pipe.send(self.progress, &self.fill.fields.owner, BATCHES_IN_FLIGHT).await?;
        }
        Ok(())
    }

    async fn finish(mut self) -> Result<(), DriverError> {
        self.send_group().await?;
        for pipe in &mut self.pipes {
            pipe.send(self.progress, &self.fill.fields.owner, 0).await?;
        }
        Ok(())
    }
}

impl Group {
    fn takes(&self, key: &[u8], is_variadic: bool) -> bool {
        let has_room = self.rows < ROWS_A_COMMAND && self.packed.len() < BYTES_A_COMMAND;
        is_variadic && has_room && self.rows > 0 && self.key == key
    }
}

/// The connection to one master.
struct Pipe {
    address: Address,
    stream: Box<dyn Stream>,
    outgoing: Outgoing,
    incoming: Incoming,
    reader: ReplyReader,
    /// Commands and rows of the batch that is being packed.
    commands: usize,
    rows: u64,
    /// Batches that are not wholly answered.
    batches: VecDeque<Batch>,
}

struct Batch {
    /// Replies that are still to come.
    replies: usize,
    rows: u64,
    start: Instant,
}

impl Pipe {
    fn new(stream: Box<dyn Stream>, address: Address) -> Self {
        Self {
            address,
            stream,
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            reader: ReplyReader::default(),
            commands: 0,
            rows: 0,
            batches: VecDeque::new(),
        }
    }

    /// Sends the batch that is packed, and waits until at most `unanswered` batches are unanswered.
    async fn send(&mut self, progress: &Progress, table: &str, unanswered: usize) -> Result<(), DriverError> {
        if self.commands > 0 {
            self.batches.push_back(Batch { replies: self.commands, rows: self.rows, start: Instant::now() });
            (self.commands, self.rows) = (0, 0);
        }
        poll_fn(|context| self.poll_exchange(progress, table, unanswered, context)).await
    }

    fn poll_exchange(
        &mut self,
        progress: &Progress,
        table: &str,
        unanswered: usize,
        context: &mut Context,
    ) -> Poll<Result<(), DriverError>> {
        let sent = self.outgoing.poll_send(&mut self.stream, context).map_err(|problem| self.address.unreachable(problem))?;
        while sent.is_pending() || self.batches.len() > unanswered {
            let received = ready!(self.incoming.poll_receive(&mut self.stream, context));
            received.map_err(|problem| self.address.unreachable(problem))?;
            self.read_replies(progress, table)?;
        }
        Poll::Ready(Ok(()))
    }

    fn read_replies(&mut self, progress: &Progress, table: &str) -> Result<(), DriverError> {
        let mut at = 0;
        while let Some(batch) = self.batches.front_mut() {
            let read = self.reader.read(self.incoming.unread(), &mut at, None);
            match read.map_err(|problem| self.address.unreachable(problem))? {
                None => break,
                Some(Reply::Refused(text)) => return Err(self.refused(&text, table)),
                Some(Reply::Whole(_)) => batch.replies -= 1,
            }
            if batch.replies == 0 {
                progress.add_batch(batch.rows, batch.start.elapsed());
                self.batches.pop_front();
            }
        }
        self.incoming.consume(at);
        Ok(())
    }

    fn refused(&self, text: &str, table: &str) -> DriverError {
        let advice = match Redirection::of(text, &self.address) {
            Some(_) => "; load again when the cluster has settled, because rows are not sent twice",
            None => "",
        };
        DriverError::Statement(format!("{table}: {} refused a command: {text}{advice}", self.address))
    }
}
