"""Requests that start and stop replications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aerotape.archive.control.requests.handling import Handlers
from aerotape.archive.replication.request import ReplicationRequest
from aerotape.codecs.generated import archive as codecs
from aerotape.protocol import NULL_VALUE

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.control.services import Services


def _replicate(
    services: Services, session: ControlSession, request: codecs.ReplicateRequest
) -> None:
    _start(services, session, request)


def _tagged_replicate(
    services: Services, session: ControlSession, request: codecs.TaggedReplicateRequest
) -> None:
    _start(
        services,
        session,
        request,
        channel_tag_id=request.channel_tag_id,
        subscription_tag_id=request.subscription_tag_id,
    )


def _replicate_2(
    services: Services, session: ControlSession, request: codecs.ReplicateRequest2
) -> None:
    _start(
        services,
        session,
        request,
        replication_channel=request.replication_channel,
        stop_position=request.stop_position,
        channel_tag_id=request.channel_tag_id,
        subscription_tag_id=request.subscription_tag_id,
        # Those that an older client does not know.
        file_io_max_length=_or_null(request.file_io_max_length),
        replication_session_id=_or_null(request.replication_session_id),
        encoded_credentials=request.encoded_credentials or b"",
        src_response_channel=request.src_response_channel or "",
    )


def _start(
    services: Services,
    session: ControlSession,
    request: codecs.ReplicateRequest | codecs.TaggedReplicateRequest | codecs.ReplicateRequest2,
    *,
    replication_channel: str = "",
    **particulars: Any,
) -> None:
    """Start with what all requests say, and what only one of them does."""
    services.replications.start(
        session,
        request.correlation_id,
        ReplicationRequest(
            src_recording_id=request.src_recording_id,
            src_control_channel=request.src_control_channel,
            src_control_stream_id=request.src_control_stream_id,
            replication_channel=replication_channel,
            dst_recording_id=request.dst_recording_id,
            live_destination=request.live_destination,
            **particulars,
        ),
    )


def _or_null(value: int | None) -> int:
    return NULL_VALUE if value is None else value


def _stop_replication(
    services: Services, session: ControlSession, request: codecs.StopReplicationRequest
) -> None:
    services.replications.stop(session, request.correlation_id, request.replication_id)


HANDLERS: Handlers = {
    codecs.ReplicateRequest: _replicate,
    codecs.TaggedReplicateRequest: _tagged_replicate,
    codecs.ReplicateRequest2: _replicate_2,
    codecs.StopReplicationRequest: _stop_replication,
}
