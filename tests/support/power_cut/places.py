"""The place in a program that forces data to storage, which is added to each record of
`power_cut`."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any

_SHIM = ctypes.CDLL(None)
# The place to report for calls of this thread, if it calls for another one.
_given = threading.local()
# Functions through which many places force data: the place is their caller.
_PASSED_THROUGH = {
    "sync_directory",
    "force_names",
    "make_directory",
    "write_atomically",
    "write_durably",
    "CatalogFile.force",
    "CatalogFile.force_name",
    "Catalog._change",
}


def say_places() -> None:
    """From now on, report the place of each call in Python that forces data to storage."""
    for name in ("fsync", "fdatasync"):
        setattr(os, name, _placed(getattr(os, name)))
    plain = mmap.mmap

    class PlacedMap(plain):  # type: ignore[misc, valid-type]
        """A mapped file."""

        flush = _placed(plain.flush)

    mmap.mmap = PlacedMap  # type: ignore[misc]
    _place_forces_of_catalog()


def _place_forces_of_catalog() -> None:
    """Report where the catalog is forced, not where its thread does that."""
    from aerotape.catalog.file.mapped_file import CatalogFile

    plain = CatalogFile.force

    def force(self: CatalogFile, at_least: int = 0) -> None:
        before = len(self._unwritten)
        plain(self, at_least)
        place = _place()
        self._unwritten[before:] = [
            partial(_at_place, place, change) for change in self._unwritten[before:]
        ]

    CatalogFile.force = force  # type: ignore[method-assign]


def _at_place(place: str, change: Callable[[], None]) -> None:
    _given.place = place
    try:
        change()
    finally:
        del _given.place


def _placed(function: Callable[..., Any]) -> Callable[..., Any]:
    def placed(*arguments: Any) -> Any:
        _SHIM.power_cut_place(_place().encode())
        try:
            return function(*arguments)
        finally:
            _SHIM.power_cut_place(b"")

    return placed


def _place() -> str:
    """Return the line that forces data, and the function that called it."""
    if hasattr(_given, "place"):
        return str(_given.place)
    frame: Any = sys._getframe(2)
    while frame.f_code.co_qualname in _PASSED_THROUGH:
        frame = frame.f_back
    caller = f" < {_named(frame.f_back.f_code)}" if frame.f_back else ""
    return f"{_named(frame.f_code)}:{frame.f_lineno}{caller}"


def _named(code: CodeType) -> str:
    return f"{Path(code.co_filename).name} {code.co_qualname}"


def main() -> int:
    """Run `aerotape` with the arguments of this program, and report these places."""
    say_places()
    from aerotape.tools._cli.main import main as aerotape

    return aerotape(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
