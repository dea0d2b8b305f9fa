"""Catalog and mark file on a full disk: a clear error, and no file is left."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from support.builders.built_archive import ENTRY
from support.builders.mark_files import acquire
from support.damage.small_disk import small_disk

from aerotape.catalog import durability
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import CATALOG_FILE_NAME
from aerotape.catalog.mark import ownership
from aerotape.catalog.mark.layout import FILE_NAME, LINK_FILE_NAME
from aerotape.catalog.mark.mark_file import MarkFile
from aerotape.errors import CatalogError, MarkFileError


def add(catalog: Catalog, channel: str = "aeron:ipc") -> int:
    return catalog.add_recording(
        **{**ENTRY, "stripped_channel": channel, "original_channel": channel}
    )


@pytest.fixture
def no_space(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every allocation of blocks fails; a part of the request may stay allocated, as on ext4."""

    def allocate(descriptor: int, offset: int, length: int) -> None:
        size = os.fstat(descriptor).st_size
        if length > size:
            os.ftruncate(descriptor, max(size, offset + length // 2))
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.posix_fallocate", allocate)


@pytest.mark.usefixtures("no_space")
def test_files_without_blocks_are_deleted(tmp_path: Path) -> None:
    """The Java archive would treat an empty file as a damaged one."""
    with pytest.raises(MarkFileError, match=r"cannot reserve \d+ bytes.*No space left") as mark:
        acquire(tmp_path)
    assert mark.value.path == tmp_path / FILE_NAME
    with pytest.raises(CatalogError, match=r"cannot reserve \d+ bytes.*No space left"):
        Catalog.open(tmp_path, create=True)
    assert list(tmp_path.iterdir()) == []


def test_a_catalog_that_cannot_grow_retains_its_length(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Partly allocated blocks are released, and the catalog stays usable."""
    with Catalog.open(tmp_path, create=True, capacity_bytes=1_024) as catalog:
        request.getfixturevalue("no_space")
        with pytest.raises(CatalogError, match="cannot grow to"):
            add(catalog, "aeron:ipc?alias=" + "x" * 2_000)
        assert (tmp_path / CATALOG_FILE_NAME).stat().st_size == 1_024
        assert add(catalog) == 0
    with Catalog.open(tmp_path, read_only=True) as catalog:
        assert catalog.descriptor(0).stripped_channel == "aeron:ipc"


def test_a_catalog_with_holes_is_read_and_filled(tmp_path: Path) -> None:
    """A sparse file, as Java creates it, is read as it is, and filled when it is opened for
    writing."""
    path = tmp_path / CATALOG_FILE_NAME
    with Catalog.open(tmp_path, create=True, capacity_bytes=65_536) as catalog:
        ids = [add(catalog, f"aeron:ipc?alias={index}") for index in range(40)]
    content = path.read_bytes().rstrip(b"\0")
    path.unlink()
    with path.open("wb") as file:
        file.write(content)
        file.truncate(1 << 20)
    status = path.stat()
    assert status.st_blocks * 512 < status.st_size
    with Catalog.open(tmp_path, read_only=True) as catalog:
        assert catalog.capacity_bytes == 1 << 20
        aliases = [catalog.descriptor(each).stripped_channel for each in ids]
    assert aliases == [f"aeron:ipc?alias={index}" for index in range(40)]
    assert path.stat().st_blocks == status.st_blocks
    Catalog.open(tmp_path).close()
    assert path.stat().st_blocks * 512 >= 1 << 20


@pytest.mark.root
def test_holes_are_filled_completely_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If there is too little space, nothing is allocated, because filled holes are never
    released."""
    calls: list[int] = []

    def allocate(*_: int) -> None:
        calls.append(1)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with small_disk(tmp_path / "disk", 16 << 20) as disk:
        with Catalog.open(disk.path, create=True) as catalog:
            add(catalog)
        os.truncate(disk.path / CATALOG_FILE_NAME, 64 << 20)
        with monkeypatch.context() as patch:
            patch.setattr("os.posix_fallocate", allocate)
            with pytest.raises(CatalogError, match=r"cannot reserve 67108864 bytes.*No space left"):
                Catalog.open(disk.path)
        assert not calls
        with Catalog.open(disk.path, read_only=True) as catalog:
            assert len(catalog) == 1


def test_a_mark_file_that_is_deleted_while_it_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start that fails deletes its mark file. A process that waited for the lock must not hold a
    deleted file, or two archives would use the directory."""
    real, calls = ownership.lock, []

    def lock(path: Path, descriptor: int) -> None:
        calls.append(descriptor)
        real(path, descriptor)
        if len(calls) == 1:
            path.unlink()

    monkeypatch.setattr(ownership, "lock", lock)
    with acquire(tmp_path):
        assert len(calls) == 2
        assert (tmp_path / FILE_NAME).stat().st_size > 0
        assert MarkFile.read(tmp_path).is_active()


def test_a_link_is_written_completely_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a path would name another directory, so the previous link stays."""
    archive, first, second = (tmp_path / name for name in ("archive", "first", "second"))
    for directory in (archive, first, second):
        directory.mkdir()
    acquire(archive, mark_file_dir=first).close()
    link = archive / LINK_FILE_NAME
    before = link.read_bytes()

    def open_full(path: str, flags: int) -> int:
        Path(path).write_bytes(b"/ha")
        return os.open("/dev/full", os.O_WRONLY)

    monkeypatch.setattr(durability, "open_no_follow", open_full)
    with pytest.raises(MarkFileError, match="No space left"):
        acquire(archive, mark_file_dir=second)
    assert link.read_bytes() == before
    assert [path.name for path in archive.iterdir()] == [LINK_FILE_NAME]
    assert not MarkFile.read(archive).is_active()
