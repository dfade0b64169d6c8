//! A clock that jumps to the next time somebody waits for, and an executor that moves it: twenty seconds of load pass in a
//! moment and come out the same every time.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::{Poll, Waker};

use futures::executor::LocalPool;
use futures::task::LocalSpawnExt;

use crate::clock::{Clock, Timer};

#[derive(Clone, Default)]
pub(crate) struct FakeClock(Rc<State>);

#[derive(Default)]
struct State {
    now_ns: Cell<u64>,
    waiting: RefCell<Vec<(u64, Waker)>>,
}

pub(crate) struct FakeTimer(FakeClock);

impl Clock for FakeClock {
    type Timer = FakeTimer;

    fn now_ns(&self) -> u64 {
        self.0.now_ns.get()
    }

    fn timer(&self) -> std::io::Result<FakeTimer> {
        Ok(FakeTimer(self.clone()))
    }
}

impl Timer for FakeTimer {
    async fn until(&mut self, at_ns: u64) {
        let mut queued = false;
        poll_fn(|context| {
            if self.0.now_ns() >= at_ns {
                return Poll::Ready(());
            }
            if !std::mem::replace(&mut queued, true) {
                self.0.0.waiting.borrow_mut().push((at_ns, context.waker().clone()));
            }
            Poll::Pending
        })
        .await;
    }
}

impl FakeClock {
    /// Runs a future to its end, moving the clock whenever nothing else can continue.
    pub fn run(&self, future: impl Future<Output = ()> + 'static) {
        let mut executor = LocalPool::new();
        let done = Rc::new(Cell::new(false));
        let is_done = done.clone();
        let body = async move {
            future.await;
            is_done.set(true);
        };
        executor.spawner().spawn_local(body).expect("the executor takes a task");
        loop {
            executor.run_until_stalled();
            if done.get() {
                return;
            }
            self.jump();
        }
    }

    fn jump(&self) {
        let mut waiting = self.0.waiting.borrow_mut();
        let next_ns = waiting.iter().map(|(at_ns, _)| *at_ns).min().expect("somebody waits for something");
        self.0.now_ns.set(next_ns);
        let (passed, later): (Vec<_>, Vec<_>) = waiting.drain(..).partition(|(at_ns, _)| *at_ns <= next_ns);
        *waiting = later;
        passed.into_iter().for_each(|(_, waker)| waker.wake());
    }
}

mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use sensorbench_driver::{AsyncSession, Executing, Request};
    use serde_json::json;

    use super::*;
    use crate::asynchronous::{Worker, work};
    use crate::recorder::{Figures, Recorder, merge_figures};
    use crate::shared::Shared;
    use crate::{Plan, ReadyPlan};

    const SECOND: u64 = 1_000_000_000;
    const RATE: u64 = 10_000;
    const STALL: std::ops::Range<u64> = 10 * SECOND..11 * SECOND;

    /// Answers after 50 µs, but holds every call for one second once.
    struct StallingServer(FakeClock);

    impl AsyncSession for StallingServer {
        fn execute(&self, request: Box<Request>) -> Executing<'_> {
            let now_ns = self.0.now_ns();
            let end_ns = if STALL.contains(&now_ns) { STALL.end } else { now_ns + 50_000 };
            Box::pin(async move {
                FakeTimer(self.0.clone()).until(end_ns).await;
                (request, Ok(()))
            })
        }
    }

    /// Twenty seconds at 10,000/s.
    fn stalled(concurrency: usize) -> Figures {
        let plan: Plan = serde_json::from_value(json!({
            "seed": 1,
            "operations": [{"weight": 1.0, "operation": {"name": "nothing"}}],
            "phases": [{"name": "measure", "duration_s": 20.0, "pace": {"segments": [{"from_per_s": RATE as f64}]}}],
            "concurrency": concurrency,
            "timeout_s": 60.0,
        }))
        .unwrap();
        let (plan, dispatcher) = ReadyPlan::with_dispatcher(plan, &[]).unwrap();
        let recorder = Rc::new(Recorder::new(&plan));
        let shared = Shared { plan, dispatcher, cancelled: Arc::new(AtomicBool::new(false)) };
        let clock = FakeClock::default();
        let (worker_clock, worker_recorder) = (clock.clone(), recorder.clone());
        clock.run(async move {
            shared.dispatcher.start(0);
            let session = StallingServer(worker_clock.clone());
            let (shared, recorder, session, clock) = (&shared, &*worker_recorder, &session, worker_clock);
            let worker = Worker { shared, recorder, session, clock, concurrency, first_slot: 0 };
            work(&worker).await.unwrap();
        });
        let mut totals = vec![Figures::default()];
        recorder.take(u64::MAX).intervals.iter().for_each(|interval| merge_figures(&mut totals, &interval.figures));
        totals.remove(0)
    }

    fn assert_within_a_hundredth(name: &str, measured_ns: u64, expected_s: f64) {
        let ratio = measured_ns as f64 / (expected_s * SECOND as f64);
        assert!((ratio - 1.0).abs() <= 0.01, "{name}: {measured_ns} ns instead of {expected_s} s");
    }

    #[test]
    fn a_stall_of_one_second_shows_in_the_response_times_as_arithmetic_has_it() {
        // 200,000 operations, of which the 10,000 that fall into the stall wait evenly from one second down to nothing.
        let figures = stalled(20_000);
        assert_eq!(figures.ended(), 20 * RATE);
        let response = |quantile| figures.response.quantile(quantile).unwrap();
        assert_within_a_hundredth("p99", response(0.99), 0.8);
        assert_within_a_hundredth("p99.9", response(0.999), 0.98);
        assert_within_a_hundredth("max", figures.response.max().unwrap(), 1.0);
        assert_eq!(figures.late, 0, "with enough in flight every operation starts as intended");
    }

    #[test]
    fn with_one_in_flight_only_the_response_time_tells_of_the_stall() {
        // 9,999 operations queue up behind the one that is held, and are worked off at 20,000/s while 10,000/s more come.
        let figures = stalled(1);
        assert_eq!(figures.ended(), 20 * RATE);
        assert!(figures.service.quantile(0.999).unwrap() < 100_000, "the service time hides the stall");
        assert!(figures.response.quantile(0.99).unwrap() > SECOND / 2, "the response time shows it");
        assert_within_a_hundredth("max", figures.response.max().unwrap(), 1.0);
    }
}
