"""The state of low storage space: how it begins, is shown and ends, without a full disk."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from aerotape.archive.recording.storage import StorageSpace, is_out_of_space
from aerotape.errors import CatalogError, ClosedError, StorageError
from aerotape.protocol import ErrorCode

THRESHOLD = 1_000 * 4_096


class Counter:
    """A counter that raises once it is closed."""

    def __init__(self) -> None:
        self.values: list[int] = []
        self.is_closed = False

    def set(self, value: int) -> None:
        if self.is_closed:
            raise ClosedError("the counter is closed")
        self.values.append(value)


class Disk:
    """Returns the number of free blocks, or fails as for a missing directory."""

    def __init__(self) -> None:
        self.blocks = 10_000

    def __call__(self, path: Path) -> Any:
        if self.blocks < 0:
            raise FileNotFoundError(errno.ENOENT, "no such directory", str(path))
        return os.statvfs_result((4_096, 4_096, 20_000, self.blocks + 50, self.blocks, *[0] * 6))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    made = Disk()
    monkeypatch.setattr("os.statvfs", made)
    return made


def test_the_state_is_logged_when_it_changes(
    disk: Disk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has a line for its begin and its end; in between the counter is set and requests are
    refused."""
    counter = Counter()
    storage = StorageSpace(tmp_path, THRESHOLD, counter)  # type: ignore[arg-type]
    with caplog.at_level(logging.INFO):
        assert storage.refuse() is None
        assert counter.values == []
        # As in the reference, exactly the threshold is too little.
        disk.blocks = 1_000
        for _ in range(5):
            storage.watch()
            refusal = storage.refuse()
            assert refusal is not None and refusal[0] is ErrorCode.STORAGE_SPACE
            assert f"low storage threshold={THRESHOLD} <= usableSpace={THRESHOLD}" in refusal[1]
        assert counter.values == [1]
        disk.blocks = 1_001
        storage.watch()
        storage.watch()
        assert storage.refuse() is None
    assert counter.values == [1, 0]
    logged = [record.getMessage() for record in caplog.records]
    assert len(logged) == 2
    assert "is low on space" in logged[0] and str(tmp_path) in logged[0]
    assert "has space again" in logged[1]


def test_a_missing_directory_and_a_lost_driver(disk: Disk, tmp_path: Path) -> None:
    """`watch` never raises; `refuse` raises that the directory is missing."""
    counter = Counter()
    storage = StorageSpace(tmp_path, THRESHOLD, counter)  # type: ignore[arg-type]
    disk.blocks = -1
    storage.watch()
    with pytest.raises(StorageError):
        storage.refuse()
    counter.is_closed = True
    disk.blocks = 0
    storage.watch()
    assert storage.refuse() is not None


def test_errors_for_a_lack_of_space() -> None:
    """A lack of space is found among the causes of an error; other errors are not."""

    def wrapped(number: int) -> CatalogError:
        try:
            try:
                raise OSError(number, os.strerror(number))
            except OSError as error:
                raise CatalogError("cannot grow") from error
        except CatalogError as error:
            return error

    assert is_out_of_space(wrapped(errno.ENOSPC))
    assert is_out_of_space(OSError(errno.EDQUOT, "quota"))
    assert not is_out_of_space(wrapped(errno.EIO))
    assert not is_out_of_space(CatalogError("cannot grow"))
    assert not is_out_of_space(None)
