"""The messages that an archive sends on a control session's response stream, as bytes."""

from __future__ import annotations

import struct

from aerotape.codecs.generated import archive as codecs
from aerotape.protocol import PROTOCOL_VERSION

# Texts quote what clients sent, which may be long; every response channel fits this length.
MAX_ERROR_MESSAGE_LENGTH = 2_000

_HEADER = struct.Struct("<HHHH")
MESSAGE_HEADER_LENGTH = _HEADER.size
_SESSION = struct.Struct("<q")
_SESSION_AND_CORRELATION = struct.Struct("<qq")
DESCRIPTOR_ADDRESS_LENGTH = _SESSION_AND_CORRELATION.size

_DESCRIPTOR_HEADER = _HEADER.pack(
    codecs.RecordingDescriptor.BLOCK_LENGTH,
    codecs.RecordingDescriptor.TEMPLATE_ID,
    codecs.RecordingDescriptor.SCHEMA_ID,
    codecs.RecordingDescriptor.SCHEMA_VERSION,
)


def control_response(
    control_session_id: int,
    correlation_id: int,
    relevant_id: int,
    code: codecs.ControlResponseCode,
    error_message: str = "",
    version: int = PROTOCOL_VERSION,
) -> bytes:
    """Return a ControlResponse; a very long error message is truncated.

    Args:
        relevant_id: the id or position that the request queries, or the error code for ERROR.
    """
    if len(error_message) > MAX_ERROR_MESSAGE_LENGTH:
        error_message = error_message[: MAX_ERROR_MESSAGE_LENGTH - 3] + "..."
    return codecs.ControlResponse(
        control_session_id=control_session_id,
        correlation_id=correlation_id,
        relevant_id=relevant_id,
        code=code,
        version=version,
        # The field is ASCII; channels that clients sent may not be.
        error_message=error_message.encode("ascii", "replace").decode("ascii"),
    ).encode()


def descriptor_prefix(control_session_id: int, correlation_id: int) -> bytes:
    """Return what precedes bytes DESCRIPTOR_ADDRESS_LENGTH to end of a descriptor in a message.

    A descriptor is sent as stored in the catalog except for its first two fields, control session
    and correlation id, which have values only on the wire.
    """
    return _DESCRIPTOR_HEADER + _SESSION_AND_CORRELATION.pack(control_session_id, correlation_id)


def descriptor(control_session_id: int, correlation_id: int, stored: bytes) -> bytes:
    """Return a RecordingDescriptor with the values of one stored in the catalog."""
    return (
        descriptor_prefix(control_session_id, correlation_id) + stored[DESCRIPTOR_ADDRESS_LENGTH:]
    )


def recording_signal(
    control_session_id: int,
    correlation_id: int,
    recording_id: int,
    subscription_id: int,
    position: int,
    signal: codecs.RecordingSignal,
) -> bytes:
    """Return a RecordingSignalEvent."""
    return codecs.RecordingSignalEvent(
        control_session_id=control_session_id,
        correlation_id=correlation_id,
        recording_id=recording_id,
        subscription_id=subscription_id,
        position=position,
        signal=signal,
    ).encode()


def readdressed(message: bytes, control_session_id: int) -> bytes:
    """Return the message with the id of another control session."""
    # The control session id is the first field of every response.
    end = MESSAGE_HEADER_LENGTH + _SESSION.size
    return message[:MESSAGE_HEADER_LENGTH] + _SESSION.pack(control_session_id) + message[end:]
