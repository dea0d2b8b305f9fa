"""Adding a publication and recording only its session."""

from __future__ import annotations

from aerotape.aeron import ExclusivePublication, Publication
from aerotape.archive.client import arguments, channels
from aerotape.archive.client.executors.driver_steps import added, published
from aerotape.archive.client.requests.recordings import start_recording
from aerotape.archive.client.requests.request import CurrentSession, Steps
from aerotape.archive.client.session.control_session import ControlSession


def add_recorded_publication(
    channel: str, stream_id: int, *, auto_stop: bool = False
) -> Steps[Publication]:
    """Add a publication and record its session.

    Raises:
        ArchiveError: as `start_recording`; the publication is closed again.
    """
    session = yield from _checked(channel, stream_id)
    what = f"a publication to {channel} stream {stream_id}"
    adding = added(
        lambda: session.aeron.async_add_publication(channel, stream_id), what, session.timeout_ns
    )
    publication = Publication((yield from adding))
    yield from _record(publication, auto_stop)
    return publication


def add_recorded_exclusive_publication(
    channel: str, stream_id: int, *, auto_stop: bool = False
) -> Steps[ExclusivePublication]:
    """As `add_recorded_publication`, for an exclusive publication."""
    session = yield from _checked(channel, stream_id)
    adding = published(session.aeron, channel, stream_id, session.timeout_ns)
    publication = ExclusivePublication((yield from adding))
    yield from _record(publication, auto_stop)
    return publication


def _checked(channel: str, stream_id: int) -> Steps[ControlSession]:
    arguments.channel("channel", channel)
    arguments.any_int32("stream_id", stream_id)
    session: ControlSession = yield CurrentSession()
    return session


def _record(publication: Publication | ExclusivePublication, auto_stop: bool) -> Steps[None]:
    try:
        own = channels.with_session_id(publication.channel, publication.session_id)
        yield start_recording(own, publication.stream_id, "local", auto_stop=auto_stop)
    except BaseException:
        publication.close()
        raise
