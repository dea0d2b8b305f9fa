"""The rules by which actions change a journal: effects that no journal shows, and the interface."""

from __future__ import annotations

import pytest

from aerotape._native import Effect, Fold
from aerotape.codecs.entity.actions import ActionHeader, ActionKind
from aerotape.entity.records import Head

A, C, D, P, Q, S, M = (
    ActionKind.APPEND,
    ActionKind.CONDITIONAL_APPEND,
    ActionKind.DELETE,
    ActionKind.PURGE,
    ActionKind.CONDITIONAL_PURGE,
    ActionKind.SNAPSHOT,
    ActionKind.MARK,
)
# Event 3 was appended at 64.
HEAD = Head(0, 64, 3, None, 100)


def action(kind: ActionKind, first: int = 0, last: int = 0) -> ActionHeader:
    return ActionHeader(kind, b"a", first, last, 0)


@pytest.mark.parametrize(
    ("applied", "without", "with_journal"),
    [
        (action(A, 4, 5), Effect.ADDED, Effect.ADDED),
        (action(A, 1, 2), Effect.ADDED, Effect.ADDED),
        (action(C, 1, 2), Effect.ADDED, Effect.REFUSED),
        (action(C, 4, 5), Effect.REFUSED, Effect.ADDED),
        (action(C, 6, 6), Effect.REFUSED, Effect.REFUSED),
        (action(D, 0, 2), Effect.DELETED, Effect.DELETED),
        (action(P), Effect.NONE, Effect.PURGED),
        (action(Q, 0, 64), Effect.NONE, Effect.PURGED),
        (action(Q, 0, 32), Effect.NONE, Effect.NONE),
        (action(S, 3, 3), Effect.NONE, Effect.SNAPSHOT),
        (action(S, 4, 4), Effect.NONE, Effect.NONE),
        (action(M), Effect.NONE, Effect.NONE),
    ],
)
def test_effects(applied: ActionHeader, without: Effect, with_journal: Effect) -> None:
    """Each cell of the table has its effect, an object that `is` compares."""
    assert Fold().apply(applied, 128) is without
    assert Fold(HEAD).apply(applied, 128) is with_journal


def test_actions_that_a_head_has() -> None:
    """They are ignored, as is one at the head's position; only a purge there is repeated."""
    for kind in (A, D, S, M):
        assert Fold(HEAD).apply(action(kind, 1, 1), 64) is Effect.NONE
    assert Fold(HEAD).apply(action(P), 32) is Effect.NONE
    assert Fold(HEAD).apply(action(P), 64) is Effect.PURGED


def test_attributes() -> None:
    """They are those of a head, then of the actions; a copy has them and is independent."""
    fold = Fold(Head(0, 64, 3, 5, 100))
    assert (fold.exists, fold.begun_at, fold.offset) == (True, None, 64)
    assert (fold.seq_nr, fold.deleted, fold.last) == (3, 5, 5)
    copied = fold.copy()
    assert copied == fold
    fold.apply(action(P), 128)
    assert (fold.exists, fold.last) == (False, 0)
    fold.apply(action(A, 7, 8), 192)
    assert (fold.begun_at, fold.offset) == (192, 192)
    assert (fold.seq_nr, fold.deleted, fold.after) == (8, 6, 6)
    assert copied != fold
    assert (copied.offset, copied.last) == (64, 5)


def test_an_unknown_kind() -> None:
    """It is refused, and changes nothing."""
    fold, unknown = Fold(HEAD), ActionHeader(99, b"a", 1, 1, 0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="99 is not a kind of action"):
        fold.apply(unknown, 128)
    assert fold == Fold(HEAD)
