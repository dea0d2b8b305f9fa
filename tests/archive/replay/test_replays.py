"""Replays that end before they have begun, with fakes of the driver and the replayer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders.built_archive import add_entry
from support.builders.segment_builder import SegmentBuilder

from aerotape import driver_tasks, waiting
from aerotape.aeron import RESOURCE_TEMPORARILY_UNAVAILABLE
from aerotape.archive.error_log import ErrorLog
from aerotape.archive.replay.replay_session import Replays
from aerotape.archive.replay.request import RequestedReplay
from aerotape.catalog.file.catalog import Catalog
from aerotape.errors import AeronError
from aerotape.protocol import ErrorCode
from aerotape.waiting import SOON_NS
from aerotape.worker_arguments import ReplayArguments


class Rig:
    """A stopped recording, and a replay of it that has just been passed to the replayer."""

    def __init__(self, directory: Path, refusals: int = 0) -> None:
        """Let the driver refuse the publication that many times."""
        self.refusals = refusals
        self.sent: list[tuple[Any, ...]] = []
        self.given: list[int] = []
        self.answers: list[Any] = []
        self.stopped: list[int] = []
        self.count = 0
        self.catalog = Catalog.open(directory, create=True)
        self.recording_id = add_entry(self.catalog, SegmentBuilder(), stop_position=4_096)
        pending = SimpleNamespace(poll=self.poll)
        client: Any = SimpleNamespace(
            counters=lambda: None, async_add_exclusive_publication=lambda *_: pending
        )
        config: Any = SimpleNamespace(
            max_concurrent_replays=20,
            file_io_max_length=65_536,
            replay_linger_timeout_ns=0,
            connect_timeout_ns=5_000_000_000,
        )
        recordings: Any = SimpleNamespace(session=lambda _: None)
        replayer: Any = SimpleNamespace(replay=self.replay, stop_replay=self.stopped.append)
        self.replays = Replays(
            config=config,
            archive_id=7,
            client=client,
            catalog=self.catalog,
            recordings=recordings,
            replayer=replayer,
            session_counter=self._counter(),
            errors=ErrorLog(),
            deleted_up_to=lambda _: None,
        )
        requester: Any = SimpleNamespace(
            send_ok=lambda *details: self.sent.append(("ok", *details)),
            deferred_ok=lambda *details: ("where", details),
            send_error=lambda *details: self.sent.append(("error", *details)),
        )
        request = RequestedReplay(self.recording_id, 0, -1, 20, "aeron:ipc")
        self.replays.start(requester, 9, request)
        self.replays.do_work()

    def _counter(self) -> Any:
        def add(delta: int) -> None:
            self.count += delta

        return SimpleNamespace(add=add)

    def poll(self) -> Any:
        if self.refusals:
            self.refusals -= 1
            raise AeronError("session id is in use", RESOURCE_TEMPORARILY_UNAVAILABLE)
        return SimpleNamespace(session_id=5)

    def replay(self, _publication: Any, arguments: ReplayArguments) -> Any:
        self.given.append(arguments.replay_session_id)
        self.answers.append(arguments.answer)
        return SimpleNamespace(position=0)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.catalog.close()


def test_a_replay_stopped_before_its_start_gets_a_response(rig: Rig) -> None:
    """A stop by another client or a truncation is sent to the client, which does not time out."""
    [replay_id] = rig.given
    rig.replays.stop_all(rig.recording_id)
    assert rig.stopped == [replay_id]
    rig.replays.on_done(replay_id, 0, 0, None)
    assert [details[:3] for details in rig.sent] == [("error", 9, ErrorCode.GENERIC)]
    assert rig.count == 0


def test_a_replay_stopped_after_its_start_gets_no_second_response(rig: Rig) -> None:
    """Its stream ends, without another response."""
    [replay_id] = rig.given
    rig.replays.on_ready(replay_id, is_ok_sent=False)
    rig.replays.on_done(replay_id, 0, 0, None)
    assert rig.sent == [("ok", 9, replay_id)]


def test_a_publication_that_the_driver_refuses_temporarily(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is requested again until the connect timeout; then the client receives an error."""
    now_ns = [0]
    for module in (driver_tasks, waiting):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic_ns=lambda: now_ns[0]))
    rig = Rig(tmp_path, refusals=10)
    for now in (1, 4_999_999_999):
        now_ns[0] = now
        rig.replays.do_work()
        assert (rig.sent, rig.given, rig.replays.wants_within_ns) == ([], [], SOON_NS)
    now_ns[0] = 5_000_000_000
    rig.replays.do_work()
    [(kind, *details)] = rig.sent
    assert (kind, *details[:2]) == ("error", 9, ErrorCode.GENERIC)
    assert "failed to create replay publication: " in details[2]
    assert "within 5 s: session id is in use" in details[2]
    assert not rig.replays.is_replayed(rig.recording_id)
    assert rig.replays.wants_within_ns is None
    assert rig.refusals == 8
    rig.catalog.close()


def test_a_replay_confirmed_by_the_replayer_is_confirmed_once(rig: Rig) -> None:
    """The replayer sends the response, which the end of the replay does not repeat."""
    [replay_id] = rig.given
    assert rig.answers == [("where", (9, replay_id))]
    rig.replays.on_ready(replay_id, is_ok_sent=True)
    rig.replays.on_done(replay_id, 0, 0, None)
    assert rig.sent == []
