"""Events of native threads as tuples, which tests compare."""

from __future__ import annotations

from typing import Any

from aerotape import _native

_FIELDS = {
    _native.RecordingStopped: ("recording_id", "position", "error_code", "message"),
    _native.RecordingSynced: ("recording_id", "position"),
    _native.TimeIndexFailed: ("recording_id", "message"),
    _native.ReplayReady: ("replay_session_id", "is_answered"),
    _native.ReplayDone: ("replay_session_id", "position", "error_code", "message"),
    _native.WorkerFailed: ("name", "reason"),
}


def as_tuple(event: _native.Event) -> tuple[Any, ...]:
    """Return the name of the event's class and its fields."""
    fields = _FIELDS.get(type(event), ())
    return (type(event).__name__, *(getattr(event, field) for field in fields))
