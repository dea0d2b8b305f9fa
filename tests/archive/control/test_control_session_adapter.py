"""The routing of requests."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.daemon.recording import wait_until
from support.processes import free_port

import aerotape
from aerotape.archive.control import control_session_adapter
from aerotape.archive.control.control_session_adapter import ControlSessionAdapter
from aerotape.archive.error_log import ErrorLog
from aerotape.codecs.generated import archive as codecs

CHANNEL = "aeron:udp?control-mode=response|control=localhost:9000"


def test_routing_does_not_change_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay with a token is handled with the sender's image in its channel, in a copy."""
    message = codecs.ReplayRequest(recording_id=3, replay_channel=CHANNEL, replay_token=7)
    session = SimpleNamespace(
        is_done=False,
        is_authenticated=True,
        is_active=True,
        principal=b"",
        attempt_to_activate=lambda: None,
    )
    services = SimpleNamespace(
        replay_tokens=SimpleNamespace(session_id=lambda token, _: 4 if token == 7 else None),
        authorisation=SimpleNamespace(is_authorised=lambda *_: True),
        errors=ErrorLog(),
        changes=None,
        features=SimpleNamespace(schemas={}),
    )
    options: dict[str, Any] = dict.fromkeys(("client", "authenticator"))
    options["config"] = SimpleNamespace(recording_signals="requester")
    options["sessions"] = {4: session}
    adapter = ControlSessionAdapter(services=services, **options)  # type: ignore[arg-type]
    handled: list[Any] = []
    monkeypatch.setattr(control_session_adapter, "_decode", lambda *_: message)
    monkeypatch.setattr(control_session_adapter, "respond", lambda *args: handled.append(args))
    adapter.on_message(1, 55, 2, b"")
    [(_, routed_to, routed)] = handled
    assert routed_to is session
    assert "response-correlation-id=55" in routed.replay_channel
    assert (routed.recording_id, routed.replay_token) == (3, 7)
    assert message.replay_channel == CHANNEL


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
