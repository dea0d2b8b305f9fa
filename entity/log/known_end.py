"""The end of a partition's log, as far as one topic object knows it without reading.

Records that it sends one directly after another form a run, in which it knows every action. So most
reads after its own appends need neither a mark nor the log, and the outcome of most conditional
appends follows without reading. A record of another writer ends the run: then the log is read from
the last known position on.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

from aerotape._native import Effect, Fold

if TYPE_CHECKING:
    from aerotape.codecs.entity.actions import ActionHeader
    from aerotape.entity.log.writer import RecordPosition

_MAX_FOLDS: Final = 10_000
_MAX_CHANGED: Final = 100_000


class Known(NamedTuple):
    """A journal as of a position of the log, bytes."""

    fold: Fold
    position: int


class KnownEnd:
    """The records sent last by one topic object to one partition. Not thread-safe.

    Attributes:
        begin: where the run begins, bytes.
        end: where it ends, bytes.
    """

    def __init__(self) -> None:
        self.begin = self.end = -1
        self._changed: dict[bytes, int] = {}
        self._folds: OrderedDict[bytes, Known] = OrderedDict()

    def add(
        self,
        place: RecordPosition,
        action: ActionHeader | None = None,
        base: Known | None = None,
    ) -> tuple[Effect, int] | None:
        """Add a record that was sent.

        Args:
            place: its place.
            action: None: a mark.
            base: the journal as of a position in front of the record.

        Returns:
            The effect of the action, and the journal's last sequence number after it; None: not
            known, because records of others precede it.
        """
        if place.offset != self.end:
            self.begin = place.offset
            self._changed.clear()
        self.end = place.next_position
        if action is None:
            return Effect.NONE, 0
        if len(self._changed) >= _MAX_CHANGED:
            self.begin = place.offset
            self._changed.clear()
        id = action.id
        known = next(
            (each for each in (self._folds.get(id), base) if self._is_valid(id, each)), None
        )
        self._changed[id] = place.offset
        if known is None:
            return None
        effect = known.fold.apply(action, place.offset)
        self._store(id, known.fold, place.next_position)
        return effect, known.fold.last

    def _is_valid(self, id: bytes, known: Known | None) -> TypeGuard[Known]:
        """Whether a journal is known, and unchanged from there to the end of the run."""
        return (
            known is not None
            and known.position >= self.begin
            and known.position > self._changed.get(id, -1)
        )

    def journal(self, id: bytes) -> Known | None:
        """Return the known state of a journal, to fold the actions after it; None: unknown."""
        known = self._folds.get(id)
        if known is None:
            return None
        position = self.end if self._is_valid(id, known) else known.position
        return Known(known.fold.copy(), position)

    def learn(self, id: bytes, fold: Fold, position: int) -> None:
        """Store a journal as it is at a position, bytes."""
        if position >= self.begin and self._changed.get(id, -1) >= position:
            return  # changed since by another thread
        self._store(id, fold, position)

    def is_unchanged(self, id: bytes, begin: int, end: int) -> bool:
        """Whether the run has the log from one position to another, and no action of a journal."""
        return self.begin <= begin <= end <= self.end and self._changed.get(id, -1) < begin

    def extend_back(self, begin: int, end: int) -> None:
        """Add the records from `begin` to `end`, known to be marks, if the run follows them."""
        if begin < self.begin <= end:
            self.begin = begin

    def _store(self, id: bytes, fold: Fold, position: int) -> None:
        self._folds[id] = Known(fold, position)
        self._folds.move_to_end(id)
        if len(self._folds) > _MAX_FOLDS:
            self._folds.popitem(last=False)
