"""Copies of a directory at each change that this process makes to files, by Python's `os`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_CHANGING = (
    "pwrite", "ftruncate", "posix_fallocate", "open", "unlink", "rename", "replace", "link",
    "fsync", "fdatasync",
)  # fmt: skip


@contextmanager
def copied_changes(directory: Path, scratch: Path) -> Iterator[list[Path]]:
    """Copy a directory after each change within, and after each sync.

    Yields:
        The copies, each of which differs from the one before it.
    """
    copies: list[Path] = []

    def copy(what: str) -> None:
        path = scratch / f"{len(copies):03} {what}"
        shutil.copytree(directory, path)
        if copies and _content(path) == _content(copies[-1]):
            shutil.rmtree(path)
        else:
            copies.append(path)

    def noted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            result = function(*args, **options)
            patch.undo()
            copy(name)
            replace()
            return result

        return call

    patch = pytest.MonkeyPatch()

    def replace() -> None:
        for name in _CHANGING:
            patch.setattr(os, name, noted(name, getattr(os, name)))

    replace()
    try:
        yield copies
    finally:
        patch.undo()


def _content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}
