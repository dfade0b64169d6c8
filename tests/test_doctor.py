"""The doctor: each problem of a machine is planted and found, and the verdict follows from what was measured. No test asserts a speed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sensorbench.analysis.verdicts import compare
from sensorbench.benchmarks.doctor import Diagnosis, Noise, OperationNoise, check_noise, diagnosis_of
from sensorbench.benchmarks.doctor.ceilings import stall_p999_error
from sensorbench.benchmarks.doctor.checks import Timers, check_machine
from sensorbench.benchmarks.doctor.diagnosis import Check
from sensorbench.benchmarks.doctor.machine import MachineReading, clock_resolution_s, read_machine, wakeup_floor_s
from tests.conftest import Cli

EXAMPLE = Path(__file__).parent.parent / "docs/example/experiment.toml"
# So many that each operation is among them, however slow the machine is.
FEW = ("--set", "workload.duration=1m", "--set", "workload.operations=60")
GB = 1_000_000_000
# A machine on which all is well.
BEFORE = MachineReading(
    clock_source="tsc",
    governors=("performance",),
    throttled_cores=3,
    throttled_group=4,
    stolen_ticks=100,
    ticks=10_000,
    swapped_pages=7,
    memory=16 * GB,
    free_memory=8 * GB,
    swap_in_use=0,
    free_disk=100 * GB,
)
AFTER = replace(BEFORE, ticks=20_000)
TIMERS = Timers(resolution_s=30e-9, floor_s=55e-6, lag_s=60e-6)
CEILINGS = {"null_ops_per_s": 12e6, "stall_p999_error": 0.001}
NAMES = (
    "clock",
    "CPU governor",
    "CPU throttling",
    "timer lag",
    "steal time",
    "free memory",
    "free disk",
    "swap",
    "no-op ceiling",
    "percentiles",
)


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def diagnosed(
    after: MachineReading = AFTER, timers: Timers = TIMERS, ceilings: dict[str, Any] | None = None, noise: Noise | None = None
) -> Diagnosis:
    checks = check_machine(BEFORE, after, timers, ceilings or CEILINGS)
    if noise:
        checks.append(check_noise(noise))
    return diagnosis_of(checks, timers.lag_s, timers.resolution_s, ceilings or CEILINGS, noise, quick=False)


def test_a_good_machine_is_trusted_above_ten_times_the_clients_lag() -> None:
    found = diagnosed()
    assert tuple(check.name for check in found.checks) == NAMES
    assert {check.state for check in found.checks} == {"ok"}
    assert not any(check.action for check in found.checks)
    assert found.trusted_above_s == pytest.approx(600e-6)
    assert found.verdict == "Latencies above 0.6 ms can be trusted on this machine."


@pytest.mark.parametrize(
    ("lag_s", "resolution_s", "said"),
    [
        (37.1e-6, 30e-9, "0.38"),
        (9.99e-6, 30e-9, "0.1"),
        (1e-6, 0.9e-6, "0.01"),
        (0.5e-6, 0.9e-6, "0.009"),
        (4.41e-3, 30e-9, "45"),
    ],
)
def test_the_verdict_follows_from_lag_and_clock_and_promises_no_more(lag_s: float, resolution_s: float, said: str) -> None:
    found = diagnosed(timers=Timers(resolution_s, lag_s, lag_s))
    assert found.verdict.startswith(f"Latencies above {said} ms can be trusted")
    assert float(said) / 1e3 >= (found.trusted_above_s or 0.0) * 0.999999


PLANTED: list[tuple[str, str, Callable[[], Diagnosis]]] = [
    ("clock", "problem", lambda: diagnosed(timers=replace(TIMERS, resolution_s=1e-3))),
    ("clock", "warning", lambda: diagnosed(replace(AFTER, clock_source="hpet"))),
    ("CPU governor", "warning", lambda: diagnosed(replace(AFTER, governors=("performance", "powersave")))),
    ("CPU throttling", "problem", lambda: diagnosed(replace(AFTER, throttled_cores=5))),
    ("CPU throttling", "problem", lambda: diagnosed(replace(AFTER, throttled_group=5))),
    ("timer lag", "warning", lambda: diagnosed(timers=replace(TIMERS, lag_s=20e-3))),
    ("steal time", "warning", lambda: diagnosed(replace(AFTER, stolen_ticks=100 + 200))),
    ("steal time", "problem", lambda: diagnosed(replace(AFTER, stolen_ticks=100 + 600))),
    ("free memory", "warning", lambda: diagnosed(replace(AFTER, free_memory=GB // 2))),
    ("free memory", "problem", lambda: diagnosed(replace(AFTER, free_memory=GB // 10))),
    ("free disk", "warning", lambda: diagnosed(replace(AFTER, free_disk=5 * GB))),
    ("free disk", "problem", lambda: diagnosed(replace(AFTER, free_disk=GB // 2))),
    ("swap", "warning", lambda: diagnosed(replace(AFTER, swap_in_use=GB))),
    ("swap", "problem", lambda: diagnosed(replace(AFTER, swapped_pages=8))),
    ("no-op ceiling", "warning", lambda: diagnosed(ceilings={**CEILINGS, "null_ops_per_s": 5e5})),
    ("percentiles", "problem", lambda: diagnosed(ceilings={**CEILINGS, "stall_p999_error": 0.3})),
    ("A/A noise", "warning", lambda: diagnosed(noise=noise_of(["faster", *["equivalent"] * 3]))),
    ("A/A noise", "problem", lambda: diagnosed(noise=noise_of(["faster", "slower", "faster", "equivalent"]))),
]


@pytest.mark.parametrize(("name", "state", "diagnose"), PLANTED, ids=lambda value: value if isinstance(value, str) else "")
def test_a_planted_problem_is_found(name: str, state: str, diagnose: Callable[[], Diagnosis]) -> None:
    found = diagnose()
    check = by_name(found.checks)[name]
    assert check.state == state
    assert check.action
    assert {each.state for each in found.checks if each.name != name} == {"ok"}
    assert name in found.verdict
    assert (found.trusted_above_s is None) == (state == "problem")
    assert found.verdict.startswith("No latency can be trusted" if state == "problem" else "Latencies above")


def test_what_cannot_be_read_is_said_to_be_unknown(tmp_path: Path) -> None:
    nothing = read_machine(tmp_path, root=tmp_path)
    checks = by_name(check_machine(nothing, nothing, TIMERS, {}))
    unknown = {name for name, check in checks.items() if check.state == "unknown"}
    assert unknown == set(NAMES) - {"timer lag", "free disk"}
    assert not any(checks[name].action for name in unknown)


def machine_in(root: Path, *, governors: tuple[str, ...] = ("performance", "performance")) -> Path:
    """Files of a machine as the kernel has them."""
    files = {
        "proc/stat": "cpu  10 20 30 40 50 60 70 80 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n",
        "proc/meminfo": "MemTotal:       1000 kB\nMemAvailable:    600 kB\nSwapTotal:       500 kB\nSwapFree:        100 kB\n",
        "proc/vmstat": "nr_free_pages 1\npswpin 3\npswpout 4\n",
        "proc/self/cgroup": "0::/user.slice/a\n",
        "sys/fs/cgroup/user.slice/a/cpu.stat": "usage_usec 5\nnr_periods 8\nnr_throttled 2\n",
        "sys/devices/system/clocksource/clocksource0/current_clocksource": "kvm-clock\n",
    }
    for number, governor in enumerate(governors):
        folder = f"sys/devices/system/cpu/cpu{number}"
        files[f"{folder}/cpufreq/scaling_governor"] = f"{governor}\n"
        files[f"{folder}/thermal_throttle/core_throttle_count"] = "4\n"
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")
    return root


def test_a_machine_is_read_as_the_kernel_writes_it(tmp_path: Path) -> None:
    found = read_machine(tmp_path / "results/none/yet", root=machine_in(tmp_path, governors=("powersave", "performance")))
    assert found.free_disk
    assert replace(found, free_disk=None) == MachineReading(
        clock_source="kvm-clock",
        governors=("performance", "powersave"),
        throttled_cores=8,
        throttled_group=2,
        stolen_ticks=80,
        ticks=360,
        swapped_pages=7,
        memory=1_024_000,
        free_memory=614_400,
        swap_in_use=409_600,
        free_disk=None,
    )


def test_the_clock_and_the_wakeups_of_this_machine_are_measured() -> None:
    assert 0.0 < clock_resolution_s() < 1.0
    assert wakeup_floor_s(20) >= 0.0


def noise_of(verdicts: list[str]) -> Noise:
    operations = [
        OperationNoise(operation=f"q{number}", a_s=1.0, b_s=1.0, ratio=1.0, low=0.9, high=1.1, verdict=verdict)
        for number, verdict in enumerate(verdicts)
    ]
    different = [each.operation for each in operations if each.verdict != "equivalent"]
    return Noise(experiment="mine", operations=operations, different=different, detectable=0.11, report="")


def test_the_noise_of_an_experiment_is_part_of_the_verdict() -> None:
    found = diagnosed(noise=noise_of(["equivalent"] * 3))
    assert found.verdict == "Latencies above 0.6 ms can be trusted on this machine. Of mine, differences above 11.0% can be seen."


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which all is well, whatever this one is."""
    checks = check_machine(BEFORE, AFTER, TIMERS, CEILINGS)
    monkeypatch.setattr("sensorbench.app.doctor.examine", lambda *_, **__: (checks, TIMERS, CEILINGS))


