"""The metadata of a ledger, its password, and the rules for creating one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aerotape.archive.features.ledger.boot import boot_id
from aerotape.archive.features.ledger.protocol.member_record import (
    NO_EPOCH,
    NOT_REPLICATED,
    Epoch,
    MemberRecord,
)
from aerotape.archive.features.ledger.protocol.quorums import Quorums
from aerotape.codecs.generated.ledger_control import DigestType, LedgerState, LedgerType
from aerotape.durability import Durability
from aerotape.errors import (
    ConfigurationError,
    LedgerExistsError,
    LedgerFencedError,
    LedgerPasswordError,
    UnknownLedgerError,
)
from aerotape.protocol import NULL_POSITION, NULL_VALUE
from aerotape.qualified_id import QualifiedId

FILE_NAME: Final = "ledgers.sqlite"
"""The database of an archive directory that has the metadata of all ledgers."""
PASSWORD_LOST: Final = b"\0"
"""Stored instead of a hash that was lost with the metadata; no token has it."""


@dataclass(frozen=True, slots=True)
class LedgerMetadata:
    """The metadata of a ledger.

    Attributes:
        ledger: its id.
        type: when adds are acknowledged. Never changes.
        digest_type: the digest of its entries. Never changes.
        created_ms: epoch milliseconds.
        password_hash: of `hash_of_token`; empty: any password is valid; PASSWORD_LOST: none is.
        write_quorum: how many archives record it.
        ack_quorum: how many of them have to acknowledge.
        member_record: the state of the protocol of the archives that store the ledger, in this
            one.
        state: whether entries may be added.
        recording_id: its recording, NULL_VALUE before the first writer.
        last_entry_id: of a closed ledger, -1 without entries.
        length: of a closed ledger, payload bytes.
        end_position: of a closed ledger, the end of its last entry, bytes.
    """

    ledger: QualifiedId
    type: LedgerType = LedgerType.PD_JOURNAL
    digest_type: DigestType = DigestType.CRC32C
    created_ms: int = 0
    password_hash: bytes = b""
    write_quorum: int = 1
    ack_quorum: int = 1
    member_record: MemberRecord = NOT_REPLICATED
    state: LedgerState = LedgerState.OPEN
    recording_id: int = NULL_VALUE
    last_entry_id: int = NULL_VALUE
    length: int = 0
    end_position: int = NULL_POSITION

    @property
    def durability(self) -> Durability:
        """The durability of its recording."""
        is_persistent = self.type is LedgerType.PD_JOURNAL
        return Durability("pd" if is_persistent else "vd", self.ledger.key)

    @property
    def quorums(self) -> Quorums:
        """The sizes of its quorums."""
        return Quorums(self.write_quorum, self.ack_quorum)

    @property
    def may_have_forgotten(self) -> bool:
        """Whether this archive may have lost what it has acknowledged of the ledger.

        So it is if the operator says so, if the metadata was lost, and for a VD_JOURNAL ledger
        after the machine was started again.
        """
        member_record = self.member_record
        if member_record.forgets:
            return True
        if self.recording_id != NULL_VALUE and member_record.promised == NO_EPOCH:
            return True
        is_volatile = self.type is LedgerType.VD_JOURNAL
        return is_volatile and bool(member_record.boot) and member_record.boot != boot_id()

    @property
    def mirrors(self) -> tuple[str, ...]:
        """The control channels of the other archives that store it."""
        return self.member_record.others

    @property
    def is_closed(self) -> bool:
        """Whether nothing more can be added."""
        return self.state is LedgerState.CLOSED


def check_quorums(metadata: LedgerMetadata) -> None:
    """Refuse quorums that make no sense.

    Raises:
        ConfigurationError: they contradict each other or the number of mirrors, a mirror is named
            twice, or a ledger with volatile durability would be striped.
    """
    repeated = {each for each in metadata.mirrors if metadata.mirrors.count(each) > 1}
    if repeated:
        raise ConfigurationError(
            f"mirror {', '.join(sorted(repeated))} is named twice: name each archive once",
            "mirrors",
        )
    write, acknowledge = metadata.write_quorum, metadata.ack_quorum
    archives = 1 + len(metadata.mirrors)
    if not 1 <= acknowledge <= write <= archives:
        raise ConfigurationError(
            f"ack quorum {acknowledge}, write quorum {write} and {archives} archives: expected "
            "1 <= ack quorum <= write quorum <= archives",
            "write_quorum",
        )
    if archives > write and metadata.type is not LedgerType.PD_JOURNAL:
        raise ConfigurationError(
            f"a {metadata.type.name} ledger cannot be striped: {archives} archives are more than "
            f"write quorum {write}; raise the write quorum or create a PD_JOURNAL ledger",
            "write_quorum",
        )


def hash_of_token(ledger: QualifiedId, token: bytes) -> bytes:
    """Return the stored hash of a client's password token; empty for an empty token.

    The hash itself is not a valid token, and one password has another hash for each ledger.
    """
    import hashlib

    return hashlib.sha256(b"ledger" + ledger.key + token).digest() if token else b""


def check_password(metadata: LedgerMetadata, token: bytes) -> None:
    """Check the token of a password (LedgerPasswordError)."""
    import hmac

    ledger, expected = metadata.ledger, metadata.password_hash
    if expected == PASSWORD_LOST:
        raise LedgerPasswordError(
            f"the password of ledger {ledger} was lost with the ledgers' metadata: restore"
            " ledgers.sqlite from a backup, or delete the ledger",
            ledger,
        )
    if expected and not hmac.compare_digest(expected, hash_of_token(ledger, token)):
        raise LedgerPasswordError(f"wrong password for ledger {ledger}", ledger)


def exists_already(ledger: QualifiedId) -> LedgerExistsError:
    """Return the error for an id that is that of a ledger."""
    return LedgerExistsError(f"ledger {ledger} exists already: choose another id", ledger)


def unknown_ledger(ledger: QualifiedId) -> UnknownLedgerError:
    """Return the error for a ledger that does not exist."""
    return UnknownLedgerError(
        f"unknown ledger {ledger}: `aerotape ledger list --ledger-scope-id {ledger.scope_id}` lists"
        " those of its scope",
        ledger,
    )


def fenced(ledger: QualifiedId, epoch: Epoch) -> LedgerFencedError:
    """Return the error of what was begun in a lower epoch than has been promised."""
    return LedgerFencedError(
        f"ledger {ledger} has another leader: archive {epoch[1]} leads it in epoch {epoch[0]}, or"
        " tried to: open it there, or recover it here",
        ledger,
    )
