//! The one clock of a run. Everything that has a time in a result has it from here.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime, timerfd_create,
    timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Reads the time and waits for it. The real one is [`RealClock`]; tests bring a clock that jumps.
pub trait Clock: Clone + 'static {
    /// Waits on this clock.
    type Timer: Timer;

    /// Nanoseconds since the clock was made.
    fn now_ns(&self) -> u64;

    /// A timer for the current thread; made inside the runtime that polls it.
    fn timer(&self) -> io::Result<Self::Timer>;
}

/// Waits for a time on its clock, as exactly as it can.
pub trait Timer {
    /// Waits until `at_ns`.
    fn until(&mut self, at_ns: u64) -> impl Future<Output = ()>;
}

/// The processor's time stamp counter where the kernel itself keeps time by it, else CLOCK_MONOTONIC.
///
/// Two readings cost some 25 ns less than two of CLOCK_MONOTONIC, which is a third of what an operation costs the engine
/// at all. The counter's rate is measured against CLOCK_MONOTONIC once a process; [`RealClock::drift`] returns how well it
/// kept.
#[derive(Clone, Debug)]
pub struct RealClock {
    counter: Counter,
    origin: Reading,
    /// Nanoseconds a count, times 2^32.
    scale: u64,
}

/// What is counted.
#[derive(Clone, Copy, Debug)]
enum Counter {
    /// Ticks of the time stamp counter.
    #[cfg(target_arch = "x86_64")]
    TimeStamp,
    /// Nanoseconds of CLOCK_MONOTONIC.
    Monotonic,
}

impl Counter {
    /// The cheapest counter that is steady and equal on all processors. The kernel, which has checked that, says so.
    fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::fs::read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .is_ok_and(|name| name.trim_ascii() == b"tsc")
        {
            return Counter::TimeStamp;
        }
        Counter::Monotonic
    }

    #[inline(always)]
    fn read(self) -> u64 {
        match self {
            // SAFETY: every processor of this architecture has the instruction.
            #[cfg(target_arch = "x86_64")]
            Counter::TimeStamp => unsafe { std::arch::x86_64::_rdtsc() },
            Counter::Monotonic => {
                let time = clock_gettime(ClockId::Monotonic);
                time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
            }
        }
    }
}

/// The counter and CLOCK_MONOTONIC at one moment.
#[derive(Clone, Copy, Debug)]
struct Reading {
    count: u64,
    monotonic: Instant,
}

/// How long the counter's rate is measured: long enough that reading the two clocks some 50 ns apart makes an error of
/// one in a million.
const CALIBRATION: Duration = Duration::from_millis(50);

impl Reading {
    /// The tightest of several readings, so that an interruption between the two clocks does no harm.
    fn of(counter: Counter) -> Self {
        let read = || {
            let before = counter.read();
            let monotonic = Instant::now();
            let after = counter.read();
            (after - before, Reading { count: before + (after - before) / 2, monotonic })
        };
        (0..16).map(|_| read()).min_by_key(|(width, _)| *width).expect("sixteen readings").1
    }
}

/// The present as std has it, and the same on CLOCK_MONOTONIC in nanoseconds: what std does not report.
fn monotonic_now() -> (Instant, u64) {
    let read = || {
        let before = Instant::now();
        let time_ns = Counter::Monotonic.read();
        let width = before.elapsed();
        (width, (before + width / 2, time_ns))
    };
    (0..16).map(|_| read()).min_by_key(|(width, _)| *width).expect("sixteen readings").1
}

impl Default for RealClock {
    fn default() -> Self {
        static CALIBRATED: OnceLock<(Counter, u64)> = OnceLock::new();
        let (counter, scale) = *CALIBRATED.get_or_init(|| {
            let counter = Counter::best();
            let start = Reading::of(counter);
            std::thread::sleep(CALIBRATION);
            let end = Reading::of(counter);
            let elapsed_ns = end.monotonic.duration_since(start.monotonic).as_nanos() as f64;
            (counter, (elapsed_ns / (end.count - start.count) as f64 * 2f64.powi(32)) as u64)
        });
        Self { counter, origin: Reading::of(counter), scale }
    }
}

impl RealClock {
    /// A clock whose zero was at `origin_ns` of CLOCK_MONOTONIC: that of other processes of this machine, too.
    pub fn with_origin(origin_ns: u64) -> Self {
        let clock = Self::default();
        let (now, now_ns) = monotonic_now();
        let passed = Duration::from_nanos(now_ns.saturating_sub(origin_ns));
        let Some(origin) = now.checked_sub(passed) else { return clock };
        let before = clock.origin.monotonic.saturating_duration_since(origin).as_nanos();
        let counted = ((before << 32) / u128::from(clock.scale)) as u64;
        let count = clock.origin.count.saturating_sub(counted);
        Self { origin: Reading { count, monotonic: origin }, ..clock }
    }

    /// When this clock was at zero, on CLOCK_MONOTONIC.
    pub fn origin(&self) -> Instant {
        self.origin.monotonic
    }

