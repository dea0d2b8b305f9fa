"""Adding a publication and recording only its session."""

from __future__ import annotations

from aerotape import _native
from aerotape.aeron import ExclusivePublication, Publication
from aerotape.archive.client import arguments, channels
from aerotape.archive.client.executors.driver_steps import added, published
from aerotape.archive.client.requests.recordings import start_recording
from aerotape.archive.client.requests.request import Steps


def add_recorded_publication(
    aeron: _native.AeronClient, channel: str, stream_id: int, auto_stop: bool, timeout_ns: int
) -> Steps[Publication]:
    """Add a shared publication and record its session."""
    _check(channel, stream_id)
    what = f"a publication to {channel} stream {stream_id}"
    adding = added(lambda: aeron.async_add_publication(channel, stream_id), what, timeout_ns)
    publication = Publication((yield from adding))
    yield from _record(publication, auto_stop)
    return publication


def add_recorded_exclusive_publication(
    aeron: _native.AeronClient, channel: str, stream_id: int, auto_stop: bool, timeout_ns: int
) -> Steps[ExclusivePublication]:
    """Add an exclusive publication and record it."""
    _check(channel, stream_id)
    adding = published(aeron, channel, stream_id, timeout_ns)
    publication = ExclusivePublication((yield from adding))
    yield from _record(publication, auto_stop)
    return publication


def _check(channel: str, stream_id: int) -> None:
    arguments.channel("channel", channel)
    arguments.any_int32("stream_id", stream_id)


def _record(publication: Publication | ExclusivePublication, auto_stop: bool) -> Steps[None]:
    try:
        own = channels.with_session_id(publication.channel, publication.session_id)
        yield start_recording(own, publication.stream_id, "local", auto_stop=auto_stop)
    except BaseException:
        publication.close()
        raise
