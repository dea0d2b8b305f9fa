"""Requests for recordings of a scope: the archive's own, or those it has imported from others.

Aeron's control protocol has no scopes: requests for the archive's own recordings are Aeron's, and
the session does not send others to an archive that knows no others.
"""

from __future__ import annotations

from aerotape.archive.client.session.client_session import ClientSession
from aerotape.archive.client.session.exchange import exchange
from aerotape.archive.client.session.request import Call, Request, relevant_id
from aerotape.archive.waiting import Task
from aerotape.catalog.scopes.layout import scope_of_archive, unsigned
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated import ledger_control
from aerotape.errors import ConfigurationError
from aerotape.qualified_id import signed


def check_scope(
    session: ClientSession, scope_id: int | None, limit_counter_id: int | None = None
) -> int | None:
    """Return a scope other than the archive's own, in two's complement; None for the own one.

    A counter can only limit the replay of a recording of the archive itself.
    """
    if not scope_id:
        return None
    wanted = unsigned(scope_id)
    if wanted == scope_of_archive(session.archive_id):
        return None
    if limit_counter_id is not None:
        raise ConfigurationError(
            "a recording of another scope is complete: no counter limits its replay",
            "limit_counter_id",
        )
    return signed(wanted)


def list_scopes(session: ClientSession) -> Task[list[int]]:
    """Return the scopes that have recordings or ledgers, ascending and unsigned."""
    found = {scope_of_archive(session.archive_id)}
    scope_id = 0
    while True:
        request = ledger_control.NextScopeRequest(scope_id=scope_id)
        scope_id = yield from exchange(session, Call(request, "list scopes", relevant_id))
        if scope_id == 0:
            return sorted(found)
        found.add(unsigned(scope_id))


def listing_request(scope_id: int | None, from_recording_id: int, count: int) -> Request:
    """Return the message that lists recordings of a scope, which `check_scope` returned."""
    if scope_id is None:
        return codecs.ListRecordingsRequest(from_recording_id=from_recording_id, record_count=count)
    return ledger_control.ListScopedRecordingsRequest(
        scope_id=scope_id, from_recording_id=from_recording_id, record_count=count
    )
