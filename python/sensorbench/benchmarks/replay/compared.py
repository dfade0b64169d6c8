"""How the statements of a replay came out beside how the same ones had come out when they were recorded."""

from collections.abc import Collection
from pathlib import Path

from sensorbench.results import RunResult
from sensorbench.results.replay import ComparedAnswers, ComparedTemplate, ReplayComparison
from sensorbench.traffic import workbench_on_disk

# The log and the trace are joined by the number of the statement's row, of all copies: in DuckDB, whose memory does not grow with their length.
_COMPARED = """
WITH recorded AS (
    SELECT
        file_row_number AS number,
        template,
        -- Logs of rows that were sent say 0 of every write.
        CASE WHEN rows > 0 OR NOT list_contains($writes::INTEGER[], template) THEN rows END AS rows,
        error IS NOT NULL AS failed,
        duration
    FROM read_parquet($statements, file_row_number = true)
), replayed AS (
    SELECT (k % $rows)::BIGINT AS number, outcome = 'ok' AS succeeded, outcome IN ('error', 'timeout') AS failed, rows
    FROM read_parquet($log)
), durations AS (
    SELECT template, approx_quantile(duration, 0.5) AS p50, approx_quantile(duration, 0.99) AS p99 FROM recorded GROUP BY template
), joined AS (
    SELECT
        template,
        count(*) AS replayed,
        count(*) FILTER (recorded.failed) AS recorded_errors,
        count(*) FILTER (replayed.failed) AS replayed_errors,
        count(*) FILTER (replayed.failed AND NOT recorded.failed) AS new_errors,
        count(*) FILTER (replayed.succeeded AND recorded.failed) AS gone_errors,
        count(*) FILTER (replayed.succeeded AND NOT recorded.failed AND recorded.rows IS NOT NULL) AS rows_compared,
        count(*) FILTER (replayed.succeeded AND NOT recorded.failed AND recorded.rows <> replayed.rows) AS rows_differ
    FROM replayed JOIN recorded USING (number)
    GROUP BY template
)
SELECT template, replayed, recorded_errors, replayed_errors, new_errors, gone_errors, rows_compared, rows_differ, p50, p99
FROM joined JOIN durations USING (template) ORDER BY template
"""


def compare(statements: Path, rows: int, writes: Collection[int], run: RunResult) -> ReplayComparison:
    """Compares a run that is over with the trace that it replayed.

    Args:
        statements: the file of the trace's statements.
        rows: how many the trace has.
        writes: numbers of the templates that write.
        run: the replay, every statement of which was logged.

    Returns:
        The templates of which something ended, in the order of their numbers.

    """
    log = run.folder / "operations.parquet"
    if not log.exists():
        return ReplayComparison(templates=[])
    with workbench_on_disk(ordered=False) as workbench:
        values = {"statements": str(statements), "log": str(log), "rows": max(1, rows), "writes": list(writes)}
        found = workbench.execute(_COMPARED, values).fetchall()
    names = run.manifest.operations
    return ReplayComparison(
        templates=[
            ComparedTemplate(
                template=names[template],
                replayed=replayed,
                recorded_errors=recorded_errors,
                replayed_errors=replayed_errors,
                new_errors=new_errors,
                gone_errors=gone_errors,
                rows_compared=rows_compared,
                rows_differ=rows_differ,
                recorded_p50_s=p50,
                recorded_p99_s=p99,
            )
            for (
                template,
                replayed,
                recorded_errors,
                replayed_errors,
                new_errors,
                gone_errors,
                rows_compared,
                rows_differ,
                p50,
                p99,
            ) in found
        ]
    )


_ANSWERS = """
SELECT operation, count(*), count(*) FILTER (a.rows <> b.rows), count(*) FILTER (a.rows = b.rows AND a.hash <> b.hash)
FROM read_parquet($first) a JOIN read_parquet($second) b USING (operation, k)
GROUP BY operation ORDER BY operation
"""


def compare_answers(first: RunResult, second: RunResult) -> list[ComparedAnswers]:
    """Compares the answers of two targets to the same statements: numbers of rows, and sums of the rows' hashes, in any order."""
    logs = [run.folder / "answers.parquet" for run in (first, second)]
    if not all(log.exists() for log in logs):
        return []
    with workbench_on_disk(ordered=False) as workbench:
        found = workbench.execute(_ANSWERS, {"first": str(logs[0]), "second": str(logs[1])}).fetchall()
    return [
        ComparedAnswers(template=first.manifest.operations[number], compared=compared, rows_differ=rows, values_differ=values)
        for number, compared, rows, values in found
    ]
