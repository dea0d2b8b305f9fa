"""Replays: their messages, their end, and the error when they end too early."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator

import pytest
from support.daemon.archives import ServedArchive, serve
from support.daemon.recording import new_stream_id, recorded, start_recording, stop, wait_until
from support.damage.overwriting import overwrite
from support.model.archive_model import REPLAY_SESSIONS
from support.model.messages import message

import aerotape
from aerotape.errors import AeronTimeoutError, ArchiveError, ConfigurationError, ReplayError

CHANNELS = ["aeron:ipc", "aeron:udp?endpoint=localhost:0", None]


@pytest.fixture(scope="module")
def own_archive() -> Iterator[ServedArchive]:
    """Our archive, for tests of differences to the Java archive."""
    with serve("aerotape") as served:
        yield served


def _received(messages: list[aerotape.Message]) -> list[tuple[bytes, int, int]]:
    return [(each.payload, each.end_position, each.reserved_value) for each in messages]


def _patiently(replay: aerotape.Replay, count: int) -> list[aerotape.Message]:
    """Return the next messages, retrying after timeouts."""
    messages: list[aerotape.Message] = []

    def are_buffered() -> bool:
        with contextlib.suppress(AeronTimeoutError):
            messages.append(next(replay))
        return len(messages) == count

    wait_until(are_buffered, f"{count} messages")
    return messages


@pytest.mark.parametrize("channel", CHANNELS)
def test_whole_recording(client: aerotape.ArchiveClient, channel: str | None) -> None:
    """All messages are received reassembled, across terms and segments; then the replay ends."""
    made = recorded(client, 300)
    with client.replay(made.recording_id, channel=channel) as replay:
        assert (replay.start_position, replay.expected_length) == (0, made.end)
        messages = list(replay)
        assert replay.is_closed
        assert replay.position == made.end
        assert list(replay) == []
    assert _received(messages) == made.sent
    assert max(len(payload) for payload, _, _ in made.sent) > 4 * 1408
    assert made.end > 5 * 65536
    # Ids of the recording: the replay's session id is the low half of its id.
    of_messages = {(each.session_id, each.stream_id) for each in messages}
    assert of_messages == {(made.session_id, made.stream_id)}
    replay_session = replay.replay_session_id
    assert replay_session is not None
    assert (replay_session - made.session_id) & 0xFFFFFFFF


def test_positions_of_messages(client: aerotape.ArchiveClient) -> None:
    """A message's position is that of its first frame; a replay from there begins with it."""
    made = recorded(client, 200)
    messages = list(client.replay(made.recording_id))
    assert messages[0].position == 0
    for before, after in itertools.pairwise(messages):
        # Only padding at the end of a term lies between messages.
        if after.position != before.end_position:
            assert after.position % 65536 == 0
            assert before.end_position > after.position - 65536
    for index in (1, 57, 123, 199):
        with client.replay(made.recording_id, messages[index].position) as replay:
            first = next(replay)
            assert (first.payload, first.position) == (
                messages[index].payload,
                messages[index].position,
            )
        rest = list(client.replay(made.recording_id, messages[index].position))
        assert _received(rest) == made.sent[index:]


def test_bounded_length(client: aerotape.ArchiveClient) -> None:
    """A replay of a given length ends before the end of the recording."""
    made = recorded(client, 100)
    start, end = made.sent[9][1], made.sent[49][1]
    replay = client.replay(made.recording_id, start, end - start)
    assert replay.expected_length == end - start
    assert _received(list(replay)) == made.sent[10:50]
    assert replay.position == end


def test_length_that_cuts_a_message(client: aerotape.ArchiveClient) -> None:
    """A message that the length cuts is not returned, and the replay ends."""
    made = start_recording(client)
    made.send([b"small", b"x" * 5000, b"after"])
    wait_until(lambda: client.recording_position(made.recording_id) == made.end, "the recording")
    stop(client, made)
    replay = client.replay(made.recording_id, 0, 64 + 1408 + 1)
    assert [each.payload for each in replay] == [b"small"]


