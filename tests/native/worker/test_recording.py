"""The recorder's files, compared with the log format in Aeron's documentation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.model.messages import messages
from support.model.term_log import HEADER
from support.worker_rig import IPC, LiveRecording, WorkerRig

from aerotape.worker_arguments import RecordArguments


def recorded(rig: WorkerRig, recording: LiveRecording) -> bytes:
    """Wait until all offered data is recorded; return the bytes of the files."""
    rig.await_position(recording, len(recording.log.data))
    return rig.segment_bytes(recording)


def assert_files_hold_the_log(data: bytes, recording: LiveRecording) -> None:
    """The files contain the log's bytes, then zeros; the file for the next byte exists."""
    end = len(recording.log.data)
    assert data[:end] == recording.log.data
    assert not any(data[end:])
    assert len(data) == (end // recording.segment_length + 1) * recording.segment_length


def test_a_udp_stream_is_recorded_byte_for_byte(
    rig: WorkerRig, free_port: Callable[[], int]
) -> None:
    """A network stream is recorded as it was sent, with the publisher's session id."""
    channel = f"aeron:udp?endpoint=localhost:{free_port()}|term-length=65536"
    recording = rig.record(rig.worker(), channel)
    recording.offer(messages(2, 300, 0, 5_000))
    assert_files_hold_the_log(recorded(rig, recording), recording)


def test_a_segment_filled_to_its_last_byte_is_followed_by_the_next_file(rig: WorkerRig) -> None:
    """The next file exists as soon as a segment is full, as in the Java archive."""
    recording = rig.record(rig.worker(), segment_length=131_072)
    recording.offer([bytes([index]) * 992 for index in range(128)])
    data = recorded(rig, recording)
    assert len(recording.log.data) == 131_072
    assert_files_hold_the_log(data, recording)
    recording.offer([b"in the second segment"])
    assert_files_hold_the_log(recorded(rig, recording), recording)


def test_stop_ends_a_recording_at_a_whole_frame(rig: WorkerRig) -> None:
    """A stop during publishing reports the counter's position, which is the end of a frame."""
    worker = rig.worker()
    recording = rig.record(worker)
    recording.offer(messages(5, 200, 0, 3_000))
    worker.stop_recording(0)
    kind, recording_id, position, code, text = rig.event("RecordingStopped", 0)
    assert (kind, recording_id, code, text) == ("RecordingStopped", 0, 0, None)
    assert position in {*recording.log.frame_positions, len(recording.log.data)}
    assert position == recording.counter.get()
    data = rig.segment_bytes(recording)
    assert data[:position] == recording.log.data[:position]
    assert not any(data[position:])


def test_a_stop_at_a_position_records_what_precedes_it(rig: WorkerRig) -> None:
    """Also what the recorder has not read when it is stopped."""
    worker = rig.worker()
    for recording_id in range(20):
        recording = rig.record(worker, recording_id=recording_id, stream_id=recording_id)
        end = recording.offer(messages(recording_id, 20, 0, 900))
        worker.stop_recording(recording_id, end, 60_000_000_000)
        _, _, position, code, text = rig.event("RecordingStopped", recording_id)
        assert (position, code, text) == (end, 0, None)


@pytest.mark.parametrize("is_ended", [False, True])
def test_a_stop_at_a_position_that_is_not_reached(rig: WorkerRig, is_ended: bool) -> None:
    """The recording ends after the timeout, or with its stream."""
    worker = rig.worker()
    recording = rig.record(worker)
    end = recording.offer(messages(1, 20, 0, 900))
    worker.stop_recording(0, end + 32, 60_000_000_000 if is_ended else 50_000_000)
    if is_ended:
        recording.publication.close()
    assert rig.event("RecordingStopped", 0)[2:] == (end, 0, None)


def test_the_stream_of_a_recording_that_has_ended_is_discarded(rig: WorkerRig) -> None:
    """Its publisher does not wait, and the driver sees that its stream was read to the end; so
    does that of an image which was not recorded.
    """
    worker = rig.worker()
    recording = rig.record(worker)
    worker.stop_recording(0)
    rig.event("RecordingStopped", 0)
    other = rig.client.add_exclusive_publication(IPC, 7)
    subscription = rig.client.add_subscription(IPC, 7)
    worker.discard(rig.until(lambda: subscription.image_by_session_id(other.session_id)))
    for publication, of in ((recording.publication, recording.subscription), (other, subscription)):
        for _ in range(300):
            assert publication.offer_within(bytes(1_000), 60_000_000_000) > 0
        publication.close()
        rig.until(lambda of=of: of.image_count == 0 or None)  # type: ignore[misc]


def test_a_start_within_a_term_is_preceded_by_zeros(rig: WorkerRig) -> None:
    """A late joiner's frames are at their offset in the segment of the term's base."""
    worker = rig.worker()
    channel = IPC
    publication = rig.client.add_exclusive_publication(channel, 5)
    first = rig.client.add_subscription(channel, 5)
    # A late joiner joins at the slowest subscriber's position at the last check of the driver:
    # within the second term, because the publication stays in it and the window is half a term.
    rig.until(lambda: first.image_count or None)
    while publication.position < 98_304:
        assert publication.offer_within(bytes(992), 10**10) > 0
        first.poll(10)
    subscription = rig.client.add_subscription(channel, 5)
    image = rig.until(lambda: subscription.image_by_session_id(publication.session_id))
    counter = rig.client.add_counter(100, b"", "late")
    join_position = image.join_position
    assert 65_536 <= join_position <= 98_304
    worker.record(image, counter, RecordArguments(9, join_position, 262_144))
    assert publication.offer_within(b"late", 10**10) > 0
    rig.until(lambda: counter.get() >= publication.position or None)
    [path] = rig.archive_dir.glob("*.rec")
    assert path.name == "9-65536.rec"
    data = path.read_bytes()
    join_offset = join_position - 65_536
    assert not any(data[:join_offset])
    assert HEADER.unpack_from(data, join_offset)[4] == join_offset
    length, _, _, _, term_offset, session_id, stream_id, *_ = HEADER.unpack_from(data, 32_768)
    assert (length, term_offset, session_id, stream_id) == (36, 32_768, publication.session_id, 5)
    assert data[32_800:32_804] == b"late"


def test_invalid_recording_parameters_are_refused(rig: WorkerRig) -> None:
    """A segment length that is not a power of two, or below the term's, is an error at once."""
    worker = rig.worker()
    for stream_id, length in [(1, 65_535), (2, 32_768), (3, 196_608), (4, 0), (5, 1 << 31)]:
        with pytest.raises(ValueError, match="segment_length"):
            rig.record(worker, stream_id=stream_id, segment_length=length)
    assert list(rig.archive_dir.iterdir()) == []
