"""What each reading says of a machine: ok, a warning, a problem, or not known."""

from dataclasses import dataclass
from math import comb

from sensorbench.benchmarks.doctor.ceilings import Figure
from sensorbench.benchmarks.doctor.diagnosis import Check, Noise, State
from sensorbench.benchmarks.doctor.machine import MachineReading

# Clocks that are read without a call into the kernel or the hypervisor.
FAST_CLOCKS = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page")
MAX_RESOLUTION_S = 1e-6
# How many times the machine's own lateness the client's may be, and what does not matter at all.
MAX_LAG_RATIO, NO_LAG_S = 5.0, 100e-6
WARN_STEAL, MAX_STEAL = 0.01, 0.05
GB = 1_000_000_000
WARN_MEMORY, MIN_MEMORY = 1 * GB, 0.25 * GB
WARN_DISK, MIN_DISK = 10 * GB, 1 * GB
MIN_OPS_PER_S = 1_000_000.0
MAX_STALL_ERROR = 0.02
# Operations of an A/A run differ by chance with this probability; so unlikely a number of them is none of chance.
DIFFERENT_BY_CHANCE, UNLIKELY = 0.05, 0.01


@dataclass(frozen=True)
class Timers:
    """In s: the smallest step of the clock; and at the 99th percentile, how late the machine wakes a thread and how late the client is."""

    resolution_s: float
    floor_s: float
    lag_s: float


def check_machine(
    before: MachineReading, after: MachineReading, timers: Timers, ceilings: dict[str, Figure | None]
) -> list[Check]:
    """All checks of a machine, from readings before and after the measurements."""
    return [
        _clock(after, timers),
        _governor(after),
        _throttling(before, after),
        _timer(timers),
        _steal(before, after),
        _free("free memory", after.free_memory, WARN_MEMORY, MIN_MEMORY, "end other programs, or take a smaller --scale"),
        _free("free disk", after.free_disk, WARN_DISK, MIN_DISK, "remove old results, or name another folder by --out"),
        _swap(before, after),
        _rate(ceilings),
        _percentiles(ceilings),
    ]


def _clock(reading: MachineReading, timers: Timers) -> Check:
    source = reading.clock_source
    measured = f"{source or 'source not known'}, steps of {timers.resolution_s * 1e9:,.0f} ns"
    if timers.resolution_s > MAX_RESOLUTION_S:
        return _check("clock", "problem", measured, "choose a finer clock source of the kernel: clocksource=tsc")
    if source is None:
        return _check("clock", "unknown", measured)
    if source not in FAST_CLOCKS:
        return _check("clock", "warning", measured, "reading this clock takes long; choose tsc if the kernel offers it")
    return _check("clock", "ok", measured)


def _governor(reading: MachineReading) -> Check:
    if not reading.governors:
        return _check("CPU governor", "unknown", "the kernel shows none, as in most virtual machines")
    measured = ", ".join(reading.governors)
    if reading.governors != ("performance",):
        return _check("CPU governor", "warning", measured, "keep the frequency: cpupower frequency-set -g performance")
    return _check("CPU governor", "ok", measured)


def _throttling(before: MachineReading, after: MachineReading) -> Check:
    counts = [
        (now - then, what)
        for now, then, what in (
            (after.throttled_cores, before.throttled_cores, "by heat: cool the machine, or take fewer threads"),
            (after.throttled_group, before.throttled_group, "by the limit of its control group: give it more CPU"),
        )
        if now is not None and then is not None
    ]
    if not counts:
        return _check("CPU throttling", "unknown", "neither cores nor the control group count it")
    times, why = max(counts)
    if times > 0:
        return _check("CPU throttling", "problem", f"{times:,} times during the check", f"throttled {why}")
    return _check("CPU throttling", "ok", "none during the check")


