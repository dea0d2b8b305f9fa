"""A message of a subscription or a replay."""

from __future__ import annotations

from typing import NamedTuple


class Message(NamedTuple):
    """A message, its fragments put back together.

    Attributes:
        payload: the bytes that were sent.
        end_position: position in the stream at the end of the message's last frame, bytes.
        session_id: session of the publication; of a replayed message, of the recording.
        stream_id: stream of the publication; of a replayed message, of the recording.
        term_id: of the message's first frame, like the three that follow.
        term_offset: bytes.
        flags: header flags.
        reserved_value: the header's reserved field, set by the publisher.
        position: position in the stream where the message's first frame begins, bytes.
    """

    payload: bytes
    end_position: int
    session_id: int
    stream_id: int
    term_id: int
    term_offset: int
    flags: int
    reserved_value: int
    position: int
