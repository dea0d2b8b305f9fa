"""Requests that start and stop replays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aerotape.archive.control.feature import Handlers
from aerotape.archive.replay.request import RequestedReplay
from aerotape.codecs.generated import archive as codecs
from aerotape.protocol import NULL_VALUE

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.control.services import Services


def _replay(
    services: Services,
    session: ControlSession,
    request: codecs.ReplayRequest | codecs.BoundedReplayRequest,
) -> None:
    services.replays.start(session, request.correlation_id, RequestedReplay.of(request))


def _stop_replay(
    services: Services, session: ControlSession, request: codecs.StopReplayRequest
) -> None:
    # The reference responds OK with 0 in both cases, and its clients ignore the number.
    is_running = services.replays.stop(request.replay_session_id)
    session.send_ok(request.correlation_id, 0 if is_running else NULL_VALUE)


def _stop_all_replays(
    services: Services, session: ControlSession, request: codecs.StopAllReplaysRequest
) -> None:
    services.replays.stop_all(request.recording_id)
    session.send_ok(request.correlation_id)


def _replay_token(
    services: Services, session: ControlSession, request: codecs.ReplayTokenRequest
) -> None:
    token = services.replay_tokens.issue(session.session_id, request.recording_id)
    session.send_ok(request.correlation_id, token)


HANDLERS: Handlers = {
    codecs.ReplayRequest: _replay,
    codecs.BoundedReplayRequest: _replay,
    codecs.StopReplayRequest: _stop_replay,
    codecs.StopAllReplaysRequest: _stop_all_replays,
    codecs.ReplayTokenRequest: _replay_token,
}
