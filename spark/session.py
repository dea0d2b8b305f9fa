"""The Spark session of a job: workers that can import aerotape, and a clean standard output."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import aerotape
from aerotape.errors import AerotapeError, ConfigurationError
from aerotape.spark import class_archive
from aerotape.spark.failures import cause
from aerotape.text import not_installed

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

DEFAULT_MASTER = "local[*]"
_MASTERS: Final = ("local", "yarn")

_QUIET_AND_QUICK: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# The driver's JVM hands out tasks and no more: compiling it well takes longer than it saves.
_JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_LOG_CONFIGURATION: Final = Path(__file__).with_name("log4j2.properties")
_LOCAL: Final = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


@dataclass
class _OwnContext:
    """A context that was started here, for as many jobs of this process as use it at once."""

    context: SparkContext
    jobs: int = 0


_starting: Final = threading.Lock()
_own: _OwnContext | None = None
# PySpark's way to a JVM that was started with our configuration of its log.
_quiet_gateway: object = None


@contextmanager
def job_context(
    master: str | None, app_name: str, *, whole_log: bool = False
) -> Iterator[SparkContext]:
    """Start Spark for one job and stop it afterwards.

    A context without a session: tasks need no SQL, and its start is the longer half. Spark logs
    errors only, a line each (`log4j2.properties`), to standard error; its JVM's standard output
    goes there as well, so that standard output belongs to the job's results. In a process that has
    a context already, a notebook say, that one is used and left running, whichever thread asks.
    Jobs at the same time in several threads share one; the last of them stops it.

    The process keeps the JVM and how that logs: a session that is started after a job logs as the
    job did. In a JVM that was started for something else a job sets the level of the log to ERROR,
    and so it stays.

    Args:
        master: Spark's master URL. When None, the context there is, or all cores of this machine.
        app_name: what the cluster's pages shall show.
        whole_log: let Spark log as it is configured by itself, warnings and Java's traces too.

    Raises:
        ConfigurationError: PySpark or pyarrow is not installed, a context with another master is
            there, or the process uses Spark Connect.
        AerotapeError: Spark does not start.
    """
    require_spark()
    with _starting:
        context, own = _acquire(master, app_name, whole_log=whole_log)
    try:
        yield context
    finally:
        if own is not None:
            with _starting:
                _release(own)


def _acquire(
    master: str | None, app_name: str, *, whole_log: bool
) -> tuple[SparkContext, _OwnContext | None]:
    """Return a context; and what is to be released afterwards, None where it is the user's."""
    global _own
    context = _active_context()
    if context is None:
        if "SPARK_REMOTE" in os.environ or "SPARK_CONNECT_MODE_ENABLED" in os.environ:
            raise ConfigurationError(
                "Spark Connect cannot run this job's tasks: use a process without a session of "
                "Spark Connect, with SPARK_REMOTE unset, and name the cluster as master"
            )
        master = master or os.environ.get("MASTER") or DEFAULT_MASTER
        _own = _OwnContext(_start(master, app_name, whole_log=whole_log))
    elif master is not None and context.master != master:
        raise ConfigurationError(
            f"a Spark session with master {context.master!r} is active, stop it to use {master!r}"
        )
    elif _own is None or _own.context is not context:
        return context, None
    _own.jobs += 1
    return _own.context, _own


def _active_context() -> SparkContext | None:
    from pyspark import SparkContext

    return SparkContext._active_spark_context


def _release(own: _OwnContext) -> None:
    own.jobs -= 1
    if not own.jobs:
        # After an interrupt the JVM may be gone already.
        with suppress(Exception):
            _stop(own.context)


def _stop(context: SparkContext) -> None:
    """Stop a context, without waiting for PySpark's server of accumulators.

    That looks once in a second whether it shall end; no task is left to tell it anything. One with
    a socket in the file system is waited for, as it deletes that in the end.
    """
    server = getattr(context, "_accumulatorServer", None)
    if server is not None and not isinstance(server.server_address, str):
        context._accumulatorServer = None  # type: ignore[assignment]
        threading.Thread(target=server.shutdown, daemon=True).start()
    context.stop()


