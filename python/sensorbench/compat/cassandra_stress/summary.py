"""The summary of a run of a profile."""

import pyarrow.compute as pc

from sensorbench.compat.figures import summarise_tool
from sensorbench.results import RunResult
from sensorbench.results.latencies import of_kind
from sensorbench.results.manifest import MEASURE
from sensorbench.results.planned import CassandraStressManifest, ToolOperation
from sensorbench.results.summary.tools import CassandraStressSummary
from sensorbench.results.tools import ToolResult


def summarise_cassandra_stress(result: ToolResult[CassandraStressManifest]) -> CassandraStressSummary:
    """The summary of a run on disk."""
    return summarise_tool(result, CassandraStressSummary, _partitions)


def _partitions(run: RunResult, name: str, planned: ToolOperation, ok: int) -> float:
    return ok * (_share_with_rows(run, name) if planned.partitions is None else planned.partitions)


def _share_with_rows(run: RunResult, name: str) -> float:
    """Of the answers to an operation, the share that has rows: of those that were logged, which are all or every n-th."""
    table = run.table("operations")
    if table is None:
        return 0.0
    logged = of_kind(table, run.manifest.phases.index(MEASURE), run.manifest.operations.index(name))
    answered = logged.filter(pc.equal(logged["outcome"], "ok"))
    return pc.sum(pc.greater(answered["rows"], 0)).as_py() / answered.num_rows if answered.num_rows else 0.0
