"""What the client says of itself: whether the figures are the database's or its own. Each warning names what to do next."""

from typing import Any

from sensorbench.results import ComparisonResult, RunResult
from sensorbench.results.manifest import MEASURE

# Above this share of the driver's no-op ceiling, the client is what is measured.
CLIENT_BOUND_SHARE = 0.5
# Above this share of a processor for each of its threads, the client is what is measured.
CLIENT_BOUND_CPU = 0.8
# A timer that is late by more than this share of a median response time shows in it.
LARGE_LAG_SHARE = 0.2
# Where the response time is so many times the service time, looking at the latter alone hides what users wait for.
HIDDEN_FACTOR = 2.0


def honesty(result: ComparisonResult, runs: dict[str, list[RunResult]]) -> dict[str, Any]:
    """For each setting what its client did, and warnings."""
    ceilings = result.manifest.environment.get("driver_ceilings_per_s", {})
    settings = {}
    warnings: list[dict[str, str]] = []
    for setting in result.manifest.settings:
        facts = _facts(runs[setting.id], setting.embedded, ceilings.get(setting.database))
        settings[setting.id] = facts
        warnings += [{"setting": setting.id, **warning} for warning in _warnings(facts, setting.embedded)]
    return {"settings": settings, "warnings": _damaged(result) + warnings + _failed(result) + _general(result)}


def _facts(runs: list[RunResult], embedded: bool, ceiling: float | None) -> dict[str, Any]:
    wholes = [run.manifest.whole for run in runs if run.manifest.whole]
    phases = [phase for whole in wholes for phase in whole.phases if phase.name == MEASURE]
    elapsed_s = sum(
        (phase.end_ns - phase.start_ns) / 1e9 for phase in phases if phase.start_ns is not None and phase.end_ns is not None
    )
    counts = [operation["counts"] for phase in phases for operation in phase.operations.values()]
    ended = sum(sum(count.values()) for count in counts)
    whole_s = sum(whole.duration_ns for whole in wholes) / 1e9
    client_cpu = sum(whole.client_cpu_ns for whole in wholes) / 1e9 / whole_s if whole_s else None
    rate = ended / elapsed_s if elapsed_s else None
    lags = [whole.timer_lag_ns for whole in wholes if whole.timer_lag_ns]
    facts = {
        "runs": len(runs),
        "rate_per_s": rate,
        "started": sum(phase.started for phase in phases),
        "unstarted": sum(phase.unstarted for phase in phases),
        "late": sum(operation["late"] for phase in phases for operation in phase.operations.values()),
        "ok": sum(count["ok"] for count in counts),
        "timeouts": sum(count["timeout"] for count in counts),
        "errors": sum(count["error"] for count in counts),
        "cancelled": sum(count["cancelled"] for count in counts),
        "error_kinds": [error for whole in wholes for error in whole.errors],
        "client_cpu": client_cpu,
        "client_cpu_is_shared_with_database": embedded,
        **{
            f"schedule_lag_{quantile}_s": max(lag[quantile] for lag in lags) / 1e9 if lags else None
            for quantile in ("p50", "p99", "p999")
        },
        "least_median_s": _least_median_s(phases),
        "driver_ceiling_per_s": ceiling,
        "spinning": any(run.manifest.plan["spin"] for run in runs),
        "clock_drift": max((abs(whole.clock_drift) for whole in wholes), default=None),
        "hidden_by_service_time": _hidden(phases, max((lag["p999"] for lag in lags), default=0)),
    }
    bound = client_bound(
        rate_per_s=rate,
        ceiling_per_s=ceiling,
        client_cpu=client_cpu,
        threads=runs[0].manifest.plan["threads"] if runs else 1,
        embedded=embedded,
    )
    return {**facts, "client_bound": bound}


def client_bound(
    *, rate_per_s: float | None, ceiling_per_s: float | None, client_cpu: float | None, threads: int, embedded: bool
) -> str | None:
    """Why the client was the limit, if it was: by the rate, by what the driver reaches when the database does nothing, by the processors
    that the client kept busy and by how many threads it had for its work.
    """
    # A server's ceiling is mostly the way there and back: there, the client's processor time tells.
    if embedded and rate_per_s and ceiling_per_s and rate_per_s > CLIENT_BOUND_SHARE * ceiling_per_s:
        share = rate_per_s / ceiling_per_s
        return f"{rate_per_s:,.0f} operations/s are {share:.0%} of what the driver reaches when the database does nothing ({ceiling_per_s:,.0f}/s)"
    if not embedded and client_cpu and client_cpu > CLIENT_BOUND_CPU * threads:
        return f"the client kept {client_cpu:.2f} processors busy, with {threads} threads for its operations"
    return None


