"""Commands killed between any two of their changes to files.

Each runs in a separate child process, in which all functions that change files are counted, and
which exits before the change with a given number. Half of a write may be done by then. Stores into
mapped memory persist after the exit, as after a kill.
"""

from __future__ import annotations

import builtins
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from aerotape.catalog import layout

_KILLED = 77
_FUNCTIONS = (
    "rename",
    "replace",
    "link",
    "unlink",
    "remove",
    "mkdir",
    "rmdir",
    "truncate",
    "ftruncate",
    "fsync",
    "fdatasync",
    "posix_fallocate",
    "fchmod",
    "chmod",
)
_SECTOR_LENGTH = 512
_MORE_THAN_ENOUGH = 2000


class _Counter:
    """Counts changes, and ends the process before the last permitted one."""

    def __init__(self, left: int) -> None:
        self._left = left

    def change(self, data: Any = b"", write: Callable[[Any], object] = bytes) -> None:
        """Count a change; if it is longer than a sector, half of it may be written."""
        self._end_before()
        if len(data) > _SECTOR_LENGTH:
            half = memoryview(data)[: len(data) // 2]
            self._end_before(lambda: write(half))

    def _end_before(self, last: Callable[[], object] = bytes) -> None:
        if self._left == 0:
            last()
            os._exit(_KILLED)
        self._left -= 1


def _install(counter: _Counter) -> None:
    for name in _FUNCTIONS:
        setattr(os, name, _counted(getattr(os, name), counter))
    pwrite, write, opened = os.pwrite, os.write, os.open

    def counted_pwrite(file: int, data: Any, offset: int) -> int:
        counter.change(data, lambda half: pwrite(file, half, offset))
        return pwrite(file, data, offset)

    def counted_write(file: int, data: Any) -> int:
        if file > 2:
            counter.change(data, lambda half: write(file, half))
        return write(file, data)

    def counted_open(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if flags & (os.O_CREAT | os.O_TRUNC):
            counter.change()
        return opened(path, flags, *rest, **named)

    replaced: dict[str, Any] = {
        "pwrite": counted_pwrite,
        "write": counted_write,
        "open": counted_open,
    }
    for name, function in replaced.items():
        setattr(os, name, function)
    plain = io.open

    class CountedFile(io.FileIO):
        def write(self, data: Any) -> int:
            counter.change(data, super().write)
            return super().write(data) or 0

        def truncate(self, size: int | None = None) -> int:
            counter.change()
            return super().truncate(size)

    def counted_file(path: Any, mode: str = "r", *rest: Any, **named: Any) -> Any:
        if not set(mode) & set("wax+") or isinstance(path, int):
            return plain(path, mode, *rest, **named)
        if "w" in mode or "x" in mode:
            counter.change()
        raw = CountedFile(path, mode.replace("b", "").replace("t", ""))
        if "b" in mode:
            return raw
        text: Any = io.TextIOWrapper
        return text(raw, encoding=named.get("encoding"), write_through=True)

    io.open = builtins.open = counted_file  # type: ignore[assignment]
    for name in ("INT", "LONG"):
        setattr(layout, name, _CountedStruct(getattr(layout, name), counter))


def _counted(function: Callable[..., Any], counter: _Counter) -> Callable[..., Any]:
    def counted(*arguments: Any, **named: Any) -> Any:
        counter.change()
        return function(*arguments, **named)

    return counted


class _CountedStruct:
    """A `Struct` whose stores into mapped memory are counted."""

    def __init__(self, struct: Any, counter: _Counter) -> None:
        self._struct = struct
        self._counter = counter

    def pack_into(self, *arguments: Any) -> None:
        self._counter.change()
        self._struct.pack_into(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._struct, name)


def _run(command: Callable[[], int], changes: int) -> NoReturn:
    code = 99
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        sys.stdout = sys.stderr = io.StringIO()
        _install(_Counter(changes))
        code = command()
    finally:
        os._exit(code)


def killed_after(changes: int, command: Callable[[], int]) -> int | None:
    """Run a command in a child that exits after so many changes; return its exit code if it
    ends."""
    child = os.fork()
    if not child:
        _run(command, changes)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return None if code == _KILLED else code


def crashes(
    directory: Path, scratch: Path, command: Callable[[Path], int], *, step: int = 1
) -> Iterator[tuple[Path, int | None]]:
    """Run a command on copies of a directory, killed at one place after the other.

    With a `step`, only at every so many places. Yields each copy as the command has left it, with
    None; finally one in which it was not killed, with its exit code.
    """
    for changes in range(0, _MORE_THAN_ENOUGH, step):
        copy = shutil.copytree(directory, scratch / "copy")
        code = killed_after(changes, lambda copy=copy: command(copy))  # type: ignore[misc]
        yield copy, code
        shutil.rmtree(copy)
        if code is not None:
            return
    raise AssertionError("it never ends")
