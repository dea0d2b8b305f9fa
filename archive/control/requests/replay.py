"""Requests that start and stop replays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aerotape.archive.control.requests.handling import Handlers
from aerotape.archive.protocol import NULL_VALUE
from aerotape.codecs import archive as codecs
from aerotape.replay.request import ReplayRequest

if TYPE_CHECKING:
    from aerotape.archive.conductor import Conductor
    from aerotape.archive.control.session import ControlSession


def _replay(conductor: Conductor, session: ControlSession, request: codecs.ReplayRequest) -> None:
    _start(conductor, session, request)


def _bounded_replay(
    conductor: Conductor, session: ControlSession, request: codecs.BoundedReplayRequest
) -> None:
    _start(conductor, session, request, request.limit_counter_id)


def _start(
    conductor: Conductor,
    session: ControlSession,
    request: codecs.ReplayRequest | codecs.BoundedReplayRequest,
    limit_counter_id: int | None = None,
) -> None:
    conductor.replays.start(
        session,
        request.correlation_id,
        ReplayRequest(
            recording_id=request.recording_id,
            position=request.position,
            length=request.length,
            stream_id=request.replay_stream_id,
            channel=request.replay_channel,
            file_io_max_length=request.file_io_max_length,
            limit_counter_id=limit_counter_id,
        ),
    )


def _stop_replay(
    conductor: Conductor, session: ControlSession, request: codecs.StopReplayRequest
) -> None:
    # The reference answers OK with 0 in both cases, and its clients do not read the number.
    is_running = conductor.replays.stop(request.replay_session_id)
    session.send_ok(request.correlation_id, 0 if is_running else NULL_VALUE)


def _stop_all_replays(
    conductor: Conductor, session: ControlSession, request: codecs.StopAllReplaysRequest
) -> None:
    conductor.replays.stop_all(request.recording_id)
    session.send_ok(request.correlation_id)


def _replay_token(
    conductor: Conductor, session: ControlSession, request: codecs.ReplayTokenRequest
) -> None:
    token = conductor.replay_tokens.issue(session, request.recording_id)
    session.send_ok(request.correlation_id, token)


HANDLERS: Handlers = {
    codecs.ReplayRequest: _replay,
    codecs.BoundedReplayRequest: _bounded_replay,
    codecs.StopReplayRequest: _stop_replay,
    codecs.StopAllReplaysRequest: _stop_all_replays,
    codecs.ReplayTokenRequest: _replay_token,
}
