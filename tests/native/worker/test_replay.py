"""Replays: the messages that a subscriber receives, and how replays end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.damage.overwriting import overwrite
from support.model.messages import messages
from support.model.term_log import PADDING, frames
from support.worker_rig import LiveRecording, WorkerRig

from aerotape import _native
from aerotape.frame_header import ChecksumName

GENERIC, INVALID_POSITION = 0, 16
PAYLOAD, POSITION, SESSION_ID, STREAM_ID, TERM_ID, TERM_OFFSET, FLAGS, RESERVED = range(8)


@pytest.fixture
def worker(rig: WorkerRig) -> _native.SessionWorker:
    return rig.worker()


@pytest.fixture
def stopped(rig: WorkerRig, worker: _native.SessionWorker) -> LiveRecording:
    """A stopped recording of several segments."""
    recording = rig.record(worker)
    recording.offer(messages(11, 150, 0, 6_000))
    stop(rig, recording)
    assert len(recording.log.data) > 5 * recording.segment_length
    return recording


def stop(rig: WorkerRig, recording: LiveRecording) -> None:
    """Stop a recording at the end of the published data."""
    recording.publication.close()
    position = len(recording.log.data)
    assert rig.event("RecordingStopped", recording.recording_id)[2:] == (position, 0, None)
    recording.counter.close()


def payloads(received: list[tuple[object, ...]]) -> list[object]:
    return [row[PAYLOAD] for row in received]


def drain(
    rig: WorkerRig, subscription: _native.Subscription, replay_session_id: int = 1
) -> tuple[list[object], tuple[object, ...]]:
    """Read until the replay is done; return the received payloads and the event."""
    received: list[tuple[object, ...]] = []

    def read_event() -> tuple[object, ...] | None:
        received.extend(subscription.poll(100))
        rig.poll(timeout_ns=1_000_000)
        found = [event for event in rig.events if event[:2] == ("ReplayDone", replay_session_id)]
        return found[0] if found else None

    event = rig.until(read_event)
    return payloads(received), event


def data_positions(recording: LiveRecording) -> Iterator[int]:
    """Positions at which messages begin: frames with the BEGIN flag that are not padding."""
    for position in recording.log.frame_positions:
        if recording.log.data[position + 6] != PADDING and recording.log.data[position + 5] & 0x80:
            yield position


@pytest.mark.parametrize("which", [1, 40, 75, -1])
def test_a_replay_from_a_frame_within(
    rig: WorkerRig, worker: _native.SessionWorker, stopped: LiveRecording, which: int
) -> None:
    """A replay may begin at any message, in any segment and at any alignment in a term."""
    position = list(data_positions(stopped))[which]
    subscription = rig.replay(worker, stopped, position=position)
    expected = stopped.messages[which:]
    received = rig.receive(subscription, len(expected))
    assert payloads(received) == expected
    assert rig.event("ReplayDone", 1)[2:] == (len(stopped.log.data), 0, None)


def test_a_replay_from_a_padding_frame(
    rig: WorkerRig, worker: _native.SessionWorker, stopped: LiveRecording
) -> None:
    """Padding is a frame, too: a replay from it continues with the next term's messages."""
    position = next(at for at in stopped.log.frame_positions if stopped.log.data[at + 6] == PADDING)
    later = sum(at > position for at in data_positions(stopped))
    received = rig.receive(rig.replay(worker, stopped, position=position), later)
    assert payloads(received) == stopped.messages[-later:]


def test_a_length_within_a_frame_includes_the_whole_frame(
    rig: WorkerRig, worker: _native.SessionWorker, stopped: LiveRecording
) -> None:
    """A replay ends at the first frame end at or after position + length."""
    begins = list(data_positions(stopped))
    single = [index for index, payload in enumerate(stopped.messages) if 100 < len(payload) < 1_000]
    index = next(index for index in single if index > 60)
    length = begins[index] + 32 - begins[50]
    subscription = rig.replay(worker, stopped, position=begins[50], length=length)
    received = rig.receive(subscription, index - 50 + 1)
    assert payloads(received) == stopped.messages[50 : index + 1]
    assert rig.event("ReplayDone", 1)[2] == received[-1][POSITION]
    assert subscription.poll(10, timeout_ns=50_000_000) == []


