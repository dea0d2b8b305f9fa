"""Actions on the journals of entities: their messages, payloads and segment numbers."""

from __future__ import annotations

from aerotape.codecs.entity.actions import Event
from aerotape.codecs.entity.segments import event_segment, head_segment

__all__ = ["Event", "event_segment", "head_segment"]
