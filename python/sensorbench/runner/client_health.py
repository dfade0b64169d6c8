"""Load-generator health: whether the figures are the database's or the client's own. Each warning says what to do next."""

from collections import Counter
from collections.abc import Iterable

from sensorbench.results import ComparisonResult, RunResult
from sensorbench.results.manifest import GeneratorTotals, PhaseFigures, RunTotals
from sensorbench.results.summary.comparison import ClientHealth, HiddenWait
from sensorbench.results.summary.envelope import Caveat, Caveats, errors_of
from sensorbench.results.summary.generators import GeneratorFigures
from sensorbench.wording import counted

# Above this share of the driver's no-op ceiling, the client is what is measured.
CLIENT_BOUND_SHARE = 0.5
# Above this share of a processor for each of its threads, the client is what is measured.
CLIENT_BOUND_CPU = 0.8
# A timer that is late by more than this share of a median response time shows in it.
LARGE_LAG_SHARE = 0.2
# A load generator whose timer is late by more than this is named.
LATE_GENERATOR_NS = 1_000_000
# Where the response time is this many times the service time, looking at the latter alone hides what users wait for.
HIDDEN_FACTOR = 2.0


def check_client_health(
    result: ComparisonResult, runs: dict[str, list[RunResult]]
) -> tuple[dict[str, ClientHealth], list[Caveat]]:
    """Load-generator health by variant, and all warnings."""
    ceilings = result.manifest.environment.get("driver_ceilings_per_s", {})
    health, caveats = {}, Caveats()
    _add_damaged(caveats, result)
    for variant in result.manifest.variants:
        facts = health_of_client(runs[variant.id], variant.embedded, ceilings.get(variant.database))
        health[variant.id] = facts
        warn_of_client(caveats, facts, variant.id)
        warn_of_generators(caveats, [run.manifest.totals for run in runs[variant.id] if run.manifest.totals], variant.id)
    _add_failed(caveats, result)
    _add_general(caveats, result)
    return health, caveats


def health_of_client(runs: list[RunResult], embedded: bool, ceiling: float | None) -> ClientHealth:
    """Load-generator health over runs of a variant; `ceiling`: operations per second of its driver when the database does nothing."""
    all_totals = [run.manifest.totals for run in runs if run.manifest.totals]
    phases = [phase for run in runs for phase in run.manifest.measured]
    operations = [operation for phase in phases for operation in phase.operations.values()]
    elapsed_s = sum(phase.length_s or 0.0 for phase in phases)
    counts = Counter[str]()
    for operation in operations:
        counts.update(operation["counts"])
    whole_s = sum(totals.duration_ns for totals in all_totals) / 1e9
    client_cpu = sum(totals.client_cpu_ns for totals in all_totals) / 1e9 / whole_s if whole_s else None
    rate = counts.total() / elapsed_s if elapsed_s else None
    lags = [totals.timer_lag_ns for totals in all_totals if totals.timer_lag_ns]
    threads = runs[0].manifest.plan["threads"] if runs else 1
    processes = runs[0].manifest.plan.get("generators", 1) if runs else 1
    return ClientHealth(
        runs=len(runs),
        rate_per_s=rate,
        started=sum(phase.started for phase in phases),
        dropped=sum(phase.dropped for phase in phases),
        late=sum(operation["late"] for operation in operations),
        ok=counts["ok"],
        timeouts=counts["timeout"],
        errors=counts["error"],
        cancelled=counts["cancelled"],
        error_kinds=errors_of(run.manifest for run in runs),
        client_cpu=client_cpu,
        client_cpu_is_shared_with_database=embedded,
        schedule_lag_p50_s=_max_s(lag["p50"] for lag in lags),
        schedule_lag_p99_s=_max_s(lag["p99"] for lag in lags),
        schedule_lag_p999_s=_max_s(lag["p999"] for lag in lags),
        min_median_s=_min_median_s(phases),
        driver_ceiling_per_s=ceiling,
        spinning=any(run.manifest.plan["spin"] for run in runs),
        clock_drift=max((abs(totals.clock_drift) for totals in all_totals), default=None),
        hidden_by_service_time=_hidden(phases, max((lag["p999"] for lag in lags), default=0)),
        client_bound=bound_generators(all_totals, threads)
        or client_bound(
            rate_per_s=rate,
            # What the driver reaches in one process.
            ceiling_per_s=ceiling * processes if ceiling else None,
            client_cpu=client_cpu,
            threads=threads * processes,
            embedded=embedded,
        ),
    )


