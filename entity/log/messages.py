"""The records that a topic object writes."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import Any

from aerotape import __version__
from aerotape.codecs.entity.actions import ActionHeader, ActionKind, Event
from aerotape.codecs.entity.messages import encode_fields
from aerotape.codecs.entity.payload import encode_events
from aerotape.errors import CodecError, EntityError


class Messages:
    """Encodes records of one topic and origin, with the time of the call."""

    def __init__(self, topic: str, origin: str) -> None:
        self._topic = topic
        self._origin = origin
        self._version = f"aerotape {__version__}"

    def append(
        self,
        kind: ActionKind,
        id: str,
        events: Sequence[Event],
        expire_after_ns: int | None = None,
        metadata: Any = None,
        payload_metadata: Any = None,
    ) -> tuple[bytes, ActionHeader]:
        """Return the message and the header of an append or a snapshot (EntityError)."""
        try:
            payload, payload_type = encode_events(events, expire_after_ns, payload_metadata)
            now_ms = time.time_ns() // 1_000_000
            first, last = events[0].seq_nr, events[-1].seq_nr
            message = encode_fields(
                kind,
                id,
                now_ms,
                self._origin,
                self._version,
                metadata,
                first,
                last,
                payload_type,
                payload,
            )
            return message, ActionHeader(kind, id.encode(), first, last, now_ms)
        except CodecError as error:
            what = "save a snapshot of" if kind is ActionKind.SNAPSHOT else "append to"
            raise EntityError(f"cannot {what} {id!r}: {error}", self._topic) from error

    def other(
        self, kind: ActionKind, id: str, to_seq_nr: int = 0, mark_id: str = ""
    ) -> tuple[bytes, ActionHeader]:
        """Return the message and the header of another action (EntityError)."""
        now_ms = time.time_ns() // 1_000_000
        try:
            message = encode_fields(
                kind,
                id,
                now_ms,
                self._origin,
                self._version,
                to_seq_nr=to_seq_nr,
                mark_id=mark_id,
            )
            return message, ActionHeader(kind, id.encode(), 0, to_seq_nr, now_ms)
        except CodecError as error:
            raise EntityError(str(error), self._topic) from error

    def mark(self, id: str) -> bytes:
        """Return a new mark of a reader of a journal."""
        return self.other(ActionKind.MARK, id, mark_id=uuid.uuid4().hex)[0]
