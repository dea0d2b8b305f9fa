"""Requests for imported recordings whose disk does not respond."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.builders.scoped_store import MESSAGES, build, do_import
from support.daemon.recording import start_recording, stop, wait_until
from support.daemon.served import launch

import aerotape
from aerotape import _native, errors
from aerotape.archive.features import scopes
from aerotape.archive.features.ledger import ledger_worker
from aerotape.archive.recording.storage import CatalogChanges
from aerotape.catalog.scope_layout import imported_directory
from aerotape.catalog.scopes.placing import imported_descriptor
from aerotape.counter_keys import CounterType
from aerotape.qualified_id import QualifiedId

SCOPE = 6


class Stalled:
    """A function that does not return before the disk responds again.

    Attributes:
        calls: the threads that have called it.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.calls: list[str] = []
        self._function = function
        self._responds = threading.Event()

    def __call__(self, *args: Any) -> Any:
        self.calls.append(threading.current_thread().name)
        assert self._responds.wait(60)
        return self._function(*args)

    def respond(self) -> None:
        self._responds.set()


@pytest.fixture
def aeron(driver: _native.MediaDriver, tmp_path: Path, aeron_dir: Path) -> Iterator[Path]:
    """The Aeron directory of an archive, in this process, that has imported two recordings."""
    store = build(tmp_path / "store", archive_id=5)
    do_import(store, build(tmp_path / "six", archive_id=6, count=2), SCOPE)
    with launch(store, aeron_dir, {"aeron.archive.id": "5"}):
        yield aeron_dir


def _check_others(client: aerotape.ArchiveClient) -> None:
    """Check that an archive responds to requests for its own recordings, changes included."""
    client.ping()
    made = start_recording(client, count=3)
    channel, recording_id = made.channel, made.recording_id
    stop(client, made)
    with client.replay(recording_id) as replay:
        assert len(list(replay)) == 3
    subscription_id = client.extend_recording(recording_id, channel, made.stream_id)
    client.stop_recording_subscription(subscription_id)
    client.truncate_recording(recording_id, made.sent[0][1])
    client.await_signal(aerotape.RecordingSignal.DELETE, recording_id=recording_id)
    assert client.list_recording(recording_id) is not None


@pytest.mark.parametrize("name", ["imported_ids", "imported_descriptor"])
def test_requests_for_imported_recordings_wait_alone(
    aeron: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """While their directories cannot be read, all other requests are answered; then they are."""
    stalled = Stalled(getattr(scopes, name))
    monkeypatch.setattr(scopes, name, stalled)
    with (
        aerotape.connect(aeron_dir=aeron, timeout_ns=60_000_000_000) as client,
        aerotape.connect(aeron_dir=aeron, timeout_ns=60_000_000_000) as waiting,
        ThreadPoolExecutor() as threads,
    ):
        try:
            listed = threads.submit(lambda: list(waiting.list_recordings(scope_id=SCOPE)))
            wait_until(lambda: bool(stalled.calls), "the first call")
            replayed = threads.submit(
                lambda: len(list(waiting.replay(1, scope_id=SCOPE, channel="aeron:ipc")))
            )
            _check_others(client)
            assert not listed.done()
            assert not replayed.done()
        finally:
            stalled.respond()
        assert [each.recording_id for each in listed.result()] == [0, 1]
        assert replayed.result() == MESSAGES
    assert {each.rpartition("_")[0] for each in stalled.calls} == {"archive-import"}


def test_a_client_that_has_gone_is_sent_nothing(
    aeron: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replay whose client closes while the disk does not respond is not begun."""
    stalled = Stalled(imported_descriptor)
    monkeypatch.setattr(scopes, "imported_descriptor", stalled)
    with aerotape.connect(aeron_dir=aeron) as client:
        before = client.aeron.counters().rows(CounterType.REPLAY_SESSIONS)
        with aerotape.connect(aeron_dir=aeron, timeout_ns=200_000_000) as hasty:
            with pytest.raises(errors.AeronTimeoutError):
                hasty.start_replay(1, "aeron:ipc", 77, scope_id=SCOPE)
            wait_until(lambda: bool(stalled.calls), "the call")
        stalled.respond()
        assert len(list(client.list_recordings(scope_id=SCOPE))) == 2
        assert client.aeron.counters().rows(CounterType.REPLAY_SESSIONS) == before


def test_a_new_ledger_waits_alone(aeron: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether its id is that of an imported recording is found out in the ledgers' thread."""
    stalled = Stalled(imported_directory)
    monkeypatch.setattr(ledger_worker, "imported_directory", stalled)
    with (
        aerotape.connect(aeron_dir=aeron, timeout_ns=60_000_000_000) as client,
        aerotape.connect(aeron_dir=aeron, timeout_ns=60_000_000_000) as waiting,
        ThreadPoolExecutor() as threads,
    ):
        try:
            created = threads.submit(waiting.create_ledger, "PD_JOURNAL", QualifiedId(SCOPE, 1))
            wait_until(lambda: bool(stalled.calls), "the call")
            _check_others(client)
        finally:
            stalled.respond()
        with pytest.raises(errors.LedgerExistsError, match="imported recording"):
            created.result()
        assert list(client.list_ledgers()) == []


def test_free_space_is_not_read_of_a_disk_that_does_not_respond(
    aeron: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The duty cycle that would check it every second leaves it out."""
    probe, statvfs = Stalled(CatalogChanges._touch), Stalled(os.statvfs)
    with aerotape.connect(aeron_dir=aeron) as client:
        monkeypatch.setattr(CatalogChanges, "_touch", lambda self: probe(self))
        wait_until(lambda: bool(probe.calls), "a probe")
        # Longer than a probe counts.
        time.sleep(0.1)
        monkeypatch.setattr(os, "statvfs", statvfs)
        try:
            until = time.monotonic() + 1.5
            while time.monotonic() < until:
                client.ping()
            assert statvfs.calls == []
            probe.respond()
            wait_until(lambda: bool(statvfs.calls), "a check of the free space")
        finally:
            probe.respond()
            statvfs.respond()
