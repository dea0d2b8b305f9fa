"""The empty segment file after a full one: deleted by a truncation, created again for verify."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.builders.built_archive import add_entry, add_recording
from support.builders.segment_builder import SegmentBuilder
from support.daemon.archives import EMBEDDED_DRIVER
from support.jvm.java import FAST_ARCHIVE, archive_tool

import aerotape
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.recovery.trailing_segment import make_next_segments
from aerotape.codecs.generated.archive import RecordingSignal
from aerotape.replay.offline.directory import open_directory

SEGMENT = 65_536
PROPERTIES = {
    **EMBEDDED_DRIVER,
    **FAST_ARCHIVE,
    "aeron.archive.control.channel.enabled": "false",
    "aeron.archive.low.storage.space.threshold": "1m",
}


@contextmanager
def serving(archive_dir: Path, aeron_dir: Path) -> Iterator[aerotape.ArchiveClient]:
    """Run an archive, with a client."""
    with (
        aerotape.Archive.launch(archive_dir, aeron_dir, properties=PROPERTIES),
        aerotape.connect(
            aeron_dir=aeron_dir,
            control_request_channel="aeron:ipc",
            control_response_channel="aeron:ipc",
        ) as client,
    ):
        yield client


def messages(archive_dir: Path) -> list[tuple[int, bytes]]:
    """Return positions and payloads of the first recording."""
    recording = open_directory(archive_dir).recording(0)
    return [(each.position, bytes(each.payload)) for each in recording.messages()]


def full_segments(archive_dir: Path, first: int, end: int) -> None:
    """Add a recording of whole segments from one base position to another."""
    stream = SegmentBuilder(segment_length=SEGMENT, start_position=first * SEGMENT)
    while stream.position < end * SEGMENT:
        stream.message(b"%d" % stream.position * 300)
        if stream.position % SEGMENT > 50_000:
            stream.pad_term()
    add_recording(archive_dir, stream)


@pytest.fixture
def archive_dir(tmp_path: Path) -> Path:
    """A directory with a recording of three segments, and one that continues two of these."""
    path = tmp_path / "archive"
    path.mkdir()
    full_segments(path, 0, 3)
    full_segments(path, 2, 4)
    for recording_id, base in ((0, 3), (1, 4)):
        with (path / f"{recording_id}-{base * SEGMENT}.rec").open("xb") as file:
            file.truncate(SEGMENT)
    return path


def test_the_next_segment_is_created_at_a_segment_boundary(tmp_path: Path) -> None:
    """A recording that ends within a segment does not get another file."""
    streams = [SegmentBuilder(recording_id=each, segment_length=SEGMENT) for each in (0, 1)]
    with Catalog.open(tmp_path, create=True) as catalog:
        for stream in streams:
            stream.message(b"short")
            if stream.recording_id == 0:
                stream.pad_term()
            stream.write(tmp_path)
            add_entry(catalog, stream, stop_position=stream.position)
        (tmp_path / f"0-{SEGMENT}.rec").unlink(missing_ok=True)
        make_next_segments(catalog, tmp_path)
    assert (tmp_path / f"0-{SEGMENT}.rec").read_bytes() == bytes(SEGMENT)
    assert not (tmp_path / f"1-{SEGMENT}.rec").exists()


@pytest.mark.jvm
def test_a_recording_truncated_to_a_segment_boundary_is_valid(
    archive_dir: Path, aeron_dir: Path
) -> None:
    """ArchiveTool accepts it too; the empty file does not prevent a migration."""
    next_file = archive_dir / f"0-{2 * SEGMENT}.rec"
    before = messages(archive_dir)
    with serving(archive_dir, aeron_dir) as client:
        assert client.truncate_recording(0, 2 * SEGMENT) == 2
        client.await_signal(RecordingSignal.DELETE, recording_id=0)
        assert not next_file.exists()
    assert next_file.read_bytes() == bytes(SEGMENT)
    done = archive_tool(archive_dir, "verify", "-a", answers="n\n")
    assert done.stdout.count(") OK") == 2, done
    with serving(archive_dir, aeron_dir) as client:
        assert client.migrate_segments(1, 0) == 2
        assert client.stop_position(0) == 4 * SEGMENT
    after = messages(archive_dir)
    assert after[: len(before)] == before
    assert after[-1][0] > 3 * SEGMENT
    done = archive_tool(archive_dir, "verify", "-a", answers="n\n")
    assert done.stdout.count(") OK") == 2, done
