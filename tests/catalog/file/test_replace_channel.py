"""Replacing the channels of recordings: shorter, longer, on a full disk, and interrupted."""

from __future__ import annotations

import dataclasses
import errno
import os
import random
from pathlib import Path

import pytest
from support.builders.built_archive import ENTRY

from aerotape import _native
from aerotape.catalog import layout
from aerotape.catalog.file.catalog import Catalog
from aerotape.errors import CatalogError, UnknownRecordingError
from aerotape.frame_header import ChecksumName


def add(catalog: Catalog, count: int = 1) -> None:
    for _ in range(count):
        catalog.add_recording(**ENTRY)


def channel(length: int) -> str:
    return "aeron:ipc?alias=".ljust(length, "x")


def channels(catalog: Catalog) -> list[tuple[str, str]]:
    descriptors = map(catalog.descriptor, catalog.recording_ids())
    return [(each.stripped_channel, each.original_channel) for each in descriptors]


def replace(catalog: Catalog, recording_id: int, text: str) -> None:
    catalog.replace_channel(recording_id, stripped_channel=text, original_channel=text)


@pytest.mark.parametrize("checksum", ["none", "crc-32c"])
@pytest.mark.parametrize("seed", range(6))
def test_channels_of_any_length_in_any_order(
    tmp_path: Path, seed: int, checksum: ChecksumName
) -> None:
    """Every descriptor is correct after each change and after reopening; the file grows."""
    rng = random.Random(seed)
    with Catalog.open(tmp_path, create=True, capacity_bytes=4096, checksum=checksum) as catalog:
        add(catalog, 5)
        expected = [("aeron:ipc", "aeron:ipc?alias=prices")] * 5
        for step in range(60):
            if rng.random() < 0.2:
                add(catalog)
                expected.append(("aeron:ipc", "aeron:ipc?alias=prices"))
            changed = rng.randrange(len(expected))
            text = channel(rng.choice([16, 30, 60, 200, 4000]))
            replace(catalog, changed, text)
            expected[changed] = (text, text)
            catalog.recording_stopped(changed, 4096 + 32 * step, step)
            assert channels(catalog) == expected
        positions = [catalog.stop_position(each) for each in catalog.recording_ids()]
    with Catalog.open(tmp_path, checksum=checksum) as catalog:
        assert channels(catalog) == expected
        assert [catalog.stop_position(each) for each in catalog.recording_ids()] == positions
        assert catalog.next_recording_id == len(expected)
        for entry in catalog.entries():
            assert not entry.damage
            wanted = 0 if checksum == "none" else _native.checksum(checksum, entry.body)
            assert entry.checksum == wanted


def test_other_descriptor_fields_are_unchanged(tmp_path: Path) -> None:
    """Including the two request fields that an archive writes when a recording is extended."""
    with Catalog.open(tmp_path, create=True) as catalog:
        add(catalog)
        catalog.extend_recording(0, control_session_id=7, correlation_id=8, session_id=9)
        before = catalog.entry(0).body[: layout.DESCRIPTOR_BLOCK_LENGTH]
        for length in (300, 20):
            replace(catalog, 0, channel(length))
            assert catalog.entry(0).body[: layout.DESCRIPTOR_BLOCK_LENGTH] == before
            assert catalog.descriptor(0).source_identity == "aeron:ipc"