def client_bound(
    *, rate_per_s: float | None, ceiling_per_s: float | None, client_cpu: float | None, threads: int, embedded: bool
) -> str | None:
    """Why the client was the limit, if it was: by the rate, by what the driver reaches when the database does nothing, by the processors
    that the client kept busy and by how many threads it had for its work.
    """
    # A server's ceiling is mostly the way there and back: there, the client's CPU time decides.
    if embedded and rate_per_s and ceiling_per_s and rate_per_s > CLIENT_BOUND_SHARE * ceiling_per_s:
        share = rate_per_s / ceiling_per_s
        return f"{rate_per_s:,.0f} operations/s are {share:.0%} of what the driver reaches when the database does nothing ({ceiling_per_s:,.0f}/s)"
    if not embedded and client_cpu and client_cpu > CLIENT_BOUND_CPU * threads:
        return f"the client kept {client_cpu:.2f} CPUs busy, with {threads} threads for its operations"
    return None


def generator_name(number: int) -> str:
    """How a load generator is called in a sentence."""
    return f"load generator {number}"


def bound_generators(all_totals: Iterable[RunTotals], threads: int) -> str | None:
    """Which load generators were the limit of the runs that they shared, and why, by the processors that they kept busy; `threads` of each."""
    reasons: dict[int, str] = {}
    for generator in (generator for totals in all_totals for generator in totals.generators):
        cpu = generator.client_cpu_ns / generator.duration_ns if generator.duration_ns else None
        reason = client_bound(rate_per_s=None, ceiling_per_s=None, client_cpu=cpu, threads=threads, embedded=False)
        if reason is not None:
            reasons.setdefault(generator.number, f"{generator_name(generator.number)}: {reason}")
    return "; ".join(reasons[number] for number in sorted(reasons)) or None


def generator_figures(runs: Iterable[RunResult]) -> list[GeneratorFigures]:
    """What the load generators of runs did, and how well the clocks of their hosts are known; in the order of their numbers."""
    of_number: dict[int, list[GeneratorTotals]] = {}
    for totals in (run.manifest.totals for run in runs if run.manifest.totals):
        for generator in totals.generators:
            of_number.setdefault(generator.number, []).append(generator)
    return [_figures_of(number, of_number[number]) for number in sorted(of_number)]


def _figures_of(number: int, in_runs: list[GeneratorTotals]) -> GeneratorFigures:
    duration_ns = sum(generator.duration_ns for generator in in_runs)
    clocks = [generator.clock for generator in in_runs if generator.clock is not None]
    return GeneratorFigures(
        number=number,
        host=in_runs[-1].host,
        started=sum(generator.started for generator in in_runs),
        cpus=sum(generator.client_cpu_ns for generator in in_runs) / duration_ns if duration_ns else None,
        timer_lag_p99_s=_max_s(generator.timer_lag_ns["p99"] for generator in in_runs if generator.timer_lag_ns),
        wall_offset_s=clocks[-1].wall_offset_ns / 1e9 if clocks else None,
        corrected_by_s=clocks[-1].offset_ns / 1e9 if clocks else None,
        drift_s=max((clock.drift_ns / 1e9 for clock in clocks), key=abs, default=None),
        bound_s=max((clock.bound_ns / 1e9 for clock in clocks), default=None),
    )


def late_generators(all_totals: Iterable[RunTotals]) -> list[str]:
    """Load generators that began after the others, or whose own timer was late for half of what they waited for, and how late."""
    late: dict[int, str] = {}
    for generator in (generator for totals in all_totals for generator in totals.generators):
        name, lag = generator_name(generator.number), generator.timer_lag_ns
        if generator.start_lag_ns:
            late.setdefault(generator.number, f"{name} began {generator.start_lag_ns / 1e6:.3g} ms after the common start")
        elif lag and lag["p50"] > LATE_GENERATOR_NS:
            late.setdefault(generator.number, f"the timer of {name} was late by {lag['p50'] / 1e6:.3g} ms (median)")
    return [late[number] for number in sorted(late)]


def warn_of_generators(caveats: Caveats, all_totals: Iterable[RunTotals], variant: str = "") -> None:
    """Adds which load generators were late."""
    if late := late_generators(all_totals):
        caveats.add(
            "late-generator",
            f"Load generators were late: {'; '.join(late)}.",
            "Use fewer load generators than there are CPUs, or another machine; response times contain their lag.",
            variant,
        )


def _max_s(values_ns: Iterable[int]) -> float | None:
    """The greatest of some times, in s; None if there are none."""
    greatest_ns = max(values_ns, default=None)
    return None if greatest_ns is None else greatest_ns / 1e9


