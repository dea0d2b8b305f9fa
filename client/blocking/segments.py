# Generated from asynchronous/segments.py: do not edit.
# Regenerate: python -m aerotape.client.generate
"""Requests of the blocking client for segment files, and to replicate recordings.

A recording is stored in segment files of one length. Its start position may be moved to the start
of any of them: the preceding files are then *detached*, and stay in the directory until they are
deleted, moved away, or attached again. `segment_base_position` returns where a segment begins.
"""

from __future__ import annotations

from aerotape.client import arguments, channels, recordings
from aerotape.client.blocking_requests import BlockingRequests
from aerotape.client.session.request import Call, nothing, relevant_id
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import ConfigurationError, UnknownReplicationError
from aerotape.protocol import NULL_VALUE


class SegmentMethods(BlockingRequests):
    """Segment files of recordings, and replication."""

    def detach_segments(self, recording_id: int, new_start_position: int) -> None:
        """Move the start position of a recording; the files preceding it stay in the directory.

        Args:
            new_start_position: the beginning of a segment, bytes.

        Raises:
            UnknownRecordingError: there is no such recording.
            InvalidPositionError: no segment begins there, it precedes the start position, or
                replays or the recording itself have not reached it.
        """
        request = codecs.DetachSegmentsRequest(
            recording_id=arguments.natural("recording_id", recording_id),
            new_start_position=arguments.natural("new_start_position", new_start_position),
        )
        what = f"detach the segments of recording {recording_id} before {new_start_position}"
        return self._run(Call(request, what, nothing))

    def delete_detached_segments(self, recording_id: int) -> int:
        """Delete the files of a recording that have been detached.

        Returns:
            The number of files to be deleted; a DELETE signal reports the end.

        Raises:
            UnknownRecordingError: there is no such recording.
        """
        request = codecs.DeleteDetachedSegmentsRequest(
            recording_id=arguments.natural("recording_id", recording_id)
        )
        return self._run(
            Call(request, f"delete the detached segments of recording {recording_id}", relevant_id)
        )

    def purge_segments(self, recording_id: int, new_start_position: int) -> int:
        """Move the start position of a recording and delete the preceding files.

        Args:
            new_start_position: as in `detach_segments`, with the same errors.

        Returns:
            The number of files to be deleted; a DELETE signal reports the end.
        """
        return self._run(recordings.purge_segments(recording_id, new_start_position))

    def attach_segments(self, recording_id: int) -> int:
        """Move the start position of a recording back to its earliest detached file.

        Returns:
            How many files were attached.

        Raises:
            UnknownRecordingError: there is no such recording.
            ArchiveError: a file does not belong to the recording.
        """
        request = codecs.AttachSegmentsRequest(
            recording_id=arguments.natural("recording_id", recording_id)
        )
        return self._run(
            Call(request, f"attach the segments of recording {recording_id}", relevant_id)
        )

    def migrate_segments(self, src_recording_id: int, dst_recording_id: int) -> int:
        """Move the files of one recording to the front or the end of another.

        Both must have stopped, meet at a segment's boundary, and agree on initial term id, stream
        id, and the lengths of terms, segments and MTU. The source is left empty.

        Returns:
            How many files were moved.

        Raises:
            UnknownRecordingError: there is no such recording.
            ArchiveError: the source has not stopped, or the two do not fit together.
        """
        request = codecs.MigrateSegmentsRequest(
            src_recording_id=arguments.natural("src_recording_id", src_recording_id),
            dst_recording_id=arguments.natural("dst_recording_id", dst_recording_id),
        )
        what = f"migrate the segments of recording {src_recording_id} to {dst_recording_id}"
        return self._run(Call(request, what, relevant_id))

    def replicate(
        self,
        src_recording_id: int,
        src_control_channel: str,
        src_control_stream_id: int = channels.DEFAULT_CONTROL_STREAM_ID,
        *,
        dst_recording_id: int | None = None,
        stop_position: int | None = None,
        live_destination: str | None = None,
        replication_channel: str | None = None,
        channel_tag_id: int | None = None,
        subscription_tag_id: int | None = None,
        file_io_max_length: int | None = None,
        replication_session_id: int | None = None,
        encoded_credentials: bytes = b"",
        src_response_channel: str | None = None,
    ) -> int:
        """Replicate a recording from another archive, the source.

        The archive reports progress in signals whose `correlation_id` is the replication's id:
        REPLICATE when it created a recording or EXTEND when it extends one, SYNC at the end of a
        stopped source, MERGE when it joined the live stream, REPLICATE_END when the replication has
        ended for any reason; an error that ends it arrives before (`poll_for_errors`).

        Args:
            src_recording_id: the recording at the source.
            src_control_channel: where the source listens, as this archive reaches it.
            src_control_stream_id: stream on that channel.
            dst_recording_id: the stopped recording to extend. None: a new one.
            stop_position: where to end, bytes. None: at the end of the recording, which is
                followed while it is live.
            live_destination: where this archive can receive the live stream of the source's
                recording, to join it once it has caught up.
            replication_channel: where the source replays to. None: the archive's default.
            channel_tag_id: tag of the channel of the archive's subscription, so that other clients
                can add destinations to it.
            subscription_tag_id: tag of that subscription.
            file_io_max_length: the longest single read of the source, bytes.
            replication_session_id: session of the replay. None: any. Not with `live_destination`.
            encoded_credentials: for a source that requires authentication.
            src_response_channel: the response channel for the source's responses.

        Returns:
            The replication's id, for `stop_replication`.

        Raises:
            UnknownRecordingError: there is no recording to extend with this id.
            ActiveRecordingError: it has not stopped.
            ConfigurationError: the arguments contradict each other, or cannot be sent.
        """
        if live_destination is not None and replication_session_id is not None:
            raise ConfigurationError(
                "give either live_destination or replication_session_id, not both: the live stream "
                "has its own session id",
                "replication_session_id",
            )
        if not isinstance(encoded_credentials, bytes):
            raise ConfigurationError("encoded_credentials must be bytes", "encoded_credentials")
        session_id = NULL_VALUE
        if replication_session_id is not None:
            session_id = arguments.any_int32("replication_session_id", replication_session_id)
        request = codecs.ReplicateRequest2(
            src_recording_id=arguments.natural("src_recording_id", src_recording_id),
            dst_recording_id=arguments.optional_natural("dst_recording_id", dst_recording_id),
            stop_position=arguments.optional_natural("stop_position", stop_position),
            channel_tag_id=arguments.optional_natural("channel_tag_id", channel_tag_id),
            subscription_tag_id=arguments.optional_natural(
                "subscription_tag_id", subscription_tag_id
            ),
            src_control_stream_id=arguments.any_int32(
                "src_control_stream_id", src_control_stream_id
            ),
            file_io_max_length=arguments.optional_length("file_io_max_length", file_io_max_length),
            replication_session_id=session_id,
            src_control_channel=arguments.channel("src_control_channel", src_control_channel),
            live_destination=arguments.optional_channel("live_destination", live_destination),
            replication_channel=arguments.optional_channel(
                "replication_channel", replication_channel
            ),
            encoded_credentials=encoded_credentials,
            src_response_channel=arguments.optional_channel(
                "src_response_channel", src_response_channel
            ),
        )
        what = f"replicate recording {src_recording_id} from {src_control_channel}"
        return self._run(Call(request, what, relevant_id))

    def stop_replication(self, replication_id: int) -> None:
        """Stop a replication.

        Raises:
            UnknownReplicationError: there is no replication with this id.
        """
        request = codecs.StopReplicationRequest(
            replication_id=arguments.any_int64("replication_id", replication_id)
        )
        return self._run(Call(request, f"stop replication {replication_id}", nothing))

    def try_stop_replication(self, replication_id: int) -> bool:
        """As `stop_replication`, but return False when there is none."""
        try:
            self.stop_replication(replication_id)
        except UnknownReplicationError:
            return False
        return True