def test_padding_longer_than_the_maximum_message(
    rig: WorkerRig, worker: _native.SessionWorker
) -> None:
    """A term that ends in more padding than a publication can claim at once is replayed, too."""
    recording = rig.record(worker)
    longest = recording.publication.max_message_length
    assert longest == 8_192
    filler = recording.publication.max_payload_length
    frame = filler + 32
    while 65_536 - len(recording.log.data) - frame >= 8_352 + 64:
        recording.offer([bytes([7]) * filler])
    rest = 65_536 - len(recording.log.data) - 8_352
    recording.offer([bytes([8]) * (rest - 32)])
    recording.offer([bytes([9]) * longest, b"last"])
    padding = [entry for entry in frames(bytes(recording.log.data)) if entry[2] == PADDING]
    assert [entry[1] for entry in padding] == [8_352]
    stop(rig, recording)
    received = rig.receive(rig.replay(worker, recording), len(recording.messages))
    assert payloads(received) == recording.messages
    assert rig.event("ReplayDone", 1)[2:] == (len(recording.log.data), 0, None)


def test_a_bounded_replay_waits_for_its_counter(
    rig: WorkerRig, worker: _native.SessionWorker, stopped: LiveRecording
) -> None:
    """A bounded replay does not pass its counter, even within a frame, and ends with it."""
    begins = list(data_positions(stopped))
    bound = rig.client.add_counter(2_000, b"", "bound")
    bound.set(begins[20])
    subscription = rig.replay(
        worker,
        stopped,
        length=1 << 62,
        stop_position=begins[20],
        limit_counter=(bound.id, bound.registration_id),
    )
    received = rig.receive(subscription, 20)
    assert subscription.poll(10, timeout_ns=50_000_000) == []
    bound.set(begins[60] + 32)
    received += rig.receive(subscription, 40)
    assert subscription.poll(10, timeout_ns=50_000_000) == []
    bound.set(begins[100])
    received += rig.receive(subscription, 40)
    assert payloads(received) == stopped.messages[:100]
    bound.close()
    assert rig.event("ReplayDone", 1) == ("ReplayDone", 1, begins[100], 0, None)


def test_a_response_is_sent_when_all_checks_have_passed(
    rig: WorkerRig, worker: _native.SessionWorker, stopped: LiveRecording
) -> None:
    """By the worker; the conductor is notified that it was sent, or that it must send it."""
    responses = rig.client.add_subscription("aeron:ipc", 50)
    publication = rig.client.add_exclusive_publication("aeron:ipc", 50)
    rig.until(lambda: publication.is_connected or None)
    rig.replay(worker, stopped, answer=(publication, b"yes"))
    assert rig.event("ReplayReady", 1) == ("ReplayReady", 1, True)
    assert payloads(rig.receive(responses, 1)) == [b"yes"]
    begins = set(stopped.log.frame_positions)
    between = next(at for at in range(70_016, 300_000, 32) if at not in begins)
    rig.replay(worker, stopped, position=between, replay_session_id=2, answer=(publication, b"no"))
    assert rig.event("ReplayDone", 2)[3] == INVALID_POSITION
    publication.offer(b"last")
    assert payloads(rig.receive(responses, 1)) == [b"last"]
    publication.close()
    rig.replay(worker, stopped, replay_session_id=3, answer=(publication, b"closed"))
    assert rig.event("ReplayReady", 3) == ("ReplayReady", 3, False)
    assert not [event for event in rig.events if event == ("ReplayReady", 2, True)]


def test_an_aborted_replay_is_revoked(
    rig: WorkerRig, worker: _native.SessionWorker, stopped: LiveRecording
) -> None:
    """Stopping a replay closes the image of a subscriber that has not read it."""
    subscription = rig.replay(worker, stopped)
    rig.event("ReplayReady", 1)
    [image] = rig.until(lambda: subscription.images() or None)
    rig.receive(subscription, 1, at_a_time=1)
    worker.stop_replay(1)
    event = rig.event("ReplayDone", 1)
    assert event[3:] == (0, None)
    assert 0 < event[2] < len(stopped.log.data)
    rig.until(lambda: image.is_closed or None)


@pytest.mark.parametrize("length", [None, 0])
def test_a_position_between_frames_is_an_invalid_position(
    rig: WorkerRig, worker: _native.SessionWorker, stopped: LiveRecording, length: int | None
) -> None:
    """No frame begins there: the client receives the protocol's error code instead of "ready".

    Also where there is no data to replay from there.
    """
    begins = set(stopped.log.frame_positions)
    position = next(at for at in range(70_016, 300_000, 32) if at not in begins)
    rig.replay(worker, stopped, position=position, length=length)
    event = rig.event("ReplayDone", 1)
    assert event[2:4] == (position, INVALID_POSITION)
    assert f"position {position}" in event[4]
    assert ("ReplayReady", 1) not in [event[:2] for event in rig.events]


