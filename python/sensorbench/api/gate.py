"""Whether a change makes something slower, measured from a program."""

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
    """Tells whether head is slower than base, measured interleaved on this machine.

    Args:
        experiment: an experiment file (.toml) with one target, or with two: base and head.
        base: what is known: a schema file, a target, or `key=value` of the experiment file, or several of them; as the file has it if empty.
        head: what may be slower, in the same form.
        base_server_settings: settings of the server of base, which the lab starts.
        head_server_settings: settings of the server of head, which the lab starts.
        changes: keys of the file that are changed for both sides, with their values: `{"workload.duration": "5s"}`.
        margin: the share by which head may be slower; 0.05 is 5%.
        repetitions: of each side, at most.
        budget: how long it may take, loading included: `"10m"`.
        out: the folder for the results, which must be empty or not there; a new one below `results/` if None.
        replace: whether what an earlier run left at a target is deleted; only what sensorbench created ever is.
        progress: whether progress is printed to standard error, or the function that is told.

    Returns:
        The result: its `verdict` is `slower`, `not slower` or `undecided`, and `operations` has ratios with intervals. None of these raises.

    Raises:
        UsageError: before anything is written, for a file or sides that cannot be compared.
        FailedError: where a side failed, or the sides gave different answers.
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
