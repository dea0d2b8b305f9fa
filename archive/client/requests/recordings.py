"""Requests for recordings that several parts of the client send."""

from __future__ import annotations

from aerotape.archive.client import arguments
from aerotape.archive.client.session.request import Call
from aerotape.codecs.generated import archive as codecs


def stop_recording_by_identity(recording_id: int) -> Call[bool]:
    """Stop a live recording by its id; the result is False when it was not live."""
    request = codecs.StopRecordingByIdentityRequest(
        recording_id=arguments.natural("recording_id", recording_id)
    )
    what = f"stop recording {recording_id}"
    return Call(request, what, lambda answer: answer.relevant_id != 0)
