"""What the machine says of itself: read twice, before and after measurements, because most of it are counters."""

import shutil
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path("/")
_CPU = "sys/devices/system/cpu"
# Columns of /proc/stat that make up all time; the eighth is what the hypervisor gave to others.
_TICKS, _STEAL = 8, 7


@dataclass(frozen=True)
class MachineReading:
    """Sizes are in bytes; what cannot be read is None, or empty."""

    clock_source: str | None
    governors: tuple[str, ...]
    # How often a core was throttled since the machine started, and how often this process' control group was.
    throttled_cores: int | None
    throttled_group: int | None
    stolen_ticks: int | None
    ticks: int | None
    # Pages that were written to the swap or read from it, since the machine started.
    swapped_pages: int | None
    memory: int | None
    free_memory: int | None
    swap_in_use: int | None
    free_disk: int | None


def read_machine(folder: Path, root: Path = ROOT) -> MachineReading:
    """Reads the machine.

    Args:
        folder: where results go, or the nearest folder above it that is there.
        root: where /proc and /sys are.

    """
    ticks = [int(word) for word in _first_line(root / "proc/stat").split()[1 : _TICKS + 1]]
    memory, pages = _numbers(root / "proc/meminfo"), _numbers(root / "proc/vmstat")
    # Kernel sizes are in KiB.
    sizes = {name: 1024 * value for name, value in memory.items()}
    swapped = [pages[name] for name in ("pswpin", "pswpout") if name in pages]
    swap = [sizes[name] for name in ("SwapTotal", "SwapFree") if name in sizes]
    return MachineReading(
        clock_source=_first_line(root / "sys/devices/system/clocksource/clocksource0/current_clocksource") or None,
        governors=tuple(sorted({_first_line(file) for file in (root / _CPU).glob("cpu[0-9]*/cpufreq/scaling_governor")})),
        throttled_cores=_sum_of(root / _CPU, "cpu[0-9]*/thermal_throttle/core_throttle_count"),
        throttled_group=_numbers(_control_group(root) / "cpu.stat").get("nr_throttled"),
        stolen_ticks=ticks[_STEAL] if len(ticks) == _TICKS else None,
        ticks=sum(ticks) if len(ticks) == _TICKS else None,
        swapped_pages=sum(swapped) if swapped else None,
        memory=sizes.get("MemTotal"),
        free_memory=sizes.get("MemAvailable"),
        swap_in_use=swap[0] - swap[1] if len(swap) == 2 else None,
        free_disk=_free_disk(folder),
    )


def clock_resolution_s(readings: int = 20_000) -> float:
    """The smallest step (s) that the clock of this process makes between two readings."""
    times = [time.perf_counter_ns() for _ in range(readings)]
    steps = [after - before for before, after in pairwise(times) if after > before]
    return min(steps) / 1e9 if steps else (times[-1] - times[0]) / 1e9 or 1.0


def wakeup_floor_s(sleeps: int) -> float:
    """How late (s) this machine wakes a thread that sleeps for 1 ms, at the 99th percentile: no client can be earlier."""
    late_s = []
    for _ in range(sleeps):
        start_s = time.perf_counter()
        time.sleep(0.001)
        late_s.append(time.perf_counter() - start_s - 0.001)
    return sorted(late_s)[int(0.99 * (len(late_s) - 1))]


def _first_line(file: Path) -> str:
    """The first line of a file; nothing if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _numbers(file: Path) -> dict[str, int]:
    """The lines of a file that are a name and a number; none where it cannot be read."""
    try:
        lines = [line.replace(":", " ").split() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError):
        return {}
    return {words[0]: int(words[1]) for words in lines if len(words) >= 2 and words[1].isdigit()}


def _sum_of(folder: Path, pattern: str) -> int | None:
    counts = [int(line) for file in folder.glob(pattern) if (line := _first_line(file)).isdigit()]
    return sum(counts) if counts else None


def _control_group(root: Path) -> Path:
    """The folder of this process' control group."""
    line = _first_line(root / "proc/self/cgroup")
    return root / "sys/fs/cgroup" / line.rpartition("::")[2].lstrip("/")


def _free_disk(folder: Path) -> int | None:
    folder = folder.resolve()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None
