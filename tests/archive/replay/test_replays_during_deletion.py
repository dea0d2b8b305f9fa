"""Replays of recordings whose segments are being deleted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.daemon import served
from support.daemon.recording import Made, recorded, start_recording, stop

import aerotape
from aerotape import RecordingSignal, _native
from aerotape.archive.recording.segments import deletion
from aerotape.errors import ArchiveError

SEGMENT = 65_536


@pytest.fixture
def client(driver: _native.MediaDriver, tmp_path: Path) -> Iterator[aerotape.ArchiveClient]:
    lengths = {"aeron.archive.segment.file.length": str(SEGMENT)}
    with (
        served.launch(tmp_path, Path(driver.aeron_dir), lengths),
        served.connect(Path(driver.aeron_dir)) as client,
    ):
        yield client


@pytest.fixture
def slow_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Deletions wait until the event is set."""
    proceeds, remove = threading.Event(), deletion._remove

    def remove_late(*arguments: Any) -> list[str]:
        assert proceeds.wait(60)
        return remove(*arguments)

    monkeypatch.setattr(deletion, "_remove", remove_late)
    yield proceeds
    proceeds.set()


def replayed(client: aerotape.ArchiveClient, made: Made, limit: int | None = None) -> list[int]:
    """Return the end positions of messages, up to the current end, or that of a counter."""
    with client.replay(made.recording_id, follow=False, limit_counter_id=limit) as messages:
        return [message.end_position for message in messages]


@pytest.mark.parametrize("is_active", [True, False], ids=["active", "stopped"])
def test_segments_before_the_start(
    client: aerotape.ArchiveClient, slow_disk: threading.Event, is_active: bool
) -> None:
    """While purged segments are deleted, what remains is replayed, also of an active recording."""
    made = start_recording(client, "aeron:ipc?term-length=64k|mtu=1408", 60)
    assert made.end > 2 * SEGMENT
    if not is_active:
        stop(client, made)
    assert client.purge_segments(made.recording_id, SEGMENT) == 1
    assert replayed(client, made) == [end for _, end, _ in made.sent if end > SEGMENT]
    slow_disk.set()
    client.await_signal(RecordingSignal.DELETE)
    if is_active:
        stop(client, made)


def test_segments_past_the_stop_position(
    client: aerotape.ArchiveClient, slow_disk: threading.Event
) -> None:
    """While a truncated end is deleted, a counter does not lead a replay past the stop position;
    what precedes it is replayed."""
    made = recorded(client, 60, "aeron:ipc?term-length=64k|mtu=1408")
    assert made.end > 2 * SEGMENT
    retained = made.sent[9][1]
    assert retained < SEGMENT
    client.truncate_recording(made.recording_id, retained)
    counter = client.aeron.native.add_counter(1001, b"", "limit of a replay")
    counter.set(made.end)
    with pytest.raises(ArchiveError, match="outstanding delete operation: wait for the DELETE"):
        replayed(client, made, counter.id)
    ends = [end for _, end, _ in made.sent[:10]]
    assert replayed(client, made) == ends
    counter.set(retained)
    assert replayed(client, made, counter.id) == ends
    slow_disk.set()
    client.await_signal(RecordingSignal.DELETE)
    counter.close()
