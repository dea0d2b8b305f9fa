"""The recording events stream: messages that tell subscribers what becomes of recordings.

RecordingStarted, RecordingProgress and RecordingStopped of the archive schema. The recorder itself
publishes them, so that they come in order and its position is the one that is told; here is what
it needs for that.
"""

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

    The position, last field of the last two, is the recorder's to fill in.

    Args:
        join_position: where the stream was joined, bytes; of an extended recording not its start.
        channel: as the client asked for it.
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
