"""Temporarily dropped privileges, so that file modes apply to root, too."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

# To read and write whatever the modes are, and to read and search likewise (capabilities(7)).
_PRIVILEGES = 1 << 1 | 1 << 2
_VERSION = 0x20080522


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Words(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("effective", "permitted", "inheritable")]


@contextmanager
def without_privileges() -> Iterator[None]:
    """Make file modes apply as for any user who owns the files.

    For this thread and those that it starts meanwhile. The privileges of root are restored
    afterwards; another user has none.
    """
    before = _capabilities()
    reduced = type(before)(*(_Words(*_fields(words)) for words in before))
    reduced[0].effective &= ~_PRIVILEGES
    _set_capabilities(reduced)
    try:
        yield
    finally:
        _set_capabilities(before)


def _fields(words: _Words) -> tuple[int, int, int]:
    return words.effective, words.permitted, words.inheritable


def _capabilities() -> ctypes.Array[_Words]:
    words = (_Words * 2)()
    _call("capget", words)
    return words


def _set_capabilities(words: ctypes.Array[_Words]) -> None:
    _call("capset", words)


def _call(name: str, words: ctypes.Array[_Words]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(ctypes.byref(_Header(_VERSION, 0)), words) != 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
