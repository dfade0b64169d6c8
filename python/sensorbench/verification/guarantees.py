"""What a variant promised the clients of its registers, and what their histories show."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from sensorbench.analysis import promises
from sensorbench.analysis.guarantees import Checked, check, widened
from sensorbench.analysis.promises import Promises, broken
from sensorbench.results import ComparisonResult, RunResult, VariantManifest
from sensorbench.results.history import HISTORY_FILE, read_history
from sensorbench.results.summary.guarantees import RegisterCounts, RegisterFinding, RegisterGuarantees, RegisterPromise

MAX_EXAMPLES = 3


def guaranteed(result: ComparisonResult) -> dict[str, RegisterGuarantees]:
    """By variant, of those whose runs have histories: what was promised, what was seen, and whether a promise was broken."""
    found = {}
    for variant in result.manifest.variants:
        runs = [run for run in result.usable_runs(variant.id) if (run.folder / HISTORY_FILE).exists()]
        if runs:
            found[variant.id] = _of_variant(variant.promises, _facts(result, variant, runs[-1]), runs)
    return found


def _facts(result: ComparisonResult, variant: VariantManifest, run: RunResult) -> dict[str, str]:
    """What the database says of its variants. A replica that has just joined is not reported by its master, but by the lab."""
    settings: dict[str, str] = dict(run.manifest.description.get("settings", {}))
    server = result.server(variant)
    if server and server.get("replicas"):
        settings["replicas"] = str(server["replicas"])
    return settings


def _of_variant(kind: str | None, facts: Mapping[str, str], runs: list[RunResult]) -> RegisterGuarantees:
    histories = {run.manifest.repetition: widened(read_history(run.folder / HISTORY_FILE), _clock_bound_ns(run)) for run in runs}
    # No two runs have a key in common, so that their histories are checked as one.
    checked = check(pa.concat_tables(histories.values()).unify_dictionaries())
    run_of_key = {key: repetition for repetition, history in histories.items() for key in history["key"].unique().to_pylist()}
    examples = {
        name: [{"run": run_of_key[example["key"]], **example} for example in finding.examples[:MAX_EXAMPLES]]
        for name, finding in checked.findings.items()
    }
    return register_guarantees(checked, kind, facts, examples)


def _clock_bound_ns(run: RunResult) -> int:
    """How well the clocks of a run's load generators are known beside one another."""
    generators = run.manifest.totals.generators if run.manifest.totals else []
    return max((generator.clock.bound_ns for generator in generators if generator.clock is not None), default=0)


def register_guarantees(
    checked: Checked,
    kind: str | None,
    settings: Mapping[str, str],
    examples: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> RegisterGuarantees:
    """What a history of registers shows, beside what a kind of database promises with its variants, and which of it the history broke.
    `examples` are shown instead of the checker's own.
    """
    given = promised(kind, settings)
    return RegisterGuarantees(
        counts=RegisterCounts(**checked.counts),
        seen={
            name: RegisterFinding(
                count=finding.count,
                of=finding.of,
                share=finding.share,
                age_ns=finding.ages_ns,
                examples=[dict(example) for example in (examples[name] if examples else finding.examples)],
            )
            for name, finding in checked.findings.items()
        },
        promised={name: RegisterPromise(**asdict(promise)) for name, promise in given.items()} if given else None,
        broken=list(broken(given, checked.findings)) if given else [],
    )


def promised(kind: str | None, settings: Mapping[str, str]) -> Promises | None:
    """What a kind of database promises of the given variants; None if nothing is known of that."""
    if kind == "quorums" and (levels := promises.levels_of(settings)):
        read, write = levels
        return promises.promises_of_quorums(int(settings["replication"]), write, read)
    if kind == "one_thread" and int(settings.get("replicas", "0")) > 0:
        return promises.promises_of_asynchronous_replicas()
    if kind == "members" and {"topology", "write concern", "read concern", "read preference"} <= settings.keys():
        return promises.promises_of_members(
            alone=settings["topology"] == "one server",
            by_majority='"majority"' in settings["write concern"],
            linearizable='"linearizable"' in settings["read concern"] and settings["read preference"] == "primary",
        )
    if kind == "last_point":
        return promises.promises_of_last_point(durable=settings.get("wal_mode") == "sync")
    if kind == "put_points":
        return promises.promises_of_put_points(
            synced=settings.get("sync") == "on",
            logged=settings.get("durability") in ("USE_DEFAULT", "SYNC_WAL", "FSYNC_WAL"),
        )
    if kind == "applied_later":
        return promises.promises_of_a_log_applied_later(waits=settings.get("a write waits until it is") == "applied")
    known = {
        "read_committed": promises.promises_of_read_committed,
        "one_writer": promises.promises_of_one_writer,
        "one_thread": promises.promises_of_one_thread,
        "snapshots": promises.promises_of_snapshots,
        "parts": promises.promises_of_parts,
        "one_server_a_row": promises.promises_of_one_server_a_row,
        "log": promises.promises_of_a_log,
        "shown_later": promises.promises_of_memory_shown_later,
    }
    return known[kind]() if kind in known else None
