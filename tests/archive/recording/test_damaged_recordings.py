"""Recordings that cannot be repaired or read at the start: the daemon serves all others."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import CHANNEL, add_recording, fill
from support.builders.segment_builder import SegmentBuilder
from support.daemon.archives import EMBEDDED_DRIVER
from support.damage.overwriting import overwrite
from support.jvm.java import FAST_ARCHIVE

import aerotape
from aerotape.archive import archive as archive_module
from aerotape.catalog import layout
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.mark.mark_file import MarkFile
from aerotape.catalog.recovery.refresh import Outcome
from aerotape.errors import ArchiveError

SOUND, UNREADABLE, FIGURES, STRINGS, LAST = range(5)
PROPERTIES = {
    **EMBEDDED_DRIVER,
    **FAST_ARCHIVE,
    "aeron.archive.control.channel.enabled": "false",
}


def damage(archive_dir: Path, recording_id: int, offset_in_body: int, data: bytes) -> None:
    with Catalog.open(archive_dir, read_only=True) as catalog:
        begin = catalog.entry(recording_id).offset + layout.DESCRIPTOR_HEADER_LENGTH
    overwrite(archive_dir / layout.CATALOG_FILE_NAME, begin + offset_in_body, data)


@pytest.fixture(scope="module")
def archive() -> Iterator[aerotape.Archive]:
    """An archive over five recordings of a crashed one, three of them beyond repair."""
    with tempfile.TemporaryDirectory(prefix="aerotape-damaged-", dir="/dev/shm") as parent:
        archive_dir = Path(parent, "archive")
        archive_dir.mkdir()
        for _ in range(5):
            add_recording(archive_dir, fill(SegmentBuilder(stream_id=1), 20), live=True)
        (archive_dir / f"{UNREADABLE}-0.rec").unlink()
        (archive_dir / f"{UNREADABLE}-0.rec").mkdir()
        damage(archive_dir, FIGURES, layout.SEGMENT_FILE_LENGTH_OFFSET, layout.INT.pack(100))
        damage(archive_dir, STRINGS, layout.DESCRIPTOR_BLOCK_LENGTH, b"\xff" * 60)
        with aerotape.Archive.launch(
            archive_dir, Path(parent, "aeron"), properties=PROPERTIES
        ) as running:
            yield running


@pytest.fixture
def client(archive: aerotape.Archive) -> Iterator[aerotape.ArchiveClient]:
    with aerotape.connect(
        aeron_dir=archive.aeron_dir,
        control_request_channel=archive.local_control_channel,
        control_request_stream_id=archive.config.local_control_stream_id,
        control_response_channel="aeron:ipc",
    ) as connected:
        yield connected


def message_of(call: Callable[[], object]) -> str:
    with pytest.raises(ArchiveError) as caught:
        call()
    assert caught.value.error_code == aerotape.ErrorCode.GENERIC
    return str(caught.value)


def test_each_damaged_recording_is_reported_at_the_start(archive: aerotape.Archive) -> None:
    """Three are reported with their damage, the others are repaired."""
    assert [outcome.outcome for outcome in archive.outcomes] == [
        Outcome.REPAIRED,
        Outcome.UNREADABLE,
        Outcome.DAMAGED_DESCRIPTOR,
        Outcome.DAMAGED_DESCRIPTOR,
        Outcome.REPAIRED,
    ]


def test_listings_continue_after_a_damaged_recording(client: aerotape.ArchiveClient) -> None:
    """An entry that clients cannot decode is omitted; listing it alone returns the reason."""
    listed = [SOUND, UNREADABLE, FIGURES, LAST]
    assert [d.recording_id for d in client.list_recordings()] == listed
    assert [d.recording_id for d in client.list_recordings_for_uri("alias=", 1)] == listed
    for recording_id in listed:
        found = client.list_recording(recording_id)
        assert found is not None
        assert found.recording_id == recording_id
    said = message_of(lambda: client.list_recording(STRINGS))
    assert f"recording {STRINGS} has a damaged descriptor" in said
    session_id = SegmentBuilder().session_id
    assert client.find_last_matching_recording(0, CHANNEL, 1, session_id) == LAST


@pytest.mark.parametrize("recording_id", [UNREADABLE, FIGURES])
def test_a_recording_without_an_end_is_not_live(
    client: aerotape.ArchiveClient, recording_id: int
) -> None:
    """Positions are -1, there is no recording to stop, and a replay is refused with the reason."""
    assert client.start_position(recording_id) == 0
    assert client.stop_position(recording_id) == -1
    assert client.recording_position(recording_id) == -1
    assert client.max_recorded_position(recording_id) == -1
    assert client.stop_recording_by_identity(recording_id) is False


@pytest.mark.parametrize(
    ("recording_id", "reason"),
    [
        (UNREADABLE, "is not being recorded and has no stop position"),
        (FIGURES, "has a damaged descriptor: segment file length 100"),
        (STRINGS, "has a damaged descriptor"),
    ],
)
def test_replays_are_refused_with_the_reason(
    client: aerotape.ArchiveClient, recording_id: int, reason: str
) -> None:
    """Any range is refused; no replay waits for an end."""

    def start(**options: int) -> Callable[[], object]:
        return lambda: client.start_replay(recording_id, "aeron:ipc?alias=refused", 77, **options)

    asked: list[Callable[[], object]] = [
        start(),
        start(length=-2),
        start(position=0, length=64),
        start(limit_counter_id=0),
        lambda: client.replay(recording_id),
        lambda: client.replay(recording_id, follow=False),
    ]
    for call in asked:
        assert reason in message_of(call)


def test_positions_of_an_unreadable_recording(client: aerotape.ArchiveClient) -> None:
    """Queries of catalog values are errors; the recording position reports that it is not live."""
    for query in (client.start_position, client.stop_position, client.max_recorded_position):
        assert "has a damaged descriptor" in message_of(lambda q=query: q(STRINGS))  # type: ignore[misc]
    assert client.recording_position(STRINGS) == -1
    assert client.stop_recording_by_identity(STRINGS) is False


def test_undamaged_recordings_replay(client: aerotape.ArchiveClient) -> None:
    """Recordings before and after the damaged ones are replayed to their end."""
    for recording_id in (SOUND, LAST):
        with closing(client.replay(recording_id)) as replay:
            assert sum(1 for _ in replay) == 20


def test_a_long_repair_keeps_the_directory_locked(
    tmp_path: Path, aeron_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark file's timestamp is updated during a repair, so that no archive takes over."""
    seen: list[int] = []

    def slow(*_: Any, **__: Any) -> list[Any]:
        deadline = time.monotonic() + 60
        while len(set(seen)) < 3 and time.monotonic() < deadline:
            seen.append(MarkFile.read(tmp_path).header.activity_timestamp_ms)
            time.sleep(0.05)
        return []

    monkeypatch.setattr(archive_module, "refresh", slow)
    with aerotape.Archive.launch(tmp_path, aeron_dir, properties=PROPERTIES):
        pass
    assert len(set(seen)) == 3
    assert MarkFile.read(tmp_path).header.activity_timestamp_ms == -1
