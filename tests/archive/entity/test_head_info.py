"""The fold of the actions that are not replicated yet."""

from __future__ import annotations

import pytest

from aerotape.archive.entity.head_info import (
    Appended,
    Deleted,
    Empty,
    HeadInfo,
    Purged,
    fold,
    last_seq_nr,
)
from aerotape.codecs.entity.actions import ActionHeader, ActionKind

APPEND, MARK, DELETE, PURGE = ActionKind


def folded(*actions: tuple[ActionKind, int, int]) -> HeadInfo:
    """Fold actions (kind, first, last) at offsets 100, 200, …"""
    info: HeadInfo = Empty()
    for number, (kind, first, last) in enumerate(actions, 1):
        info = fold(info, ActionHeader(kind, b"id", first, last, 0), 100 * number)
    return info


MARKED = (MARK, 0, 0)
PURGE_IT = (PURGE, 0, 0)


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ([], Empty()),
        ([MARKED], Empty()),
        ([(APPEND, 1, 3)], Appended(100, 3)),
        ([MARKED, (APPEND, 4, 4), (APPEND, 5, 6)], Appended(200, 6)),
        ([(APPEND, 1, 5), (APPEND, 3, 4)], Appended(100, 5)),
        ([(APPEND, 1, 3), (DELETE, 0, 2)], Appended(100, 3, 2)),
        ([(APPEND, 1, 3), (DELETE, 0, 9)], Appended(100, 3, 3)),
        ([(APPEND, 1, 3), (DELETE, 0, 2), (DELETE, 0, 1)], Appended(100, 3, 2)),
        ([(APPEND, 1, 3), (DELETE, 0, 2), (APPEND, 4, 5)], Appended(100, 5, 2)),
        ([(DELETE, 0, 3)], Deleted(3, 3)),
        ([(DELETE, 0, 3), (DELETE, 0, 5), (DELETE, 0, 4)], Deleted(5, 3)),
        ([(DELETE, 0, 3), (APPEND, 6, 7)], Appended(200, 7, 3)),
        ([(DELETE, 0, 9), (APPEND, 6, 7)], Appended(200, 7, 5)),
        ([(DELETE, 0, 9), (APPEND, 1, 2)], Appended(200, 2)),
        ([(APPEND, 1, 3), PURGE_IT], Purged()),
        ([(DELETE, 0, 3), PURGE_IT, MARKED], Purged()),
        ([(APPEND, 1, 3), PURGE_IT, (APPEND, 1, 2)], Appended(300, 2, None, True)),
        ([(DELETE, 0, 3), PURGE_IT, (DELETE, 0, 2)], Deleted(2, 2, True)),
        ([PURGE_IT, (DELETE, 0, 2), (APPEND, 3, 4)], Appended(300, 4, 2, True)),
        ([PURGE_IT, (APPEND, 1, 2), (DELETE, 0, 1)], Appended(200, 2, 1, True)),
        ([PURGE_IT, (APPEND, 1, 2), PURGE_IT], Purged()),
    ],
)
def test_fold(actions: list[tuple[ActionKind, int, int]], expected: HeadInfo) -> None:
    """Appends, deletes and purges fold to what a reader needs; marks change nothing."""
    assert folded(*actions) == expected


@pytest.mark.parametrize(
    ("info", "stored", "expected"),
    [
        (Empty(), None, None),
        (Empty(), 5, 5),
        (Appended(0, 7), 5, 7),
        (Appended(0, 4), 5, 5),
        (Appended(0, 4, is_purged=True), 5, 4),
        (Deleted(7, 6), 5, 5),
        (Deleted(7, 6), None, 6),
        (Deleted(7, 6, is_purged=True), 5, 6),
        (Purged(), 5, None),
    ],
)
def test_last_sequence_number(info: HeadInfo, stored: int | None, expected: int | None) -> None:
    """The end of the log decides on the last sequence number, the store where it has none."""
    assert last_seq_nr(info, stored) == expected
