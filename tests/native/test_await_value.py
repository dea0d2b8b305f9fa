"""Waiting for the value of a counter."""

from __future__ import annotations

import threading
import time

import pytest

from aerotape import _native
from aerotape.errors import ClosedError

SECOND_NS = 1_000_000_000


def test_a_wait_ends_with_the_value(client: _native.AeronClient) -> None:
    """It returns at once for a value that is reached, and in time for one that another thread
    sets; at the timeout it returns the value so far."""
    counter = client.add_counter(1_200, b"", "test")
    counters = client.counters()
    counter.set(7)
    place = counter.id, counter.registration_id
    assert counters.await_value(*place, 7, 60 * SECOND_NS) == 7
    assert counters.await_value(*place, 8, 0) == 7
    begin_s = time.monotonic()
    assert counters.await_value(*place, 8, SECOND_NS // 20) == 7
    assert time.monotonic() - begin_s >= 0.05
    later = threading.Timer(0.1, lambda: counter.set(9))
    later.start()
    assert counters.await_value(*place, 8, 60 * SECOND_NS) == 9
    later.join()


def test_a_wait_ends_with_the_counter(client: _native.AeronClient) -> None:
    """None for a counter that is freed meanwhile, or another one with that id."""
    counter = client.add_counter(1_200, b"", "test")
    counters = client.counters()
    assert counters.await_value(counter.id, counter.registration_id + 1, 0, 0) is None
    closing = threading.Timer(0.1, counter.close)
    closing.start()
    place = counter.id, counter.registration_id
    assert counters.await_value(*place, 1, 60 * SECOND_NS) is None
    closing.join()
    client.close()
    with pytest.raises(ClosedError):
        counters.await_value(*place, 1, 0)