def _start(master: str, app_name: str, *, whole_log: bool) -> SparkContext:
    global _quiet_gateway
    import pyspark
    from pyspark import SparkConf, SparkContext

    conf = SparkConf().setMaster(master).setAppName(app_name)
    conf.setAll(list(_QUIET_AND_QUICK.items()))
    java_options = _JAVA_OPTIONS
    if is_local(master):
        prepare_local_workers()
        java_options += f" {class_archive.java_options(java_options)}"
        # Else Spark looks for an outside address and warns when it is not the host name's.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        conf.setAll(list(_LOCAL.items()))
        if ".zip" not in pyspark.__file__:  # as under spark-submit: workers shall have the same one
            conf.set("spark.python.daemon.module", "aerotape.spark.worker_daemon")
    had_jvm = SparkContext._gateway is not None
    if not whole_log:
        java_options += f" -Dlog4j2.configurationFile={_LOG_CONFIGURATION.as_uri()}"
        # A JVM that is there takes no options any more; to set the level it tells a line.
        if had_jvm and SparkContext._gateway is not _quiet_gateway:
            conf.setIfMissing("spark.log.level", "ERROR")
    conf.set("spark.driver.defaultJavaOptions", java_options)
    with _quiet_start():
        try:
            context = SparkContext(conf=conf)
        except KeyboardInterrupt as interrupt:
            if not had_jvm:
                _kill_jvm(interrupt)
            raise
        except Exception as error:  # py4j's and Spark's own have no base in common
            reason = cause(error)
            if "JAVA_GATEWAY_EXITED" in reason:
                reason = (
                    "its Java process ended, perhaps with the words above; is a JDK 17 or later on "
                    "the PATH or in JAVA_HOME?"
                )
            raise AerotapeError(f"Spark does not start with master {master!r}: {reason}") from error
    if not (had_jvm or whole_log):
        _quiet_gateway = SparkContext._gateway
    return context


@contextmanager
def job_session(master: str | None, app_name: str) -> Iterator[SparkSession]:
    """Do what `job_context` does, and put a session on the context, for those who need SQL."""
    with job_context(master, app_name):
        from pyspark.sql import SparkSession

        yield SparkSession.builder.getOrCreate()


def check_master(master: str | None) -> None:
    """Raise ConfigurationError when Spark knows no such master; Java would tell it in ten lines.

    One that names a scheme may be for a cluster manager that was added to Spark, and what a running
    context has is right in any case.
    """
    if master is None or master.startswith(_MASTERS) or "://" in master:
        return
    active = _active_context() if "pyspark" in sys.modules else None
    if active is None or active.master != master:
        raise ConfigurationError(
            f"{master!r} is no master of Spark's: name local[N], spark://HOST:PORT, yarn or "
            "k8s://https://HOST:PORT",
            "master",
        )


def require_spark() -> None:
    """Raise ConfigurationError when PySpark or pyarrow is not installed."""
    try:
        import pyarrow  # noqa: F401  # tasks need it: say so before a JVM is started
        import pyspark  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(not_installed(str(error.name), "spark")) from error


def is_local(master: str) -> bool:
    """Whether a master URL runs tasks in processes of this machine and environment."""
    return master.startswith("local")


def prepare_local_workers() -> None:
    """Make local Python workers run this interpreter and import this aerotape.

    To be called before the session starts. What the user has set stays.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    root = Path(aerotape.__file__).parents[1]
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    # Not needed when installed; in a checkout only this process knows where the package is.
    if root.name not in ("site-packages", "dist-packages") and str(root) not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([*paths, str(root)])


@contextmanager
def _quiet_start() -> Iterator[None]:
    """Let the JVM that is started inside inherit standard error as its standard output.

    PySpark's warnings of what pandas it likes are left out: a job has no use for pandas.
    """
    sys.stdout.flush()
    saved = os.dup(1)
    try:
        os.dup2(2, 1)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
            yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)


def _kill_jvm(interrupt: KeyboardInterrupt) -> None:
    """Kill the JVM that PySpark was starting when it was interrupted.

    The JVM ignores Ctrl-C, and one that cannot tell PySpark its port any more never notices that
    PySpark is gone. Until it has told, only PySpark's own frames know the process.
    """
    from pyspark import SparkContext

    frames = (frame for frame, _ in traceback.walk_tb(interrupt.__traceback__))
    known = [value for frame in frames for value in frame.f_locals.values()]
    for process in [*known, getattr(SparkContext._gateway, "proc", None)]:
        if isinstance(process, subprocess.Popen):
            process.kill()
            process.wait()
