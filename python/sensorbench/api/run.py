"""Running experiments and studies from Python."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar, cast

from sensorbench.api.errors import own_errors
from sensorbench.api.progress import ShowProgress, reporter_for
from sensorbench.api.results import AnyResults, ComparisonResults, read
from sensorbench.app.comparison import fail_if_wrong, run_comparison_and_report
from sensorbench.app.reports import FACTORS
from sensorbench.app.run import run_and_report
from sensorbench.app.study import run_study
from sensorbench.benchmarks.factors import FactorOptions, FactorsBenchmark
from sensorbench.errors import FailedError, UsageError
from sensorbench.lifecycle import recorded_as
from sensorbench.options import OptionModel
from sensorbench.paths import new_results_folder
from sensorbench.progress import ProgressReporter
from sensorbench.runner import BlockOptions, GeneratorOptions, ServerOptions, plan_experiment
from sensorbench.studies import FACTOR_STUDIES, STUDIES, StudyOptions, kinds_of_studies
from sensorbench.studies.factors_budget import plan_factors

Options = TypeVar("Options", bound=OptionModel)


def run(
    experiment: str | Path,
    *,
    out: str | Path | None = None,
    changes: Mapping[str, object] | None = None,
    sweeps: Mapping[str, Sequence[object]] | None = None,
    include_outdated: bool = False,
    generators: int | None = None,
    hosts: str | Path | None = None,
    server_memory: str | None = None,
    server_cpus: int | None = None,
    one_at_a_time: bool = False,
    repetitions_per_block: int | None = None,
    disk_reserve: str | None = None,
    resume: bool = False,
    replace: bool = False,
    drop_after: bool = False,
    progress: ShowProgress = False,
) -> ComparisonResults:
    """Runs an experiment file, with your own data, schemas and operations, and writes the report.

    Args:
        experiment: the experiment file (.toml).
        out: the results folder, which must be empty or not exist; a new folder below `results/` if None.
        changes: values to change in the file, by key: `{"workload.operations": 500}`.
        sweeps: values to compare, by name of a target option, a schema parameter, or `batch_rows`, `writers` or `write_rate`.
            An empty list for `batch_rows` or `writers` means its default levels.
        include_outdated: rank outdated versions of databases against current ones.
        generators: number of load generators that share each run; if None, 1, or one on each of `hosts`.
        hosts: hosts for the load generators, as for `--hosts`: a file (`hosts.toml`), `"local:4"`, `"ssh://me@10.0.0.1"`; if None, this
            machine.
        server_memory: memory of each server that the lab starts, for all its nodes together: `"2G"`.
        server_cpus: number of CPUs of each server that the lab starts; half of the machine's if None.
        one_at_a_time: run the server of one variant at a time; each is started for a block of repetitions and stopped afterwards.
        repetitions_per_block: with `one_at_a_time`, repetitions between a server's start and stop; 1 if None.
        disk_reserve: with `one_at_a_time`, disk space to keep free; `"2G"` if None.
        resume: continue the results in `out`; complete measurements are not repeated.
        replace: delete what an earlier run left at a target. Only data that sensorbench created are ever deleted.
        drop_after: when the run is complete, remove what it created at its targets, including your own servers.
        progress: True prints progress to standard error; a function is called with each event.

    Returns:
        The results, stored on disk.

    Raises:
        UsageError: if the file, the data or a target are invalid; nothing is written.
        FailedError: if the run failed or answers differ; what was measured is on disk and can be read with `read`.
        InterruptedRunError: if the run was interrupted; `resume=True` continues it.
        DiskFullError: if the disk is full.

    Examples:
        >>> import sensorbench as sb
        >>> results = sb.run("example/experiment.toml", out="results/water", changes={"workload.duration": "300ms"})
        >>> [variant.schema for variant in results.variants]
        ['by-time', 'heap']

    """
    file = Path(experiment)
    _require_out(resume, out)
    folder = Path(out) if out is not None else new_results_folder(file.stem)
    reporter = reporter_for(progress)
    given = {
        "out": str(folder),
        "changes": changes,
        "sweeps": sweeps,
        "include_outdated": include_outdated,
        "generators": generators,
        "hosts": None if hosts is None else str(hosts),
        "server_memory": server_memory,
        "server_cpus": server_cpus,
        "one_at_a_time": one_at_a_time,
        "repetitions_per_block": repetitions_per_block,
        "disk_reserve": disk_reserve,
    }
    with called("run", str(file), given, folder):
        resources = ServerOptions.model_validate({"server_memory": server_memory, "server_cpus": server_cpus}).resources
        texts = [f"{key}={toml(value)}" for key, value in (changes or {}).items()]
        swept = {key: [str(value) for value in values] for key, values in (sweeps or {}).items()}
        blocks = BlockOptions.model_validate(
            {"one_at_a_time": one_at_a_time, "repetitions_per_block": repetitions_per_block, "disk_reserve": disk_reserve}
        )
        comparison = plan_experiment(
            file,
            texts,
            folder,
            reporter,
            swept,
            include_outdated=include_outdated,
            resources=resources,
            blocks=blocks,
            generators=GeneratorOptions(generators=generators, hosts=None if hosts is None else str(hosts)),
        )
        summary, _ = run_comparison_and_report(
            comparison, folder, reporter, resume=resume, replace=replace, drop_after=drop_after
        )
        fail_if_wrong(summary)
        return cast("ComparisonResults", read(folder))


def study(
    name: str,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    replace: bool = False,
    drop_after: bool = False,
    progress: ShowProgress = False,
    **options: object,
) -> AnyResults:
    """Runs a study: loads, queries, compares answers, judges the claims, and writes the report.

    Args:
        name: name of the study.
        out: the results folder, which must be empty or not exist; a new folder below `results/` if None.
        resume: continue the results in `out`; complete measurements are not repeated.
        replace: delete what an earlier run left at a target. Only data that sensorbench created are ever deleted.
        drop_after: when the run is complete, remove what it created at its targets, including your own servers.
        progress: True prints progress to standard error; a function is called with each event.
        **options: options of `sensorbench study run NAME`, with lists for several values: `scale`, `seed`, `targets`, `schemas`,
            `datasets`, `parts`, `operations`, `duration`, `rate`, `concurrency`, …

    Returns:
        `ComparisonResults`, or `SeriesResults` for a study with several datasets or parts.

    Raises:
        UsageError: if options or a target are invalid, or the study changes clusters, which only the command line supports; nothing is
            written.
        FailedError: if the run failed or answers differ; what was measured is on disk and can be read with `read`.
        InterruptedRunError: if the run was interrupted; `resume=True` continues it.
        DiskFullError: if the disk is full.

    Examples:
        >>> import sensorbench as sb
        >>> small = {"targets": ["sqlite", "fjall"], "scale": 0.005, "operations": 20}
        >>> results = sb.study("iot", out="results/small", schemas=["natural", "by_sensor"], **small)
        >>> sorted(variant.database for variant in results.variants)
        ['fjall', 'sqlite']

    """
    kind = kinds_of_studies().get(name)
    if kind is None:
        raise UsageError(f"there is no study {name!r}; expected one of {', '.join(kinds_of_studies())}")
    if kind not in ("comparison", "factors"):
        raise UsageError(
            f"study {name} starts and changes clusters; run it by `sensorbench study run {name}`, and read its results here"
        )
    if kind == "factors" and (replace or drop_after):
        raise UsageError(f"study {name} starts servers of its own: replace and drop_after have no meaning there")
    _require_out(resume, out)
    folder = Path(out) if out is not None else new_results_folder(name)
    reporter = reporter_for(progress)
    with called("study", name, {"out": str(folder), **options}, folder):
        if kind == "factors":
            _run_factors(name, _validated(FactorOptions, name, options), folder, reporter, resume=resume)
        else:
            run_study(
                STUDIES[name],
                _validated(StudyOptions, name, options),
                folder,
                reporter,
                lambda summary, page: None,
                lambda summary, page: None,
                lambda budget: None,
                resume=resume,
                replace=replace,
                drop_after=drop_after,
            )
        return read(folder)


def _run_factors(name: str, options: FactorOptions, folder: Path, reporter: ProgressReporter, *, resume: bool) -> None:
    plan = plan_factors(FACTOR_STUDIES[name], options, folder, resume=resume)
    run_and_report(FactorsBenchmark(), plan, folder, reporter, FACTORS.write, resume=resume)


def _validated(model: type[Options], study: str, options: Mapping[str, object]) -> Options:
    """The validated options of a study. Raises UsageError for unknown options and invalid values."""
    unknown = [option for option in options if option not in model.model_fields]
    if unknown:
        raise UsageError(f"study {study} has no option {unknown[0]!r}; expected one of {', '.join(model.model_fields)}")
    return model.model_validate({option: value for option, value in options.items() if value is not None})


def _require_out(resume: bool, out: str | Path | None) -> None:
    """Raises UsageError if a run is to be resumed without a folder."""
    if resume and out is None:
        raise UsageError("resume=True: name the folder of the results to continue with out=")


@contextmanager
def called(function: str, first: str, arguments: Mapping[str, object], folder: Path) -> Iterator[None]:
    """The context of a measuring call: manifests record the call, and errors name the results folder."""
    shown = ", ".join([repr(first), *(f"{name}={value!r}" for name, value in arguments.items() if value)])
    try:
        with own_errors(), recorded_as(["python", "-c", f"import sensorbench; sensorbench.{function}({shown})"]):
            yield
    except FailedError as error:
        error.add_note(f"what was measured until then: sensorbench.read({str(folder)!r})")
        raise


def toml(value: object) -> str:
    """A value as TOML has it."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{json.dumps(str(key))} = {toml(inner)}' for key, inner in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value, ensure_ascii=False)
