"""The alias of a ledger's channel."""

from __future__ import annotations

import pytest

from aerotape.archive.features.ledger.alias import ALIAS_FRAGMENT, ledger_of_channel, with_alias
from aerotape.archive.features.ledger.metadata import LedgerMetadata
from aerotape.codecs.generated.ledger_control import LedgerType
from aerotape.qualified_id import QualifiedId

LEDGER = QualifiedId(1, 0xA5670E02B2C3D479)
NAME = "0000000000000001a5670e02b2c3d479"


def test_a_channel_names_its_ledger() -> None:
    """Id and type are in the alias, and the channel has one session."""
    metadata = LedgerMetadata(LEDGER, LedgerType.VD_JOURNAL)
    channel = with_alias("aeron:udp?endpoint=a:1|alias=mine", metadata, -5)
    assert channel == f"aeron:udp?endpoint=a:1|alias=ledger-{NAME}-vd|session-id=-5"
    assert ALIAS_FRAGMENT in channel.encode()
    assert ledger_of_channel(channel) == (LEDGER, LedgerType.VD_JOURNAL, False, False)
    closed = channel.replace("-vd|", "-vd-closed|")
    assert ledger_of_channel(closed) == (LEDGER, LedgerType.VD_JOURNAL, False, True)


def test_a_channel_shows_that_its_ledger_has_a_password() -> None:
    """The marker of a password is read before and after the ledger is closed."""
    channel = with_alias("aeron:ipc", LedgerMetadata(LEDGER, password_hash=b"hash"), 1)
    assert channel == f"aeron:ipc?session-id=1|alias=ledger-{NAME}-pd-password"
    assert ledger_of_channel(channel) == (LEDGER, LedgerType.PD_JOURNAL, True, False)
    closed = channel.replace("-password", "-password-closed")
    assert ledger_of_channel(closed) == (LEDGER, LedgerType.PD_JOURNAL, True, True)


@pytest.mark.parametrize(
    "channel",
    [
        "aeron:ipc",
        "aeron:ipc?alias=other",
        f"aeron:ipc?alias=ledger-{NAME}",
        f"aeron:ipc?alias=ledger-{NAME}-xd",
        f"aeron:ipc?alias=ledger-{NAME}-pd-closed-password",
        f"aeron:ipc?alias=ledger-{NAME[1:]}-pd",
        f"aeron:ipc?tags=alias=ledger-{NAME}-pd",
        "aeron:ipc?alias=ledger-0000000000000000ffffffffffffffff-pd",
        f"nothing?alias=ledger-{NAME}-pd",
    ],
)
def test_other_channels_name_none(channel: str) -> None:
    """Other aliases, and ids that cannot exist, are no ledger's."""
    assert ledger_of_channel(channel) is None
