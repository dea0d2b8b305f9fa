"""When a replay is joined with the live stream."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from aerotape.client.live.join_rule import is_joined, is_near_live

MIB = 1 << 20


def image(term_length: int = 64 * 1024, transports: int = 1) -> Any:
    return SimpleNamespace(term_buffer_length=term_length, active_transport_count=transports)


@pytest.mark.parametrize(
    ("term_length", "window"), [(64 * 1024, 16 * 1024), (128 * MIB, 32 * MIB), (1 << 30, 32 * MIB)]
)
def test_the_live_stream_is_added_within_a_window(term_length: int, window: int) -> None:
    """A quarter of a term, and 32 MiB at most."""
    assert is_near_live(image(term_length), window) and is_near_live(image(term_length), -32)
    assert not is_near_live(image(term_length), window + 32)


def test_the_replay_is_dropped_when_the_image_receives_from_both() -> None:
    """It has all that is recorded, and two transports are active."""
    assert is_joined(image(transports=2), 0) and is_joined(image(transports=2), -32)
    assert not is_joined(image(transports=2), 32)
    assert not is_joined(image(transports=1), 0)
