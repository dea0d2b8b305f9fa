"""Paths in remote storage."""

from __future__ import annotations

from pathlib import Path, PosixPath


class UrlPath(PosixPath):
    """A path in remote storage: it can be printed and extended like a local one, not opened."""

    __slots__ = ()

    def __str__(self) -> str:
        return super().__str__().replace(":/", "://", 1)


def named_path(text: str | Path) -> Path:
    """Return the path for a text, a `UrlPath` if it is a URL."""
    if isinstance(text, Path):
        return text
    return UrlPath(text) if "://" in text else Path(text)
