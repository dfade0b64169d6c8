//! Asynchronous sessions: one thread keeps many operations in flight.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use futures::future::LocalBoxFuture;
use futures::stream::{FuturesUnordered, Stream};
use sensorbench_driver::{AsyncSession, DriverError, Executing};

use crate::clock::{Clock, Timer};
use crate::dispatcher::{Next, Ticket};
use crate::recorder::{Batch, Recorder};
use crate::shared::Shared;
use crate::slot::{Done, Slot};

/// After this many operations of one slot the others get their turn, even if it never had to wait.
const OPERATIONS_BETWEEN_YIELDS: u32 = 256;
/// How often deadlines, cancellation and changed rates are looked at.
const TICK_NS: u64 = 50_000_000;
/// How often deadlines are looked at where the time limit is short.
const MIN_TICK_NS: u64 = 1_000_000;
/// A time limit is passed by at most such a part of it.
const TICKS_PER_TIMEOUT: u64 = 100;

/// One thread's share of a run.
pub(crate) struct Worker<'a, C> {
    pub shared: &'a Shared,
    pub recorder: &'a Recorder,
    pub session: &'a dyn AsyncSession,
    pub clock: C,
    /// Most operations that this worker may have in flight.
    pub concurrency: usize,
    /// Number of its first slot. The others follow, and then those of the next worker.
    pub first_slot: usize,
}

/// What the slots of a worker share. All of it lives on one thread.
struct Pool<'a, C: Clock> {
    worker: &'a Worker<'a, C>,
    batch: RefCell<Batch>,
    /// Number of slots, and how the watchman reaches each of them.
    slots: Cell<usize>,
    watches: RefCell<Vec<Rc<Watch>>>,
    turn: Turn<C::Timer>,
    /// Slots that were asked for and are not polled yet.
    new_slots: RefCell<Vec<NewSlot>>,
}

struct NewSlot {
    number: usize,
    watch: Rc<Watch>,
}

/// How the watchman reaches the operation in a slot.
struct Watch {
    /// When it must be over; u64::MAX when there is none.
    deadline_ns: Cell<u64>,
    waker: RefCell<Option<Waker>>,
}

/// Runs the worker's share until no operation is left.
pub(crate) async fn work<C: Clock>(worker: &Worker<'_, C>) -> std::io::Result<()> {
    let turn = Turn::with(worker.clock.timer()?);
    let pool = Pool {
        worker,
        batch: RefCell::default(),
        slots: Cell::new(0),
        watches: RefCell::default(),
        turn,
        new_slots: RefCell::default(),
    };
    let mut tasks: FuturesUnordered<LocalBoxFuture<()>> = FuturesUnordered::new();
    tasks.push(Box::pin(watch_over(&pool, worker.clock.timer()?)));
    pool.add_slot();
    poll_fn(|context| {
        loop {
            tasks.extend(
                pool.new_slots.take().into_iter().map(|new| Box::pin(RunningSlot::new(&pool, new)) as LocalBoxFuture<()>),
            );
            let polled = Pin::new(&mut tasks).poll_next(context);
            if pool.new_slots.borrow().is_empty() {
                match polled {
                    // Only the watchman is left, who never ends.
                    _ if tasks.len() == 1 => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(_) => {}
                }
            }
        }
    })
    .await;
    pool.batch.borrow_mut().hand_over(worker.recorder);
    Ok(())
}

