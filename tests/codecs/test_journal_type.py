"""Names of the types of ledgers and topics."""

from __future__ import annotations

from aerotape.codecs.generated.ledger_control import LedgerType
from aerotape.codecs.journal_type import JOURNAL_TYPES


def test_names_are_those_of_the_schema() -> None:
    """Each type of the schema has a name, and no other has."""
    assert sorted(JOURNAL_TYPES) == sorted(LedgerType.__members__)
