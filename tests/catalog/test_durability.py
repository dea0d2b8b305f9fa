"""Files that are replaced whole."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from aerotape.catalog.durability import write_atomically, write_durably


@pytest.mark.parametrize("write", [write_atomically, write_durably])
def test_a_file_is_replaced_and_no_other_is_left(
    tmp_path: Path, write: Callable[..., None]
) -> None:
    """Also where an interrupted write has left its temporary file; the mode is as given."""
    path = tmp_path / "file"
    path.write_bytes(b"old content")
    (tmp_path / "file.tmp").write_bytes(b"a longer rest of an interrupted write")
    write(path, b"new", mode=0o604)
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o604
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("call", ["fsync", "fchmod", "fchown"])
def test_a_failure_leaves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """And no temporary file."""
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match="Input/output error"):
        write_durably(path, b"new", mode=0o600, owner=(0, 0))
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_durable_write_forces_content_before_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the directory; an atomic write forces nothing."""
    path = tmp_path / "file"
    forced: list[tuple[bool, bool]] = []
    real = os.fsync

    def note(descriptor: int) -> None:
        forced.append((Path(f"/proc/self/fd/{descriptor}").is_dir(), path.exists()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    write_durably(path, b"data")
    assert forced == [(False, False), (True, True)]
    write_atomically(path, b"other")
    assert len(forced) == 2
