"""Whether the targets of an experiment give equal answers, before it is measured: each read is asked some times, and nothing is written."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from sensorbench.app.comparison import run_comparison_and_report, what_was_wrong
from sensorbench.errors import UsageError
from sensorbench.progress import ProgressReporter
from sensorbench.runner import Schedule, Workload, load_experiment, plan_experiment
from sensorbench.schemas import load_operations

# How often each read is asked.
EXECUTIONS_OF_EACH = 20


@dataclass(frozen=True)
class CheckedAnswers:
    """Whether answers were equal, of how many reads; and what was wrong, where they were not."""

    reads: int
    problem: str = ""


def check_answers(path: Path, progress: ProgressReporter) -> CheckedAnswers:
    """Asks the reads of an experiment at all its targets, and compares the answers with one another and with the reference.

    Args:
        path: the experiment. Its data are loaded at each target, and removed afterwards.
        progress: reports progress.

    Returns:
        Whether the answers were equal.

    Raises:
        UsageError: for a file that is wrong, or an experiment that reads nothing.
        FailedError: if a target does not answer.

    """
    file = load_experiment(path, [])
    known = load_operations(file.operations, path.parent).operation
    reads = [name for name in file.workload.mix if name in known and known[name].writes is None]
    if not reads:
        raise UsageError(f"{path}: workload.mix: no operation reads, so that there are no answers to compare")
    # What else a workload has, such as rates, late readings or readings that expire, says nothing of answers.
    workload = Workload(
        mix=dict.fromkeys(reads, 1.0),
        order="in turn",
        schedule=Schedule(concurrency=1),
        operations=EXECUTIONS_OF_EACH * len(reads),
        repetitions=1,
        timeout=file.workload.timeout,
        seed=file.workload.seed,
        choice=file.workload.choice,
    )
    with tempfile.TemporaryDirectory(prefix="sensorbench-answers-") as place:
        folder = Path(place) / "results"
        comparison = plan_experiment(path, [], folder, progress, file=file.model_copy(update={"workload": workload}))
        summary, _ = run_comparison_and_report(comparison, folder, progress, drop_after=True)
    return CheckedAnswers(len(reads), "" if summary.answers_equal else what_was_wrong(summary.result))
