"""The performance gate as a function: whether a change makes something slower."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from sensorbench.analysis.gate import LOOKS
from sensorbench.analysis.verdicts import EQUIVALENCE_MARGIN
from sensorbench.api.progress import ShowProgress, reporter_for
from sensorbench.api.run import called, toml
from sensorbench.app.gate import Gate, Side, run_gate
from sensorbench.errors import UsageError
from sensorbench.paths import new_results_folder
from sensorbench.results.summary.gate import GateResult
from sensorbench.runner import seconds


def gate(
    experiment: str | Path,
    *,
    base: str | Sequence[str] = (),
    head: str | Sequence[str] = (),
    base_server_settings: Mapping[str, str] | None = None,
    head_server_settings: Mapping[str, str] | None = None,
    changes: Mapping[str, object] | None = None,
    margin: float = EQUIVALENCE_MARGIN,
    repetitions: int = LOOKS[-1],
    budget: str = "10m",
    out: str | Path | None = None,
    replace: bool = False,
    progress: ShowProgress = False,
) -> GateResult:
    """Measures whether head is slower than base. Their runs are interleaved on this machine.

    Args:
        experiment: an experiment file (.toml) with one target, or with two: base and head.
        base: the baseline: a schema file, a target, or `key=value` of the experiment file, or several of these; the file as it is if empty.
        head: the changed side, in the same form.
        base_server_settings: settings of base's server, if the lab starts it.
        head_server_settings: settings of head's server, if the lab starts it.
        changes: values to change in the file for both sides, by key: `{"workload.duration": "5s"}`.
        margin: how much slower head may be; 0.05 is 5%.
        repetitions: maximum number of repetitions of each side.
        budget: maximum duration, including loading: `"10m"`.
        out: the results folder, which must be empty or not exist; a new folder below `results/` if None.
        replace: delete what an earlier run left at a target. Only data that sensorbench created are ever deleted.
        progress: True prints progress to standard error; a function is called with each event.

    Returns:
        The result. Its `verdict` is `slower`, `not slower` or `undecided`; `operations` has ratios with intervals. No verdict raises an error.

    Raises:
        UsageError: if the file is invalid or the sides cannot be compared; nothing is written.
        FailedError: if a side failed, or the sides gave different answers.
        InterruptedRunError: after an interruption.

    Examples:
        >>> import sensorbench as sb
        >>> result = sb.gate("example/gate.toml", repetitions=4, margin=0.2, out="results/gate")
        >>> result.verdict, [operation.operation for operation in result.operations]
        ('slower', ['mean_of_hour'])

    """
    file = Path(experiment)
    folder = Path(out) if out is not None else new_results_folder(f"gate-{file.stem}")
    given = {"base": base, "head": head, "changes": changes, "margin": margin, "budget": budget, "out": str(folder)}
    with called("gate", str(file), given, folder):
        wanted = Gate(
            file,
            _side(base, base_server_settings),
            _side(head, head_server_settings),
            margin=margin,
            repetitions=repetitions,
            budget_s=_budget_s(budget),
            changes=tuple(f"{key}={toml(value)}" for key, value in (changes or {}).items()),
        )
        result, _ = run_gate(wanted, folder, reporter_for(progress), replace_data=replace)
        return result


def _side(given: str | Sequence[str], settings: Mapping[str, str] | None) -> Side:
    words = (given,) if isinstance(given, str) else tuple(given)
    return Side(words, tuple((settings or {}).items()))


def _budget_s(text: str) -> float:
    try:
        return seconds(text)
    except ValueError as error:
        raise UsageError(f"budget {error}") from None