def _least_median_s(phases: list[Any]) -> float | None:
    """The median response time of the quickest kind of operation."""
    medians = [
        operation["response_ns"]["p50"] for phase in phases for operation in phase.operations.values() if operation["response_ns"]
    ]
    return min(medians) / 1e9 if medians else None


def _hidden(phases: list[Any], timer_lag_ns: int) -> list[dict[str, Any]]:
    """Operations of an open loop whose response time is much longer than their service time, and not by the client's timer."""
    hidden = []
    for phase in phases:
        for name, operation in phase.operations.items():
            response, service = operation["response_ns"], operation["service_ns"]
            if not response or not operation["wait_ns"]:
                continue
            waited_ns = response["p999"] - service["p999"]
            if response["p999"] > HIDDEN_FACTOR * service["p999"] and waited_ns > HIDDEN_FACTOR * timer_lag_ns:
                hidden.append(
                    {"operation": name, "response_p999_s": response["p999"] / 1e9, "service_p999_s": service["p999"] / 1e9}
                )
    return hidden


def _warnings(facts: dict[str, Any], embedded: bool) -> list[dict[str, str]]:
    warnings = []

    def warn(kind: str, text: str, action: str) -> None:
        warnings.append({"kind": kind, "text": text, "action": action})

    if facts["client_bound"]:
        warn(
            "client-bound",
            f"The client was the limit: {facts['client_bound']}.",
            "Read the figures as a lower bound; ask for more work an operation or use more client threads.",
        )
    if facts["unstarted"]:
        warn(
            "unstarted",
            f"{facts['unstarted']:,} operations that were due never started: all that may be in flight were.",
            "Lower the rate, or raise in_flight if the server is idle.",
        )
    if facts["errors"]:
        first = facts["error_kinds"][0]
        warn(
            "errors",
            f"{facts['errors']:,} operations failed; the first: {first['first_message']}",
            "Mend the cause; figures are of the other operations only.",
        )
    if facts["timeouts"]:
        warn(
            "timeouts",
            f"{facts['timeouts']:,} operations timed out; they count at their limit.",
            "Raise timeout if the answers matter, or lower the load.",
        )
    if facts["hidden_by_service_time"]:
        worst = max(facts["hidden_by_service_time"], key=lambda one: float(one["response_p999_s"]))
        warn(
            "queueing",
            f"Operations waited for their start: the p99.9 of {worst['operation']} is {worst['response_p999_s'] * 1e3:,.3g} ms from when it was due, but only "
            f"{worst['service_p999_s'] * 1e3:,.3g} ms from its start. A closed loop would hide this.",
            "Report the response time; raise in_flight to see whether the server or the limit makes them wait.",
        )
    lag_s, median_s = facts["schedule_lag_p50_s"], facts["least_median_s"]
    if lag_s and median_s and lag_s > LARGE_LAG_SHARE * median_s:
        warn(
            "lag",
            f"The client's own timer was late by {lag_s * 1e6:.3g} µs (median), which is {lag_s / median_s:.0%} of the shortest median response time.",
            "Compare service times for operations as short as these, or set spin = true if a processor can be spared.",
        )
    return warnings


def _damaged(result: ComparisonResult) -> list[dict[str, str]]:
    """Files of the results that are damaged, and without which all else can be shown."""
    action = "Restore the file from a copy, or remove the folder of its run and measure it again with --resume."
    return [
        {"setting": setting, "kind": "damaged", "text": f"A file of the results is damaged: {text}.", "action": action}
        for setting, text in result.damage
    ]


def _failed(result: ComparisonResult) -> list[dict[str, str]]:
    """Settings that were left out of work that went on without them."""
    action = "Go on with --resume when the cause is mended."
    return [
        {"setting": setting, "kind": "failed", "text": f"It failed at {failure['step']}: {failure['cause']}.", "action": action}
        for setting, failure in result.failures.items()
    ]


def _general(result: ComparisonResult) -> list[dict[str, str]]:
    environment = result.manifest.environment
    warnings = []
    if any(setting.embedded for setting in result.manifest.settings):
        warnings.append(
            {
                "setting": "",
                "kind": "embedded",
                "text": "Embedded databases run inside the client's process: their latencies have no network in them, and the client's processor time is theirs, too.",
                "action": "Compare them with one another, not with servers.",
            }
        )
    if environment.get("load_before", [0.0])[0] > 0.5 * (environment.get("processors") or 1):
        warnings.append(
            {
                "setting": "",
                "kind": "busy",
                "text": f"The machine was busy before the start (load {environment['load_before'][0]}).",
                "action": "Repeat on an idle machine.",
            }
        )
    if result.state != "complete":
        warnings.append(
            {
                "setting": "",
                "kind": "state",
                "text": f"The work is {result.state}: {result.manifest.reason or 'it was ended from outside'}.",
                "action": "Go on with --resume.",
            }
        )
    return warnings
