"""The catalog: adding, finding, changing, growing, and rejecting invalid input."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import ENTRY
from support.damage.overwriting import overwrite

from aerotape.archive.control.responses import MESSAGE_HEADER_LENGTH
from aerotape.catalog import layout
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import RecordingState
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import CatalogError, ClosedError, UnknownRecordingError


def add(catalog: Catalog, **changes: Any) -> int:
    return catalog.add_recording(**{**ENTRY, **changes})


def catalog_file(directory: Path) -> Path:
    return directory / layout.CATALOG_FILE_NAME


def test_added_recordings_persist_after_reopening(tmp_path: Path) -> None:
    """Descriptors, ids and the next id persist after closing, and a reader sees them."""
    with Catalog.open(tmp_path, create=True) as catalog:
        assert [add(catalog, session_id=i) for i in range(3)] == [0, 1, 2]
        catalog.recording_stopped(1, 4096, 77)
    for read_only in (True, False):
        with Catalog.open(tmp_path, read_only=read_only) as catalog:
            assert catalog.next_recording_id == 3
            assert catalog.descriptor(1) == RecordingDescriptor(
                recording_id=1,
                stop_position=4096,
                stop_timestamp_ms=77,
                **{**ENTRY, "session_id": 1},
            )
            assert (catalog.start_position(2), catalog.stop_position(2)) == (96, -1)
            assert catalog.descriptor(2).is_active


def test_a_reader_sees_changes_of_an_open_writer(tmp_path: Path) -> None:
    """The file is shared: a mapping that was created earlier shows a stop position set later."""
    with Catalog.open(tmp_path, create=True) as writer:
        add(writer)
        with Catalog.open(tmp_path, read_only=True) as reader:
            assert reader.stop_position(0) == -1
            writer.recording_stopped(0, 128, 9)
            assert reader.stop_position(0) == 128


def test_find_last_returns_the_highest_matching_id(tmp_path: Path) -> None:
    """Session, stream and a fragment of the original channel must match, at or above a minimum
    id."""
    with Catalog.open(tmp_path, create=True) as catalog:
        for session_id, stream_id in [(1, 10), (1, 10), (2, 10), (1, 20)]:
            add(catalog, session_id=session_id, stream_id=stream_id)
        find = catalog.find_last
        assert find(0, 1, 10, b"alias=prices") == 1
        assert find(0, 1, 10, b"") == 1
        assert find(0, 1, 20, b"aeron:ipc?") == 3
        assert find(2, 1, 10, b"ipc") == -1
        assert find(0, 1, 10, b"udp") == -1
        assert find(0, 3, 10, b"") == -1
        assert find(-1, 1, 10, b"") == -1
        catalog.change_state(1, RecordingState.INVALID)
        assert find(0, 1, 10, b"") == 0


def test_find_last_searches_only_the_original_channel(tmp_path: Path) -> None:
    """The preceding stripped channel and the following source identity are not searched."""
    with Catalog.open(tmp_path, create=True) as catalog:
        add(
            catalog,
            session_id=1,
            stream_id=10,
            stripped_channel="aeron:udp?endpoint=one:1",
            original_channel="aeron:udp?endpoint=two:2",
            source_identity="three:3",
        )
        fragments = [b"", b"two:2", b"aeron:udp?endpoint=two:2", b"one:1", b"three:3", b"2three"]
        found = [catalog.find_last(0, 1, 10, fragment) for fragment in fragments]
        assert found == [0, 0, 0, -1, -1, -1]
        for fragment, last in zip(fragments, found, strict=True):
            run = catalog.descriptors(0, 9, stream_id=10, channel_fragment=fragment)
            assert list(run.ids) == ([0] if last == 0 else [])
        assert list(catalog.descriptors(0, 9, stream_id=11).ids) == []


def test_ids_are_iterated_from_any_id_during_changes(tmp_path: Path) -> None:
    """Deleted recordings are skipped; recordings added during the iteration are included."""
    with Catalog.open(tmp_path, create=True) as catalog:
        for _ in range(6):
            add(catalog)
        catalog.change_state(2, RecordingState.DELETED)
        assert list(catalog.recording_ids()) == [0, 1, 3, 4, 5]
        ids = catalog.recording_ids(2)
        assert next(ids) == 3
        catalog.change_state(4, RecordingState.INVALID)
        add(catalog)
        assert list(ids) == [5, 6]
        assert list(catalog.all_recording_ids()) == list(range(7))


def test_descriptors_are_found_after_every_change(tmp_path: Path) -> None:
    """The cached offsets agree with the catalog file, in pages of any length."""
    with Catalog.open(tmp_path, create=True, capacity_bytes=4096) as catalog:

        def check() -> None:
            for limit in (1, 3, 100):
                next_id = 0
                listed: list[int] = []
                while next(catalog.recording_ids(next_id), None) is not None:
                    run = catalog.descriptors(next_id, limit)
                    assert run.next_id > next_id
                    next_id = run.next_id
                    assert len(run.slices) == 2 * len(run.ids) <= 2 * limit
                    for index, recording_id in enumerate(run.ids):
                        offset, length = run.slices[2 * index : 2 * index + 2]
                        body = catalog.data[offset : offset + length]
                        assert body == catalog.wire_descriptor(recording_id)
                    listed += run.ids
                assert listed == list(catalog.recording_ids())

        check()
        for number in range(7):
            add(catalog, original_channel="aeron:ipc?alias=" + "x" * 50 * number)
        check()
        catalog.change_state(3, layout.RecordingState.INVALID)
        check()
        add(catalog)
        check()
        catalog.change_state(3, layout.RecordingState.VALID)
        check()
        catalog.recording_stopped(0, 4096, 77)
        catalog.extend_recording(1, control_session_id=1, correlation_id=2, session_id=3)
        check()
        for _ in range(40):
            add(catalog)
        check()
        catalog.replace_channel(
            0, stripped_channel="aeron:ipc", original_channel="aeron:ipc?alias=" + 600 * "x"
        )
        check()
        assert list(catalog.descriptors(5, 9, scan_limit=2).ids) == [5, 6]
        assert list(catalog.descriptors(5, 2).ids) == [5, 6]
        assert list(catalog.descriptors(99, 2).ids) == []


def test_a_state_can_be_reverted(tmp_path: Path) -> None:
    """An invalid recording is unknown until it is marked valid again, also after reopening."""
    with Catalog.open(tmp_path, create=True) as catalog:
        add(catalog)
        catalog.change_state(0, RecordingState.INVALID)
        with pytest.raises(UnknownRecordingError) as raised:
            catalog.descriptor(0)
        assert raised.value.recording_id == 0
        assert str(raised.value) == f"no recording with id 0 in archive directory {tmp_path}"
    with Catalog.open(tmp_path) as catalog:
        assert not catalog.has_recording(0)
        assert [entry.state for entry in catalog.entries()] == [RecordingState.INVALID]
        catalog.change_state(0, RecordingState.VALID)
        assert catalog.has_recording(0)
        assert catalog.next_recording_id == 1


def test_the_wire_form_decodes_with_the_generated_codec(tmp_path: Path) -> None:
    """The file layout and the generated codec have every field at the same offset."""
    with Catalog.open(tmp_path, create=True) as catalog:
        add(catalog)
        catalog.recording_stopped(0, 128, 9)
        body = catalog.wire_descriptor(0)
        descriptor = catalog.descriptor(0)
    message = codecs.RecordingDescriptor.decode_body(
        body,
        0,
        codecs.RecordingDescriptor.BLOCK_LENGTH,
        codecs.RecordingDescriptor.SCHEMA_VERSION,
    )
    assert codecs.RecordingDescriptor.BLOCK_LENGTH == layout.DESCRIPTOR_BLOCK_LENGTH
    # Without the padding that it has in the file.
    assert body == message.encode()[-len(body) :]
    assert len(body) == len(message.encode()) - MESSAGE_HEADER_LENGTH
    assert message.control_session_id == message.correlation_id == 0
    for name in descriptor.__slots__:
        assert getattr(descriptor, name) == getattr(message, name.removesuffix("_ms")), name


@pytest.mark.parametrize("sync_level", [0, 1, 2])
def test_each_change_is_forced_according_to_the_sync_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync_level: int
) -> None:
    """Level 0 forces nothing before closing, 1 data, 2 data and metadata, at every change. An
    addition is forced twice, because the entry must be durable before its length is stored."""
    forced: list[str] = []
    with Catalog.open(tmp_path, create=True, sync_level=sync_level) as catalog:
        monkeypatch.setattr(os, "fdatasync", lambda fd: forced.append("data"))
        monkeypatch.setattr(os, "fsync", lambda fd: forced.append("all"))
        add(catalog)
        catalog.recording_stopped(0, 128, 9)
        assert forced == [[], ["data"] * 3, ["all"] * 3][sync_level]
        forced.clear()
    assert forced == ["all"]


def test_a_failed_force_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that could not be forced to storage raises an error."""

    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with Catalog.open(tmp_path, create=True, sync_level=1) as catalog:
        monkeypatch.setattr(os, "fdatasync", fail)
        with pytest.raises(CatalogError, match="cannot force"):
            add(catalog)


