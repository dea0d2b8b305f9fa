"""Checks and types that the handlers of control requests share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from aerotape.archive.ledger.alias import ledger_of_channel
from aerotape.codecs.runtime import Message
from aerotape.errors import ArchiveError
from aerotape.protocol import ErrorCode

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.control.services import Services

Handler = Callable[["Services", "ControlSession", Any], None]
Handlers = Mapping[type[Message], Handler]


def check_known(services: Services, recording_id: int) -> None:
    """Raise ArchiveError if a recording does not exist."""
    if not services.catalog.has_recording(recording_id):
        raise ArchiveError(f"unknown recording id: {recording_id}", ErrorCode.UNKNOWN_RECORDING)


def check_no_ledger(services: Services, recording_id: int) -> None:
    """Raise ArchiveError if a recording is unknown or, as its entries have to stay, a ledger's."""
    check_known(services, recording_id)
    ledger = services.ledgers.ledger_of(recording_id)
    if ledger is not None:
        raise ArchiveError(
            f"recording {recording_id} is that of ledger {ledger}: use the requests for ledgers"
        )


def check_alias(channel: str) -> None:
    """Raise ArchiveError if a channel has the alias of a ledger's recording."""
    if ledger_of_channel(channel) is not None:
        raise ArchiveError(
            f"the alias in channel={channel} is reserved for the recordings of ledgers: use another"
            " alias, or the requests for ledgers"
        )


def check_no_listing(session: ControlSession) -> None:
    """Raise ArchiveError while a listing is in progress."""
    if session.is_listing:
        raise ArchiveError(
            "active listing already in progress: read it to its end first",
            ErrorCode.ACTIVE_LISTING,
        )
