"""A Spark standalone cluster on loopback: a master and workers in separate processes."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Empty, Queue

_READY_S = 120


class _Daemon:
    """One of the cluster's processes, whose log is read until it is ready."""

    def __init__(self, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> None:
        import pyspark

        home = Path(pyspark.__file__).parent
        self._process = subprocess.Popen(
            [str(home / "bin" / "spark-class"), *arguments],
            cwd=cwd,
            env={
                **os.environ,
                "SPARK_HOME": str(home),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_DAEMON_MEMORY": "256m",
                **environment,
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._lines: Queue[str | None] = Queue()
        self._log: list[str] = []
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._lines.put(line)
        self._lines.put(None)

    def await_line(self, pattern: str) -> re.Match[str]:
        """Wait for a line of the log."""
        while True:
            try:
                line = self._lines.get(timeout=_READY_S)
            except Empty:
                line = None
            if line is None:
                raise AssertionError(f"no {pattern!r} in the log:\n{''.join(self._log)}")
            self._log.append(line)
            if match := re.search(pattern, line):
                return match

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def standalone(folder: Path, workers: int, environment: Mapping[str, str]) -> Iterator[str]:
    """Run a master and workers of one core each; yield the master's URL.

    Args:
        folder: of the working directories of the processes.
        workers: the number of workers.
        environment: variables for the workers and their tasks.
    """
    with ExitStack() as stack:

        def start(name: str, *arguments: str) -> _Daemon:
            cwd = folder / name
            cwd.mkdir(parents=True)
            daemon = _Daemon(arguments, cwd, environment)
            stack.callback(daemon.stop)
            return daemon

        address = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        master = start("master", "org.apache.spark.deploy.master.Master", *address)
        url = master.await_line(r"spark://127\.0\.0\.1:\d+")[0]
        daemons = []
        for index in range(workers):
            name = f"worker-{index}"
            daemons.append(
                start(
                    name,
                    "org.apache.spark.deploy.worker.Worker",
                    *address,
                    *("--cores", "1", "--memory", "1g", "--work-dir", str(folder / name / "work")),
                    url,
                )
            )
        for daemon in daemons:
            daemon.await_line("Successfully registered with master")
        yield url
