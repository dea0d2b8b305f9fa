"""The end of the log that a writer knows without reading."""

from __future__ import annotations

from aerotape._native import Effect, Fold
from aerotape.codecs.entity.actions import ActionHeader, ActionKind
from aerotape.entity.log.known_end import Known, KnownEnd
from aerotape.entity.log.writer import RecordPosition


def append(seq_nr: int, kind: ActionKind = ActionKind.APPEND) -> ActionHeader:
    return ActionHeader(kind, b"a", seq_nr, seq_nr, 0)


def journal(seq_nr: int, offset: int = 0) -> Fold:
    """Return the journal that an append of an event at an offset begins."""
    fold = Fold()
    fold.apply(append(seq_nr), offset)
    return fold


def expecting(seq_nr: int) -> ActionHeader:
    return append(seq_nr + 1, ActionKind.CONDITIONAL_APPEND)


def place(begin: int, end: int) -> RecordPosition:
    return RecordPosition(0, begin, end)


def known_end() -> KnownEnd:
    """Return a run whose journal has event 1."""
    known = KnownEnd()
    known.add(place(0, 100), append(1))
    known.learn(b"a", journal(1), 100)
    return known


def test_a_run_of_own_records() -> None:
    """The effect of each follows from those in front of it."""
    known = known_end()
    assert known.add(place(100, 200), expecting(1)) == (Effect.ADDED, 2)
    assert known.add(place(200, 300), expecting(1)) == (Effect.REFUSED, 2)
    assert known.add(place(300, 350)) == (Effect.NONE, 0)
    assert known.add(place(350, 400), expecting(2)) == (Effect.ADDED, 3)


def test_a_record_of_another_writer() -> None:
    """After it nothing is decided, until the journal is known again."""
    known = known_end()
    assert known.add(place(150, 200), expecting(1)) is None
    assert known.journal(b"a") == Known(journal(1), 100)
    assert known.add(place(200, 300), expecting(1), Known(journal(1), 150)) is None
    known.learn(b"a", journal(5, 200), 300)
    assert known.add(place(300, 400), expecting(5)) == (Effect.ADDED, 6)


def test_a_change_by_another_thread() -> None:
    """A journal that was changed since it was read is not known."""
    known = KnownEnd()
    assert known.add(place(0, 100), append(1)) is None
    assert known.add(place(100, 200), append(2)) is None
    known.learn(b"a", journal(1), 100)
    assert known.add(place(200, 300), expecting(1)) is None


def test_a_run_that_is_extended_back() -> None:
    """A journal that was changed in the run without being known does not become known by that."""
    known = known_end()
    known.add(place(150, 200))
    assert known.add(place(200, 300), append(2)) is None
    known.extend_back(100, 150)
    assert known.add(place(300, 400), expecting(1)) is None
    assert not known.is_unchanged(b"a", 100, 400)
    assert known.is_unchanged(b"b", 100, 400)


def test_a_journal_that_stays_as_it_is() -> None:
    """It is known up to the end of the run, so that what follows can be read from there."""
    known = known_end()
    known.add(place(100, 200), ActionHeader(ActionKind.APPEND, b"b", 1, 1, 0))
    assert known.journal(b"a") == Known(journal(1), 200)
