"""What an archive knows of its own ledgers."""

from __future__ import annotations

from dataclasses import replace

from aerotape import QualifiedId
from aerotape.archive.features.ledger.boot import boot_id
from aerotape.archive.features.ledger.metadata import LedgerMetadata
from aerotape.archive.features.ledger.protocol.member_record import MemberRecord
from aerotape.codecs.generated.ledger_control import LedgerType


def ledger(**changes: object) -> LedgerMetadata:
    metadata = LedgerMetadata(QualifiedId(0, 7), write_quorum=2, ack_quorum=2)
    return replace(metadata, **changes)  # type: ignore[arg-type]


def test_what_an_archive_may_have_forgotten() -> None:
    """After the machine was started again what was in its page cache; else only what it is told."""
    adopted = MemberRecord(promised=(1, "a"), adopted=(1, "a"), boot="another")
    volatile = ledger(type=LedgerType.VD_JOURNAL, recording_id=3, member_record=adopted)
    assert volatile.may_have_forgotten
    assert not replace(volatile, type=LedgerType.PD_JOURNAL).may_have_forgotten
    assert not replace(
        volatile, member_record=replace(adopted, boot=boot_id())
    ).may_have_forgotten
    assert ledger(member_record=MemberRecord(forgets=True)).may_have_forgotten
    assert ledger(recording_id=3).may_have_forgotten, "its metadata was lost"
    promised = MemberRecord(promised=(1, "a"))
    assert not ledger(recording_id=3, member_record=promised).may_have_forgotten
