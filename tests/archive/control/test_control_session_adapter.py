"""The routing of requests."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from support.daemon.recording import wait_until
from support.processes import free_port

import aerotape
from aerotape.archive.control import control_session_adapter


def test_requests_that_wait_for_the_disk_are_limited(
    tmp_path: Path, aeron_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the limit they are refused; those that wait are performed once the disk responds."""
    responds = threading.Event()
    monkeypatch.setattr(os, "utime", lambda *_, **__: responds.wait())
    monkeypatch.setattr(control_session_adapter, "_MAX_WAITING", 1)
    channel = f"aeron:udp?endpoint=localhost:{free_port()}"
    properties = {
        "aeron.archive.control.channel": channel,
        "aeron.archive.low.storage.space.threshold": "1m",
    }

    def connect(**options: Any) -> aerotape.ArchiveClient:
        return aerotape.connect(aeron_dir=aeron_dir, control_request_channel=channel, **options)

    with (
        aerotape.Archive.launch(tmp_path / "archive", aeron_dir, properties=properties),
        connect() as client,
        connect(timeout_ns=300_000_000) as waiting,
    ):
        try:
            with pytest.raises(aerotape.AeronTimeoutError):
                waiting.start_recording("aeron:ipc", 1)
            with pytest.raises(aerotape.ArchiveError, match="the disk does not respond: 1 "):
                client.start_recording("aeron:ipc", 2)
            client.ping()
        finally:
            responds.set()
        wait_until(lambda: any(client.list_recording_subscriptions()), "the first request")
