"""Requests for recordings of a scope: the archive's own, or those it has imported from others.

Aeron's control protocol has no scopes. Requests for the archive's own recordings are Aeron's; of an
archive that knows no others, such as the Java archive, the session refuses to send others.
"""

from __future__ import annotations

from aerotape.archive.client import arguments
from aerotape.archive.client.requests.request import CurrentSession, Request, Steps
from aerotape.catalog.scopes.layout import scope_of_archive, unsigned
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated import ledger_control
from aerotape.errors import ConfigurationError
from aerotape.qualified_id import MAX_UNSCOPED, MAX_UNSIGNED


def check_scope(scope_id: int | None) -> Steps[int | None]:
    """Return a scope other than the archive's own, in two's complement; None for the own one.

    Raises:
        ConfigurationError: the scope id does not fit in 64 bits.
    """
    if not scope_id:
        return None
    wanted = unsigned(scope_id)
    session = yield CurrentSession()
    if wanted == scope_of_archive(session.archive_id):
        return None
    return wanted - MAX_UNSIGNED - 1 if wanted > MAX_UNSCOPED else wanted


def listing_request(scope_id: int | None, from_recording_id: int, count: int) -> Request:
    """Return the message that lists recordings of a scope, which `check_scope` returned."""
    if scope_id is None:
        return codecs.ListRecordingsRequest(from_recording_id=from_recording_id, record_count=count)
    return ledger_control.ListScopedRecordingsRequest(
        scope_id=scope_id, from_recording_id=from_recording_id, record_count=count
    )


def replay_request(
    scope_id: int,
    recording_id: int,
    channel: str,
    stream_id: int,
    position: int,
    length: int,
    file_io_max_length: int | None,
) -> Request:
    """Return the message that starts the replay of an imported recording."""
    return ledger_control.ScopedReplayRequest(
        scope_id=scope_id,
        recording_id=arguments.identity("recording_id", recording_id),
        position=position,
        length=length,
        replay_stream_id=arguments.any_int32("stream_id", stream_id),
        file_io_max_length=arguments.optional_length("file_io_max_length", file_io_max_length),
        replay_channel=arguments.channel("channel", channel),
    )


def check_replay(channel_is_response: bool, limit_counter_id: int | None) -> None:
    """Refuse options that a replay of an imported recording does not have."""
    if channel_is_response:
        raise ConfigurationError(
            "a recording of another scope cannot be replayed to a response channel: give another "
            "channel",
            "channel",
        )
    if limit_counter_id is not None:
        raise ConfigurationError(
            "a recording of another scope is complete: no counter limits its replay",
            "limit_counter_id",
        )