def test_a_failure_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When there is no space for the new file, the catalog is unchanged and usable."""

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Catalog.open(tmp_path, create=True) as catalog:
        add(catalog, 2)
        with monkeypatch.context() as patch:
            patch.setattr(os, "posix_fallocate", fail)
            with pytest.raises(CatalogError, match="No space left"):
                replace(catalog, 0, channel(500))
        assert channels(catalog) == [("aeron:ipc", "aeron:ipc?alias=prices")] * 2
        assert sorted(path.name for path in tmp_path.iterdir()) == [layout.CATALOG_FILE_NAME]
        replace(catalog, 0, channel(500))
        add(catalog)
        assert len(catalog) == 3


def test_the_path_and_mode_of_the_file_are_unchanged(tmp_path: Path) -> None:
    """Also where the path of the archive directory contains a symbolic link."""
    (tmp_path / "directory").mkdir()
    archive_dir = tmp_path / "link"
    archive_dir.symlink_to("directory")
    path = archive_dir / layout.CATALOG_FILE_NAME
    with Catalog.open(archive_dir, create=True) as catalog:
        add(catalog)
        path.chmod(0o600)
        replace(catalog, 0, channel(500))
        assert channels(catalog) == [(channel(500), channel(500))]
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in archive_dir.iterdir()] == [layout.CATALOG_FILE_NAME]
    with Catalog.open(archive_dir) as catalog:
        assert channels(catalog) == [(channel(500), channel(500))]


def test_a_failure_after_the_new_file_is_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is raised, and the catalog continues with the new file."""

    def fail(path: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with Catalog.open(tmp_path, create=True) as catalog:
        add(catalog, 2)
        with monkeypatch.context() as patch:
            patch.setattr("aerotape.catalog.file.mapped_file.sync_directory", fail)
            with pytest.raises(CatalogError, match="cannot force"):
                replace(catalog, 0, channel(500))
        catalog.recording_stopped(1, 4096, 7)
        add(catalog)
    with Catalog.open(tmp_path) as catalog:
        assert [first for first, _ in channels(catalog)] == [channel(500), *["aeron:ipc"] * 2]
        assert catalog.stop_position(1) == 4096


def test_a_crash_before_the_new_file_is_in_place(tmp_path: Path) -> None:
    """An incomplete file beside the catalog is ignored and deleted."""
    with Catalog.open(tmp_path, create=True) as catalog:
        add(catalog)
    leftover = tmp_path / layout.REWRITTEN_FILE_NAME
    leftover.write_bytes(b"half of a catalog")
    with Catalog.open(tmp_path, read_only=True) as reader:
        assert len(reader) == 1
    assert leftover.exists()
    with Catalog.open(tmp_path) as catalog:
        assert not leftover.exists()
        assert len(catalog) == 1


def test_a_catalog_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the maximum length of a catalog nothing is moved."""
    with Catalog.open(tmp_path, create=True, capacity_bytes=4096) as catalog:
        add(catalog, 2)
        monkeypatch.setattr(layout, "MAX_CAPACITY_BYTES", 4096)
        with pytest.raises(CatalogError, match="is full"):
            replace(catalog, 0, channel(4000))
        assert len(catalog.descriptor(0).original_channel) < 100


def test_invalid_channels_and_recordings(tmp_path: Path) -> None:
    with Catalog.open(tmp_path, create=True) as catalog:
        add(catalog)
        with pytest.raises(CatalogError, match="cannot be described"):
            replace(catalog, 0, "aeron:ipc?alias=é")
        with pytest.raises(UnknownRecordingError):
            replace(catalog, 1, "aeron:ipc")
    with Catalog.open(tmp_path, read_only=True) as reader, pytest.raises(CatalogError):
        replace(reader, 0, "aeron:ipc")


@pytest.mark.parametrize("length", [10, 3000])
def test_a_whole_descriptor(tmp_path: Path, length: int) -> None:
    """Everything in the descriptor may change except the id and the ids of the last request."""
    with Catalog.open(tmp_path, create=True, checksum="crc-32c") as catalog:
        add(catalog, 3)
        before = catalog.descriptor(1)
        catalog.recording_stopped(1, 4096, 6)
        catalog.extend_recording(1, control_session_id=77, correlation_id=88, session_id=12)
        wanted = dataclasses.replace(
            before,
            stop_position=96,
            stop_timestamp_ms=5,
            stream_id=-9,
            original_channel="x" * length,
        )
        catalog.replace_recording(wanted)
        assert catalog.descriptor(1) == wanted
        assert catalog.entry(1).body[:16] == (77).to_bytes(8, "little") + (88).to_bytes(8, "little")
        assert catalog.entry(1).checksum == catalog.compute_checksum(1, "crc-32c")
    with Catalog.open(tmp_path) as catalog:
        assert catalog.descriptor(1) == wanted
        assert catalog.descriptor(2) == dataclasses.replace(before, recording_id=2)
        with pytest.raises(UnknownRecordingError):
            catalog.replace_recording(dataclasses.replace(wanted, recording_id=3))
