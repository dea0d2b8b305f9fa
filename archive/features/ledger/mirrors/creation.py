"""Creating a ledger with mirrors: all of its archives know it, or none.

Later, an archive that does not know it has lost it, and does not count in elections.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from aerotape.archive.features.ledger.mirrors.members import Members
from aerotape.archive.features.ledger.protocol.election import FIRST
from aerotape.archive.features.ledger.protocol.member_record import MemberState, MirrorStep
from aerotape.errors import AerotapeError, LedgerError
from aerotape.waiting import Pause

if TYPE_CHECKING:
    from aerotape.archive.features.ledger.metadata import LedgerMetadata
    from aerotape.archive.features.ledger.mirrors.members import Opening
    from aerotape.waiting import Task

# So long mirrors may take to remove a ledger that was not created.
_DISCARD_NS: Final = 1_000_000_000


class Creation:
    """Creates ledgers in their mirrors. For the conductor's thread."""

    def __init__(self, opening: Opening, archive_id: int) -> None:
        """Create the service.

        Args:
            opening: returns the task that connects to a mirror.
            archive_id: of this archive.
        """
        self._members = Members(opening)
        self._archive_id = archive_id

    def create(self, metadata: LedgerMetadata, timeout_ns: int) -> Task[LedgerMetadata]:
        """Have the mirrors of a new ledger store it.

        They are asked first: if one does not respond, none has changed.

        Args:
            metadata: of the ledger, which is not stored here yet.
            timeout_ns: how long mirrors may take to respond.

        Returns:
            What to store here.

        Raises:
            LedgerError: a mirror does not respond or refuses; the others do not have it any more.
        """
        own = metadata.member_record.own
        promised = replace(metadata.member_record, promised=(FIRST, own))
        metadata = replace(metadata, member_record=promised)
        states = yield from self._all(metadata, MirrorStep.QUERY, timeout_ns)
        by_id = {self._archive_id: own}
        for name, state in states.items():
            if (other := by_id.setdefault(state.archive_id, name)) != name:
                raise LedgerError(
                    f"mirror {name} of ledger {metadata.ledger}: it is the archive of {other},"
                    " which stores the ledger already: name another archive",
                    metadata.ledger,
                )
        try:
            yield from self._all(metadata, MirrorStep.CREATE, timeout_ns)
        except LedgerError:
            yield from self.discard(metadata, states)
            raise
        return metadata

    def discard(self, metadata: LedgerMetadata, mirrors: Iterable[str]) -> Task[None]:
        """Have mirrors remove a ledger that was not created, if they have it by this request."""
        asking = self._members.ask(metadata, MirrorStep.DISCARD, mirrors)
        deadline_ns = time.monotonic_ns() + _DISCARD_NS
        try:
            while asking and time.monotonic_ns() < deadline_ns:
                asking.poll()
                yield Pause()
        finally:
            asking.close()

    def _all(
        self, metadata: LedgerMetadata, step: MirrorStep, timeout_ns: int
    ) -> Task[dict[str, MemberState]]:
        """Return the states of all mirrors (LedgerError: one does not respond, or refuses)."""
        asking = self._members.ask(metadata, step, metadata.mirrors)
        states: dict[str, MemberState] = {}
        deadline_ns = time.monotonic_ns() + timeout_ns
        try:
            while asking and time.monotonic_ns() < deadline_ns:
                states |= asking.poll()
                yield Pause()
        finally:
            asking.close()
        if asking.problems:
            raise self._error(metadata, asking.problems)
        return states

    @staticmethod
    def _error(metadata: LedgerMetadata, problems: dict[str, AerotapeError]) -> LedgerError:
        reasons = "; ".join(
            f"mirror {name} of ledger {metadata.ledger}: {problem}"
            for name, problem in sorted(problems.items())
        )
        return LedgerError(
            f"ledger {metadata.ledger} is not created: all of its archives have to respond:"
            f" {reasons}",
            metadata.ledger,
        )