def test_aerons_special_lengths(client: aerotape.ArchiveClient) -> None:
    """-1 and -2 have the meaning of Aeron's clients, other negative lengths are refused, and a
    length past the stop position ends there."""
    made = recorded(client, 10)
    for position, length in ((-1, -1), (-1, -2), (None, 1 << 40)):
        assert _received(list(client.replay(made.recording_id, position, length))) == made.sent
    with pytest.raises(ConfigurationError, match="-3"):
        client.replay(made.recording_id, length=-3)


def test_nothing_to_replay(client: aerotape.ArchiveClient) -> None:
    """A replay from the end of a stopped recording ends at once."""
    made = recorded(client, 3)
    replay = client.replay(made.recording_id, made.end)
    assert replay.replay_session_id is None
    assert list(replay) == []
    assert list(client.replay(made.recording_id, 0, 0)) == []


@pytest.mark.parametrize("channel", CHANNELS)
def test_follows_a_live_recording(client: aerotape.ArchiveClient, channel: str | None) -> None:
    """A live recording is followed, message by message, until it stops; then the replay ends."""
    made = start_recording(client, count=20)
    received: list[aerotape.Message] = []
    with client.replay(made.recording_id, channel=channel) as replay:
        assert replay.expected_length is None
        reader = threading.Thread(target=lambda: received.extend(replay))
        reader.start()
        made.send(message(1, index, 0, 6000) for index in range(100))
        wait_until(lambda: client.recording_position(made.recording_id) == made.end, "recording")
        stop(client, made)
        reader.join(20.0)
        assert not reader.is_alive()
    assert _received(received) == made.sent
    assert len(received) == 120


def test_live_recording_with_a_length(client: aerotape.ArchiveClient) -> None:
    """The replay ends at the given length while the recording continues."""
    made = start_recording(client, count=5)
    replay = client.replay(made.recording_id, 0, made.end + 640)
    assert _received([next(replay) for _ in range(5)]) == made.sent
    made.send([b"0123456789" * 3] * 20)  # each takes 64 bytes
    assert _received(list(replay)) == made.sent[5:15]
    assert client.stop_position(made.recording_id) == -1
    stop(client, made)


def test_live_recording_without_following(client: aerotape.ArchiveClient) -> None:
    """With follow=False the replay ends at the position at the time of the request."""
    made = start_recording(client, count=30)
    replay = client.replay(made.recording_id, follow=False)
    made.send([b"later"])
    assert _received(list(replay)) == made.sent[:30]
    stop(client, made)


def test_stopped_while_shorter_than_the_length(client: aerotape.ArchiveClient) -> None:
    """A recording that stops below the requested length ends the replay without an error."""
    made = start_recording(client, count=5)
    replay = client.replay(made.recording_id, 0, made.end + 65536)
    assert _received([next(replay) for _ in range(5)]) == made.sent
    stop(client, made)
    assert list(replay) == []


def test_waiting_for_a_live_recording_can_time_out(client: aerotape.ArchiveClient) -> None:
    """Without a message in time, AeronTimeoutError names the position; iterating can continue."""
    made = start_recording(client, count=3)
    with client.replay(made.recording_id, timeout_ns=100_000_000) as replay:
        assert _received(_patiently(replay, 3)) == made.sent
        with pytest.raises(AeronTimeoutError, match=rf"at position {made.end} for 0.1 s"):
            next(replay)
        made.send([b"at last"])
        assert [each.payload for each in _patiently(replay, 1)] == [b"at last"]
    stop(client, made)


def test_bad_replay_channel(client: aerotape.ArchiveClient) -> None:
    """An invalid channel is refused before a request is sent."""
    made = recorded(client, 1)
    with pytest.raises(ConfigurationError, match="aeron:"):
        client.replay(made.recording_id, channel="nonsense")
    with pytest.raises(ConfigurationError, match="subscription_id"):
        client.start_replay(made.recording_id, "aeron:ipc?control-mode=response", 1)
    with pytest.raises(ConfigurationError, match="nonsense"):
        client.start_replay(made.recording_id, "nonsense", 1)
    assert client.get_archive_id() == client.archive_id


