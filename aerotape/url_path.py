"""Paths in remote storage, and requests to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path, PosixPath
from typing import Final, TypeVar

AT_ONCE: Final = 16
"""Requests that run at the same time."""

_T = TypeVar("_T")
_R = TypeVar("_R")


class UrlPath(PosixPath):
    """A path in remote storage: it can be printed and extended like a local one, not opened."""

    __slots__ = ()

    def __str__(self) -> str:
        return super().__str__().replace(":/", "://", 1)


def named_path(text: str | Path) -> Path:
    """Return the path for a text, a `UrlPath` if it is a URL."""
    if isinstance(text, Path):
        return text
    return UrlPath(text) if is_url(text) else Path(text)


def is_url(text: str) -> bool:
    """Return whether a text names a place in remote storage."""
    return "://" in text


def map_at_once(do: Callable[[_T], _R], items: Iterable[_T]) -> list[_R]:
    """Call a function that makes requests for each item, several calls at a time."""
    # Not at the top: this import takes 15 ms, and an archive starts without it.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="aerotape-requests") as threads:
        return list(threads.map(do, items))
