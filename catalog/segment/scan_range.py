"""A range of a recording's positions, as native scans read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.frame_header import max_frame_length


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRange:
    """Messages of one recording that begin from `from_position` up to `to_position`.

    Plain values only, so that it can be sent to another process that sees the same directory.

    Attributes:
        archive_dir: path of the directory, or its URL in remote storage.
        max_frame_length: of a data frame, bytes: the MTU.
        limit_position: the recorded position when the range was created. Nothing is read after
            it; a message that begins in the range is read to its end.
        from_boundary: `from_position` is known to be a message boundary. Scanning begins there
            instead of at the start of its term.
    """

    archive_dir: str
    recording_id: int
    start_position: int
    term_length: int
    segment_length: int
    initial_term_id: int
    session_id: int
    stream_id: int
    max_frame_length: int
    from_position: int
    to_position: int
    limit_position: int
    from_boundary: bool = False

    @classmethod
    def of(
        cls,
        archive_dir: object,
        descriptor: RecordingDescriptor,
        from_position: int,
        to_position: int,
        limit_position: int,
        *,
        from_boundary: bool = False,
        **others: Any,
    ) -> Self:
        """Return a range of positions of a recording that are known to be recorded."""
        return cls(
            archive_dir=str(archive_dir),
            recording_id=descriptor.recording_id,
            start_position=descriptor.start_position,
            term_length=descriptor.term_buffer_length,
            segment_length=descriptor.segment_file_length,
            initial_term_id=descriptor.initial_term_id,
            session_id=descriptor.session_id,
            stream_id=descriptor.stream_id,
            max_frame_length=max_frame_length(descriptor.mtu_length),
            from_position=from_position,
            to_position=to_position,
            limit_position=limit_position,
            from_boundary=from_boundary,
            **others,
        )
