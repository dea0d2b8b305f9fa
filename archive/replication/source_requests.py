"""Requests to the source archive, with the errors that the reference reports to the client.

The client's own pieces speak the protocol (`client`); this module adds the error codes of
a replication and the texts that clients match on.
"""

from __future__ import annotations

from typing import TypeVar

from aerotape.catalog.descriptor import RecordingDescriptor, describe_problem
from aerotape.client.queries import descriptor_of, recording_position
from aerotape.client.session.client_session import ClientSession
from aerotape.client.session.exchange import exchange, list_items
from aerotape.client.session.request import Listing
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import (
    AeronTimeoutError,
    AerotapeError,
    ArchiveError,
    ConfigurationError,
)
from aerotape.protocol import NULL_POSITION, ErrorCode
from aerotape.waiting import Task

T = TypeVar("T")


class ReplicationError(ArchiveError):
    """A failure with a specific error code; all others are GENERIC to the client."""


def connect(opening: Task[T]) -> Task[T]:
    """Open the session with the source archive.

    Raises:
        ReplicationError: REPLICATION_CONNECTION_FAILURE: the source cannot be reached or refuses.
        ConfigurationError: a channel is not a channel URI.
    """
    try:
        return (yield from opening)
    except ConfigurationError:
        raise
    except AerotapeError as error:
        # The reference's text continues with the source's own words.
        reason = str(error).removeprefix("cannot connect: ")
        timeout = "Archive connect timeout: " if isinstance(error, AeronTimeoutError) else ""
        raise ReplicationError(
            f"Replication connection failed={timeout}{reason}",
            ErrorCode.REPLICATION_CONNECTION_FAILURE,
        ) from error


def in_time(request: Task[T], what: str) -> Task[T]:
    """Perform a request; a timeout is reported as "failed {what}", as the reference does."""
    try:
        return (yield from request)
    except AeronTimeoutError as error:
        raise AeronTimeoutError(f"failed {what}: {error}") from error


def source_descriptor(session: ClientSession, recording_id: int) -> Task[RecordingDescriptor]:
    """Return the descriptor of the source recording.

    Raises:
        ReplicationError: UNKNOWN_RECORDING: the source has no such recording.
        ArchiveError: the descriptor is damaged, or the source responds with an error.
        AeronTimeoutError: the source does not respond.
    """
    # Not `list_recording`, which refuses a negative id before the source can.
    listing = Listing(
        codecs.ListRecordingRequest(recording_id=recording_id), f"list recording {recording_id}", 1
    )
    what = f"to fetch remote recording descriptor: recordingId={recording_id}"
    found = yield from in_time(list_items(session, listing), what)
    if not found:
        raise ReplicationError(
            f"unknown src recording id {recording_id}", ErrorCode.UNKNOWN_RECORDING
        )
    descriptor = descriptor_of(found[0])
    if problem := describe_problem(descriptor):
        raise ArchiveError(f"src recording {recording_id} has a damaged descriptor: {problem}")
    return descriptor


def source_position(session: ClientSession, recording_id: int) -> Task[int]:
    """Return the recorded position of the live source recording, bytes.

    Raises:
        ArchiveError: the recording has stopped, or the source responds with an error.
        AeronTimeoutError: the source does not respond.
    """
    asked = exchange(session, recording_position(recording_id))
    position = yield from in_time(asked, "to get recording position of the source")
    if position == NULL_POSITION:
        raise no_live_source()
    return position


def no_live_source() -> ArchiveError:
    """Return the error of a source recording that has stopped."""
    return ArchiveError("cannot live merge without active source recording")
