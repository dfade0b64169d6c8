"""What is done with one setting of a comparison: it is loaded, and each of its runs is measured."""

import hashlib
import json
from pathlib import Path
from typing import Any

from sensorbench.benchmarks.comparison.encoding_cost import encoding_cost
from sensorbench.benchmarks.comparison.query_plans import query_plans
from sensorbench.errors import DiskFullError, EngineError
from sensorbench.places import remove_results
from sensorbench.progress import Teller
from sensorbench.results import ComparisonWriter, RunManifest, RunWriter, has_results, read_run
from sensorbench.results.files import release_reserve
from sensorbench.results.manifest import Process, now
from sensorbench.results.ownership import Claim, Intent, Owner
from sensorbench.results.writer import LOAD_FILE, run_folder, setting_folder
from sensorbench.runner.comparison import Ready, Up
from sensorbench.runner.load import load_setting, noted
from sensorbench.runner.plan import build_plan
from sensorbench.runner.prepare import PreparedTable
from sensorbench.runner.registers import is_of_registers, with_keys_of_run
from sensorbench.runner.run import run_and_write
from sensorbench.runner.settings import Setting
from sensorbench.schemas import Operations
from sensorbench.verification.history import keep_history


def writes_anything(operations: Operations, names: list[str]) -> bool:
    """Whether a workload changes what it reads of the dataset."""
    return any(operations.operation[name].writes is not None for name in names if not is_of_registers(name))


def is_finished(setting: Setting, folder: Path, repeats: int) -> bool:
    """Whether results in `folder` have all of a setting: its load, and as many complete runs as wanted."""
    runs = [] if setting.only_loads else [run_folder(folder, setting.id, repeat) for repeat in range(1, repeats + 1)]
    return (setting_folder(folder, setting.id) / LOAD_FILE).exists() and all(_is_complete(run) for run in runs)


def _is_complete(run: Path) -> bool:
    return has_results(run) and read_run(run).state == "complete"


def _fingerprint(ready: Ready, setting: Setting) -> str:
    """Changes when anything about what lies at a target does."""
    what = json.dumps(
        [
            ready.comparison.dataset.fingerprint,
            ready.schemas[setting.id],
            setting.schema.file.model_dump(mode="json"),
            setting.schema.parameters,
        ],
        sort_keys=True,
    )
    return hashlib.sha256(what.encode()).hexdigest()[:16]


def load_one(
    up: Up, setting: Setting, tables: list[PreparedTable], writer: ComparisonWriter, teller: Teller, *, intent: Intent
) -> None:
    """Loads a setting, unless that was done before, and asks for the plans of its queries. Raises FailedError."""
    target, fingerprint = up.targets[setting.id], _fingerprint(up, setting)
    has_load = (writer.setting_folder(setting.id) / LOAD_FILE).exists()
    if has_load and target.fingerprint() == noted(fingerprint, "settled"):
        # Also what --replace would load again is used when just that is there.
        used = "resume" if intent == "resume" and setting.temporary is None else "attach"
        target.attach(json.dumps(up.schemas[setting.id]), intent=used, owner=writer.owner.to_json())
        teller.say(f"  {setting.id}: already loaded")
        return
    if writes_anything(up.comparison.operations, up.names):
        # What earlier runs wrote is gone with the data that they wrote it to: they are measured again.
        for repeat in range(1, up.comparison.workload.repeat + 1):
            remove_results(writer.run_folder(setting.id, repeat))
    if setting.temporary is not None:
        setting.temporary.parent.mkdir(parents=True, exist_ok=True)
    readings = up.comparison.dataset.describe().readings
    claim = claim_of(setting, writer.owner, intent)
    load = load_setting(setting, target, up.schemas[setting.id], tables, readings, fingerprint, claim=claim, teller=teller)
    cost = encoding_cost(setting.schema, tables, readings, up.workbench)
    writer.write_load(setting.id, {**load, "encoding": cost} if cost else load)
    if not setting.only_loads:
        plans = query_plans(target, setting, up.comparison.operations, up.names, up.parameters)
        if plans:
            writer.write_plans(setting.id, plans)


def claim_of(setting: Setting, owner: Owner, intent: Intent) -> Claim:
    """What is wanted of a setting's namespace. One that lies below the results is this folder's own, also where a marker of an earlier
    version does not say so.
    """
    return Claim(owner, "replace" if setting.temporary is not None and intent == "resume" else intent)


def run_one(up: Up, setting: Setting, repeat: int, writer: ComparisonWriter, teller: Teller) -> None:
    """Measures one run of a setting, unless that was done before."""
    comparison = up.comparison
    folder = writer.run_folder(setting.id, repeat)
    if _is_complete(folder):
        teller.say(f"  {setting.id}, run {repeat}: already measured")
        return
    remove_results(folder)
    created = now()
    parameters = with_keys_of_run(up.parameters, comparison.operations, created, repeat)
    plan = build_plan(comparison.operations, setting.schema, parameters, setting.workload(comparison.workload), repeat - 1)
    target = up.targets[setting.id]
    manifest = RunManifest(
        process=Process.this(),
        created=created,
        setting=setting.manifest({}),
        repeat=repeat,
        temperature="hot" if comparison.workload.is_warmed_up else "warm",
        seed=comparison.workload.seed,
        operations=up.names,
        phases=[phase["name"] for phase in plan["phases"]],
        plan={
            key: plan[key]
            for key in ("phases", "in_flight", "threads", "timeout_s", "spin", "log_every", "answers_every", "answers_whole")
        },
        description=json.loads(target.describe()),
    )
    writer.setting_folder(setting.id).mkdir(parents=True, exist_ok=True)
    with teller.task(f"{setting.id}, run {repeat} of {comparison.workload.repeat}", total=1.0) as task:
        run_writer = RunWriter(folder, manifest)
        try:
            whole = run_and_write(
                target,
                plan,
                parameters.readers(),
                run_writer,
                up.servers.processes(),
                lambda _, now: task.advance_to(*_progress(now, plan)),
                lambda run, is_complete: keep_history(up, setting, folder, run, plan, parameters, is_complete=is_complete),
            )
        except DiskFullError as error:
            release_reserve(writer.folder)
            run_writer.finish("incomplete", None, str(error))
            raise
        except EngineError as error:
            run_writer.finish("failed", None, str(error))
            raise
        task.end(_outcome(whole))


def _progress(snapshot: dict[str, Any], plan: dict[str, Any]) -> tuple[float, str]:
    """Share of the current phase that is done, and what is going on."""
    number = snapshot["current_phase"]
    if number >= len(plan["phases"]):
        return 1.0, "ending"
    phase, planned = snapshot["phases"][number], plan["phases"][number]
    by_count = phase["started"] / planned["operations"] if planned.get("operations") else 0.0
    elapsed_s = (snapshot["now_ns"] - (phase["start_ns"] or snapshot["now_ns"])) / 1e9
    by_time = elapsed_s / planned["duration_s"] if planned.get("duration_s") else 0.0
    return min(1.0, max(by_count, by_time)), f"{phase['name'].replace('_', ' ')}: {phase['started']:,} operations"


def _outcome(whole: dict[str, Any]) -> str:
    phase = whole["phases"][-1]
    counts = [operation["counts"] for operation in phase["operations"].values()]
    ok, bad = sum(count["ok"] for count in counts), sum(count["error"] + count["timeout"] for count in counts)
    duration_s = ((phase["end_ns"] or 0) - (phase["start_ns"] or 0)) / 1e9
    failed = f", {bad:,} failed or timed out" if bad else ""
    return f"{ok:,} operations in {duration_s:.1f} s{failed}"
