"""The place in a program that forces data to storage, which is added to each record of
`power_cut`."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

_SHIM = ctypes.CDLL(None)
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