def test_no_subscriber_in_time_is_an_error(
    rig: WorkerRig, worker: _native.SessionWorker, stopped: LiveRecording
) -> None:
    """After its checks a replay waits for the connect timeout and no longer."""
    rig.replay(worker, stopped, subscribe=False, connect_timeout_ns=200_000_000)
    assert rig.event("ReplayReady", 1)
    event = rig.event("ReplayDone", 1)
    assert event[3] == GENERIC
    assert "no subscriber" in event[4] and "2001" in event[4]


@pytest.mark.parametrize(
    ("at", "patch", "text"),
    [
        (0, bytes(32), "unexpected end"),
        (0, b"\x1f\0", "frame length 31"),
        (6, b"\x05", "unknown frame type"),
        (8, b"\x21", "frame of another place"),
    ],
)
def test_damage_of_a_header_is_an_error_at_its_position(
    rig: WorkerRig,
    worker: _native.SessionWorker,
    stopped: LiveRecording,
    at: int,
    patch: bytes,
    text: str,
) -> None:
    """Bytes that are not a frame of the place end the replay with the position; zeros are an
    unexpected end."""
    position = list(data_positions(stopped))[40]
    base = position - position % 65_536
    overwrite(rig.archive_dir / f"0-{base}.rec", position - base + at, patch)
    received, event = drain(rig, rig.replay(worker, stopped))
    assert event[2:4] == (position, GENERIC) and text in str(event[4])
    assert received == stopped.messages[: len(received)]


@pytest.mark.parametrize("checksum", ["crc-32", "crc-32c"])
def test_a_flipped_bit_is_detected_by_the_checksum(
    rig: WorkerRig, checksum: ChecksumName
) -> None:
    """Valid recordings verify; a changed byte ends the replay with the frame's position."""
    worker = rig.worker(record_checksum=checksum, replay_checksum=checksum)
    recording = rig.record(worker)
    recording.offer(messages(15, 60, 64, 3_000))
    stop(rig, recording)
    subscription = rig.replay(worker, recording, replay_session_id=1, stream_id=31)
    assert payloads(rig.receive(subscription, 60)) == recording.messages
    assert rig.event("ReplayDone", 1)[3:] == (0, None)

    position = list(data_positions(recording))[30]
    base = position - position % 65_536
    with (rig.archive_dir / f"0-{base}.rec").open("r+b") as file:
        file.seek(position - base + 40)
        byte = file.read(1)[0]
        file.seek(position - base + 40)
        file.write(bytes([byte ^ 0x10]))
    subscription = rig.replay(worker, recording, replay_session_id=2, stream_id=32)
    received, event = drain(rig, subscription, 2)
    assert event[2:4] == (position, GENERIC)
    assert "checksum" in str(event[4]) and f"position {position}" in str(event[4])
    assert received == recording.messages[: len(received)]


def test_invalid_replay_parameters_are_refused(
    rig: WorkerRig, worker: _native.SessionWorker, stopped: LiveRecording
) -> None:
    """Negative lengths are an error at once, not a session without an end."""
    with pytest.raises(ValueError, match="cannot replay -32 bytes"):
        rig.replay(worker, stopped, length=-32)


def test_a_frame_that_exceeds_its_term_is_damage(
    rig: WorkerRig, worker: _native.SessionWorker, stopped: LiveRecording
) -> None:
    """A length beyond the term ends the replay, live or not, instead of blocking it."""
    position = [at for at in data_positions(stopped) if at < 65_536][-1]
    overwrite(rig.archive_dir / "0-0.rec", position, (65_536).to_bytes(4, "little"))
    for replay_session_id, limit_counter in enumerate([None, stopped.counter]):
        subscription = rig.replay(
            worker,
            stopped,
            replay_session_id=replay_session_id,
            stream_id=30 + replay_session_id,
            limit_counter=limit_counter,
        )
        received, event = drain(rig, subscription, replay_session_id)
        assert event[2:4] == (position, GENERIC) and "the end of the term" in str(event[4])
        assert received == stopped.messages[: len(received)]
