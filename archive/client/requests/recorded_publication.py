"""Adding a publication and recording it, and it only."""

from __future__ import annotations

from aerotape import _native
from aerotape.aeron import ExclusivePublication, Publication
from aerotape.archive.client import arguments, channels
from aerotape.archive.client.executors.driver_steps import added
from aerotape.archive.client.requests.recordings import start_recording
from aerotape.archive.client.requests.request import Steps


def add_recorded_publication(
    aeron: _native.AeronClient, channel: str, stream_id: int, auto_stop: bool, timeout_ns: int
) -> Steps[Publication]:
    """Add a shared publication and record its session."""
    what = _what(channel, stream_id)
    pending = aeron.async_add_publication(channel, stream_id)
    publication = Publication((yield from added(pending, what, timeout_ns)))
    yield from _record(publication, auto_stop)
    return publication


def add_recorded_exclusive_publication(
    aeron: _native.AeronClient, channel: str, stream_id: int, auto_stop: bool, timeout_ns: int
) -> Steps[ExclusivePublication]:
    """Add a publication of its own session and record it."""
    what = _what(channel, stream_id)
    pending = aeron.async_add_exclusive_publication(channel, stream_id)
    publication = ExclusivePublication((yield from added(pending, what, timeout_ns)))
    yield from _record(publication, auto_stop)
    return publication


def _what(channel: str, stream_id: int) -> str:
    arguments.channel("channel", channel)
    arguments.any_int32("stream_id", stream_id)
    return f"a publication on {channel} stream {stream_id}"


def _record(publication: Publication | ExclusivePublication, auto_stop: bool) -> Steps[None]:
    try:
        own = channels.with_session_id(publication.channel, publication.session_id)
        yield start_recording(own, publication.stream_id, "local", auto_stop=auto_stop)
    except BaseException:
        publication.close()
        raise