@pytest.mark.usefixtures("measured")
def test_an_experiment_runs_against_itself(cli: Cli, tmp_path: Path) -> None:
    ended = cli("doctor", EXAMPLE, *FEW, "--out", tmp_path / "aa", "--json")
    assert ended.exit_code == 0, ended.err
    noise = Diagnosis.model_validate(ended.json).noise
    assert noise
    assert {each.operation for each in noise.operations} == {"mean_of_hour", "readings_of_hour", "new_flow"}
    assert noise.different == [each.operation for each in noise.operations if each.verdict in {"faster", "slower"}]
    assert Path(noise.report).is_file()
    assert "A/A noise" in by_name([Check(**check) for check in ended.json["checks"]])


@pytest.mark.usefixtures("measured")
def test_a_difference_where_there_is_none_is_a_problem(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sensorbench.app.doctor.compare_samples", lambda *samples, **options: replace(compare(*samples, **options), word="slower")
    )
    ended = cli("doctor", EXAMPLE, *FEW, "--out", tmp_path / "aa")
    assert ended.exit_code == 0, ended.err
    said = " ".join(ended.out.split())
    assert "3 of 3 operations differ from themselves" in said
    assert "No latency can be trusted on this machine as it is. Solve first: A/A noise." in said


@pytest.mark.usefixtures("measured")
def test_the_checks_and_the_verdict_are_printed(cli: Cli) -> None:
    ended = cli("doctor", "--quick")
    assert ended.exit_code == 0, ended.err
    assert all(name in ended.out for name in NAMES)
    assert ended.out.rstrip().endswith("Latencies above 0.6 ms can be trusted on this machine.")


