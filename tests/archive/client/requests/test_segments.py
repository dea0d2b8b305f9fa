"""Moving the start of recordings: detach, delete, purge, attach and migrate segments."""

from __future__ import annotations

import pytest
from support.daemon.archives import ServedArchive
from support.daemon.recording import Made, recorded, wait_until

import aerotape
from aerotape.catalog.descriptor import segment_base_position
from aerotape.errors import ArchiveError, UnknownRecordingError

SEGMENT = 65536


def _files(archive: ServedArchive, made: Made) -> list[int]:
    names = archive.archive_dir.glob(f"{made.recording_id}-*.rec")
    return sorted(int(each.stem.partition("-")[2]) for each in names)


def test_detach_attach_delete(archive: ServedArchive, client: aerotape.ArchiveClient) -> None:
    """Detached files remain until they are attached again or deleted."""
    made = recorded(client, 200)
    all_files = _files(archive, made)
    assert len(all_files) > 4
    client.detach_segments(made.recording_id, 3 * SEGMENT)
    assert client.start_position(made.recording_id) == 3 * SEGMENT
    assert _files(archive, made) == all_files
    assert client.attach_segments(made.recording_id) == 3
    assert client.start_position(made.recording_id) == 0
    client.detach_segments(made.recording_id, 2 * SEGMENT)
    assert client.delete_detached_segments(made.recording_id) == 2
    client.await_signal(aerotape.RecordingSignal.DELETE, recording_id=made.recording_id)
    assert _files(archive, made) == all_files[2:]
    assert client.attach_segments(made.recording_id) == 0
    first = next(client.replay(made.recording_id))
    assert first.position >= 2 * SEGMENT


def test_purge_segments(archive: ServedArchive, client: aerotape.ArchiveClient) -> None:
    """One request moves the start position and deletes the segments before it."""
    made = recorded(client, 200)
    files = _files(archive, made)
    base = segment_base_position(0, 3 * SEGMENT + 64, SEGMENT, SEGMENT)
    assert base == 3 * SEGMENT
    assert client.purge_segments(made.recording_id, base) == 3
    assert client.start_position(made.recording_id) == base
    wait_until(lambda: _files(archive, made) == files[3:], "the deletion")


def test_refused(client: aerotape.ArchiveClient) -> None:
    """A position at which no segment begins and an unknown recording are refused."""
    made = recorded(client, 100)
    for ask in (client.detach_segments, client.purge_segments):
        for position in (SEGMENT + 32, (made.end // SEGMENT + 3) * SEGMENT):
            with pytest.raises(ArchiveError):
                ask(made.recording_id, position)
        with pytest.raises(UnknownRecordingError):
            ask(9999, SEGMENT)
    for request in (client.attach_segments, client.delete_detached_segments):
        with pytest.raises(UnknownRecordingError):
            request(9999)
    assert client.start_position(made.recording_id) == 0


def test_migrate_refused(client: aerotape.ArchiveClient) -> None:
    """Recordings of different streams cannot be joined."""
    one, other = recorded(client, 3), recorded(client, 3)
    with pytest.raises(ArchiveError, match="migrate the segments of recording"):
        client.migrate_segments(one.recording_id, other.recording_id)
    with pytest.raises(UnknownRecordingError):
        client.migrate_segments(9999, one.recording_id)


def test_migrate(client: aerotape.ArchiveClient) -> None:
    """Segments of a recording are prepended to the recording that continues it."""
    term = f"aeron:ipc?term-length={SEGMENT}|init-term-id=7"
    source_channel = f"{term}|term-id=7|term-offset=0"
    stream_id = recorded(client, 1).stream_id + 500_000
    with client.add_recorded_exclusive_publication(source_channel, stream_id) as publication:
        while publication.send(b"x" * 992) < 2 * SEGMENT:
            pass
        end = publication.position
        wait_until(
            lambda: any(
                client.recording_position(each.recording_id) == end
                for each in client.list_recordings_for_uri("", stream_id)
            ),
            "the recording",
        )
    (source,) = client.list_recordings_for_uri("", stream_id)
    wait_until(lambda: client.stop_position(source.recording_id) == end, "the stop")
    assert end == 2 * SEGMENT
    channel = f"{term}|term-id=9|term-offset=0"
    with client.add_recorded_exclusive_publication(channel, stream_id) as publication:
        assert publication.send(b"y" * 992) == end + 1024
        wait_until(
            lambda: any(
                client.recording_position(each.recording_id) == end + 1024
                for each in client.list_recordings_for_uri("", stream_id)
                if each.recording_id != source.recording_id
            ),
            "the second recording",
        )
    (_, target) = client.list_recordings_for_uri("", stream_id)
    wait_until(lambda: client.stop_position(target.recording_id) == end + 1024, "the second stop")
    assert target.start_position == end
    moved = client.migrate_segments(source.recording_id, target.recording_id)
    assert moved == 2
    assert client.start_position(target.recording_id) == 0
    payloads = [message.payload for message in client.replay(target.recording_id)]
    assert payloads == [b"x" * 992] * 128 + [b"y" * 992]
    assert client.start_position(source.recording_id) == client.stop_position(source.recording_id)
