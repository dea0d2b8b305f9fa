"""Spark contexts of jobs: workers that can import aerotape, and an unused standard output."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import aerotape
from aerotape.errors import AerotapeError, ConfigurationError
from aerotape.formatting import not_installed
from aerotape.spark.runtime.failures import cause

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext

DEFAULT_MASTER = "local[*]"
NO_JVM: Final = (
    "its Java process ended, see its output above: PATH or JAVA_HOME must name a JDK 17 or later"
)
_MASTERS: Final = ("local", "yarn")

_QUIET_AND_QUICK: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# The driver's JVM only schedules tasks: optimised compilation takes longer than it saves.
_JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_LOG_CONFIGURATION: Final = Path(__file__).with_name("log4j2.properties")
_LOCAL: Final = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


@contextmanager
def job_context(
    master: str | None, app_name: str, *, whole_log: bool = False
) -> Iterator[SparkContext]:
    """Start Spark for one job and stop it afterwards.

    A context without a session, because tasks do not use SQL and a session takes longer to start.
    Spark logs errors only, a line each (`log4j2.properties`), to standard error, and so does its
    JVM, so that standard output has only the job's results. An active context of the process, in a
    notebook or of another job, is used and left running.

    The JVM and its log configuration outlive the job: a session that is started after it logs as
    the job did, and a job in a JVM that was started before logs as that JVM does.

    Args:
        master: Spark's master URL. When None, the active context, or all cores of this machine.
        app_name: the name that the cluster's pages show.
        whole_log: let Spark log by its own configuration, with warnings and Java stack traces.

    Raises:
        ConfigurationError: PySpark or pyarrow is not installed, a context with another master is
            active, or the process uses Spark Connect.
        AerotapeError: Spark does not start.
    """
    require_spark()
    active = _active_context()
    if active is not None:
        if master is not None and active.master != master:
            raise ConfigurationError(
                f"a Spark session with master {active.master!r} is active: stop it to use "
                f"{master!r}"
            )
        yield active
        return
    if "SPARK_REMOTE" in os.environ or "SPARK_CONNECT_MODE_ENABLED" in os.environ:
        raise ConfigurationError(
            "Spark Connect cannot run the tasks of this job: use a process without a Spark "
            "Connect session, with SPARK_REMOTE unset, and give the cluster as master"
        )
    master = master or os.environ.get("MASTER") or DEFAULT_MASTER
    context = _start(master, app_name, whole_log=whole_log)
    try:
        yield context
    finally:
        # After an interrupt the JVM may be gone already.
        with suppress(Exception):
            context.stop()


def _active_context() -> SparkContext | None:
    from pyspark import SparkContext

    return SparkContext._active_spark_context


def _start(master: str, app_name: str, *, whole_log: bool) -> SparkContext:
    import pyspark
    from pyspark import SparkConf, SparkContext

    conf = SparkConf().setMaster(master).setAppName(app_name)
    conf.setAll(list(_QUIET_AND_QUICK.items()))
    java_options = _JAVA_OPTIONS
    if is_local(master):
        prepare_local_workers()
        # Without it Spark warns if the host name resolves to a loopback address.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        conf.setAll(list(_LOCAL.items()))
        if ".zip" not in pyspark.__file__:  # spark-submit: workers must use the same zip
            conf.set("spark.python.daemon.module", "aerotape.spark.runtime.worker_daemon")
    if not whole_log:
        java_options += f" -Dlog4j2.configurationFile={_LOG_CONFIGURATION.as_uri()}"
    conf.set("spark.driver.defaultJavaOptions", java_options)
    gateway = None
    with warnings.catch_warnings():
        # About pandas, which a job does not use.
        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
        try:
            if SparkContext._gateway is None:
                gateway = _launch_jvm(conf)
            return SparkContext(conf=conf, gateway=gateway)
        except KeyboardInterrupt:
            if gateway is not None:
                _kill_jvm(gateway)
            raise
        except Exception as error:  # py4j's and Spark's errors have no common base class
            reason = cause(error)
            if "JAVA_GATEWAY_EXITED" in reason:
                reason = NO_JVM
            raise AerotapeError(f"cannot start Spark with master {master!r}: {reason}") from error


def check_master(master: str | None) -> None:
    """Raise ConfigurationError when a master URL is not one of Spark's.

    Unknown schemes pass, because cluster managers can be added to Spark, and so does the master of
    the active context.
    """
    if master is None or master.startswith(_MASTERS) or "://" in master:
        return
    active = _active_context() if "pyspark" in sys.modules else None
    if active is None or active.master != master:
        raise ConfigurationError(
            f"{master!r} is not a Spark master URL: expected local[N], spark://HOST:PORT, yarn "
            "or k8s://https://HOST:PORT",
            "master",
        )


def require_spark() -> None:
    """Raise ConfigurationError when PySpark or pyarrow is not installed."""
    try:
        import pyarrow  # noqa: F401  # for tasks: checked before a JVM is started
        import pyspark  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(not_installed(str(error.name), "spark")) from error


def is_local(master: str) -> bool:
    """Return whether a master URL runs tasks in processes on this machine."""
    return master.startswith("local")


def prepare_local_workers() -> None:
    """Set the environment so that local Python workers run this interpreter and this aerotape.

    Call this before the session starts. The user's settings take precedence.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    package = Path(aerotape.__file__).parent
    # An editable installation may be visible to this process only.
    if package.parent.name not in ("site-packages", "dist-packages"):
        paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        folder = _package_folder(package).name
        if folder not in paths:
            os.environ["PYTHONPATH"] = os.pathsep.join([*paths, folder])


@cache
def _package_folder(package: Path) -> TemporaryDirectory[str]:
    """Create a folder from which workers can import the package of a checkout, and nothing else.

    In the checkout itself `archive` would be a second copy of `aerotape.archive`. The folder is
    deleted when the process ends.
    """
    folder = TemporaryDirectory(prefix="aerotape-workers-")
    for path in (package, package.with_name("pyspark_aerotape.py")):
        Path(folder.name, path.name).symlink_to(path)
    return folder


def _launch_jvm(conf: SparkConf) -> Any:
    """Start a JVM whose standard output is our standard error; return its py4j gateway.

    This is done on another thread, because interrupts reach the main thread only: the JVM ignores
    Ctrl-C, and one that could not report its port to PySpark would never end.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="aerotape-jvm") as threads:
        starting = threads.submit(_launch_quiet_jvm, conf)
        try:
            return starting.result()
        except KeyboardInterrupt:
            _kill_jvm(starting.result())
            raise


def _launch_quiet_jvm(conf: SparkConf) -> Any:
    """Start it without Java's line about the module that Spark's launcher adds.

    No option suppresses that line. A process of its own filters, in a session that Ctrl-C does not
    reach, so that what the JVM prints after the end of this process is printed too.
    """
    from pyspark import java_gateway

    start: Callable[..., Any] = java_gateway.launch_gateway
    command = ["sed", "-u", "/^WARNING: Using incubator modules: /d"]
    passing = Popen(command, stdin=PIPE, stdout=2, start_new_session=True)
    assert passing.stdin is not None
    try:
        with passing.stdin:
            gateway = start(conf, {"stdout": 2, "stderr": passing.stdin})
    except BaseException:
        with suppress(TimeoutExpired):
            passing.wait(5)  # the error refers to the output above it
        raise
    gateway.stderr_filter = passing
    return gateway


def _kill_jvm(gateway: Any) -> None:
    """Kill the JVM of a start that was interrupted."""
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.kill()
        process.wait()
