"""A ledger in use, and all of them: what this archive knows of each, apart from its metadata."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aerotape.archive.features.ledger.log import Log, Storage
from aerotape.archive.features.ledger.role import Idle, Role
from aerotape.errors import LedgerFencedError
from aerotape.waiting import Pause

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.features.ledger.metadata import LedgerMetadata
    from aerotape.archive.features.ledger.protocol.election import Election
    from aerotape.archive.features.ledger.status import LedgerStatus
    from aerotape.qualified_id import QualifiedId
    from aerotape.waiting import Task


@dataclass
class Damage:
    """The damage that readers of a ledger have met since the archive was started.

    Attributes:
        damaged: ids of the entries that could not be repaired.
        repaired: ids of those that were.
    """

    damaged: set[int] = field(default_factory=set)
    repaired: set[int] = field(default_factory=set)


class Ledger:
    """A ledger in use. For the conductor's thread.

    A task that changes it locks it first. Only that another archive has a higher epoch ends the
    role of this one at once.

    Attributes:
        id: of the ledger.
        log: its recording in this archive.
        role: of this archive. A task that has to know whether the role has ended keeps the object.
        election: of this archive as its leader, while there is one.
        retry_ns: when to try again to lead it without a writer, of the monotonic clock.
        damage: what its readers have met.
    """

    def __init__(
        self,
        ledger_id: QualifiedId,
        storage: Storage,
        known: MutableMapping[QualifiedId, Ledger],
        active: MutableMapping[QualifiedId, Ledger],
    ) -> None:
        """Create it, without a role.

        Args:
            known: those that exist, to which it is added when that is known.
            active: those that have work to do, to which it is added when it is locked.
        """
        self.id = ledger_id
        self.log = Log(ledger_id, storage)
        self.role: Role = Idle()
        self.election: Election | None = None
        self.retry_ns = 0
        self.damage = Damage()
        self._worker = storage.worker
        self._known = known
        self._active = active
        self._is_locked = False
        self._ending: list[Role] = []

    def __str__(self) -> str:
        return str(self.id)

    @property
    def is_active(self) -> bool:
        """Whether it is locked or has work to do."""
        return self._is_locked or self.log.is_active or self.role.is_active

    def do_work(self) -> None:
        """Do one duty cycle."""
        self.role.do_work()
        self.log.do_work()

    # ---- metadata -----------------------------------------------------------------------------

    def metadata(self) -> Task[LedgerMetadata]:
        """Return its metadata, with the recording of its writer.

        Raises:
            UnknownLedgerError: there is no such ledger.
            StorageError: the database cannot be read.
        """
        writer = self.log.writer
        if writer is not None and writer.is_active:
            return writer.metadata
        return (yield from self.stored())

    def stored(self) -> Task[LedgerMetadata]:
        """Return the metadata in the database; raises as `metadata`."""
        metadata = yield from self._worker.get(self.id)
        self.retain()
        return metadata

    def retain(self) -> None:
        """Note that it exists: what is known of it is retained until it is removed."""
        self._known[self.id] = self

    def remove(self, metadata: LedgerMetadata) -> Task[None]:
        """Remove the metadata, whose recording is purged; raises as `LedgerWorker.remove`."""
        yield from self._worker.remove(metadata)
        self.damage = Damage()
        self._known.pop(self.id, None)

    # ---- changes ------------------------------------------------------------------------------

    def lock(self) -> Task[None]:
        """Wait until no task changes it; until `unlock`, the caller may."""
        while self._is_locked:
            yield Pause()
        self._is_locked = True
        self._active[self.id] = self

    def unlock(self) -> None:
        """Let another task change it."""
        self._is_locked = False

    def become(self, role: Role) -> None:
        """Change the role of this archive; the former one is closed."""
        self.role.close()
        if not self.role.has_ended:
            self._ending.append(self.role)
        self.role = role

    def await_ended(self) -> Task[None]:
        """Wait until no former role changes the log."""
        while not all(each.has_ended for each in self._ending):
            yield Pause()
        self._ending.clear()

    def depose(self) -> None:
        """Stop leading, or trying to: another archive has a higher epoch. Idempotent."""
        if self.election is not None:
            self.election.fence()
        writer = self.log.writer
        if writer is not None and not writer.failure:
            self.log.fail_writer(
                writer,
                f"ledger {self.id} is closed for this writer: another archive leads it, or has"
                " closed it",
                LedgerFencedError.code,
            )
        if self.election is not None or self.role.is_leading:
            self.become(Idle())

    def check_attached(self, client: ControlSession, attach_id: int) -> None:
        """Refuse a client that neither writes nor leads the ledger any more (LedgerFencedError)."""
        if not self.role.is_attached(client, attach_id):
            self.log.check_writer(client, attach_id)

    # ---- positions ----------------------------------------------------------------------------

    def positions(self, metadata: LedgerMetadata) -> LedgerStatus:
        """Return the positions that are known without reading files."""
        return self.role.status(self.log.positions(metadata))
