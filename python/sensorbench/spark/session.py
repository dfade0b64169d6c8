"""A session of Spark: which master it has, the driver that starts it, and the executors that it waits for.

`pyspark` is imported here alone, and only when a session is wanted.
"""

import importlib.util
import os
import re
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import sensorbench
from sensorbench import lab
from sensorbench.errors import FailedError, UsageError
from sensorbench.lab.jvm import require_java
from sensorbench.lab.spark import INSTALL, JAVA, LOGGING, PACKAGE, Spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOTHING: Mapping[str, str] = MappingProxyType({})
_LAB = "lab:"
_CLUSTER = re.compile(r"spark://(?P<host>[^:/,]+|\[[^\]]+\]):(?P<port>\d+)")
_LOCAL = re.compile(r"local(\[(?P<threads>[1-9]\d*)\])?")
_LOOPBACK = "127.0.0.1"
_ANSWERS_WITHIN_S = 5.0
_EXECUTORS_WITHIN_S = 120.0
_ASK_EVERY_S = 0.05


@dataclass(frozen=True)
class Master:
    """Who gives an application its executors; `threads`: those of the driver's own process, where there is no cluster."""

    url: str
    host: str
    port: int
    threads: int | None = None
    # Settings without which it lets nobody in; they never get onto a command line.
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_here(self) -> bool:
        """Whether all of it is on this machine, so that nothing needs to be reached from elsewhere."""
        return self.threads is not None or self.host == "localhost" or self.host.startswith("127.")

    def url_for(self, cores: int | None) -> str:
        """Its URL for an application with this many cores; None: with all."""
        return self.url if self.threads is None or cores is None else f"local[{cores}]"

    def check_answers(self) -> None:
        """Raises UsageError when nobody listens there."""
        if self.threads is not None:
            return
        try:
            socket.create_connection((self.host, self.port), _ANSWERS_WITHIN_S).close()
        except OSError as error:
            raise UsageError(
                f"--spark {self.url}: no master answers there ({error}); start one with: sensorbench lab up {Spark.name}"
            ) from None


def find_master(text: str) -> Master:
    """The master that the user named: spark://HOST:PORT, lab:NAME, or local[N] for N threads of this process' own driver.

    Raises UsageError, also when the extra is not installed.
    """
    require_pyspark()
    if text.startswith(_LAB):
        return lab_master(lab.find_instance(text.removeprefix(_LAB)))
    if cluster := _CLUSTER.fullmatch(text):
        of_lab = next(
            (instance for instance in lab.read_instances() if instance.database == Spark.name and lab.url_of(instance) == text),
            None,
        )
        return lab_master(of_lab) if of_lab else Master(text, cluster["host"], int(cluster["port"]))
    if local := _LOCAL.fullmatch(text):
        return Master(text, _LOOPBACK, 0, int(local["threads"] or 1))
    raise UsageError(f"--spark {text}: expected spark://HOST:PORT, lab:NAME, or local[N] for N threads without a cluster")


def lab_master(instance: lab.Instance) -> Master:
    """The master of an instance of the lab, with its password. Raises UsageError for an instance of something else."""
    if instance.database != Spark.name or instance.coordinator is None:
        raise UsageError(f"--spark {_LAB}{instance.name}: it is an instance of {instance.database}, not of {Spark.name}")
    secret = {"spark.authenticate": "true", "spark.authenticate.secret": instance.password()}
    return Master(lab.url_of(instance), instance.coordinator.host, instance.coordinator.port, settings=secret)


def require_pyspark() -> None:
    """Raises UsageError, saying how to install the extra, when it is absent."""
    if importlib.util.find_spec(PACKAGE) is None:
        raise UsageError(f"{PACKAGE} is not installed: {INSTALL}")


@dataclass(frozen=True)
class Application:
    """A session with its executors, and what it took until they were there (s): `context_s` until the master had let the application
    in, `executors_s` from then on until all were there. `executor_ids`: as the scheduler has them; empty without a cluster.
    """

    session: "SparkSession"
    executors: int
    context_s: float
    executors_s: float
    executor_ids: frozenset[str] = frozenset()


