"""Commands in processes of their own that begin with what they import loaded.

They are forks of a server of `multiprocessing`. To start Python and to import the web service takes
0.7 s of a processor, more than most of its tests; a fork takes some milliseconds. Tests of how
`aerotape` itself starts and of what is in its environment start it by `subprocess`.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from multiprocessing.reduction import DupFd
from typing import Any

from aerotape.tools._cli.main import main

_CONTEXT = multiprocessing.get_context("forkserver")
# FastAPI imports the last when it first builds a service.
_PRELOADED = ["support.forked", "aerotape.tools.web", "aerotape.tools._web.server", "pydantic.v1"]


class Forked:
    """A command in a process; what tests use of `subprocess.Popen`, with pipes for its output.

    It has no standard input, and is killed when the test run ends.

    Attributes:
        stdout, stderr: what it prints, as text.
    """

    def __init__(self, args: Sequence[str], env: Mapping[str, str]) -> None:
        """Start `aerotape` with these arguments and this environment."""
        _CONTEXT.set_forkserver_preload(_PRELOADED)
        (read, out), (read_error, err) = os.pipe(), os.pipe()
        self._process = _CONTEXT.Process(target=_run, args=(list(args), dict(env), _Ends(out, err)))
        self._process.daemon = True
        try:
            self._process.start()
        finally:
            os.close(out)
            os.close(err)
        self.stdout = os.fdopen(read)
        self.stderr = os.fdopen(read_error)

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, or the negative number of a signal."""
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def terminate(self) -> None:
        self._process.terminate()

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait until it has ended; return what it has printed since (subprocess.TimeoutExpired)."""
        printed = {}

        def read(name: str) -> None:
            with getattr(self, name) as stream:
                printed[name] = stream.read()

        readers = [threading.Thread(target=read, args=(name,)) for name in ("stdout", "stderr")]
        for reader in readers:
            reader.start()
        self._process.join(timeout)
        if self.returncode is None:
            self._process.kill()
            raise subprocess.TimeoutExpired("aerotape", timeout or 0)
        for reader in readers:
            reader.join()
        return printed["stdout"], printed["stderr"]


class _Ends:
    """The child's ends of the pipes, which arrive as descriptors of its own."""

    def __init__(self, *ends: int) -> None:
        self._ends = ends

    def __getstate__(self) -> list[Any]:
        return [DupFd(end) for end in self._ends]

    def __setstate__(self, ends: list[Any]) -> None:
        self._ends = tuple(end.detach() for end in ends)

    def take(self) -> None:
        """Make them standard output and error, of the kind that Python makes of pipes."""
        for number, end in enumerate(self._ends, 1):
            os.dup2(end, number)
            os.close(end)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, closefd=False, errors="backslashreplace")  # noqa: SIM115


def _run(args: list[str], env: dict[str, str], ends: _Ends) -> None:
    ends.take()
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    sys.argv = ["aerotape", *args]
    threading.Thread(target=_end_with_the_test_run, daemon=True).start()
    sys.exit(main(args))


def _end_with_the_test_run() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    with suppress(OSError):
        wait([parent.sentinel])
        os._exit(1)
