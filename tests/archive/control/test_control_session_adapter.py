"""Routing of control messages to their sessions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from aerotape.archive.control import control_session_adapter, requests
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
        replay_tokens=SimpleNamespace(session=lambda token, _: session if token == 7 else None),
        authorisation=SimpleNamespace(is_authorised=lambda *_: True),
        errors=ErrorLog(),
    )
    options: dict[str, Any] = dict.fromkeys(("client", "sessions", "authenticator"))
    options["config"] = SimpleNamespace(recording_signals="requester")
    adapter = ControlSessionAdapter(services=services, **options)  # type: ignore[arg-type]
    handled: list[Any] = []
    monkeypatch.setattr(control_session_adapter, "_decode", lambda _: message)
    monkeypatch.setattr(requests, "handle", lambda *args: handled.append(args))
    adapter.on_message(1, 55, 2, b"", 0)
    [(_, routed_to, routed)] = handled
    assert routed_to is session
    assert "response-correlation-id=55" in routed.replay_channel
    assert (routed.recording_id, routed.replay_token) == (3, 7)
    assert message.replay_channel == CHANNEL