class Driver:
    """The Java process that applications are submitted from, one after the other."""

    def __init__(self, master: Master, log: Path, pid: int) -> None:
        self.master = master
        self.log = log
        self.pid = pid

    def at(self, master: Master) -> "Driver":
        """The same process, from which applications go to another master."""
        return Driver(master, self.log, self.pid)

    @contextmanager
    def application(
        self,
        name: str,
        *,
        executors: int | None = 1,
        cores: int = 1,
        memory: str = "1g",
        jars: Sequence[Path] = (),
        settings: Mapping[str, str] = NOTHING,
    ) -> Iterator[Application]:
        """An application with this many executors of this many cores, which get `jars` from the driver; without a cluster, with as many
        threads as they would have. None: all executors, or threads, that there are. Ends it, whatever happens.

        Raises FailedError when they are not there in time.
        """
        from pyspark import SparkConf
        from pyspark.sql import SparkSession

        share = {} if executors is None else {"spark.cores.max": str(executors * cores), "spark.executor.cores": str(cores)}
        wanted = {
            **share,
            "spark.executor.memory": memory,
            "spark.jars": ",".join(map(str, jars)),
            **settings,
            **_at(self.master),
        }
        handler = signal.getsignal(signal.SIGINT)
        start_s = time.monotonic()
        try:
            url = self.master.url_for(None if executors is None else executors * cores)
            conf = SparkConf().setAppName(name).setMaster(url).setAll(list(wanted.items()))
            spark = SparkSession.builder.config(conf=conf).getOrCreate()
        except Exception as error:
            raise FailedError(f"Spark at {self.master.url} did not start: {first_line(error)}{last_error(self.log)}") from None
        finally:
            _leave_interrupts_to(handler)
        try:
            context_s = time.monotonic() - start_s
            if self.master.is_here:
                spark.sparkContext.pythonExec = sys.executable
            there, ids = executors or self.master.threads or 1, frozenset[str]()
            if self.master.threads is None:
                there = self._wait_for(spark, there)
                ids = self._executor_ids(spark)
            yield Application(spark, there, context_s, time.monotonic() - start_s - context_s, ids)
        finally:
            spark.stop()

    def check_none_was_lost(self, application: Application) -> None:
        """Raises FailedError when executors are gone, also where the master gave others for them: what was timed is not what as many would
        have taken.
        """
        if self.master.threads is None and (lost := application.executor_ids - self._executor_ids(application.session)):
            raise FailedError(
                f"{len(lost)} of {application.executors} executors were lost while it was executed{last_error(self.log)}"
            )

    def _wait_for(self, spark: "SparkSession", executors: int) -> int:
        """Waits until this many executors can keep blocks, so that none joins while something is timed; how many there are."""
        end_s = time.monotonic() + _EXECUTORS_WITHIN_S
        while len(addresses := self._addresses(spark)) - 1 < executors:
            if time.monotonic() > end_s:
                raise FailedError(
                    f"{self.master.url} gave {len(addresses) - 1} of {executors} executors within {_EXECUTORS_WITHIN_S:g} s: does it have that many workers, "
                    f"and are cores and memory of them free?{last_error(self.log)}"
                )
            time.sleep(_ASK_EVERY_S)
        return len(addresses) - 1

    def _executor_ids(self, spark: "SparkSession") -> frozenset[str]:
        """The executors that the scheduler has. One that outlives its worker for a moment may give its blocks to the driver again when the scheduler has
        given it up, so that what keeps blocks is no sign of life.
        """
        from py4j.protocol import Py4JJavaError

        try:
            return frozenset(str(spark.sparkContext._jsc.sc().getExecutorIds().mkString(" ")).split())
        except Py4JJavaError:
            raise FailedError(f"{self.master.url} ended the application{last_error(self.log)}") from None

    def _addresses(self, spark: "SparkSession") -> frozenset[str]:
        """Where the executors keep their blocks, and where the driver does."""
        from py4j.protocol import Py4JJavaError

        try:
            kept_by = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().keySet()
            return frozenset(str(kept_by.mkString(" ")).split())
        except Py4JJavaError:
            raise FailedError(f"{self.master.url} ended the application{last_error(self.log)}") from None


