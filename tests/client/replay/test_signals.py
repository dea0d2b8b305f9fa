"""Recording signals: polled, awaited and iterated."""

from __future__ import annotations

import threading

import pytest
from support.daemon.archives import ServedArchive
from support.daemon.recording import recorded, start_recording, stop

import aerotape
from aerotape import RecordingSignal
from aerotape.errors import AeronTimeoutError

SHORT_NS = 300_000_000


def test_await_signal(client: aerotape.ArchiveClient) -> None:
    """An earlier signal is returned once; signals that do not match stay queued."""
    made = recorded(client, 2)
    stopped = client.await_signal(RecordingSignal.STOP, recording_id=made.recording_id)
    assert (stopped.signal, stopped.position) == (RecordingSignal.STOP, made.end)
    assert stopped.subscription_id == made.subscription_id
    with pytest.raises(AeronTimeoutError, match=r"await STOP of recording .* none within 0.3 s"):
        client.await_signal(
            RecordingSignal.STOP, recording_id=made.recording_id, timeout_ns=SHORT_NS
        )
    started = client.await_signal(recording_id=made.recording_id)
    assert (started.signal, started.position) == (RecordingSignal.START, 0)


def test_iterators_are_independent(client: aerotape.ArchiveClient) -> None:
    """Each iterator returns its signals since its creation; polling returns all."""
    client.poll_for_recording_signals()
    with (
        client.signals(timeout_ns=SHORT_NS) as everything,
        client.signals(RecordingSignal.STOP, timeout_ns=SHORT_NS) as stops,
    ):
        made = recorded(client, 1)
        assert next(stops).position == made.end
        assert [next(everything).signal, next(everything).signal] == [
            RecordingSignal.START,
            RecordingSignal.STOP,
        ]
        with pytest.raises(AeronTimeoutError):
            next(everything)
        assert stops.poll() == []
    assert list(stops) == []
    assert [each.signal.name for each in client.poll_for_recording_signals()] == ["START", "STOP"]


def test_a_waiting_iterator_does_not_block_requests(client: aerotape.ArchiveClient) -> None:
    """While a thread waits for signals, other threads send requests; then it receives them."""
    seen: list[aerotape.RecordingSignalEvent] = []
    signals = client.signals()
    reader = threading.Thread(target=lambda: seen.extend(signals))
    reader.start()
    made = start_recording(client, count=3)
    stop(client, made)
    client.await_signal(RecordingSignal.STOP, recording_id=made.recording_id)
    another = client.signals()
    second = threading.Thread(target=lambda: seen.extend(another))
    second.start()
    signals.close()
    reader.join(10.0)
    assert not reader.is_alive()
    assert [each.signal for each in seen] == [RecordingSignal.START, RecordingSignal.STOP]
    client.close()
    second.join(10.0)
    assert not second.is_alive()


def test_deletion_is_signalled(archive: ServedArchive, client: aerotape.ArchiveClient) -> None:
    """The client that purges a recording receives a signal when its files are deleted."""
    made = recorded(client, 1)
    client.purge_recording(made.recording_id)
    client.await_signal(RecordingSignal.DELETE, recording_id=made.recording_id)
    assert not list(archive.archive_dir.glob(f"{made.recording_id}-*.rec"))