impl<C: Clock> Pool<'_, C> {
    fn add_slot(&self) {
        let watch = Rc::new(Watch { deadline_ns: Cell::new(u64::MAX), waker: RefCell::default() });
        let number = self.worker.first_slot + self.slots.get();
        self.slots.set(self.slots.get() + 1);
        self.watches.borrow_mut().push(watch.clone());
        self.new_slots.borrow_mut().push(NewSlot { number, watch });
    }

    /// One slot must always be there for the operation after the one that is starting, as long as more are allowed.
    #[inline(always)]
    fn add_slot_if_needed(&self) {
        if self.slots.get() < self.worker.concurrency && self.turn.is_free() {
            self.add_slot();
        }
    }

    /// Why an operation that is not ready must end early, if it must; else the watchman learns how to wake it.
    fn reason_to_give_up(&self, watch: &Watch, now_ns: impl FnOnce() -> u64, context: &mut Context) -> Poll<DriverError> {
        if self.worker.shared.is_cancelled() {
            return Poll::Ready(DriverError::Cancelled);
        }
        if now_ns() >= watch.deadline_ns.get() {
            return Poll::Ready(DriverError::Timeout);
        }
        let mut waker = watch.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
        Poll::Pending
    }

    /// The next operation and whether it had to be awaited; None when there are no more.
    async fn next_at_intended_start(&self) -> Option<(Ticket, bool)> {
        let worker = self.worker;
        let mut timer = self.turn.take().await;
        let mut awaited = false;
        let next = loop {
            match worker.shared.dispatcher.next(worker.clock.now_ns(), || worker.clock.now_ns()) {
                Next::Ticket(ticket) => break Some((ticket, awaited)),
                Next::Ended => break None,
                Next::NotBefore(_) if worker.shared.plan.spin => yield_once().await,
                // In slices, because the rate may be raised while we wait.
                Next::NotBefore(intended_start_ns) => timer.until(intended_start_ns.min(worker.clock.now_ns() + TICK_NS)).await,
            }
            awaited = true;
        };
        self.turn.give(timer);
        next
    }
}

/// Who may wait for the intended start of the next operation: whoever holds the timer. The others queue for it; the last one to
/// come is served first, because its memory is still in the cache.
struct Turn<T> {
    timer: Cell<Option<T>>,
    queue: RefCell<Vec<Rc<Waiting<T>>>>,
}

struct Waiting<T> {
    timer: Cell<Option<T>>,
    waker: RefCell<Option<Waker>>,
}

impl<T> Turn<T> {
    fn with(timer: T) -> Self {
        Self { timer: Cell::new(Some(timer)), queue: RefCell::default() }
    }

    fn is_free(&self) -> bool {
        let timer = self.timer.take();
        let is_free = timer.is_some();
        self.timer.set(timer);
        is_free
    }

    async fn take(&self) -> T {
        if let Some(timer) = self.timer.take() {
            return timer;
        }
        let waiting = Rc::new(Waiting { timer: Cell::new(None), waker: RefCell::default() });
        self.queue.borrow_mut().push(waiting.clone());
        poll_fn(|context| match waiting.timer.take() {
            Some(timer) => Poll::Ready(timer),
            None => {
                *waiting.waker.borrow_mut() = Some(context.waker().clone());
                Poll::Pending
            }
        })
        .await
    }

    fn give(&self, timer: T) {
        let Some(waiting) = self.queue.borrow_mut().pop() else { return self.timer.set(Some(timer)) };
        waiting.timer.set(Some(timer));
        waiting.waker.borrow().iter().for_each(Waker::wake_by_ref);
    }
}

/// One operation after the other. This is a future written by hand, and not an `async` block, because an operation that is
/// answered at once then costs a third less: what is known of it stays in registers.
struct RunningSlot<'a, C: Clock> {
    pool: &'a Pool<'a, C>,
    watch: Rc<Watch>,
    slot: Slot,
    /// The wait for the next operation, when there is one.
    waiting: Option<LocalBoxFuture<'a, Option<(Ticket, bool)>>>,
    /// The operation that is being executed, when there is one.
    in_flight: Option<InFlight<'a>>,
    /// The last time that this slot knows of: the end of its last operation.
    now_ns: u64,
    operations_until_yield: u32,
}

struct InFlight<'a> {
    ticket: Ticket,
    awaited: bool,
    start_ns: u64,
    executing: Executing<'a>,
}

impl<'a, C: Clock> RunningSlot<'a, C> {
    fn new(pool: &'a Pool<'a, C>, NewSlot { number, watch }: NewSlot) -> Self {
        let now_ns = pool.worker.clock.now_ns();
        Self {
            pool,
            watch,
            slot: Slot::new(number),
            waiting: None,
            in_flight: None,
            now_ns,
            operations_until_yield: OPERATIONS_BETWEEN_YIELDS,
        }
    }

