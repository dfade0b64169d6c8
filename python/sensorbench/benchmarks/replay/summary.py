"""The summary of a replay."""

from typing import Literal

from sensorbench.compat.figures import damaged_files, measured_phase
from sensorbench.results.engine_report import LatencyReport, OperationReport
from sensorbench.results.manifest import OUTCOMES, PhaseFigures
from sensorbench.results.replay import ComparedTemplate, PlannedTemplate, ReplayResult
from sensorbench.results.summary.comparison import ClientHealth
from sensorbench.results.summary.envelope import Caveats, envelope
from sensorbench.results.summary.replay import Percentiles, ReplayCounts, ReplayedTemplate, ReplayFigures, ReplaySummary
from sensorbench.runner import health_of_client, warn_of_client
from sensorbench.wording import counted

# Where a larger share of the statements started late (by LATE_S or more), the recorded pace was not kept.
LATE_S, LATE_SHARE = 1e-3, 0.01
# It was the replayer who was late where the p99 of its own lag is more than this share of that of all statements.
OWN_SHARE = 0.5


def summarise_replay(result: ReplayResult) -> ReplaySummary:
    """The summary of a replay on disk."""
    manifest, run = result.manifest, result.run
    phase = measured_phase(run) if run else None
    health = health_of_client([run] if run else [], manifest.variants[0].embedded, None)
    totals = run.manifest.totals if run else None
    own_lag = _percentiles(totals.timer_lag_ns) if totals else None
    counts = _counts(manifest.plan.statements, phase, health)
    late_because = _late_because(own_lag, phase, health)
    caveats = Caveats(damaged_files(run) if run else [])
    warn_of_client(caveats, health.model_copy(update={"dropped": 0}))
    _warn(caveats, late_because, own_lag, counts, result)
    compared = {each.template: each for each in result.compared.templates} if result.compared else {}
    return ReplaySummary(
        **envelope(manifest),
        answers_equal=_answers_equal(result),
        warnings=caveats,
        result=ReplayFigures(
            plan=manifest.plan,
            run_s=phase.length_s if phase else None,
            counts=counts,
            own_lag_s=own_lag,
            late_starts=health.late,
            late_because=late_because,
            templates=[
                _template(planned, phase.operations[planned.name], compared.get(planned.name))
                for planned in manifest.plan.templates
                if phase and sum(phase.operations[planned.name]["counts"].values())
            ],
            answers=result.compared.answers if result.compared else None,
            client_health=health,
        ),
    )


def _answers_equal(result: ReplayResult) -> bool | None:
    """Whether two targets gave the same answers; None if there was one alone."""
    if result.compared is None or result.compared.answers is None:
        return None
    return not any(each.rows_differ or each.values_differ for each in result.compared.answers)


def _counts(statements: int, phase: PhaseFigures | None, health: ClientHealth) -> ReplayCounts:
    """What became of all statements; nothing if the replay was cut short before it was counted."""
    started = phase.started if phase else 0
    lost = sum(error.count for error in health.error_kinds if error.kind == "connection")
    return ReplayCounts(
        statements=statements,
        started=started,
        not_started=statements - started,
        ok=health.ok,
        error=health.errors,
        timeout=health.timeouts,
        cancelled=health.cancelled,
        unknown=health.timeouts + health.cancelled + lost,
    )


def _late_because(
    own_lag: Percentiles | None, phase: PhaseFigures | None, health: ClientHealth
) -> Literal["nobody", "replayer", "target"]:
    """Who made statements start late, if more than a few did."""
    if phase is None or health.late <= LATE_SHARE * phase.started:
        return "nobody"
    lags = [figures["schedule_lag_ns"] for figures in phase.operations.values()]
    lag_s = max((lag["p99"] / 1e9 for lag in lags if lag), default=0.0)
    own_lag_s = own_lag.p99 if own_lag else 0.0
    return "replayer" if own_lag_s > max(LATE_S, OWN_SHARE * lag_s) else "target"


def _warn(
    caveats: Caveats,
    late_because: Literal["nobody", "replayer", "target"],
    own_lag: Percentiles | None,
    counts: ReplayCounts,
    result: ReplayResult,
) -> None:
    if late_because == "replayer" and own_lag:
        caveats.add(
            "late-replayer",
            f"The replayer itself was late: its own lag has a p99 of {own_lag.p99 * 1e3:,.3g} ms where the target kept nothing waiting.",
            "Run it on an idle machine, apart from the server, or at a lower speed; response times contain its lag.",
        )
    if late_because == "target":
        caveats.add(
            "slow-target",
            "Statements started late because their sessions still waited for the answer before, or for a connection: the target is slower "
            "than the recorded pace.",
            "Read the response times: they count from the intended start.",
        )
    if counts.unknown:
        caveats.add(
            "unknown",
            f"It is unknown whether the server executed {counted(counts.unknown, 'statement')}. Reasons: a timeout, a cancellation or a lost connection.",
            "Look at the server's log where they were writes.",
        )
    if result.compared is not None:
        new = sum(each.new_errors for each in result.compared.templates)
        differ = sum(each.rows_differ for each in result.compared.templates)
        if new:
            caveats.add(
                "new-errors",
                f"{counted(new, 'statement')} failed that had succeeded when they were recorded.",
                "See the errors; the data at the target may be others than those of the trace.",
            )
        if _answers_equal(result) is False:
            caveats.add(
                "answers-differ",
                "The two targets gave different answers.",
                "See which templates: what has no order may be cut off by LIMIT at other rows, and functions of time differ always.",
            )
        if differ:
            caveats.add(
                "rows-differ",
                f"{counted(differ, 'statement')} returned or changed another number of rows than when they were recorded.",
                "Restore the data of the trace at the target before the replay.",
            )


def _template(planned: PlannedTemplate, figures: OperationReport, compared: ComparedTemplate | None) -> ReplayedTemplate:
    counts = {outcome: figures["counts"][outcome] for outcome in OUTCOMES}
    return ReplayedTemplate(
        template=planned.name,
        kind=planned.kind,
        statement=planned.statement,
        started=sum(counts.values()),
        **counts,
        response_s=_percentiles(figures["response_ns"]),
        service_s=_percentiles(figures["service_ns"]),
        recorded_p50_s=compared.recorded_p50_s if compared else None,
        recorded_p99_s=compared.recorded_p99_s if compared else None,
        recorded_errors=compared.recorded_errors if compared else None,
        new_errors=compared.new_errors if compared else None,
        gone_errors=compared.gone_errors if compared else None,
        rows_compared=compared.rows_compared if compared else None,
        rows_differ=compared.rows_differ if compared else None,
    )


def _percentiles(report: LatencyReport | None) -> Percentiles | None:
    return Percentiles(p50=report["p50"] / 1e9, p99=report["p99"] / 1e9, max=report["max"] / 1e9) if report else None
