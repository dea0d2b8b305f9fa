"""All ledgers of an archive that are in use."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from aerotape.archive.features.ledger.alias import ledger_of_channel
from aerotape.archive.features.ledger.ledger import Ledger

if TYPE_CHECKING:
    from aerotape.archive.features.ledger.log import Storage
    from aerotape.qualified_id import QualifiedId


class Ledgers:
    """One object for each ledger in use. For the conductor's thread."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        # One that does not exist is released with the request for it.
        self._all: WeakValueDictionary[QualifiedId, Ledger] = WeakValueDictionary()
        self._known: dict[QualifiedId, Ledger] = {}
        self._active: dict[QualifiedId, Ledger] = {}

    def of(self, ledger_id: QualifiedId) -> Ledger:
        """Return the ledger with an id, whether it exists or not."""
        found = self._all.get(ledger_id)
        if found is None:
            found = Ledger(ledger_id, self._storage, self._known, self._active)
            self._all[ledger_id] = found
        return found

    def of_recording(self, recording_id: int) -> QualifiedId | None:
        """Return the ledger whose recording this is, None if it is a plain one.

        The metadata decides. Before it was read the alias does: the metadata may be unreadable, or
        have to be built again from the aliases.
        """
        for ledger in self._active.values():
            if ledger.log.writer is not None and ledger.log.writer.recording_id == recording_id:
                return ledger.id
        known = self._storage.worker.recordings
        if known is not None:
            return known.get(recording_id)
        entry = self._storage.catalog.entry(recording_id)
        found = ledger_of_channel(entry.descriptor.original_channel)
        return None if found is None else found.id

    @property
    def is_leading(self) -> bool:
        """Whether mirrors have to be followed."""
        return any(each.role.is_active for each in self._active.values())

    def do_work(self) -> None:
        """Advance each ledger by one step."""
        for ledger in list(self._active.values()):
            ledger.do_work()
            if not ledger.is_active:
                del self._active[ledger.id]

    def close(self) -> None:
        """End all roles: disconnect from mirrors. Note what recordings that have stopped have."""
        for ledger in self._active.values():
            ledger.log.do_work()
            ledger.role.close()
