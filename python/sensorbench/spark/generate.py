"""Datasets larger than one machine: Spark's executors write the files, which are those that one machine would write."""

import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

import sensorbench
from sensorbench.dataset.generated import Generated, PartsFile, WriteFiles, WrittenFile, write_files
from sensorbench.errors import FailedError, UsageError
from sensorbench.progress import ProgressReporter, Task
from sensorbench.spark.session import Application, Master, driver
from sensorbench.wording import counted

if TYPE_CHECKING:
    from pyspark import RDD

T = TypeVar("T")

_CHECK_EVERY_S = 1.0
# Tasks that look at each core's machine: several, because Spark does not promise one to each.
_CHECKS_A_CORE = 4
_THREADS_A_TASK = 1
# A task has files that follow one another: to its first one, some generators go through all those before.
_PARTITIONS_A_CORE = 4


def on_spark(master: Master, partitions: int | None, reporter: ProgressReporter) -> WriteFiles:
    """Has files written by an application of its own, which starts for that. Raises UsageError if nothing answers; FailedError."""

    def write(generated: Generated, folder: Path, files: Sequence[PartsFile]) -> list[WrittenFile]:
        reporter.say(f"starting an application on Spark at {master.url}")
        with driver(master) as own, own.application("sensorbench data generate", executors=None) as application:
            return write_on(application, partitions, reporter)(generated, folder, files)

    return write


def write_on(application: Application, partitions: int | None, reporter: ProgressReporter) -> WriteFiles:
    """Has files written by an application's executors, in this many partitions; if not given, in four for each core.

    What it gives raises UsageError where a worker cannot do that, FailedError where a task failed as often as Spark lets it.
    """
    return partial(_write_files, application, partitions, reporter)


def _write_files(
    application: Application,
    partitions: int | None,
    reporter: ProgressReporter,
    generated: Generated,
    folder: Path,
    files: Sequence[PartsFile],
) -> list[WrittenFile]:
    context, folder = application.session.sparkContext, folder.resolve()
    _check_workers(application, folder)
    if partitions is not None and partitions > len(files):
        idle = partitions - len(files)
        reporter.say(f"{generated.relation}: {counted(len(files), 'file')}; {idle} of {partitions} partitions have nothing to do")
    with reporter.task(f"generating {generated.relation}", total=len(files)) as task:
        tasks = context.parallelize(files, partitions or min(len(files), _PARTITIONS_A_CORE * context.defaultParallelism))
        written = _collected(
            tasks.mapPartitions(partial(_write_partition, generated, folder)), lambda: _report_files(task, folder, files)
        )
        rows = sum(item.rows for item in written)
        task.end(f"{counted(rows, 'row')} in {counted(len(files), 'file')}, by {counted(tasks.getNumPartitions(), 'partition')}")
    _check_all_are_there(folder, files)
    return written


def _write_partition(generated: Generated, folder: Path, files: Iterable[PartsFile]) -> list[WrittenFile]:
    """What a task does."""
    return write_files(generated, folder, files, _THREADS_A_TASK)


def _check_workers(application: Application, folder: Path) -> None:
    """Raises UsageError when a worker has not this package, or not this folder, so that it would write elsewhere or other bytes."""
    context = application.session.sparkContext
    token = folder / f".{uuid.uuid4().hex}.unfinished"
    token.touch()
    try:
        checks = range(_CHECKS_A_CORE * context.defaultParallelism)
        found = _collected(context.parallelize(checks, len(checks)).map(_inspect(str(token), _versions())), lambda: None)
    except FailedError as error:
        raise UsageError(f"the workers of {context.master} cannot run Python as it is here: {error}") from None
    finally:
        token.unlink()
    if problems := sorted({problem for problem in found if problem}):
        raise UsageError(f"--spark {context.master}: {'; '.join(problems)}")


def _versions() -> str:
    """What the bytes of a file depend on."""
    return f"sensorbench {sensorbench.__version__} with pyarrow {pa.__version__}"


def _inspect(token: str, versions: str) -> Callable[[int], str]:
    """A function that says why a worker cannot generate; empty when it can. It goes there as a whole and imports nothing of this
    package before it knows that it can.
    """

    def problem(_: int) -> str:
        import pathlib
        import socket
        import sys

        host, python = socket.gethostname(), sys.executable
        try:
            import pyarrow

            import sensorbench
        except ImportError as error:
            return f"worker {host}: {error} in its Python ({python}); install sensorbench there, or name another one by PYSPARK_PYTHON"
        found = f"sensorbench {sensorbench.__version__} with pyarrow {pyarrow.__version__}"
        if found != versions:
            return f"worker {host} has {found}, which may write other bytes; expected {versions}, as here"
        if not pathlib.Path(token).exists():
            folder = pathlib.Path(token).parent.parent
            return f"worker {host} does not see {folder} of this machine; expected --out on storage that all workers share"
        return ""

    return problem


def _collected(tasks: "RDD[T]", check: Callable[[], None]) -> list[T]:
    """What tasks return; meanwhile, `check` is called. When this process is interrupted, the tasks are cancelled.

    Raises FailedError with the cause of the one that failed.
    """
    from py4j.protocol import Py4JJavaError

    pool = ThreadPoolExecutor(1)
    try:
        collecting = pool.submit(tasks.collect)
        while True:
            try:
                return collecting.result(_CHECK_EVERY_S)
            except TimeoutError:
                check()
    except Py4JJavaError as error:
        raise FailedError(_cause(str(error.java_exception))) from None
    except BaseException:
        tasks.context.cancelAllJobs()
        raise
    finally:
        pool.shutdown()


def _cause(trace: str) -> str:
    """The last line that Python said of an error in a task; what Java said where Python said nothing."""
    said = trace.partition("\n\tat ")[0].strip().splitlines()
    return said[-1] if "Traceback" in trace else said[0]


def _report_files(task: Task, folder: Path, files: Sequence[PartsFile]) -> None:
    places = {folder / file.place for file in files}
    done = len(places.intersection((folder / files[0].place).parent.iterdir()))
    task.advance_to(done, f"{done} of {len(files)} files")


def _check_all_are_there(folder: Path, files: Sequence[PartsFile]) -> None:
    """Removes what tasks left that were killed. Raises FailedError when a file is missing here, which a worker has written."""
    parent = (folder / files[0].place).parent
    for left in parent.glob(".*.unfinished"):
        left.unlink(missing_ok=True)
    if missing := [file.place for file in files if not (folder / file.place).exists()]:
        raise FailedError(
            f"{len(missing)} of {len(files)} files were written but are not in {folder} ({missing[0]}): is --out shared by all?"
        )
