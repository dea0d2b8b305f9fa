"""Journals computed from actions: their snapshots, and arguments that no topic has."""

from __future__ import annotations

import pyarrow
import pytest

from aerotape import _native

APPEND, PURGE, SNAPSHOT = 1, 4, 7
JSON = 2
ACTION = {
    "entityId": pyarrow.array([b"order-1"]),
    "partition": pyarrow.array([0], pyarrow.int32()),
    "position": pyarrow.array([0], pyarrow.int64()),
    "kind": pyarrow.array([APPEND], pyarrow.int32()),
    "fromSeqNr": pyarrow.array([1], pyarrow.int64()),
    "toSeqNr": pyarrow.array([1], pyarrow.int64()),
    "metadata": pyarrow.array([b""]),
    "payloadType": pyarrow.array([JSON], pyarrow.int32()),
    "sbe_payload": pyarrow.array([b"{}"]),
}


def test_no_segments_is_refused() -> None:
    """Heads cannot be spread over no segments: a ValueError, which callers can handle."""
    actions = pyarrow.record_batch(ACTION)
    assert len(pyarrow.record_batch(_native.entity_journals(actions, 1, 0)[0])) == 1
    with pytest.raises(ValueError, match="number of segments is 0: expected at least 1"):
        _native.entity_journals(actions, 0, 0)


def test_snapshots_with_the_highest_numbers() -> None:
    """Of each number the last one of the journal, which the purged one precedes."""
    ranges = [
        (APPEND, 1, 3),
        (SNAPSHOT, 3, 3),
        (PURGE, 0, 0),
        (APPEND, 1, 3),
        (SNAPSHOT, 1, 1),
        (SNAPSHOT, 2, 2),
        (SNAPSHOT, 4, 4),
        (SNAPSHOT, 3, 3),
        (SNAPSHOT, 2, 2),
    ]
    kinds, firsts, lasts = zip(*ranges, strict=True)
    actions = {name: pyarrow.repeat(column[0], len(ranges)) for name, column in ACTION.items()}
    actions |= {
        "position": pyarrow.array(range(0, 64 * len(ranges), 64), pyarrow.int64()),
        "kind": pyarrow.array(kinds, pyarrow.int32()),
        "fromSeqNr": pyarrow.array(firsts, pyarrow.int64()),
        "toSeqNr": pyarrow.array(lasts, pyarrow.int64()),
    }
    for most, expected in ((9, [(7, 0), (8, 0), (4, 0)]), (2, [(7, 0), (8, 0)])):
        *_, saved = _native.entity_journals(pyarrow.record_batch(actions), 1, most)
        assert saved == expected