def _timer(timers: Timers) -> Check:
    lag, floor = timers.lag_s * 1e6, timers.floor_s * 1e6
    measured = f"the client is {lag:,.0f} µs late at p99; the machine wakes a thread {floor:,.0f} µs late"
    if timers.lag_s > max(MAX_LAG_RATIO * timers.floor_s, NO_LAG_S):
        return _check("timer lag", "warning", measured, "something else uses the CPU: end it, or measure from another machine")
    return _check("timer lag", "ok", measured)


def _steal(before: MachineReading, after: MachineReading) -> Check:
    if None in (before.ticks, after.ticks, before.stolen_ticks, after.stolen_ticks):
        return _check("steal time", "unknown", "the kernel does not count it")
    stolen = (after.stolen_ticks or 0) - (before.stolen_ticks or 0)
    share = stolen / max(1, (after.ticks or 0) - (before.ticks or 0))
    state: State = "problem" if share > MAX_STEAL else "warning" if share > WARN_STEAL else "ok"
    action = "the hypervisor gives the CPU to others: measure at another time, or on dedicated cores"
    return _check("steal time", state, f"{share:.1%} of the CPU time", action)


def _free(name: str, size: int | None, warn: float, minimum: float, action: str) -> Check:
    if size is None:
        return _check(name, "unknown", "it cannot be read")
    state: State = "problem" if size < minimum else "warning" if size < warn else "ok"
    return _check(name, state, f"{size / GB:,.1f} GB", action)


def _swap(before: MachineReading, after: MachineReading) -> Check:
    if before.swapped_pages is None or after.swapped_pages is None or after.swap_in_use is None:
        return _check("swap", "unknown", "the kernel does not count it")
    pages = after.swapped_pages - before.swapped_pages
    if pages > 0:
        return _check("swap", "problem", f"{pages:,} pages during the check", "the machine swaps: end other programs")
    if after.swap_in_use > 0:
        return _check("swap", "warning", f"{after.swap_in_use / GB:,.1f} GB in use, none moved", "turn it off: swapoff -a")
    return _check("swap", "ok", "not in use")


def _rate(ceilings: dict[str, Figure | None]) -> Check:
    per_s = ceilings.get("null_ops_per_s")
    if not isinstance(per_s, int | float):
        return _check("no-op ceiling", "unknown", "not measured")
    state: State = "warning" if per_s < MIN_OPS_PER_S else "ok"
    action = "the client limits fast embedded databases here: give it a CPU of its own"
    return _check("no-op ceiling", state, f"{per_s:,.0f} operations per second on one thread", action)


def _percentiles(ceilings: dict[str, Figure | None]) -> Check:
    error = ceilings.get("stall_p999_error")
    if not isinstance(error, int | float):
        return _check("percentiles", "unknown", "not measured")
    state: State = "problem" if error > MAX_STALL_ERROR else "ok"
    action = "a stall of known length is not seen as it is: something interrupts the client; end other programs"
    return _check("percentiles", state, f"p99.9 of a known stall is {error:.2%} off", action)


def check_noise(noise: Noise) -> Check:
    """What an A/A run says of a machine. That one operation of many differs may be chance."""
    different, of = len(noise.different), len(noise.operations)
    if not of:
        return _check("A/A noise", "unknown", "no operation was measured")
    by_chance = sum(
        comb(of, number) * DIFFERENT_BY_CHANCE**number * (1.0 - DIFFERENT_BY_CHANCE) ** (of - number)
        for number in range(different, of + 1)
    )
    state: State = "ok" if not different else "problem" if by_chance < UNLIKELY else "warning"
    measured = f"{different} of {of} operations differ from themselves"
    if noise.detectable is not None:
        measured += f"; differences above {noise.detectable:.1%} can be seen"
    return _check("A/A noise", state, measured, "measure longer, with more repetitions, on a machine with less to do")


def _check(name: str, state: State, measured: str, action: str = "") -> Check:
    """A check. What is well needs no action."""
    return Check(name=name, state=state, measured=measured, action=action if state in ("warning", "problem") else "")
