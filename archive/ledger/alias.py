"""The alias of a ledger's channel, by which its recording is recognised in the catalog.

    aeron:ipc?…|alias=ledger-<32 hexadecimal digits>-pd

A recording's channel stays in the catalog, so ids and types of ledgers survive the loss of their
metadata. The alias has no meaning for the media driver.
"""

from __future__ import annotations

import re

from aerotape.channel_uri import ChannelUri
from aerotape.codecs.generated.ledger_control import LedgerType
from aerotape.errors import ConfigurationError, QualifiedIdError
from aerotape.qualified_id import QualifiedId

_PREFIX = "ledger-"
_ALIAS = re.compile(r"ledger-([0-9a-f]{32})-(pd|vd)")
_TYPES = {"pd": LedgerType.PD_JOURNAL, "vd": LedgerType.VD_JOURNAL}
_NAMES = {kind: name for name, kind in _TYPES.items()}
ALIAS_FRAGMENT = f"alias={_PREFIX}".encode()
"""What the channel of each ledger's recording contains."""


def with_alias(channel: str, ledger: QualifiedId, kind: LedgerType, session_id: int) -> str:
    """Return the channel on which an archive records a writer of a ledger.

    Args:
        channel: the writer's channel.
        session_id: the writer's session: no other one is recorded.
    """
    uri = ChannelUri.parse(channel)
    uri.put("session-id", str(session_id))
    uri.put("alias", f"{_PREFIX}{ledger}-{_NAMES[kind]}")
    return str(uri)


def ledger_of_channel(original_channel: str) -> tuple[QualifiedId, LedgerType] | None:
    """Return the ledger that a recording belongs to; None when it belongs to none."""
    if ALIAS_FRAGMENT.decode() not in original_channel:
        return None
    try:
        alias = ChannelUri.parse(original_channel).get("alias") or ""
        match = _ALIAS.fullmatch(alias)
        return None if match is None else (QualifiedId.parse(match[1]), _TYPES[match[2]])
    except (ConfigurationError, QualifiedIdError):
        return None
