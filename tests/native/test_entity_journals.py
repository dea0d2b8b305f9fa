"""Journals computed from actions: arguments that no topic has."""

from __future__ import annotations

import pyarrow
import pytest

from aerotape import _native

APPEND = 1
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
    assert len(pyarrow.record_batch(_native.entity_journals(actions, 1)[0])) == 1
    with pytest.raises(ValueError, match="number of segments is 0: expected at least 1"):
        _native.entity_journals(actions, 0)
