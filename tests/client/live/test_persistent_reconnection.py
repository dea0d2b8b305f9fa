"""A persistent subscription reconnects to an archive that starts, stops and starts again."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.daemon.archives import EMBEDDED_DRIVER, KINDS, Kind
from support.daemon.live import Live, cut_off, poll_until, read_until_live
from support.jvm.java import FAST_ARCHIVE, JavaArchive, free_port

import aerotape
from aerotape.client.live.persistent_types import PersistentEvent, PersistentState
from aerotape.errors import AeronTimeoutError, PersistentSubscriptionError

Reason = PersistentSubscriptionError.Reason


@pytest.mark.parametrize("kind", KINDS)
def test_an_archive_that_restarts(kind: Kind, tmp_path: Path) -> None:
    """It starts without an archive, reads when one starts, and stays live while the archive is
    down."""
    aeron_dir, control_port, live = tmp_path / "aeron", free_port(), None
    events: list[PersistentEvent] = []
    received: list[aerotape.Message] = []
    driver_properties = {**EMBEDDED_DRIVER, "aeron.image.liveness.timeout": "1s"}
    with aerotape.MediaDriver.launch(aeron_dir, driver_properties):
        archive = _OnOff(kind, tmp_path / "archive", aeron_dir, control_port)
        archive.start()
        client = aerotape.connect(
            aeron_dir=aeron_dir, control_request_channel=archive.control_channel
        )
        # The publication belongs to an Aeron client that outlives archive and control session.
        live = Live(client, 50)
        live.send(10)
        client._session.close()
        archive.stop()
        with aerotape.persistent_subscription(
            live.made.recording_id,
            live.subscriber_channel,
            start="start",
            on_event=events.append,
            aeron_dir=aeron_dir,
            control_request_channel=archive.control_channel,
            timeout_ns=1_000_000_000,
        ) as subscription:
            poll_until(subscription, received, lambda: bool(events))
            assert received == []
            assert subscription.state is PersistentState.AWAIT_ARCHIVE_CONNECTION
            assert isinstance(events[0].error, AeronTimeoutError)
            archive.start()
            recorder = archive.connect()
            recorder.extend_recording(
                live.made.recording_id, f"{live.channel}|session-id={live.made.session_id}",
                live.made.stream_id, "local",
            )  # fmt: skip
            read_until_live(subscription, live, received)
            with live.sending():
                archive.stop()
                count = len(received) + 200
                poll_until(subscription, received, lambda: len(received) >= count)
                assert subscription.is_live
            read_until_live(subscription, live, received)
            live.check(received)
            # Messages missed from here on are not recorded.
            cut_off(subscription)
            archive.start()
            with pytest.raises(PersistentSubscriptionError, match="recording stopped at") as caught:
                poll_until(subscription, received, lambda: False)
            assert caught.value.reason is Reason.INVALID_START_POSITION
            recorder.close()
        client.close()
        archive.stop()
    assert received[-1].end_position >= live.made.end
    kinds = [each.kind for each in events if each.kind != "error"]
    assert kinds == ["live-joined", "live-left"]


class _OnOff:
    """An archive on an external driver that can be restarted in its directory."""

    def __init__(self, kind: Kind, archive_dir: Path, aeron_dir: Path, port: int) -> None:
        self.control_channel = f"aeron:udp?endpoint=localhost:{port}"
        self._kind, self._archive_dir, self._aeron_dir = kind, archive_dir, aeron_dir
        self._port = port
        self._running: JavaArchive | aerotape.Archive | None = None

    def start(self) -> None:
        if self._kind == "java":
            self._running = JavaArchive(
                self._archive_dir, self._aeron_dir, driver="external", control_port=self._port
            ).start()
        else:
            self._running = aerotape.Archive.launch(
                dir=self._archive_dir,
                aeron_dir=self._aeron_dir,
                driver="external",
                properties={**FAST_ARCHIVE, "aeron.archive.control.channel": self.control_channel},
            )

    def stop(self) -> None:
        assert self._running is not None
        if isinstance(self._running, JavaArchive):
            self._running.stop()
        else:
            self._running.close()

    def connect(self) -> aerotape.ArchiveClient:
        return aerotape.connect(
            aeron_dir=self._aeron_dir, control_request_channel=self.control_channel
        )
