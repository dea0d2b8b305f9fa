"""The alias of a ledger's channel, by which its recording is recognised in the catalog.

    aeron:ipc?…|alias=ledger-<32 hexadecimal digits>-pd[-password][-closed]

A recording's channel stays in the catalog, so ids and types of ledgers, and which of them have a
password or are closed, survive the loss of their metadata. The alias has no meaning for the media
driver. It protects nothing: which recordings are those of ledgers is in the metadata.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from aerotape.channel_uri import ChannelUri, alias_of
from aerotape.codecs.generated.ledger_control import LedgerType
from aerotape.errors import AerotapeError, ConfigurationError, QualifiedIdError
from aerotape.qualified_id import QualifiedId

if TYPE_CHECKING:
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.features.ledger.metadata import LedgerMetadata
    from aerotape.catalog.descriptor import RecordingDescriptor
    from aerotape.catalog.file.catalog import Catalog

_PREFIX = "ledger-"
_CLOSED = "-closed"
_PASSWORD = "-password"
_ALIAS = re.compile(rf"ledger-([0-9a-f]{{32}})-(pd|vd)({_PASSWORD})?({_CLOSED})?")
_TYPES = {"pd": LedgerType.PD_JOURNAL, "vd": LedgerType.VD_JOURNAL}
_NAMES = {kind: name for name, kind in _TYPES.items()}
ALIAS_FRAGMENT = f"alias={_PREFIX}".encode()
"""Contained in the channel of each ledger's recording."""


def with_alias(channel: str, metadata: LedgerMetadata, session_id: int) -> str:
    """Return the channel on which an archive records a writer of a ledger.

    Args:
        channel: the writer's channel.
        metadata: of the ledger.
        session_id: the writer's session: no other one is recorded.
    """
    uri = ChannelUri.parse(channel)
    uri.put("session-id", str(session_id))
    password = _PASSWORD if metadata.password_hash else ""
    uri.put("alias", f"{_PREFIX}{metadata.ledger}-{_NAMES[metadata.type]}{password}")
    return str(uri)


def mark_closed(
    catalog: Catalog, recording_id: int, errors: ErrorLog, *, is_closed: bool = True
) -> None:
    """Note in the channel of a ledger's recording, if it has one, whether the ledger is closed."""
    if not catalog.has_recording(recording_id):
        return
    try:
        descriptor = catalog.descriptor(recording_id)
        uri = ChannelUri.parse(descriptor.original_channel)
        before = uri.get("alias") or ""
        alias = before.removesuffix(_CLOSED) + _CLOSED * is_closed
        if alias == before:
            return
        uri.put("alias", alias)
        catalog.replace_channel(
            recording_id, stripped_channel=descriptor.stripped_channel, original_channel=str(uri)
        )
    except AerotapeError as error:
        errors.record("closed ledger not marked in the catalog", error)


class AliasedLedger(NamedTuple):
    """The ledger of a recording, by the alias of its channel."""

    id: QualifiedId
    type: LedgerType
    has_password: bool
    is_closed: bool


def ledger_of_channel(original_channel: str) -> AliasedLedger | None:
    """Return the ledger that a recording belongs to; None when it belongs to none."""
    if ALIAS_FRAGMENT.decode() not in original_channel:
        return None
    try:
        match = _ALIAS.fullmatch(alias_of(original_channel) or "")
        if match is None:
            return None
        id, kind, password, closed = match.groups()
        return AliasedLedger(QualifiedId.parse(id), _TYPES[kind], bool(password), bool(closed))
    except (ConfigurationError, QualifiedIdError):
        return None


def is_of_ledger(recording: RecordingDescriptor) -> bool:
    """Whether a recording is that of a ledger, or a copy of it."""
    return ledger_of_channel(recording.original_channel) is not None