def test_start_replay_to_a_subscription(client: aerotape.ArchiveClient) -> None:
    """start_replay replays to the caller's subscription with the session id it returns."""
    made = recorded(client, 40)
    stream_id = new_stream_id()
    with client.aeron.add_subscription("aeron:ipc", stream_id) as subscription:
        replay_session_id = client.start_replay(made.recording_id, "aeron:ipc", stream_id)
        messages = list(itertools.islice(subscription, 40))
    assert _received(messages) == made.sent
    assert {each.session_id & 0xFFFFFFFF for each in messages} == {replay_session_id & 0xFFFFFFFF}
    assert {each.stream_id for each in messages} == {stream_id}
    client.stop_replay(replay_session_id)


def test_abandoned_replays_are_stopped(client: aerotape.ArchiveClient) -> None:
    """Abandoned replays do not count towards the archive's limit of 20."""
    made = recorded(client, 300)
    for _ in range(25):
        with client.replay(made.recording_id, channel="aeron:ipc") as replay:
            assert next(replay).payload == made.sent[0][0]


def test_missing_segment(archive: ServedArchive, client: aerotape.ArchiveClient) -> None:
    """A replay that the archive aborts raises its error, with the position reached.

    With Java's archive that may be before the gap: it revokes the publication, which may drop
    messages that were not consumed yet.
    """
    made = recorded(client, 100)
    gap = 2 * 65536
    assert made.end > gap + 65536
    (archive.archive_dir / f"{made.recording_id}-{gap}.rec").unlink()
    received: list[aerotape.Message] = []
    with pytest.raises(ReplayError, match="segment") as caught:
        received.extend(client.replay(made.recording_id))
    assert caught.value.position <= gap
    assert caught.value.recording_id == made.recording_id
    assert _received(received) == made.sent[: len(received)]
    if archive.kind == "aerotape":
        assert caught.value.position == gap
        assert _received(received) == [each for each in made.sent if each[1] <= gap]


@pytest.mark.parametrize("channel", CHANNELS)
def test_an_error_received_before_the_messages(
    own_archive: ServedArchive, channel: str | None
) -> None:
    """Messages sent before the damage are returned although the error has been received."""
    with own_archive.connect() as client:
        made = recorded(client, 20)
        # The stream holds only so few before any is read.
        begin = made.sent[4][1]
        overwrite(own_archive.archive_dir / f"{made.recording_id}-0.rec", begin, bytes(64))
        counters = client.aeron.native.counters()
        with client.replay(made.recording_id, channel=channel) as replay:
            wait_until(lambda: counters.rows(REPLAY_SESSIONS)[0][7] == 0, "the replay's end")
            # Its response follows the error; by then a revoked stream is gone.
            client.start_position(made.recording_id)
            time.sleep(0.2)
            received: list[aerotape.Message] = []
            with pytest.raises(ReplayError, match="aborted") as caught:
                received.extend(replay)
        assert caught.value.position == begin
        assert _received(received) == made.sent[:5]


def test_errors_without_a_request(archive: ServedArchive) -> None:
    """Errors of a started replay are stored for `poll_for_errors`."""
    quick = {"aeron.archive.connect.timeout": "2s"}
    with serve(archive.kind, quick) as served, served.connect() as client:
        made = recorded(client, 60)
        errors: list[ArchiveError] = []
        replay_session_id = client.start_replay(made.recording_id, "aeron:ipc", new_stream_id())

        def has_error() -> bool:
            errors.extend(client.poll_for_errors())
            return bool(errors)

        wait_until(has_error, "the error of a replay without a subscriber", 20.0)
        assert "connect" in str(errors[0])
        assert str(replay_session_id) in str(errors[0])
        assert errors[0].correlation_id > 0
        assert client.poll_for_errors() == []