    /// Starts an operation; ready when it ended.
    #[inline(always)]
    fn execute(&mut self, ticket: Ticket, awaited: bool, context: &mut Context) -> Poll<()> {
        let worker = self.pool.worker;
        let plan = &worker.shared.plan;
        self.pool.add_slot_if_needed();
        self.slot.begin(plan, ticket);
        let start_ns = worker.clock.now_ns();
        self.watch.deadline_ns.set(start_ns + plan.timeout_ns);
        let executing = worker.session.execute(self.slot.request.take().unwrap_or_default());
        // The clock is not read again for its deadline: it has only just begun.
        self.go_on(InFlight { ticket, awaited, start_ns, executing }, || start_ns, context)
    }

    /// Goes on with an operation; ready when it ended.
    #[inline(always)]
    fn go_on(&mut self, mut in_flight: InFlight<'a>, now_ns: impl FnOnce() -> u64, context: &mut Context) -> Poll<()> {
        let result = match in_flight.executing.as_mut().poll(context) {
            Poll::Ready((request, result)) => {
                self.slot.request = Some(request);
                result
            }
            Poll::Pending => match self.pool.reason_to_give_up(&self.watch, now_ns, context) {
                Poll::Ready(reason) => Err(reason),
                Poll::Pending => {
                    self.in_flight = Some(in_flight);
                    return Poll::Pending;
                }
            },
        };
        let worker = self.pool.worker;
        let plan = &worker.shared.plan;
        let result = result.and_then(|()| self.slot.work(plan));
        self.now_ns = worker.clock.now_ns();
        self.watch.deadline_ns.set(u64::MAX);
        let InFlight { ticket, awaited, start_ns, .. } = in_flight;
        let done = Done { ticket, awaited, start_ns, end_ns: self.now_ns, result };
        self.slot.end(plan, done, &mut self.pool.batch.borrow_mut(), worker.recorder);
        Poll::Ready(())
    }

    /// Waits for the next operation and executes it; ready with false when there is none.
    fn wait(&mut self, mut waiting: LocalBoxFuture<'a, Option<(Ticket, bool)>>, context: &mut Context) -> Poll<bool> {
        match waiting.as_mut().poll(context) {
            Poll::Ready(Some((ticket, awaited))) => self.execute(ticket, awaited, context).map(|()| true),
            Poll::Ready(None) => Poll::Ready(false),
            Poll::Pending => {
                self.waiting = Some(waiting);
                Poll::Pending
            }
        }
    }
}

impl<C: Clock> Future for RunningSlot<'_, C> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<()> {
        let this = &mut *self;
        if let Some(in_flight) = this.in_flight.take() {
            let clock = &this.pool.worker.clock;
            ready!(this.go_on(in_flight, || clock.now_ns(), context));
        } else if let Some(waiting) = this.waiting.take()
            && !ready!(this.wait(waiting, context))
        {
            return Poll::Ready(());
        }
        let worker = this.pool.worker;
        loop {
            match worker.shared.dispatcher.next(this.now_ns, || worker.clock.now_ns()) {
                Next::Ticket(ticket) => ready!(this.execute(ticket, false, context)),
                Next::NotBefore(_) if ready!(this.wait(Box::pin(this.pool.next_at_intended_start()), context)) => {}
                _ => return Poll::Ready(()),
            }
            this.operations_until_yield -= 1;
            if this.operations_until_yield == 0 {
                this.operations_until_yield = OPERATIONS_BETWEEN_YIELDS;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }
}

/// Wakes operations whose time is over, and hands over records that would otherwise grow old.
async fn watch_over<C: Clock>(pool: &Pool<'_, C>, mut timer: C::Timer) {
    let worker = pool.worker;
    // Each look wakes a processor, which costs as much as an operation.
    let tick_ns = (worker.shared.plan.timeout_ns / TICKS_PER_TIMEOUT).clamp(MIN_TICK_NS, TICK_NS);
    loop {
        timer.until(worker.clock.now_ns() + tick_ns).await;
        pool.batch.borrow_mut().hand_over(worker.recorder);
        let (cancelled, now_ns) = (worker.shared.is_cancelled(), worker.clock.now_ns());
        for watch in pool.watches.borrow().iter() {
            let deadline_ns = watch.deadline_ns.get();
            if now_ns >= deadline_ns || (cancelled && deadline_ns != u64::MAX) {
                watch.waker.borrow().iter().for_each(Waker::wake_by_ref);
            }
        }
    }
}

/// Lets others run once.
async fn yield_once() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
