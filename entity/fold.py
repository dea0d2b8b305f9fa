"""The rules by which actions change a journal, in one place.

Readers fold the end of the log over the head in the store, and the replicator folds each batch, so
both have the same journal after each record. `native/src/entity/journals.rs` has the rules for
Spark's tables, which begin without a head.

| action | no journal | a journal |
| --- | --- | --- |
| append of k to n | begins one; events 1 to k - 1 are deleted | adds those after its last |
| conditional append of k to n | as append if k is 1 | as append if its last is k - 1 |
| delete up to d | begins one that ends at d, all deleted | deletes its events up to d |
| purge | nothing | deletes it |
| conditional purge | nothing | deletes it if its last change is at the position given |
| snapshot of n | nothing | is stored if n is at most its last |
| mark | nothing | nothing |

*Its last* is its last sequence number, or the last deleted one if that is higher. A conditional
append for which the table has nothing is refused. A change is an append, a refused one too, or a
delete; a head has the position of the last one, and actions up to there are ignored, so that a part
of the log can be folded again. `tests/entity/test_semantics.py` compares replicator, reader
and Spark's tables with this table and by random histories.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from aerotape.codecs.entity.actions import ActionHeader, ActionKind

if TYPE_CHECKING:
    from aerotape.entity.records import Head


class Effect(Enum):
    """The effect of an action on a journal."""

    NONE = auto()
    ADDED = auto()
    REFUSED = auto()
    DELETED = auto()
    PURGED = auto()
    SNAPSHOT = auto()


@dataclass(slots=True)
class Fold:
    """A journal, perhaps not existing, to which actions are applied in the order of the log.

    Attributes:
        exists: whether there is a journal; else the other attributes have no meaning.
        begun_at: position of the action that began it, bytes; None: it is the one in the store.
        offset: position of its last change, bytes.
        seq_nr: sequence number of the last event.
        deleted: events up to this one are deleted; 0: none.
        after: of the append that was applied last, the events after this one are added.
    """

    exists: bool = False
    begun_at: int | None = None
    offset: int = -1
    seq_nr: int = 0
    deleted: int = 0
    after: int = 0

    @classmethod
    def stored(cls, head: Head | None) -> Fold:
        """Return the journal with a head in a store; None: no journal."""
        if head is None:
            return cls()
        return cls(True, None, head.offset, head.seq_nr, head.delete_to or 0)

    def __copy__(self) -> Fold:  # a read copies it; the general way takes ten times as long
        return Fold(self.exists, self.begun_at, self.offset, self.seq_nr, self.deleted, self.after)

    @property
    def last(self) -> int:
        """The last sequence number, 0 without a journal."""
        if not self.exists:
            return 0
        return self.seq_nr if self.seq_nr >= self.deleted else self.deleted

    def apply(self, action: ActionHeader, offset: int) -> Effect:
        """Apply an action.

        Args:
            action: kind and range.
            offset: position of its record, bytes.
        """
        kind = action.kind
        # A purge at the head's position is repeated.
        since = self.offset + (kind is not ActionKind.PURGE)
        if self.exists and offset < since:
            return Effect.NONE
        if kind is ActionKind.APPEND:
            return self._append(action.from_seq_nr, action.to_seq_nr, offset)
        if kind is ActionKind.CONDITIONAL_APPEND:
            if action.from_seq_nr - 1 != self.last:
                if self.exists:
                    self.offset = offset
                return Effect.REFUSED
            return self._append(action.from_seq_nr, action.to_seq_nr, offset)
        if kind is ActionKind.DELETE:
            return self._delete(action.to_seq_nr, offset)
        if not self.exists:
            return Effect.NONE
        if kind is ActionKind.PURGE or (
            kind is ActionKind.CONDITIONAL_PURGE and self.offset == action.to_seq_nr
        ):
            self.exists = False
            return Effect.PURGED
        if kind is ActionKind.SNAPSHOT and action.to_seq_nr <= self.last:
            return Effect.SNAPSHOT
        return Effect.NONE

    def _append(self, first: int, last: int, offset: int) -> Effect:
        if not self.exists:
            self._begin(offset, 0, first - 1)
        self.after = self.seq_nr if self.seq_nr >= self.deleted else self.deleted
        self.offset = offset
        if last > self.seq_nr:
            self.seq_nr = last
        return Effect.ADDED

    def _delete(self, to: int, offset: int) -> Effect:
        if not self.exists:
            self._begin(offset, to, to)
        self.offset = offset
        self.deleted = max(self.deleted, min(to, self.seq_nr))
        return Effect.DELETED

    def _begin(self, offset: int, seq_nr: int, deleted: int) -> None:
        self.exists = True
        self.begun_at = offset
        self.seq_nr = seq_nr
        self.deleted = deleted