    /// How far this clock is ahead of CLOCK_MONOTONIC, as a share of the time since it was made.
    pub fn drift(&self) -> f64 {
        let now = Reading::of(self.counter);
        let elapsed_ns = now.monotonic.duration_since(self.origin.monotonic).as_nanos() as f64;
        self.nanoseconds_at(now.count) as f64 / elapsed_ns - 1.0
    }

    #[inline]
    fn nanoseconds_at(&self, count: u64) -> u64 {
        ((u128::from(count.saturating_sub(self.origin.count)) * u128::from(self.scale)) >> 32) as u64
    }

    /// Blocks the thread until `at_ns`.
    pub fn block_until(&self, at_ns: u64) {
        // clock_nanosleep, which std uses for sleeping on Linux.
        while let Some(left_ns) = at_ns.checked_sub(self.now_ns()).filter(|left_ns| *left_ns > 0) {
            std::thread::sleep(Duration::from_nanos(left_ns));
        }
    }
}

impl Clock for RealClock {
    type Timer = RealTimer;

    #[inline]
    fn now_ns(&self) -> u64 {
        self.nanoseconds_at(self.counter.read())
    }

    fn timer(&self) -> io::Result<RealTimer> {
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        // SAFETY: an OwnedFd names the same open descriptor for as long as it lives, and AsyncFd owns it.
        let descriptor = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE)? };
        Ok(RealTimer { clock: self.clone(), descriptor })
    }
}

/// A timerfd: tokio's own timers have a resolution of one millisecond.
pub struct RealTimer {
    clock: RealClock,
    descriptor: AsyncFd<OwnedFd>,
}

impl Timer for RealTimer {
    async fn until(&mut self, at_ns: u64) {
        while let Some(left_ns) = at_ns.checked_sub(self.clock.now_ns()).filter(|left_ns| *left_ns > 0) {
            let left = Timespec { tv_sec: (left_ns / 1_000_000_000) as i64, tv_nsec: (left_ns % 1_000_000_000) as _ };
            let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: left };
            timerfd_settime(&self.descriptor, TimerfdTimerFlags::empty(), &once).expect("a timer of this process can be set");
            let mut ready = self.descriptor.readable().await.expect("the runtime polls the timer");
            // Setting the timer again takes back its expirations, so that nothing needs to be read from it.
            ready.clear_ready();
        }
    }
}

/// Lets the kernel wake this thread as early as it can instead of up to 50 µs later.
pub fn ask_for_exact_wakeups() {
    // Not being allowed to is not an error: the schedule lag in a report shows what it costs.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// How long a turn of a thread is that asked for short ones: the shortest that Linux gives.
const SHORT_TURN: Duration = Duration::from_micros(100);

/// Has the kernel give this thread shorter turns than others, and let it go before them when it wakes: on a machine whose CPUs are all busy, those that
/// run keep it waiting for milliseconds else. Linux does so from 6.12 on, and needs no privilege for it; elsewhere nothing changes.
pub fn ask_for_short_turns() {
    const LENGTH: u32 = size_of::<libc::sched_attr>() as u32;
    // SAFETY: all zeros are a value of this structure of numbers, and the kernel writes and reads no more of it than its length, which it is given.
    unsafe {
        let mut attributes: libc::sched_attr = std::mem::zeroed();
        let is_known = libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, LENGTH, 0) == 0;
        if is_known && attributes.sched_policy == libc::SCHED_OTHER as u32 {
            attributes.sched_runtime = SHORT_TURN.as_nanos() as u64;
            // Not being allowed to is not an error: the report shows the lag that it costs.
            libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0);
        }
    }
}

/// Has the kernel let this thread go before all others of usual priority, whenever it wakes. For a thread that keeps time and needs little of a CPU: what
/// else is busy there, be it this process's own connecting and recording or a server on the same machine, keeps it waiting for milliseconds else, in
/// spite of short turns. It takes a privilege (root, or CAP_SYS_NICE).
pub fn ask_for_precedence() {
    const HIGHEST: i32 = -20;
    // SAFETY: no memory is given. 0 is the calling thread.
    unsafe {
        // Not being allowed to is not an error: the report shows the lag that it costs.
        libc::setpriority(libc::PRIO_PROCESS, 0, HIGHEST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precedence_is_of_the_thread_that_asked() {
        // SAFETY: no memory is given.
        let priority = || unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        let (before, is_permitted) = (priority(), rustix::process::geteuid().is_root());
        let theirs = std::thread::spawn(move || {
            ask_for_precedence();
            priority()
        });
        assert_eq!(theirs.join().unwrap(), if is_permitted { -20 } else { before });
        assert_eq!(priority(), before);
    }

    #[test]
    fn clocks_with_one_origin_show_one_time() {
        let origin_ns = Counter::Monotonic.read();
        let early = RealClock::with_origin(origin_ns);
        std::thread::sleep(Duration::from_millis(20));
        let late = RealClock::with_origin(origin_ns);
        let (before, shown, after) = (early.now_ns(), late.now_ns(), early.now_ns());
        assert!(before >= 20_000_000, "{before}");
        // A counter's rate is known to some parts in a million.
        let tolerance_ns = 5_000;
        assert!(shown + tolerance_ns >= before && shown <= after + tolerance_ns, "{before} {shown} {after}");
    }
}
