"""Listings of many recordings return the contents of the catalog.

Pages of descriptors are found and sent natively, also while the catalog changes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_entry
from support.builders.segment_builder import SegmentBuilder
from support.daemon.archives import ARCHIVES, KINDS
from support.daemon.control_rig import RawClient, await_true, control_session_counters
from support.daemon.daemon import AerotapeArchive

from aerotape import _native
from aerotape.catalog import layout
from aerotape.catalog.file.catalog import Catalog
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import ControlResponseCode
from aerotape.protocol import ErrorCode

LOCAL = "aeron:ipc?term-length=64k"
# A listing exceeds the response stream's window many times.
COUNT = 2_000
STREAM_ID = 1001
RECORDING_POSITION = 100


@pytest.fixture
def archive_dir(tmp_path: Path) -> Path:
    """An archive directory with empty recordings that have been stopped."""
    archive_dir = tmp_path / "archive"
    archive_dir.mkdir()
    with Catalog.open(archive_dir, create=True) as catalog:
        for number in range(COUNT):
            add_entry(
                catalog,
                SegmentBuilder(stream_id=7),
                stop_position=0,
                stop_timestamp_ms=2,
                original_channel=f"aeron:ipc?alias=recording-{number}",
            )
    return archive_dir


class Listener:
    """A client that lists at a chosen pace."""

    def __init__(self, aeron: _native.AeronClient, stream_id: int = 800) -> None:
        self.raw = RawClient(aeron, LOCAL, response_stream_id=stream_id)
        self.raw.connect()

    def begin(self, from_id: int = 0, count: int = 2 * COUNT) -> int:
        return self.raw.request(
            codecs.ListRecordingsRequest, from_recording_id=from_id, record_count=count
        )

    def finish(self, listing: int, count: int | None = None) -> tuple[list[Any], Any]:
        """Read a listing: descriptors, and the response that ends it unless it is full."""
        descriptors: list[Any] = []
        deadline_s = time.monotonic() + 60
        while count is None or len(descriptors) < count:
            assert time.monotonic() < deadline_s, f"only {len(descriptors)} descriptors came"
            received, self.raw.received[:] = list(self.raw.received), []
            for message in received:
                if getattr(message, "correlation_id", None) != listing:
                    self.raw.received.append(message)
                elif isinstance(message, codecs.RecordingDescriptor):
                    descriptors.append(message)
                else:
                    return descriptors, message
            self.raw.poll(0.05)
        return descriptors, None

    def list_all(self) -> list[Any]:
        """List all recordings, with the response at the end."""
        descriptors, end = self.finish(self.begin())
        assert end.code is ControlResponseCode.RECORDING_UNKNOWN
        assert end.relevant_id == descriptors[-1].recording_id + 1
        return descriptors

    def one(self, recording_id: int) -> Any:
        """Return the response to a request for one recording."""
        asked = self.raw.request(codecs.ListRecordingRequest, recording_id=recording_id)
        return self.raw.await_where(lambda m: getattr(m, "correlation_id", None) == asked)

    def ids(self) -> list[int]:
        return [each.recording_id for each in self.list_all()]


@contextmanager
def listening(archive: Any) -> Iterator[Listener]:
    aeron = _native.AeronClient(str(archive.aeron_dir))
    try:
        yield Listener(aeron)
    finally:
        aeron.close()


@pytest.mark.parametrize("kind", KINDS)
def test_listings_follow_changes_of_recordings(
    archive_dir: Path, aeron_dir: Path, kind: str
) -> None:
    """Listings show recordings that start, stop, grow, change channels and are purged."""
    expected = list(range(COUNT))
    with ARCHIVES[kind](archive_dir, aeron_dir) as archive, listening(archive) as listener:
        raw = listener.raw
        for _ in range(3):
            descriptors = listener.list_all()
            assert [each.recording_id for each in descriptors] == expected
            assert descriptors[5].original_channel == "aeron:ipc?alias=recording-5"
        for from_id, count in ((0, 1), (17, 700), (COUNT - 1, 1)):
            listed, end = listener.finish(listener.begin(from_id, count), count)
            assert [each.recording_id for each in listed] == expected[from_id : from_id + count]
            assert end is None
        listed, end = listener.finish(listener.begin(COUNT + 5, 3))
        assert (listed, end.relevant_id) == ([], COUNT + 5)

        raw.call(codecs.StartRecordingRequest, stream_id=STREAM_ID, channel=LOCAL)
        publication = raw.client.add_exclusive_publication(LOCAL, STREAM_ID)
        await_true(lambda: len(raw.client.counters().rows(RECORDING_POSITION)) == 1)
        expected.append(COUNT)
        descriptors = listener.list_all()
        assert [each.recording_id for each in descriptors] == expected
        assert descriptors[-1].stop_position == -1
        assert listener.one(COUNT).stop_position == -1
        position = publication.offer_within(bytes(1000), 5_000_000_000)
        assert position > 0
        publication.close()
        await_true(lambda: listener.one(COUNT).stop_position == position)
        assert listener.list_all()[-1].stop_position == position

        assert raw.call(codecs.PurgeRecordingRequest, recording_id=3).code is ControlResponseCode.OK
        expected.remove(3)
        assert listener.ids() == expected
        assert listener.one(3).code is ControlResponseCode.RECORDING_UNKNOWN
        assert listener.one(4).recording_id == 4

        longer = f"aeron:ipc?alias={'x' * 700}"
        raw.call(codecs.UpdateChannelRequest, recording_id=4, channel=longer)
        for _ in range(2):
            descriptors = listener.list_all()
            assert [each.recording_id for each in descriptors] == expected
            assert descriptors[3].original_channel == listener.one(4).original_channel == longer
            assert descriptors[4].original_channel == "aeron:ipc?alias=recording-5"


def test_a_listing_of_damaged_entries_is_empty(archive_dir: Path, aeron_dir: Path) -> None:
    """With all descriptors damaged the response is the end of the listing, not an error."""
    with Catalog.open(archive_dir) as catalog:
        offsets = [entry.offset for entry in catalog.entries()]
    with (archive_dir / layout.CATALOG_FILE_NAME).open("r+b") as file:
        for offset in offsets:
            file.seek(offset + layout.DESCRIPTOR_HEADER_LENGTH + layout.DESCRIPTOR_BLOCK_LENGTH)
            file.write(layout.INT.pack(10_000))
    with AerotapeArchive(archive_dir, aeron_dir) as archive, listening(archive) as listener:
        for _ in range(2):
            listed, end = listener.finish(listener.begin())
            assert listed == []
            assert end.code is ControlResponseCode.RECORDING_UNKNOWN, end
            assert end.relevant_id == COUNT


def warmed(listener: Listener) -> None:
    """List twice, so that the offsets of the descriptors are cached."""
    for _ in range(2):
        assert listener.ids() == list(range(COUNT))


def test_a_client_that_pauses_gets_the_rest(archive_dir: Path, aeron_dir: Path) -> None:
    """Each descriptor is sent once; meanwhile other requests get responses, listings are refused,
    and other clients do not wait.
    """
    with AerotapeArchive(archive_dir, aeron_dir) as archive, listening(archive) as listener:
        warmed(listener)
        raw, other = listener.raw, Listener(listener.raw.client, 801)
        for pause_s in (0.0, 0.3):
            listing = listener.begin()
            asked = raw.request(codecs.StartPositionRequest, recording_id=5)
            refused = [
                listener.begin(),
                raw.request(codecs.ListRecordingRequest, recording_id=1),
                raw.request(codecs.ListRecordingSubscriptionsRequest, subscription_count=5),
                raw.request(codecs.UpdateChannelRequest, recording_id=0, channel="aeron:ipc"),
            ]
            time.sleep(pause_s)
            assert other.ids() == list(range(COUNT))
            descriptors, end = listener.finish(listing)
            assert [each.recording_id for each in descriptors] == list(range(COUNT))
            assert end.relevant_id == COUNT
            assert raw.response(asked).code is ControlResponseCode.OK
            codes = [raw.response(each).relevant_id for each in refused]
            assert codes == [ErrorCode.ACTIVE_LISTING] * 4
            assert raw.received == []


def test_a_client_that_stops_reading_is_dropped(archive_dir: Path, aeron_dir: Path) -> None:
    """After the connect timeout its session ends, with a line in the log; others continue."""
    properties = {"aeron.archive.connect.timeout": "2s"}
    with (
        AerotapeArchive(archive_dir, aeron_dir, properties=properties) as archive,
        listening(archive) as listener,
    ):
        warmed(listener)
        other = Listener(listener.raw.client, 801)
        listener.begin()
        gone = listener.raw.control_session_id
        await_true(lambda: gone not in control_session_counters(other.raw.client))
        archive.await_log("failed to send response for more than connectTimeoutMs=2000")
        assert other.ids() == list(range(COUNT))


def test_closing_in_the_middle_of_a_listing(archive_dir: Path, aeron_dir: Path) -> None:
    """A session may be closed by its client, and the archive stopped, during a listing."""
    with AerotapeArchive(archive_dir, aeron_dir) as archive, listening(archive) as listener:
        warmed(listener)
        other = Listener(listener.raw.client, 801)
        listener.begin()
        closed = listener.raw.control_session_id
        listener.raw.send(codecs.CloseSessionRequest(control_session_id=closed))
        await_true(lambda: closed not in control_session_counters(other.raw.client))
        warmed(other)
        other.begin()
        archive.close()
        assert "Traceback" not in archive.log()


def test_a_listing_continues_while_the_catalog_grows(archive_dir: Path, aeron_dir: Path) -> None:
    """A new mapping of the file during a listing ends neither the listing nor the session."""
    with AerotapeArchive(archive_dir, aeron_dir) as archive, listening(archive) as listener:
        capacity = (archive_dir / "archive.catalog").stat().st_size
        other = Listener(listener.raw.client, 801)
        listing = listener.begin()
        raw, longest = other.raw, "x" * 4_000
        recording_id = 0
        while (archive_dir / "archive.catalog").stat().st_size == capacity:
            channel = f"aeron:ipc?alias={longest}"
            response = raw.call(
                codecs.UpdateChannelRequest, recording_id=recording_id, channel=channel
            )
            assert response.code is ControlResponseCode.OK
            recording_id += 1
        descriptors, end = listener.finish(listing)
        assert [each.recording_id for each in descriptors] == list(range(COUNT))
        assert end.relevant_id == COUNT
