"""Events that are pending when an archive closes are still handled."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.daemon.control_rig import RawClient, await_true
from support.daemon.recording import recorded, start_recording
from support.damage.tool_commands import run
from support.jvm.java import FAST_ARCHIVE

import aerotape
from aerotape import _native
from aerotape.archive.archive import Archive
from aerotape.catalog.time_index.file import time_index_path
from aerotape.codecs.generated import archive as codecs

LOCAL = "aeron:ipc?term-length=64k"


class Held:
    """An archive whose conductor can be held at the end of a duty cycle and closed there."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self._conductor = archive._conductor
        self._is_due = threading.Event()
        self._is_held, self._may_go = threading.Event(), threading.Event()
        self._with_replay = False
        self._conductor._agents["holding"] = self

    def do_work(self) -> None:
        """Hold the conductor if that was requested."""
        is_time = not self._with_replay or self._conductor.replays._sessions
        if self._is_due.is_set() and is_time and not self._may_go.is_set():
            self._is_held.set()
            assert self._may_go.wait(30)

    @property
    def wants_within_ns(self) -> None:
        """Never due by itself."""

    def hold(self, *, with_replay: bool = False) -> None:
        """Hold the conductor in the next duty cycle, or in the one that passes a replay to the
        replayer."""
        self._with_replay = with_replay
        self._is_due.set()
        if not with_replay:
            self._conductor._mailbox.wake()
            self.await_held()

    def await_held(self) -> None:
        assert self._is_held.wait(15)

    def close(self) -> None:
        """Close the archive; its conductor runs no further duty cycle."""
        closing = threading.Thread(target=self.archive.close)
        closing.start()
        await_true(lambda: self._conductor._stopping)
        self._may_go.set()
        closing.join(30)
        assert not closing.is_alive()


@pytest.fixture
def held(tmp_path: Path, driver: _native.MediaDriver) -> Iterator[Held]:
    """An archive on a driver that outlives it."""
    properties = {
        **FAST_ARCHIVE,
        "aeron.archive.control.channel.enabled": "false",
        "aeron.archive.low.storage.space.threshold": "1m",
    }
    path = tmp_path / "archive"
    with aerotape.Archive.launch(path, driver.aeron_dir, "external", properties) as archive:
        made = Held(archive)
        yield made
        made._may_go.set()


@contextmanager
def connected(held: Held) -> Iterator[aerotape.ArchiveClient]:
    with aerotape.connect(
        aeron_dir=held.archive.aeron_dir,
        control_request_channel=LOCAL,
        control_response_channel="aeron:ipc",
    ) as client:
        yield client


def errors(directory: Path) -> str:
    return run("tool", directory, "errors").out


def test_a_time_index_that_could_not_be_written_is_logged(held: Held, tmp_path: Path) -> None:
    with connected(held) as client:
        made = start_recording(client, count=1)
        held.hold()
        index = time_index_path(held.archive.archive_dir, made.recording_id)
        index.unlink(missing_ok=True)
        index.mkdir()
        made.send([b"more"])
        held.close()
    assert "time index not written" in errors(tmp_path / "archive")


@pytest.mark.parametrize("fails", [False, True])
def test_a_replay_with_a_response_is_not_refused(
    held: Held, tmp_path: Path, driver: _native.MediaDriver, fails: bool
) -> None:
    """The reason of a failed replay is in the error log."""
    directory = tmp_path / "archive"
    with connected(held) as client:
        made = recorded(client, 20) if fails else start_recording(client, count=20)
        if fails:
            with (directory / f"{made.recording_id}-0.rec").open("r+b") as file:
                # The stream id of the second message's first frame.
                file.seek(made.sent[0][1] + 16)
                file.write(b"\xff\xff\xff\x7f")
        raw = RawClient(client.aeron.native, LOCAL, response_stream_id=801)
        raw.connect()
        subscription = client.aeron.native.add_subscription("aeron:ipc", 802)
        held.hold(with_replay=True)
        asked = raw.request(
            codecs.ReplayRequest,
            recording_id=made.recording_id,
            position=0,
            length=-1,
            replay_stream_id=802,
            file_io_max_length=-1,
            replay_token=-1,
            replay_channel=LOCAL,
        )
        held.await_held()
        assert raw.response(asked).code is codecs.ControlResponseCode.OK
        await_true(lambda: len(subscription.poll(1, 10_000_000)) > 0)
        if fails:
            await_true(lambda: not subscription.is_connected)
        held.close()
        raw.poll(0.1)
        answers = [each for each in raw.received if getattr(each, "correlation_id", -1) == asked]
        assert [each.error_message for each in answers if not fails] == []
    assert ("replay failed" in errors(directory)) == fails
