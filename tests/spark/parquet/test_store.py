"""Replacement of a table's files in storage where a rename fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from pyarrow import fs

from aerotape.errors import StorageError
from aerotape.spark.parquet.store import OutputStore


class Renaming:
    """A local file system of a given type, whose renaming the test controls."""

    def __init__(self, type_name: str, *, renames: bool, fails: bool) -> None:
        """Rename to existing names only if it `renames`; then fail if it `fails`."""
        self.type_name = type_name
        self._behind = fs.LocalFileSystem()
        self._renames = renames
        self._fails = fails

    def move(self, source: str, target: str) -> None:
        if self._renames or not Path(target).exists():
            self._behind.move(source, target)
            if not self._fails:
                return
        raise OSError(5, "Input/output error")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._behind, name)


def store(tmp_path: Path, type_name: str, *, renames: bool, fails: bool = False) -> OutputStore:
    (tmp_path / "manifest").write_bytes(b"old")
    file_system: Any = Renaming(type_name, renames=renames, fails=fails)
    return OutputStore(file_system, str(tmp_path))


@pytest.mark.parametrize("type_name", ["hdfs", "py::fsspec+webhdfs"])
def test_a_file_is_replaced_where_a_taken_name_is_refused(tmp_path: Path, type_name: str) -> None:
    store(tmp_path, type_name, renames=False).write("manifest", b"new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"manifest": b"new"}


def test_an_object_stays_where_renaming_fails(tmp_path: Path) -> None:
    """An object store replaces existing names, so the failure has another reason."""
    with pytest.raises(StorageError, match="Input/output error"):
        store(tmp_path, "abfs", renames=False).write("manifest", b"new")
    assert (tmp_path / "manifest").read_bytes() == b"old"


def test_a_renamed_file_stays_after_a_reported_failure(tmp_path: Path) -> None:
    """The connection may have been lost after the rename."""
    with pytest.raises(StorageError, match="Input/output error"):
        store(tmp_path, "hdfs", renames=True, fails=True).write("manifest", b"new")
    assert (tmp_path / "manifest").read_bytes() == b"new"
