"""A recording that changes between the look-up and the request for its replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from support.daemon.archives import ServedArchive, serve
from support.daemon.between_requests import before_replay, before_replay_of_source
from support.daemon.live import Live, poll_until, read_until_live
from support.daemon.recording import Made, recorded, start_recording, wait_until

import aerotape
from aerotape import RecordingSignal, errors
from aerotape.client.live.persistent_types import PersistentEvent

Reason = errors.PersistentSubscriptionError.Reason


@pytest.fixture(scope="module")
def destination() -> Iterator[ServedArchive]:
    """Our archive, in this process, that replicates from the one under test."""
    with serve("aerotape") as served:
        yield served


def _stopped(client: aerotape.ArchiveClient, made: Made) -> None:
    """Stop a recording; its publication goes on."""
    client.stop_recording_subscription(made.subscription_id)
    wait_until(lambda: client.stop_position(made.recording_id) == made.end, "the stop position")


def _purge(client: aerotape.ArchiveClient, recording_id: int) -> int:
    """Delete the first segments of a recording; return where it begins then."""
    descriptor = client.list_recording(recording_id)
    assert descriptor is not None
    start = 2 * descriptor.segment_file_length
    client.purge_segments(recording_id, start)
    return start


def _payloads(messages: Iterator[aerotape.Message] | list[aerotape.Message]) -> list[bytes]:
    return [each.payload for each in messages]


# ---- persistent subscriptions -------------------------------------------------------------------


def test_a_recording_that_stops_before_its_replay_is_joined_live(
    client: aerotape.ArchiveClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refused replay is no failure: the look-up is repeated and the live stream joined."""
    live = Live(client, 20)
    made = live.made
    asked = before_replay(monkeypatch, lambda: _stopped(client, made))
    events: list[PersistentEvent] = []
    received: list[aerotape.Message] = []
    with client.persistent_subscription(
        made.recording_id, live.subscriber_channel, start=made.end, on_event=events.append
    ) as subscription:
        poll_until(subscription, received, lambda: subscription.is_live)
        live.send(5)
        read_until_live(subscription, live, received)
    live.check(received, 20)
    assert asked == [made.sent[19][1]]
    assert [each.kind for each in events] == ["live-joined"]


