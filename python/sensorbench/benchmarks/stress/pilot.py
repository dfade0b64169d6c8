"""The pilot of work on records: few are added, and asked for a moment, so that it is known what all of them would take."""

import json
import time
from dataclasses import dataclass

from sensorbench.analysis.capacity import Search, Trial, next_rate
from sensorbench.analysis.extrapolation import Line
from sensorbench.benchmarks.stress.options import WorkOptions
from sensorbench.benchmarks.stress.planning import work_maker
from sensorbench.benchmarks.stress.run import Load
from sensorbench.benchmarks.stress.work import Means
from sensorbench.progress import ProgressReporter
from sensorbench.results.engine_plan import EnginePlan
from sensorbench.results.ownership import Owner, new_id
from sensorbench.runner import known_size, parse_target, pilot_folder, run_to_end, running_servers

# Records of the two prefixes.
RECORDS = (500, 2_500)
# Who is slower with the first has no second.
SLOW_S = 10.0
# How long a closed loop is held on the second, to know what the target takes.
RUN_S = 2.0


@dataclass(frozen=True)
class WorkPilot:
    """What was found: starting the server, adding records and their size by how many there are, and what a closed loop reaches."""

    start_s: float
    load_s: Line
    size_bytes: Line | None
    server_bytes: int
    closed_loop_per_s: float
    took_s: float


def run_work_pilot(options: WorkOptions, load: Load, reporter: ProgressReporter) -> WorkPilot | None:
    """Measures work on records on a few of them; None at servers of users, and of experiment files, whose data are the user's."""
    target = parse_target(options.target) if options.target else None
    if options.experiment is not None or target is None or (not target.database.embedded and target.place != "started"):
        return None
    begun_s = time.monotonic()
    text = target.database.name if target.place == "url" else target.text
    quiet, loads, sizes = ProgressReporter(quiet=True), [], []
    with pilot_folder() as folder:
        owner = Owner.of(new_id(), folder)
        works = [
            work_maker(options.model_copy(update={"target": text, "records": records}), quiet)(folder, options.seed)
            for records in RECORDS
        ]
        with running_servers([works[0].variant], reporter, pin=load.pin) as servers:
            start_s = time.monotonic() - begun_s
            for records, work in zip(RECORDS, works, strict=True):
                with reporter.task(f"pilot: {records:,} records") as task:
                    variant = servers.at_their_urls([work.variant])[0]
                    target_ = variant.engine_target()
                    if variant.temporary is not None:
                        variant.temporary.parent.mkdir(parents=True, exist_ok=True)
                    loading_s = time.monotonic()
                    try:
                        work.make_ready(variant, target_, Means(servers, folder / f"populate-{records}", quiet, owner))
                        loads.append((float(records), time.monotonic() - loading_s))
                        sizes.append((float(records), float(known_size(target_)["total_bytes"] or 0)))
                        requested = work.plan()
                        plan: EnginePlan = {
                            "operations": requested["operations"],
                            "order": requested.get("order", "random"),
                            "parameter_sources": requested.get("parameter_sources", []),
                            "seed": work.seed,
                            "phases": [{"name": "measure", "duration_s": RUN_S}],
                            "concurrency": min(load.concurrency, 64),
                            "threads": load.threads,
                            "timeout_s": load.timeout_s,
                        }
                        _, totals = run_to_end(target_, plan, [table.to_reader() for table in work.tables()])
                    finally:
                        target_.remove(owner=json.dumps({"id": owner.id, "folder": owner.folder}))
                    done = sum(operation["counts"]["ok"] for operation in totals.phases[0].operations.values())
                    rate = done / (totals.phases[0].length_s or RUN_S)
                    task.end(f"added in {loads[-1][1]:.1f} s, {rate:,.0f} operations/s in a closed loop")
                if loads[-1][1] > SLOW_S:
                    break
            server_bytes = servers.memory_bytes()
    size = _line(sizes) if sizes[-1][1] else None
    return WorkPilot(start_s, _line(loads), size, server_bytes, rate, time.monotonic() - begun_s)


def _line(points: list[tuple[float, float]]) -> Line:
    """The line through both points, or through nothing and the one that there is."""
    return Line.through(points[0] if len(points) > 1 else (0.0, 0.0), points[-1])


def trials_of(search: Search, capacity_per_s: float) -> int:
    """How many trials a search takes where this is the capacity, and nothing is left to chance."""
    trials: list[Trial] = []
    while (rate := next_rate(trials, search)) is not None:
        trials.append(Trial(rate, rate <= capacity_per_s))
    return len(trials)
