"""Replays that end before they have begun, with fakes of what the driver and the replayer do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from aerotape.archive.error_log import ErrorLog
from aerotape.archive.protocol import ErrorCode
from aerotape.catalog.catalog import Catalog
from aerotape.replay.request import ReplayRequest
from aerotape.replay.session import Replays


class Rig:
    """A stopped recording, and a replay of it that the replayer has just been given."""

    def __init__(self, directory: Path) -> None:
        self.sent: list[tuple[Any, ...]] = []
        self.given: list[int] = []
        self.stopped: list[int] = []
        self.count = 0
        self.catalog = Catalog.open(directory, create=True)
        self.recording_id = self.catalog.add_recording(
            start_position=0,
            stop_position=4_096,
            start_timestamp_ms=1,
            initial_term_id=7,
            segment_file_length=65_536,
            term_buffer_length=65_536,
            mtu_length=1_408,
            session_id=3,
            stream_id=10,
            stripped_channel="aeron:ipc",
            original_channel="aeron:ipc",
            source_identity="aeron:ipc",
        )
        publication = SimpleNamespace(session_id=5)
        pending = SimpleNamespace(poll=lambda: publication)
        client: Any = SimpleNamespace(
            counters=lambda: None, async_add_exclusive_publication=lambda *_: pending
        )
        config: Any = SimpleNamespace(
            max_concurrent_replays=20,
            file_io_max_length=65_536,
            replay_linger_timeout_ns=0,
            connect_timeout_ns=1,
        )
        recordings: Any = SimpleNamespace(session=lambda _: None)
        replayer: Any = SimpleNamespace(replay=self.replay, stop_replay=self.stopped.append)
        self.replays = Replays(
            config=config,
            client=client,
            catalog=self.catalog,
            recordings=recordings,
            replayer=replayer,
            session_counter=self._counter(),
            errors=ErrorLog(),
            defer=lambda _: None,
            deleted_up_to=lambda _: None,
        )
        requester: Any = SimpleNamespace(
            send_ok=lambda *details: self.sent.append(("ok", *details)),
            send_error=lambda *details: self.sent.append(("error", *details[:2])),
        )
        request = ReplayRequest(self.recording_id, 0, -1, 20, "aeron:ipc")
        self.replays.start(requester, 9, request)
        self.replays.do_work()

    def _counter(self) -> Any:
        def add(delta: int) -> None:
            self.count += delta

        return SimpleNamespace(add=add)

    def replay(self, _publication: Any, *, replay_session_id: int, **_: Any) -> Any:
        self.given.append(replay_session_id)
        return SimpleNamespace(position=0)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.catalog.close()


def test_a_replay_that_is_stopped_before_it_has_begun_is_answered(rig: Rig) -> None:
    """By another client, or by a truncation: the first one must not wait for its timeout."""
    [replay_id] = rig.given
    rig.replays.stop_all(rig.recording_id)
    assert rig.stopped == [replay_id]
    rig.replays.on_done(replay_id, 0, 0, None)
    assert rig.sent == [("error", 9, ErrorCode.GENERIC)]
    assert rig.count == 0


def test_a_replay_that_is_stopped_later_was_answered(rig: Rig) -> None:
    """Its end is seen in its stream."""
    [replay_id] = rig.given
    rig.replays.on_ready(replay_id)
    rig.replays.on_done(replay_id, 0, 0, None)
    assert rig.sent == [("ok", 9, replay_id)]