def _at(master: Master) -> dict[str, str]:
    """What every application has: no pages; where all is on this machine, nothing that can be reached from outside, and workers
    that import what this process does.
    """
    modules = os.pathsep.join([str(Path(sensorbench.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    here = (
        {
            "spark.driver.host": _LOOPBACK,
            "spark.driver.bindAddress": _LOOPBACK,
            "spark.executorEnv.PYTHONPATH": modules,
        }
        if master.is_here
        else {}
    )
    return {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", **here, **master.settings}


def _leave_interrupts_to(handler: Any) -> None:
    """Spark's own handler of Ctrl-C outlives its session."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)


@contextmanager
def driver(master: Master, *, jars: Sequence[Path] = (), memory: str = "1g", log: Path | None = None) -> Iterator[Driver]:
    """A driver that has `jars` itself, its log in `log`; it ends with the context. There is one at a time.

    Raises UsageError when nothing answers at the master's URL, FailedError when the driver does not start.
    """
    require_pyspark()
    master.check_answers()
    with tempfile.TemporaryDirectory(prefix="sensorbench-spark-") as folder:
        gateway = _launch(Path(folder), master, jars, memory, log or Path(folder) / "driver.log")
        try:
            yield Driver(master, log or Path(folder) / "driver.log", gateway.proc.pid)
        finally:
            _end(gateway)


def _launch(folder: Path, master: Master, jars: Sequence[Path], memory: str, log: Path) -> Any:
    from pyspark import SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    (folder / "log4j2.properties").write_text(LOGGING, encoding="utf-8")
    here = {"SPARK_LOCAL_IP": _LOOPBACK} if master.is_here else {}
    arguments = ["--driver-memory", memory, "--driver-class-path", ":".join(map(str, [folder, *jars])), "pyspark-shell"]
    variables = {
        **here,
        "SPARK_LOCAL_DIRS": str(folder),
        "PYSPARK_SUBMIT_ARGS": " ".join(arguments),
        "JAVA_HOME": str(require_java(JAVA).home),
    }
    with log.open("ab") as output, _environment(variables):
        try:
            gateway = launch_gateway(  # type: ignore[no-untyped-call]
                popen_kwargs={"stdout": output, "stderr": output, "cwd": folder}
            )
        except PySparkRuntimeError as error:
            raise FailedError(f"Spark's driver did not start: {first_line(error)}{last_error(log)}") from None
    SparkContext._ensure_initialized(gateway=gateway)
    return gateway


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _end(gateway: Any) -> None:
    """Closes the driver's standard input, which is how it learns that nobody wants it any more."""
    from pyspark import SparkContext

    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    SparkContext._gateway = None
    SparkContext._jvm = None


@contextmanager
def session(
    master: Master,
    name: str,
    *,
    executors: int | None = None,
    jars: Sequence[Path] = (),
    settings: Mapping[str, str] = NOTHING,
) -> Iterator["SparkSession"]:
    """A session with a driver of its own, for one application: with one executor, or all threads, if not said otherwise. Raises
    UsageError and FailedError.
    """
    wanted = executors or master.threads or 1
    with driver(master, jars=jars) as own, own.application(name, executors=wanted, jars=jars, settings=settings) as started:
        yield started.session


def first_line(error: Exception) -> str:
    """What an error of Spark or of Java says, without the lines that say where in the sources it was."""
    return str(getattr(error, "java_exception", None) or error).strip().partition("\n")[0]


_ERROR = re.compile(r" ERROR |^Caused by: |Exception: ")


def last_error(log: Path) -> str:
    """The last error in a driver's log, in brackets; empty when there is none."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if _ERROR.search(line)]
    return f" ({lines[-1]})" if lines else ""
