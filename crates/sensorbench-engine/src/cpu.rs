//! CPU time of this process and of its threads.

use rustix::time::{ClockId, clock_gettime};

/// CPU time of the calling thread, in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    cpu_ns(ClockId::ThreadCPUTime)
}

/// CPU time of the process, in nanoseconds.
pub(crate) fn process_cpu_ns() -> u64 {
    cpu_ns(ClockId::ProcessCPUTime)
}

/// What a clock of CPU time says, in nanoseconds.
pub(crate) fn cpu_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
