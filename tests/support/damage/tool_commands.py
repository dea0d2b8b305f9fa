"""All commands for an archive directory, to be run in this process on damaged ones."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aerotape.tools._cli.main import main
from support.json_output import check

Arguments = Callable[[Path, Path], list[str]]
"""Of the directory, and of a folder for what a command writes elsewhere."""


@dataclass(frozen=True)
class Command:
    """A command with its arguments.

    Attributes:
        arguments: function that returns the whole command line.
        writes: whether it may change the directory.
    """

    arguments: Arguments
    writes: bool = False


@dataclass(frozen=True)
class Done:
    """The exit code of a command, and what it has printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run(*arguments: object) -> Done:
    """Run a command; any exception is a failure of the test, because it would be a traceback."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", RuntimeWarning)
        code = main([str(argument) for argument in arguments])
    check([str(argument) for argument in arguments], out.getvalue())
    return Done(code, out.getvalue(), err.getvalue())


def _tool(*arguments: str, writes: bool = False) -> Command:
    return Command(
        lambda directory, aside: [
            "tool",
            str(directory),
            *(argument.replace("ASIDE", str(aside)) for argument in arguments),
        ],
        writes,
    )


def _retain(*options: str, writes: bool = False) -> Command:
    return Command(
        lambda directory, aside: ["retain", str(directory), f"{aside}/policy.toml", *options],
        writes,
    )


def _parquet(directory: Path, aside: Path) -> list[str]:
    return ["parquet", str(directory), f"{aside}/table", "--dry-run", "--checksum", "crc-32c"]


COMMANDS: Mapping[str, Command] = {
    "describe": _tool("describe"),
    "describe-all": _tool("describe-all", "--json"),
    "describe-1": _tool("describe", "1"),
    "dump": _tool("dump", "5"),
    "dump-json": _tool("dump", "--json"),
    "verify-dry": _tool("verify", "-a", "--dry-run", "--json"),
    "stats": _tool("stats"),
    "stats-1": _tool("stats", "1", "--json"),
    "count": _tool("count-entries"),
    "pid": _tool("pid"),
    "errors": _tool("errors"),
    "capacity": _tool("capacity"),
    "time-index": _tool("time-index"),
    "time-index-points": _tool("time-index", "0", "--points"),
    "time-index-dry": _tool("time-index", "--rebuild", "--dry-run"),
    "checksum-dry": _tool("checksum", "crc-32c", "-a", "--dry-run"),
    "repair-dry": _tool("repair", "--dry-run"),
    "export-dry": _tool("export", "1", "ASIDE/exported", "--dry-run"),
    "export-0": _tool("export", "0", "ASIDE/exported-0"),
    "export-1": _tool("export", "1", "ASIDE/exported-1", "-checksum", "crc-32c"),
    "export-2": _tool("export", "2", "ASIDE/exported-2"),
    "diff": _tool("diff", "ASIDE/original"),
    "orphans-dry": _tool("delete-orphaned-segments", "--dry-run", "--json"),
    "compact-dry": _tool("compact", "--dry-run", "--json"),
    "migrate-dry": _tool("migrate", "--dry-run"),
    "retain-dry": _retain("--dry-run"),
    "parquet-dry": Command(_parquet),
    "cat": Command(lambda directory, aside: ["cat", str(directory), "0", "--json"]),
    "cat-checksum": Command(
        lambda directory, aside: ["cat", str(directory), "1", "--checksum", "crc-32c"]
    ),
    "plot": Command(
        lambda directory, aside: ["plot", str(directory), "0", "-o", f"{aside}/plot.png"]
    ),
    "verify": _tool("verify", writes=True),
    "verify-all": _tool("verify", "-a", "--yes", writes=True),
    "verify-checksum": _tool("verify", "1", "-a", "-checksum", "crc-32c", "--yes", writes=True),
    "capacity-grow": _tool("capacity", "2097152", writes=True),
    "mark-invalid": _tool("mark-invalid", "4", writes=True),
    "mark-valid": _tool("mark-valid", "6", writes=True),
    "time-index-rebuild": _tool("time-index", "--rebuild", writes=True),
    "checksum": _tool("checksum", "crc-32c", writes=True),
    "checksum-all": _tool("checksum", "crc-32c", "-a", writes=True),
    "repair": _tool("repair", writes=True),
    "repair-cut": _tool("repair", "--cut", writes=True),
    "repair-checksum": _tool("repair", "1", "-checksum", "crc-32c", writes=True),
    "import": _tool("import", "ASIDE/recording", writes=True),
    "orphans": _tool("delete-orphaned-segments", "--yes", "--json", writes=True),
    "compact": _tool("compact", "--yes", "--json", writes=True),
    "migrate": _tool("migrate", "--yes", writes=True),
    "retain": _retain("--yes", "--json", writes=True),
}
POLICY = '[[rule]]\nname = "all"\nmax_recording_size = "64k"\n'


def check_tidy(name: str, done: Done) -> None:
    """Check that the exit code is one of ours, and that a failure has one line with the reason."""
    assert done.code in (0, 1, 3), (name, done)
    if done.code == 1 and not done.out:
        assert done.err.splitlines()[-1].startswith("aerotape "), (name, done)


def in_child(work: Callable[[], dict[str, Done]], timeout_s: float) -> dict[str, Done]:
    """Run a function in a child process, which is killed when it does not end (AssertionError)."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            try:
                rows = {name: [done.code, done.out, done.err] for name, done in work().items()}
            except BaseException as error:  # reported to the parent, which then fails
                rows = {"": [-1, "", f"{type(error).__name__}: {error}"]}
            with os.fdopen(writer, "w") as pipe:
                json.dump(rows, pipe)
        finally:
            os._exit(0)
    os.close(writer)
    give_up = threading.Timer(timeout_s, os.kill, (child, signal.SIGKILL))
    give_up.start()
    with os.fdopen(reader) as pipe:
        report = pipe.read()
    give_up.cancel()
    _, status = os.waitpid(child, 0)
    assert status == 0, f"it did not end within {timeout_s} s"
    rows = json.loads(report)
    assert "" not in rows, rows[""][2]
    return {name: Done(*row) for name, row in rows.items()}
