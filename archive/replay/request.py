"""Replay requests: validated against the recording, with the resulting range and channel.

The checks and their error codes are the reference's. The native replayer checks what needs the
recorded bytes: whether a frame begins at the position.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from aerotape.catalog.descriptor import RecordingDescriptor, describe_problem
from aerotape.catalog.directory import recording_key
from aerotape.channel_uri import ChannelUri, initial_position, stripped_channel
from aerotape.errors import ArchiveError
from aerotape.frame_header import FRAME_ALIGNMENT
from aerotape.protocol import (
    NULL_POSITION,
    REPLAY_ALL_AND_FOLLOW,
    REPLAY_ALL_AND_STOP,
    ErrorCode,
)
from aerotape.units import parse_duration_ns

MAX_POSITION = (1 << 63) - 1


class ReplayMessage(Protocol):
    """A message that requests a replay; that of a bounded one has a `limit_counter_id`, too."""

    recording_id: int
    position: int
    length: int
    replay_stream_id: int
    replay_channel: str

    @property
    def file_io_max_length(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class ImportedRecording:
    """A recording that was imported from another archive.

    Attributes:
        scope_id: its scope, unsigned.
        directory: the directory of its segment files.
        descriptor: its descriptor, with a stop position.
    """

    scope_id: int
    directory: Path
    descriptor: RecordingDescriptor


@dataclass(slots=True)
class RequestedReplay:
    """Parameters of a replay; a bounded replay names the counter that bounds it.

    Attributes:
        position: first position, bytes; -1 for the start position of the recording.
        length: bytes; -1 to the end, following a live recording, -2 to the current end.
        file_io_max_length: of a read, bytes; None or 0 for the archive's default.
        imported: the recording, if it is not one of the archive's own.
    """

    recording_id: int
    position: int
    length: int
    stream_id: int
    channel: str
    file_io_max_length: int | None = None
    limit_counter_id: int | None = None
    imported: ImportedRecording | None = None

    @classmethod
    def of(
        cls, message: ReplayMessage, imported: ImportedRecording | None = None
    ) -> RequestedReplay:
        """Take the parameters from a message of the control protocol."""
        return cls(
            recording_id=message.recording_id,
            position=message.position,
            length=message.length,
            stream_id=message.replay_stream_id,
            channel=message.replay_channel,
            file_io_max_length=message.file_io_max_length,
            limit_counter_id=getattr(message, "limit_counter_id", None),
            imported=imported,
        )

    @property
    def key(self) -> int:
        """Id of the recording among all that the archive can replay (`recording_key`)."""
        imported_from = None if self.imported is None else self.imported.scope_id
        return recording_key(imported_from, self.recording_id)


@dataclass(slots=True)
class ReplayPlan:
    """The range of a valid request, and the stop position known so far; bytes."""

    position: int
    length: int
    stop_position: int


def plan(
    request: RequestedReplay,
    descriptor: RecordingDescriptor,
    limit_position: int | None,
    buffer_length: int,
) -> ReplayPlan:
    """Check a replay request against its recording as the reference does.

    Args:
        limit_position: of the live recording or the bounding counter; None for a stopped
            recording without a bounding counter.
        buffer_length: the longest read of the archive, bytes.

    Raises:
        ArchiveError: with the reference's error code.
    """
    recording_id = request.recording_id
    if request.position != NULL_POSITION:
        _check_position(request.position, descriptor)
        position = request.position
    else:
        position = descriptor.start_position
    for name, capacity in (
        ("fileIoMaxLength", request.file_io_max_length or 0),
        ("replayBufferCapacity", buffer_length),
    ):
        if 0 < capacity < descriptor.mtu_length:
            raise ArchiveError(
                f"{name}={capacity} < mtuLength={descriptor.mtu_length}: expected the MTU of"
                f" recording {recording_id} at least"
            )
    if limit_position is not None and limit_position != NULL_POSITION:
        if position > limit_position:
            raise _beyond(recording_id, position, limit_position)
        stop_position = limit_position
        max_length = MAX_POSITION - position
    else:
        stop_position = descriptor.stop_position
        max_length = stop_position - position
    if request.length == REPLAY_ALL_AND_FOLLOW:
        length = max_length
    elif request.length == REPLAY_ALL_AND_STOP:
        length = stop_position - position
        if length == 0:
            raise ArchiveError(
                "when replaying and stopping the replay length must be non-zero,"
                f" recordingId={recording_id}: recording {recording_id} has nothing to replay from"
                f" position {position}",
                ErrorCode.EMPTY_RECORDING,
            )
    else:
        length = min(request.length, max_length)
    if length < 0:
        raise ArchiveError(
            f"replay length must be positive: replayLength={length}, length={request.length},"
            f" stopPosition={stop_position}, replayPosition={position}"
            f" for recording {recording_id}"
        )
    return ReplayPlan(position, length, stop_position)


def check_descriptor(descriptor: RecordingDescriptor, *, is_live: bool) -> None:
    """Refuse a recording that cannot be replayed.

    Args:
        is_live: it is being recorded.

    Raises:
        ArchiveError: its descriptor is damaged, or its end is unknown.
    """
    recording_id = descriptor.recording_id
    problem = describe_problem(descriptor)
    if problem:
        raise ArchiveError(f"recording {recording_id} has a damaged descriptor: {problem}")
    if descriptor.is_active and not is_live:
        raise ArchiveError(
            f"recording {recording_id} is not being recorded and has no stop position: where it"
            " ends could not be found when the archive started, which has logged why"
        )


def check_deletion(
    replay_plan: ReplayPlan, descriptor: RecordingDescriptor, deleted_up_to: int | None
) -> None:
    """Refuse a replay past the stop position into segments that are still being deleted.

    Only a counter that bounds a replay leads past it. Of an active recording the segments that are
    deleted precede the start position. The reference of version 1.54 refuses to replay it, that of
    1.51 refuses nothing.

    Args:
        deleted_up_to: base position of the last of these segments; None without them.

    Raises:
        ArchiveError: wait for the DELETE signal.
    """
    if deleted_up_to is None or descriptor.is_active:
        return
    if min(deleted_up_to, replay_plan.stop_position) > descriptor.stop_position:
        raise ArchiveError(
            f"cannot start replay of recording {descriptor.recording_id} due to an outstanding"
            " delete operation: wait for the DELETE signal"
        )


def _check_position(position: int, descriptor: RecordingDescriptor) -> None:
    recording_id = descriptor.recording_id
    if position % FRAME_ALIGNMENT:
        raise ArchiveError(
            f"requested replay start position={position} is not a multiple of FRAME_ALIGNMENT"
            f" ({FRAME_ALIGNMENT}) for recording {recording_id}"
        )
    if position < descriptor.start_position:
        raise ArchiveError(
            f"requested replay start position={position} is less than recording start position="
            f"{descriptor.start_position} for recording {recording_id}",
            ErrorCode.INVALID_POSITION,
        )
    if descriptor.stop_position != NULL_POSITION and position >= descriptor.stop_position:
        raise _beyond(recording_id, position, descriptor.stop_position)


def _beyond(recording_id: int, position: int, limit_position: int) -> ArchiveError:
    return ArchiveError(
        f"requested replay start position={position} must be less than the limit position="
        f"{limit_position} for recording {recording_id}",
        ErrorCode.INVALID_POSITION,
    )


def replay_channel(
    channel: str, descriptor: RecordingDescriptor, position: int, linger_timeout_ns: int
) -> str:
    """Return the channel of a replay's publication.

    Raises:
        ConfigurationError: the client's channel is invalid.
    """
    uri = ChannelUri.parse(channel)
    additions: dict[str, str | int | bool] = dict(
        initial_position(position, descriptor.initial_term_id, descriptor.term_buffer_length)
    )
    for name in ("eos", "sparse"):
        value = uri.get(name)
        if value is not None:
            additions[name] = value
    linger = uri.get("linger")
    additions["mtu"] = descriptor.mtu_length
    additions["linger"] = (
        linger_timeout_ns if linger is None else parse_duration_ns("linger", linger)
    )
    return stripped_channel(uri, **additions)


def replay_session_id(replay_id: int, publication_session_id: int) -> int:
    """Return a replay session id: number in the high half, session id in the low half."""
    unsigned = (replay_id & 0xFFFF_FFFF) << 32 | publication_session_id & 0xFFFF_FFFF
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned
