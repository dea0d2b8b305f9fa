"""The positions of a ledger, and the entries that end there."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from aerotape.codecs.generated import ledger_control as codecs
from aerotape.protocol import NULL_VALUE

if TYPE_CHECKING:
    from aerotape.archive.features.ledger.entry_lookup import EntryMark
    from aerotape.archive.features.ledger.ledger import Damage
    from aerotape.archive.features.ledger.metadata import LedgerMetadata
    from aerotape.archive.recording.recording_session import RecordingSession
    from aerotape.client.ledger.requests import LedgerMirror


@dataclass(frozen=True, slots=True)
class LedgerStatus:
    """The positions of a ledger at a moment.

    Attributes:
        recording_id: NULL_VALUE before the first writer.
        recorded_position: the end of what is recorded, bytes.
        confirmed_position: the end of what is on storage, bytes.
        last_add_pushed: the last entry that is recorded, -1: none; None: not looked up.
        last_add_confirmed: the last entry that is on storage, likewise.
        length: payload bytes up to `last_add_pushed`, likewise.
        recording_counter_id: the counter of `recorded_position`, NULL_VALUE without a writer.
        confirmed_counter_id: the counter of `confirmed_position`, likewise.
        members: the mirrors, while this archive leads the ledger.
    """

    recording_id: int
    recorded_position: int
    confirmed_position: int
    last_add_pushed: int | None = None
    last_add_confirmed: int | None = None
    length: int | None = None
    recording_counter_id: int = NULL_VALUE
    confirmed_counter_id: int = NULL_VALUE
    members: tuple[LedgerMirror, ...] = ()

    @classmethod
    def of_metadata(cls, metadata: LedgerMetadata) -> LedgerStatus:
        """Return the status of a ledger that is closed, or has no recording."""
        end = max(metadata.end_position, 0)
        last = metadata.last_entry_id
        return cls(metadata.recording_id, end, end, last, last, metadata.length)

    @classmethod
    def of_session(cls, session: RecordingSession) -> LedgerStatus:
        """Return the status of a ledger with a writer."""
        # In this order, as the recorder moves them the other way round.
        confirmed = session.confirmed_position
        status = cls(session.recording_id, max(session.position, confirmed), confirmed)
        return status.with_writer(session)

    def with_writer(self, session: RecordingSession) -> LedgerStatus:
        """Return this status with the counters of a writer's recording."""
        recorded, confirmed = session.counter, session.confirmed_counter
        return replace(
            self,
            recording_id=session.recording_id,
            recording_counter_id=NULL_VALUE if recorded is None else recorded.id,
            confirmed_counter_id=NULL_VALUE if confirmed is None else confirmed.id,
        )

    def with_entries(self, pushed: EntryMark, confirmed: EntryMark) -> LedgerStatus:
        """Return it with the entries at its positions."""
        return replace(
            self,
            last_add_pushed=pushed.entry_id,
            last_add_confirmed=confirmed.entry_id,
            length=pushed.length,
        )


def descriptor_message(
    control_session_id: int,
    correlation_id: int,
    metadata: LedgerMetadata,
    status: LedgerStatus,
    *,
    archive_id: int | None = None,
    damage: Damage | None = None,
) -> bytes:
    """Return the LedgerDescriptor that is sent to a client.

    Args:
        archive_id: of this archive, for another one that stores the ledger; None: for a client.
        damage: what its readers have met; None: not looked up.
    """
    import json

    scope_id, ledger_id = metadata.ledger.signed
    return codecs.LedgerDescriptor(
        control_session_id=control_session_id,
        correlation_id=correlation_id,
        scope_id=scope_id,
        ledger_id=ledger_id,
        created_ms=metadata.created_ms,
        recording_id=status.recording_id,
        recorded_position=status.recorded_position,
        confirmed_position=status.confirmed_position,
        last_pushed=status.last_add_pushed,
        last_confirmed=status.last_add_confirmed,
        length=status.length,
        recording_counter_id=status.recording_counter_id,
        confirmed_counter_id=status.confirmed_counter_id,
        ledger_type=metadata.type,
        digest_type=metadata.digest_type,
        state=metadata.state,
        write_quorum=metadata.write_quorum,
        ack_quorum=metadata.ack_quorum,
        has_password=codecs.BooleanType(bool(metadata.password_hash)),
        archive_id=archive_id,
        damaged_entries=len(damage.damaged) if damage else None,
        repaired_entries=len(damage.repaired) if damage else None,
        mirrors=json.dumps(metadata.mirrors),
        member_record="" if archive_id is None else metadata.member_record.encode(),
        members=json.dumps([asdict(each) for each in status.members]),
    ).encode()