@pytest.mark.parametrize("arguments", [("--out", "folder"), ("--set", "workload.duration=1s")])
def test_options_of_the_aa_run_need_an_experiment(cli: Cli, arguments: tuple[str, ...]) -> None:
    ended = cli("doctor", *arguments)
    assert (ended.exit_code, "name an experiment file" in ended.err) == (2, True), ended.err


@pytest.mark.long("growth of the memory shows only over millions of operations")
def test_the_clients_ceilings_are_measured(cli: Cli) -> None:
    ended = cli("doctor", "--quick", "--json")
    assert ended.exit_code == 0, ended.err
    figures = ended.json["ceilings"]
    assert {
        "null_ops_per_s",
        "open_loop_p99_us",
        "stall_p999_error",
        "generator_rows_per_s",
        "rss_growth_bytes",
        "driver_ceiling",
    } <= set(figures)
    assert set(figures["open_loop_p99_us"]) == {"timer", "spinning"}
    assert set(figures["driver_ceiling"]) >= {"null", "sqlite", "fjall"}
    assert figures["null_ops_per_s"] > 0
    # An error of arithmetic, not a speed. Other tests may interrupt the client for a moment, which only adds to it: then the stall is measured again.
    assert figures["stall_p999_error"] < 0.02 or any(stall_p999_error(10.0) < 0.02 for _ in range(3))
    # Ten million operations; a growth of one byte each would be ten million.
    assert figures["rss_growth_bytes"] < 5_000_000
