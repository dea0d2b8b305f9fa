"""Messages of the recording events stream, encoded for the recorder, which publishes them."""

from __future__ import annotations

from aerotape.codecs.generated import archive as codecs


def recording_events(
    *,
    recording_id: int,
    join_position: int,
    session_id: int,
    stream_id: int,
    channel: str,
    source_identity: str,
) -> tuple[bytes, bytes, bytes]:
    """Return the events of a recording: started, progress, stopped.

    The recorder fills in the position, the last field of the last two.

    Args:
        join_position: where the image begins in the recording, bytes.
        channel: the original channel of the request.
    """
    return (
        codecs.RecordingStarted(
            recording_id=recording_id,
            start_position=join_position,
            session_id=session_id,
            stream_id=stream_id,
            channel=channel,
            source_identity=source_identity,
        ).encode(),
        codecs.RecordingProgress(recording_id=recording_id, start_position=join_position).encode(),
        codecs.RecordingStopped(recording_id=recording_id, start_position=join_position).encode(),
    )
