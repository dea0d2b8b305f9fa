"""Requests that start and extend recordings, and delete them, for either front end."""

from __future__ import annotations

from aerotape.client import arguments
from aerotape.client.arguments import SourceLocationName
from aerotape.client.session.request import Call, nothing, relevant_id
from aerotape.codecs.generated import archive as codecs


def start_recording(
    channel: str,
    stream_id: int,
    source_location: codecs.SourceLocation | SourceLocationName,
    *,
    auto_stop: bool,
) -> Call[int]:
    """Record a channel and stream; the result is the id of the recording subscription."""
    request = codecs.StartRecordingRequest2(
        stream_id=arguments.any_int32("stream_id", stream_id),
        source_location=arguments.source_location(source_location),
        auto_stop=codecs.BooleanType(bool(auto_stop)),
        channel=arguments.channel("channel", channel),
    )
    return Call(request, f"start recording {channel} stream {stream_id}", relevant_id)


def extend_recording(
    recording_id: int,
    channel: str,
    stream_id: int,
    source_location: codecs.SourceLocation | SourceLocationName,
    *,
    auto_stop: bool,
) -> Call[int]:
    """Extend a stopped recording; the result is the id of the recording subscription."""
    request = codecs.ExtendRecordingRequest2(
        recording_id=arguments.natural("recording_id", recording_id),
        stream_id=arguments.any_int32("stream_id", stream_id),
        source_location=arguments.source_location(source_location),
        auto_stop=codecs.BooleanType(bool(auto_stop)),
        channel=arguments.channel("channel", channel),
    )
    what = f"extend recording {recording_id} from {channel} stream {stream_id}"
    return Call(request, what, relevant_id)


def stop_recording_subscription(subscription_id: int) -> Call[None]:
    """End a recording subscription."""
    request = codecs.StopRecordingSubscriptionRequest(
        subscription_id=arguments.any_int64("subscription_id", subscription_id)
    )
    return Call(request, f"stop recording subscription {subscription_id}", nothing)


def purge_recording(recording_id: int) -> Call[int]:
    """Delete a stopped recording; the result is the number of segment files deleted."""
    request = codecs.PurgeRecordingRequest(
        recording_id=arguments.natural("recording_id", recording_id)
    )
    return Call(request, f"purge recording {recording_id}", relevant_id)


def purge_segments(recording_id: int, new_start_position: int) -> Call[int]:
    """Delete the segments up to one that begins at a position; the result is their number."""
    request = codecs.PurgeSegmentsRequest(
        recording_id=arguments.natural("recording_id", recording_id),
        new_start_position=arguments.natural("new_start_position", new_start_position),
    )
    what = f"purge the segments of recording {recording_id} before {new_start_position}"
    return Call(request, what, relevant_id)
