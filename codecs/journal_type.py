"""Types of ledgers and of topics of entities: when what a client adds is acknowledged.

The names are those of `LedgerType` of the schema `ledger-control.xml`.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

JournalType = Literal["PD_JOURNAL", "VD_JOURNAL"]
"""On storage (persistent, durable), or in the page cache of the archive's host (volatile)."""

JOURNAL_TYPES: Final[tuple[JournalType, ...]] = get_args(JournalType)