def test_a_recording_that_is_extended_before_its_replay_is_read(
    client: aerotape.ArchiveClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop and an extension between look-up and request lose nothing."""
    live = Live(client, 20)
    made = live.made

    def extend() -> None:
        _stopped(client, made)
        made.subscription_id = client.extend_recording(
            made.recording_id, made.channel, made.stream_id
        )
        wait_until(lambda: client.recording_position(made.recording_id) != -1, "the extension")

    before_replay(monkeypatch, extend)
    received: list[aerotape.Message] = []
    with client.persistent_subscription(
        made.recording_id, live.subscriber_channel, start=made.end
    ) as subscription:
        poll_until(subscription, received, lambda: subscription.is_live)
        live.send(5)
        read_until_live(subscription, live, received)
    live.check(received, 20)


def test_from_the_start_of_a_recording_that_loses_segments_before_its_replay(
    client: aerotape.ArchiveClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`start="start"` begins where the recording does when the replay is requested."""
    live = Live(client, 200)
    made = live.made
    asked = before_replay(monkeypatch, lambda: _purge(client, made.recording_id))
    received: list[aerotape.Message] = []
    with client.persistent_subscription(
        made.recording_id, live.subscriber_channel, start="start"
    ) as subscription:
        read_until_live(subscription, live, received)
    start = client.start_position(made.recording_id)
    assert asked == [0, start]
    assert start > 0
    assert received[0].position >= start
    live.check(received, len(made.sent) - len(received))


@pytest.mark.parametrize(
    ("change", "reason", "match"),
    [
        ("purge", Reason.INVALID_START_POSITION, "position 0 is before its start position"),
        ("truncate", Reason.INVALID_START_POSITION, "is past its stop position 0"),
        ("delete", Reason.RECORDING_NOT_FOUND, "recording"),
    ],
)
def test_what_has_gone_before_the_replay_is_a_permanent_error(
    client: aerotape.ArchiveClient,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
    reason: errors.PersistentSubscriptionError.Reason,
    match: str,
) -> None:
    """Data that were purged, truncated or deleted meanwhile end it, with the reason."""
    made = recorded(client, 200)
    position = made.sent[50][1] if change == "truncate" else 0
    changes: dict[str, Callable[[], object]] = {
        "purge": lambda: _purge(client, made.recording_id),
        "truncate": lambda: client.truncate_recording(made.recording_id, 0),
        "delete": lambda: client.purge_recording(made.recording_id),
    }
    before_replay(monkeypatch, changes[change])
    with (
        client.persistent_subscription(
            made.recording_id, "aeron:ipc", start=position
        ) as subscription,
        pytest.raises(errors.PersistentSubscriptionError, match=match) as caught,
    ):
        poll_until(subscription, [], lambda: False)
    assert caught.value.reason is reason


def test_a_position_that_is_no_frame_is_refused(
    client: aerotape.ArchiveClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A position within a frame is a permanent error after the second refusal at most."""
    made = recorded(client, 20)
    # Fragments have up to 1,376 bytes: this is no position at which the last one begins.
    within = next(each[1] for each in made.sent if len(each[0]) % 1_376 > 64) - 64
    asked = before_replay(monkeypatch)
    with (
        client.persistent_subscription(made.recording_id, "aeron:ipc", start=within) as reading,
        pytest.raises(errors.AerotapeError, match=str(within)),
    ):
        poll_until(reading, [], lambda: False)
    assert asked in ([within], [within] * 2)


# ---- replays and replay merges ------------------------------------------------------------------


def test_a_replay_from_the_end_of_a_recording_that_stops_is_empty(
    client: aerotape.ArchiveClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a replay from the end of a stopped recording is."""
    made = start_recording(client, count=5)
    before_replay(monkeypatch, lambda: _stopped(client, made))
    with client.replay(made.recording_id, made.end) as replay:
        assert list(replay) == []
        assert replay.expected_length == 0
    made.publication.close()


def test_a_replay_begins_where_the_recording_does(
    client: aerotape.ArchiveClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a position, segments that are deleted before the request are left out."""
    made = recorded(client, 200)
    before_replay(monkeypatch, lambda: _purge(client, made.recording_id))
    with client.replay(made.recording_id) as replay:
        assert replay.start_position == client.start_position(made.recording_id) > 0
        received = _payloads(replay)
    assert 0 < len(received) < 200
    assert received == [each[0] for each in made.sent[-len(received) :]]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("purge", errors.InvalidPositionError),
        ("truncate", errors.InvalidPositionError),
        ("delete", errors.UnknownRecordingError),
    ],
)
def test_a_replay_of_what_has_gone_is_refused(
    client: aerotape.ArchiveClient,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
    expected: type[errors.ArchiveError],
) -> None:
    """Data that were purged, truncated or deleted meanwhile are an error, not an empty replay."""
    made = recorded(client, 200)
    position = made.sent[50][1]
    changes: dict[str, Callable[[], object]] = {
        "purge": lambda: _purge(client, made.recording_id),
        "truncate": lambda: client.truncate_recording(made.recording_id, 0),
        "delete": lambda: client.purge_recording(made.recording_id),
    }
    before_replay(monkeypatch, changes[change])
    with pytest.raises(expected):
        client.replay(made.recording_id, 0 if change == "purge" else position)


def test_a_merge_begins_where_the_recording_does(
    client: aerotape.ArchiveClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a position, a replay merge begins at the start as it is when it requests it."""
    live = Live(client, 200)
    made = live.made
    before_replay(monkeypatch, lambda: _purge(client, made.recording_id))
    received: list[aerotape.Message] = []
    with (
        live.sending(),
        client.replay_merge(made.recording_id, live.subscriber_channel) as merge,
    ):
        for each in merge:
            received.append(each)
            if merge.is_merged:
                break
    first = [each[1] for each in made.sent].index(received[0].end_position)
    assert received[0].position >= client.start_position(made.recording_id) > 0
    live.check(received, first)


# ---- replications -------------------------------------------------------------------------------


def _replicate(
    source: ServedArchive, destination: ServedArchive, recording_id: int, **options: object
) -> tuple[list[str], int, list[bytes]]:
    """Replicate a recording; return the signals, where the copy begins, and its payloads."""
    with destination.connect() as client, client.signals() as signals:
        replication_id = client.replicate(recording_id, source.control_channel, **options)  # type: ignore[arg-type]
        seen = []
        for each in signals:
            if each.correlation_id == replication_id:
                seen.append(each)
                if each.signal is RecordingSignal.REPLICATE_END:
                    break
        copy = seen[-1].recording_id
        names = [each.signal.name for each in seen]
        return names, client.start_position(copy), _payloads(client.replay(copy))


def test_a_source_that_stops_where_its_copy_ends_is_in_sync(
    archive: ServedArchive,
    client: aerotape.ArchiveClient,
    destination: ServedArchive,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A replication that continues at the end of a source that just stops ends with SYNC."""
    made = start_recording(client, count=5)
    with destination.connect() as copying:
        first = copying.replicate(
            made.recording_id, archive.control_channel, stop_position=made.end
        )
        copy = copying.await_signal(RecordingSignal.STOP, correlation_id=first).recording_id
    before_replay_of_source(monkeypatch, lambda: _stopped(client, made))
    signals, _, payloads = _replicate(
        archive, destination, made.recording_id, dst_recording_id=copy
    )
    assert signals == ["SYNC", "REPLICATE_END"]
    assert payloads == [each[0] for each in made.sent]
    made.publication.close()


def test_a_source_that_loses_segments_is_copied_from_its_new_start(
    archive: ServedArchive,
    client: aerotape.ArchiveClient,
    destination: ServedArchive,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A new replication begins where the source does when its replay is requested."""
    made = recorded(client, 200)
    before_replay_of_source(monkeypatch, lambda: _purge(client, made.recording_id))
    signals, start, payloads = _replicate(archive, destination, made.recording_id)
    assert start == client.start_position(made.recording_id) > 0
    assert payloads == _payloads(client.replay(made.recording_id))
    assert "SYNC" in signals
