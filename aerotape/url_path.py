"""Paths that name a place in a storage elsewhere."""

from __future__ import annotations

from pathlib import Path, PosixPath


class UrlPath(PosixPath):
    """A path in a storage elsewhere: it can be named and extended like others, not opened.

    Code that only names files (in errors, in reports) need not tell them from local ones.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return super().__str__().replace(":/", "://", 1)


def named_path(text: str | Path) -> Path:
    """Return the path that a message names, a `UrlPath` for the text of one."""
    if isinstance(text, Path):
        return text
    return UrlPath(text) if "://" in text else Path(text)