def test_a_change_that_cannot_be_forced_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change is made and visible."""

    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with Catalog.open(tmp_path, create=True, sync_level=1) as catalog:
        add(catalog)
        monkeypatch.setattr(os, "fdatasync", fail)
        with pytest.raises(CatalogError, match="cannot force"):
            catalog.set_start_position(0, 128)
        assert catalog.start_position(0) == 128


def test_a_missing_catalog_is_not_created_implicitly(tmp_path: Path) -> None:
    """Without `create`, a directory without a catalog is refused and left empty."""
    for read_only in (True, False):
        with pytest.raises(CatalogError, match="no catalog"):
            Catalog.open(tmp_path, read_only=read_only)
    assert list(tmp_path.iterdir()) == []


def test_another_major_version_is_refused_without_changes(tmp_path: Path) -> None:
    """A file that this package cannot read is not grown, changed or initialized again."""
    content = layout.CATALOG_HEADER.pack(2 << 16, 32, 0, 64).ljust(64, b"\0")
    catalog_file(tmp_path).write_bytes(content)
    with pytest.raises(CatalogError, match=r"version 2\.0\.0"):
        Catalog.open(tmp_path, create=True)
    assert catalog_file(tmp_path).read_bytes() == content


def test_a_crash_during_creation_does_not_prevent_opening(tmp_path: Path) -> None:
    """An empty file or a file of zeros is initialized as a new catalog."""
    for content in (b"", bytes(4096)):
        catalog_file(tmp_path).write_bytes(content)
        with Catalog.open(tmp_path) as catalog:
            assert (catalog.next_recording_id, len(catalog)) == (0, 0)
            assert add(catalog) == 0


def test_an_incomplete_entry_is_ignored(tmp_path: Path) -> None:
    """After a crash before the length is stored, the next recording gets the same offset, not the
    id."""
    with Catalog.open(tmp_path, create=True) as catalog:
        add(catalog)
        add(catalog)
        offset = catalog.entry(1).offset
    overwrite(catalog_file(tmp_path), offset, bytes(4))
    with Catalog.open(tmp_path) as catalog:
        assert list(catalog.recording_ids()) == [0]
        assert add(catalog) == 2
        assert catalog.entry(2).offset == offset


def test_a_next_id_that_is_too_low_is_corrected(tmp_path: Path) -> None:
    """No id is assigned twice, even where the Java archive would refuse the file."""
    with Catalog.open(tmp_path, create=True) as catalog:
        for _ in range(3):
            add(catalog)
    overwrite(catalog_file(tmp_path), layout.NEXT_RECORDING_ID_OFFSET, layout.LONG.pack(1))
    with Catalog.open(tmp_path) as catalog:
        assert catalog.next_recording_id == 3
    assert layout.LONG.unpack_from(catalog_file(tmp_path).read_bytes(), 8) == (3,)


def test_changes_to_a_reader_or_after_closing_are_refused(tmp_path: Path) -> None:
    """Read-only catalogs raise CatalogError, closed ones ClosedError; closing twice is fine."""
    catalog = Catalog.open(tmp_path, create=True)
    add(catalog)
    catalog.close()
    catalog.close()
    for call in (lambda: add(catalog), lambda: catalog.descriptor(0), lambda: catalog.version):
        with pytest.raises(ClosedError):
            call()
    with Catalog.open(tmp_path, read_only=True) as reader:
        for change in (
            lambda: add(reader),
            lambda: reader.recording_stopped(0, 1, 1),
            lambda: reader.change_state(0, RecordingState.INVALID),
        ):
            with pytest.raises(CatalogError, match="read-only"):
                change()


def test_invalid_descriptor_values_are_refused_before_writing(tmp_path: Path) -> None:
    """Text that is not ASCII and numbers out of range leave the catalog unchanged."""
    with Catalog.open(tmp_path, create=True) as catalog:
        add(catalog)
        before = catalog_file(tmp_path).read_bytes()
        for change in ({"original_channel": "aeron:ipc?alias=ä"}, {"session_id": 1 << 31}):
            with pytest.raises(CatalogError, match="cannot be described"):
                add(catalog, **change)
        assert catalog_file(tmp_path).read_bytes() == before
        assert add(catalog) == 1