def _min_median_s(phases: list[PhaseFigures]) -> float | None:
    """The median response time of the quickest kind of operation."""
    medians = [
        operation["response_ns"]["p50"] for phase in phases for operation in phase.operations.values() if operation["response_ns"]
    ]
    return min(medians) / 1e9 if medians else None


def _hidden(phases: list[PhaseFigures], timer_lag_ns: int) -> list[HiddenWait]:
    """Operations of an open loop whose response time is much longer than their service time, and not by the client's timer."""
    hidden = []
    for phase in phases:
        for name, operation in phase.operations.items():
            response, service = operation["response_ns"], operation["service_ns"]
            if not response or not service or not operation["schedule_lag_ns"]:
                continue
            waited_ns = response["p999"] - service["p999"]
            if response["p999"] > HIDDEN_FACTOR * service["p999"] and waited_ns > HIDDEN_FACTOR * timer_lag_ns:
                hidden.append(
                    HiddenWait(operation=name, response_p999_s=response["p999"] / 1e9, service_p999_s=service["p999"] / 1e9)
                )
    return hidden


def warn_of_client(caveats: Caveats, facts: ClientHealth, variant: str = "") -> None:
    """Adds what is to be minded of a client's health; `variant` is empty if there is only one."""
    if facts.client_bound:
        caveats.add(
            "client-bound",
            f"The client was the limit: {facts.client_bound}.",
            "Read the figures as a lower bound; use operations with more work or more client threads.",
            variant,
        )
    if facts.dropped:
        caveats.add(
            "dropped",
            f"{facts.dropped:,} arrivals were dropped: they never started, because the concurrency limit was reached.",
            "Lower the rate, or raise concurrency if the server is idle.",
            variant,
        )
    if facts.errors:
        caveats.add(
            "errors",
            f"{counted(facts.errors, 'operation')} failed; the first: {facts.error_kinds[0].first_message}",
            "Fix the cause; figures are of the other operations only.",
            variant,
        )
    if facts.timeouts:
        caveats.add(
            "timeouts",
            f"{counted(facts.timeouts, 'operation')} timed out, and counted at the limit.",
            "Raise timeout if the answers matter, or lower the load.",
            variant,
        )
    if facts.hidden_by_service_time:
        worst = max(facts.hidden_by_service_time, key=lambda wait: wait.response_p999_s)
        caveats.add(
            "queueing",
            f"Operations waited for their start: the p99.9 of {worst.operation} is {worst.response_p999_s * 1e3:,.3g} ms from its intended start, but only "
            f"{worst.service_p999_s * 1e3:,.3g} ms from its start. A closed loop would hide this (coordinated omission).",
            "Report the response time; raise concurrency to see whether the server or the limit makes them wait.",
            variant,
        )
    lag_s, median_s = facts.schedule_lag_p50_s, facts.min_median_s
    if lag_s and median_s and lag_s > LARGE_LAG_SHARE * median_s:
        caveats.add(
            "lag",
            f"The client's own timer was late by {lag_s * 1e6:.3g} µs (median), which is {lag_s / median_s:.0%} of the shortest median response time.",
            "Compare service times for operations as short as these, or set spin = true if a CPU can be spared.",
            variant,
        )


def _add_damaged(caveats: Caveats, result: ComparisonResult) -> None:
    """Files of the results that are damaged, and without which all else can be shown."""
    action = "Restore the file from a copy, or remove the folder of its run and measure it again with --resume."
    for variant, text in result.damage:
        caveats.add("damaged", f"A file of the results is damaged: {text}.", action, variant)


def _add_failed(caveats: Caveats, result: ComparisonResult) -> None:
    """Variants that were left out of work that continued without them."""
    for variant, failure in result.failures.items():
        text = f"It failed at {failure.step}: {failure.cause}."
        caveats.add("failed", text, "Continue with --resume when the cause is fixed.", variant)


def _add_general(caveats: Caveats, result: ComparisonResult) -> None:
    environment = result.manifest.environment
    if any(variant.embedded for variant in result.manifest.variants):
        caveats.add(
            "embedded",
            "Embedded databases run inside the client's process: their latencies have no network in them, and the client's CPU time is theirs, too.",
            "Compare them with one another, not with servers.",
        )
    if environment.get("load_before", [0.0])[0] > 0.5 * (environment.get("processors") or 1):
        caveats.add(
            "busy",
            f"The machine was busy before the start (load {environment['load_before'][0]}).",
            "Repeat on an idle machine.",
        )
    if result.state != "complete":
        caveats.add(
            "state",
            f"The benchmark is {result.state}: {result.manifest.reason or 'it was ended from outside'}.",
            "Go on with --resume.",
        )
